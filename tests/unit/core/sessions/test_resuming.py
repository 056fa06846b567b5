"""A session outlives its connections: nothing is lost, nothing is done twice, and its end is never half an end."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import CloseSession, Done, OutcomeIs, ResumeSession, StatusAsk
from groupsvc.wire.limits import GRACE_S
from groupsvc.wire.notices import Failing, Left, PhaseOpened, StateChanged
from groupsvcd.core.events import ClientFrame, ClientGone

from .applications import Application, Applications


def _two(**attributes: str) -> tuple[Applications, Application, Application]:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(**attributes)
    b.join()
    return domain, a, b


def _causes(application: Application) -> list[str]:
    return [left.cause for left in application.notices(Left)]


def test_what_was_told_while_the_connection_was_broken_is_told_once() -> None:
    """The frames of the old connection are lost; what it had not counted comes again, and nothing that it had."""
    domain, a, b = _two()
    b.multicast(b"1", b"2")
    domain.run(0.1)
    a.is_hearing = False  # what is sent from now on is lost on the way
    b.multicast(b"3")
    domain.run(0.1)
    a.hang_up()
    b.multicast(b"4")
    domain.run(0.1)
    a.resume()
    b.multicast(b"5")
    domain.run(0.1)
    assert [b"1", b"2", b"3", b"4", b"5"] == a.payloads == b.payloads


def test_requests_whose_frames_were_lost_are_done_once_and_those_that_arrived_not_again() -> None:
    """Three proposals: one arrived and was answered, one arrived and was not, one was lost on the way."""
    domain, a, b = _two()
    answered = a.propose_state(b"1")
    domain.run(0.1)
    a.is_hearing = False
    unheard = a.propose_state(b"2")
    domain.run(0.1)
    a.hang_up()
    lost = a.propose_state(b"3")
    a.resume()
    domain.run(0.1)
    assert [b"1", b"2", b"3"] == [changed.value for changed in b.notices(StateChanged)]
    for number in (answered, unheard, lost):
        assert isinstance(a.answer(number), OutcomeIs)


def test_what_comes_late_over_the_old_connection_is_no_part_of_the_session_any_more() -> None:
    """It was repeated on the new one."""
    domain, a, b = _two()
    old = a.connection
    a.resume()  # the daemon has not noticed that the old connection is broken
    request = a.said[-1]
    a.propose_state(b"red")
    domain.step("D", ClientFrame(old, a.said[-1]))  # type: ignore[arg-type]
    domain.step("D", ClientFrame(old, request))  # type: ignore[arg-type]
    domain.step("D", ClientGone(old))
    domain.run(GRACE_S + 1)
    assert [b"red"] == [changed.value for changed in b.notices(StateChanged)]
    assert [] == b.notices(Failing)


@pytest.mark.parametrize("progress", [False, True])
def test_a_wish_to_resume_that_comes_after_a_newer_one_changes_nothing(progress: bool) -> None:
    """The program knocked twice, on two connections, while its daemon was stopped; the daemon hears the second first.

    Were the first one obeyed, the session would go on on a connection that nobody has any more, or end because what it
    says was counted is no longer kept.
    """
    domain, a, b = _two()
    assert a.session is not None
    stale = ResumeSession(next(a._ids), a.session.session, a.session.secret, len(a.told))
    a.hang_up()
    a.resume()
    if progress:
        b.multicast(b"1")
        domain.run(0.1)
        a.alive()
    late = domain.new_connection(Application(domain, "D"))
    domain.step("D", ClientFrame(late, stale))
    domain.step("D", ClientGone(late))
    number = a.propose_state(b"red")
    domain.run(GRACE_S + 1)
    assert isinstance(a.answer(number), OutcomeIs)
    assert [] == b.notices(Failing)


def test_a_ballot_is_answered_after_the_session_was_resumed() -> None:
    domain, a, b = _two(state_phases="n")
    number = b.propose_state(b"red")
    domain.run(0.1)
    b.vote("approve")
    a.hang_up()
    b.hang_up()
    a.resume()
    domain.run(0.1)
    a.vote("approve")
    domain.run(0.1)
    b.resume()
    domain.run(0.1)
    answer = b.answer(number)
    assert isinstance(answer, OutcomeIs)
    assert answer.outcome.approved


def test_the_end_of_grace_is_death_and_not_before() -> None:
    """GS-33: a connection that is lost is no failure yet."""
    domain, a, b = _two()
    a.hang_up()
    domain.run(GRACE_S - 0.1)
    assert [] == b.notices(Failing)
    domain.run(0.2)
    assert ["failure"] == _causes(b)
    a.resume()
    assert a.session is None
    assert ("failed", "lost") == (a.not_counted[-1].family, a.not_counted[-1].code)  # type: ignore[union-attr]


def test_a_process_that_ends_is_dead_at_once() -> None:
    domain, a, b = _two()
    a.end()
    domain.run(0.02)
    assert ["failure"] == _causes(b)


def test_a_process_that_ends_in_its_grace_is_dead_at_once() -> None:
    domain, a, b = _two()
    connection = a.connection
    a.hang_up()
    domain.run(0.5)
    assert [] == b.notices(Failing)
    a.end(connection)
    domain.run(0.02)
    assert ["failure"] == _causes(b)
    domain.run(GRACE_S)
    assert 1 == len(b.notices(Failing))


def test_the_end_of_another_process_with_an_old_connection_changes_nothing() -> None:
    """The session goes on where it was resumed; whose pidfd that is, is watched."""
    domain, a, b = _two()
    old = a.connection
    a.hang_up()
    a.resume()
    domain.step("D", ClientGone(old, process_ended=True))
    domain.run(GRACE_S + 0.5)
    assert [] == b.notices(Failing)
    a.end()
    domain.run(0.02)
    assert ["failure"] == _causes(b)


def test_a_session_can_be_resumed_again_and_again() -> None:
    domain, a, b = _two()
    for number in range(5):
        a.hang_up()
        b.multicast(b"%d" % number)
        domain.run(GRACE_S - 0.5)
        a.resume()
        domain.run(0.2)
    assert [b"%d" % number for number in range(5)] == a.payloads
    assert [] == b.notices(Failing)


@pytest.mark.parametrize("how", ["secret", "ahead", "behind"])
def test_a_session_is_resumed_as_a_whole_or_lost(how: str) -> None:
    """Wrong secret; more counted than was ever told; less than is still kept."""
    domain, a, b = _two()
    domain.run(1.0)  # it has counted what it was told, and that was dropped
    a.hang_up()
    if how == "secret":
        a.resume(secret=b"a guess")
    else:
        a.resume(seen=len(a.told) + 1 if how == "ahead" else 0)
    problem = a.not_counted[-1]
    assert ("failed", "lost") == (problem.family, problem.code)  # type: ignore[union-attr]
    domain.run(GRACE_S + 0.1)
    assert ["failure"] == _causes(b)


def test_a_new_daemon_knows_no_session_of_the_old_one() -> None:
    domain, a, b = _two()
    domain.die("D")
    a.connection = 0
    domain.boot("D")
    domain.run(3.0)
    a.resume()
    assert a.session is None
    assert "lost" == a.not_counted[-1].code  # type: ignore[union-attr]
    assert ["node_failure"] == _causes(b)


def test_a_session_that_is_closed_says_goodbye_to_all_of_it() -> None:
    domain, a, b = _two()
    number = a.ask(CloseSession)
    domain.run(0.1)
    assert isinstance(a.answer(number), Done)
    assert ["goodbye"] == _causes(b)
    assert ("usage", "usage") == a.problem(a.multicast(b"after the end"))


def test_the_whole_of_a_connection_with_a_session_is_counted() -> None:
    """What concerns no group, too: a status that was lost on the way comes again."""
    domain, a, _ = _two()
    a.is_hearing = False
    number = a.ask(StatusAsk)
    a.hang_up()
    a.resume()
    domain.run(0.1)
    assert "D" == a.answer(number).node  # type: ignore[union-attr]


def test_a_provider_in_grace_is_asked_and_its_vote_is_waited_for() -> None:
    domain, a, b = _two(state_phases="n")
    a.hang_up()
    b.propose_state(b"red")
    domain.run(0.1)
    b.vote("approve")
    domain.run(1.0)
    assert [] == b.notices(StateChanged)
    a.resume()
    assert 1 == len(a.notices(PhaseOpened))
    a.vote("approve")
    domain.run(0.1)
    assert 1 == len(b.notices(StateChanged))
