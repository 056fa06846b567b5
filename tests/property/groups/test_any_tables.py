"""Whatever comes in whatever order: joins, deaths, writes, snapshots. All who are in have the same table."""

from __future__ import annotations

from collections import deque

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from groupsvc.events import Message
from groupsvc.tables import Rows, Write, _encoder
from groupsvc.views import View, text_of
from groupsvc.voting_words import Vote
from groupsvc.wire.notices import Message as MessageNotice
from groupsvc.wire.notices import ProviderId
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.archive import Archive
from groupsvcd.core.groups.commands import BY_DEFAULT
from groupsvcd.core.groups.process_group import ProcessGroup
from groupsvcd.core.nodegroups.controls import AnyControl, NodeInserted, NodesFailed

EVERY = 1  # so that the tail is dropped now and then
NODES = "ABC"
VIEW = View(0, 0, (), b"", 0, Vote.APPROVE)
KEYS = st.sampled_from(("a", "b", "c"))
VALUES = st.sampled_from((b"1", b"2", None))


def _message(seq: int, sender: ProviderId, payload: bytes) -> Message:
    return Message(None, payload, seq, "db", text_of(sender), VIEW)


class Member:
    """A process with a table, as far behind the stream as it likes."""

    def __init__(self, process: ProviderId) -> None:
        self.process = process
        self.table = Rows()
        self.applied = 0
        self.inbox: deque[tuple[int, ProviderId, bytes]] = deque()

    def apply(self, count: int) -> None:
        """So many of the messages that wait for it."""
        while self.inbox and count:
            seq, sender, payload = self.inbox.popleft()
            self.table.apply(_message(seq, sender, payload))
            self.applied = seq
            count -= 1


@attrs.frozen
class Step:
    """Something that happens."""

    what: str
    who: int
    node: str
    kind: str
    key: str
    value: bytes | None
    expected: bytes | None
    count: int
    left_out: int


class AnyTables:
    """One stream; a copy of the group that saw all of it, and one that begins with checkpoints of the other."""

    def __init__(self) -> None:
        self.numbers = 0
        self.form()
        for node in NODES:
            self.join(node)

    def form(self) -> None:
        """A group of that name, with nobody in it."""
        attributes = {"state_machine": True, "checkpoint_every": EVERY, "durable": True}
        self.group = ProcessGroup(attributes)
        self.copy = ProcessGroup(attributes)
        self.seq = 0
        self.present: dict[ProviderId, Member] = {}
        self.truth = Rows()  # of one who was there from the beginning and applied everything at once

    def do(self, step: Step) -> None:
        """One thing that happens; whoever is named by a number is one of those who are in."""
        members = list(self.present.values())
        member = members[step.who % len(members)] if members else None
        match step.what:
            case "join":
                self.join(step.node)
            case "fail":
                self.fail(step.node)
            case "begin anew":
                self.begin_anew()
            case _ if member is None:
                pass
            case "write":
                self.write(member, step.kind, step.key, step.value, step.expected)
            case "apply":
                member.apply(step.count)
            case "checkpoint":
                self.checkpoint(member, step.left_out)
            case "block":
                self.block(member, step.count - 1, b"\x90")
            case "die":
                self.die(member)
        self.check()

    # --- What happens ---

    def join(self, node: str) -> None:
        """Somebody comes, and begins with what its node has."""
        self.numbers += 1
        process = (node, 1, self.numbers)
        if (node, 1) not in self.group.nodes:
            self._control(NodeInserted((node, 1), 1, 0))
        self._entry(node, cmd.encode(cmd.Join(self.numbers, self.numbers, BY_DEFAULT, BY_DEFAULT, "", b"")))
        if self.group.has_ended:
            self.form()  # who came too late asks for another one
        elif self._archive.is_whole:
            self.present[process] = self._newcomer(process)

    def write(self, member: Member, kind: str, key: str, value: bytes | None, expected: bytes | None) -> None:
        """To the table."""
        written = b"0" if kind == "put" and value is None else None if kind == "delete" else value
        payload = _encoder.encode(Write(1, kind, key, written, expected))  # type: ignore[arg-type]
        self._entry(member.process[0], cmd.message_prefix(member.process[2]) + payload)

    def checkpoint(self, member: Member, left_out: int) -> None:
        """It takes a checkpoint of what it has applied, and may not come to its end."""
        blocks = [bytes(block) for block in member.table.snapshot()]
        for index, block in enumerate(blocks):
            self.block(member, index, block)
        if left_out < 2:
            node, _, number = member.process
            self._entry(node, cmd.encode(cmd.SealCheckpoint(number, member.applied, len(blocks) + left_out)))

    def block(self, member: Member, index: int, block: bytes) -> None:
        """One block; alone it means nothing."""
        node, _, number = member.process
        self._entry(node, cmd.encode(cmd.StoreBlock(number, member.applied, index, block)))

    def die(self, member: Member) -> None:
        """It is no more."""
        self._entry(member.process[0], cmd.encode(cmd.ProvidersFailed(((member.process[2], "failure"),))))

    def fail(self, node: str) -> None:
        """A node with all its processes."""
        self._control(NodesFailed(((node, 1),)))
        self._gone()

    def begin_anew(self) -> None:
        """A node is restarted, and goes on from a checkpoint of the stream."""
        copy = ProcessGroup({})
        copy.restore(self.group.snapshot())
        self.copy = copy

    def _control(self, control: AnyControl) -> None:
        self.seq += 1
        for group in (self.group, self.copy):
            group.control(self.seq, control)

    def _entry(self, node: str, body: bytes) -> None:
        self.seq += 1
        before = set(self.group.providers)
        notices = self.group.apply(self.seq, (node, 1), body)
        self.copy.apply(self.seq, (node, 1), body)
        for one in notices:
            if isinstance(one, MessageNotice):
                self.truth.apply(_message(one.seq, one.sender, one.payload))
                for process in before & self.present.keys():
                    self.present[process].inbox.append((one.seq, one.sender, one.payload))
        self._gone()

    def _gone(self) -> None:
        if self.group.has_ended:
            self.truth = Rows()  # with the last one that left, and was not cut off, the table ended
        for process in [one for one in self.present if one not in self.group.providers]:
            del self.present[process]

    @property
    def _archive(self) -> Archive:
        assert self.group.archive is not None
        return self.group.archive

    def _newcomer(self, process: ProviderId) -> Member:
        archive = self._archive
        member = Member(process)
        member.table.restore(archive.blocks)
        member.inbox.extend(archive.since(archive.at))
        member.applied = archive.at
        return member

    # --- What must hold ---

    def check(self) -> None:
        """All who are in have the same table, or will when they have applied what waits; so has who would come now."""
        newcomer = [self._newcomer(("Z", 1, 1))] if self._archive.is_whole else []
        expected = list(self.truth.snapshot())
        for member in [*self.present.values(), *newcomer]:
            behind = Rows()
            behind.restore(list(member.table.snapshot()))
            for kept in member.inbox:
                behind.apply(_message(*kept))
            assert expected == list(behind.snapshot()), member.process
        assert self.group.snapshot() == self.copy.snapshot()


STEPS = st.builds(
    Step,
    what=st.sampled_from(
        6 * ("write",) + 4 * ("apply",) + 4 * ("checkpoint",) + 2 * ("join",) + ("block", "die", "fail", "begin anew")
    ),
    who=st.integers(0, 9),
    node=st.sampled_from(NODES),
    kind=st.sampled_from(("put", "put", "delete", "cas")),
    key=KEYS,
    value=VALUES,
    expected=VALUES,
    count=st.integers(1, 3),
    left_out=st.sampled_from((0, 0, 1, 2)),
)


@given(st.lists(STEPS, min_size=20, max_size=80))
@settings(max_examples=200, deadline=None)
def test_whatever_happens_all_have_the_same_table_and_so_has_who_comes(steps: list[Step]) -> None:
    """SAM-07, SAM-08."""
    tables = AnyTables()
    for step in steps:
        tables.do(step)
