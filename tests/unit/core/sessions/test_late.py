"""Whatever is late has one answer, and the right one: certainly not, how it ended, or not known (K1)."""

from __future__ import annotations

import re

import pytest

from groupsvc.wire.client_messages import (
    CatchUpAsk,
    CloseSession,
    GroupsAsk,
    JoinedAs,
    LeaveAsk,
    LookUpAsk,
    OutcomeAsk,
    OutcomeIs,
    Problem,
    SubmitOutside,
    WhyAsk,
)
from groupsvc.wire.limits import OUTSTANDING_MAX
from groupsvc.wire.notices import Joined, Left, StateChanged
from groupsvcd.core.peer_messages import PeerMessage, Submit
from groupsvcd.core.views import AttributeValue

from .applications import Application, Applications


def _two(**attributes: AttributeValue) -> tuple[Applications, Application, Application]:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(**attributes)
    b.join()
    return domain, a, b


def test_a_join_that_is_late_is_withdrawn_and_nobody_sees_it() -> None:
    """Its ballot runs out of time."""
    domain, a, _ = _two(join_phases="n")
    a.vote("approve")
    domain.run(0.2)
    domain.opened("F")
    late = domain.opened("F")
    number = late.join(timeout=1.0, wait=0.9)
    assert [] == late.answers(number)
    domain.run(0.2)
    assert ("failed", "timed out") == late.problem(number)
    a.vote("approve")
    domain.run(1.0)
    assert [] == [joined for joined in a.notices(Joined) if joined.providers[0].id[0] == "F"]


def test_a_join_that_is_being_voted_on_when_its_session_is_closed_is_not_known() -> None:
    """K1: the others may still see it come, and go. Seed 215 of the simulator."""
    domain, _, _ = _two(join_phases="n")
    late = domain.opened("E")
    number = late.join(name="late", timeout=60.0)
    late.ask(CloseSession)
    domain.run(0.2)
    assert ("unknown", "lost") == late.problem(number)


def test_a_join_that_was_approved_meanwhile_says_goodbye_and_is_not_called_failed() -> None:
    """K1: the others see it come and go, and so nobody says that it certainly did not happen."""
    domain, a, b = _two()
    late = domain.opened("F")
    warm = domain.opened("F")
    warm.join(name="so that F is in the group")
    domain.lose(PeerMessage, "D>F E>F")  # F does not see what became of it
    number = late.join(timeout=0.5, wait=0.4)
    assert [] == late.answers(number)
    domain.run(0.2)
    assert [] == late.answers(number), "the stream may still say that it was withdrawn before it had its turn"
    domain.run(0.3)
    assert ("unknown", "timed out") == late.problem(number)
    domain.heal()
    domain.run(1.0)
    for application in (a, b):
        came = [one.providers[0].id for one in application.notices(Joined)]
        assert [(one,) for one in came[-1:]] == [left.providers for left in application.notices(Left)]
        assert ["goodbye"] == [left.cause for left in application.notices(Left)]
        assert "F" == came[-1][0]
    assert [] == late.notices(Joined)


def test_a_join_that_is_approved_in_the_very_moment_of_its_deadline_is_not_called_failed() -> None:
    """K1: its goodbye is ordered behind the vote that lets it in."""
    domain, a, b = _two(join_phases="n")
    a.vote("approve")
    domain.run(0.2)
    late = domain.opened("F")
    number = late.join(timeout=0.5, wait=0.4995)
    for one in (a, b):
        one.vote("approve")
    domain.run(1.0)
    assert ["F"] == [one.providers[0].id[0] for one in a.notices(Joined)][2:]
    assert ["goodbye"] == [left.cause for left in a.notices(Left)]
    assert ("unknown", "timed out") == late.problem(number)
    assert "left" in late.answer(number).text  # type: ignore[union-attr]


def test_a_join_that_is_late_is_left_out_of_its_batch_and_has_failed() -> None:
    """GS-29, K1: the others of the batch get in, and it was never there."""
    domain, a, b = _two(join_phases="n", batch="joins", batch_window=0.05)
    a.vote("approve")
    domain.run(0.2)
    late, patient = domain.opened("F"), domain.opened("F")
    number = late.join(timeout=0.5, wait=0.0)
    other = patient.join(name="patient", timeout=5.0, wait=0.7)
    assert ("failed", "timed out") == late.problem(number)
    for one in (a, b):
        one.vote("approve")
    domain.run(0.2)
    assert isinstance(patient.answer(other), JoinedAs)
    assert ["patient"] == [one.name for joined in a.notices(Joined)[2:] for one in joined.providers]


def test_a_join_that_found_no_room_in_the_stream_is_taken_back_without_a_trace() -> None:
    """K1: nothing of it was ever submitted, so nothing has to be waited for."""
    domain, a, b = _two()
    late = domain.opened("E")
    domain.lose(Submit, "E>D")
    b.multicast(*(b"%d" % number for number in range(OUTSTANDING_MAX)))
    number = late.join(name="late", timeout=0.2, wait=0.2)
    domain.run(0.01)
    assert ("failed", "timed out") == late.problem(number)
    domain.heal()
    domain.run(2.0)
    assert 2 == len(a.notices(Joined))
    assert [] == a.notices(Left)


@pytest.mark.parametrize("how", ["late", "closed", "killed"])
def test_a_join_that_nobody_wants_any_more_does_not_look_for_the_next_group_when_this_one_ends(how: str) -> None:
    """GS-30, K1: nobody is a provider who does not know it."""
    domain = Applications()
    a, late = domain.opened("D"), domain.opened("F")
    a.join()
    domain.opened("F").subscribe()  # so that F is in the group
    domain.lose(Submit, "F>D")
    number = late.join(name="late", timeout=0.3 if how == "late" else 5.0, wait=0.35)
    if how == "closed":
        late.ask(CloseSession)
    elif how == "killed":
        late.end()
    a.ask(LeaveAsk, a.member, 0, 5.0)
    domain.run(0.2)
    if how == "late":
        assert ("failed", "timed out") == late.problem(number)
    domain.heal()
    domain.run(3.0)
    assert domain.voter("A").directory.groups.named("db") is None


def test_who_tries_again_under_the_same_name_keeps_it_when_the_first_try_is_over() -> None:
    """A session joins a group once per name; the first try is taken back while the second is under way."""
    domain, a, _ = _two(join_phases="n")
    a.vote("approve")
    domain.run(0.2)
    late = domain.opened("F")
    late.join(name="x", timeout=0.5, wait=0.5)
    second = late.join(name="x", timeout=5.0, wait=0.3)
    third = late.join(name="x", timeout=5.0, wait=0.3)
    assert [] == late.answers(second)
    assert ("usage", "usage") == late.problem(third)


def test_a_join_that_finds_no_way_in_fails_and_leaves_no_trace() -> None:
    domain, _, _ = _two()
    domain.cut("F", *[name for name in domain.names if name != "F"])
    late = domain.opened("F")
    number = late.join("elsewhere", timeout=0.5, wait=0.6)
    assert ("failed", "timed out") == late.problem(number)
    domain.heal()
    domain.run(8.0)
    assert domain.voter("A").directory.groups.named("elsewhere") is None


def test_a_proposal_that_had_no_turn_is_withdrawn_and_failed() -> None:
    domain, a, b = _two(state_phases="n")
    running = a.propose_state(b"red", timeout=60.0)
    waiting = b.propose_state(b"green", timeout=0.5)
    domain.run(1.0)
    assert ("failed", "timed out") == b.problem(waiting)
    a.vote("approve")
    b.vote("approve")
    domain.run(0.5)
    assert isinstance(a.answer(running), OutcomeIs)
    assert [b"red"] == [changed.value for changed in b.notices(StateChanged)]


def test_a_proposal_whose_ballot_runs_is_not_known_and_can_be_asked_for() -> None:
    domain, a, b = _two(state_phases="n")
    number = a.propose_state(b"red", timeout=0.5)
    domain.run(0.7)
    assert [] == a.answers(number)
    domain.run(0.2)
    assert ("unknown", "timed out") == a.problem(number)
    a.vote("approve")
    b.vote("approve")
    domain.run(0.2)
    later = a.answer(a.ask(OutcomeAsk, a.member, a.answer(number).proposal))  # type: ignore[union-attr]
    assert isinstance(later, OutcomeIs)
    assert later.outcome.approved


def test_a_proposal_that_ends_in_the_last_moment_has_its_outcome() -> None:
    domain, a, b = _two(state_phases="n")
    number = a.propose_state(b"red", timeout=0.5)
    domain.run(0.6)
    a.vote("approve")
    b.vote("approve")
    domain.run(0.1)
    assert isinstance(a.answer(number), OutcomeIs)


def test_a_proposal_that_the_stream_has_not_is_not_known() -> None:
    """Whether the leader has it nobody here knows."""
    domain, _, b = _two()
    domain.lose(Submit, "E>D")
    number = b.propose_state(b"red", timeout=0.2)
    domain.run(0.6)
    assert ("unknown", "timed out") == b.problem(number)


def test_a_proposal_that_found_no_room_is_taken_back_and_nothing_is_left_to_wait_for() -> None:
    """Its node looked for room without a pause, for ever: seed 3012 of the simulator."""
    domain, _, b = _two()
    domain.lose(Submit, "E>D")
    b.multicast(*(b"%d" % number for number in range(OUTSTANDING_MAX)))
    number = b.propose_state(b"red", timeout=0.2)
    domain.run(0.4)
    assert ("failed", "timed out") == b.problem(number)
    assert domain.now < domain.engines["E"].processes.deadline


def test_every_request_has_one_answer_when_the_node_loses_the_group() -> None:
    domain, a, _ = _two(state_phases="n")
    numbers = [a.propose_state(b"%d" % number, timeout=60.0) for number in range(3)]
    domain.cut("D", *[name for name in domain.names if name != "D"])
    domain.run(5.0)
    domain.heal()
    domain.run(3.0)
    assert [("unknown", "lost")] * 3 == [a.problem(number) for number in numbers]


# --- The text says what is so -------------------------------------------------------------------------------


def _text(application: Application, number: int) -> str:
    answer = application.answer(number)
    assert isinstance(answer, Problem)
    assert "timed out" == answer.code
    return answer.text


def _asked(application: Application) -> dict[str, int]:
    """Everything that needs the name server, each for half a second."""
    return {
        "join": application.join("new", timeout=0.5, wait=0.0),
        "subscribe": application.subscribe("new", timeout=0.5, wait=0.0),
        "groups": application.ask(GroupsAsk, 0.5),
        "watch groups": application.subscribe("_groups", timeout=0.5, wait=0.0),
        "send": application.ask(SubmitOutside, "new", (b"x",), 0.5),
        "why": application.ask(WhyAsk, "new", 0.5),
        "look up": application.ask(LookUpAsk, "new", False, 0.5),
    }


def test_where_the_domain_is_not_formed_yet_it_is_said_and_who_is_missing() -> None:
    """Nobody can approve anything there, so "not approved in time" would say nothing."""
    domain = Applications(boots="AB")
    a = domain.opened("A")
    asked = _asked(a)
    domain.run(1.0)
    why = "the domain is not formed yet: waits for C"
    assert dict.fromkeys(asked, True) == {what: _text(a, number).startswith(why) for what, number in asked.items()}
    assert f"{why}; it was withdrawn" == _text(a, asked["join"])
    assert why == _text(a, asked["groups"])


def test_where_no_name_server_was_heard_yet_it_is_said() -> None:
    """D is no voter and does not know what the domain lacks."""
    domain = Applications(boots="AD")
    d = domain.opened("D")
    asked = _asked(d)
    domain.run(1.0)
    assert "no name server answers; it was withdrawn" == _text(d, asked["join"])
    assert "no name server answers" == _text(d, asked["groups"])


def test_a_suspended_node_says_so_and_since_when_and_what_it_lacks() -> None:
    domain, d, _ = _two()
    (leader,) = domain.leaders
    a = domain.opened(leader)
    others = [name for name in "ABC" if name != leader]
    domain.kill(*others)
    domain.run(5.0)
    asked = _asked(a)
    domain.run(1.0)
    lacks = f"no majority of voters; needs {' or '.join(others)}"
    for what, number in asked.items():
        assert re.match(rf"{leader} has been suspended for \d\.\d s: {lacks}", _text(a, number)), what
    number = d.propose_state(b"red", timeout=0.5)
    sync = d.ask(CatchUpAsk, d.member, 0.5)
    domain.run(1.0)
    since = r"D has been suspended for \d\.\d s: no name server answers"
    assert ("unknown", "timed out") == d.problem(number)
    assert re.fullmatch(f"{since}; its outcome can be asked for later", _text(d, number))
    assert re.fullmatch(since, _text(d, sync))


def test_a_join_that_was_proposed_by_a_node_that_is_suspended_says_so() -> None:
    """K1: it may be approved still."""
    domain, _, _ = _two(join_phases="n")
    late = domain.opened("E")
    number = late.join(name="late", timeout=3.0, wait=0.2)
    domain.cut("E", *[name for name in domain.names if name != "E"])
    domain.run(3.5)
    assert ("unknown", "timed out") == late.problem(number)
    text = "E has been suspended for .* s: no name server answers; if it is approved, this node leaves the group for it"
    assert re.fullmatch(text, _text(late, number))


def test_where_the_domain_is_well_the_text_speaks_of_the_group() -> None:
    domain, _, _ = _two(join_phases="n")
    late = domain.opened("E")
    number = late.join(name="late", timeout=0.5, wait=1.0)
    assert "not approved in time; it was withdrawn" == _text(late, number)
