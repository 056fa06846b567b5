"""What who gives up, or goes, is told of its round: what the others are told, however close it was (R3)."""

from __future__ import annotations

from groupsvc.wire.client_messages import BarrierAsk, BreakAsk, ExpelAsk, GoodbyeAsk, RoundIs
from groupsvc.wire.notices import Joined, Round

from .applications import Application, Applications


def _three() -> tuple[Applications, list[Application]]:
    domain = Applications()
    applications = [domain.opened(node) for node in "DEF"]
    for application in applications:
        application.join()
    domain.run(1.0)
    return domain, applications


def _come(application: Application, *, name: str = "", timeout: float = 60.0) -> int:
    return application.ask(BarrierAsk, application.member, name, 0, "continue", b"", False, timeout)


def _round(application: Application, number: int) -> Round:
    answer = application.answer(number)
    assert isinstance(answer, RoundIs), answer
    return answer.round


def _id(application: Application) -> tuple[str, int, int]:
    mine = [one for notice in application.notices(Joined) for one in notice.providers]
    return next(one.id for one in mine if one.id[2] == application.member and one.id[0] == application.node)


def _released_without_word_to_the_last() -> tuple[Applications, list[Application], list[int]]:
    """All three have come, two know that they are released, and the node of the third has not heard of it."""
    domain, (a, b, c) = _three()
    asked = [_come(a), _come(b)]
    domain.run(0.2)
    asked.append(_come(c))
    domain.loses = lambda sender, receiver, message: receiver == "F"
    domain.run(0.1)
    assert ["released"] * 2 == [_round(one, n).end for one, n in zip((a, b), asked, strict=False)]
    assert [] == c.answers(asked[2])
    return domain, [a, b, c], asked


def test_who_says_goodbye_while_the_end_is_on_its_way_is_told_the_end() -> None:
    domain, (a, _, c), asked = _released_without_word_to_the_last()
    c.ask(GoodbyeAsk, c.member)
    domain.run(0.05)
    domain.loses = lambda sender, receiver, message: False
    domain.run(2.0)
    assert _round(a, asked[0]) == _round(c, asked[2])


def test_who_is_expelled_with_the_entry_behind_the_end_is_told_the_end() -> None:
    domain, (a, _, c), asked = _released_without_word_to_the_last()
    a.ask(ExpelAsk, a.member, 1, -1.0, False, 5.0, (_id(c),), "")
    domain.run(0.1)
    domain.loses = lambda sender, receiver, message: False
    domain.run(2.0)
    assert _round(a, asked[0]) == _round(c, asked[2])


def test_who_gives_up_and_comes_again_and_gives_up_that_too_has_not_come_the_second_time() -> None:
    """Nobody waits for it: it must neither be counted nor stand in the way of the third."""
    domain, (_, _, c) = _three()
    domain.loses = lambda sender, receiver, message: "F" in (sender, receiver)
    _come(c)
    c.ask(BreakAsk, c.member, "")
    second = _come(c)
    c.ask(BreakAsk, c.member, "")
    domain.run(0.01)
    assert ("failed", "timed out") == c.problem(second)
    third = _come(c)
    domain.run(0.2)
    assert [] == c.answers(third)
    domain.loses = lambda sender, receiver, message: False
    domain.run(1.0)
    assert ("broken", "cancelled") == (_round(c, third).end, _round(c, third).broken_by)


def test_who_comes_again_and_has_no_time_to_wait_for_the_end_before_has_not_come() -> None:
    domain, (_, _, c) = _three()
    domain.loses = lambda sender, receiver, message: "F" in (sender, receiver)
    _come(c)
    c.ask(BreakAsk, c.member, "")
    again = _come(c, timeout=0.2)
    domain.run(0.4)
    assert ("failed", "timed out") == c.problem(again)
