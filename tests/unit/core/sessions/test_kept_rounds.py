"""Rounds that the group keeps for who takes the place of a dead party: the same everywhere, without a gap, bounded."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import GoodbyeAsk, Problem, RoundAsk, RoundIs
from groupsvc.wire.notices import Round
from groupsvcd.core.groups import kept_rounds
from groupsvcd.core.groups.kept_rounds import KeptRounds
from groupsvcd.core.groups.rounds import Rounds

from .applications import Application, three
from .barrier_parties import come, id_of, payloads_of, round_of


def past(application: Application, number: int, name: str = "") -> int:
    """It asks how that round ended; the number of the request."""
    return application.ask(RoundAsk, application.member, name, number)


def test_who_comes_in_the_place_of_the_dead_reads_what_came_before_and_the_round_waits_for_it() -> None:
    """SPK-03: also on a node that was not in the group before."""
    domain, (a, b, c) = three()
    for number in (1, 2):
        for one in (a, b, c):
            come(one, f"{number} of {one.node}".encode() * 1000, parties=3, on_failure="wait")
        domain.run(0.5)
    asked = [come(a, b"3", parties=3, on_failure="wait"), come(b, b"3", parties=3, on_failure="wait")]
    dead = id_of(c)
    c.ask(GoodbyeAsk, c.member)
    domain.run(1.0)
    assert [] == a.answers(asked[0])

    d = domain.opened("B")
    d.join()
    domain.run(1.0)
    numbers = [past(d, number) for number in (1, 2)]
    domain.run(0.1)
    for number, request in enumerate(numbers, start=1):
        last_part = d.answers(request)[-1]
        assert isinstance(last_part, RoundIs)
        assert ("released", number) == (last_part.round.end, last_part.round.number)
        expected = {one: f"{number} of {one[0]}".encode() * 1000 for one in (id_of(a), id_of(b), dead)}
        assert expected == payloads_of(d, request)
    last = come(d, b"4", parties=3, on_failure="wait")
    domain.run(0.5)
    assert {id_of(a), id_of(b), id_of(d)} == {one for one, _ in round_of(d, last).arrived}
    assert 3 == round_of(a, asked[0]).number


@pytest.mark.parametrize("on_failure", ["break", "continue"])
def test_of_other_barriers_nothing_is_kept(on_failure: str) -> None:
    domain, (a, b, c) = three()
    for one in (a, b, c):
        come(one, b"x", on_failure=on_failure)
    domain.run(0.5)
    for number in (0, 1, 2):
        request = past(a, number)
        domain.run(0.1)
        answer = a.answer(request)
        assert isinstance(answer, Problem)
        assert ("failed", "not kept") == (answer.family, answer.code)


def _round(number: int, payload: bytes = b"x", barrier: str = "b") -> Round:
    return Round(barrier=barrier, number=number, end="released", arrived=((("n1", 1, 1), payload),))


def test_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rounds, "KEPT_ROUNDS_MAX", 3)
    kept = KeptRounds()
    for number in range(1, 6):
        kept.keep(_round(number))
    assert [None, None, 3, 4, 5] == [getattr(kept.find("b", n), "number", None) for n in range(1, 6)]
    assert kept.stored() == KeptRounds(kept.stored()).stored()


def test_much_takes_the_room_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rounds, "KEPT_BYTES_MAX", 1000)
    kept = KeptRounds()
    for number in range(1, 5):
        kept.keep(_round(number, b"x" * 400))
    assert [3, 4] == [one.number for one in kept.stored()]
    kept = KeptRounds(kept.stored())
    kept.keep(_round(5, b"x" * 900))
    assert [5] == [one.number for one in kept.stored()]
    kept.keep(_round(6, b"x" * 2000))
    assert () == kept.stored()
    kept.keep(_round(7))
    assert [7] == [one.number for one in kept.stored()]


def test_there_is_no_gap_where_entries_may_be_lost_and_nothing_for_strangers() -> None:
    rounds = Rounds()
    rounds.kept.keep(_round(1))
    assert rounds.stored().kept == Rounds(rounds.stored()).stored().kept == (_round(1),)
    rounds.go_on_from(1000)
    assert () == rounds.kept.stored()
    rounds.kept.keep(_round(1001))
    rounds.start_again()
    assert () == rounds.kept.stored()
