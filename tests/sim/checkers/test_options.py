"""C1 turns red, alone, where a node has other options than its list says (MSG-13)."""

from __future__ import annotations

from typing import Any

import msgspec

from groupsvc.wire.history import HistoryEvent

from .story import Lines, changed, find, honest, red

KEY = "daemon/log_level"
TOLD = {KEY: ["x1", 2]}


def with_options(told: dict[str, Any] = TOLD) -> Lines:
    """The honest story; what client x sets by entry 2 is an option, and every list since has it."""

    def as_told(line: HistoryEvent) -> HistoryEvent:
        if line.op == "list_installed":
            return msgspec.structs.replace(line, args={**line.args, "options": told})
        if line.op in ("config_set", "config_get"):
            return msgspec.structs.replace(line, args={**line.args, "key": KEY})
        return line

    return [as_told(line) for line in honest()]


def edited(lines: Lines, node: str, seq: int, told: dict[str, Any]) -> Lines:
    """One node has been told something else with one list."""
    place = find(lines, "list_installed", node=node, seq=seq)
    return changed(lines, place, args={**lines[place].args, "options": told})


def test_c1_is_green_when_all_have_what_was_set() -> None:
    assert set() == red(with_options())


def test_c1_sees_two_values_of_one_entry() -> None:
    assert {"C1"} == red(edited(with_options(), "b", 3, {KEY: ["x2", 2]}))


def test_c1_sees_a_value_that_nobody_was_told_had_been_set() -> None:
    """The answer to who set it says x1."""
    assert {"C1"} == red(with_options({KEY: ["x2", 2]}))


def test_c1_sees_one_entry_set_two_options() -> None:
    assert {"C1"} == red(edited(with_options(), "b", 3, {"daemon/other": ["x1", 2]}))


def test_c1_sees_a_list_without_what_was_set_before() -> None:
    assert {"C1"} == red(edited(with_options(), "c", 3, {}))


def test_c1_sees_a_list_with_what_was_set_after_it() -> None:
    assert {"C1"} == red(edited(with_options(), "c", 3, {**TOLD, "daemon/other": ["y", 5]}), converged=False)


def test_c1_sees_who_ends_without_the_newest() -> None:
    """Nothing is wrong with any list: c was not told of the last one."""
    lines = with_options()
    last = find(lines, "list_installed", node="c", seq=6)
    kept = [line for position, line in enumerate(lines) if position != last]
    newest = {**TOLD, "daemon/other": ["y", 5]}
    for node in "ab":
        kept = edited(kept, node, 6, newest)
    late = msgspec.structs.replace(kept[-1], op="mark", args={"name": "quiet"}, t=kept[-1].t + 5, i=kept[-1].i + 1)
    assert "C1" in red([*kept, late])
    assert "C1" not in red([*kept, late], converged=False)
