"""Every request of a program is said to need a right, or none; and where one is needed, who has none is refused.

A request of a new kind is red here until it stands in a table of ``rights``, and, if it needs a right, among the
examples; and so is one whose gate is taken away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest

from groupsvc.wire import client_messages as m
from groupsvc.wire.enrolment_messages import NODE_KEY_PREFIX, NodeKeysAsk, RevokeAsk, TokenAsk
from groupsvcd.core.access import OPEN
from groupsvcd.core.events import ClientCame
from groupsvcd.core.invariants import InvariantBroken
from groupsvcd.core.sessions.rights import NEEDS, NEEDS_NONE, missing_right

from .applications import Application
from .test_rights import ALICE, ALICE_ALL, BOB, Users, allowing, denied

REST = (1, -1.0, False, 5.0)
"""Of a proposal: phases, time limit, whether it fails if others wait, until when."""

Example = tuple[str, Callable[[int], tuple[Any, ...]]]

IN_A_SESSION: dict[type[m.ClientRequest], Example] = {
    m.SubscribeAsk: ("subscribe", lambda member: ("other", 0.0, 5.0)),
    m.WhyAsk: ("subscribe", lambda member: ("db", 5.0)),
    m.SubmitOutside: ("send", lambda member: ("db", (b"x",), 5.0)),
    m.JoinAsk: ("join", lambda member: ("other", "", b"", {}, None, 5.0)),
    m.Multicast: ("send", lambda member: (member, (b"x",))),
    m.SendAsk: ("send", lambda member: (member, *REST, b"x")),
    m.ChangeStateAsk: ("propose", lambda member: (member, *REST, b"x", -1)),
    m.ChangeAttributesAsk: ("propose", lambda member: (member, *REST, {"time_limit": 1.0})),
    m.ExpelAsk: ("expel", lambda member: (member, *REST, (("D", 1, 1),), "")),
    m.CastVote: ("propose", lambda member: (member, 1, 1, "approve", b"x")),
}
WITHOUT_A_SESSION: dict[type[m.ClientRequest], Example] = {
    m.LookUpAsk: ("create", lambda member: ("other", True, 5.0)),
    m.ConfigAsk: ("administer", lambda member: (NODE_KEY_PREFIX + "new", 5.0)),
    m.ConfigSet: ("administer", lambda member: ("key", "value", 0, 5.0)),
    m.HandOverAsk: ("administer", lambda member: ("B", 5.0)),
    m.DrainAsk: ("administer", lambda member: (5.0,)),
    m.SurveyAsk: ("administer", lambda member: (5.0,)),
    TokenAsk: ("administer", lambda member: ("new", "t" * 40, 60.0, 5.0)),
    RevokeAsk: ("administer", lambda member: ("new", 5.0)),
    NodeKeysAsk: ("administer", lambda member: ()),
}
EXAMPLES = IN_A_SESSION | WITHOUT_A_SESSION


def name_of(kind: object) -> str:
    return getattr(kind, "__name__", "")


def test_every_request_stands_in_one_of_the_tables() -> None:
    assert frozenset(get_args(m.AnyClientRequest)) == NEEDS.keys() | NEEDS_NONE.keys()
    assert not NEEDS.keys() & NEEDS_NONE.keys()
    assert NEEDS.keys() == EXAMPLES.keys()


def test_what_stands_in_none_is_a_mistake_of_ours_and_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(NEEDS, m.DrainAsk)
    with pytest.raises(InvariantBroken, match="which right a DrainAsk needs"):
        missing_right(m.DrainAsk(1, 5.0), lambda verb, group: True, lambda member: "db")


@pytest.fixture
def domain() -> Users:
    made = Users()
    made.set_access(ALICE_ALL, allowing("join"))
    return made


@pytest.mark.parametrize("kind", EXAMPLES, ids=name_of)
def test_in_a_session_who_has_no_right_is_refused(domain: Users, kind: type[m.ClientRequest]) -> None:
    alice, bob = domain.opened_by(ALICE, "D"), domain.opened_by(BOB, "E")
    alice.join()
    bob.join()
    verb, arguments = EXAMPLES[kind]
    denied(bob, bob.ask(kind, *arguments(bob.member)), verb)
    assert "" == domain.engines["E"].sessions.desk.draining


@pytest.mark.parametrize("kind", WITHOUT_A_SESSION, ids=name_of)
def test_without_a_session_who_has_no_right_is_refused(domain: Users, kind: type[m.ClientRequest]) -> None:
    domain.principal = BOB
    bob = Application(domain, "E")
    bob.connect()
    verb, arguments = WITHOUT_A_SESSION[kind]
    denied(bob, bob.ask(kind, *arguments(0)), verb)
    assert "" == domain.engines["E"].sessions.desk.draining


@pytest.mark.parametrize("kind", WITHOUT_A_SESSION, ids=name_of)
def test_without_a_session_who_has_the_right_is_not(domain: Users, kind: type[m.ClientRequest]) -> None:
    domain.principal = ALICE
    alice = Application(domain, "E")
    alice.connect()
    assert not is_denied(domain, alice, kind)


@pytest.mark.parametrize("kind", WITHOUT_A_SESSION, ids=name_of)
def test_without_rules_only_tokens_are_for_the_operator(domain: Users, kind: type[m.ClientRequest]) -> None:
    for node in "DEF":
        domain.engines[node].sessions.set_access(OPEN)
    domain.principal = BOB
    bob = Application(domain, "E")
    bob.connect()
    assert (kind in (TokenAsk, RevokeAsk, NodeKeysAsk)) == is_denied(domain, bob, kind)


def is_denied(domain: Users, who: Application, kind: type[m.ClientRequest]) -> bool:
    number = who.ask(kind, *WITHOUT_A_SESSION[kind][1](0))
    domain.run(0.5)
    return any(isinstance(one, m.Problem) and one.code == "permission denied" for one in who.answers(number))


def test_any_other_setting_may_be_read(domain: Users) -> None:
    bob = domain.opened_by(BOB, "E")
    number = bob.ask(m.ConfigAsk, "daemon/log_level", 5.0)
    domain.run(0.5)
    assert isinstance(bob.answer(number), m.ConfigValue)


def test_statistics_name_only_groups_that_the_asker_may_see(domain: Users) -> None:
    """The same groups that ``GroupsAsk`` shows."""
    engine = domain.engines["D"]
    engine.all_statistics = lambda sees: {"by": engine.statistics(10, sees).process_groups.members_by_group}
    alice, bob = domain.opened_by(ALICE, "D"), domain.opened_by(BOB, "D")
    alice.join()
    alice.join("other")
    shown = []
    for who in (alice, bob):
        answer = who.answer(who.ask(m.StatisticsAsk))
        assert isinstance(answer, m.Statistics)
        shown.append(answer.parts["by"])
    assert [{"db": 1, "other": 1}, {"db": 1}] == shown
    domain.step("D", ClientCame(1, BOB))
    number = domain.call("D", m.StatisticsAsk)
    assert {"by": {"db": 1}} == domain.replies[number].parts  # type: ignore[attr-defined]
