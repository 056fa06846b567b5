"""What groupsvc aims at beside others, and whether the figures of a file of results meet it.

An aim is a bound on a figure of ours, or on its ratio to that of another in the same round. It is judged by the median
of the rounds, and where nobody may ever see more by the worst of them. An aim that is not met says why: the sentence
is shown only then, so it can stay when the next measurement is better.
"""

from __future__ import annotations

import operator

import attrs

from .results import Figure, Results, figure, ratio
from .rows import ROWS

BARRIER = (
    "A round is 72 functions of Python and 60 calls into C for each party, and as much again in the daemon, where the "
    "hub has a handful ([0025](decisions/0025-a-round-of-a-barrier-is-one-entry.md))."
)
SINGLE = (
    "A message passes five processes written in Python one after the other, each of which is woken for it "
    "([0036](decisions/0036-where-the-time-goes-beside-others.md))."
)
SILENT = (
    "A silent node is due 2.5 s after its last answer; then its end is ordered, held and told "
    "([0036](decisions/0036-where-the-time-goes-beside-others.md))."
)
PYTHON = (  # only for what was measured elsewhere, too, and met there: docs/measured.md
    "It is met where Python is quick, and was not on the machine of these rounds, where the same code took two to "
    "three times its processor time ([0036](decisions/0036-where-the-time-goes-beside-others.md))."
)
RATIO = (
    "It is met where Python is quick, just so, and was not where Python is slow "
    "([0036](decisions/0036-where-the-time-goes-beside-others.md))."
)
COPIES = (
    "On its way to three programs a message is written and read seven times, where the hub does it four times, and "
    "each time costs as much as the hub's ([0036](decisions/0036-where-the-time-goes-beside-others.md))."
)
KILLED = (
    "Half of it is the end of the killed program itself, in which no daemon has a part; then three daemons and a "
    "program that have slept are woken one after the other "
    "([0036](decisions/0036-where-the-time-goes-beside-others.md))."
)


@attrs.frozen(kw_only=True)
class Aim:
    """One bound."""

    row: str
    bound: float
    to: str = ""  # by the name of a peer: the bound is on the ratio of ours to it; "" for a figure of its own
    is_at_least: bool = False
    is_worst: bool = False  # the worst round counts
    by: str = "ours"  # whose figure it is
    why: str = ""

    def words(self, title: str) -> str:
        """The aim as one reads it; ``title`` names whom it is compared with."""
        if not self.bound:
            return "none"
        sign = "≥" if self.is_at_least else "≤"
        number = f"{self.bound:,.0f}".replace(",", " ") if self.bound >= 1000 else f"{self.bound:g}"
        return f"{sign} {number} × {title}" if self.to else f"{sign} {number} {ROWS[self.row].unit}"

    def found(self, results: Results) -> Figure | None:
        """What it is judged by."""
        if self.to:
            return ratio(results, self.row, self.by, self.to)
        return figure(results, self.row, self.by)

    def is_met(self, found: Figure) -> bool:
        """Whether these rounds meet it."""
        worst = found.low if self.is_at_least else found.high
        compare = operator.ge if self.is_at_least else operator.le
        return compare(worst if self.is_worst else found.median, self.bound)


AIMS: tuple[Aim, ...] = (
    Aim(row="barrier-2", bound=1.5, to="floor", why=BARRIER),
    Aim(row="barrier-8", bound=1.5, to="floor", why=BARRIER),
    Aim(row="barrier-8", bound=0.5, to="corosync", why=BARRIER),
    Aim(row="barrier-32", bound=1.5, to="floor", why=BARRIER),
    Aim(row="spark", bound=2.0, why=PYTHON),
    Aim(row="spark", bound=500, to="ours", is_at_least=True, by="spark", why=PYTHON),
    Aim(row="single", bound=1.0, to="corosync", why=SINGLE),
    Aim(row="one", bound=5.0, to="corosync", is_at_least=True, why=RATIO),
    Aim(row="three", bound=100_000, is_at_least=True, why=PYTHON),
    Aim(row="large", bound=1.5, to="corosync", is_at_least=True, why=COPIES),
    Aim(row="client", bound=1.0, to="corosync", why=KILLED),
    Aim(row="daemon", bound=300),
    Aim(row="leader", bound=300),
    Aim(row="silent", bound=2500, is_worst=True, why=SILENT),
    Aim(row="cut", bound=2500, is_worst=True, why=SILENT),
    Aim(row="alarms", bound=0, is_worst=True),
    Aim(row="start", bound=1.0, why=PYTHON),
    Aim(row="idle", bound=40),
    Aim(row="loaded", bound=80),
)
