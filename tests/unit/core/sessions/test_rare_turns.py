"""Rare turns of what sessions are told: each was wrong once, and was found by reading or in a golden transcript."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import (
    CastVote,
    ChangeStateAsk,
    ExpelAsk,
    GoodbyeAsk,
    JoinedAs,
    LeaveAsk,
    MemberLost,
    OutcomeAsk,
    OutcomeIs,
    Problem,
    SendAsk,
    Told,
)
from groupsvc.wire.limits import PAYLOAD_BYTES_MAX
from groupsvc.wire.notices import Ended, Joined, Left, PhaseOpened, StateChanged
from groupsvcd.core.events import LocalCall
from groupsvcd.core.groups import pending

from .applications import Application, Applications, three


def test_who_leaves_is_told_all_of_the_entry_with_which_it_leaves() -> None:
    """GS-30: C votes on a state and is told how that ended, though its leave has its turn with the same entry."""
    domain, (a, b, c) = three(state_phases="n")
    a.propose_state(b"red")
    domain.run(0.1)
    number = c.ask(LeaveAsk, c.member, 0, 5.0)
    domain.run(0.1)
    for application in (a, b, c):
        application.vote("approve")
    domain.run(0.1)
    assert isinstance(c.answer(number), OutcomeIs)
    last = [one.notice for one in c.kinds(Told) if one.member == c.member and one.notice.seq == c.notices(Left)[0].seq]
    assert [StateChanged, Ended, Left, Ended] == [type(one) for one in last]


def test_two_who_leave_with_one_entry_know_the_same_group_after_it() -> None:
    """L6: B, which leaves first, is told of C, too: else the last group it sees would be one that nobody else saw."""
    domain, (a, b, c) = three(state_phases="n")
    a.propose_state(b"red")
    domain.run(0.1)
    for application in (b, c):
        application.ask(LeaveAsk, application.member, 0, 5.0)
        domain.run(0.05)
    for application in (a, b, c):
        application.vote("approve")
    domain.run(0.2)
    assert [2, 2, 2] == [len(application.notices(Left)) for application in (a, b, c)]
    assert a.notices(Left) == b.notices(Left) == c.notices(Left)


def test_who_joins_and_is_expelled_with_one_entry_is_told_both() -> None:
    """K1: its join was approved, and it has left."""
    domain = Applications()
    a, c = domain.opened("D"), domain.opened("E")
    a.join(name="a", join_phases="n")
    c.join(name="c", wait=0.2)
    joiner = a.notices(PhaseOpened)[-1].subject.joining[0].id
    a.ask(ExpelAsk, a.member, 1, -1.0, False, 5.0, (joiner,), "no")
    domain.run(0.1)
    a.vote("approve")
    domain.run(0.3)
    assert [(joiner,)] == [left.providers for left in c.notices(Left)]
    assert c.notices(Joined)[0].seq == c.notices(Left)[0].seq


def test_a_proposal_whose_end_is_not_known_is_named_and_can_be_asked_for() -> None:
    """K1: the answer says which proposal it was."""
    domain, (a, b, c) = three(state_phases="n")
    number = a.propose_state(b"red", timeout=0.5)
    domain.run(2.0)
    answer = a.answer(number)
    assert isinstance(answer, Problem)
    assert ("unknown", "timed out") == (answer.family, answer.code)
    assert answer.proposal is not None
    for application in (a, b, c):
        application.vote("approve")
    domain.run(0.1)
    outcome = a.answer(a.ask(OutcomeAsk, a.member, answer.proposal))
    assert isinstance(outcome, OutcomeIs)
    assert outcome.outcome.approved


def test_a_program_knows_the_ids_of_its_proposals_before_they_are_answered() -> None:
    """K1: if they are not, it can still ask, in this session or in another one, at another node."""
    domain, (a, b, _) = three()
    assert a.session is not None
    base = a.session.proposals
    number = a.propose_state(b"red")
    domain.run(0.1)
    answer = a.answer(number)
    assert isinstance(answer, OutcomeIs)
    assert (*base[:2], base[2] + number) == answer.proposal
    later = b.answer(b.ask(OutcomeAsk, b.member, answer.proposal))
    assert isinstance(later, OutcomeIs)
    assert answer.outcome == later.outcome


def test_no_two_proposals_have_one_id_whatever_a_program_counts() -> None:
    """X2: a number that was used, or is none, is refused, and nothing has changed."""
    domain, (a, _, _) = three()
    used = a.propose_state(b"red")
    domain.run(0.1)
    for number in (used, used - 1, 0, -1, 2**32):
        a.say(ChangeStateAsk(number, a.member, -1, -1.0, False, 5.0, b"green", -1))
        domain.run(0.1)
        refused = [one for one in a.answers(number) if isinstance(one, Problem)]
        assert ("usage", "usage") == (refused[-1].family, refused[-1].code)
    assert [b"red"] == [changed.value for changed in a.notices(StateChanged)]
    late = a.propose_state(b"blue")
    domain.run(0.1)
    assert isinstance(a.answer(late), OutcomeIs)


def test_providers_that_a_node_has_lost_are_no_providers_when_it_stays_for_another() -> None:
    """GS-30, no ghosts: D lagged, so A has lost the group; before D is out of it somebody else on D joins."""
    domain, (a, b, _) = three()
    late = domain.opened("D")
    processes = domain.engines["D"].processes
    local = processes.get("db")
    assert local is not None
    domain.step("D", LocalCall(lambda: processes.lost_entries(local)))
    number = late.join(wait=3.0)
    assert isinstance(late.answer(number), JoinedAs)
    assert a.kinds(JoinedAs)[0].provider in [one for left in b.notices(Left) for one in left.providers]
    view = late.kinds(JoinedAs)[0].view
    assert a.kinds(JoinedAs)[0].provider not in [one.id for one in view.providers]


def test_a_state_with_a_vote_on_a_large_message_costs_nobody_its_membership() -> None:
    """X1: what is voted on fits into a frame, also with what votes add to it."""
    domain, (a, b, c) = three(message_phases="n")
    half = b"x" * (PAYLOAD_BYTES_MAX - 1000)
    a.ask(SendAsk, a.member, -1, -1.0, False, 30.0, half)
    domain.run(1.0)
    opened = b.notices(PhaseOpened)[-1]
    number = b.ask(CastVote, b.member, opened.ballot, opened.phase, "continue", half)
    assert ("failed", "too large") == b.problem(number)
    for application in (a, b, c):
        application.vote("approve")
    domain.run(1.0)
    for application in (a, b, c):
        assert [True] == [ended.outcome.approved for ended in application.notices(Ended)[-1:]]


def test_a_batch_of_joins_that_is_too_much_for_one_ballot_is_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """X1: a ballot names all who join, with their data, and has to fit into a frame."""
    monkeypatch.setattr(pending, "BATCH_BYTES_MAX", 250)
    domain = Applications()
    first = domain.opened("D")
    first.join(batch="joins", batch_window=0.5)
    others = [domain.opened("E") for _ in range(5)]
    for number, application in enumerate(others):
        application.join(data=b"x" * 100, name=str(number), wait=0.0)
    domain.run(3.0)
    assert [1, 2, 2, 1] == [len(joined.providers) for joined in first.notices(Joined)]


def test_who_waits_for_a_group_while_its_node_leads_the_one_before_presides_over_its_own() -> None:
    """D leads a group that A has left; B waits there when D has its lease again, and forms the next under that name."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("D")
    a.join(state_phases="n")
    domain.cut("D", *[name for name in domain.names if name != "D"])
    a.ask(GoodbyeAsk, a.member)
    domain.run(0.5)
    number = b.join(state_phases="n", timeout=20.0, wait=0.0)
    domain.run(1.7)
    domain.heal()
    domain.run(6.0)
    assert isinstance(b.answer(number), JoinedAs)
    proposed = b.propose_state(b"red")
    domain.run(0.1)
    b.vote("approve")
    domain.run(0.5)
    assert isinstance(b.answer(proposed), OutcomeIs)


def test_nobody_expels_itself_and_so_somebody_always_has_a_vote() -> None:
    """GS-34: one who names everybody, itself included, would have the group end without a single vote."""
    domain, (a, b, c) = three(leave_phases="n")
    everybody = tuple(one.kinds(JoinedAs)[0].provider for one in (a, b, c))
    number = a.ask(ExpelAsk, a.member, -1, -1.0, False, 5.0, everybody, "all")
    domain.run(0.2)
    assert ("usage", "usage") == a.problem(number)
    assert [] == b.notices(Left)


def test_a_group_that_has_ended_cannot_be_watched_and_its_name_is_free() -> None:
    """GS-21: F asks right after the last provider has gone, before the nodes have; it does not keep the shell alive."""
    domain = Applications()
    a, b, watcher = domain.opened("D"), domain.opened("E"), domain.opened("F")
    a.join(state_phases="n")
    watcher.subscribe()
    b.join()
    a.ask(GoodbyeAsk, a.member)
    b.ask(GoodbyeAsk, b.member)
    domain.run(0.01)
    assert [True] == [lost.dissolved for lost in watcher.kinds(MemberLost)]
    assert ("failed", "no such group") == watcher.problem(watcher.subscribe(wait=1.0))
    assert isinstance(b.answer(b.join(state_phases="one", wait=1.0)), JoinedAs)


def _restarted(domain: Applications, *nodes: str) -> None:
    domain.die(*nodes)
    domain.run(4.0)
    domain.boot(*nodes)
    domain.run(4.0)


def test_a_durable_group_ends_with_its_last_provider_though_nodes_keep_it_for_the_sake_of_their_disks() -> None:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(durable=True)
    b.join()
    domain.run(1.0)
    _restarted(domain, "D", "E")
    again = domain.opened("D")
    again.join(create=False)
    again.ask(LeaveAsk, again.member, 0, 5.0)
    domain.run(5.0)
    assert domain.voter("A").directory.groups.named("db") is None


def test_who_only_watches_a_durable_group_takes_no_disk_away_when_it_goes() -> None:
    """Both nodes were restarted and keep the group on their disks; somebody watches it there for a while."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(durable=True)
    b.join()
    a.propose_state(b"red")
    domain.run(1.0)
    _restarted(domain, "D", "E")
    for node in "DE":
        watcher = domain.opened(node)
        watcher.subscribe()
        watcher.ask(GoodbyeAsk, watcher.member)
        domain.run(2.0)
    again = domain.opened("D")
    answer = again.answer(again.join(create=False))
    assert isinstance(answer, JoinedAs)
    assert b"red" == answer.view.state


def _on_one_disk() -> tuple[Applications, Application, Application]:
    """D alone has a disk, and leads a durable group in which F takes part, too."""
    domain = Applications(of={"F": {"durable": False}})
    a, b = domain.opened("D"), domain.opened("F")
    a.join(durable=True, state_phases="n")
    b.join()
    domain.run(1.0)
    return domain, a, b


def test_the_only_node_with_a_disk_presides_after_its_last_process_has_left() -> None:
    """G10, GS-24: D cannot leave, as nobody else may hold the group; F's proposals are decided all the same."""
    domain, a, b = _on_one_disk()
    a.ask(GoodbyeAsk, a.member)
    domain.run(1.0)
    number = b.propose_state(b"red")
    domain.run(0.5)
    b.vote("approve")
    domain.run(0.5)
    assert isinstance(b.answer(number), OutcomeIs)


def test_the_only_node_with_a_disk_leaves_when_another_one_has_come() -> None:
    """D stayed for want of an heir; E is one."""
    domain, a, b = _on_one_disk()
    a.ask(GoodbyeAsk, a.member)
    domain.run(1.0)
    heir = domain.opened("E")
    heir.join(create=False)
    domain.run(5.0)
    assert () == tuple(domain.engines["D"].groups.status())
    b.propose_state(b"red")
    domain.run(0.5)
    b.vote("approve")
    heir.vote("approve")
    domain.run(0.5)
    assert [b"red"] == [changed.value for changed in heir.notices(StateChanged)]


def test_a_node_whose_heir_dies_while_it_leaves_presides_again() -> None:
    """D has asked to be let go, in favour of E; then E is gone, and F is left."""
    domain, a, b = _on_one_disk()
    heir = domain.opened("E")
    heir.join(create=False)
    domain.run(1.0)
    domain.cut("D", "E")
    a.ask(GoodbyeAsk, a.member)
    domain.run(0.02)
    domain.kill("E")
    domain.run(15.0)
    number = b.propose_state(b"red")
    domain.run(0.5)
    b.vote("approve")
    domain.run(0.5)
    assert isinstance(b.answer(number), OutcomeIs)
