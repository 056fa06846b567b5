"""The group of the nodes that are up, and the table of groups (GS-37)."""

from __future__ import annotations

from groupsvc.wire.client_messages import GoodbyeAsk, GroupsAre, GroupsAsk, LookUpAsk, Subscribed
from groupsvc.wire.notices import Joined, Left
from groupsvcd.core.peer_messages import Ask, Goodbye
from groupsvcd.core.sessions.group_names import LOOK_EVERY_S

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


# --- The group of all groups ---


def test_groups_can_be_watched_as_they_come_and_go() -> None:
    """Every node shows the same groups under the same number."""
    domain = Applications()
    a, watcher, other = domain.opened("D"), domain.opened("E"), domain.opened("B")
    a.join("first")
    answer = watcher.answer(watcher.subscribe("_groups"))
    assert isinstance(answer, Subscribed)
    assert ["first"] == [provider.name for provider in answer.view.providers]
    a.join("second")
    domain.run(2 * LOOK_EVERY_S)
    (joined,) = watcher.notices(Joined)
    assert ["second"] == [provider.name for provider in joined.providers]
    a.ask(GoodbyeAsk, a.member)
    domain.run(3.0 + 2 * LOOK_EVERY_S)
    (left,) = watcher.notices(Left)
    assert [joined.providers[0].id] == list(left.providers)
    late = other.answer(other.subscribe("_groups"))
    assert isinstance(late, Subscribed)
    assert ["first"] == [provider.name for provider in late.view.providers]
    assert late.view.seq >= left.seq > joined.seq > answer.view.seq


def test_the_directory_is_asked_only_while_somebody_watches() -> None:
    domain = Applications()
    watcher, second = domain.opened("E"), domain.opened("E")
    watcher.subscribe("_groups")
    second.subscribe("_groups")
    domain.forget_the_past()
    domain.run(5 * LOOK_EVERY_S)
    asked = len([one for one in domain.messages(Ask, "E", "A") if one.what == "groups"])
    assert 4 <= asked <= 6
    watcher.ask(GoodbyeAsk, watcher.member)
    second.end()
    domain.run(LOOK_EVERY_S)
    domain.forget_the_past()
    domain.run(5 * LOOK_EVERY_S)
    assert [] == [one for one in domain.messages(Ask, "E", "A") if one.what == "groups"]


def test_who_subscribes_is_told_what_is_true_after_he_asked() -> None:
    """A group whose forming was answered before the question is in the answer, though others asked a moment ago."""
    domain = Applications()
    first, late = domain.opened("E"), domain.opened("E")
    first.subscribe("_groups")
    number = domain.call("D", lambda n: LookUpAsk(n, "new", True, 5.0))
    while number not in domain.replies:
        domain.run(0.001)
    answer = late.answer(late.subscribe("_groups"))
    assert isinstance(answer, Subscribed)
    assert ["new"] == [provider.name for provider in answer.view.providers]
