"""A provider that brings a state machine, or wants what came before it: told by its own node, before its own Joined."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import (
    SINCE_CHECKPOINT,
    CatchUpAsk,
    CaughtUp,
    CheckpointBlock,
    CheckpointTold,
    JoinedAs,
    MemberLost,
    MessagesCame,
    Problem,
    SealCheckpoint,
    SnapshotWanted,
    StoreBlock,
    Subscribed,
    Told,
)
from groupsvc.wire.notices import Joined, Left
from groupsvcd.core.sessions import tellings

from .applications import Application, Applications


def _checkpoint(application: Application, at: int, *blocks: bytes) -> None:
    for index, block in enumerate(blocks):
        application.ask(StoreBlock, application.member, at, index, block)
    application.ask(SealCheckpoint, application.member, at, len(blocks))


def _began_with(application: Application) -> tuple[list[bytes], list[bytes]]:
    """Blocks and messages between the answer to the newest join and the first Joined after it."""
    told = application.told
    start = max(position for position, one in enumerate(told) if isinstance(one, JoinedAs))
    blocks: list[bytes] = []
    payloads: list[bytes] = []
    for one in told[start + 1 :]:
        if isinstance(one, CheckpointBlock):
            blocks.append(one.block)
        elif isinstance(one, MessagesCame):
            payloads += one.payloads
        elif isinstance(one, Told) and isinstance(one.notice, Joined):
            return blocks, payloads
    raise AssertionError("its own Joined was not told")


def test_who_joins_is_told_checkpoint_and_tail_before_its_own_joined() -> None:
    """SAM-08: by its own node; nobody else is asked."""
    domain = Applications()
    a, late = domain.opened("D"), domain.opened("F")
    a.join(has_machine=True, checkpoint_every=100)
    a.multicast(b"one", b"two")
    domain.run(0.1)
    at = a.kinds(MessagesCame)[-1].seq + 1
    a.multicast(b"three")
    _checkpoint(a, at, b"first", b"second")
    domain.run(0.1)
    number = late.join(has_machine=True)
    assert isinstance(late.answer(number), JoinedAs)
    assert ([b"first", b"second"], [b"three"]) == _began_with(late)
    (told,) = late.kinds(CheckpointTold)
    assert (at, 2) == (told.at, told.blocks)
    a.multicast(b"four")
    domain.run(0.1)
    assert b"four" == late.payloads[-1]


def test_without_a_checkpoint_yet_a_machine_begins_empty_and_is_told_so() -> None:
    domain = Applications()
    a, late = domain.opened("D"), domain.opened("F")
    a.join(has_machine=True)
    assert [(0, 0)] == [(told.at, told.blocks) for told in a.kinds(CheckpointTold)]
    a.multicast(b"one")
    domain.run(0.1)
    late.join(has_machine=True)
    assert ([], [b"one"]) == _began_with(late)


def test_all_providers_bring_machines_or_none_does() -> None:
    """GS-22: the answer names the attribute."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("F")
    a.join("with", has_machine=True)
    a.join("without")
    for group, machine in (("with", False), ("without", True)):
        for application in (a, b):
            number = application.join(group, name="second", has_machine=machine)
            problem = application.answer(number)
            assert isinstance(problem, Problem)
            assert ("failed", "attributes mismatch") == (problem.family, problem.code)
            assert "state_machine" in problem.text
    domain.run(3.0)
    assert ["leader", "none"] == domain.roles("DF", "with")


def test_a_checkpoint_is_asked_for_behind_the_message_that_called_for_it() -> None:
    """SAM-07: of the oldest provider; half a tail later of the next one, if nothing came of it."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(has_machine=True, checkpoint_every=10)
    b.join(has_machine=True)
    for number in range(12):
        b.multicast(b"%d" % number)
        domain.run(0.02)
    (wanted,) = a.kinds(SnapshotWanted)
    position = a.told.index(wanted)
    before = [one for one in a.told[:position] if isinstance(one, MessagesCame)]
    assert (10, wanted.seq) == (len(before), before[-1].seq)
    assert [] == b.kinds(SnapshotWanted)
    for number in range(4):
        a.multicast(b"%d" % number)
        domain.run(0.02)
    assert 1 == len(b.kinds(SnapshotWanted))
    _checkpoint(b, b.kinds(SnapshotWanted)[0].seq, b"state")
    domain.run(0.1)
    for number in range(10):
        a.multicast(b"%d" % number)
        domain.run(0.02)
    assert 2 == len(a.kinds(SnapshotWanted))


def test_a_scribe_that_dies_half_way_leaves_the_older_checkpoint_and_the_whole_tail() -> None:
    domain = Applications()
    a, b, late = domain.opened("D"), domain.opened("E"), domain.opened("F")
    a.join(has_machine=True, checkpoint_every=4)
    b.join(has_machine=True)
    messages = [b"%d" % number for number in range(5)]
    for message in messages:
        b.multicast(message)
        domain.run(0.02)
    (wanted,) = a.kinds(SnapshotWanted)
    a.ask(StoreBlock, a.member, wanted.seq, 0, b"half")
    domain.die("D")
    domain.run(4.0)
    late.join(has_machine=True)
    assert ([], messages) == _began_with(late)
    for number in range(5, 8):
        b.multicast(b"%d" % number)
        domain.run(0.02)
    assert 1 <= len(b.kinds(SnapshotWanted))


def test_a_durable_group_has_checkpoint_and_tail_after_all_nodes_were_restarted() -> None:
    """GS-31, SAM-08: the disks have it; nobody needs to have been a member before."""
    domain = Applications()
    a = domain.opened("A")
    a.join(has_machine=True, durable=True)
    a.multicast(b"one", b"two")
    domain.run(0.2)
    _checkpoint(a, a.kinds(MessagesCame)[-1].seq + 1, b"state")
    a.multicast(b"three")
    domain.run(0.5)
    domain.kill(*domain.names)
    domain.boot(*domain.names)
    domain.run(6.0)
    late = domain.opened("B")
    late.join(has_machine=True, create=False, timeout=20.0, wait=6.0)
    assert ([b"state"], [b"three"]) == _began_with(late)


def test_a_machine_does_not_go_on_in_the_next_group_of_the_same_name() -> None:
    """Each group counts its entries from the beginning: a number of the one before means something else there."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(has_machine=True)
    a.multicast(b"one")
    domain.run(0.2)
    first, stands_after = a.kinds(JoinedAs)[-1].numbering, a.kinds(MessagesCame)[-1].seq
    a.end()
    domain.run(2.0)
    b.join(has_machine=True)
    b.multicast(b"two", b"three", b"four")
    domain.run(0.2)
    second = b.kinds(JoinedAs)[-1].numbering
    assert first[0] != second[0]
    again = domain.opened("D")
    problem = again.answer(again.join(has_machine=True, since=stands_after, since_in=first))
    assert isinstance(problem, Problem)
    assert ("failed", "not kept", True) == (problem.family, problem.code, "may be another one" in problem.text)
    again.join(has_machine=True, since=b.kinds(MessagesCame)[0].seq, since_in=second)
    assert ([], [b"three", b"four"]) == _began_with(again)


def test_messages_after_a_number_of_the_group_before_are_refused_and_those_of_this_one_told() -> None:
    """GS-12: who was in the group before would skip what came first in this one."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join()
    a.multicast(b"one")
    domain.run(0.2)
    first, seq = a.kinds(JoinedAs)[-1].numbering, a.kinds(MessagesCame)[-1].seq
    a.end()
    domain.run(2.0)
    b.join()
    b.multicast(b"two", b"three", b"four")
    domain.run(0.2)
    again = domain.opened("D")
    again.subscribe()
    second = b.kinds(JoinedAs)[-1].numbering
    assert [second] == [one.numbering for one in again.kinds(Subscribed)]
    problem = again.answer(again.join(since=seq, since_in=first))
    assert isinstance(problem, Problem)
    assert ("failed", "not kept", True) == (problem.family, problem.code, "may be another one" in problem.text)
    again.join(since=b.kinds(MessagesCame)[0].seq, since_in=second)
    assert [b"three", b"four"] == again.payloads


def test_a_machine_does_not_go_on_after_an_entry_that_may_have_been_lost_with_a_quorum() -> None:
    """D may have delivered more than E, the best that is left; E goes on and gives those numbers to other messages."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(has_machine=True, replicas=1)
    b.join(has_machine=True)
    a.multicast(b"one")
    domain.run(0.2)
    before, stands_after = b.kinds(JoinedAs)[-1].numbering, b.kinds(MessagesCame)[-1].seq
    late = domain.opened("F")
    late.join(has_machine=True, name="in time", since=stands_after, since_in=before)
    assert ([], []) == _began_with(late)
    domain.die("D")
    domain.run(8.0)
    b.multicast(b"two")
    domain.run(0.2)
    problem = late.answer(late.join(has_machine=True, name="too late", since=stands_after, since_in=before))
    assert isinstance(problem, Problem)
    assert ("failed", "not kept") == (problem.family, problem.code)
    late.join(has_machine=True, name="anew")
    after = late.kinds(JoinedAs)[-1].numbering
    assert (before[0], True) == (after[0], before[1] < after[1])
    assert ([], [b"one", b"two"]) == _began_with(late)


# --- Earlier messages without a machine ---


def test_messages_after_a_number_are_told_if_they_are_kept_and_else_the_oldest_number_is_named() -> None:
    """SAM-15."""
    domain = Applications()
    a, late = domain.opened("D"), domain.opened("F")
    a.join(checkpoint_every=20)
    a.multicast(b"one", b"two", b"three")
    domain.run(0.2)
    first = a.kinds(MessagesCame)[0].seq
    late.join(since=first)
    assert ([], [b"two", b"three"]) == _began_with(late)
    late.join(name="all", since=SINCE_CHECKPOINT)
    assert ([], [b"one", b"two", b"three"]) == _began_with(late)
    late.join(name="now")
    assert ([], []) == _began_with(late)
    for number in range(100):
        a.multicast(b"%d" % number)
        domain.run(0.01)
    domain.run(2.0)
    number = late.join(name="too late", since=first)
    problem = late.answer(number)
    assert isinstance(problem, Problem)
    assert ("failed", "not kept") == (problem.family, problem.code)
    oldest = int(problem.text.split("oldest number to begin after is ")[1].split(",")[0])
    late.join(name="in time", since=oldest)
    _, payloads = _began_with(late)
    assert [b"%d" % number for number in range(100)][-len(payloads) :] == payloads


def test_a_message_that_was_for_nobody_then_is_told_to_nobody_now() -> None:
    """Who had a say is judged as of the message, by going through the entries once more."""
    domain = Applications()
    a, b, late = domain.opened("D"), domain.opened("E"), domain.opened("F")
    a.join()
    b.join()
    b.multicast(b"one")
    domain.run(0.1)
    b.end()
    domain.run(0.2)
    a.multicast(b"two")
    domain.run(0.1)
    late.join(since=0)
    assert ([], [b"one", b"two"]) == _began_with(late)


@pytest.mark.parametrize("machine, since", [(True, -1), (False, -3)])
def test_a_beginning_that_makes_no_sense_is_refused(machine: bool, since: int) -> None:
    domain = Applications()
    a = domain.opened("D")
    number = a.join(has_machine=machine, since=since)
    assert ("usage", "usage") == a.problem(number)
    assert ("usage", "usage") == a.problem(a.join(state_machine=True))


# --- At its own pace ---


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules with smaller numbers, so that a test is short."""
    limits = {"WINDOW_ITEMS": 20, "WINDOW_BYTES": 100_000, "CROWDED_ITEMS": 20, "CROWDED_BYTES": 50_000}
    for name, value in limits.items():
        monkeypatch.setattr(tellings, name, value)


def test_a_long_beginning_is_told_at_the_pace_of_the_program_and_the_rest_waits_behind_it(small_windows: None) -> None:
    """More than a session may be told at once; what happens meanwhile keeps its place, and so does a sync."""
    domain = Applications()
    a, late = domain.opened("D"), domain.opened("F")
    a.count_every = late.count_every = 5
    a.join(has_machine=True)
    blocks = [b"%d" % number * 20_000 for number in range(10)]
    a.multicast(b"zero")
    domain.run(0.1)
    _checkpoint(a, a.kinds(MessagesCame)[-1].seq, *blocks)
    domain.run(0.2)
    for number in range(100):
        a.multicast(b"%d" % number)
        domain.run(0.005)
    late.is_running = False
    late.join(has_machine=True)
    assert len(late.kinds(CheckpointBlock)) < 10
    number = late.ask(CatchUpAsk, late.kinds(JoinedAs)[0].member, 20.0)
    a.multicast(b"meanwhile")
    domain.run(0.5)
    assert [] == late.answers(number)
    late.is_running = True
    late.alive()
    domain.run(10.0)
    began, payloads = _began_with(late)
    assert (blocks, [b"%d" % number for number in range(100)]) == (began, payloads)
    assert b"meanwhile" == late.payloads[-1]
    answer = late.answer(number)
    assert isinstance(answer, CaughtUp)
    assert late.told.index(answer) > max(i for i, one in enumerate(late.told) if isinstance(one, MessagesCame))


def test_who_leaves_while_it_is_told_what_came_before_is_told_no_more(small_windows: None) -> None:
    domain = Applications()
    a, late = domain.opened("D"), domain.opened("F")
    a.count_every = late.count_every = 5
    a.join(has_machine=True)
    for number in range(200):
        a.multicast(b"%d" % number)
        domain.run(0.005)
    late.is_running = False
    late.join(has_machine=True)
    late.end()
    domain.run(1.0)
    assert ["failure"] == [left.cause for left in a.notices(Left)]
    assert [] == a.kinds(MemberLost)
