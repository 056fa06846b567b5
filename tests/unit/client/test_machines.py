"""A state machine of the program: each message is applied once, in order, before it is read, never two at a time."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

import groupsvc
from groupsvc import aio, events
from groupsvc.errors import Lost, OutcomeUnknown, UsageError
from groupsvc.machines import CHECKPOINT, NOW, Homes, homes
from groupsvc.positions import NOT_KNOWN, Numbering
from groupsvc.sansio import applying, asking
from groupsvc.sansio.applying import MachineDue
from groupsvc.sansio.membership_machine import Membership
from groupsvc.sansio.session_machine import VoteDue
from groupsvc.voting_words import Cause, Vote
from groupsvc.wire import client_messages as wire
from groupsvc.wire import notices
from tests.unit.client.daemon_in_memory import NODE, DaemonInMemory, Line
from tests.unit.client.daemon_on_a_socket import DaemonOnASocket, daemon_on_a_socket
from tests.unit.client.scenes import begin, done, kinds
from tests.unit.client.scenes import events as taken

OTHER = ("n2", 3, 1)
HERE: Numbering = (77, 0)


class Journal:
    """A machine that remembers everything."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.threads: set[int] = set()
        self.fails_on = b""
        self.is_broken = False
        self.blocks: Iterable[bytes] | None = None

    def apply(self, entry: groupsvc.Message) -> None:
        if entry.payload == self.fails_on:
            raise ValueError("cannot apply this")
        self.threads.add(threading.get_ident())
        self.said.append(entry.payload)

    def snapshot(self) -> Iterable[bytes]:
        return list(self.said) if self.blocks is None else self.blocks

    def restore(self, blocks: Sequence[bytes]) -> None:
        if self.is_broken:
            raise ValueError("cannot become this")
        self.said = list(blocks)


def run(line: Line) -> list[str]:
    """What is due is done, as a driver does it; the kinds of it in order."""
    found: list[str] = []
    while line.machine.due:
        due = line.machine.due.popleft()
        found.append(type(due).__name__)
        if isinstance(due, MachineDue):
            try:
                due.run()
            finally:
                due.settle()
    line.run()
    return found


def joined(line: Line, machine: Journal, **arguments: Any) -> Membership:
    membership = done(line, starting(line, machine, **arguments))
    assert isinstance(membership, Membership)
    return membership


def starting(line: Line, machine: object, **arguments: Any) -> asking.Start:
    given = {"name": "a", "attributes": None, "create": None, "data": b"", "on_proposal": None, "events": True}
    return asking.join(line.machine, "db", **{**given, **arguments}, machine_of=machine)


def messages(*payloads: bytes, seq: int) -> wire.MessagesCame:
    return wire.MessagesCame(1, seq, OTHER, payloads)


class TestTheLine:
    """Between what is told and what is read."""

    def test_a_message_is_applied_before_it_is_shown(self, line: Line) -> None:
        machine = Journal()
        membership = joined(line, machine)
        run(line)
        taken(membership)
        line.tell(messages(b"one", b"two", seq=5))
        assert [] == kinds(membership)
        run(line)
        assert [b"one", b"two"] == machine.said
        assert ["Message", "Message"] == kinds(membership)

    def test_everything_keeps_its_order_also_what_is_no_message(self, line: Line) -> None:
        membership = joined(line, Journal())
        run(line)
        taken(membership)
        line.tell(messages(b"one", seq=5))
        line.tell(wire.Told(1, notices.StateChanged(6, b"red", 1)))
        line.tell(messages(b"two", seq=7))
        assert ["MachineDue"] == run(line)
        assert ["Message", "StateChanged", "Message"] == kinds(membership)

    def test_a_vote_is_asked_for_when_what_came_before_it_is_applied(self, line: Line) -> None:
        joined(line, Journal(), on_proposal=lambda proposal: Vote.APPROVE)
        run(line)
        line.tell(messages(b"one", seq=5))
        line.tell(line.daemon.opened(1))
        line.tell(messages(b"two", seq=7))
        found = [type(due).__name__ for due in line.machine.due]
        assert ["MachineDue", "VoteDue", "MachineDue"] == found
        assert isinstance(line.machine.due[1], VoteDue)

    def test_what_a_provider_begins_with_is_restored_and_applied_and_its_first_event_is_its_own(self) -> None:
        """SAM-08."""
        daemon = DaemonInMemory()
        line = Line(_machine(), daemon)
        line.connect()
        daemon.script = lambda ask: _begins_with(daemon, ask, (b"a", b"b"), (b"one", b"two"))
        machine = Journal()
        machine.said = [b"of another life"]
        membership = joined(line, machine)
        assert (False, []) == (membership.is_caught_up, kinds(membership))
        run(line)
        assert (True, [b"a", b"b", b"one", b"two"]) == (membership.is_caught_up, machine.said)
        assert "Joined" == kinds(membership)[0]
        assert 101 == membership.view.seq

    def test_a_message_that_follows_from_the_same_entry_as_its_own_joined_is_shown(self) -> None:
        """G1: a message by ballot had its turn right after the join; whoever was in before reads it, too."""
        daemon = DaemonInMemory()
        line = Line(_machine(), daemon)
        line.connect()

        def script(ask: Any) -> Any:
            replies = _begins_with(daemon, ask, (b"a",), (b"one",))
            if replies is None:
                return None
            last = replies[-1]
            assert isinstance(last, wire.Told)
            return [*replies, wire.Told(last.member, notices.Message(last.notice.seq, OTHER, b"two"))]

        daemon.script = script
        machine = Journal()
        membership = joined(line, machine)
        run(line)
        assert [b"a", b"one", b"two"] == machine.said
        assert ["Joined", "Message"] == kinds(membership)

    def test_blocks_that_are_missing_are_not_restored(self, line: Line) -> None:
        joined(line, Journal())
        line.tell(wire.CheckpointBlock(1, 0, b"a"))
        with pytest.raises(groupsvc.PeerProtocolError, match="1 blocks of a checkpoint that has 2"):
            line.tell(wire.CheckpointTold(1, 7, 2))

    def test_an_error_in_apply_loses_the_group_and_nothing_behind_it_is_applied(self, line: Line) -> None:
        """It must not go on with a state that the others do not have."""
        machine = Journal()
        membership = joined(line, machine)
        run(line)
        taken(membership)
        machine.fails_on = b"two"
        line.tell(messages(b"one", seq=5))
        line.tell(wire.Told(1, notices.StateChanged(6, b"red", 1)))
        line.tell(messages(b"two", b"three", seq=7))
        line.tell(messages(b"four", seq=9))
        run(line)
        assert [b"one"] == machine.said
        *before, lost = taken(membership)
        assert ["Message", "StateChanged"] == [type(event).__name__ for event in before]
        assert isinstance(lost, Lost)
        assert "cannot apply this" in lost.reason
        assert membership.nothing_more
        assert isinstance(line.daemon.requests[-1], wire.GoodbyeAsk)
        line.tell(messages(b"five", seq=10))
        assert ([], [b"one"]) == (run(line), machine.said)
        assert 0 == line.machine.unapplied

    def test_what_is_the_last_is_shown_when_the_rest_is_applied(self, line: Line) -> None:
        machine = Journal()
        membership = joined(line, machine)
        run(line)
        taken(membership)
        line.tell(messages(b"one", seq=5))
        line.tell(wire.Told(1, notices.Left(6, ((*NODE, 1),), "expelled", 102)))
        assert (True, False) == (membership.has_ended, membership.nothing_more)
        run(line)
        message, left = taken(membership)
        assert isinstance(message, events.Message)
        assert isinstance(left, events.Left)
        assert (Cause.EXPELLED, [b"one"], True) == (left.cause, machine.said, membership.nothing_more)

    def test_too_many_before_a_slow_machine_make_it_leave(self, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(applying, "EVENTS_MAX", 3)
        machine = Journal()
        joined(line, machine)
        run(line)
        line.tell(messages(b"1", b"2", seq=5))
        line.tell(messages(b"3", b"4", seq=7))
        line.tell(messages(b"5", seq=9))
        assert 1 == len([one for one in line.daemon.requests if isinstance(one, wire.Overrun)])
        run(line)
        assert [] == machine.said  # it leaves: nobody looks at it any more


class TestCheckpoints:
    """What a provider is asked for when messages have gathered."""

    def test_a_snapshot_is_of_the_state_after_the_message_that_called_for_it(self, line: Line) -> None:
        machine = Journal()
        joined(line, machine)
        run(line)
        line.tell(messages(b"one", b"two", seq=5))
        line.tell(wire.SnapshotWanted(1, 6))
        line.tell(messages(b"three", seq=7))
        run(line)
        blocks = [(one.at, one.index, one.block) for one in line.daemon.requests if isinstance(one, wire.StoreBlock)]
        seals = [(one.at, one.blocks) for one in line.daemon.requests if isinstance(one, wire.SealCheckpoint)]
        assert ([(6, 0, b"one"), (6, 1, b"two")], [(6, 2)]) == (blocks, seals)

    @pytest.mark.parametrize("blocks", [["text"], [b"x" * (1 << 20), b"y" * ((1 << 20) + 1)], [b"x" * (1 << 20)] * 17])
    def test_a_snapshot_that_cannot_be_sent_is_not_and_the_provider_goes_on(self, line: Line, blocks: Any) -> None:
        machine = Journal()
        membership = joined(line, machine)
        machine.blocks = blocks
        line.tell(wire.SnapshotWanted(1, 6))
        run(line)
        assert not any(isinstance(one, wire.StoreBlock | wire.SealCheckpoint) for one in line.daemon.requests)
        line.tell(messages(b"one", seq=7))
        run(line)
        assert ([b"one"], False) == (machine.said, membership.has_ended)

    def test_an_error_in_snapshot_is_shown_as_that_of_any_callback(self, reported: list[BaseException | None]) -> None:
        """Nothing else would tell that this program never takes a checkpoint."""
        machine = Journal()
        machine.blocks = ["text"]  # type: ignore[list-item]
        with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
            group = session.join("db", machine=machine)
            daemon.tell(wire.SnapshotWanted(1, 6))
            group.multicast(b"behind it")
            group.flush()
            assert not group.ended
        assert ["snapshot() gave a str; its blocks must be bytes"] == [str(error) for error in reported]

    def test_in_asyncio_the_loop_shows_it(self) -> None:
        async def scene(daemon: DaemonOnASocket) -> list[str]:
            shown: list[str] = []
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: shown.append(context["message"]))
            machine = Journal()
            machine.blocks = ["text"]  # type: ignore[list-item]
            async with aio.connect(daemon.address) as session:
                group = await session.join("db", machine=machine)
                daemon.tell(wire.SnapshotWanted(1, 6))
                await group.multicast(b"behind it")
                await group.flush()
            return shown

        with daemon_on_a_socket() as daemon:
            shown = asyncio.run(scene(daemon))
        assert ["groupsvc: no checkpoint was taken: snapshot() raised an error"] == shown


class TestJoining:
    """What is said to the daemon, and what is not."""

    def test_who_brings_a_machine_begins_with_the_newest_checkpoint(self, line: Line) -> None:
        for arguments, expected in (({}, -2), ({"since": CHECKPOINT}, -2), ({"since": 7}, 7)):
            begin(line, starting(line, Journal(), name=str(arguments), **arguments))
            line.run()
            ask = line.daemon.requests[-1]
            assert isinstance(ask, wire.JoinAsk)
            assert (True, expected) == (ask.has_machine, ask.since)

    def test_who_goes_on_after_a_number_says_of_which_group_it_is(self, line: Line) -> None:
        """Groups of one name that follow each other count anew; the program has only the number."""
        machine = Journal()
        membership = _enters(line, machine, numbering=HERE)
        assert NOT_KNOWN == _says_of(line, machine, since=50)  # it has not become what it was told
        run(line)
        assert HERE == _says_of(line, machine, since=50)
        assert NOT_KNOWN == _says_of(line, machine, since=CHECKPOINT)
        assert NOT_KNOWN == _says_of(line, Journal(), since=50)  # it may have been read from a file
        assert membership.is_caught_up

    def test_a_machine_that_could_not_be_restored_is_of_no_group(self, line: Line) -> None:
        machine = Journal()
        _enters(line, machine, numbering=HERE)
        run(line)
        homes._parts.clear()
        _enters(line, machine, name="again", numbering=(78, 0))
        assert HERE == _says_of(line, machine, since=50)
        machine.is_broken = True
        run(line)
        assert NOT_KNOWN == _says_of(line, machine, since=50)

    def test_who_goes_on_with_the_state_that_it_has_stays_of_its_group(self, line: Line) -> None:
        machine = Journal()
        _enters(line, machine, numbering=HERE, blocks=None, since=50)
        assert HERE == _says_of(line, machine, since=60)

    def test_a_machine_that_is_no_more_is_not_remembered(self, line: Line) -> None:
        homes, machine = Homes(), Journal()
        homes.enter(machine, HERE)
        assert HERE == homes.of(machine)
        del machine
        gc.collect()
        assert {} == homes._homes

    def test_who_brings_none_begins_now_unless_it_says_otherwise(self, line: Line) -> None:
        for arguments, expected in (({}, -1), ({"since": NOW}, -1), ({"since": CHECKPOINT}, -2), ({"since": 0}, 0)):
            begin(line, starting(line, None, name=str(arguments), **arguments))
            line.run()
            ask = line.daemon.requests[-1]
            assert isinstance(ask, wire.JoinAsk)
            assert (False, expected) == (ask.has_machine, ask.since)

    def test_who_wants_what_came_before_reads_it_whether_events_are_asked_for_or_not(self) -> None:
        daemon = DaemonInMemory()
        line = Line(_machine(), daemon)
        line.connect()
        daemon.script = lambda ask: _begins_with(daemon, ask, None, (b"one", b"two"))
        membership = done(line, starting(line, None, since=0, events=False))
        assert ["Message", "Message", "Joined"] == kinds(membership)[:3]
        assert membership.is_caught_up

    @pytest.mark.parametrize(
        "machine, arguments",
        [
            (Journal(), {"since": NOW}),
            (object(), {}),
            (Journal, {}),
            (None, {"since": -5}),
            (None, {"since": "yesterday"}),
            (None, {"attributes": groupsvc.GroupAttributes(state_machine=True)}),
        ],
    )
    def test_what_makes_no_sense_is_refused_at_once(self, line: Line, machine: object, arguments: Any) -> None:
        with pytest.raises(UsageError):
            starting(line, machine, **arguments)


# --- Drivers -------------------------------------------------------------------------------------------------


def _machine() -> Any:
    from tests.unit.client.scenes import new_machine

    return new_machine()


def _enters(
    line: Line,
    machine: Journal,
    *,
    numbering: Numbering,
    blocks: tuple[bytes, ...] | None = (b"state",),
    **arguments: Any,
) -> Membership:
    """It joins a group with these numbers, and has what came before still before it."""

    def answer(ask: wire.AnyClientRequest) -> list[wire.AnyClientReply] | None:
        found = _begins_with(line.daemon, ask, blocks, (b"one",))
        return None if found is None else [replace(found[0], numbering=numbering), *found[1:]]

    line.daemon.script = answer
    return joined(line, machine, **arguments)


def _says_of(line: Line, machine: Journal, since: Any) -> Numbering:
    """Of which group a machine says it is when it wants to join, as if it were free; nobody answers."""
    line.daemon.script = lambda ask: []
    homes._parts.pop(id(machine), None)
    begin(line, starting(line, machine, name="another", since=since))
    line.run()
    ask = line.daemon.requests[-1]
    assert isinstance(ask, wire.JoinAsk)
    return ask.since_in


def _begins_with(
    daemon: DaemonInMemory, ask: wire.AnyClientRequest, blocks: tuple[bytes, ...] | None, payloads: tuple[bytes, ...]
) -> list[wire.AnyClientReply] | None:
    """A group that had a life before the join."""
    if not isinstance(ask, wire.JoinAsk):
        return None
    daemon.groups.setdefault(ask.group, daemon.groups.get(ask.group) or _group(100))
    answer, told, *_ = daemon.answers(ask)
    assert isinstance(answer, wire.JoinedAs)
    member = answer.member
    before: list[wire.AnyClientReply] = []
    if blocks is not None:
        before += [wire.CheckpointBlock(member, index, block) for index, block in enumerate(blocks)]
        before.append(wire.CheckpointTold(member, 50, len(blocks)))
    return [answer, *before, wire.MessagesCame(member, 60, OTHER, payloads), told]


def _group(seq: int) -> Any:
    from tests.unit.client.daemon_in_memory import FakeGroup

    group = FakeGroup()
    group.seq = seq
    return group


def _daemon_with_a_past(blocks: tuple[bytes, ...], payloads: tuple[bytes, ...]) -> Any:
    context = daemon_on_a_socket()

    class WithAPast:
        def __enter__(self) -> DaemonOnASocket:
            daemon = context.__enter__()
            daemon.memory.script = lambda ask: _begins_with(daemon.memory, ask, blocks, payloads)
            return daemon

        def __exit__(self, *error: object) -> None:
            context.__exit__(*error)  # type: ignore[arg-type]

    return WithAPast()


def test_join_returns_when_the_machine_has_caught_up_and_sync_when_it_has_applied_everything() -> None:
    machine = Journal()
    with _daemon_with_a_past((b"a",), (b"b", b"c")) as daemon, groupsvc.connect(daemon.address) as session:
        group = session.join("db", machine=machine)
        assert [b"a", b"b", b"c"] == machine.said
        group.multicast(b"d")
        group.flush()
        assert b"d" == machine.said[-1]
        daemon.tell(*(wire.MessagesCame(1, 200 + number, OTHER, (b"%d" % number,)) for number in range(100)))
        group.sync()
        assert b"99" == machine.said[-1]
        assert 1 == len(machine.threads)
        assert threading.get_ident() not in machine.threads


def test_a_machine_that_cannot_take_in_what_came_before_ends_the_join_and_nobody_says_that_it_never_was() -> None:
    """K1: the others saw it come, and go."""
    machine = Journal()
    machine.fails_on = b"c"
    with _daemon_with_a_past((b"a",), (b"b", b"c")) as daemon, groupsvc.connect(daemon.address) as session:
        with pytest.raises(OutcomeUnknown, match="cannot apply this"):
            session.join("db", machine=machine)
        daemon.wait_for(wire.GoodbyeAsk)
        with pytest.raises(UsageError, match="object of it"):
            session.join("db", name="b", machine=Journal)  # type: ignore[arg-type]


def test_a_machine_that_is_too_slow_is_withdrawn_and_nobody_says_that_it_never_was() -> None:
    """K1: the same."""

    class Stuck(Journal):
        def __init__(self) -> None:
            super().__init__()
            self.go_on = threading.Event()

        def restore(self, blocks: Sequence[bytes]) -> None:
            self.go_on.wait(20.0)

    machine = Stuck()
    with _daemon_with_a_past((b"a",), (b"b",)) as daemon, groupsvc.connect(daemon.address) as session:
        with pytest.raises(OutcomeUnknown, match="left again"):
            session.join("db", machine=machine, timeout=0.2)
        daemon.wait_for(wire.GoodbyeAsk)
        machine.go_on.set()


def test_a_flush_whose_messages_came_and_wait_for_a_slow_machine_has_not_failed() -> None:
    """``TimedOut`` would say that they certainly were not delivered, and a program would send them again."""

    class Slow(Journal):
        go_on = threading.Event()

        def apply(self, entry: groupsvc.Message) -> None:
            assert self.go_on.wait(20.0)
            super().apply(entry)

    machine = Slow()
    with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
        group = session.join("db", machine=machine)
        group.multicast(b"x")
        try:
            with pytest.raises(groupsvc.OutcomeUnknown, match="were delivered"):
                group.flush(timeout=0.1)
            with pytest.raises(groupsvc.TimedOut, match="sync again"):
                group.sync(timeout=0.1)
        finally:
            machine.go_on.set()
        group.flush()


def test_whoever_waits_for_the_machine_inside_of_it_is_told_so() -> None:
    found: list[BaseException] = []

    class Impatient(Journal):
        group: groupsvc.Group

        def apply(self, entry: groupsvc.Message) -> None:
            for call in (self.group.sync, self.group.flush, self.group.next_event):
                try:
                    call()
                except UsageError as error:
                    found.append(error)
            self.group.multicast_nowait(b"this is allowed") if entry.payload == b"go" else None
            super().apply(entry)

    machine = Impatient()
    with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
        machine.group = session.join("db", machine=machine)
        machine.group.multicast(b"go")
        machine.group.wait_for(lambda: len(machine.said) == 2)
        assert [b"go", b"this is allowed"] == machine.said
        assert 6 == len(found)


def test_a_reader_sees_nothing_that_is_not_applied_and_misses_nothing() -> None:
    machine = Journal()
    with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
        group = session.join("db", machine=machine, events=True)
        for number in range(500):
            group.multicast(b"%d" % number)
        read: list[bytes] = []
        for event in group.events(timeout=10.0):
            if isinstance(event, groupsvc.Message):
                read.append(event.payload)
                assert event.payload in machine.said[len(read) - 1 :]
            if len(read) == 500:
                break
        assert read == machine.said


def test_in_asyncio_it_is_the_same() -> None:
    machine = Journal()

    async def scene(address: str, daemon: DaemonOnASocket) -> None:
        async with aio.connect(address) as session, session.join("db", machine=machine, events=True) as group:
            assert [b"a", b"b", b"c"] == machine.said
            await group.multicast(b"d")
            await group.flush()
            assert b"d" == machine.said[-1]
            await group.sync()
            assert {threading.get_ident()} == machine.threads
            machine.fails_on = b"e"
            await group.multicast(b"e")
            seen = [event async for event in group.events(timeout=5.0)]
            assert isinstance(seen[-1], Lost)
            assert "cannot apply this" in seen[-1].reason
        async with aio.connect(address) as session:
            machine.fails_on = b"b"
            with pytest.raises(OutcomeUnknown, match="cannot apply this"):
                await session.join("db", machine=machine)

    with _daemon_with_a_past((b"a",), (b"b", b"c")) as daemon:
        asyncio.run(scene(daemon.address, daemon))
