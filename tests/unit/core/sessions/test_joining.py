"""Joining, subscribing and leaving from a session: what comes of it, and what never does."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import GoodbyeAsk, JoinedAs, LeaveAsk, MemberLost, OutcomeIs, Told
from groupsvc.wire.notices import Emptied, Joined, Left
from groupsvcd.core.groups import process_group

from .applications import Applications


def test_who_joins_gets_the_view_and_then_its_own_joined() -> None:
    """GS-32: the first event is one's own."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    one, two = a.join(name="first"), b.join(name="second", data=b"x")
    for application, number in ((a, one), (b, two)):
        answer = application.answer(number)
        assert isinstance(answer, JoinedAs)
        position = application.told.index(answer)
        following = application.told[position + 1]
        assert [answer.provider] == [provider.id for provider in following.notice.providers]  # type: ignore[union-attr]
        assert answer.view.seq == following.notice.seq  # type: ignore[union-attr]
    joined = b.answer(two)
    assert isinstance(joined, JoinedAs)
    assert ["first", "second"] == [provider.name for provider in joined.view.providers]
    assert 2 == len(a.notices(Joined))
    assert "one" == joined.attributes["join_phases"]


def test_a_vote_in_two_sessions_decides() -> None:
    """GS-24."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(state_phases="n")
    b.join()
    number = a.propose_state(b"red")
    domain.run(0.1)
    a.vote("approve")
    b.vote("approve")
    domain.run(0.1)
    answer = a.answer(number)
    assert isinstance(answer, OutcomeIs)
    assert answer.outcome.approved


def test_who_left_and_comes_back_at_once_is_in_again() -> None:
    """Its node leads, is about to leave, and stays: it need not be inserted once more."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join()
    b.join()
    a.ask(GoodbyeAsk, a.member)
    domain.run(0.005)
    for _ in range(3):
        assert isinstance(a.answer(a.join(wait=1.0)), JoinedAs)
        a.ask(GoodbyeAsk, a.member)
        domain.run(0.02)
    assert isinstance(a.answer(a.join(wait=1.0)), JoinedAs)


def test_the_only_member_can_leave_and_join_again() -> None:
    domain = Applications()
    a = domain.opened("D")
    for _ in range(5):
        assert isinstance(a.answer(a.join(wait=1.0)), JoinedAs)
        a.ask(GoodbyeAsk, a.member)


def test_a_durable_group_is_joined_again_after_all_its_nodes_were_restarted() -> None:
    """Its node carries it already: nobody has to insert it."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(durable=True)
    b.join()
    a.propose_state(b"red")
    domain.run(0.2)
    domain.die("D", "E")
    domain.run(3.0)
    domain.boot("D", "E")
    domain.run(4.0)
    again = domain.opened("D")
    answer = again.answer(again.join(create=False))
    assert isinstance(answer, JoinedAs)
    assert (b"red", 1) == (answer.view.state, answer.view.state_version)


def test_a_restarted_node_presides_over_a_durable_group_before_a_process_of_it_joins() -> None:
    """All nodes of the group were restarted; one of them leads, and the only process is elsewhere."""
    domain = Applications()
    for node in "DEF":
        domain.opened(node).join(durable=True, state_phases="n")
    domain.run(1.0)
    for nodes in ("EF", "D"):
        domain.die(*nodes)
        domain.run(5.0)
        domain.boot(*nodes)
        domain.run(4.0)
    assert "leader" in domain.roles("DEF", "db")
    late = domain.opened("G")
    assert isinstance(late.answer(late.join(create=False, timeout=20.0, wait=3.0)), JoinedAs)
    number = late.propose_state(b"red")
    domain.run(0.2)
    late.vote("approve")
    domain.run(0.2)
    assert isinstance(late.answer(number), OutcomeIs)


def test_what_only_the_service_says_of_a_group_is_not_for_applications() -> None:
    domain = Applications()
    a = domain.opened("D")
    for name in ("machine", "processes"):
        assert ("usage", "usage") == a.problem(a.join(**{name: True}))
    assert not a.member


def test_a_subscriber_is_told_that_the_group_has_dissolved_and_its_node_leaves() -> None:
    """The end of a group; the name is free then."""
    domain = Applications()
    a, watcher = domain.opened("D"), domain.opened("E")
    a.join()
    watcher.subscribe()
    member = watcher.member
    a.ask(LeaveAsk, a.member, 0, 5.0)
    domain.run(0.2)
    assert [Left, Emptied] == [type(told.notice) for told in watcher.kinds(Told)][-2:]
    assert [(member, True)] == [(lost.member, lost.dissolved) for lost in watcher.kinds(MemberLost)]
    domain.run(5.0)
    assert ["none", "none"] == domain.roles("DE", "db")
    assert isinstance(watcher.answer(watcher.join(create=True)), JoinedAs)


def test_the_node_of_who_was_refused_leaves_the_group_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """GS-07: the group is full. Nobody on the node takes part in it, and its stream is for those who do."""
    monkeypatch.setattr(process_group, "PROVIDERS_MAX", 2)
    domain = Applications()
    for node in "DE":
        domain.opened(node).join()
    late = domain.opened("F")
    assert ("failed", "full") == late.problem(late.join())
    domain.run(3.0)
    assert ["none"] == domain.roles("F", "db")
