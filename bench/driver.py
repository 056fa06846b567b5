"""A daemon with a driver inside: a program that takes part in node groups as it is told.

    python -m bench.driver --config FILE [--profile FILE]

It is told by lines of JSON on standard input and answers by lines of JSON on standard output; both kinds of lines are
the classes below. In a group it runs the same program as the processes of the floor (see ``load``): it submits messages
one by one until its window is full, and looks at every entry that is delivered. If one is missing, doubled or out of
order it raises, and the daemon halts.

The end of standard input ends the daemon: whoever drives it is gone.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from groupsvcd import config as configuration
from groupsvcd import daemon
from groupsvcd.core.nodegroups.controls import ViewStarted, decode_control
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import AttributeValue, NodeId
from groupsvcd.daemon import Daemon
from groupsvcd.observe import log as logs

from .load import Ledger, Load, Notes, Program, RecordingProgram
from .memory import resident_mib

STDIN, STDOUT = 0, 1
READ_BYTES = 65_536


class Command(msgspec.Struct, frozen=True, tag_field="do"):
    """A line to the driver."""


class Join(Command, frozen=True, tag="join"):
    """Take part in ``group`` as number ``me``; with ``send`` messages are sent from the moment it has joined.

    With ``machine`` the whole order is a state that comes with the group, and not what was seen since.
    """

    group: str
    me: int
    load: Load
    send: bool = False
    record: bool = False
    machine: bool = False
    attributes: dict[str, AttributeValue] = {}


class Send(Command, frozen=True, tag="send"):
    """Send as the load says."""

    group: str


class Hold(Command, frozen=True, tag="hold"):
    """Send nothing more."""

    group: str


class Leave(Command, frozen=True, tag="leave"):
    """Take part in ``group`` no longer."""

    group: str


class Tell(Command, frozen=True, tag="tell"):
    """What happened in ``group``? The order goes into the file ``order``, if one is named."""

    group: str
    order: str = ""


class Look(Command, frozen=True, tag="look"):
    """How do things stand?"""


class FailSync(Command, frozen=True, tag="fail-sync"):
    """From now on what is written to the state directory cannot be synced."""


AnyCommand = Join | Send | Hold | Leave | Tell | Look | FailSync


class Answer(msgspec.Struct, frozen=True, tag_field="is"):
    """A line of the driver."""


class Joined(Answer, frozen=True, tag="joined"):
    """This node carries the group."""

    group: str
    took: float


class Lost(Answer, frozen=True, tag="lost"):
    """It carries it no longer."""

    group: str
    reason: str


class ViewNote(msgspec.Struct, frozen=True):
    """A view began here, after so many messages were delivered."""

    at: float
    epoch: int
    leader: str
    delivered: int


class Told(Answer, frozen=True, tag="told"):
    """Everything that was noted."""

    group: str
    asked_at: float  # when the driver was told to join
    notes: Notes
    views: list[ViewNote]
    outstanding: int
    first_seq: int  # of the recorded order


class GroupLook(msgspec.Struct, frozen=True):
    """One group on this node."""

    name: str
    role: str
    epoch: int
    leader: str
    members: list[str]
    servers: list[str]
    delivered: int
    outstanding: int
    refusal: str


class LinkLook(msgspec.Struct, frozen=True):
    """One link of this node."""

    node: str
    listens: bool
    frames_sent: int
    frames_dropped: int


class Looked(Answer, frozen=True, tag="looked"):
    """How things stand."""

    groups: list[GroupLook]
    links: list[LinkLook]
    resident_mib: float
    cpu_s: float


AnyAnswer = Joined | Lost | Told | Looked


class Part:
    """The part of this node in one group; a ``User`` of it."""

    def __init__(self, driver: Driver, join: Join) -> None:
        self._driver = driver
        self._name = join.group
        self._asked_at = time.monotonic()
        self._views: list[ViewNote] = []
        kind = Ledger if join.machine else RecordingProgram if join.record else Program
        self.program = kind(join.me, join.load, partial(driver.groups.submit_one, join.group))
        self.program.is_sending = join.send

    # --- What the group tells ---

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """This node carries the group."""
        self.program.begin_after(seq)
        self._driver.say(Joined(self._name, time.monotonic() - self._asked_at))
        self._fill()

    def _fill(self) -> None:
        groups, program = self._driver.groups, self.program
        if not groups.refusal(self._name):
            program.fill()
            if groups.outstanding(self._name) < program.outstanding:
                raise AssertionError("the window of the node is smaller than that of the load")

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """The next entries."""
        deliver, seq = self.program.deliver, first_seq
        for entry in entries:
            if entry.origin:
                deliver(seq, entry.origin, entry.body)
            else:
                self._control(seq, entry.body)
            seq += 1
        self.program.note()
        self._fill()

    def _control(self, seq: int, body: bytes) -> None:
        self.program.skip(seq)
        control = decode_control(body)
        if isinstance(control, ViewStarted):
            self._views.append(ViewNote(time.monotonic(), control.epoch, control.leader, self.program.delivered))

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Somebody came or went."""

    def lost(self, reason: str) -> None:
        """This node carries the group no longer."""
        self.program.is_sending = False
        self._driver.say(Lost(self._name, reason))

    # --- What the driver is told ---

    def send(self) -> None:
        """Begin to send."""
        self.program.is_sending = True
        self._fill()

    def hold(self) -> None:
        """Send nothing more."""
        self.program.is_sending = False

    def tell(self, order: str) -> Told:
        """Everything that was noted."""
        program, first_seq = self.program, 0
        if isinstance(program, RecordingProgram):
            first_seq = program.first_seq
            if order:
                Path(order).write_bytes(program.order.tobytes())
        return Told(self._name, self._asked_at, program.notes, self._views, program.outstanding, first_seq)


class Driver:
    """Reads commands and answers them."""

    def __init__(self, daemon: Daemon) -> None:
        self.groups = daemon.engine.groups
        self._daemon = daemon
        self._parts: dict[str, Part] = {}
        self._unread = b""
        self._decode = msgspec.json.Decoder(AnyCommand).decode
        self._encode = msgspec.json.Encoder().encode
        os.set_blocking(STDIN, False)
        daemon.watch.add(STDIN, self._read)

    def say(self, answer: AnyAnswer) -> None:
        """Write one line."""
        line = memoryview(self._encode(answer) + b"\n")
        while line:
            line = line[os.write(STDOUT, line) :]

    def _read(self) -> None:
        found = os.read(STDIN, READ_BYTES)
        if not found:
            self._daemon.watch.remove(STDIN)
            self._daemon.reactor.stop()
            return
        *lines, self._unread = (self._unread + found).split(b"\n")
        for line in lines:
            command = self._decode(line)
            self._daemon.reactor.call(self._action(command))

    def _action(self, command: AnyCommand) -> Callable[[], None]:
        return lambda: self._do(command)

    def _do(self, command: AnyCommand) -> None:
        """Within a step of the engine."""
        match command:
            case Join(group=group):
                self._parts[group] = part = Part(self, command)
                machine = part.program if isinstance(part.program, Ledger) else None
                self.groups.join(group, dict(command.attributes), part, machine)
            case Send(group=group):
                self._parts[group].send()
            case Hold(group=group):
                self._parts[group].hold()
            case Leave(group=group):
                self.groups.leave(group, self._parts[group])
            case Tell(group=group, order=order):
                self.say(self._parts[group].tell(order))
            case Look():
                self.say(self._look())
            case FailSync():
                fail_sync()

    def _look(self) -> Looked:
        groups = [
            GroupLook(
                one.name, one.role, one.epoch, one.leader, [name for name, _ in one.members], list(one.servers),
                one.delivered, one.outstanding, self.groups.refusal(one.name),
            )
            for one in self.groups.status()
        ]  # fmt: skip
        peers = self._daemon.peers
        links = [
            LinkLook(link.node, link.listens, link.frames_sent, link.frames_dropped)
            for link in (peers.statistics() if peers is not None else ())
        ]
        return Looked(groups, links, resident_mib(os.getpid()), time.process_time())


def fail_sync() -> None:
    """Put a device that takes everything and syncs nothing in the place of the write-ahead log that is open."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            place = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue  # the directory that is being listed
        if place.endswith("/state.db-wal"):
            os.dup2(os.open("/dev/null", os.O_RDWR), int(fd))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the daemon; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.driver", description="a daemon with a driver inside")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--profile", type=Path, help="write what cProfile found there when the daemon ends")
    options = parser.parse_args(arguments)
    config = configuration.load(options.config)
    logs.set_up(config.node, config.log_level)
    if options.profile is None:
        return daemon.run(config, inside=Driver)
    profile = cProfile.Profile()
    try:
        return profile.runcall(daemon.run, config, inside=Driver)
    finally:
        profile.dump_stats(options.profile)


if __name__ == "__main__":
    sys.exit(main())
