"""Proposals and votes through sessions, whoever leads and dies; and what each is told of wrong ones."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import (
    CastVote,
    ChangeAttributesAsk,
    Done,
    ExpelAsk,
    GoodbyeAsk,
    JoinedAs,
    LeaveAsk,
    OutcomeAsk,
    OutcomeIs,
    OutcomesAre,
    Overrun,
    Problem,
    SendAsk,
    WhyAsk,
)
from groupsvc.wire.limits import PAYLOAD_BYTES_MAX, vote_message_bytes_max
from groupsvc.wire.notices import (
    AttributesChanged,
    Ended,
    Joined,
    Left,
    Message,
    PhaseOpened,
    Responsive,
    StateChanged,
)
from groupsvcd.core.peer_messages import Relay, Submit, Votes

from .applications import three


def test_a_leader_that_dies_in_mid_ballot_costs_no_proposal_and_no_vote() -> None:
    """D leads and dies with two votes in its hands, and one proposal waits."""
    domain, (a, b, c) = three(state_phases="n")
    first, second = b.propose_state(b"red", timeout=60), c.propose_state(b"green", timeout=60)
    domain.run(0.1)
    votes = [a.vote("approve"), b.vote("approve")]
    domain.run(0.05)
    domain.die("D")
    domain.run(3.0)
    c.vote("approve")
    domain.run(0.5)
    for application in (b, c):
        application.vote("approve")
    domain.run(1.0)
    assert isinstance(b.answer(votes[1]), Done)
    for application, number in ((b, first), (c, second)):
        answer = application.answer(number)
        assert isinstance(answer, OutcomeIs)
        assert answer.outcome.approved
    for application in (b, c):
        assert [b"red", b"green"] == [changed.value for changed in application.notices(StateChanged)]
        assert ["node_failure"] == [left.cause for left in application.notices(Left)]


def test_a_vote_counts_once_and_in_its_phase_only() -> None:
    """G4: each wrong one is told why."""
    domain, (a, b, c) = three(state_phases="n")
    a.propose_state(b"red", timeout=60)
    domain.run(0.1)
    opened = a.notices(PhaseOpened)[-1]
    number = a.vote("approve")
    assert [] == a.answers(number), "nobody waits for it: it comes with what is told next"
    assert ("failed", "voted already") == a.problem(a.vote("reject"))
    assert isinstance(a.answer(number), Done)
    assert ("failed", "past phase") == b.problem(b.ask(CastVote, b.member, opened.ballot, 2, "reject"))
    assert ("failed", "past phase") == b.problem(b.ask(CastVote, b.member, opened.ballot + 1, 1, "reject"))
    late = domain.opened("G")
    late.join(timeout=60)
    assert ("failed", "not a member") == late.problem(late.ask(CastVote, 99, opened.ballot, 1, "reject"))
    b.vote("approve")
    c.vote("approve")
    domain.run(0.1)
    assert [b"red"] == [changed.value for changed in c.notices(StateChanged)]
    assert ("failed", "past phase") == c.problem(c.vote("reject"))


def test_the_answer_to_a_vote_comes_with_the_next_sign_of_life_at_the_latest() -> None:
    domain, (a, _, _) = three(state_phases="n", time_limit=60.0)
    a.propose_state(b"red", timeout=60)
    domain.run(0.1)
    number = a.vote("approve")
    domain.run(1.0)
    assert isinstance(a.answer(number), Done)


def test_who_is_to_be_expelled_has_no_vote() -> None:
    domain, (a, b, c) = three(leave_phases="n")
    target = next(one for one in c.kinds(JoinedAs)).provider
    number = a.ask(ExpelAsk, a.member, -1, -1.0, False, 5.0, (target,), "too slow")
    domain.run(0.1)
    assert ("failed", "no vote") == c.problem(c.vote("reject"))
    a.vote("approve")
    b.vote("approve")
    domain.run(0.1)
    assert isinstance(a.answer(number), OutcomeIs)
    assert [("expelled", "too slow")] == [(left.cause, left.reason) for left in c.notices(Left)]
    assert ("failed", "not a member") == c.problem(c.propose_state(b"after the end"))


def test_leave_is_answered_with_its_outcome_and_the_member_is_no_more() -> None:
    domain, (a, b, _) = three()
    number = a.ask(LeaveAsk, a.member, 7, 5.0)
    domain.run(0.1)
    assert isinstance(a.answer(number), OutcomeIs)
    assert [("leave", 7)] == [(left.cause, left.code) for left in b.notices(Left)]
    assert [("leave", 7)] == [(left.cause, left.code) for left in a.notices(Left)]
    assert ("failed", "not a member") == a.problem(a.multicast(b"after the end"))


@pytest.mark.parametrize("kind, cause", [(GoodbyeAsk, "goodbye"), (Overrun, "overrun")])
def test_a_provider_that_goes_at_once_is_told_nothing_more(kind: type[GoodbyeAsk] | type[Overrun], cause: str) -> None:
    """Who does not read what it is told is said to be unresponsive before it goes."""
    domain, (a, b, c) = three()
    number = a.ask(kind, a.member)
    assert isinstance(a.answer(number), Done)
    told = len(a.told)
    b.multicast(b"x")
    domain.run(0.2)
    assert told == len(a.told)
    assert [cause] == [left.cause for left in c.notices(Left)]
    assert (["overrun"] == [cause]) == ([False] == [one.does for one in c.notices(Responsive)])


def test_a_change_of_attributes_can_be_voted_on() -> None:
    """GS-22."""
    domain, applications = three()
    a = applications[0]
    number = a.ask(ChangeAttributesAsk, a.member, 2, 5.0, False, 5.0, {"time_limit": 7.0})
    domain.run(0.1)
    for _ in range(2):
        for application in applications:
            application.vote("approve")
        domain.run(0.1)
    answer = a.answer(number)
    assert isinstance(answer, OutcomeIs)
    assert (True, 2) == (answer.outcome.approved, answer.outcome.phases)
    assert [(("time_limit", 7.0),)] == [one.changes for one in applications[2].notices(AttributesChanged)]


def test_busy_and_stale_are_told_as_such() -> None:
    domain, (a, b, _) = three(state_phases="n")
    a.propose_state(b"red", timeout=60)
    domain.run(0.05)
    busy = b.propose_state(b"green", busy=True)
    stale = b.propose_state(b"green", if_version=5, timeout=60)
    domain.run(0.1)
    assert ("failed", "busy") == b.problem(busy)
    for application in (a, b, _):
        application.vote("approve")
    domain.run(0.1)
    assert ("failed", "stale") == b.problem(stale)
    told = b.answer(stale)
    assert isinstance(told, Problem)
    assert (1, "the state has version 1 by now; read it and propose again") == (told.version, told.text)


def test_a_message_by_ballot_comes_with_its_outcome() -> None:
    domain, (a, b, c) = three(message_phases="n")
    number = a.ask(SendAsk, a.member, -1, -1.0, False, 5.0, b"hello")
    domain.run(0.1)
    for application in (a, b, c):
        application.vote("approve")
    domain.run(0.1)
    assert [b"hello"] == [message.payload for message in c.notices(Message)]
    assert isinstance(a.answer(number), OutcomeIs)


def test_attributes_change_if_they_can_and_make_sense() -> None:
    """GS-20, GS-22: what was settled when the group was formed stays."""
    domain, (a, b, c) = three()

    def change(**changes: object) -> int:
        return a.ask(ChangeAttributesAsk, a.member, -1, -1.0, False, 5.0, changes)

    for wrong in ({"replicas": 2}, {"time_limit": -1.0}, {"batch": "some"}, {"colour": "red"}, {}):
        assert ("usage", "usage") == a.problem(change(**wrong))
    good = change(state_phases="n", time_limit=5.0)
    domain.run(0.1)
    assert isinstance(a.answer(good), OutcomeIs)
    assert [(("state_phases", "n"), ("time_limit", 5.0))] == [one.changes for one in b.notices(AttributesChanged)]
    b.propose_state(b"red")
    domain.run(0.1)
    for application in (a, b, c):
        assert 1 == len(application.notices(PhaseOpened))
        application.vote("approve")
    late = domain.opened("G")
    late.join()
    assert "n" == late.kinds(JoinedAs)[0].attributes["state_phases"]


def test_how_a_proposal_ended_can_be_asked_for_later_and_by_others() -> None:
    """The ledger is part of the group: who came after it has it, too."""
    domain, (a, b, c) = three(state_phases="n")
    number = a.propose_state(b"red", timeout=60)
    domain.run(0.1)
    for application in (a, b, c):
        application.vote("approve" if application is not c else "reject")
    domain.run(0.1)
    answer = a.answer(number)
    assert isinstance(answer, OutcomeIs)
    late = domain.opened("G")
    late.join()
    for application in (b, late):
        again = application.answer(application.ask(OutcomeAsk, application.member, answer.proposal))
        assert isinstance(again, OutcomeIs)
        assert (answer.seq, answer.outcome) == (again.seq, again.outcome)
    unknown = b.ask(OutcomeAsk, b.member, ("D", 1, 1))
    assert ("unknown", "not known") == b.problem(unknown)
    told = b.answer(unknown)
    assert isinstance(told, Problem)
    assert told.text.startswith("proposal D/1/1 in ")


def test_why_is_told_to_who_is_no_member_and_its_node_does_not_stay() -> None:
    domain, (a, _, _) = three()
    a.propose_state(b"red")
    domain.run(0.1)
    stranger = domain.opened("G")
    number = stranger.ask(WhyAsk, "db", 5.0)
    domain.run(1.0)
    answer = stranger.answer(number)
    assert isinstance(answer, OutcomesAre)
    assert ["join", "join", "join", "state"] == [outcome.subject.kind for _, outcome in answer.outcomes]
    assert b"red" == answer.view.state
    assert len(a.notices(Ended)) == len(answer.outcomes)
    domain.run(2.0)
    assert ["none"] == domain.roles("G", "db")
    nowhere = stranger.ask(WhyAsk, "nowhere", 5.0)
    domain.run(1.0)
    assert ("failed", "no such group") == stranger.problem(nowhere)


def test_a_program_that_hangs_is_announced_and_so_is_its_return() -> None:
    """GS-27, GS-40: by silence, or by its own word that the code which answers is stuck."""
    domain, (a, b, c) = three()
    b.is_responsive = False
    domain.run(1.0)
    c.is_running = False
    domain.run(6.0)
    b.is_responsive = c.is_running = True
    domain.run(1.0)
    provider_b, provider_c = (one.kinds(JoinedAs)[0].provider for one in (b, c))
    expected = [(provider_b, False), (provider_c, False), (provider_b, True), (provider_c, True)]
    assert sorted(expected) == sorted((one.provider, one.does) for one in a.notices(Responsive))


def test_votes_that_are_lost_between_daemons_are_sent_again() -> None:
    domain, (a, b, c) = three(state_phases="n")
    number = a.propose_state(b"red", timeout=60)
    domain.run(0.1)
    domain.lose(Votes)
    for application in (a, b, c):
        application.vote("approve")
    domain.run(0.2)
    domain.heal()
    domain.run(2.0)
    assert isinstance(a.answer(number), OutcomeIs)


def test_a_vote_of_who_hangs_afterwards_outlives_the_leader() -> None:
    """G3, G5. C has voted, then its code got stuck. D, which led, is dead when b votes, on the node that leads next.

    That one has all votes but c's, and does not know yet that there is one.
    """
    domain, (a, b, c) = three(state_phases="n", default_vote="approve")
    domain.opened("D").subscribe()
    a.ask(GoodbyeAsk, a.member)
    domain.run(0.5)
    number = c.propose_state(b"red", timeout=60)
    domain.run(0.1)
    vote = c.vote("reject")
    c.is_responsive = False
    domain.run(1.0)
    assert isinstance(c.answer(vote), Done)
    assert [False] == [one.does for one in b.notices(Responsive)]
    assert "leader" == domain.roles("D", "db")[0]
    domain.die("D")
    b.vote("approve")
    domain.run(3.0)
    answer = c.answer(number)
    assert isinstance(answer, OutcomeIs)
    assert (False, "explicit_reject") == (answer.outcome.approved, answer.outcome.reason)


def test_a_vote_that_is_lost_between_daemons_is_waited_for_though_its_caster_hangs() -> None:
    """G5, GS-27: c has voted in time at its daemon. That it hangs is known to all before its vote is."""
    domain, (a, b, c) = three(state_phases="n", default_vote="approve")
    number = a.propose_state(b"red", timeout=60)
    domain.run(0.1)
    domain.lose(Votes, "F>D")
    vote = c.vote("reject")
    c.is_responsive = False
    for application in (a, b):
        application.vote("approve")
    domain.run(3.0)
    assert isinstance(c.answer(vote), Done)
    assert [False] == [one.does for one in b.notices(Responsive)]
    assert [] == [one for one in a.notices(Ended) if one.outcome.subject.kind == "state"]
    domain.heal()
    domain.run(1.1)
    answer = a.answer(number)
    assert isinstance(answer, OutcomeIs)
    assert (False, "explicit_reject") == (answer.outcome.approved, answer.outcome.reason)


def test_a_vote_that_is_lost_with_its_daemon_is_voted_for_by_default() -> None:
    """GS-26: nobody can know it any more."""
    domain, (a, b, c) = three(state_phases="n", default_vote="approve", time_limit=0.0)
    number = a.propose_state(b"red", timeout=60)
    domain.run(0.1)
    domain.lose(Votes, "F>D")
    c.vote("reject")
    c.is_responsive = False
    for application in (a, b):
        application.vote("approve")
    domain.run(3.0)
    domain.die("F")
    domain.run(3.0)
    answer = a.answer(number)
    assert isinstance(answer, OutcomeIs)
    assert ["", "", "failed"] == [cast.why for cast in answer.outcome.votes]


def test_a_vote_of_who_answers_again_counts_though_all_are_still_told_that_it_hangs() -> None:
    """G5: that c hangs is ordered late; by then it has answered, and voted in the next phase, and that vote is lost."""
    domain, (a, b, c) = three(state_phases="n", default_vote="approve")
    number = a.propose_state(b"red", timeout=60)
    domain.run(0.1)
    domain.lose((Submit, Relay), "F>D F>E")
    c.is_responsive = False
    domain.run(1.0)
    for application in (a, b, c):
        application.vote("continue")
    domain.run(0.1)
    c.is_responsive = True
    domain.run(1.0)
    domain.lose(Votes, "F>D")
    vote = c.vote("reject")
    c.is_responsive = False
    domain.run(1.0)
    domain.heal()
    domain.lose(Votes, "F>D")
    domain.run(1.5)
    for application in (a, b):
        application.vote("approve")
    domain.run(2.0)
    assert isinstance(c.answer(vote), Done)
    assert 2 == b.notices(PhaseOpened)[-1].phase
    assert [False] == [one.does for one in b.notices(Responsive)]
    domain.heal()
    domain.run(1.1)
    answer = a.answer(number)
    assert isinstance(answer, OutcomeIs)
    assert (False, "explicit_reject") == (answer.outcome.approved, answer.outcome.reason)


def test_who_hangs_without_a_vote_does_not_hold_up_the_next_leader() -> None:
    domain, (_, b, c) = three(state_phases="n")
    number = b.propose_state(b"red", timeout=60)
    domain.run(0.1)
    c.is_responsive = False
    domain.run(1.0)
    b.vote("approve")
    domain.die("D")
    domain.run(3.0)
    answer = b.answer(number)
    assert isinstance(answer, OutcomeIs)
    assert ["failed", "", "unresponsive"] == [cast.why for cast in answer.outcome.votes]


def test_joins_are_told_in_one_batch() -> None:
    """GS-29, through sessions: each of them gets its answer."""
    domain, (a, _, _) = three(batch="joins")
    late = [domain.opened("G") for _ in range(3)]
    before = len(a.notices(Joined))
    numbers = [one.join(timeout=60.0, wait=0.0) for one in late]
    domain.run(1.0)
    for one, number in zip(late, numbers, strict=True):
        assert isinstance(one.answer(number), JoinedAs)
    assert 3 == len(a.notices(Joined)[before].providers)


def test_what_all_say_with_their_votes_is_shown_to_all_and_too_much_is_refused_at_its_voter() -> None:
    """GS-25: delivery is guaranteed. Who is refused has not voted, and may say less."""
    domain, (a, b, c) = three(state_phases="n")
    a.propose_state(b"x" * PAYLOAD_BYTES_MAX, timeout=60)
    domain.run(1.0)
    share = vote_message_bytes_max(3)
    opened = b.notices(PhaseOpened)[-1]
    number = b.ask(CastVote, b.member, opened.ballot, opened.phase, "approve", None, b"b" * (share + 1))
    assert ("failed", "too large") == b.problem(number)
    for application, letter in ((a, b"a"), (b, b"b"), (c, b"c")):
        application.ask(CastVote, application.member, opened.ballot, opened.phase, "approve", None, letter * share)
    domain.run(2.0)
    for application in (a, b, c):
        (ended,) = [one for one in application.notices(Ended) if one.outcome.subject.kind == "state"]
        assert [letter * share for letter in (b"a", b"b", b"c")] == [one.payload for one in ended.outcome.messages]
        assert ["", "", ""] == [cast.why for cast in ended.outcome.votes]
