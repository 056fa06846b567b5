"""The daemon as it is, whose journal also has what only a driver can see: the lines that the simulator's drivers write.

    python -m tests.faults.traced_daemon --config FILE

Engine, reactor, store and sockets are those of production. Around three places of the reactor somebody stands and
writes down what passes: before what follows from a finished write is done (``persisted``), before messages leave
(``spoke``, ``acknowledged``, ``discarding``), and when the engine halts. ``boot`` comes first, and before it what is
found on the disk that the process before had not lived to be told of. So all checkers of the simulator have what they
read; ``groupsvc/testing/sim/history.py`` says what each line means.

``GSF_PLANT=NAME`` plants one of the simulator's bugs (``groupsvc/testing/sim/planted``), or one of disks
(``planted.py``), in this daemon: a run that does not turn red then has checkers that see nothing.

A journal of production is written by a thread, which takes its last moment with it when it is killed. Here every line
is in the file before anything that follows from it leaves the process: what others can know of it is written down.

And a line has the time of the step that it is about, as in the simulator. A process may stand still in the middle of
a step for longer than its lease; what it delivered in that step it delivered before. What leaves has the time at which
it does.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

from groupsvc.testing.sim.spoken import ACKNOWLEDGING, SPOKEN
from groupsvcd import config as configuration
from groupsvcd import daemon
from groupsvcd.command_line import EXIT_USAGE
from groupsvcd.config import Config
from groupsvcd.core import effects as fx
from groupsvcd.core.peer_messages import Beat, LeaderAlive, PeerMessage
from groupsvcd.core.records import (
    AboutRecord,
    AppendRecord,
    CheckpointRecord,
    DropPayloadsRecord,
    ForgetRecord,
    NodeRecord,
    OpenRecord,
    OptionsRecord,
    PayloadRecord,
    PromiseRecord,
    Record,
    Stored,
)
from groupsvcd.io import clocks
from groupsvcd.io.store import Store
from groupsvcd.observe import log as logs
from groupsvcd.observe.events import EventWriter

from .planted import ON_DISKS

PLANT = "GSF_PLANT"
"""The variable that names a bug."""


class Disk:
    """What is on it, as far as lines tell: of each stream the accepted epoch, and which entries there are."""

    def __init__(self, stored: Stored) -> None:
        self._logs = {
            stream: [found.accepted, found.base, found.base + len(found.entries)]
            for stream, found in stored.streams.items()
        }

    def apply(self, record: Record) -> tuple[str, int, int, int, int]:
        """What a line says of it: kind, stream, epoch, last entry, and behind which entry the log begins."""
        if isinstance(record, NodeRecord):
            return "node", 0, 0, 0, 0
        if isinstance(record, OptionsRecord):
            return "options", 0, 0, 0, 0
        if isinstance(record, ForgetRecord):
            self._logs.pop(record.stream, None)
            return "forget", record.stream, 0, 0, 0
        log = self._logs.setdefault(record.stream, [0, 0, 0])
        kind, epoch, base = "about", log[0], 0
        if isinstance(record, AppendRecord):
            kind = "append"
            log[2] = record.first_seq + len(record.entries) - 1
        elif isinstance(record, PromiseRecord):
            kind, epoch = "promise", record.epoch
        elif isinstance(record, OpenRecord):
            kind, epoch = "open", record.epoch
            log[0], log[2] = record.epoch, record.keep_upto + len(record.entries)
        elif isinstance(record, CheckpointRecord):
            kind = "checkpoint"
            if log[2] < record.seq:
                log[1] = log[2] = record.seq
            else:
                log[1] = max(log[1], record.drop_upto)
            base = log[1]
        elif isinstance(record, PayloadRecord | DropPayloadsRecord):
            kind = "payload"
        else:
            assert isinstance(record, AboutRecord)
        return kind, record.stream, epoch, log[2], base


class Trace:
    """Stands around the reactor of one daemon."""

    def __init__(self, running: daemon.Daemon, stored: Stored) -> None:
        events = running._events
        assert events is not None, "a traced daemon has a journal_directory"
        self._events, self._engine, self._stored = events, running.engine, stored
        self._disk = Disk(stored)
        self._spoken: set[tuple[type[PeerMessage], int, int, int]] = set()
        self._discards: dict[tuple[int, int], int] = {}
        self._t = clocks.now()  # of the step that runs, or ran last
        events._clock = lambda: self._t
        write_at_once(events)
        reactor: Any = running.reactor
        reactor._clock = self._look_at_the_clock
        self._begin(is_durable=running.config.state_directory is not None)
        finish, halt = reactor._finish, reactor._execute_by_type[fx.Halt]

        def finished(effect: fx.Persist) -> None:
            self._look_at_the_clock()
            for record in effect.records:
                self._persisted(record)
            finish(effect)

        journal_finished = reactor._journal_finished

        def told_by_the_disk() -> None:
            journal_finished()
            if reactor._journal.error is not None:
                self._line("fsync_failed", {"error": reactor._journal.error})

        if reactor._journal is not None:
            running.watch.remove(reactor._journal.fileno())
            running.watch.add(reactor._journal.fileno(), told_by_the_disk)

        def halted(effect: fx.Halt) -> None:
            self._line("halted", {"reason": effect.reason})
            halt(effect)

        reactor._finish = finished
        reactor._execute_by_type[fx.Halt] = halted
        for outbox in (reactor._to_peers, reactor._to_topics):
            self._listen_at(outbox)

    def _look_at_the_clock(self) -> float:
        """What the reactor does before every step."""
        self._t = clocks.now()
        return self._t

    def _begin(self, *, is_durable: bool) -> None:
        stored = self._stored
        for stream, found in sorted(stored.streams.items()):
            last = found.base + len(found.entries)
            for kind, epoch in (("promise", found.promised), ("open", found.accepted)):
                if epoch:
                    self._line("persisted", {"kind": kind, "seen": False}, group=stream, epoch=epoch, seq=last)
        self._line("boot", {"rate": 1.0, "state_id": stored.state_id, "durable": is_durable})
        for stream, found in sorted(stored.streams.items()):
            if found.damage:
                self._line("damaged", {"what": found.damage}, group=stream)
        if stored.incarnation:
            self._line("restart", {})

    def _line(self, op: str, args: dict[str, Any], *, group: int = 0, epoch: int = 0, seq: int = 0) -> None:
        self._events.write(fx.Journal(op, group=group, epoch=epoch, seq=seq, args=args), self._engine.incarnation)

    def _persisted(self, record: Record) -> None:
        kind, stream, epoch, seq, base = self._disk.apply(record)
        args: dict[str, Any] = {"kind": kind, "seen": True}
        if base:
            args["base"] = base
        self._line("persisted", args, group=stream, epoch=epoch, seq=seq)

    def _listen_at(self, outbox: Any) -> None:
        send_to = outbox._send_to

        def heard(receiver: str | bytes, messages: list[PeerMessage], send: Any) -> None:
            self._look_at_the_clock()
            for message in messages:
                self._leaves(receiver, message)
            send_to(receiver, messages, send)

        outbox._send_to = heard

    def _leaves(self, receiver: str | bytes, message: PeerMessage) -> None:
        kind = type(message)
        if kind in SPOKEN:
            # LeaderAlive is of the domain stream and does not say so.
            stream = message.stream if kind is not LeaderAlive else 0  # type: ignore[attr-defined]
            key = (kind, self._engine.incarnation, stream, message.epoch)  # type: ignore[attr-defined]
            if key not in self._spoken:
                self._spoken.add(key)
                self._line("spoke", {"kind": SPOKEN[kind]}, group=stream, epoch=key[3])
        elif isinstance(message, Beat):
            place = (self._engine.incarnation, message.stream)
            if message.stream and message.discard > self._discards.get(place, 0):
                self._discards[place] = message.discard
                self._line("discarding", {}, group=message.stream, epoch=message.epoch, seq=message.discard)
        elif kind in ACKNOWLEDGING:
            to = receiver if isinstance(receiver, str) else ""
            epoch = message.epoch  # type: ignore[attr-defined]
            self._line("acknowledged", {"kind": ACKNOWLEDGING[kind], "to": to}, epoch=epoch)


def write_at_once(events: EventWriter) -> None:
    """From now on a line is in the file when ``write`` returns; and kinds that only drivers write are written, too."""

    def put(line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[os.write(events._fd, view) :]

    events._put = put  # type: ignore[method-assign]


def main(argv: list[str] | None = None) -> int:
    """Be a daemon; the exit code."""
    parser = argparse.ArgumentParser(prog="traced_daemon", description="groupsvcd with a driver's lines in its journal")
    parser.add_argument("--config", type=Path, required=True)
    path = parser.parse_args(argv).config
    try:
        config = configuration.load(path)
    except configuration.BadConfig as bad:
        for problem in bad.problems:
            print(f"groupsvcd: {problem}", file=sys.stderr)
        return EXIT_USAGE
    logs.set_up(config.node, config.log_level, config.log_format)
    found: list[Stored] = []
    open_store = daemon._open_store

    def opened(config: Config, stack: ExitStack) -> tuple[Stored, Store | None]:
        stored, store = open_store(config, stack)
        found.append(stored)
        return stored, store

    daemon._open_store = opened
    with plant(os.environ.get(PLANT, "")):
        return daemon.run(config, lambda running: Trace(running, found[0]), reread=lambda: configuration.load(path))


def plant(name: str) -> AbstractContextManager[None]:
    """The core has this bug inside the block; "": it has none of ours."""
    if not name:
        return nullcontext()
    if name in ON_DISKS:
        return ON_DISKS[name]()
    from groupsvc.testing.sim.planted import BY_NAME

    return BY_NAME[name].planted()


if __name__ == "__main__":
    sys.exit(main())
