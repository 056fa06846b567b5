"""G5 of journals: who is late is late by the clock of the node that presided, if it can be told which that was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from groupsvc.journals.auditing import audit
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent, to_line

VOTER = ["n2", 5, 1]


def written(directory: Path, node: str, *lines: tuple[str, int, dict[str, Any]]) -> None:
    """A journal of this node about group 7."""
    whole = [
        HistoryEvent(v=SCHEMA_VERSION, i=place, t=1.0, boot="1", node=node, op=op, group=7, seq=seq, args=args)
        for place, (op, seq, args) in enumerate(lines, 1)
    ]
    (directory / f"{node}.1.000001.ndjson").write_bytes(b"".join(map(to_line, whole)))


def members(seq: int) -> tuple[str, int, dict[str, Any]]:
    """The list of those who carry the group has changed."""
    return "members", seq, {"members": [["n1", seq]], "era": 0, "leader": "n1", "fence": seq}


def ballot(began: float, ended: float) -> tuple[tuple[str, int, dict[str, Any]], ...]:
    """Ballot 20, in which somebody is late, as a node has seen it; meanwhile the members change."""
    phase = {"at": began, "ballot": 20, "phase": 1, "phases": 1, "time_limit": 0.5, "electorate": [VOTER]}
    outcome = {"at": ended, "ballot": 20, "approved": True, "votes": [[VOTER, "approve", "late"]], "phases": 1}
    about = {"kind": "message", "proposals": ["n2/5/1"], "joining": [], "leaving": [], "reason": "", "left_out": []}
    return ("phase", 20, phase), members(21), ("outcome", 22, {**outcome, **about})


def presided(began: float, ended: float) -> tuple[tuple[str, int, dict[str, Any]], ...]:
    """The same at the node that leads the group from its beginning on."""
    return ("joined", 0, {"era": 0}), members(1), *ballot(began, ended)


def test_a_node_that_went_on_from_a_checkpoint_saw_less_of_a_phase_than_who_presided(tmp_path: Path) -> None:
    """It joins, and is given a checkpoint: of which era that is nobody tells before the members change."""
    written(tmp_path, "n1", *presided(10.0, 10.502))
    written(tmp_path, "n2", ("joined", 0, {"era": 0}), ("restored", 15, {}), *ballot(10.004, 10.503))
    found = audit([tmp_path])
    assert [] == found.contradictions
    assert 1 == found.compared["G5"]
    assert any("G5" in why for why in found.unchecked)


def test_who_was_not_given_its_time_is_found(tmp_path: Path) -> None:
    written(tmp_path, "n1", *presided(10.0, 10.4))
    written(tmp_path, "n2", ("joined", 0, {"era": 0}), ("restored", 15, {}), *ballot(10.004, 10.401))
    assert ["G5"] == [one.rule for one in audit([tmp_path]).contradictions]
