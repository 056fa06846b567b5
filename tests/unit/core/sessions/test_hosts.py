"""The group of the nodes that are up, and the table of groups (GS-37)."""

from __future__ import annotations

from groupsvc.wire.client_messages import GoodbyeAsk, GroupsAre, GroupsAsk, Subscribed
from groupsvc.wire.notices import Joined, Left
from groupsvcd.core.peer_messages import Goodbye

from .applications import Applications


def test_hosts_are_the_nodes_that_are_up_and_every_node_shows_the_same() -> None:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("A")
    answers = [one.answer(one.subscribe("_hosts")) for one in (a, b)]
    views = [answer.view for answer in answers if isinstance(answer, Subscribed)]
    assert list("ABCDEFG") == [provider.id[0] for provider in views[0].providers]
    assert [provider.id for provider in views[0].providers] == [provider.id for provider in views[1].providers]
    assert views[0].seq == views[1].seq


def test_a_node_that_fails_or_comes_is_told_with_the_version_of_the_list() -> None:
    domain = Applications()
    a = domain.opened("D")
    a.subscribe("_hosts")
    old = domain.node("G")
    domain.die("G")
    domain.run(3.0)
    assert [((*old, 0),)] == [left.providers for left in a.notices(Left)]
    assert ["node_failure"] == [left.cause for left in a.notices(Left)]
    domain.boot("G")
    domain.run(3.0)
    assert [(*domain.node("G"), 0)] == [joined.providers[0].id for joined in a.notices(Joined)]
    seqs = [one.seq for one in (*a.notices(Left), *a.notices(Joined))]
    assert sorted(set(seqs)) == seqs


def test_a_node_that_says_goodbye_has_left() -> None:
    domain = Applications()
    a = domain.opened("D")
    a.subscribe("_hosts")
    for name in "AD":
        domain.frame("G", name, Goodbye())
    domain.kill("G")
    domain.run(1.0)
    assert [("leave", "G")] == [(left.cause, left.providers[0][0]) for left in a.notices(Left)]


def test_who_watches_hosts_can_stop() -> None:
    domain = Applications()
    a = domain.opened("D")
    a.subscribe("_hosts")
    a.ask(GoodbyeAsk, a.member)
    told = len(a.told)
    domain.die("G")
    domain.run(3.0)
    assert told == len(a.told)


def test_groups_are_listed_with_what_they_are() -> None:
    domain = Applications()
    a = domain.opened("D")
    a.join("one", state_phases="n")
    a.join("two")
    number = a.ask(GroupsAsk, 5.0)
    domain.run(0.5)
    answer = a.answer(number)
    assert isinstance(answer, GroupsAre)
    assert ["one", "two"] == sorted(line.name for line in answer.groups)
    one = next(line for line in answer.groups if line.name == "one")
    assert ("D", ("D",), {"state_phases": "n"}) == (one.leader, one.servers, one.attributes)
