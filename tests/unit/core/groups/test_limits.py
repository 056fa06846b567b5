"""What a group keeps has an end: outcomes, and proposals that wait; and messages cost little."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from groupsvc.wire.limits import OUTCOMES_KEPT
from groupsvc.wire.notices import Ended, Message, Refused
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups import line as line_module
from groupsvcd.core.groups import process_group
from groupsvcd.core.groups.ledger import OUTCOMES_BYTES_MAX
from groupsvcd.core.groups.line import Line
from groupsvcd.core.groups.papers import Paper
from groupsvcd.core.groups.process_group import QUEUE_BYTES_MAX, ProcessGroup
from groupsvcd.core.groups.stretches import is_plain, stretches
from groupsvcd.core.stream.entries import Entries, Entry, Run, runs_of

from .assembly import Assembly, process

MIB = 1024 * 1024


def test_the_newest_outcomes_are_kept_and_are_part_of_the_group() -> None:
    """A copy that was restored has the same, and the same bytes."""
    group = Assembly()
    group.join("A1")
    for number in range(OUTCOMES_KEPT + 20):
        group.propose_state("A1", b"%d" % number)
    kept = group.group.ledger.outcomes
    assert OUTCOMES_KEPT == len(kept)
    assert [ended.outcome for ended in group.told(Ended)][-OUTCOMES_KEPT:] == [outcome for _, outcome in kept]
    copy = ProcessGroup({})
    copy.restore(group.group.snapshot())
    assert kept == copy.ledger.outcomes
    assert group.group.snapshot() == copy.snapshot()


def test_of_a_large_outcome_the_votes_are_kept_and_not_what_was_proposed() -> None:
    group = Assembly(state_phases="n")
    group.join("A1")
    group.propose_state("A1", b"x" * MIB)
    group.answer(A1=Paper(1, "approve", message=b"y" * MIB))
    (_, kept) = group.group.ledger.outcomes[-1]
    assert (None, (), True) == (kept.subject.state, kept.messages, kept.approved)
    assert [process("A1")] == [cast.provider for cast in kept.votes]
    assert len(group.group.snapshot()) < MIB + OUTCOMES_BYTES_MAX


def test_who_is_being_voted_on_counts_among_those_who_may_be_in_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """X1: every ballot names all providers, and all who want to be."""
    monkeypatch.setattr(process_group, "PROVIDERS_MAX", 3)
    group = Assembly(join_phases="n")
    group.join("A1", "B1", "C1", "D1")
    assert ["full"] == [refused.why for refused in group.told(Refused)]
    group.vote(A1="approve")
    group.vote(A1="approve", B1="approve")
    assert "A1 B1 C1" == group.names


def test_proposals_that_wait_are_bounded_in_bytes() -> None:
    """What is over it is refused as full; everybody agrees on which."""
    group = Assembly(state_phases="n")
    group.join("A1")
    for _ in range(QUEUE_BYTES_MAX // (4 * MIB) + 2):  # the first has its turn at once
        group.propose_state("A1", b"x" * (4 * MIB))
    assert ["full"] == [refused.why for refused in group.told(Refused)]
    group.vote(A1="approve")
    group.propose_state("A1", b"x" * (4 * MIB))
    assert 1 == len(group.told(Refused))


def test_messages_heard_in_a_row_are_the_same_as_one_by_one() -> None:
    """And who has no say is not heard either way."""
    for name in ("A1", "B1"):
        one_by_one, in_a_row = Assembly(), Assembly()
        for group in (one_by_one, in_a_row):
            group.join("A1")
        body = cmd.message_prefix(1) + b"hello"
        for seq in range(2, 7):
            one_by_one.notices += one_by_one.group.apply(seq, (name[0], 1), body)
        heard = in_a_row.group.hear(2, 5, process(name))
        assert (5 if heard else 0) == len(one_by_one.told(Message))
        assert one_by_one.group.snapshot() == in_a_row.group.snapshot()


@pytest.mark.parametrize(
    "bodies, expected",
    [
        ([b"\0\0\0\0\1x"], [1]),
        ([b"\0\0\0\0\1x"] * 4, [4]),
        ([b"\0\0\0\0\1x", b"\0\0\0\0\1y", b"\0\0\0\0\2y"], [2, 1]),
        ([b"\0\0\0\0\1x", b"\x94y", b"\x94y", b"\0\0\0\0\1x"], [1, 1, 1, 1]),
        ([b"\x94abcdef"] * 2, [1, 1]),
        ([b"", b"", b"\0\0\0\0", b"\0\0\0\0"], [1, 1, 1, 1]),
    ],
)
def test_messages_of_one_sender_in_a_row_are_dealt_with_at_once_and_the_rest_one_by_one(
    bodies: Sequence[bytes], expected: list[int]
) -> None:
    found = list(stretches(bodies))
    assert expected == [len(some) for some in found]
    assert list(bodies) == [body for some in found for body in some]


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\0\0\0", b"\x94abcdef"])
def test_what_is_no_whole_message_is_not_plain(body: bytes) -> None:
    assert not is_plain(body)


def test_entries_can_be_had_in_runs_and_one_by_one() -> None:
    runs = [Run("A", 1, 7, (b"x", b"y")), Run("", 0, 0, (b"z",))]
    one_by_one = [Entry("A", 1, 7, b"x"), Entry("A", 1, 8, b"y"), Entry("", 0, 0, b"z")]
    entries = Entries(runs)
    assert 3 == len(entries)
    assert one_by_one == list(entries)
    assert one_by_one[1:] == entries[1:]
    assert one_by_one[2] == entries[2]
    assert runs == runs_of(entries)
    assert [1, 1, 1] == [len(run.bodies) for run in runs_of(one_by_one)]


# --- The line ---


class Stream:
    """Takes entries while it has room."""

    def __init__(self) -> None:
        self.room = 0
        self.taken: list[bytes] = []

    def submit(self, bodies: Sequence[bytes]) -> int:
        """The number of the first, 0 if there is no room for all."""
        if len(bodies) > self.room:
            return 0
        self.room -= len(bodies)
        self.taken += bodies
        return len(self.taken) - len(bodies) + 1


def test_what_finds_no_room_goes_out_later_in_order() -> None:
    stream = Stream()
    line = Line(stream.submit)
    numbers: list[int] = []
    line.is_open = True
    line.put([b"1", b"2"], submitted=numbers.append)
    stream.room = 1
    line.put([b"3"])  # there is room for it, but not before the others
    assert ([], 2) == (stream.taken, len(line))
    stream.room = 3
    line.move()
    assert [b"1", b"2", b"3"] == stream.taken
    assert [2] == numbers


def test_a_proposal_that_still_waits_can_be_taken_out() -> None:
    stream = Stream()
    line = Line(stream.submit)
    line.put([b"1"], proposal=7)
    line.put([b"2"], proposal=8)
    assert line.take_out(7)
    assert not line.take_out(7)
    line.is_open, stream.room = True, 10
    line.move()
    assert [b"2"] == stream.taken
    assert not line.take_out(8)


def test_a_line_is_full_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "COMMANDS_MAX", 3)
    monkeypatch.setattr(line_module, "WAITING_BYTES_MAX", 100)
    many, much = Line(lambda bodies: 0), Line(lambda bodies: 0)
    for _ in range(3):
        assert not many.is_full
        many.put([b""])
    assert many.is_full
    much.put([b"x" * 100], proposal=1)
    assert much.is_full
    much.take_out(1)
    assert not much.is_full
