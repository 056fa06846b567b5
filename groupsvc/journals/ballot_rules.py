"""Ballots recounted: one at a time, one outcome, and the outcome follows from the votes.

Every node that carries a group writes down each phase (who has a vote, for how long), the votes as they were counted,
and the outcome. The node of a voter also writes what that voter said. So an outsider can recount every ballot, and can
tell whether a vote that was cast for somebody by default had its reason: it was late by the clock of a node that had
seen the phase begin, or had failed, or was announced as unresponsive, or its program raised an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from ..wire.history import HistoryEvent
from .findings import Findings
from .reading import Place
from .stays import Stay

ProviderKey = tuple[str, int, int]
DYNAMIC = 0
ENOUGH = 1e-6
"""Seconds by which two floats may differ that should be equal."""


def verdict(votes: Iterable[str], phase: int, phases: int) -> str:
    """G3 in five lines, independent of the engine's: "rejected", "approved" or "continues"."""
    cast = list(votes)
    if "reject" in cast:
        return "rejected"
    goes_on = "continue" in cast if phases == DYNAMIC else phase < phases
    return "continues" if goes_on else "approved"


@attrs.define
class Running:
    """The ballot that is open in one stay."""

    line: HistoryEvent  # of its newest phase
    place: Place


@attrs.define
class PhaseSeen:
    """A phase as one journal has it: when it began and when it had ended, by that node's clock."""

    began: float
    ended: float | None = None


@attrs.frozen
class Counted:
    """The votes of a phase as one journal has them."""

    stay: Stay
    line: HistoryEvent
    ballot: int
    phase: int
    time_limit: float
    where: str
    place: Place


class BallotRules:
    """G1 to G5, G9, G10."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._running: dict[Stay, Running | None] = {}
        self._told: dict[Stay, dict[tuple[int, str, str], tuple[Any, Place]]] = {}
        self._outcomes: list[tuple[Stay, HistoryEvent, Place]] = []
        self._phases: dict[tuple[int, int | None, int, int], list[tuple[Stay, PhaseSeen]]] = {}
        self._counted: list[Counted] = []
        self._voted: dict[tuple[int, int | None, int, int, ProviderKey], list[tuple[Any, Place]]] = {}
        self._joined: dict[Stay, set[ProviderKey]] = {}
        self._failing: dict[Stay, set[ProviderKey]] = {}
        self._silent: dict[Stay, set[ProviderKey]] = {}
        self._states: list[tuple[Stay, HistoryEvent, Place]] = []
        self._left: dict[tuple[Stay, ProviderKey], Place] = {}
        self._leaders: dict[tuple[int, int | None], list[tuple[int, str]]] = {}
        self._nodes: set[str] = set()  # whose journals are here

    def take(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        """The next line of a journal."""
        self._nodes.add(line.node)
        match line.op:
            case "phase":
                self._phase(stay, line, place)
            case "votes":
                self._votes(stay, line, place)
            case "outcome":
                self._outcome(stay, line, place)
            case "voted":
                ballot = line.args["ballot"]
                key = (line.group, stay.era_at(ballot), ballot, line.args["phase"], key_of(line.args["provider"]))
                self._voted.setdefault(key, []).append((line.args["vote"], place))
            case "members":
                self._leaders.setdefault((line.group, stay.era_at(line.seq)), []).append(
                    (line.seq, line.args["leader"])
                )
            case "provider_joined":
                self._joined.setdefault(stay, set()).update(map(key_of, line.args["providers"]))
            case "provider_failing":
                self._failing.setdefault(stay, set()).add(key_of(line.args["provider"]))
            case "responsive":
                silent = self._silent.setdefault(stay, set())
                (silent.discard if line.args["does"] else silent.add)(key_of(line.args["provider"]))
            case "state":
                self._states.append((stay, line, place))
            case "provider_left":
                self._leave(stay, line, place)
        if line.op in ("phase", "votes", "outcome"):
            content = {name: value for name, value in line.args.items() if name != "at"}
            which = str(line.args["ballot"])
            self._told.setdefault(stay, {})[line.seq, line.op, which] = (content, place)

    # --- One journal ---

    def _phase(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        args = line.args
        running = self._running.get(stay)
        self._findings.compared["G1"] += 1
        if running is not None and running.line.args["ballot"] != args["ballot"]:
            text = f"ballot {args['ballot']} of group {line.group} begins while {running.line.args['ballot']} runs"
            self._findings.contradict("G1", text, running.place, place)
        self._running[stay] = Running(line, place)
        seen = PhaseSeen(args["at"])
        key = (line.group, stay.era_at(args["ballot"]), args["ballot"], args["phase"])
        self._phases.setdefault(key, []).append((stay, seen))

    def _votes(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        self._count(stay, line, place, "continues")

    def _outcome(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        if line.args["votes"]:
            self._count(stay, line, place, "approved" if line.args["approved"] else "rejected")
        self._running[stay] = None
        self._outcomes.append((stay, line, place))

    def _count(self, stay: Stay, line: HistoryEvent, place: Place, expected: str) -> None:
        """The votes of the phase that has just ended."""
        running, findings = self._running.get(stay), self._findings
        ballot, votes = line.args["ballot"], line.args["votes"]
        if running is None:
            findings.cannot_check("G3, G4, G5 of a ballot that had begun before its node's lines did")
            return
        if running.line.args["ballot"] != ballot:
            text = f"votes of ballot {ballot} of group {line.group} while {running.line.args['ballot']} runs"
            findings.contradict("G1", text, running.place, place)
            return
        phase = int(running.line.args["phase"])
        where = f"phase {phase} of ballot {ballot} of group {line.group}"
        findings.compared["G4"] += 1
        voters = [key_of(one) for one, _, _ in votes]
        if voters != [key_of(one) for one in running.line.args["electorate"]]:
            findings.contradict("G4", f"{where}: who is counted is not who had a vote", running.place, place)
        phases = int(running.line.args["phases"])
        if phases >= 0:
            findings.compared["G3"] += 1
            found = verdict((vote for _, vote, _ in votes), phase, phases)
            if found != expected:
                findings.contradict("G3", f"{where}: the votes say {found}, and it is {expected}", running.place, place)
        self._counted.append(Counted(stay, line, ballot, phase, float(running.line.args["time_limit"]), where, place))
        for seen_by, seen in self._phases[line.group, stay.era_at(ballot), ballot, phase]:
            if seen_by is stay:
                seen.ended = line.args["at"]
        self._default_votes_of_the_known(stay, votes, where, place)

    def _default_votes_of_the_known(self, stay: Stay, votes: list[Any], where: str, place: Place) -> None:
        """Of whoever a vote was cast for because it had failed, or did not answer, that was announced before."""
        known = {"failed": self._failing.get(stay, set()), "unresponsive": self._silent.get(stay, set())}
        for provider, _, why in votes:
            if why not in known:
                continue
            if key_of(provider) in known[why]:
                self._findings.compared["G5"] += 1
            elif key_of(provider) not in self._joined.get(stay, set()):
                self._findings.cannot_check("G5 of providers that may have been announced before their node's lines")
            else:
                text = f"{where}: a vote is cast for {text_of(provider)} as {why}, which nobody has announced"
                self._findings.contradict("G5", text, place)

    def _leave(self, stay: Stay, line: HistoryEvent, place: Place) -> None:
        for provider in map(key_of, line.args["providers"]):
            self._findings.compared["G10"] += 1
            before = self._left.setdefault((stay, provider), place)
            if before is not place:
                text = f"{text_of(provider)} leaves group {line.group} twice"
                self._findings.contradict("G10", text, before, place)

    # --- All journals ---

    def judge(self) -> None:
        """When everything was read."""
        self._same_everywhere()
        self._one_outcome()
        self._one_state()
        for counted in self._counted:
            for provider, vote, why in counted.line.args["votes"]:
                if why in ("", "raised"):
                    self._was_cast(counted, provider, vote if why == "" else None)
                elif why == "late":
                    self._was_late(counted, provider)

    def _same_everywhere(self) -> None:
        """G1: where two stays have both come by, both tell the same."""
        by_group: dict[int, list[Stay]] = {}
        for stay in self._told:
            by_group.setdefault(stay.group, []).append(stay)
        for group, stays in by_group.items():
            for place, one in enumerate(stays):
                for other in stays[place + 1 :]:
                    self._compare(group, one, other)

    def _compare(self, group: int, one: Stay, other: Stay) -> None:
        ours, theirs = self._told[one], self._told[other]
        first = max(min(ours)[0], min(theirs)[0])
        last = min(max(ours)[0], max(theirs)[0])
        for key in sorted({key for key in (*ours, *theirs) if first <= key[0] <= last}):
            if one.era_at(key[0]) is None or one.era_at(key[0]) != other.era_at(key[0]):
                self._findings.cannot_check("G1 of nodes that were not in the same era")
                continue
            self._findings.compared["G1"] += 1
            mine, its = ours.get(key), theirs.get(key)
            what = f"{key[1]} of ballot {key[2]} of group {group}, entry {key[0]},"
            if mine is None or its is None:
                lacking = one if mine is None else other
                known = its if mine is None else mine
                assert known is not None
                if not min(self._told[lacking])[0] < key[0] < max(self._told[lacking])[0]:
                    continue  # it may have come in the middle, and may have been killed in the middle
                text = f"{what} is not in the journal of {lacking.journal.node}"
                self._findings.contradict("G1", text, known[1])
            elif mine[0] != its[0] and key[1] != "outcome":
                text = f"{what} differs between {one.journal.node} and {other.journal.node}"
                self._findings.contradict("G1", text, mine[1], its[1])

    def _one_outcome(self) -> None:
        outcomes: dict[tuple[int, int | None, int, str], tuple[Any, Place]] = {}
        for stay, line, place in self._outcomes:
            about = {"seq": line.seq} | {name: value for name, value in line.args.items() if name != "at"}
            # Several that need no vote may have their turn with one entry, so what was proposed tells them apart.
            what = str([line.args["kind"], line.args["proposals"], line.args["leaving"]])
            key = (line.group, stay.era_at(line.args["ballot"]), line.args["ballot"], what)
            known, before = outcomes.setdefault(key, (about, place))
            if before is not place:
                self._findings.compared["G2"] += 1
                if known != about:
                    text = f"ballot {line.args['ballot']} of group {line.group} has two outcomes"
                    self._findings.contradict("G2", text, before, place)

    def _one_state(self) -> None:
        states: dict[tuple[int, int | None, int], tuple[int, Place]] = {}
        for stay, line, place in self._states:
            key = (line.group, stay.era_at(line.seq), line.args["version"])
            known, before = states.setdefault(key, (line.crc, place))
            if before is not place:
                self._findings.compared["G9"] += 1
                if known != line.crc:
                    text = f"version {line.args['version']} of the state of group {line.group} has two values"
                    self._findings.contradict("G9", text, before, place)

    def _was_cast(self, counted: Counted, provider: list[Any], vote: Any) -> None:
        stay, where, findings = counted.stay, counted.where, self._findings
        era = stay.era_at(counted.ballot)
        said = self._voted.get((stay.group, era, counted.ballot, counted.phase, key_of(provider)))
        if said is None:
            if provider[:2] == [counted.line.node, counted.line.inc]:  # it has written all that came before this line
                text = f"{where}: {text_of(provider)} is counted, and its daemon knows of no vote of it"
                findings.contradict("G4", text, counted.place)
            elif provider[0] not in self._nodes:
                findings.cannot_check("G4 of voters at nodes whose journals are not here")
            return
        findings.compared["G4"] += 1
        first, told_at = said[0]
        if len(said) > 1:
            text = f"{where}: the daemon of {text_of(provider)} has taken {len(said)} votes of it"
            findings.contradict("G4", text, *(at for _, at in said))
        elif first != vote:
            text = f"{where}: {text_of(provider)} has voted {first}, and {vote} is counted"
            findings.contradict("G4", text, told_at, counted.place)

    def _was_late(self, counted: Counted, provider: list[Any]) -> None:
        """By the clock of the node that presided the time was up; and of all nodes it saw the phase begin first."""
        stay, ballot, limit = counted.stay, counted.ballot, counted.time_limit
        key = (stay.group, stay.era_at(ballot), ballot, counted.phase)
        seen = [one.ended - one.began for _, one in self._phases.get(key, []) if one.ended is not None]
        longest = max(seen, default=0.0)
        if longest >= limit - ENOUGH:
            self._findings.compared["G5"] += 1
        elif key[1] is None:  # it went on from a checkpoint: what others saw may have been of another era
            self._findings.cannot_check("G5 of late voters, by nodes of which the era is not known")
        elif self._presided(stay, counted.line.seq) not in self._nodes:
            self._findings.cannot_check("G5 of late voters, as the journal of the node that presided is not here")
        else:
            text = f"{counted.where}: {text_of(provider)} is late after {longest:.3f} s, and had {limit:g} s"
            self._findings.contradict("G5", text, counted.place)

    def _presided(self, stay: Stay, seq: int) -> str:
        known = [one for one in self._leaders.get((stay.group, stay.era_at(seq)), []) if one[0] <= seq]
        return max(known, default=(0, ""))[1]


def key_of(provider: list[Any]) -> ProviderKey:
    """A provider as lines have it, for a dictionary."""
    return (provider[0], provider[1], provider[2])


def text_of(provider: Iterable[Any]) -> str:
    """The same for people."""
    return "/".join(map(str, provider))
