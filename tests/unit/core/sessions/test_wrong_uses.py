"""Whatever a program sends: a clear word, no state changed, and the daemon goes on (X2)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from groupsvc.wire import client_messages as m
from groupsvc.wire.limits import (
    MEMBERS_PER_SESSION_MAX,
    OUTSTANDING_MAX,
    PAYLOAD_BYTES_MAX,
    PROVIDER_DATA_BYTES_MAX,
    REASON_CHARS_MAX,
    REQUESTS_WAITING_MAX,
    VOTE_MESSAGES_BYTES_MAX,
)
from groupsvcd.core.sessions import session as session_module
from groupsvcd.core.sessions import sessions as sessions_module

from .applications import Application, Applications

LARGE = b"x" * (PAYLOAD_BYTES_MAX + 1)

WRONG: dict[str, tuple[type[m.ClientRequest], tuple[Any, ...], str]] = {
    "no name": (m.JoinAsk, ("", "", b"", {}, None, 5.0), "usage"),
    "a name with a space": (m.JoinAsk, ("a b", "", b"", {}, None, 5.0), "usage"),
    "a long name": (m.JoinAsk, ("x" * 201, "", b"", {}, None, 5.0), "usage"),
    "a name of the service": (m.JoinAsk, ("_hosts", "", b"", {}, None, 5.0), "usage"),
    "a reserved name": (m.JoinAsk, ("_mine", "", b"", {}, None, 5.0), "usage"),
    "a long provider name": (m.JoinAsk, ("db", "x" * 201, b"", {}, None, 5.0), "usage"),
    "large data": (m.JoinAsk, ("db", "y", b"x" * (PROVIDER_DATA_BYTES_MAX + 1), {}, None, 5.0), "too large"),
    "a bad name to watch": (m.SubscribeAsk, ("\u00fc", 0.0, 5.0), "usage"),
    "a bad name to ask": (m.WhyAsk, ("a b", 5.0), "usage"),
    "a large state": (m.ChangeStateAsk, (1, -1, -1.0, False, 5.0, LARGE, -1), "too large"),
    "a version that is none": (m.ChangeStateAsk, (1, -1, -1.0, False, 5.0, b"", -2), "usage"),
    "too few phases": (m.ChangeStateAsk, (1, -2, -1.0, False, 5.0, b"", -1), "usage"),
    "too many phases": (m.ChangeStateAsk, (1, 1001, -1.0, False, 5.0, b"", -1), "usage"),
    "no time limit": (m.ChangeStateAsk, (1, -1, math.nan, False, 5.0, b"", -1), "usage"),
    "an endless time limit": (m.ChangeStateAsk, (1, -1, math.inf, False, 5.0, b"", -1), "usage"),
    "a negative time limit": (m.SendAsk, (1, -1, -0.5, False, 5.0, b""), "usage"),
    "a large message by ballot": (m.SendAsk, (1, -1, -1.0, False, 5.0, LARGE), "too large"),
    "nobody to expel": (m.ExpelAsk, (1, -1, -1.0, False, 5.0, (), ""), "usage"),
    "a long reason": (m.ExpelAsk, (1, -1, -1.0, False, 5.0, (("D", 1, 1),), "x" * (REASON_CHARS_MAX + 1)), "usage"),
    "no message": (m.Multicast, (1, ()), "usage"),
    "a large message": (m.Multicast, (1, (LARGE,)), "too large"),
    "many messages": (m.Multicast, (1, (b"",) * (OUTSTANDING_MAX + 1)), "usage"),
    "a large message from outside": (m.SubmitOutside, ("db", (LARGE,), 5.0), "too large"),
    "from outside to nowhere": (m.SubmitOutside, ("a b", (b"",), 5.0), "usage"),
    "a large vote": (m.CastVote, (1, 1, 1, "approve", LARGE), "too large"),
    "a long word with a vote": (
        m.CastVote,
        (1, 1, 1, "approve", None, b"x" * (VOTE_MESSAGES_BYTES_MAX + 1)),
        "too large",
    ),
}

ABOUT_A_MEMBER: dict[str, tuple[type[m.ClientRequest], tuple[Any, ...]]] = {
    "leave": (m.LeaveAsk, (0, 5.0)),
    "goodbye": (m.GoodbyeAsk, ()),
    "state": (m.ChangeStateAsk, (-1, -1.0, False, 5.0, b"", -1)),
    "send": (m.SendAsk, (-1, -1.0, False, 5.0, b"")),
    "expel": (m.ExpelAsk, (-1, -1.0, False, 5.0, (("D", 1, 1),), "")),
    "attributes": (m.ChangeAttributesAsk, (-1, -1.0, False, 5.0, {"time_limit": 5.0})),
    "vote": (m.CastVote, (1, 1, "approve")),
    "multicast": (m.Multicast, ((b"x",),)),
    "catch up": (m.CatchUpAsk, (5.0,)),
    "outcome": (m.OutcomeAsk, (("D", 1, 1),)),
    "overrun": (m.Overrun, ()),
}


@pytest.fixture(scope="module")
def scene() -> tuple[Applications, Application, Application]:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("D")
    a.join(name="a")
    b.join(name="b")
    return domain, a, b


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_on_the_face_of_it_is_told_and_changes_nothing(
    scene: tuple[Applications, Application, Application], name: str
) -> None:
    domain, a, _ = scene
    kind, arguments, code = WRONG[name]
    before = domain.engines["D"].processes.get("db").group.snapshot()  # type: ignore[union-attr]
    assert ("usage", code) == a.problem(a.ask(kind, *arguments))
    domain.run(0.05)
    assert before == domain.engines["D"].processes.get("db").group.snapshot()  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ABOUT_A_MEMBER)
def test_a_member_of_another_session_or_of_nobody_is_no_member(
    scene: tuple[Applications, Application, Application], name: str
) -> None:
    domain, a, b = scene
    kind, arguments = ABOUT_A_MEMBER[name]
    before = domain.engines["D"].processes.get("db").group.snapshot()  # type: ignore[union-attr]
    for member in (b.member, 0, -1, 10**9):
        assert ("failed", "not a member") == a.problem(a.ask(kind, member, *arguments))
    domain.run(0.05)
    assert before == domain.engines["D"].processes.get("db").group.snapshot()  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sorted(ABOUT_A_MEMBER.keys() - {"goodbye", "catch up"}))
def test_a_subscription_does_nothing_that_only_a_provider_may(name: str) -> None:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join()
    b.subscribe()
    kind, arguments = ABOUT_A_MEMBER[name]
    assert ("usage", "usage") == b.problem(b.ask(kind, b.member, *arguments))


def test_before_a_session_is_open_nothing_is_done_in_groups() -> None:
    domain = Applications()
    a = Application(domain, "D")
    a.connect()
    for kind, arguments, _ in WRONG.values():
        assert ("usage", "usage") == a.problem(a.ask(kind, *arguments))
    assert ("usage", "usage") == a.problem(a.ask(m.CloseSession))
    assert ("usage", "usage") == a.problem(a.ask(m.SessionAlive, 0, True))
    assert ("failed", "lost") == a.problem(a.ask(m.ResumeSession, 1, b"", 0))
    a.open()


def test_a_connection_has_one_session() -> None:
    domain = Applications()
    a = domain.opened("D")
    assert ("usage", "usage") == a.problem(a.ask(m.OpenSession, "again"))
    assert a.session is not None
    again = a.ask(m.ResumeSession, a.session.session, a.session.secret, 0)
    assert ("usage", "usage") == a.problem(again)
    a.join()
    assert a.member


@pytest.mark.parametrize("seen", [-1, 10**9])
def test_who_counts_what_it_was_not_told_is_told_so(seen: int) -> None:
    domain = Applications()
    a = domain.opened("D")
    a.join()
    assert ("usage", "usage") == a.problem(a.ask(m.SessionAlive, seen, True))
    domain.run(1.0)
    a.multicast(b"still here")
    domain.run(0.1)
    assert [b"still here"] == a.payloads


@pytest.mark.parametrize("timeout", [-1.0, 0.0, math.nan, math.inf, 1e300])
def test_an_absurd_timeout_is_no_reason_to_break(timeout: float) -> None:
    domain = Applications()
    a = domain.opened("D")
    a.join()
    number = a.propose_state(b"red", timeout=timeout)
    domain.run(0.5)
    assert 1 == len(a.answers(number))


def test_limits_are_named_when_they_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules with smaller numbers."""
    assert (10_000, 10_000) == (MEMBERS_PER_SESSION_MAX, REQUESTS_WAITING_MAX)
    monkeypatch.setattr(session_module, "MEMBERS_PER_SESSION_MAX", 2)
    monkeypatch.setattr(session_module, "REQUESTS_WAITING_MAX", 3)
    monkeypatch.setattr(sessions_module, "SESSIONS_MAX", 2)
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("D")
    a.join(name="1")
    a.join(name="2", state_phases="one")
    for number in (a.join(name="3"), a.subscribe()):
        problem = a.answer(number)
        assert isinstance(problem, m.Problem)
        assert ("failed", "full") == (problem.family, problem.code)
        assert "MEMBERS_PER_SESSION_MAX" in problem.text
    domain.cut("D", *[name for name in domain.names if name != "D"])
    numbers = [b.ask(m.SubscribeAsk, f"group-{number}", 0.0, 5.0) for number in range(2)]
    domain.run(0.1)
    numbers.append(b.ask(m.WhyAsk, "db-2", 5.0))
    fourth = b.answer(b.ask(m.WhyAsk, "db-3", 5.0))
    assert isinstance(fourth, m.Problem)
    assert "REQUESTS_WAITING_MAX" in fourth.text
    third = Application(domain, "D")
    third.connect()
    problem = third.answer(third.ask(m.OpenSession, "one too many"))
    assert isinstance(problem, m.Problem)
    assert "SESSIONS_MAX" in problem.text


@pytest.mark.parametrize("name,known_as", [("anna", "as 'anna'"), ("", "without a name")])
def test_a_second_join_under_the_same_name_is_refused_in_words_that_fit(name: str, known_as: str) -> None:
    domain = Applications()
    a = domain.opened("D")
    a.join(name=name)
    problem = a.answer(a.join(name=name))
    assert isinstance(problem, m.Problem)
    expected = f"this session joins 'db' {known_as} already; give the second one another name"
    assert ("usage", expected) == (problem.family, problem.text)
