"""G11 by hand: when a group was empty, and so with which table it went on."""

from __future__ import annotations

from typing import Any

import pytest

from groupsvc.testing.sim.application_ops import digest
from groupsvc.testing.sim.application_tables import table_digest
from groupsvc.testing.sim.checkers.application_stories import Stories
from groupsvc.testing.sim.checkers.tables import g11
from groupsvc.wire.history import HistoryEvent

GROUP, OLD, FIRST, SECOND = 7, "n1/1/1", "n2/1/1", "n3/1/1"
WRITE = ["put", "a", "red", None]
EMPTY, FULL = table_digest({}), table_digest({"a": ("red", 4)})


class Tale:
    """A provider writes with entry 4. With entry 9 it leaves, and two others join."""

    def __init__(self) -> None:
        self.lines: list[HistoryEvent] = []
        self.join("old", OLD, 3, OLD)
        self.told("old", 3, "joined", {"providers": [[OLD, "", ""]]})
        self.table("old", 4, FULL, write=WRITE)

    def line(self, who: str, op: str, type_: Any, args: dict[str, Any], **more: Any) -> None:
        """Something that an application wrote."""
        place, at = len(self.lines), float(len(self.lines))
        self.lines.append(
            HistoryEvent(v=1, i=place, t=at, who=who, node="n1", type=type_, op=op, group=GROUP, args=args, **more)
        )

    def join(self, who: str, provider: str, seq: int, *listed: str) -> None:
        """It got in, and finds these, who came with the same entry."""
        self.line(who, "join_group", "invoke", {"id": 1, "name": "db", "as": who, "table": 0})
        view = {"seq": seq, "providers": [[one, "", "", seq] for one in listed]}
        self.line(
            who, "join_group", "ok", {"id": 1}, result={"m": 1, "group": GROUP, "provider": provider, "view": view}
        )

    def told(self, who: str, seq: int, kind: str, full: dict[str, Any]) -> None:
        """It read this."""
        args = {"m": 1, "kind": kind, "full": full, "view": 0, "fence": 1}
        self.line(who, "told", "event", args, seq=seq, crc=digest(kind, full))

    def joined(self, who: str, *providers: str) -> None:
        """It sees these come, with entry 9."""
        for provider in providers:
            self.told(who, 9, "joined", {"providers": [[provider, "", ""]]})

    def left(self, who: str) -> None:
        """It sees the old one go, with entry 9."""
        self.told(who, 9, "left", {"providers": [OLD], "cause": "leave"})

    def table(self, who: str, seq: int, rows: int, **more: Any) -> None:
        """Its table is this."""
        self.line(who, "table", "event", {"m": 1, "seq": seq, "did": "applied", "digest": rows, **more})

    def ended(self, who: str) -> None:
        """It is told nothing more."""
        self.line(who, "member_ended", "event", {"m": 1, "why": "overrun"})

    @property
    def found(self) -> list[str]:
        """What the checker makes of it."""
        return [violation.invariant for violation in g11(Stories(self.lines), [])]


@pytest.mark.parametrize("rows, found", [(FULL, []), (EMPTY, ["G11", "G11"])])
def test_a_table_goes_on_if_the_old_one_left_behind_those_who_came_with_the_same_entry(
    rows: int, found: list[str]
) -> None:
    tale = Tale()
    for who, provider, seen in (("first", FIRST, (FIRST, SECOND)), ("second", SECOND, (SECOND,))):
        tale.join(who, provider, 9, FIRST, SECOND)
        tale.joined(who, *seen)
        tale.left(who)
        tale.table(who, 9, rows)
    assert found == tale.found


@pytest.mark.parametrize("rows, found", [(FULL, []), (EMPTY, ["G11", "G11"])])
def test_that_the_old_one_was_left_behind_is_known_from_whoever_was_told(rows: int, found: list[str]) -> None:
    """The first of them goes at once, and is not told of the whole entry: seed 306681."""
    tale = Tale()
    for who, provider, seen in (("first", FIRST, (FIRST, SECOND)), ("second", SECOND, (SECOND,))):
        tale.join(who, provider, 9, FIRST, SECOND)
        tale.joined(who, *seen)
        tale.table(who, 9, rows)
    tale.ended("first")
    tale.left("second")
    assert found == tale.found


@pytest.mark.parametrize("rows, found", [(EMPTY, []), (FULL, ["G11", "G11"])])
def test_a_table_begins_anew_if_the_old_one_had_left_before_anybody_came(rows: int, found: list[str]) -> None:
    """Also with the same entry: they are told of nothing before their own joins."""
    tale = Tale()
    tale.left("old")
    for who, provider, seen in (("first", FIRST, (FIRST, SECOND)), ("second", SECOND, (SECOND,))):
        tale.join(who, provider, 9, FIRST, SECOND)
        tale.joined(who, *seen)
        tale.table(who, 9, rows)
    assert found == tale.found


@pytest.mark.parametrize("rows", [EMPTY, FULL])
def test_if_nobody_who_was_there_tells_it_all_have_one_of_both(rows: int) -> None:
    """The old one may have left between the two: then the second is not told of it, and the first was cut off."""
    tale = Tale()
    tale.join("first", FIRST, 9, FIRST, SECOND)
    tale.joined("first", FIRST)
    tale.ended("first")
    tale.join("second", SECOND, 9, FIRST, SECOND)
    tale.joined("second", SECOND)
    tale.table("first", 9, rows)
    tale.table("second", 9, rows)
    assert [] == tale.found
    tale.table("second", 10, FULL if rows == EMPTY else EMPTY)
    assert ["G11"] == tale.found
