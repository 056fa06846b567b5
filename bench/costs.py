"""What one message costs, in processor time, without sockets: three engines in one process, frames handed over.

Rates hang on what else the machine does; processor time much less so, and it says where to look. A leads, B sends with
a window, C follows, as in ``multicast``. Everything a daemon does with a message is done (outbox, codec, frame,
checksum, engine, delivery to the program), only libzmq and the kernel are missing. The clock is not real: it advances a
little with every round, and jumps when nothing is under way.

    python -m bench.costs [--size BYTES] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from groupsvc.wire import frames
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core import effects as fx
from groupsvcd.core.engine import Engine
from groupsvcd.core.events import Event, LocalCall, PeerFrame, Persisted, Tick
from groupsvcd.core.nodegroups.controls import decode_control
from groupsvcd.core.parameters import Parameters
from groupsvcd.core.peer_messages import DOMAIN_TOPIC, PEER_CODEC
from groupsvcd.core.records import Stored
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import NodeId
from groupsvcd.io.outbox import Outbox

from .load import Load, Program
from .row import Effort, Row, at_most

GROUP = "bench"
NAMES = ("a", "b", "c")
ROUND_S = 0.0002
ROUNDS_MAX = 1_000_000
MESSAGES = 50_000

now = time.thread_time_ns


class Node:
    """One engine, its outbox, and the processor time that it took, by part."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self._world = world
        self._node = name.encode()
        parameters = Parameters(
            node=name,
            voters=NAMES,
            voter_addresses={each: f"ipc:///{each}" for each in NAMES},
            address=f"ipc:///{name}",
        )
        self.engine = Engine(parameters, Stored(state_id=name), 1, Random(name))
        self.topics = {DOMAIN_TOPIC}
        self.inbox: list[bytes] = []
        self.spent: dict[str, int] = defaultdict(int)
        self._unsynced: list[fx.Persist] = []
        self._to_do: list[Callable[[], None]] = []
        codec: Any = PEER_CODEC
        self._to_peers: Outbox[str, Any] = Outbox(codec, lambda: world.clock, _refuse)
        self._to_topics: Outbox[bytes, Any] = Outbox(codec, lambda: world.clock, _refuse)

    def start(self) -> None:
        """The first step."""
        self._execute(self.engine.start(self._world.clock))

    def call(self, action: Callable[[], None]) -> None:
        """Do something within a step."""
        self._step(LocalCall(action))

    def round(self) -> bool:
        """Read everything, tick if it is time to, send everything; whether there was anything to do."""
        inbox, self.inbox = self.inbox, []
        for raw in inbox:
            began = now()
            frame = frames.unpack(raw)
            messages = PEER_CODEC.decode(frame.body)
            self.spent["unpack and decode"] += now() - began
            self._step(PeerFrame(frame.sender, frame.incarnation, frame.domain, messages))
        unsynced, self._unsynced = self._unsynced, []
        for write in unsynced:
            self._execute(write.then)
            self._step(Persisted(write.number))
        began = now()
        ticks = self.engine.deadline <= self._world.clock
        self.spent["deadline"] += now() - began
        if ticks:
            self._step(Tick())
        self._flush()
        to_do, self._to_do = self._to_do, []
        for action in to_do:
            self._step(LocalCall(action))
        if to_do:
            self._flush()
        return bool(inbox or unsynced or ticks or to_do)

    def _flush(self) -> None:
        began = now()
        self._to_topics.flush(self._multicast)
        self._to_peers.flush(self._send)
        self.spent["encode and pack"] += now() - began

    def _step(self, event: Event) -> None:
        began = now()
        effects = self.engine.step(event, self._world.clock)
        between = now()
        self._execute(effects)
        self.spent["step"] += between - began
        self.spent["effects"] += now() - between

    def _execute(self, effects: Sequence[fx.Effect]) -> None:
        for effect in effects:
            match effect:
                case fx.SendToPeer():
                    self._to_peers.put(effect.node, effect.message, effect.valid_until)
                case fx.Multicast():
                    self._to_topics.put(effect.topic, effect.message, effect.valid_until)
                case fx.Persist():
                    self._unsynced.append(effect)
                case fx.Afterwards():
                    self._to_do.append(effect.action)
                case fx.Subscribe():
                    self.topics.add(effect.topic)
                case fx.Unsubscribe():
                    self.topics.discard(effect.topic)

    def _pack(self, body: bytes) -> bytes:
        return frames.pack(FrameKind.PEER, self.engine.domain, self._node, self.engine.incarnation, body)

    def _send(self, name: str, body: bytes) -> None:
        self._world.nodes[name].inbox.append(self._pack(body))

    def _multicast(self, topic: bytes, body: bytes) -> None:
        raw = self._pack(body)
        for node in self._world.nodes.values():
            if node is not self and topic in node.topics:
                node.inbox.append(raw)


class Part:
    """What the driver of a daemon is in a group: a ``User`` with the program of the load."""

    def __init__(self, node: Node, me: int, load: Load) -> None:
        groups = node.engine.groups
        self._node = node
        self.is_member = False
        self.program = Program(me, load, partial(groups.submit_one, GROUP))

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """This node carries the group."""
        self.is_member = True
        self.program.begin_after(seq)

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """The next entries."""
        began = now()
        deliver, seq = self.program.deliver, first_seq
        for entry in entries:
            if entry.origin:
                deliver(seq, entry.origin, entry.body)
            else:
                self.program.skip(seq)
                decode_control(entry.body)
            seq += 1
        self.program.note()
        self._node.spent["program: deliver (within step)"] += now() - began
        began = now()
        self.program.fill()
        self._node.spent["program: submit (within step)"] += now() - began

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Somebody came or went."""

    def lost(self, reason: str) -> None:
        """Never here."""
        raise AssertionError(reason)


class World:
    """Three nodes in a domain, the group formed, B ready to send."""

    def __init__(self, load: Load) -> None:
        self.clock = 1000.0
        self.nodes = {name: Node(self, name) for name in NAMES}
        for node in self.nodes.values():
            node.start()
        self.parts = [Part(node, number, load) for number, node in enumerate(self.nodes.values())]
        self.run_until(lambda: all(not node.engine.member.isolated for node in self.nodes.values()))
        for node, part in zip(self.nodes.values(), self.parts, strict=True):
            node.call(lambda node=node, part=part: node.engine.groups.join(GROUP, {}, part))  # type: ignore[misc]
            self.run_until(lambda part=part: part.is_member)  # type: ignore[misc]
        self.run_until(lambda: all(len(node.engine.groups.status()[0].servers) == 3 for node in self.nodes.values()))
        for node in self.nodes.values():
            node.spent.clear()

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Round after round."""
        for _ in range(ROUNDS_MAX):
            if condition():
                return
            moved = [node.round() for node in self.nodes.values()]
            if any(moved) or any(node.inbox for node in self.nodes.values()):
                self.clock += ROUND_S
            else:
                self.clock = max(self.clock, min(node.engine.deadline for node in self.nodes.values()))
        raise TimeoutError("the engines do not get there")

    def send(self, messages: int) -> None:
        """B sends until so many are delivered everywhere."""
        sender = self.parts[1].program
        sender.is_sending = True
        self.nodes["b"].call(sender.fill)
        self.run_until(lambda: all(part.program.delivered >= messages for part in self.parts))


def _refuse(text: str) -> None:
    raise AssertionError(text)


def measure(effort: Effort) -> list[Row]:
    """Processor time per message of each role, without a promise."""
    rows = []
    messages = effort.choose(MESSAGES, MESSAGES // 5)
    for size in (100, 10_000):
        spent: dict[str, list[list[float]]] = defaultdict(list)
        for _ in range(effort.runs):
            world = World(Load(senders=1, size=size))
            world.send(messages)
            for role, node in zip(("leader", "sender", "follower"), world.nodes.values(), strict=True):
                whole = sum(took for part, took in node.spent.items() if "within" not in part)
                spent[role].append([whole / 1000 / messages])
        for role, runs in spent.items():
            rows.append(at_most(f"{role}, {size} bytes: processor time without sockets", "µs per message", runs))
    return rows


def main() -> None:
    """Print where the time goes."""
    parser = argparse.ArgumentParser(prog="python -m bench.costs", description=__doc__)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--window", type=int, default=256)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--profile", action="store_true", help="what cProfile finds, instead of times")
    options = parser.parse_args()
    world = World(Load(senders=1, size=options.size, window=options.window))
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(world.send, options.messages)
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        return
    world.send(options.messages)
    for role, node in zip(("leader", "sender", "follower"), world.nodes.values(), strict=True):
        whole = sum(took for part, took in node.spent.items() if "within" not in part)
        print(f"{role}: {whole / 1000 / options.messages:.2f} µs per message")
        for part, took in sorted(node.spent.items()):
            print(f"    {took / 1000 / options.messages:6.2f}  {part}")


if __name__ == "__main__":
    main()
