"""What a node has submitted and not seen yet: a window, one order, and repetition until it is known to be stable."""

from __future__ import annotations

import math

import pytest

from groupsvcd.core.effects import SendToPeer
from groupsvcd.core.nodegroups.submitter import (
    OUTSTANDING_BYTES_MAX,
    OUTSTANDING_ENTRIES_MAX,
    REPEATS_BEFORE_RELAY,
    SUBMIT_BYTES_MAX,
    SUBMIT_ENTRIES_MAX,
    Submitter,
)
from groupsvcd.core.parameters import Timers
from groupsvcd.core.peer_messages import Submit
from groupsvcd.core.turn import Turn

INLINE_BYTES_MAX = 1_000


class Pen:
    """A submitter of node E to group 9, led by D, and what it sends."""

    def __init__(self, *, leader: str = "D") -> None:
        self.turn = Turn("E")
        self.turn.now = 10.0
        self.submitter = Submitter(self.turn, 9, Timers(), INLINE_BYTES_MAX)
        self.submitter.leader = leader

    def submit(self, *texts: str, known_seq: int = 0) -> int:
        """Take these in and send them."""
        first = self.submitter.submit(tuple(text.encode() for text in texts))
        self.submitter.send_new(known_seq)
        return first

    def wait(self) -> None:
        """Until it is time to send again."""
        self.turn.now = self.submitter.deadline
        self.submitter.tick()

    def sent(self) -> list[tuple[str, Submit]]:
        """What left since the last look."""
        effects, self.turn.effects = self.turn.effects, []
        sent = [(effect.node, effect.message) for effect in effects if isinstance(effect, SendToPeer)]
        return [(node, message) for node, message in sent if isinstance(message, Submit)]


def test_numbers_follow_one_another() -> None:
    """B5. The first is 1, whatever is sent together."""
    pen = Pen()
    assert [1, 3, 4] == [pen.submit("a", "b"), pen.submit("c"), pen.submit("d")]
    assert [1, 3, 4] == [submit.first_n for _, submit in pen.sent()]


@pytest.mark.parametrize("size", [0, 1, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1])
def test_one_by_one_is_the_same_as_many_at_a_time(size: int) -> None:
    """Numbers, windows and what is sent, large payloads included."""
    together, alone = Pen(), Pen()
    body = b"x" * size
    for pen in (together, alone):
        pen.sent()
    together.submitter.submit([body] * OUTSTANDING_ENTRIES_MAX)
    numbers = [alone.submitter.submit_one(body) for _ in range(OUTSTANDING_ENTRIES_MAX)]
    assert list(range(1, OUTSTANDING_ENTRIES_MAX + 1)) == numbers
    assert 0 == together.submitter.submit([body]) == alone.submitter.submit_one(body)
    for pen in (together, alone):
        pen.submitter.send_new(7)
    assert together.sent() == alone.sent() != []


def test_a_submission_is_repeated_until_it_is_known_to_be_stable() -> None:
    """SAM-03. First soon, then more and more rarely; then not at all."""
    pen = Pen()
    pen.submit("a")
    waits = []
    for _ in range(5):
        before = pen.turn.now
        pen.wait()
        waits.append(round(pen.turn.now - before, 3))
    assert [0.1, 0.2, 0.4, 0.8, 1.0] == waits
    assert [("D", Submit(9, 1, 0, (b"a",)))] * 6 == pen.sent()
    pen.submitter.accepted(1)
    assert math.inf == pen.submitter.deadline


def test_a_repetition_says_how_far_the_stream_was_known_when_it_was_first_sent() -> None:
    """SAM-09. Otherwise a copy that turns up an age later would look young."""
    pen = Pen()
    pen.submit("a", known_seq=5)
    pen.submit("b", "c", known_seq=8)
    pen.sent()
    pen.wait()
    assert [Submit(9, 1, 5, (b"a",)), Submit(9, 2, 8, (b"b", b"c"))] == [submit for _, submit in pen.sent()]
    pen.submitter.accepted(2)
    pen.wait()
    assert [Submit(9, 3, 8, (b"c",), 2)] == [submit for _, submit in pen.sent()]


def test_only_what_is_not_stable_is_outstanding() -> None:
    """What was accepted is let go at once; accepting it again, or more than there is, changes nothing."""
    pen = Pen()
    pen.submit("a", "b", "c")
    pen.submitter.accepted(2)
    assert (1, 2, 3) == (pen.submitter.outstanding, pen.submitter.accepted_upto, pen.submitter.last)
    pen.submitter.accepted(1)
    assert 1 == pen.submitter.outstanding
    pen.submitter.accepted(9)
    assert (0, 3) == (pen.submitter.outstanding, pen.submitter.accepted_upto)
    assert 4 == pen.submit("d")


@pytest.mark.parametrize("entries, size", [(OUTSTANDING_ENTRIES_MAX, 1), (16, OUTSTANDING_BYTES_MAX // 16)])
def test_a_full_window_takes_nothing_more_until_something_is_stable(entries: int, size: int) -> None:
    """X1. Counted in entries and in bytes; what is refused has no number and is not sent."""
    submitter = Pen().submitter
    assert 1 == submitter.submit((b"x" * size,) * entries)
    assert 0 == submitter.submit((b"x",))
    assert entries == submitter.last
    submitter.leader = "D"
    submitter.send_new(0)
    submitter.accepted(1)
    assert entries + 1 == submitter.submit((b"x",))


def test_what_is_submitted_before_a_leader_is_known_waits() -> None:
    """And is sent as soon as there is one."""
    pen = Pen(leader="")
    assert 1 == pen.submit("a")
    assert ([], math.inf) == (pen.sent(), pen.submitter.deadline)
    pen.submitter.follow("D")
    pen.submitter.send_new(4)
    assert [("D", Submit(9, 1, 4, (b"a",)))] == pen.sent()


def test_a_new_leader_gets_everything_that_is_outstanding_at_once() -> None:
    """GS-09, SAM-10. It numbers what it does not have."""
    pen = Pen()
    pen.submit("a", "b")
    pen.submitter.accepted(1)
    pen.sent()
    pen.submitter.follow("F")
    assert [("F", Submit(9, 2, 0, (b"b",), 1))] == pen.sent()


def test_a_gap_is_closed_by_sending_from_there_on() -> None:
    """The leader has 1 and got 3 before 2."""
    pen = Pen()
    pen.submit("a", "b", "c")
    pen.sent()
    pen.submitter.resend(after=1)
    assert [("D", Submit(9, 2, 0, (b"b", b"c")))] == pen.sent()


def test_many_complaints_about_one_gap_are_answered_once() -> None:
    """A hundred refusals are on their way before the first repetition arrives: no storm."""
    pen = Pen()
    pen.submit("a", "b", "c")
    pen.sent()
    for _ in range(100):
        pen.submitter.close_gap(1)
    assert [("D", Submit(9, 2, 0, (b"b", b"c")))] == pen.sent()
    pen.turn.now += 0.05
    pen.submitter.close_gap(1)
    assert 1 == len(pen.sent())


def test_every_submission_says_what_will_not_be_sent_again() -> None:
    """A leader whose log lacks it, because a forced view lost it, need not wait for it."""
    pen = Pen()
    pen.submit("a", "b")
    pen.submitter.accepted(2)
    pen.sent()
    pen.submit("c")
    assert [Submit(9, 3, 0, (b"c",), settled=2)] == [submit for _, submit in pen.sent()]
    assert [False, True, False] == [pen.submitter.is_outstanding(n) for n in (2, 3, 4)]


def test_who_does_not_follow_the_stream_asks_how_far_it_is() -> None:
    """SAM-03. A submission without bodies: the answer tells the number that the first one goes with."""
    pen = Pen()
    pen.submitter.ask_where_it_stands()
    assert [("D", Submit(9, 1, 0, ()))] == pen.sent()


def test_many_submissions_leave_in_pieces_in_their_order() -> None:
    """A frame must not hold up the liveness frames behind it."""
    pen = Pen()
    pen.submitter.submit((b"x",) * (SUBMIT_ENTRIES_MAX + 1))
    pen.submitter.send_new(0)
    assert [(1, SUBMIT_ENTRIES_MAX), (SUBMIT_ENTRIES_MAX + 1, 1)] == [
        (submit.first_n, len(submit.bodies)) for _, submit in pen.sent()
    ]
    pen = Pen()
    pen.submitter.submit((b"x" * INLINE_BYTES_MAX,) * (SUBMIT_BYTES_MAX // INLINE_BYTES_MAX + 1))
    pen.submitter.send_new(0)
    first, second = (submit for _, submit in pen.sent())
    assert (1, 1 + len(first.bodies)) == (first.first_n, second.first_n)
    assert SUBMIT_BYTES_MAX // INLINE_BYTES_MAX == len(first.bodies)


def test_after_what_lay_too_long_numbers_go_on_behind_the_last_that_was_used() -> None:
    """SAM-09. The leader has 1; 2 and 3 are over, nothing is sent of them any more, and nothing else is called so."""
    pen = Pen()
    pen.submit("a", "b", "c", known_seq=1)
    pen.sent()
    pen.submitter.start_anew(after=1)
    assert (0, math.inf) == (pen.submitter.outstanding, pen.submitter.deadline)
    assert 4 == pen.submit("new", known_seq=900)
    assert [("D", Submit(9, 4, 900, (b"new",), 3))] == pen.sent()


def test_what_is_given_up_is_not_sent_again_and_its_numbers_are_not_used_again() -> None:
    """X1: nobody waits for it. A late copy of it is a duplicate once what comes next says that it is settled."""
    pen = Pen()
    pen.submit("a", "b", known_seq=10)
    pen.submitter.give_up()
    assert (0, 2, math.inf) == (pen.submitter.outstanding, pen.submitter.accepted_upto, pen.submitter.deadline)
    pen.sent()
    assert 3 == pen.submit("c", known_seq=12)
    assert [("D", Submit(9, 3, 12, (b"c",), 2))] == pen.sent()


def test_a_submission_without_an_echo_goes_through_another_server() -> None:
    """The leader may be reached by everybody but us; a server passes it on."""
    pen = Pen()
    pen.submitter.relays = ("F", "G")
    pen.submit("a")
    for _ in range(REPEATS_BEFORE_RELAY + 2):
        pen.wait()
    told = [node for node, _ in pen.sent()]
    assert ["D"] * REPEATS_BEFORE_RELAY == told[:REPEATS_BEFORE_RELAY]
    assert ["F", "G", "D"] == told[REPEATS_BEFORE_RELAY:]
    pen.submit("b")
    assert ["D"] == [node for node, _ in pen.sent()]


def test_a_relay_that_is_none_any_more_does_not_keep_a_submission_from_the_leader() -> None:
    """B2. Relays and leader take turns for as long as there is no echo: whoever gets through first is good."""
    pen = Pen()
    pen.submitter.relays = ("F",)
    pen.submit("a")
    for _ in range(REPEATS_BEFORE_RELAY):
        pen.wait()
    pen.sent()
    for _ in range(4):
        pen.wait()
    assert {"D", "F"} == {node for node, _ in pen.sent()}


def test_a_large_payload_is_told_by_its_length_and_sent_apart() -> None:
    """SAM-04. The leader gives numbers and does not carry payloads; a repetition does not send it again."""
    pen, apart = Pen(), []
    pen.submitter.disseminate = lambda n, payload: apart.append((n, len(payload)))
    pen.submit("small", "x" * (INLINE_BYTES_MAX + 1))
    ((_, submit),) = pen.sent()
    assert b"small" == submit.bodies[0]
    assert INLINE_BYTES_MAX + 1 == submit.bodies[1][0]
    pen.wait()
    assert [(2, INLINE_BYTES_MAX + 1)] == apart
    pen.submitter.disseminate_again(2)
    assert [(2, INLINE_BYTES_MAX + 1)] * 2 == apart


def test_who_has_given_up_what_was_refused_is_refused_nothing() -> None:
    """B2. Nothing is repeated any more that could tell when the leader takes something again."""
    pen = Pen()
    pen.submit("a")
    pen.submitter.refused_because = "D cannot write"
    pen.submitter.give_up()
    assert "" == pen.submitter.refused_because
