"""Total order: what was delivered under one number is the same at all nodes, nothing is left out, nothing comes twice.

From lines per batch: two digests that began behind the same entry are equal at the same number. From lines per entry:
each number has one entry, and what one origin has submitted comes in its order.
"""

from __future__ import annotations

from ..wire.history import HistoryEvent
from .findings import Findings
from .reading import Place
from .stays import Stay

LEFT_OPEN = "B5, and every byte of B1, in groups: that needs journal_level full"


class OrderRules:
    """B1, B4, B5."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._digests: list[tuple[Stay, int, int, str, Place]] = []
        self._entries: list[tuple[Stay, int, tuple[int, str, int], Place]] = []
        self._newest: dict[tuple[Stay, str], int] = {}

    def take(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        """The next line of a journal."""
        if line.op not in ("delivered", "digest"):
            return
        if "digest" in line.args:
            self._digests.append((stay, line.args["base"], line.seq, line.args["digest"], place))
        if line.op == "digest":
            return
        first = line.args.get("first", line.seq)
        if stay.delivered is not None:
            self._findings.compared["B4"] += 1
            if first != stay.delivered + 1:
                text = f"{_who(stay)} delivers {first} of group {stay.group} after {stay.delivered}"
                self._findings.contradict("B4", text, place)
        stay.delivered = line.seq
        if "first" in line.args:
            self._findings.unchecked.setdefault(LEFT_OPEN, 0)
            self._findings.unchecked[LEFT_OPEN] += 1
            return
        self._entries.append((stay, line.seq, (line.crc, line.origin, line.n), place))
        if line.origin:
            self._comes_in_order(stay, line, place)

    def _comes_in_order(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        before = self._newest.get((stay, line.origin), 0)
        self._findings.compared["B5"] += 1
        if line.n <= before:
            text = f"{_who(stay)} delivers number {line.n} of {line.origin} after its number {before}"
            self._findings.contradict("B5", f"{text}, in group {stay.group}", place)
        self._newest[stay, line.origin] = line.n

    def judge(self) -> None:
        """When everything was read."""
        digests: dict[tuple[int, int, int, int], tuple[str, Stay, Place]] = {}
        for stay, base, seq, digest, place in self._digests:
            era = stay.era_at(seq)
            if era is None:
                self._findings.cannot_check("B4 of batches of which the era is not known: their node had just come")
                continue
            known, other, before = digests.setdefault((stay.group, era, base, seq), (digest, stay, place))
            if before is place:
                continue
            self._findings.compared["B4"] += 1
            if known != digest:
                text = f"group {stay.group}: what {_who(other)} and {_who(stay)} have delivered"
                self._findings.contradict("B4", f"{text} from {base + 1} to {seq} differs", before, place)
        entries: dict[tuple[int, int, int], tuple[tuple[int, str, int], Stay, Place]] = {}
        for stay, seq, entry, place in self._entries:
            era = stay.era_at(seq)
            if era is None:
                self._findings.cannot_check("B4 of entries of which the era is not known: their node had just come")
                continue
            found, other, before = entries.setdefault((stay.group, era, seq), (entry, stay, place))
            if before is place:
                continue
            self._findings.compared["B4"] += 1
            self._findings.compared["B1"] += 1
            if found != entry:
                rule = "B1" if found[1:] == entry[1:] else "B4"
                text = f"entry {seq} of group {stay.group} is not the same at {_who(other)} and {_who(stay)}"
                self._findings.contradict(rule, text, before, place)


def _who(stay: Stay) -> str:
    return stay.journal.node
