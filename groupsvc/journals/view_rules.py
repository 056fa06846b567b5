"""Views, members, leaders and fences: one view under one epoch, one leader, and numbers that only grow."""

from __future__ import annotations

from typing import Any

from ..wire.history import HistoryEvent
from .findings import Findings
from .reading import Place
from .stays import Stay

FENCES = ("members", "provider_joined", "provider_left", "fenced")
"""Lines with a fence: that of the nodes which carry the group, or that of its providers."""


class ViewRules:
    """V1, V2, V3, L1, L3, L6."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._views: dict[tuple[int, int], tuple[Any, Place]] = {}
        self._leaders: dict[tuple[int, int], tuple[str, Place]] = {}
        self._installed: dict[tuple[tuple[str, int], int], int] = {}
        self._promised: dict[tuple[tuple[str, int], int], int] = {}
        self._fences: dict[tuple[Stay, bool], tuple[int, int]] = {}
        self._members: list[tuple[Stay, int, Any, Place]] = []

    def take(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        """The next line of a journal."""
        op = line.op
        here = (stay.journal.key, line.group)
        if op == "view_installed":
            self._view(stay, line, place)
        elif op == "view_active" or (op == "office" and line.args["phase"] == "open"):
            self._leads(line, place)
        elif op == "promise":
            self._promised[here] = max(line.epoch, self._promised.get(here, 0))
        elif op == "members":
            shown = (line.args["members"], line.args["leader"], line.args["fence"])
            self._members.append((stay, line.seq, shown, place))
        if op in FENCES:
            self._fence(stay, line, place)

    def _view(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        findings, here = self._findings, (stay.journal.key, line.group)
        view = (line.args["leader"], sorted(line.args["members"]))
        findings.compared["V1"] += 1
        if line.node not in line.args["members"]:
            text = f"{line.node} installs view {line.epoch} of group {line.group} and is not in it"
            findings.contradict("V1", text, place)
        known, before = self._views.setdefault((line.group, line.epoch), (view, place))
        if before is not place:
            findings.compared["V3"] += 1
            if known != view:
                text = f"view {line.epoch} of group {line.group} is {known} and {view}"
                findings.contradict("V3", text, before, place)
        last, promised = self._installed.get(here, 0), self._promised.get(here, 0)
        findings.compared["V2"] += 1
        if line.epoch < last:
            text = f"{line.node} installs view {line.epoch} of group {line.group} after view {last}"
            findings.contradict("V2", text, place)
        if promised:
            findings.compared["L3"] += 1
        if last <= line.epoch < promised:
            text = f"{line.node} has promised {promised} in group {line.group} and installs view {line.epoch}"
            findings.contradict("L3", text, place)
        self._installed[here] = max(line.epoch, last)

    def _leads(self, line: HistoryEvent, place: Place) -> None:
        known, before = self._leaders.setdefault((line.group, line.epoch), (line.node, place))
        self._findings.compared["L1"] += 1
        if known != line.node:
            text = f"{known} and {line.node} both lead group {line.group} in epoch {line.epoch}"
            self._findings.contradict("L1", text, before, place)

    def _fence(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        fence = int(line.args["fence"])
        last_seq, last = self._fences.get((stay, line.op == "members"), (0, 0))
        self._findings.compared["L6"] += 1
        if fence < last or (fence == last and line.seq > last_seq):
            text = f"the fence of group {line.group} is {fence} at {line.seq}, and was {last} at {last_seq}"
            self._findings.contradict("L6", text, place)
        self._fences[stay, line.op == "members"] = (line.seq, fence)

    def judge(self) -> None:
        """When everything was read."""
        shown: dict[tuple[int, int, int], tuple[Any, Place]] = {}
        for stay, seq, members, place in self._members:
            key = (stay.group, stay.era_at(seq) or 0, seq)
            known, before = shown.setdefault(key, (members, place))
            if before is not place:
                self._findings.compared["V3"] += 1
                if known != members:
                    text = f"the members of group {stay.group} after entry {seq} are {known} and {members}"
                    self._findings.contradict("V3", text, before, place)
