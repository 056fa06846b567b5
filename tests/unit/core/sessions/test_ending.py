"""The last Left closes a group: nobody gets into what is left of it, and its name is free at once."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import (
    Done,
    GoodbyeAsk,
    JoinedAs,
    LeaveAsk,
    MemberLost,
    OutcomeIs,
    Problem,
    SubmitOutside,
)
from groupsvc.wire.notices import Joined, Message
from tests.unit.core.sessions.applications import Application, Applications


def _ids(domain: Applications, name: str = "db") -> set[int]:
    """Of the groups of this name that any node carries."""
    return {status.id for node in domain.engines if (status := domain.about(node, name)) is not None}


def _joined_alone(application: Application, number: int) -> bool:
    answer = application.answer(number)
    assert isinstance(answer, JoinedAs), answer
    return [answer.provider] == [provider.id for provider in answer.view.providers]


@pytest.mark.parametrize("milliseconds", range(24))
@pytest.mark.parametrize("node", ["D", "E", "F", "G"])
def test_who_joins_while_a_group_ends_is_in_before_its_end_or_in_another_one(node: str, milliseconds: int) -> None:
    """DESIGN 7. D leads, E and F serve, F only watches. Whenever somebody comes, on whichever node."""
    domain = Applications()
    a, b, watcher, late = domain.opened("D"), domain.opened("E"), domain.opened("F"), domain.opened(node)
    a.join()
    watcher.subscribe()
    b.join()
    domain.run(1.0)
    (old,) = _ids(domain)
    a.ask(LeaveAsk, a.member, 0, 5.0)
    b.ask(LeaveAsk, b.member, 0, 5.0)
    domain.run(milliseconds / 1000)
    number = late.join(wait=2.0)
    (new,) = _ids(domain)
    is_dissolved = any(lost.dissolved for lost in watcher.kinds(MemberLost))
    assert is_dissolved == (old != new), "who watched was told of the end of a group that goes on, or was not"
    if is_dissolved:
        assert _joined_alone(late, number)
        assert 1 == len(late.notices(Joined))
    domain.run(3.0)
    assert {new} == _ids(domain)


def test_the_group_is_dropped_at_once_and_without_another_view() -> None:
    domain = Applications()
    a, *watchers = (domain.opened(node) for node in "DEF")
    a.join()
    for one in watchers:
        one.subscribe()
    domain.run(1.0)
    domain.forget_the_past()
    a.ask(GoodbyeAsk, a.member)
    domain.run(0.02)
    assert ["none", "none", "none"] == domain.roles("DEF", "db")
    assert [] == [line for line in domain.journal if line.op == "granted"]


def test_a_node_that_is_cut_off_does_not_keep_the_name_for_long() -> None:
    domain = Applications()
    a, *watchers = (domain.opened(node) for node in "DEFG")
    a.join()
    for one in watchers:
        one.subscribe()
    domain.run(1.0)
    domain.cut("G", "D", "E", "F")
    a.ask(GoodbyeAsk, a.member)
    domain.run(0.5)
    assert [1, 1, 0] == [len(one.kinds(MemberLost)) for one in watchers]
    assert isinstance(a.answer(a.join(timeout=5.0, wait=4.0)), JoinedAs)
    domain.heal()
    domain.run(8.0)
    assert [1, 1, 1] == [len(one.kinds(MemberLost)) for one in watchers]
    assert 1 == len(_ids(domain))


def test_a_leader_that_dies_in_between_leaves_the_end_to_the_next() -> None:
    domain = Applications()
    a, b, c = (domain.opened(node) for node in "DEF")
    for one in (a, b, c):
        one.join()
    domain.run(1.0)
    for one in (a, b, c):
        one.ask(GoodbyeAsk, one.member)
    domain.run(0.004)
    domain.die("D")
    domain.run(3.0)
    assert set() == _ids(domain)
    assert isinstance(b.answer(b.join(wait=1.0)), JoinedAs)


def test_a_join_that_was_on_its_way_is_for_the_next_group() -> None:
    """F carries the group already; its join is ordered behind the last Left."""
    domain = Applications()
    a, watcher, late = domain.opened("D"), domain.opened("F"), domain.opened("F")
    a.join()
    watcher.subscribe()
    domain.run(1.0)
    (old,) = _ids(domain)
    a.ask(GoodbyeAsk, a.member)
    number = late.join(wait=2.0)
    assert _joined_alone(late, number)
    assert {old} != _ids(domain)


def test_who_wants_no_new_group_is_told_that_there_is_none() -> None:
    domain = Applications()
    a, watcher, late = domain.opened("D"), domain.opened("F"), domain.opened("F")
    a.join()
    watcher.subscribe()
    domain.run(1.0)
    a.ask(GoodbyeAsk, a.member)
    number = late.join(wait=2.0, create=False)
    assert ("failed", "no such group") == late.problem(number)


def test_what_is_sent_from_outside_meanwhile_is_not_heard_by_anybody() -> None:
    domain = Applications()
    a, outside = domain.opened("D"), domain.opened("G")
    a.join()
    domain.run(1.0)
    a.ask(GoodbyeAsk, a.member)
    domain.run(0.002)
    number = outside.ask(SubmitOutside, "db", (b"too late",), 5.0)
    again = a.join(wait=2.0)
    domain.run(5.0)
    assert isinstance(a.answer(again), JoinedAs)
    assert isinstance(outside.answer(number), Done | Problem)
    assert [] == a.notices(Message)


def test_a_proposal_behind_the_end_certainly_did_not_happen() -> None:
    domain = Applications()
    a = domain.opened("D")
    a.join()
    a.ask(GoodbyeAsk, a.member)
    number = a.propose_state(b"red")
    domain.run(1.0)
    answer = a.answer(number)
    assert not isinstance(answer, OutcomeIs)
    assert set() == _ids(domain)


def test_nobody_comes_back_to_preside_over_a_group_that_has_ended() -> None:
    """D has the only disk, and waits for F, which is cut off: it has no heir, and needs none."""
    domain = Applications(of={"F": {"durable": False}})
    a, watcher = domain.opened("D"), domain.opened("F")
    a.join(durable=True)
    watcher.subscribe()
    domain.run(1.0)
    domain.cut("D", "F")
    a.ask(GoodbyeAsk, a.member)
    for _ in range(18):
        domain.run(0.1)
        assert "leader" == domain.roles("D", "db")[0]
        assert domain.engines["D"].processes.get("db") is None
    domain.run(1.0)
    assert "none" == domain.roles("D", "db")[0]
