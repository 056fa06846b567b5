"""An audit of journals by an outsider: what all nodes have written must fit together.

It knows nothing but the lines, and shares no code with the engine. What it cannot know it says: which journals lack
lines, and which rules would need more than is here. Journals are read one after the other, each from its first line
to its last; wall clocks play no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ..wire.history import HistoryEvent
from .ballot_rules import BallotRules
from .barrier_rules import BarrierRules
from .findings import Findings
from .order_rules import OrderRules
from .reading import Journal, Place, journals_in
from .stays import Stays
from .view_rules import ViewRules

RULES: dict[str, tuple[str, str]] = {
    "B1": ("full", "what is delivered under one number has the same bytes everywhere"),
    "B4": ("batch", "what is delivered under one number is the same everywhere, and nothing is left out"),
    "B5": ("full", "what one origin submits is delivered in its order, and once"),
    "V1": ("batch", "who installs a view is in it"),
    "V2": ("batch", "the views that a node installs only grow"),
    "V3": ("batch", "one view, one leader, one list of members"),
    "L1": ("batch", "one leader in an epoch"),
    "L3": ("batch", "who has promised an epoch accepts none below it"),
    "L6": ("batch", "fences only grow"),
    "G1": ("batch", "one ballot at a time, the same ones in the same order everywhere"),
    "G2": ("batch", "one outcome of a ballot"),
    "G3": ("batch", "the outcome follows from the votes"),
    "G4": ("batch", "everybody in the electorate is counted once, and as it has voted"),
    "G5": ("batch", "a vote is cast by default only for who is late, has failed or does not answer"),
    "G9": ("batch", "one value of the state under one version"),
    "G10": ("batch", "who leaves leaves once"),
    "R1": ("batch", "nobody is released from a barrier before all who count have come"),
    "R2": ("batch", "one end of a round"),
    "R3": ("batch", "who has come to a round counts for no later one"),
}
"""What is checked, and the journal level that it needs."""

NEVER = (
    "B2, B3, Q1 and all that hangs on what programs were told: journals tell what daemons did",
    "V4, V7, G6, G7, R4: that needs times of the whole domain, or what did not happen",
)
"""What no journal tells."""

NOT_AS_WRITTEN = (LookupError, TypeError, ValueError, AttributeError)
"""What comes of a line that no daemon has written so: somebody has changed it."""

Progress = Callable[[str], None]


def audit(paths: Iterable[Path], progress: Progress = lambda text: None) -> Findings:
    """Read everything, and compare."""
    return Audit(progress).of(journals_in(paths))


class Audit:
    """One run over all journals."""

    def __init__(self, progress: Progress = lambda text: None, *, numbered: bool = True) -> None:
        """``numbered``: whether the lines of each journal are numbered by themselves, as daemons do."""
        self.findings = Findings()
        self._is_numbered = numbered
        self._progress = progress
        self._barriers = BarrierRules(self.findings)
        self._rules = (OrderRules(self.findings), ViewRules(self.findings), BallotRules(self.findings), self._barriers)

    def of(self, journals: list[Journal]) -> Findings:
        """What was found in these."""
        for journal in journals:
            self._read(journal)
        if len({journal.node for journal in journals}) < 2:
            self.findings.cannot_check("agreement between nodes: there is a journal of one node only")
        for rule in self._rules:
            try:
                rule.judge()
            except NOT_AS_WRITTEN as problem:
                text = f"{type(rule).__name__} cannot be judged: lines are not as they are written ({problem!r:.80})"
                self.findings.contradict("J1", text)
        for never in NEVER:
            self.findings.cannot_check(never, 0)
        return self.findings

    def _read(self, journal: Journal) -> None:
        stays, last = Stays(journal), 0
        findings, name = self.findings, f"{journal.node}.{journal.boot:x}"
        if journal.segments[0][0] != 1:
            findings.cannot_check(f"what {name} wrote before its file {journal.segments[0][0]}")
            stays.lines_are_missing()
        self._barriers.clock = ""
        for number, segment in journal.segments:
            self._progress(f"reading {segment.file.name}")
            for place, line in segment:
                if last and line.i != last + 1 and self._is_numbered:
                    if line.i <= last:
                        findings.contradict("J1", f"line {line.i} of {name} comes after line {last}", place)
                    else:
                        findings.cannot_check(f"what {name} wrote in the lines that are missing", line.i - last - 1)
                    stays.lines_are_missing()
                last = line.i
                findings.lines += 1
                try:
                    self._take(name, stays, line, place)
                except NOT_AS_WRITTEN:
                    findings.contradict("J1", f"a line cannot be understood: {line.op} is not so written", place)
            if segment.torn_bytes:
                findings.cannot_check(f"the last line of {name}, file {number}, which is torn")
            for problem in segment.unreadable:
                findings.contradict("J1", f"a line cannot be read: {problem}")

    def _take(self, name: str, stays: Stays, line: HistoryEvent, place: Place) -> None:
        if line.op == "journal_lost":
            self.findings.cannot_check(f"what {name} could not write", line.args["lines"])
            stays.lines_are_missing()
            return
        if line.op == "journal":
            self._barriers.clock = line.args["clock"]
            return
        stay = stays.of(line)
        for rule in self._rules:
            rule.take(stay, line, place)
