"""What is said with a vote that counts is shown to everybody; what does not fit is refused where it is said (GS-25)."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import REPLY_CODEC, Told
from groupsvc.wire.limits import FRAME_BYTES_MAX, PAYLOAD_BYTES_MAX, VOTE_MESSAGES_BYTES_MAX, vote_message_bytes_max
from groupsvc.wire.notices import Cast, Ended, Outcome, PhaseOpened, ProviderId, Subject, VoteMessage
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.ballot_box import BallotBox
from groupsvcd.core.groups.ballots import VOTE_MESSAGES_KEPT, Ballot
from groupsvcd.core.groups.papers import Paper
from groupsvcd.core.groups.process_group import PROVIDERS_MAX
from groupsvcd.core.parameters import Timers
from groupsvcd.core.sessions.tellings import TELLING_BYTES_MAX

from .assembly import Assembly, process

A = ("A", 1)
ENVELOPE_BYTES = 64 * 1024
"""For what goes around a ruling: its entry, the order, the frame."""


def ballot(*voters: ProviderId, payload: bytes = b"") -> Ballot:
    """A first phase in which these vote."""
    subject = Subject(kind="message", payload=payload)
    return Ballot(id=7, subject=subject, phases=0, time_limit=30.0, electorate=voters)


def votes_sent(box: BallotBox, running: Ballot) -> tuple[Paper, ...]:
    """What the node of this box tells the leader."""
    sent: list[tuple[Paper, ...]] = []
    box.send(running, {}, 0.0, lambda _, papers, silent: sent.append(papers))
    return sent[0]


def test_everybody_may_say_its_share_and_all_are_shown_all_of_it() -> None:
    """With the next phase, or with the outcome; what was shown before is shown again if there is room."""
    group = Assembly(state_phases="n")
    group.join("A1", "B1", "C1")
    group.propose_state("A1", b"red")
    share = vote_message_bytes_max(3)
    for vote in ("continue", "approve"):
        papers = {name: Paper(1, vote, message=name.encode() * (share // 2)) for name in ("A1", "B1", "C1")}  # type: ignore[arg-type]
        group.answer(**papers)
    expected = [(process(name), name.encode() * (share // 2)) for name in ("A1", "B1", "C1")]
    shown, ended = group.told(PhaseOpened)[-1].messages, group.told(Ended)[-1].outcome.messages
    assert [(one, 1, payload) for one, payload in expected] == [(one.provider, one.phase, one.payload) for one in shown]
    assert [(one, 2, payload) for one, payload in expected] == [(one.provider, one.phase, one.payload) for one in ended]


def test_however_many_speak_in_one_phase_all_are_shown() -> None:
    """More than are kept of the phases before."""
    group = Assembly(state_phases="n")
    names = [f"A{number}" for number in range(1, VOTE_MESSAGES_KEPT + 51)]
    group.join(*names)
    group.propose_state("A1", b"red")
    for phase, vote in enumerate(("continue", "approve"), start=1):
        group.answer(**{name: Paper(process(name)[2], vote, message=name.encode()) for name in names})  # type: ignore[arg-type]
        notices = group.told(PhaseOpened)[-1].messages if phase == 1 else group.told(Ended)[-1].outcome.messages
        assert [(process(name), phase, name.encode()) for name in names] == [
            (one.provider, one.phase, one.payload) for one in notices
        ]


def test_of_phases_before_the_newest_are_shown_again() -> None:
    """They were shown when their phase ended, so they may go: by number, and by bytes."""
    running = ballot(process("A1"), process("B1"))
    for phase in range(1, VOTE_MESSAGES_KEPT + 10):
        running.heard(phase, [(process("A1"), b"%d" % phase)])
    assert list(range(10, VOTE_MESSAGES_KEPT + 10)) == [one.phase for one in running.messages]
    large = VOTE_MESSAGES_BYTES_MAX - 5
    running.heard(200, [(process("A1"), b"x" * large)])
    assert [109, 200] == [one.phase for one in running.messages]


@pytest.mark.parametrize("voters", [1, 2, 3, 100])
def test_a_vote_that_says_more_than_its_share_is_refused_and_may_be_cast_with_less(voters: int) -> None:
    box, running = BallotBox(Timers()), ballot(*(process(f"A{number}") for number in range(1, voters + 1)))
    share = VOTE_MESSAGES_BYTES_MAX // voters
    assert "too large" == box.take(running, A, 7, 1, Paper(1, "approve", message=b"x" * (share + 1)))
    for number in range(1, voters + 1):
        assert "" == box.take(running, A, 7, 1, Paper(number, "approve", message=b"x" * share))
    assert voters == len(votes_sent(box, running))


def test_of_the_states_that_are_proposed_on_one_node_the_oldest_providers_is_sent() -> None:
    """No other can be taken; so however many there are, they fit into a frame, and no vote is refused for them."""
    voters = [process(f"A{number}") for number in (3, 1, 2)]
    box, running = BallotBox(Timers()), ballot(*voters)
    for number in (2, 3, 1):
        assert "" == box.take(running, A, 7, 1, Paper(number, "approve", state=b"%d" % number * PAYLOAD_BYTES_MAX))
    states = {paper.provider: paper.state for paper in votes_sent(box, running)}
    assert {1: None, 2: None, 3: b"3" * PAYLOAD_BYTES_MAX} == states


def test_a_state_is_refused_that_does_not_fit_beside_the_message_that_is_voted_on() -> None:
    box, running = BallotBox(Timers()), ballot(process("A1"), payload=b"hello")
    assert "too large" == box.take(running, A, 7, 1, Paper(1, "approve", state=b"x" * (PAYLOAD_BYTES_MAX - 4)))
    assert "" == box.take(running, A, 7, 1, Paper(1, "approve", state=b"x" * (PAYLOAD_BYTES_MAX - 5)))


def test_what_a_daemon_had_to_refuse_counts_for_nothing_at_the_leader() -> None:
    """Its vote is not counted without what it said: the tally tells that it was not heard."""
    group = Assembly(state_phases="n", time_limit=5.0)
    group.join("A1", "B1")
    group.propose_state("A1", b"red")
    group.answer(A1=Paper(1, "approve"), B1=Paper(1, "reject", message=b"x" * (vote_message_bytes_max(2) + 1)))
    group.wait(6.0)
    outcome = group.told(Ended)[-1].outcome
    assert [("approve", ""), ("approve", "late")] == [(cast.vote, cast.why) for cast in outcome.votes]
    assert () == outcome.messages


def test_all_that_the_largest_group_can_say_in_one_phase_fits_into_one_entry_and_one_frame() -> None:
    """X1: with the longest names, a state value, and everybody's whole share."""
    voters = [("n" * 63, 1 << 40, number) for number in range(1 << 20, (1 << 20) + PROVIDERS_MAX)]
    word, state = b"x" * vote_message_bytes_max(PROVIDERS_MAX), b"y" * PAYLOAD_BYTES_MAX
    casts = tuple(Cast(one, "continue", "") for one in voters)
    ruling = cmd.PhaseEnded(1 << 40, 1000, casts, (voters[0], state), tuple((one, word) for one in voters), "approve")
    assert len(cmd.encode(ruling)) < FRAME_BYTES_MAX - ENVELOPE_BYTES
    said = tuple(VoteMessage(one, 1000, word) for one in voters)
    outcome = Outcome(
        ballot=1 << 40, subject=Subject(kind="state", state=state), approved=True, phases=1000,
        reason="explicit_approve", votes=casts, messages=said,
    )  # fmt: skip
    assert len(REPLY_CODEC.encode_one(Told(1 << 30, Ended(1 << 40, outcome, "approve")))) < TELLING_BYTES_MAX
