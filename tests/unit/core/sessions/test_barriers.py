"""Barriers through sessions, whoever leads and dies: R1 to R4 in small, one story each."""

from __future__ import annotations

import math

import pytest

from groupsvc.wire.client_messages import BreakAsk, Done, ExpelAsk, GoodbyeAsk, LeaveAsk
from groupsvc.wire.limits import BARRIER_PAYLOAD_BYTES_MAX
from groupsvcd.core.groups import rounds
from groupsvcd.core.peer_messages import Waits
from groupsvcd.core.sessions import barriers, session

from .applications import Application, Applications, three
from .barrier_parties import come, id_of, payloads_of, round_of


def test_all_are_released_with_what_each_has_brought_and_not_before_the_last_has_come() -> None:
    domain, (a, b, c) = three()
    for number in (1, 2, 3):
        asked = [come(a, b"of a"), come(c, b"of c")]
        domain.run(5.0)
        assert [] == a.answers(asked[0]) + c.answers(asked[1])
        asked.insert(1, come(b, b"of b"))
        domain.run(0.2)
        rounds = [round_of(one, number) for one, number in zip((a, b, c), asked, strict=True)]
        assert 1 == len(set(map(repr, rounds)))
        assert ("released", number) == (rounds[0].end, rounds[0].number)
        assert [(id_of(a), b"of a"), (id_of(b), b"of b"), (id_of(c), b"of c")] == list(rounds[0].arrived)


def test_barriers_of_other_names_and_ballots_go_on_meanwhile() -> None:
    domain, (a, b, c) = three(state_phases="n")
    waits = come(a, name="one")
    asked = [come(one, name="other") for one in (a, b, c)]
    proposed = b.propose_state(b"red")
    domain.run(0.2)
    for one in (a, b, c):
        one.vote("approve")
    domain.run(0.2)
    assert ["released"] * 3 == [round_of(one, n).end for one, n in zip((a, b, c), asked, strict=True)]
    assert b.answer(proposed)
    assert [] == a.answers(waits)


def test_who_joins_is_waited_for_and_who_leaves_is_not() -> None:
    """The list of parties is read when the round ends."""
    domain, (a, b, c) = three()
    asked = [come(a), come(b)]
    d = domain.opened("D")
    d.join()
    c.ask(LeaveAsk, c.member, 0, 5.0)
    domain.run(1.0)
    assert [] == a.answers(asked[0])
    late = come(d)
    domain.run(0.2)
    assert {id_of(a), id_of(b), id_of(d)} == {one for one, _ in round_of(d, late).arrived} == {
        one for one, _ in round_of(a, asked[0]).arrived
    }  # fmt: skip


def test_so_many_parties_are_the_first_that_come_and_who_is_late_has_come_to_the_next_round() -> None:
    """R3: an arrival counts for one round, whatever its node knew when it came."""
    domain, (a, b, c) = three()
    domain.loses = lambda sender, receiver, message: sender == "F" and isinstance(message, Waits)
    late = come(c, b"late", parties=2)
    first = [come(a, parties=2), come(b, parties=2)]
    domain.run(0.3)
    assert [1, 1] == [round_of(a, first[0]).number, round_of(b, first[1]).number]
    domain.loses = lambda sender, receiver, message: False
    domain.run(3.0)
    assert [] == c.answers(late)
    second = come(a, parties=2)
    domain.run(0.5)
    assert (2, "released") == (round_of(c, late).number, round_of(c, late).end)
    assert [(id_of(a), b""), (id_of(c), b"late")] == list(round_of(a, second).arrived)


def test_a_time_that_is_up_breaks_the_round_for_all_and_names_who_is_missing() -> None:
    domain, (a, b, c) = three()
    asked = [come(a, timeout=1.0), come(b)]
    domain.run(0.9)
    assert [] == a.answers(asked[0]) + b.answers(asked[1])
    domain.run(0.3)
    rounds = [round_of(a, asked[0]), round_of(b, asked[1])]
    assert rounds[0] == rounds[1]
    assert ("broken", "timeout", (id_of(a),)) == (rounds[0].end, rounds[0].broken_by, rounds[0].who)
    assert ((id_of(c), True),) == rounds[0].missing
    assert 0.9 < rounds[0].waited < 1.3
    domain.run(1.0)
    assert rounds[0] == round_of(c, come(c))  # it stays broken, and who comes is told at once


def test_a_broken_barrier_is_whole_again_when_all_have_reset_it() -> None:
    domain, (a, b, c) = three()
    come(a, timeout=0.5)
    domain.run(1.0)
    resets = [come(a, resets=True), come(b, resets=True)]
    domain.run(2.0)
    assert [] == a.answers(resets[0])
    resets.append(come(c, resets=True))
    domain.run(0.2)
    assert ["reset"] * 3 == [round_of(one, n).end for one, n in zip((a, b, c), resets, strict=True)]
    asked = [come(one) for one in (a, b, c)]
    domain.run(0.2)
    assert ["released"] * 3 == [round_of(one, n).end for one, n in zip((a, b, c), asked, strict=True)]
    assert "reset" == round_of(a, come(a, resets=True)).end  # nothing is broken: nothing to wait for


def test_a_reset_for_which_not_all_come_in_time_leaves_it_broken() -> None:
    domain, (a, b, _) = three()
    come(a, timeout=0.5)
    domain.run(1.0)
    resets = [come(a, resets=True, timeout=1.0), come(b, resets=True)]
    domain.run(2.0)
    assert ["broken"] * 2 == [round_of(one, n).end for one, n in zip((a, b), resets, strict=True)]
    assert "broken" == round_of(b, come(b)).end


@pytest.mark.parametrize("had_come", [True, False], ids=["it had come", "it had not"])
def test_a_death_breaks_the_round_at_once_and_is_named(had_come: bool) -> None:
    domain, (a, b, c) = three()
    asked = [come(a), come(b)] if not had_come else [come(a), come(c)]
    domain.run(0.2)
    who = id_of(c)
    c.end()
    domain.run(0.1)
    round_ = round_of(a, asked[0])
    assert ("broken", "failure", (who,)) == (round_.end, round_.broken_by, round_.who)


def test_without_the_dead_a_barrier_that_continues_releases_the_rest() -> None:
    domain, (a, b, c) = three()
    asked = [come(a, on_failure="continue"), come(b, on_failure="continue")]
    domain.run(0.2)
    c.end()
    domain.run(0.1)
    assert ["released"] * 2 == [round_of(one, n).end for one, n in zip((a, b), asked, strict=True)]
    assert {id_of(a), id_of(b)} == {one for one, _ in round_of(a, asked[0]).arrived}


def test_the_place_of_a_dead_party_is_free_again_in_a_barrier_that_continues() -> None:
    domain, (a, b, c) = three()
    dead = come(c, parties=2, on_failure="continue")
    domain.run(0.2)
    c.end()
    domain.run(0.2)
    asked = come(a, parties=2, on_failure="continue")
    domain.run(1.0)
    assert [] == a.answers(asked) + c.answers(dead)
    last = come(b, parties=2, on_failure="continue")
    domain.run(0.2)
    assert round_of(a, asked) == round_of(b, last)
    assert {id_of(a), id_of(b)} == {one for one, _ in round_of(a, asked).arrived}


def test_the_death_of_somebody_else_does_not_break_a_barrier_that_takes_fewer() -> None:
    domain, (a, b, c) = three()
    asked = come(a, parties=2)
    domain.run(0.2)
    c.end()
    domain.run(0.5)
    assert [] == a.answers(asked)
    come(b, parties=2)
    domain.run(0.2)
    assert "released" == round_of(a, asked).end


def test_a_leader_that_dies_costs_no_arrival_and_its_death_breaks_what_is_to_break() -> None:
    """R4. D leads and dies; its party is one of all providers."""
    domain, (a, b, c) = three()
    asked = [come(b, name="breaks"), come(c, name="breaks")]
    going_on = [come(b, b"1", name="goes on", on_failure="continue"), come(c, name="goes on", on_failure="continue")]
    two = [come(b, name="two", parties=2)]
    domain.run(0.2)
    domain.kill("D")
    domain.run(8.0)
    assert ["broken"] * 2 == [round_of(one, n).end for one, n in zip((b, c), asked, strict=True)]
    assert ("failure", (id_of(a),)) == (round_of(b, asked[0]).broken_by, round_of(b, asked[0]).who)
    assert ["released"] * 2 == [round_of(one, n).end for one, n in zip((b, c), going_on, strict=True)]
    two.append(come(c, name="two", parties=2))
    domain.run(0.5)
    assert ["released"] * 2 == [round_of(one, n).end for one, n in zip((b, c), two, strict=True)]


def test_lost_and_late_words_change_nothing() -> None:
    domain, (a, b, c) = three()
    lost = iter([True] * 3)
    domain.loses = lambda sender, receiver, message: isinstance(message, Waits) and next(lost, False)
    asked = [come(one) for one in (a, b, c)]
    domain.run(3.0)
    assert ["released"] * 3 == [round_of(one, n).end for one, n in zip((a, b, c), asked, strict=True)]


def test_a_ruling_that_fits_is_not_taken_for_void_because_of_what_is_applied_behind_it() -> None:
    """The mark says that rulings which do not fit were met; here the next entry comes with one that does."""
    domain, (a, b, c) = three()
    come(b), come(c)
    domain.run(0.2)
    last = come(a)
    a.propose_state(b"red")
    domain.run(0.2)
    assert "released" == round_of(a, last).end
    assert "barrier-ruling-void" not in {line.args["name"] for line in domain.lines("mark")}


MUCH = 300_000


def test_what_is_much_is_brought_before_and_everybody_gets_all_of_it() -> None:
    """In several rounds, whoever leads: what was brought stays when the leader dies."""
    domain, (a, b, c) = three()
    for step in (b"1", b"2"):
        asked = [come(a, step * MUCH), come(b, b"little"), come(c, step * 5 * MUCH)]
        domain.run(3.0)
        expected = {id_of(a): step * MUCH, id_of(b): b"little", id_of(c): step * 5 * MUCH}
        assert [expected] * 3 == [payloads_of(one, n) for one, n in zip((a, b, c), asked, strict=True)]
    asked = [come(one, b"3" * MUCH, parties=2, name="two") for one in (b,)]
    domain.run(1.0)
    domain.kill("D")
    domain.run(8.0)
    asked.append(come(c, b"4" * MUCH, parties=2, name="two"))
    domain.run(3.0)
    expected = {id_of(b): b"3" * MUCH, id_of(c): b"4" * MUCH}
    assert [expected] * 2 == [payloads_of(one, n) for one, n in zip((b, c), asked, strict=True)]


def test_who_brings_much_and_whose_time_is_up_before_it_is_there_has_not_come() -> None:
    domain, (a, b, c) = three()
    domain.cut("F", "D", "E")
    asked = come(c, b"x" * MUCH, parties=2, timeout=0.5)
    domain.run(1.0)
    assert ("failed", "timed out") == c.problem(asked)
    domain.heal()
    domain.run(10.0)
    others = [come(a, parties=2), come(b, parties=2)]
    domain.run(1.0)
    assert ["released"] * 2 == [round_of(one, n).end for one, n in zip((a, b), others, strict=True)]


def test_more_than_a_group_keeps_is_refused_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "BROUGHT_BYTES_MAX", 2 * MUCH)
    domain, (a, b, c) = three()
    asked = [come(a, b"1" * MUCH, parties=2)]
    domain.run(1.0)
    refused = come(c, b"2" * 2 * MUCH, parties=2)
    domain.run(1.0)
    assert ("failed", "full") == c.problem(refused)
    asked.append(come(b, b"3" * MUCH, parties=2))
    domain.run(1.0)
    assert {id_of(a): b"1" * MUCH, id_of(b): b"3" * MUCH} == payloads_of(a, asked[0]) == payloads_of(b, asked[1])
    assert {id_of(c): b"4" * 2 * MUCH} == payloads_of(c, _later(domain, c, come(c, b"4" * 2 * MUCH, parties=1)))


def _later(domain: Applications, application: Application, number: int) -> int:
    domain.run(1.0)
    assert application.answers(number)
    return number


def test_who_is_interrupted_breaks_the_round() -> None:
    domain, (a, b, _) = three()
    asked = [come(a), come(b)]
    said = a.ask(BreakAsk, a.member, "", asked[0])
    domain.run(0.2)
    assert isinstance(a.answer(said), Done)
    assert ("broken", "cancelled", (id_of(a),)) == (
        round_of(b, asked[1]).end, round_of(b, asked[1]).broken_by, round_of(b, asked[1]).who,
    )  # fmt: skip


def test_who_was_interrupted_and_comes_again_at_once_is_told_of_the_break_and_can_reset() -> None:
    """Its program does not wait until the others know."""
    domain, (a, b, c) = three()
    c.ask(BreakAsk, c.member, "", come(c))
    again, reset = come(c), come(c, resets=True)
    domain.run(0.2)
    assert ("broken", "cancelled") == (round_of(c, again).end, round_of(c, again).broken_by)
    others = [come(one, resets=True) for one in (a, b)]
    domain.run(0.2)
    assert ["reset"] * 3 == [round_of(one, n).end for one, n in zip((a, b, c), [*others, reset], strict=True)]


def test_who_goes_while_it_waits_breaks_the_round_and_is_told_that_it_counted_for_none() -> None:
    domain, (a, b, c) = three()
    asked = [come(a), come(b)]
    domain.run(0.2)
    c.ask(ExpelAsk, c.member, 1, -1.0, False, 5.0, (id_of(a),), "")
    domain.run(0.3)
    assert ("failed", "not a member") == a.problem(asked[0])
    assert ("broken", "left", (id_of(a),)) == (
        round_of(b, asked[1]).end, round_of(b, asked[1]).broken_by, round_of(b, asked[1]).who,
    )  # fmt: skip
    b.ask(GoodbyeAsk, b.member)
    domain.run(0.3)


def test_two_that_say_different_things_about_a_barrier_are_told_so() -> None:
    domain, (a, b, _) = three()
    asked = [come(a, parties=2), come(b, parties=3)]
    domain.run(0.2)
    assert ["mismatch"] * 2 == [round_of(one, n).broken_by for one, n in zip((a, b), asked, strict=True)]
    said = ((id_of(a), 2, "break"), (id_of(b), 3, "break"))
    assert [said] * 2 == [round_of(one, n).said for one, n in zip((a, b), asked, strict=True)]


def test_wrong_uses_are_refused_in_words() -> None:
    _, (a, _, _) = three()
    come(a)
    assert ("usage", "usage") == a.problem(come(a))
    assert ("usage", "usage") == a.problem(come(a, name="x" * 201))
    assert ("usage", "usage") == a.problem(come(a, name="n", parties=-1))
    assert ("usage", "too large") == a.problem(come(a, b"x" * (BARRIER_PAYLOAD_BYTES_MAX + 1), name="n"))


def test_who_waits_for_ever_waits_longer_than_a_daemon_sets_alarms_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (barriers, session):
        monkeypatch.setattr(module, "TIMEOUT_S_MAX", 2.0)
    domain, (a, b, c) = three()
    asked = come(a, timeout=math.inf)
    domain.run(7.0)
    assert [] == a.answers(asked)
    come(b), come(c)
    domain.run(0.2)
    assert "released" == round_of(a, asked).end
