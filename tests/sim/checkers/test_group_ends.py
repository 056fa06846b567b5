"""G7 and G10 on stories by hand: what ends the collecting of failures, and who joins a group that has ended."""

from __future__ import annotations

from typing import Any

from groupsvc.testing.sim.checkers.application_stories import Story, Told
from groupsvc.testing.sim.checkers.ballots import g10
from groupsvc.testing.sim.checkers.group_model import GroupModel
from groupsvc.wire.history import HistoryEvent

VIEW: dict[str, Any] = {"providers": [["a", "", "", 1], ["b", "", "", 2]], "state": "", "version": 0}


def _line(op: str, **args: Any) -> HistoryEvent:
    return HistoryEvent(v=1, i=1, t=1.0, type="event", op=op, args=args)


class _Stories:
    """As much of them as is asked for here."""

    def __init__(self, *those: Story) -> None:
        self.first_told: dict[Any, Any] = {}
        self._those = list(those)

    def groups(self) -> list[tuple[int, list[Story]]]:
        return [(7, self._those)]


def _story(provider: str, seq: int) -> Story:
    began = HistoryEvent(v=1, i=1, t=1.0, type="ok", op="join_group", args={}, result={"view": {**VIEW, "seq": seq}})
    return Story("app-1", seq, 7, "db", provider, began, "")


def test_g10_sees_who_joins_a_group_that_has_ended() -> None:
    watcher, late = _story("", 3), _story("n1/1/4", 9)
    watcher.told.append(Told(8))
    watcher.ended = _line("member_ended", m=1, why="the group has dissolved: its last provider has left")
    found = [one.text for one in g10(_Stories(watcher, late), False, frozenset())]  # type: ignore[arg-type]
    assert ["app-1 (m=9, n1/1/4) joins group 7 with 9, and it had ended with 8"] == found
    for in_time in (_story("n1/1/4", 8), _story("", 9)):
        assert [] == list(g10(_Stories(watcher, in_time), False, frozenset()))  # type: ignore[arg-type]


def test_the_end_of_collecting_is_no_turn_before_a_failure() -> None:
    """G7. While failures are collected the attributes are changed, so that they are not; then b's has its turn."""
    for batch, turns in (("leaves", []), ("none", ["G7"])):
        model = GroupModel({**VIEW, "default_vote": "approve"}, {"batch": batch}, {"b": "failure"})
        outcome = {
            "ballot": 5, "about": "attributes", "votes": [], "reason": "one_phase", "state": None, "approved": True,
            "changes": [["batch", "none"]], "joining": [], "leaving": [], "left_out": [],
        }  # fmt: skip
        assert [] == list(model.happened("attributes", {"changes": [["batch", "none"]]}, 5))
        assert turns == [invariant for invariant, _ in model.ended(outcome, ())]
