"""Judging the history of a real run: by all checkers of the simulator, and by the rules of the journals.

Both read nothing but the lines. What real processes are given that simulated ones do not need is time to reply
(``REPLY_SLACK_S``): the machine is busy with other things, and a call may end later than its caller wanted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

import attrs

from groupsvc.journals.auditing import Audit
from groupsvc.journals.reading import Journal, Place, SegmentLines
from groupsvc.testing.sim.checkers import VIOLATIONS_MAX, check
from groupsvc.wire.history import HistoryEvent

from . import locks

REPLY_SLACK_S = 5.0

HISTORY_ENTRIES_MAX = 100_000
"""The daemon's default of ``limits.history_entries_max``."""


@attrs.frozen
class Finding:
    """A promise that was broken."""

    rule: str
    text: str
    at: int = 0  # the line that shows it

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}" + (f" (line {self.at})" if self.at else "")


def judge(history: Sequence[HistoryEvent]) -> list[Finding]:
    """All that is wrong with it."""
    about = history[0].args
    found = [Finding("run", str(text)) for text in about.get("failures", ())]
    found += [
        Finding(str(line.args["invariant"]), str(line.args["text"]), line.i) for line in history if line.op == "found"
    ]
    violations = check(
        history, voters=tuple(about["voters"]), converged=bool(about["converged"]), lease=float(about["lease"]),
        history_entries_max=HISTORY_ENTRIES_MAX, reply_slack_s=REPLY_SLACK_S,
    )  # fmt: skip
    violations += islice(locks.violations(history), VIOLATIONS_MAX)
    found += [Finding(one.invariant, one.text, one.at) for one in violations]
    return found + list(_by_journals(history))


@attrs.define
class _Written(SegmentLines):
    """What one life of a daemon has written."""

    lines: list[HistoryEvent] = attrs.field(factory=list)

    def __iter__(self) -> Iterator[tuple[Place, HistoryEvent]]:
        return ((Place(self.file, line.i), line) for line in self.lines)


def _by_journals(history: Sequence[HistoryEvent]) -> Iterator[Finding]:
    """The outsider's rules, on the lines of each life of each daemon."""
    lives: dict[tuple[str, str], _Written] = {}
    for line in history:
        if line.who == "daemon" and line.type == "event" and line.boot:
            lives.setdefault((line.node, line.boot), _Written(Path(f"{line.node}.{line.boot}"))).lines.append(line)
    audit = Audit(numbered=False)
    journals = [Journal(node, number, ((1, lines),)) for number, ((node, _), lines) in enumerate(lives.items())]
    for one in audit.of(journals).contradictions if journals else ():
        yield Finding(f"journal {one.rule}", str(one))


# --- What else a history tells ---

SERVICE = frozenset({"multicast", "propose_state", "send_by_ballot", "join_group", "catch_up", "come_to_barrier"})
"""Calls by which one sees that the service serves."""


@attrs.frozen(kw_only=True)
class Counts:
    """Of one run."""

    ops: int
    outcomes: dict[str, int]
    gap_s: float  # the longest time in which nobody's call ended well, while clients were at work


def counts(history: Sequence[HistoryEvent]) -> Counts:
    """How much was done, how it ended, and how long nothing was."""
    outcomes = Counter[str](line.type for line in history if line.type in ("ok", "fail", "info"))
    about = history[0].args
    since, until = float(about.get("since", 0.0)), float(about.get("until", 0.0))
    served = [line.t for line in history if line.type == "ok" and line.op in SERVICE and since <= line.t <= until]
    times = [since, *served, until]
    gap_s = max((after - before for before, after in pairwise(times)), default=0.0)
    ops = sum(line.type == "invoke" for line in history)
    return Counts(ops=ops, outcomes=dict(outcomes), gap_s=round(gap_s, 3))
