"""What a session knows is true as long as its node's lease, and it is told when that ends (K2)."""

from __future__ import annotations

from groupsvc.wire.client_messages import MemberLost, Problem, SessionNews
from groupsvc.wire.notices import Left

from .applications import Application, Applications


def _states(application: Application) -> list[str]:
    return [news.state for news in application.kinds(SessionNews)]


def _cut_off(domain: Applications, node: str) -> None:
    domain.cut(node, *[name for name in domain.names if name != node])


def test_a_session_is_never_promised_more_than_the_lease() -> None:
    domain = Applications()
    a = domain.opened("D")
    for _ in range(20):
        a.alive()
        member = domain.engines["D"].member
        assert 0 < a.good_for <= member.lease_until - domain.now
        domain.run(0.13)


def test_who_is_cut_off_is_told_suspended_before_its_lease_has_ended_for_others() -> None:
    domain = Applications()
    a = domain.opened("D")
    _cut_off(domain, "D")
    domain.run(2.0 + 0.01)
    assert ["suspended"] == _states(a)
    a.alive()
    assert 0 == a.good_for
    assert "up" == domain.engines["A"].member.nodes["D"].status
    domain.heal()
    domain.run(0.4)
    assert ["suspended", "resumed"] == _states(a)
    a.alive()
    assert a.good_for > 0


def test_who_was_declared_down_has_lost_everything_and_is_told_so() -> None:
    """And what was under way is unknown, not failed."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(state_phases="n")
    b.join()
    _cut_off(domain, "D")
    number = a.propose_state(b"red", timeout=60.0)
    domain.run(5.0)
    assert ["node_failure"] == [left.cause for left in b.notices(Left)]
    domain.heal()
    domain.run(3.0)
    assert ["suspended", "lost"] == _states(a)
    assert 1 == len(a.kinds(MemberLost))
    assert ("unknown", "lost") == a.problem(number)
    assert isinstance(a.told[-1], SessionNews)
    a.resume()
    assert isinstance(a.not_counted[-1], Problem)
    assert "lost" == a.not_counted[-1].code


def test_a_connection_whose_session_is_lost_can_have_a_new_one() -> None:
    domain = Applications()
    a = domain.opened("D")
    _cut_off(domain, "D")
    domain.run(5.0)
    domain.heal()
    domain.run(3.0)
    assert "lost" == _states(a)[-1]
    a.told.clear()
    a.said.clear()
    a.open()
    a.join()
    assert a.member
