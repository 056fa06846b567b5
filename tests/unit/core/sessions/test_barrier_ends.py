"""What who gives up, or goes, is told of its round: what the others are told, however close it was (R3)."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import BreakAsk, ExpelAsk, GoodbyeAsk
from groupsvcd.core.groups import rounds, waiting_room

from .applications import Application, Applications, three
from .barrier_parties import come, id_of, payloads_of, round_of


def _released_without_word_to_the_last() -> tuple[Applications, list[Application], list[int]]:
    """All three have come, two know that they are released, and the node of the third has not heard of it."""
    domain, (a, b, c) = three()
    asked = [come(a, on_failure="continue"), come(b, on_failure="continue")]
    domain.run(0.2)
    asked.append(come(c, on_failure="continue"))
    domain.loses = lambda sender, receiver, message: receiver == "F"
    domain.run(0.1)
    assert ["released"] * 2 == [round_of(one, n).end for one, n in zip((a, b), asked, strict=False)]
    assert [] == c.answers(asked[2])
    return domain, [a, b, c], asked


def test_who_says_goodbye_while_the_end_is_on_its_way_is_told_the_end() -> None:
    domain, (a, _, c), asked = _released_without_word_to_the_last()
    c.ask(GoodbyeAsk, c.member)
    domain.run(0.05)
    domain.loses = lambda sender, receiver, message: False
    domain.run(2.0)
    assert round_of(a, asked[0]) == round_of(c, asked[2])


def test_who_is_expelled_with_the_entry_behind_the_end_is_told_the_end() -> None:
    domain, (a, _, c), asked = _released_without_word_to_the_last()
    a.ask(ExpelAsk, a.member, 1, -1.0, False, 5.0, (id_of(c),), "")
    domain.run(0.1)
    domain.loses = lambda sender, receiver, message: False
    domain.run(2.0)
    assert round_of(a, asked[0]) == round_of(c, asked[2])


def test_who_gives_up_and_comes_again_and_gives_up_that_too_has_not_come_the_second_time() -> None:
    """Nobody waits for it: it must neither be counted nor stand in the way of the third."""
    domain, (_, _, c) = three()
    domain.loses = lambda sender, receiver, message: "F" in (sender, receiver)
    c.ask(BreakAsk, c.member, "", come(c, on_failure="continue"))
    second = come(c, on_failure="continue")
    c.ask(BreakAsk, c.member, "", second)
    domain.run(0.01)
    assert ("failed", "timed out") == c.problem(second)
    third = come(c, on_failure="continue")
    domain.run(0.2)
    assert [] == c.answers(third)
    domain.loses = lambda sender, receiver, message: False
    domain.run(1.0)
    assert ("broken", "cancelled") == (round_of(c, third).end, round_of(c, third).broken_by)


def test_who_comes_again_and_has_no_time_to_wait_for_the_end_before_has_not_come() -> None:
    domain, (_, _, c) = three()
    domain.loses = lambda sender, receiver, message: "F" in (sender, receiver)
    c.ask(BreakAsk, c.member, "", come(c, on_failure="continue"))
    again = come(c, on_failure="continue", timeout=0.2)
    domain.run(0.4)
    assert ("failed", "timed out") == c.problem(again)


def test_who_comes_again_waits_since_the_end_before_however_much_comes_with_it() -> None:
    """R4: F hears of the end of the first round, and of a death after it, at once; the second one was open then."""
    domain, (_, b, c), asked = _released_without_word_to_the_last()
    c.ask(BreakAsk, c.member, "", asked[2])
    again = come(c)
    who = id_of(b)
    b.end()
    domain.run(0.1)
    assert [] == c.answers(again)
    domain.loses = lambda sender, receiver, message: False
    domain.run(2.0)
    round_ = round_of(c, again)
    assert ("broken", "failure", (who,)) == (round_.end, round_.broken_by, round_.who)


def test_an_interruption_of_a_call_that_was_refused_breaks_nothing() -> None:
    domain, (a, b, c) = three()
    first = come(c, on_failure="continue")
    refused = come(c, on_failure="continue")
    c.ask(BreakAsk, c.member, "", refused)
    domain.run(0.2)
    come(a, on_failure="continue"), come(b, on_failure="continue")
    domain.run(0.2)
    assert "released" == round_of(c, first).end


# --- Limits, and numbers that change ---


def test_who_waits_while_a_thousand_other_names_are_used_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """R4: when names are forgotten, the rounds that are open elsewhere have other numbers."""
    monkeypatch.setattr(rounds, "BARRIERS_KEPT", 2)
    domain, (a, b, c) = three()
    waiting = [come(a, name="long"), come(b, name="long")]
    for number in range(5):
        for one in (a, b, c):
            come(one, name=f"short-{number}")
        domain.run(0.2)
    waiting.append(come(c, name="long"))
    domain.run(0.5)
    assert ["released"] * 3 == [round_of(one, n).end for one, n in zip((a, b, c), waiting, strict=True)]


def test_after_a_view_that_may_have_lost_entries_no_number_comes_again() -> None:
    """R2. D and E are the servers, and die together: F goes on, and may not know the last rounds."""
    domain = Applications()
    a, b, c = (domain.opened(node) for node in "DEF")
    for one in (a, b, c):
        one.join(replicas=2)
    domain.run(1.0)
    for one in (a, b, c):
        come(one)
    domain.run(0.2)
    waiting = come(c, on_failure="continue")
    domain.run(0.2)
    domain.kill("D", "E")
    domain.run(20.0)
    round_ = round_of(c, waiting)
    assert "released" == round_.end
    assert round_.number > 2**20


def test_a_broken_barrier_can_be_reset_however_many_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "BARRIERS_KEPT", 2)
    domain, (a, b, c) = three()
    for name in ("one", "two"):
        come(a, name=name, timeout=0.1)
        domain.run(0.5)
    assert ("failed", "full") == a.problem(come(a, name="three"))
    reset = [come(one, name="one", resets=True) for one in (a, b, c)]
    domain.run(0.2)
    assert ["reset"] * 3 == [round_of(one, n).end for one, n in zip((a, b, c), reset, strict=True)]


def test_what_was_brought_in_vain_makes_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "BROUGHT_BYTES_MAX", 50_000)
    domain, (a, b, _) = three()
    in_time = come(a, b"x" * 40_000, name="late", timeout=0.0)
    domain.run(1.0)
    assert ("failed", "timed out") == a.problem(in_time)
    asked = [come(one, b"y" * 20_000, parties=2) for one in (a, b)]
    domain.run(1.0)
    assert payloads_of(a, asked[0]) == payloads_of(b, asked[1]) == dict.fromkeys((id_of(a), id_of(b)), b"y" * 20_000)


def test_who_was_late_with_much_and_brings_much_again_has_come() -> None:
    """R4, X1: what it brought first is taken back when both are there already."""
    domain, (a, _, c) = three()
    domain.loses = lambda sender, receiver, message: "F" in (sender, receiver)
    late = come(c, b"x" * 5_000, parties=2, timeout=0.1)
    domain.run(0.2)
    assert ("failed", "timed out") == c.problem(late)
    asked = [come(c, b"y" * 5_000, parties=2)]
    domain.loses = lambda sender, receiver, message: False
    domain.run(2.0)
    asked.append(come(a, parties=2))
    domain.run(0.5)
    assert payloads_of(c, asked[0]) == payloads_of(a, asked[1]) == {id_of(a): b"", id_of(c): b"y" * 5_000}


def test_what_is_brought_by_a_node_that_is_cut_off_has_a_limit() -> None:
    """X1."""
    domain, (_, _, c) = three()
    domain.cut("F", "D", "E")
    asked = [come(c, b"x" * 4_000_000, name=str(number)) for number in range(40)]
    refused = [number for number in asked if c.answers(number)]
    assert 10 < len(refused) < 40
    assert {("failed", "full")} == {c.problem(number) for number in refused}


def test_many_parties_of_one_node_are_told_to_a_leader_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_room, "WAITERS_PER_MESSAGE", 3)
    domain, (a, b, c) = three()
    asked = [come(c, b"x" * 1000, name=str(number), parties=2) for number in range(10)]
    domain.kill("D")
    domain.run(8.0)
    others = [come(b, name=str(number), parties=2) for number in range(10)]
    domain.run(0.5)
    assert ["released"] * 20 == [round_of(c, n).end for n in asked] + [round_of(b, n).end for n in others]
    assert [] == a.answers(asked[0])
