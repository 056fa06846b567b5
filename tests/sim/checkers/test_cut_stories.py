"""G1, G8 where somebody was told only the beginning of an entry: at his end, or where the run was cut off."""

from __future__ import annotations

import pytest

from groupsvc.testing.sim.checkers.application_stories import Stories
from groupsvc.testing.sim.checkers.ballots import g1

from .written import GROUP, Written

KINDS = ("left", "state", "ended")
"""What all are told of entry 5, in this order."""


class Tale(Written):
    """What anna on n1 and bert on n2 wrote down, who were let in with entry 3, and carl, who watches."""

    def __init__(self) -> None:
        super().__init__()
        for who, provider in (("anna", "n1/1/1"), ("bert", "n2/1/1"), ("carl", "")):
            op = "join_group" if provider else "subscribe_group"
            self._line(who, op, "invoke", {"id": 1, "name": "db"})
            result = {"m": 1, "group": GROUP, "provider": provider, "view": {"seq": 3, "providers": []}}
            self._line(who, op, "ok", {"id": 1}, result)
        for kind in KINDS:
            self.told("anna", 5, kind)

    def told(self, who: str, seq: int, kind: str) -> None:
        """It read one thing that follows from an entry."""
        args = {"m": 1, "kind": kind, "full": {"providers": ["n3/1/1"]}}
        self._line(who, "told", "event", args, seq=seq, crc=KINDS.index(kind) + 1)

    def ended(self, who: str) -> None:
        """It is told nothing more."""
        self._line(who, "member_ended", "event", {"m": 1, "why": "lost"})

    def judged(self, *, converged: bool) -> list[str]:
        """What G1 finds."""
        return sorted({one.invariant for one in g1(Stories(self.lines), converged)})


@pytest.mark.parametrize("who, told, invariant", [("bert", ["left"], "G1"), ("carl", ["left"], "G8")])
def test_in_a_run_that_was_cut_off_the_rest_of_an_entry_may_still_come(
    who: str, told: list[str], invariant: str
) -> None:
    """Its daemon stands still between two things that follow from the entry; in a converged run none does."""
    tale = Tale()
    for kind in told:
        tale.told(who, 5, kind)
    assert [] == tale.judged(converged=False)
    assert [invariant] == tale.judged(converged=True)
    tale.ended(who)
    assert [] == tale.judged(converged=True)


@pytest.mark.parametrize(
    "who, told, invariant",
    [("bert", ["state"], "G1"), ("bert", ["left", "ended"], "G1"), ("carl", ["state"], "G8")],
)
@pytest.mark.parametrize("is_over", [True, False])
@pytest.mark.parametrize("goes_on", [True, False])
def test_what_was_told_is_the_beginning_of_the_entry(
    who: str, told: list[str], invariant: str, is_over: bool, goes_on: bool
) -> None:
    """Whoever tells goes in order, and leaves nothing out before it stops; also if nobody may have been told all."""
    tale = Tale()
    if goes_on or who == "carl":
        tale.told("anna", 6, "state")
    for kind in told:
        tale.told(who, 5, kind)
    if is_over:
        tale.ended(who)
    assert [invariant] == tale.judged(converged=False)


@pytest.mark.parametrize("who, invariant", [("bert", "G1"), ("carl", "G8")])
def test_only_the_last_entry_may_be_cut(who: str, invariant: str) -> None:
    """Who was told of the next one will not be told the rest."""
    tale = Tale()
    tale.told("anna", 6, "state")
    tale.told(who, 5, "left")
    tale.told(who, 6, "state")
    assert [invariant] == tale.judged(converged=False)
