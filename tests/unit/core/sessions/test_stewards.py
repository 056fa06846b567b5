"""A node keeps a durable group for the sake of its disk: no program that only tried to take part may end that."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from groupsvc.wire.client_messages import GoodbyeAsk, JoinedAs, LeaveAsk, SubscribeAsk, Subscribed, WhyAsk
from groupsvcd.core.peer_messages import Leave

from .applications import Application, Applications


def _one_disk_is_back() -> Applications:
    """D, E and F had a durable group; all were restarted at once, and only D is back, so the group waits."""
    domain = Applications()
    applications = [domain.opened(node) for node in "DEF"]
    applications[0].join(durable=True)
    for application in applications[1:]:
        application.join()
    applications[0].propose_state(b"red")
    domain.run(1.0)
    domain.die("D", "E", "F")
    domain.run(3.0)
    domain.boot("D")
    domain.run(4.0)
    return domain


def _join(impatient: Application) -> int:
    return impatient.join(create=False, timeout=0.5, wait=0.0)


def _subscribe(impatient: Application) -> int:
    return impatient.ask(SubscribeAsk, "db", 0.0, 0.5)


def _why(impatient: Application) -> int:
    return impatient.ask(WhyAsk, "db", 0.5)


@pytest.mark.parametrize("tries", [_join, _subscribe, _why])
def test_who_tries_in_vain_takes_no_disk_away(tries: Callable[[Application], int]) -> None:
    """GS-31, S1: programs that try again and again to join are just what there is after a power failure."""
    domain = _one_disk_is_back()
    impatient = domain.opened("D")
    number = tries(impatient)
    domain.run(2.0)
    assert ("failed", "timed out") == impatient.problem(number)
    domain.boot("E")
    domain.run(6.0)
    again = domain.opened("E")
    answer = again.answer(again.join(create=False, timeout=10.0, wait=6.0))
    assert isinstance(answer, JoinedAs)
    assert (b"red", 1) == (answer.view.state, answer.view.state_version)
    assert ["leader", "server"] == sorted(domain.roles("DE", "db"))


def test_who_watched_it_from_before_it_was_back_takes_no_disk_away_when_it_goes() -> None:
    """The node was to carry it anyway, whoever asked for it meanwhile."""
    domain = _one_disk_is_back()
    watcher = domain.opened("D")
    number = watcher.subscribe(timeout=20.0, wait=0.0)
    domain.boot("E")
    domain.run(8.0)
    assert isinstance(watcher.answer(number), Subscribed)
    watcher.ask(GoodbyeAsk, watcher.member)
    domain.run(3.0)
    assert ["leader", "server"] == sorted(domain.roles("DE", "db"))


def test_a_node_that_was_about_to_leave_leaves_though_somebody_tried_to_join_meanwhile() -> None:
    """The other way round: nobody needs the group on D any more, and D was killed before it was out."""
    domain = Applications()
    applications = [domain.opened(node) for node in "DEF"]
    applications[0].join(durable=True)
    for application in applications[1:]:
        application.join()
    domain.run(1.0)
    domain.lose(Leave, "D>E D>F")
    applications[0].ask(LeaveAsk, applications[0].member, 0, 5.0)
    domain.run(0.05)
    domain.die("D", "E", "F")
    domain.heal()
    domain.run(3.0)
    domain.boot("D")
    domain.run(4.0)
    impatient = domain.opened("D")
    number = _join(impatient)
    domain.run(2.0)
    assert ("failed", "timed out") == impatient.problem(number)
    domain.boot("E")
    domain.run(10.0)
    assert "none" == domain.roles("D", "db")[0]
