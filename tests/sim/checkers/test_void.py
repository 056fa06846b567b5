"""What a group went on without is void: who was told of it is not compared with the others, and must have lost it."""

from __future__ import annotations

from groupsvc.testing.sim.application_ops import digest
from groupsvc.testing.sim.checkers.application_calls import g9
from groupsvc.testing.sim.checkers.application_stories import Stories
from groupsvc.testing.sim.checkers.ballots import g1
from groupsvc.testing.sim.checkers.void import Run

from .written import GROUP, Written

PROVIDERS = [["n1/1/1", "anna", "", 3], ["n2/1/1", "bert", "", 3]]


class Tale(Written):
    """What anna on n1 and bert on n2 wrote down; both were let in with entry 3."""

    def __init__(self) -> None:
        super().__init__()
        for who, node in (("anna", "n1"), ("bert", "n2")):
            self._line(who, "join_group", "invoke", {"id": 1, "name": "db", "votes": "ask", "as": who})
            view = {"seq": 3, "fence": 1, "providers": PROVIDERS, "state": "", "version": 0, "default_vote": "approve"}
            result = {"m": 1, "group": GROUP, "provider": f"{node}/1/1", "view": view, "attributes": {}}
            self._line(who, "join_group", "ok", {"id": 1}, result)

    def state(self, who: str, seq: int, value: str) -> None:
        """It read that this is version 1 of the state."""
        full = {"value": value, "version": 1}
        args = {"m": 1, "kind": "state", "full": full, "view": 0, "fence": 1}
        self._line(who, "told", "event", args, seq=seq, crc=digest("state", full))

    def lost(self, who: str) -> None:
        """It has lost the group."""
        self._line(who, "member_ended", "event", {"m": 1, "why": "goes on without entries"})

    def judged(self, *, void_from: int | None) -> list[str]:
        """What G1 and G9 find, if the group went on without what n1 was given from this entry on."""
        first = next(line.i for line in self.lines if line.op == "told")
        run = Run(0, 9) if void_from is None else Run(0, 9, void_from, first)
        stories = Stories(self.lines, {(GROUP, "n1", 1): [run]})
        return sorted({one.invariant for one in (*g1(stories, True), *g9(stories))})


def test_two_entries_with_one_number_are_seen_unless_one_of_them_is_void() -> None:
    """The planted bugs of streams show it as well; here one is void and the other is not."""
    tale = Tale()
    tale.state("anna", 5, "red")
    tale.state("anna", 6, "red")
    tale.lost("anna")
    tale.state("bert", 5, "blue")
    assert ["G1", "G9"] == tale.judged(void_from=None)
    assert ["G1", "G9"] == tale.judged(void_from=6)
    assert [] == tale.judged(void_from=5)


def test_g1_sees_somebody_who_has_not_lost_the_group_that_went_on_without_him() -> None:
    tale = Tale()
    tale.state("anna", 5, "red")
    assert ["G1"] == tale.judged(void_from=5)
    assert ["G1"] == tale.judged(void_from=3)
    tale.lost("anna")
    assert [] == tale.judged(void_from=5)
