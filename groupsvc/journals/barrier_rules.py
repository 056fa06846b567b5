"""Barriers: one end of every round, and nobody released before everybody who counts has come.

The node of a party writes when the party comes to a barrier, to which round and after which entry; every node that
carries the group writes how a round ended. A party that counts has come before its own node learns of the end. Where
several daemons read the same clock, as on one machine, nobody anywhere is released before the last one has come.
"""

from __future__ import annotations

from typing import Any

from ..wire.history import HistoryEvent
from .ballot_rules import ProviderKey, key_of, text_of
from .findings import Findings
from .reading import Place
from .stays import Stay

Coming = tuple[int, int, float, str, Place]
"""To which round, after which entry, when, by which clock, and where that stands."""


class BarrierRules:
    """R1, R2, R3."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._came: dict[tuple[int, str, ProviderKey], list[Coming]] = {}
        self._over: list[tuple[Stay, HistoryEvent, str, Place]] = []
        self._order: dict[Place, int] = {}
        self.clock = ""  # of the journal that is being read
        self._told: set[tuple[int, str, int, str, int]] = set()  # which ends of rounds are told by which nodes

    def take(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        """The next line of a journal."""
        if line.op == "barrier_entered":
            key = (line.group, line.args["barrier"], key_of(line.args["provider"]))
            self._came.setdefault(key, []).append((line.args["round"], line.seq, line.t, self.clock, place))
            self._order[place] = line.i
        elif line.op == "barrier_over":
            self._over.append((stay, line, self.clock, place))
            self._told.add((line.group, line.args["barrier"], line.args["round"], line.node, line.inc))
            self._order[place] = line.i

    def judge(self) -> None:
        """When everything was read."""
        rounds: dict[tuple[int, int | None, str, int], tuple[dict[str, Any], Place]] = {}
        ends: dict[tuple[int, str], dict[int, dict[str, Any]]] = {}
        for stay, line, _, place in self._over:
            key = (line.group, stay.era_at(line.seq), line.args["barrier"], line.args["round"])
            about = {"seq": line.seq, **line.args}
            known, before = rounds.setdefault(key, (about, place))
            ends.setdefault((line.group, line.args["barrier"]), {})[line.args["round"]] = line.args
            if before is not place:
                self._findings.compared["R2"] += 1
                if known != about:
                    text = f"round {line.args['round']} of barrier {line.args['barrier']!r} of group {line.group}"
                    self._findings.contradict("R2", f"{text} has ended in two ways", before, place)
        for stay, line, clock, place in self._over:
            if line.args["end"] != "broken":
                for provider in line.args["arrived"]:
                    self._has_come(stay, line, clock, place, provider, ends[line.group, line.args["barrier"]])

    def _has_come(
        self, stay: Stay, line: HistoryEvent, clock: str, place: Place, provider: list[Any],
        ends: dict[int, dict[str, Any]],
    ) -> None:  # fmt: skip
        number, barrier = int(line.args["round"]), line.args["barrier"]
        where = f"round {number} of barrier {barrier!r} of group {line.group}"
        came = [one for one in self._came.get((line.group, barrier, key_of(provider)), []) if one[0] <= number]
        is_told_at_home = (line.group, barrier, number, provider[0], provider[1]) in self._told
        if not is_told_at_home and (not came or came[-1][0] < number):
            why = "R1, R3 of parties at nodes whose journals are not here, or end before the round does"
            self._findings.cannot_check(why)
            return
        if not came:
            if not stay.is_whole:
                self._findings.cannot_check("R1, R3 of parties that may have come before their node's lines")
            elif provider[:2] == [line.node, line.inc]:
                text = f"{where}: {text_of(provider)} is counted, and its daemon has not seen it come"
                self._findings.contradict("R1", text, place)
            return
        coming = next((one for one in reversed(came) if one[1] <= line.seq), came[-1])
        self._findings.compared["R3"] += 1
        used = sorted(which for which, end in ends.items() if coming[0] <= which < number and _uses_up(end, provider))
        if used:
            text = f"{where}: {text_of(provider)} is counted, and had come to round {used[0]}, which is over"
            self._findings.contradict("R3", text, coming[4], place)
        self._findings.compared["R1"] += 1
        is_home = (provider[0], provider[1]) == (line.node, line.inc)
        if coming[1] > line.seq or (is_home and self._order[coming[4]] > self._order[place]):
            text = f"{where} ends with entry {line.seq}, before {text_of(provider)} has come"
            self._findings.contradict("R1", text, coming[4], place)
        elif clock and clock == coming[3]:
            if coming[2] > line.t:
                text = (
                    f"{line.node} tells the end of {where} {coming[2] - line.t:.6f} s before {text_of(provider)} comes"
                )
                self._findings.contradict("R1", text, coming[4], place)
        else:
            self._findings.cannot_check("R1 by the clock, between nodes that have different ones: by entries only")


def _uses_up(end: dict[str, Any], provider: list[Any]) -> bool:
    """Whether who had come to a round that ended so has not come to a later one: unless it was passed over."""
    return end["end"] != "released" or provider in end["arrived"]
