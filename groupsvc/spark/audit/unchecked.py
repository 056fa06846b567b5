"""What an audit could not look at, and why: it is told, and never passed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from .sources import Sources

if TYPE_CHECKING:
    from .auditing import Asked
    from .worktable import WorkTables

NEVER = (
    ("L2", "that an epoch is on the disk before it is used: journals tell no writes to disks"),
    ("B2", "that every call of a program ends: journals tell what daemons did, not what programs were told"),
    ("B5", "that what is sent after something was delivered comes behind it: only histories tell when it was sent"),
    ("B3", "what was delivered in the last half second before the first daemon ended"),
    (
        "B5",
        "gaps in what an origin submits where its own journal is not here or has holes, or where nobody has the entries"
        " between: it alone tells what it has given up",
    ),
    ("G5", "late votes of phases that the journal of who presided does not tell from beginning to end"),
    ("L3", "what is held of leaders whose journals are not here, or were written by another clock"),
    ("R3", "rounds of barriers across a view that has lost entries: what was lost decides nothing"),
    ("V2", "that views grow across restarts: what was only in memory may be forgotten, and journals do not tell"),
    ("L4, V7, G6 to G9, R4", "rules of liveness, of state values and of what did not happen are not asked here"),
)
"""What no journal tells."""


@attrs.frozen(kw_only=True)
class Unchecked:
    """Something that was not looked at."""

    rules: str
    what: str
    count: int = 0


def unchecked(work: WorkTables, sources: Sources, asked: Iterable[Asked]) -> tuple[Unchecked, ...]:
    """All of it."""
    found = [
        Unchecked(rules=one.check.rule, what=f"{one.check.promise}: {reason}")
        for one in asked
        for reason in (*([one.why_not] if one.why_not else []), *one.but)
    ]
    levels: dict[str, list[str]] = {}
    for row in work.sql("SELECT node, boot, level FROM {runs} WHERE level != 'full'").collect():
        levels.setdefault(row["level"] or "unknown", []).append(f"{row['node']}.{row['boot']}")
    for level, runs in sorted(levels.items()):
        what = f"entry by entry, what {_some(runs)} delivered: level {level}, needs full"
        found.append(Unchecked(rules="B1, B4, B5, B6, V3, V4, V5, V6, L1, L3, L5", what=what, count=len(runs)))
    for row in work.sql(HOLES).collect():
        words = HOLE_WORDS[row["why"]]
        found.append(
            Unchecked(rules="all", what=f"what {row['node']}.{row['boot']} {words}", count=row["missing"] or 0)
        )
    found += [
        Unchecked(rules="all", what=f"the last line of {one.name}, which is torn", count=1) for one in sources.torn
    ]
    for question, rules, what in QUESTIONS:
        count = work.sql(question).collect()[0][0]
        if count:
            found.append(Unchecked(rules=rules, what=what, count=int(count)))
    return (*found, *(Unchecked(rules=rules, what=what) for rules, what in NEVER))


def _some(names: list[Any]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} others" if len(names) > 5 else "")


HOLE_WORDS = {
    "missing": "wrote in lines that are missing",
    "before the first": "wrote before its first line here",
    "could not be written": "could not write",
}

HOLES = """
    SELECT u.node, u.boot, h.why, sum(h.missing) AS missing FROM {holes} h JOIN {runs} u ON u.run = h.run
    GROUP BY u.node, u.boot, h.why ORDER BY 1, 2, 3
"""

QUESTIONS = (
    (
        "SELECT count(*) FROM {every_line} WHERE class = 'other version'", "all",
        "lines of a version that is not known here",
    ),
    (
        "SELECT count(*) FROM {followed} WHERE era IS NULL", "B1, B4, B5, V5, V6",
        "entries and batches of which the era is not known: their node had just come, or its lines begin in the middle",
    ),
    (
        "SELECT count(*) FROM {cast_votes} c LEFT JOIN {runs} u ON u.domain = c.domain"
        " AND u.node = get_json_object(c.provider, '$[0]') WHERE u.run IS NULL AND c.why IN ('', 'raised')", "G4",
        "votes of providers at nodes whose journals are not here",
    ),
    (
        "SELECT count(*) FROM {cast_votes} c LEFT JOIN {provider_joined} j ON j.run = c.run AND j.stream = c.stream"
        " AND j.stay = c.stay AND j.provider = c.provider AND j.lsn < c.lsn"
        " WHERE c.why IN ('failed', 'unresponsive') AND j.run IS NULL", "G5",
        "votes for providers that may have been announced before their node's lines begin",
    ),
    (
        "SELECT count(*) FROM {cast_votes} WHERE why = 'late' AND era IS NULL", "G5",
        "late votes at nodes of which the era is not known",
    ),
    (
        "SELECT count(*) FROM {ballots} b LEFT JOIN {counted} c ON c.run = b.run AND c.lsn = b.lsn"
        " WHERE b.kind IN ('votes', 'outcome') AND size(b.votes) > 0 AND c.run IS NULL", "G3, G4, G5",
        "ballots that had begun before their node's lines did",
    ),
    (
        "SELECT count(*) FROM {counts} c WHERE NOT c.is_told_at_home AND coalesce(c.coming.round, -1) != c.round",
        "R1, R3", "parties at nodes whose journals are not here, or end before the round does",
    ),
    (
        "SELECT count(*) FROM {counts} WHERE is_before_hole", "R1, R3",
        "parties whose coming may be in lines that are missing",
    ),
    (
        "SELECT count(*) FROM {counts} c WHERE c.coming IS NOT NULL AND (c.clock = '' OR c.coming.clock != c.clock)",
        "R1", "by the clock, parties at nodes that have another one: they are compared by entries only",
    ),
)  # fmt: skip
