"""Whether a group is formed is decided by who wants it formed, and by nobody else (GS-21, GS-22)."""

from __future__ import annotations

from groupsvc.wire.client_messages import JoinedAs, LookUpAsk, Problem, Subscribed
from groupsvc.wire.notices import Joined, StateChanged

from .applications import Applications


def _is_there(domain: Applications, name: str) -> bool:
    return domain.voter("A").directory.groups.named(name) is not None


def test_who_wants_to_find_a_group_that_is_not_there_is_told_so_and_none_is_formed() -> None:
    domain = Applications()
    a = domain.opened("D")
    assert ("failed", "no such group") == a.problem(a.join(create=False))
    assert ("failed", "no such group") == a.problem(a.subscribe())
    domain.run(3.0)
    assert not _is_there(domain, "db")


def test_who_wants_a_new_group_is_told_if_there_is_one() -> None:
    domain = Applications()
    a, b, c = domain.opened("D"), domain.opened("E"), domain.opened("D")
    assert isinstance(a.answer(a.join(create=True)), JoinedAs)
    assert ("failed", "group exists") == b.problem(b.join(create=True))
    assert ("failed", "group exists") == c.problem(c.join(create=True))
    assert isinstance(b.answer(b.join(create=False)), JoinedAs)


def test_of_many_who_want_a_new_group_one_gets_it() -> None:
    """On one node and on several."""
    domain = Applications()
    applications = [domain.opened(node) for node in "DDEEFF"]
    numbers = [application.join(create=True, wait=0.0) for application in applications]
    domain.run(1.0)
    answers = [application.answer(number) for application, number in zip(applications, numbers, strict=True)]
    assert 1 == sum(isinstance(answer, JoinedAs) for answer in answers)
    assert 5 == sum(isinstance(answer, Problem) and answer.code == "group exists" for answer in answers)


def test_who_waits_behind_one_that_was_turned_away_asks_for_himself() -> None:
    """One must not form it, the next may: on the same node, at the same time."""
    domain = Applications()
    a, b, c = domain.opened("D"), domain.opened("D"), domain.opened("D")
    never, may, only = a.join(create=False, wait=0), b.join(wait=0), c.join(create=True, wait=0)
    domain.run(1.0)
    assert ("failed", "no such group") == a.problem(never)
    assert isinstance(b.answer(may), JoinedAs)
    assert ("failed", "group exists") == c.problem(only)


def test_a_group_that_ends_while_somebody_is_on_his_way_is_not_formed_anew_for_him() -> None:
    """The race: E knows the leader, and before it is let in the last provider has gone."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join()
    domain.cut("D", "E")
    number = b.join(create=False, timeout=30.0, wait=0.5)
    watch = b.subscribe(timeout=30.0)
    a.end()
    domain.run(5.0)
    domain.heal()
    domain.run(5.0)
    assert ("failed", "no such group") == b.problem(number)
    assert ("failed", "no such group") == b.problem(watch)
    assert not _is_there(domain, "db")


def test_a_subscriber_can_wait_for_a_group_to_appear() -> None:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    number = b.subscribe(wait_for=5.0, timeout=10.0)
    domain.run(1.0)
    assert [] == b.answers(number)
    assert not _is_there(domain, "db")
    a.join()
    domain.run(1.0)
    assert isinstance(b.answer(number), Subscribed)
    a.propose_state(b"red")
    domain.run(0.1)
    assert [b"red"] == [changed.value for changed in b.notices(StateChanged)]


def test_a_subscriber_does_not_wait_longer_than_it_said() -> None:
    domain = Applications()
    a = domain.opened("D")
    number = a.subscribe(wait_for=1.0, timeout=10.0, wait=1.5)
    assert ("failed", "no such group") == a.problem(number)


def test_who_waits_for_a_group_waits_to_the_end() -> None:
    """The group comes a moment before the time is over: it is looked for then, whatever the rhythm of looking."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    number = a.subscribe(wait_for=1.0, timeout=10.0, wait=0.9)
    b.join(wait=0.0)
    domain.run(0.2)
    assert isinstance(a.answer(number), Subscribed)


def test_a_joiner_with_other_attributes_is_told_which_and_both_values() -> None:
    """GS-22: on another node, and on one that carries the group already."""
    domain = Applications()
    a = domain.opened("D")
    a.join(state_phases="n")
    for node in "DE":
        other = domain.opened(node)
        answer = other.answer(other.join(state_phases="one", time_limit=5.0))
        assert isinstance(answer, Problem)
        assert ("failed", "attributes mismatch") == (answer.family, answer.code)
        assert "attribute state_phases is 'n' in this group, not 'one'" in answer.text
        assert "attribute time_limit is '30.0' (by default) in this group, not '5.0'" in answer.text


def test_an_attribute_that_is_none_is_wrong_use() -> None:
    domain = Applications()
    a = domain.opened("D")
    assert ("usage", "usage") == a.problem(a.join(colour="red"))
    assert ("usage", "usage") == a.problem(a.join(time_limit=-5.0))
    assert not _is_there(domain, "db")


def test_a_group_of_a_recipe_is_a_group_like_others() -> None:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join("_lock/printer")
    b.join("_lock/printer")
    assert 2 == len(a.notices(Joined))


def test_a_session_joins_a_group_once_per_name() -> None:
    domain = Applications()
    a = domain.opened("D")
    assert isinstance(a.answer(a.join(name="one")), JoinedAs)
    assert isinstance(a.answer(a.join(name="two")), JoinedAs)
    assert ("usage", "usage") == a.problem(a.join(name="two"))


def test_a_program_that_dies_on_its_way_in_leaves_nothing_behind() -> None:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    b.join("other")
    a.join(wait=0.0)
    a.end()
    domain.run(8.0)
    assert not _is_there(domain, "db")
    assert ["none"] == domain.roles("D", "db")


def test_a_group_that_was_formed_by_hand_is_there_to_be_joined() -> None:
    """A daemon carries it, because somebody looked it up and had it formed."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.ask(LookUpAsk, "db", True, 5.0)
    domain.run(0.5)
    assert isinstance(b.answer(b.join(create=False)), JoinedAs)
    assert isinstance(a.answer(a.join(create=False)), JoinedAs)


def test_a_group_that_is_none_of_processes_cannot_be_joined_and_the_text_says_why() -> None:
    """A program inside a daemon has formed it."""
    domain = Applications()
    a = domain.opened("D")
    domain.join("D", "db")
    domain.run(0.5)
    for number in (a.join(), a.subscribe()):
        problem = a.answer(number)
        assert isinstance(problem, Problem)
        assert ("failed", "attributes mismatch") == (problem.family, problem.code)
        assert "no group of processes" in problem.text
