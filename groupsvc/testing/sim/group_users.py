"""Simulated programs inside the daemons: they join groups, submit, listen, leave and come back.

A ``Member`` takes part in one group at a time. It has many submissions on their way at once, each with a body that
nobody else ever sends, and ends each call with what it was told: ``ok`` when it sees its entry in the stream, ``info``
when its part in the group, or its process, ends first. Whatever it hears it compares on the spot with what was sent:
entries without a gap, nothing that nobody submitted, nothing of another group or in another's name.

A ``Stranger`` submits to a group that its node does not carry, one batch after the other. It does not see its entries,
and ends its calls when it is told that they are stable.

Programs die with their process. Some are started again with the next one.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import attrs

from groupsvc.wire.history import EventType
from groupsvcd.core.nodegroups.node_groups import NodeGroups
from groupsvcd.core.stream.entries import Entry, encode_entry, encode_reference
from groupsvcd.core.views import AttributeValue, NodeId

from .group_machines import Chain
from .group_wishes import Wishes

if TYPE_CHECKING:
    from .node import Node
    from .world import World

BODY_BYTES_MAX = 3_000
"""Now and then a body is as long as this; most have a few bytes."""

DIFFERS = " in this group, not "
"""What the refusal says of a program that stated something else."""

CANNOT_BEGIN = (" are no longer kept; the oldest number", "the stream has come to entry")
"""What the refusal says of one that wants to begin where it cannot."""

DURABLE = 0.3
"""Share of the groups that somebody forms, if its node has a disk."""


@attrs.frozen(kw_only=True)
class GroupHabits:
    """What the programs of a world do with groups."""

    groups: int = 0  # how many there are to choose from
    members: int = 0  # programs that join them
    strangers: int = 0  # programs that submit from outside
    think_s: float = 0.3  # mean pause between two deeds of a program
    burst: int = 4  # submissions in one deed, at most
    window: int = 20  # submissions that a program has on their way, at most
    leave: float = 0.03  # share of a member's deeds
    answer: float = (
        0.4  # chance that anybody submits at once when all are told of something; less than 1, or it never ends
    )
    returns: float = 0.8  # chance that a program is there again in the next process
    sync: float = 0.1  # share of a member's deeds after which it wants to have everything
    fast: float = 0.0  # share of the groups that are formed to deliver before k servers hold an entry
    waits: float = 0.0  # share of those in memory that wait for ever when their quorum is lost
    attributes: Mapping[str, AttributeValue] | None = None  # of every group; None: whoever forms one draws them


class Sent(NamedTuple):
    """A body that was submitted: where to, and from where."""

    group: str
    origin: NodeId


class Program(ABC):
    """What members and strangers have in common: a node, a process, calls that end once."""

    def __init__(self, users: GroupUsers, name: str, node: Node) -> None:
        self.users = users
        self.world = users.world
        self.name = name
        self.node = node
        self.process = -1  # that of the node in which it lives; -1 while it does not
        self.group = ""
        self.calls = 0
        self.bodies = 0
        self.open: dict[bytes, tuple[int, int]] = {}  # body -> number of the call, n (0 if not known)

    @property
    def alive(self) -> bool:
        """Whether its process still runs."""
        return self.process == self.node.process

    def new_body(self) -> bytes:
        """Something that nobody has submitted before."""
        self.bodies += 1
        rng = self.users.rng
        padding = rng.randrange(BODY_BYTES_MAX) if rng.random() < 0.02 else rng.randrange(8)
        return f"{self.name}:{self.bodies}".encode() + b"." * padding

    def begin_submit(self, group: str, group_id: int, n: int, body: bytes) -> None:
        """Write that a body is on its way."""
        engine = self.node.engine
        assert engine is not None
        origin = (self.node.name, engine.incarnation)
        self.calls += 1
        self.open[body] = (self.calls, n)
        self.users.sent[body] = Sent(group, origin)
        crc = crc32(self._entry(origin, n, body)) if n else 0
        self.line("submit", "invoke", {"id": self.calls, "name": group}, group=group_id, n=n, crc=crc)

    def _entry(self, origin: tuple[str, int], n: int, body: bytes) -> bytes:
        """What will stand in the log for this body: a large one travels apart from its order."""
        groups = self.node.groups
        submitter = groups._by_name[self.group].submitter if groups is not None else None
        if submitter is not None and len(body) > submitter.inline_bytes_max:
            return encode_reference(*origin, n, len(body), crc32(body))
        return encode_entry(*origin, n, body)

    def end_submit(self, body: bytes, type_: EventType, result: dict[str, Any], *, group_id: int, n: int) -> None:
        """Write what became of it."""
        call, _ = self.open.pop(body)
        sent = self.users.sent[body]
        args = {"id": call, "name": sent.group}
        self.line("submit", type_, args, result, group=group_id, n=n, inc=sent.origin[1])

    def line(
        self, op: str, type_: EventType, args: dict[str, Any], result: dict[str, Any] | None = None, *,
        group: int = 0, n: int = 0, crc: int = 0, inc: int = 0,
    ) -> None:  # fmt: skip
        """Write one line of history."""
        world, node = self.world, self.node
        if not inc:
            inc = node.engine.incarnation if node.engine is not None else node.highest_incarnation
        world.history.add(
            world.t, op, local=node.offset + node.rate * world.t, node=node.name, inc=inc, who=self.name, type=type_,
            group=group, n=n, crc=crc, args=args, result=result or {},
        )  # fmt: skip
        if world.play is not None:
            world.play.called(self.name, node.name, type_, op, args, result or {})

    @abstractmethod
    def act(self) -> None:
        """The next deed, within a step of the engine."""

    def died(self) -> None:
        """Its process is gone: what is open is not known."""
        self.process = -1
        self.give_up("the process ended")

    def give_up(self, reason: str) -> None:
        """Nothing more will be heard of what is on its way."""
        self.end_submits(reason)

    def end_submits(self, reason: str) -> None:
        """What became of the submissions is not known."""
        for body in list(self.open):
            self.end_submit(body, "info", {"reason": reason}, group_id=0, n=self.open[body][1])


class Member(Program):
    """A program that takes part in a group."""

    def __init__(self, users: GroupUsers, name: str, node: Node) -> None:
        super().__init__(users, name, node)
        self.group = ""  # the one that it is in, or on its way into
        self.group_id = 0  # once it is in
        self.reached = 0
        self.join_call = 0
        self.syncs: set[int] = set()  # calls that have not ended
        self.stated: dict[str, AttributeValue] = {}  # of what it wants the group to be
        self.chain: Chain | None = None  # its state, if the members of the group have one

    # --- Deeds ---

    def act(self) -> None:
        groups, rng, habits = self.node.groups, self.users.rng, self.users.habits
        if groups is None:
            return
        if not self.group:
            if not self.users.quiet:
                name = f"users-{rng.randrange(habits.groups)}"
                self.join(groups, name, self.users.attributes_for(name))
        elif not self.users.quiet and rng.random() < habits.leave:
            self.leave(groups)
        elif self.group_id and not self.users.quiet:
            self.submit(groups, 1 + rng.randrange(habits.burst))
            if self.users.fast_rng.random() < habits.sync:
                self.sync(groups)

    def sync(self, groups: NodeGroups) -> None:
        """Ask to be told when all has been given to it that was ordered until now."""
        self.calls += 1
        call, group, part = self.calls, self.group, self.group_id
        args = {"id": call, "name": group}
        self.line("sync", "invoke", args, group=part)
        self.syncs.add(call)

        def told(seq: int) -> None:
            if call not in self.syncs or not self._hears("that it has everything"):
                self.users.broken("K1", f"{self.name} is told twice, or too late, that it has everything", self)
                return
            self.syncs.discard(call)
            if seq > self.reached:
                self.users.broken("K2", f"{self.name} has {self.reached} and is told that it has {seq}", self)
            self.line("sync", "ok", args, {"seq": seq}, group=part)

        if not groups.sync(group, self, told):
            self.syncs.discard(call)
            self.line("sync", "fail", args, {"reason": "not carried"}, group=part)

    def give_up(self, reason: str) -> None:
        super().give_up(reason)
        for call in sorted(self.syncs):
            self.line("sync", "info", {"id": call, "name": self.group}, {"reason": reason}, group=self.group_id)
        self.syncs.clear()

    def join(self, groups: NodeGroups, group: str, attributes: dict[str, AttributeValue]) -> None:
        """Ask to take part; ``joined`` or ``lost`` follows, now or later."""
        self.group, self.stated = group, attributes
        self.calls += 1
        self.join_call = self.calls
        self.chain = Chain(self) if self.users.wishes.brings_machine(groups, group) else None
        self.line("join", "invoke", {"id": self.calls, "name": group, **attributes})
        since = self.users.wishes.since(group) if self.chain is None else None
        groups.join(group, attributes, self, self.chain, since)

    def leave(self, groups: NodeGroups) -> None:
        """Take part no longer; ``lost`` follows at once."""
        self.calls += 1
        args = {"id": self.calls, "name": self.group}
        self.line("leave", "invoke", args, group=self.group_id)
        groups.leave(self.group, self)
        self.line("leave", "ok", args)

    def submit(self, groups: NodeGroups, count: int) -> int:
        """Submit so many, or as many as the window takes; how many these were."""
        count = min(count, self.users.habits.window - len(self.open))
        if count <= 0:
            return 0
        bodies = [self.new_body() for _ in range(count)]
        first = groups.submit(self.group, bodies)
        if not first:
            return 0
        for position, body in enumerate(bodies):
            self.begin_submit(self.group, self.group_id, first + position, body)
        return count

    # --- What it is told ---

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """The node carries the group."""
        if not self._hears("joined") or not self.join_call:
            self.users.broken("K1", f"{self.name} has joined {group} without having asked", self)
            return
        self.group_id, self.reached = group, seq
        self._end_join("ok", {"group": group, "seq": seq}, group)
        if seq:  # who forms the group is its first entry's business
            self._check_members("joined", members)

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """The next entries."""
        if not self._hears("delivered"):
            return
        if first_seq != self.reached + 1:
            self.users.broken("B4", f"{self.name} is given {first_seq} after {self.reached}", self)
        users = self.users
        for seq, entry in enumerate(entries, first_seq):
            if entry.origin:
                users.seen(self, seq, entry)
                if entry.body in self.open:
                    self.end_submit(entry.body, "ok", {"seq": seq}, group_id=self.group_id, n=entry.n)
        self.reached = first_seq + len(entries) - 1
        if self.chain is not None:
            self.chain.add(entries)
        groups = self.node.groups
        if groups is not None and not users.quiet and users.rng.random() * len(users.members) < users.habits.answer:
            self.submit(groups, 1)

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """The list has changed."""
        if self._hears("changed"):
            self._check_members("changed", members)

    def lost(self, reason: str) -> None:
        """Nothing more comes."""
        reason = str(reason)  # a line has plain words
        if not self._hears("lost"):
            return
        if self.join_call:
            is_refused = DIFFERS in reason
            if is_refused and not self.stated:
                self.users.broken("K1", f"{self.name} stated nothing and is refused: {reason}", self)
            is_refused = is_refused or any(words in reason for words in CANNOT_BEGIN)
            self._end_join("fail" if is_refused or reason == "left" else "info", {"reason": reason}, 0)
        self.give_up(reason)
        self.group, self.group_id, self.reached = "", 0, 0

    def died(self) -> None:
        super().died()
        if self.join_call:
            self._end_join("info", {"reason": "the process ended"}, 0)
        self.group, self.group_id, self.reached = "", 0, 0

    def _end_join(self, type_: EventType, result: dict[str, Any], group: int) -> None:
        self.line("join", type_, {"id": self.join_call, "name": self.group}, result, group=group)
        self.join_call = 0

    def _hears(self, what: str) -> bool:
        """Nobody is told anything after its end; while it takes part, it is told all."""
        if self.alive and self.group:
            return True
        self.users.broken("K1", f"{self.name} is told {what} and takes part in nothing", self)
        return False

    def _check_members(self, what: str, members: tuple[NodeId, ...]) -> None:
        engine, groups = self.node.engine, self.node.groups
        if engine is None or groups is None:
            return
        inserted_seq = groups._by_name[self.group]._inserted_seq
        # A state begins with what was before its member: its node may be behind its own insertion.
        if self.reached >= inserted_seq and (self.node.name, engine.incarnation) not in members:
            self.users.broken("V1", f"{self.name} is told {what} with the members {members}", self)


class Stranger(Program):
    """A program that submits to one group, from outside."""

    def __init__(self, users: GroupUsers, name: str, node: Node) -> None:
        super().__init__(users, name, node)
        self.group = ""  # as long as it lives
        self.batch: list[bytes] = []

    def act(self) -> None:
        groups, rng = self.node.groups, self.users.rng
        if groups is None or self.users.quiet or self.open:
            return
        self.group = self.group or f"users-{rng.randrange(self.users.habits.groups)}"
        self.batch = [self.new_body() for _ in range(1 + rng.randrange(self.users.habits.burst))]
        if groups.send(self.group, self.batch, self):
            for body in self.batch:
                self.begin_submit(self.group, 0, 0, body)

    def accepted(self, upto_n: int) -> None:
        """Everything up to this number is stable; the last numbers that its node has given are those of the batch."""
        groups = self.node.groups
        assert groups is not None
        outsider = groups._outsiders[self.group]
        if outsider.submitter is None:
            return
        first = outsider.submitter.last - len(self.batch) + 1
        for n, body in enumerate(self.batch, first):
            if n <= upto_n and body in self.open:
                self.end_submit(body, "ok", {}, group_id=outsider.id, n=n)

    def failed(self, reason: str) -> None:
        """Nothing more will be heard."""
        self.give_up(reason)

    def died(self) -> None:
        super().died()
        self.group = ""


class GroupUsers:
    """All programs of a world."""

    def __init__(self, world: World, rng: random.Random, habits: GroupHabits, wishes: Wishes) -> None:
        self.world = world
        self.rng = rng
        self.fast_rng = random.Random(f"{world.seed}/fast groups")  # of its own: other choices stay as they were
        self.waits_rng = random.Random(f"{world.seed}/groups that wait")  # and of its own
        self.habits = habits
        self.wishes = wishes
        self.quiet = False
        self.sent: dict[bytes, Sent] = {}
        self.states: dict[int, set[bytes]] = {}  # of machines, by the group's id
        self.members = [
            Member(self, f"member-{number}", world.nodes[rng.choice(world.names)])
            for number in range(1, habits.members + 1)
        ]
        # One at a node: what is outstanding there belongs to the one that submitted last.
        outside = rng.sample(world.names, min(habits.strangers, len(world.names)))
        self.strangers = [
            Stranger(self, f"stranger-{number}", world.nodes[name]) for number, name in enumerate(outside, 1)
        ]
        self.at: dict[str, list[Program]] = {}
        for program in (*self.members, *self.strangers):
            self.at.setdefault(program.node.name, []).append(program)

    def draw_pace(self, attributes: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
        """Perhaps the same group, but fast."""
        rng = self.fast_rng
        if rng.random() < self.habits.fast and not attributes.get("durable"):
            return {**attributes, "delivery": "fast", "sync_window": rng.choice([1, 2, 5, 20])}
        return attributes

    def draw_waiting(self, attributes: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
        """Perhaps the same group, but one that waits for servers that are gone."""
        if self.waits_rng.random() < self.habits.waits and not attributes.get("durable"):
            return {**attributes, "on_quorum_lost": "wait"}
        return attributes

    def member_at(self, node: Node, name: str) -> Member:
        """A program that runs now and does only what it is told."""
        member = Member(self, name, node)
        member.process = node.process
        self.members.append(member)
        self.at.setdefault(node.name, []).append(member)
        return member

    # --- Lives ---

    def process_began(self, node: Node) -> None:
        """A daemon has started; those of its programs that are started with it begin to act."""
        for program in self.at.get(node.name, ()):
            if node.starts == 1 or self.rng.random() < self.habits.returns:
                program.process = node.process
                self._think(program)

    def process_ended(self, node: Node) -> None:
        """A daemon is gone, and all programs in it."""
        for program in self.at.get(node.name, ()):
            if program.process >= 0:
                program.died()

    def _think(self, program: Program) -> None:
        pause = self.rng.expovariate(1.0) * self.habits.think_s
        self.world.push(self.world.t + pause, self._next, program, program.process)

    def _next(self, program: Program, process: int) -> None:
        if program.process != process or not program.alive:
            return
        node = program.node
        if not node.paused:  # a program stands still with its process
            node.call(program.act)
        if program.process == process and program.alive:
            self._think(program)

    def attributes_for(self, group: str) -> dict[str, AttributeValue]:
        """What somebody states who wants to take part."""
        if self.habits.attributes is not None:
            return {**self.habits.attributes}
        return self.wishes.attributes(group, self.draw_waiting(self.draw_pace(draw_attributes(self.rng))))

    # --- What they hear ---

    def seen(self, member: Member, seq: int, entry: Entry) -> None:
        """A member has been given an entry of some program."""
        sent = self.sent.get(entry.body)
        if sent is None or (sent.group, sent.origin) != (member.group, (entry.origin, entry.incarnation)):
            what = f"{member.name} is given {seq} of {member.group}: {entry.body[:40]!r}"
            self.broken("B1", f"{what} from {entry.origin}/{entry.incarnation}; submitted was {sent}", member)

    def broken(self, invariant: str, text: str, program: Program) -> None:
        """A program was told something it must not be told."""
        self.world.found(invariant, f"{text} (at {program.node.name})")

    @property
    def open_calls(self) -> int:
        """Calls that have not ended."""
        return self.open_calls_except(frozenset())

    def open_calls_except(self, groups: frozenset[str]) -> int:
        """The same, but for those that concern these groups."""
        programs: tuple[Program, ...] = (*self.members, *self.strangers)
        waiting = [member for member in self.members if member.group not in groups]
        asked = sum(len(member.syncs) + (member.join_call > 0) for member in waiting)
        return asked + sum(len(program.open) for program in programs if program.group not in groups)


def draw_attributes(rng: random.Random) -> dict[str, AttributeValue]:
    """Attributes of a group that somebody wants to form."""
    attributes: dict[str, AttributeValue] = {}
    if rng.random() < 0.7:
        replicas = attributes["replicas"] = rng.randint(1, 4)
        if rng.random() < 0.5:
            attributes["commit_k"] = rng.randint(1, replicas)
    if rng.random() < DURABLE:
        attributes["durable"] = True
    elif rng.random() < 0.2:
        attributes["on_quorum_lost"] = rng.choice(["continue", "dissolve"])
    return attributes
