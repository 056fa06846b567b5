"""Whether a check had anything to look at, and of what it has seen nothing: a check that compared nothing has not held.

Journals differ by domain, node and process: some have a line for every entry and some a line for a batch, some begin in
the middle, some come from machines whose clocks have nothing to do with one another. What a check needs it says
(``checks.Check``); what is there was counted. From both follows, for each domain, why it could not be asked there, and
for all of them what has to be said beside "holds".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs

from .checks import LEVEL_WORDS, Check

NAMES_MAX = 5

OF_THE_DOMAIN = {"domain_entry", "ordered"}
"""What journals of any level have of the domain's own stream, line by line."""

Lines = Mapping[str, Mapping[str, Mapping[str, int]]]
"""By domain, by what checks read, by node: how many there are."""


@attrs.frozen(kw_only=True)
class Process:
    """One run of a daemon, as far as it matters here."""

    domain: str
    node: str
    boot: str
    level: str  # "" if its journal does not tell
    clock: str  # "" likewise
    is_whole: bool  # none of its lines is missing

    @property
    def name(self) -> str:
        """As the files of its journal are called."""
        return f"{self.node}.{self.boot}"


@attrs.frozen(kw_only=True)
class Grounds:
    """What a verdict stands on."""

    lines: int = 0
    why_not: str = ""  # "" if it could be asked somewhere
    but: tuple[str, ...] = ()  # what it has not seen, where it could be asked


@attrs.frozen(kw_only=True)
class Evidence:
    """All that is there."""

    domains: Sequence[str]
    lines: Lines
    processes: Sequence[Process]
    settled: frozenset[str]

    def grounds(self, check: Check) -> Grounds:
        """Of this check."""
        why = {domain: self._why_not(check, domain) for domain in self.domains}
        asked = [domain for domain, reason in why.items() if not reason]
        reasons = Counter(reason for reason in why.values() if reason)
        if not asked:
            return Grounds(why_not=" and ".join(sorted(reasons)) or "there are no journals")
        but = [f"not in {count} of {len(why)} domains: {reason}" for reason, count in sorted(reasons.items())]
        here = [one for one in self.processes if one.domain in asked]
        if check.level == "full":
            of_batches = [one.name for one in here if one.level != "full"]
            if not any(self._nodes(domain, "entry") for domain in asked):
                but.append("only of the domain's own stream: no journal has a line for every entry of a group")
            elif of_batches:
                but.append(f"not entry by entry of {_some(of_batches)}, whose level is not full")
        if check.whole:
            torn = [one.name for one in here if not one.is_whole]
            if torn:
                but.append(f"not of {_some(torn)}, of which lines are missing")
        lines = sum(sum(self._nodes(domain, name).values()) for domain in asked for name in _all_names(check.reads))
        return Grounds(lines=lines, but=tuple(but))

    def _why_not(self, check: Check, domain: str) -> str:
        missing = [names for names in check.reads if not any(self._nodes(domain, name) for name in names.split("|"))]
        if missing and check.level != "batch":
            return f"needs {LEVEL_WORDS[check.level]}"
        if missing:
            return f"there are no lines about it ({', '.join(missing).replace('|', ' or ')})"
        if check.settled and domain not in self.settled:
            return "nobody has said that the domain was at rest when the journals ended (--settled)"
        nodes = {node for name in check.reads[0].split("|") for node in self._nodes(domain, name)}
        if len(nodes) < check.nodes:
            return "there are journals of one node only"
        here = [one for one in self.processes if one.domain == domain]
        is_of_groups = OF_THE_DOMAIN.isdisjoint(_all_names(check.reads))
        if check.level == "full" and is_of_groups and here and all(one.level != "full" for one in here):
            return f"needs {LEVEL_WORDS['full']}"
        if check.one_clock and not _share_a_clock(here):
            return "needs journals of several nodes by one clock"
        if check.whole and here and not any(one.is_whole for one in here):
            return "of every journal lines are missing"
        return ""

    def _nodes(self, domain: str, name: str) -> Mapping[str, int]:
        return self.lines.get(domain, {}).get(name, {})


def _share_a_clock(processes: Iterable[Process]) -> bool:
    nodes: dict[str, set[str]] = {}
    for one in processes:
        if one.clock:
            nodes.setdefault(one.clock, set()).add(one.node)
    return any(len(those) > 1 for those in nodes.values())


def _all_names(reads: Iterable[str]) -> list[str]:
    return [name for names in reads for name in names.split("|")]


def _some(names: Sequence[str]) -> str:
    rest = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {rest} others" if rest > 0 else "")
