"""A join that is ordered when nobody is there any more for whom it was asked: no ghosts (GS-30)."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import Done, JoinedAs, SubmitOutside
from groupsvc.wire.notices import Left, ProviderId
from groupsvcd.core.events import LocalCall
from groupsvcd.core.peer_messages import Leave, Submit

from .applications import Application, Applications


def _five(*outside: str) -> tuple[Applications, Application, Application]:
    """D, E and F serve, G follows; one application watches on D, one is on G. These nodes submitted from outside."""
    domain = Applications()
    for node in outside:
        domain.opened("E").join()
        stranger = domain.opened(node)
        number = stranger.ask(SubmitOutside, "db", (b"from outside",), 5.0)
        domain.run(0.5)
        assert isinstance(stranger.answer(number), Done)
    a, *_, g = [domain.opened(node) for node in "DEFG"]
    for application in (a, *_, g):
        application.join()
    domain.run(1.0)
    domain.forget_the_past()
    return domain, a, g


def _lose_the_group(domain: Applications, node: str) -> None:
    """The node has missed too much, and so have its processes."""
    processes = domain.engines[node].processes
    local = processes.get("db")
    assert local is not None
    domain.step(node, LocalCall(lambda: processes.lost_entries(local)))


def _listed(application: Application) -> set[ProviderId]:
    """Whom it sees."""
    local = application.domain.engines[application.node].processes.get("db")
    assert local is not None
    return set(local.group.providers)


def test_a_join_that_comes_after_its_node_has_left_lets_nobody_in() -> None:
    """G loses the group while a join of it is on its way, by another way than its leave: seed 310019."""
    domain, a, _ = _five()
    late = domain.opened("G")
    domain.lose(Submit, "G>D G>E G>F")
    number = late.join(wait=0.05)
    [join] = domain.messages(Submit, "G", "D")
    _lose_the_group(domain, "G")
    domain.run(1.0)
    assert ["none"] == domain.roles("G", "db")
    assert ("unknown", "lost") == late.problem(number)
    domain.heal()
    domain.frame("G", "D", join)
    domain.run(3.0)
    assert {"D", "E", "F"} == {provider[0] for provider in _listed(a)}


def test_a_join_that_is_sent_on_after_its_node_came_back_lets_nobody_stay() -> None:
    """G had submitted from outside, so what is outstanding is sent until it is ordered, whoever has lost the group."""
    domain, a, _ = _five("G")
    late = domain.opened("G")
    domain.lose(Submit, "G>D G>E G>F")
    lost = late.join(wait=0.05)
    _lose_the_group(domain, "G")
    domain.run(1.0)
    assert ["none"] == domain.roles("G", "db")
    assert ("unknown", "lost") == late.problem(lost)
    newcomer = domain.opened("G")
    number = newcomer.join(timeout=30.0, wait=1.0)
    domain.heal()
    domain.run(3.0)
    joined = newcomer.answer(number)
    assert isinstance(joined, JoinedAs)
    assert [joined.provider] == [provider for provider in _listed(a) if provider[0] == "G"]


def test_a_join_of_who_lost_the_group_lets_nobody_stay_if_its_node_goes_on_for_another() -> None:
    """D leads and stays. Meanwhile nothing was ordered, and the join was not lost with its process."""
    domain, a, g = _five()
    late = domain.opened("D")
    domain.lose(Submit, "D>D")
    lost = late.join(wait=0.0)
    _lose_the_group(domain, "D")
    newcomer = domain.opened("D")
    number = newcomer.join(timeout=30.0, wait=0.1)
    domain.heal()
    domain.run(3.0)
    assert ("unknown", "lost") == late.problem(lost)
    joined = newcomer.answer(number)
    assert isinstance(joined, JoinedAs)
    assert [joined.provider] == [provider for provider in _listed(g) if provider[0] == "D"]
    assert a.kinds(JoinedAs)[0].provider in [one for left in g.notices(Left) for one in left.providers]


@pytest.mark.parametrize("is_voted_on", [True, False])
def test_a_join_that_goes_with_its_node_has_failed_and_is_not_called_late(is_voted_on: bool) -> None:
    """K1: G is taken out, for a leave that it said in a former life; what it waits for did not happen."""
    domain = Applications()
    applications = [domain.opened(node) for node in "DEFG"]
    for application in applications:
        application.join(join_phases="n", wait=0.3)
        for voter in applications[: applications.index(application)]:
            voter.vote("approve")
        domain.run(0.3)
    if not is_voted_on:
        domain.opened("E").join(wait=0.3)  # has its turn first
    late = domain.opened("G")
    number = late.join(timeout=60.0)
    domain.frame("G", "D", Leave(domain.id("db"), domain.part("G", "db").key))
    domain.run(1.0)
    assert ("failed", "refused") == late.problem(number)
