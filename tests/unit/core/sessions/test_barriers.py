"""Barriers through sessions, whoever leads and dies: R1 to R4 in small, one story each."""

from __future__ import annotations

import math

import pytest

from groupsvc.wire.client_messages import BarrierAsk, BreakAsk, Done, ExpelAsk, GoodbyeAsk, LeaveAsk, RoundIs, RoundPart
from groupsvc.wire.limits import BARRIER_PAYLOAD_BYTES_MAX, TIMEOUT_S_MAX
from groupsvc.wire.notices import Joined, Round
from groupsvcd.core.groups import rounds
from groupsvcd.core.peer_messages import Waits

from .applications import Application, Applications


def _three(**attributes: str) -> tuple[Applications, list[Application]]:
    domain = Applications()
    applications = [domain.opened(node) for node in "DEF"]
    for application in applications:
        application.join(**attributes)
    domain.run(1.0)
    return domain, applications


def _come(
    application: Application, payload: bytes = b"", *, name: str = "", parties: int = 0, on_failure: str = "break",
    timeout: float = 60.0, resets: bool = False,
) -> int:  # fmt: skip
    return application.ask(
        BarrierAsk, application.member, name, parties, on_failure, payload, resets, timeout
    )  # fmt: skip


def _payloads(application: Application, number: int) -> dict[tuple[str, int, int], bytes]:
    """What everybody brought, as it was told: what is much comes before the end of the round."""
    *parts, last = application.answers(number)
    assert isinstance(last, RoundIs)
    assert all(isinstance(part, RoundPart) for part in parts)
    brought = {one: payload for part in parts if isinstance(part, RoundPart) for one, payload in part.payloads}
    return {one: brought.get(one, payload) for one, payload in last.round.arrived}


def _round(application: Application, number: int) -> Round:
    answer = application.answer(number)
    assert isinstance(answer, RoundIs), answer
    return answer.round


def _id(application: Application) -> tuple[str, int, int]:
    mine = [one for notice in application.notices(Joined) for one in notice.providers]
    return next(one.id for one in mine if one.id[2] == application.member and one.id[0] == application.node)


def test_all_are_released_with_what_each_has_brought_and_not_before_the_last_has_come() -> None:
    domain, (a, b, c) = _three()
    for number in (1, 2, 3):
        asked = [_come(a, b"of a"), _come(c, b"of c")]
        domain.run(5.0)
        assert [] == a.answers(asked[0]) + c.answers(asked[1])
        asked.insert(1, _come(b, b"of b"))
        domain.run(0.2)
        rounds = [_round(one, number) for one, number in zip((a, b, c), asked, strict=True)]
        assert 1 == len(set(map(repr, rounds)))
        assert ("released", number) == (rounds[0].end, rounds[0].number)
        assert [(_id(a), b"of a"), (_id(b), b"of b"), (_id(c), b"of c")] == list(rounds[0].arrived)


def test_barriers_of_other_names_and_ballots_go_on_meanwhile() -> None:
    domain, (a, b, c) = _three(state_phases="n")
    waits = _come(a, name="one")
    asked = [_come(one, name="other") for one in (a, b, c)]
    proposed = b.propose_state(b"red")
    domain.run(0.2)
    for one in (a, b, c):
        one.vote("approve")
    domain.run(0.2)
    assert ["released"] * 3 == [_round(one, n).end for one, n in zip((a, b, c), asked, strict=True)]
    assert b.answer(proposed)
    assert [] == a.answers(waits)


def test_who_joins_is_waited_for_and_who_leaves_is_not() -> None:
    """The list of parties is read when the round ends."""
    domain, (a, b, c) = _three()
    asked = [_come(a), _come(b)]
    d = domain.opened("D")
    d.join()
    c.ask(LeaveAsk, c.member, 0, 5.0)
    domain.run(1.0)
    assert [] == a.answers(asked[0])
    late = _come(d)
    domain.run(0.2)
    assert {_id(a), _id(b), _id(d)} == {one for one, _ in _round(d, late).arrived} == {
        one for one, _ in _round(a, asked[0]).arrived
    }  # fmt: skip


def test_so_many_parties_are_the_first_that_come_and_who_is_late_has_come_to_the_next_round() -> None:
    """R3: an arrival counts for one round, whatever its node knew when it came."""
    domain, (a, b, c) = _three()
    domain.loses = lambda sender, receiver, message: sender == "F" and isinstance(message, Waits)
    late = _come(c, b"late", parties=2)
    first = [_come(a, parties=2), _come(b, parties=2)]
    domain.run(0.3)
    assert [1, 1] == [_round(a, first[0]).number, _round(b, first[1]).number]
    domain.loses = lambda sender, receiver, message: False
    domain.run(3.0)
    assert [] == c.answers(late)
    second = _come(a, parties=2)
    domain.run(0.5)
    assert (2, "released") == (_round(c, late).number, _round(c, late).end)
    assert [(_id(a), b""), (_id(c), b"late")] == list(_round(a, second).arrived)


def test_a_time_that_is_up_breaks_the_round_for_all_and_names_who_is_missing() -> None:
    domain, (a, b, c) = _three()
    asked = [_come(a, timeout=1.0), _come(b)]
    domain.run(0.9)
    assert [] == a.answers(asked[0]) + b.answers(asked[1])
    domain.run(0.3)
    rounds = [_round(a, asked[0]), _round(b, asked[1])]
    assert rounds[0] == rounds[1]
    assert ("broken", "timeout", (_id(a),)) == (rounds[0].end, rounds[0].broken_by, rounds[0].who)
    assert ((_id(c), True),) == rounds[0].missing
    assert 0.9 < rounds[0].waited < 1.3
    domain.run(1.0)
    assert rounds[0] == _round(c, _come(c))  # it stays broken, and who comes is told at once


def test_a_broken_barrier_is_whole_again_when_all_have_reset_it() -> None:
    domain, (a, b, c) = _three()
    _come(a, timeout=0.5)
    domain.run(1.0)
    resets = [_come(a, resets=True), _come(b, resets=True)]
    domain.run(2.0)
    assert [] == a.answers(resets[0])
    resets.append(_come(c, resets=True))
    domain.run(0.2)
    assert ["reset"] * 3 == [_round(one, n).end for one, n in zip((a, b, c), resets, strict=True)]
    asked = [_come(one) for one in (a, b, c)]
    domain.run(0.2)
    assert ["released"] * 3 == [_round(one, n).end for one, n in zip((a, b, c), asked, strict=True)]
    assert "reset" == _round(a, _come(a, resets=True)).end  # nothing is broken: nothing to wait for


def test_a_reset_for_which_not_all_come_in_time_leaves_it_broken() -> None:
    domain, (a, b, _) = _three()
    _come(a, timeout=0.5)
    domain.run(1.0)
    resets = [_come(a, resets=True, timeout=1.0), _come(b, resets=True)]
    domain.run(2.0)
    assert ["broken"] * 2 == [_round(one, n).end for one, n in zip((a, b), resets, strict=True)]
    assert "broken" == _round(b, _come(b)).end


@pytest.mark.parametrize("had_come", [True, False], ids=["it had come", "it had not"])
def test_a_death_breaks_the_round_at_once_and_is_named(had_come: bool) -> None:
    domain, (a, b, c) = _three()
    asked = [_come(a), _come(b)] if not had_come else [_come(a), _come(c)]
    domain.run(0.2)
    who = _id(c)
    c.end()
    domain.run(0.1)
    round_ = _round(a, asked[0])
    assert ("broken", "failure", (who,)) == (round_.end, round_.broken_by, round_.who)


def test_without_the_dead_a_barrier_that_continues_releases_the_rest() -> None:
    domain, (a, b, c) = _three()
    asked = [_come(a, on_failure="continue"), _come(b, on_failure="continue")]
    domain.run(0.2)
    c.end()
    domain.run(0.1)
    assert ["released"] * 2 == [_round(one, n).end for one, n in zip((a, b), asked, strict=True)]
    assert {_id(a), _id(b)} == {one for one, _ in _round(a, asked[0]).arrived}


def test_the_place_of_a_dead_party_is_free_again_in_a_barrier_that_continues() -> None:
    domain, (a, b, c) = _three()
    dead = _come(c, parties=2, on_failure="continue")
    domain.run(0.2)
    c.end()
    domain.run(0.2)
    asked = _come(a, parties=2, on_failure="continue")
    domain.run(1.0)
    assert [] == a.answers(asked) + c.answers(dead)
    last = _come(b, parties=2, on_failure="continue")
    domain.run(0.2)
    assert _round(a, asked) == _round(b, last)
    assert {_id(a), _id(b)} == {one for one, _ in _round(a, asked).arrived}


def test_the_death_of_somebody_else_does_not_break_a_barrier_that_takes_fewer() -> None:
    domain, (a, b, c) = _three()
    asked = _come(a, parties=2)
    domain.run(0.2)
    c.end()
    domain.run(0.5)
    assert [] == a.answers(asked)
    _come(b, parties=2)
    domain.run(0.2)
    assert "released" == _round(a, asked).end


def test_a_leader_that_dies_costs_no_arrival_and_its_death_breaks_what_is_to_break() -> None:
    """R4. D leads and dies; its party is one of all providers."""
    domain, (a, b, c) = _three()
    asked = [_come(b, name="breaks"), _come(c, name="breaks")]
    going_on = [_come(b, b"1", name="goes on", on_failure="continue"), _come(c, name="goes on", on_failure="continue")]
    two = [_come(b, name="two", parties=2)]
    domain.run(0.2)
    domain.kill("D")
    domain.run(8.0)
    assert ["broken"] * 2 == [_round(one, n).end for one, n in zip((b, c), asked, strict=True)]
    assert ("failure", (_id(a),)) == (_round(b, asked[0]).broken_by, _round(b, asked[0]).who)
    assert ["released"] * 2 == [_round(one, n).end for one, n in zip((b, c), going_on, strict=True)]
    two.append(_come(c, name="two", parties=2))
    domain.run(0.5)
    assert ["released"] * 2 == [_round(one, n).end for one, n in zip((b, c), two, strict=True)]


def test_lost_and_late_words_change_nothing() -> None:
    domain, (a, b, c) = _three()
    lost = iter([True] * 3)
    domain.loses = lambda sender, receiver, message: isinstance(message, Waits) and next(lost, False)
    asked = [_come(one) for one in (a, b, c)]
    domain.run(3.0)
    assert ["released"] * 3 == [_round(one, n).end for one, n in zip((a, b, c), asked, strict=True)]


MUCH = 300_000


def test_what_is_much_is_brought_before_and_everybody_gets_all_of_it() -> None:
    """In several rounds, whoever leads: what was brought stays when the leader dies."""
    domain, (a, b, c) = _three()
    for step in (b"1", b"2"):
        asked = [_come(a, step * MUCH), _come(b, b"little"), _come(c, step * 5 * MUCH)]
        domain.run(3.0)
        expected = {_id(a): step * MUCH, _id(b): b"little", _id(c): step * 5 * MUCH}
        assert [expected] * 3 == [_payloads(one, n) for one, n in zip((a, b, c), asked, strict=True)]
    asked = [_come(one, b"3" * MUCH, parties=2, name="two") for one in (b,)]
    domain.run(1.0)
    domain.kill("D")
    domain.run(8.0)
    asked.append(_come(c, b"4" * MUCH, parties=2, name="two"))
    domain.run(3.0)
    expected = {_id(b): b"3" * MUCH, _id(c): b"4" * MUCH}
    assert [expected] * 2 == [_payloads(one, n) for one, n in zip((b, c), asked, strict=True)]


def test_who_brings_much_and_whose_time_is_up_before_it_is_there_has_not_come() -> None:
    domain, (a, b, c) = _three()
    domain.cut("F", "D", "E")
    asked = _come(c, b"x" * MUCH, parties=2, timeout=0.5)
    domain.run(1.0)
    assert ("failed", "timed out") == c.problem(asked)
    domain.heal()
    domain.run(10.0)
    others = [_come(a, parties=2), _come(b, parties=2)]
    domain.run(1.0)
    assert ["released"] * 2 == [_round(one, n).end for one, n in zip((a, b), others, strict=True)]


def test_more_than_a_group_keeps_is_refused_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "BROUGHT_BYTES_MAX", 2 * MUCH)
    domain, (a, b, c) = _three()
    asked = [_come(a, b"1" * MUCH, parties=2)]
    domain.run(1.0)
    refused = _come(c, b"2" * 2 * MUCH, parties=2)
    domain.run(1.0)
    assert ("failed", "full") == c.problem(refused)
    asked.append(_come(b, b"3" * MUCH, parties=2))
    domain.run(1.0)
    assert {_id(a): b"1" * MUCH, _id(b): b"3" * MUCH} == _payloads(a, asked[0]) == _payloads(b, asked[1])
    assert {_id(c): b"4" * 2 * MUCH} == _payloads(c, _later(domain, c, _come(c, b"4" * 2 * MUCH, parties=1)))


def _later(domain: Applications, application: Application, number: int) -> int:
    domain.run(1.0)
    assert application.answers(number)
    return number


def test_who_is_interrupted_breaks_the_round() -> None:
    domain, (a, b, _) = _three()
    asked = [_come(a), _come(b)]
    said = a.ask(BreakAsk, a.member, "")
    domain.run(0.2)
    assert isinstance(a.answer(said), Done)
    assert ("broken", "cancelled", (_id(a),)) == (
        _round(b, asked[1]).end, _round(b, asked[1]).broken_by, _round(b, asked[1]).who,
    )  # fmt: skip


def test_who_was_interrupted_and_comes_again_at_once_is_told_of_the_break_and_can_reset() -> None:
    """Its program does not wait until the others know."""
    domain, (a, b, c) = _three()
    _come(c)
    c.ask(BreakAsk, c.member, "")
    again, reset = _come(c), _come(c, resets=True)
    domain.run(0.2)
    assert ("broken", "cancelled") == (_round(c, again).end, _round(c, again).broken_by)
    others = [_come(one, resets=True) for one in (a, b)]
    domain.run(0.2)
    assert ["reset"] * 3 == [_round(one, n).end for one, n in zip((a, b, c), [*others, reset], strict=True)]


def test_who_goes_while_it_waits_breaks_the_round_and_is_told_that_it_counted_for_none() -> None:
    domain, (a, b, c) = _three()
    asked = [_come(a), _come(b)]
    domain.run(0.2)
    c.ask(ExpelAsk, c.member, 1, -1.0, False, 5.0, (_id(a),), "")
    domain.run(0.3)
    assert ("failed", "not a member") == a.problem(asked[0])
    assert ("broken", "left", (_id(a),)) == (
        _round(b, asked[1]).end, _round(b, asked[1]).broken_by, _round(b, asked[1]).who,
    )  # fmt: skip
    b.ask(GoodbyeAsk, b.member)
    domain.run(0.3)


def test_two_that_say_different_things_about_a_barrier_are_told_so() -> None:
    domain, (a, b, _) = _three()
    asked = [_come(a, parties=2), _come(b, parties=3)]
    domain.run(0.2)
    assert ["mismatch"] * 2 == [_round(one, n).broken_by for one, n in zip((a, b), asked, strict=True)]


def test_wrong_uses_are_refused_in_words() -> None:
    _, (a, _, _) = _three()
    _come(a)
    assert ("usage", "usage") == a.problem(_come(a))
    assert ("usage", "usage") == a.problem(_come(a, name="x" * 201))
    assert ("usage", "usage") == a.problem(_come(a, name="n", parties=-1))
    assert ("usage", "too large") == a.problem(_come(a, b"x" * (BARRIER_PAYLOAD_BYTES_MAX + 1), name="n"))


def test_who_waits_for_ever_waits_longer_than_a_daemon_sets_alarms_for() -> None:
    domain, (a, b, c) = _three()
    asked = _come(a, timeout=math.inf)
    for _ in range(3):
        domain.run(TIMEOUT_S_MAX / 2)
    assert [] == a.answers(asked)
    _come(b), _come(c)
    domain.run(0.2)
    assert "released" == _round(a, asked).end
