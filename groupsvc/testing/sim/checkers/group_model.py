"""A process group as one of its members must see it: a small model of its own, which knows nothing of the core.

It begins with the view that a member was given, and is fed what the member was told, one thing after the other. What
cannot be is said as (invariant, text):

- G1: one ballot at a time, phase after phase.
- G3: who votes is settled when a phase begins: all providers that are not failing, but for those who are to be
  expelled. Any REJECT rejects; else any CONTINUE leads on, or, if the proposer fixed their number, the phases do.
- G6: what changes the group stands before the outcome that says so; a rejection changes nothing. The dead leave,
  whatever the vote.
- G7: failures have their turn first, unless they are collected; in an exclusive group, those of processes: who failed
  with its node waits until that is gone. Nobody joins while anybody is listed who has failed.
- G5: that a provider does not answer is said once, and once that it does again.
- G10: nobody leaves who is not in, or fails twice.

Who voted what is looked up by whoever feeds it (``Paper``): G4 and G5 are about that, and stand there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from ..application_ops import digest

Found = tuple[str, str]


@attrs.frozen
class Paper:
    """What came with a vote that was counted as cast by its provider."""

    state: str | None
    default_vote: str | None


@attrs.define
class Running:
    """The ballot that is being voted on."""

    ballot: int
    phase: int
    about: str
    electorate: list[str]
    state: str | None
    fixed: int  # phases; 0: as many as are asked for
    opened_seq: int
    time_limit: float
    is_open: bool = True  # else its phase has ended, and another one is to follow


class GroupModel:
    """The group after what was fed last."""

    def __init__(self, view: dict[str, Any], attributes: dict[str, Any], failing: Mapping[str, str]) -> None:
        self.providers: dict[str, list[Any]] = {str(one[0]): list(one) for one in view["providers"]}
        # And how, if that is known.
        self.failing: dict[str, str] = {one: cause for one, cause in failing.items() if one in self.providers}
        self.failed = set(self.failing)  # also those that have left since
        self._inherited = frozenset(self.providers)  # of whose failing it may not have been told
        self.state: str = view["state"]
        self.version: int = view["version"]
        self.default_vote: str = view["default_vote"]
        self.attributes = dict(attributes)
        self._collected_failures = self.collects_failures  # until the attributes were changed last
        self.ballot: Running | None = None
        self._answers: dict[str, list[tuple[int, bool]]] = {}  # since when a provider does, or does not
        self._effects: list[tuple[str, dict[str, Any]]] = []  # of this entry, before the outcome that explains them

    @property
    def digest(self) -> int:
        """As the view of an event has it."""
        return digest(list(self.providers.values()), self.state, self.version, self.default_vote)

    @property
    def collects_failures(self) -> bool:
        """Whether failures wait for a window."""
        return self.attributes.get("batch", "none") in ("leaves", "both")

    # --- One thing after the other ---

    def begin_entry(self) -> Iterator[Found]:
        """Another entry."""
        for kind, full in self._effects:
            if kind != "message":
                yield "G6", f"{kind} {full} without an outcome that says so"
        self._effects.clear()

    def happened(self, kind: str, full: dict[str, Any], seq: int) -> Iterator[Found]:
        """What changes the group, or says who is about to."""
        if kind in ("joined", "left", "state", "attributes", "message"):
            self._effects.append((kind, full))
        if kind == "joined":
            for id, name, data in full["providers"]:
                if id in self.providers:
                    yield "G10", f"{id} joins and is in already"
                self.providers[id] = [id, name, data, seq]
                self._answers[id] = [(seq, True)]
        elif kind == "left":
            for id in full["providers"]:
                if self.providers.pop(id, None) is None:
                    yield "G10", f"{id} leaves ({full['cause']}) and was not in"
                self.failing.pop(id, None)
            if not self.providers:
                self.state = ""
        elif kind == "state":
            if full["version"] != self.version + 1:
                yield "G9", f"state version {full['version']} follows {self.version}"
            self.state, self.version = full["value"], full["version"]
        elif kind == "attributes":
            self._collected_failures = self.collects_failures
            self.attributes.update((name, value) for name, value in full["changes"])
        elif kind == "failing":
            if full["provider"] in self.failing or full["provider"] not in self.providers:
                yield "G10", f"{full['provider']} fails, and it has failed before or is not in"
            self.failing[full["provider"]] = full["cause"]
            self.failed.add(full["provider"])
        elif kind == "responsive":
            said = self._answers.setdefault(full["provider"], [])
            if said and said[-1][1] == full["does"]:
                yield "G5", f"that {full['provider']} answers ({full['does']}) is said twice"
            said.append((seq, full["does"]))

    def answers(self, provider: str, upto: int) -> bool | None:
        """Whether it answered its daemon, as of this entry; None: that was said before we were in, if at all."""
        return next((does for seq, does in reversed(self._answers.get(provider, [])) if seq <= upto), None)

    def silent_since(self, provider: str, upto: int) -> int | None:
        """The entry that says it does not answer, if that was so as of this one."""
        newest = next((said for said in reversed(self._answers.get(provider, [])) if said[0] <= upto), None)
        return newest[0] if newest is not None and not newest[1] else None

    def proposed(self, full: dict[str, Any], seq: int, fixed: int) -> Iterator[Found]:
        """A phase was opened."""
        ballot, running = full["ballot"], self.ballot
        if full["phase"] == 1:
            if running is not None:
                yield "G1", f"ballot {ballot} is opened while {running.ballot} runs"
            before = self._come_before(full["about"], self.collects_failures)
            if before:
                yield "G7", f"ballot {ballot} about {full['about']} has its turn before the failures of {before}"
        elif running is None or (running.ballot, running.phase + 1, running.is_open) != (ballot, full["phase"], False):
            yield "G1", f"phase {full['phase']} of ballot {ballot} does not follow from {running}"
        without = full["leaving"] if full["about"] == "expel" else ()
        # Who joins is not told who was failing already.
        hidden = [one for one in self.providers if one in self._inherited and one not in full["electorate"]]
        self.failing.update((one, "") for one in hidden if one not in without and one not in self.failing)
        self.failed.update(self.failing)
        expected = [one for one in self.providers if one not in self.failing and one not in without]
        if expected != full["electorate"]:
            yield "G3", f"in phase {full['phase']} of ballot {ballot} {full['electorate']} vote, and not {expected}"
        self.ballot = Running(
            ballot, full["phase"], full["about"], list(full["electorate"]), full["state"], fixed, seq,
            float(full["time_limit"]),
        )  # fmt: skip

    def phase_ended(self, full: dict[str, Any], papers: Sequence[Paper]) -> Iterator[Found]:
        """A phase is over, and another one follows."""
        running = self.ballot
        if running is None or not running.is_open or running.phase != full["phase"]:
            yield "G1", f"phase {full['phase']} ends, and {running} runs"
            return
        yield from self._judge(running, full["votes"], "continues")
        self._take(running, papers)
        running.is_open = False

    def ended(self, full: dict[str, Any], papers: Sequence[Paper]) -> Iterator[Found]:
        """A ballot, or a proposal without one, was decided."""
        running, self.ballot = self.ballot, None
        state, approved = full["state"], bool(full["approved"])
        if running is not None:
            if running.ballot != full["ballot"]:
                yield "G1", f"ballot {full['ballot']} ends while {running.ballot} runs"
            elif full["votes"]:
                yield from self._judge(running, full["votes"], "approved" if approved else "rejected")
                self._take(running, papers)
            elif not self._needs_no_vote(running, full, approved):
                yield "G3", f"ballot {full['ballot']} ends without a vote: {full['reason']}"
            if running.state != state:
                yield "G6", f"ballot {full['ballot']} ends with state {state!r}, and {running.state!r} was proposed"
        elif full["votes"] or full["reason"] != "one_phase":
            yield "G1", f"ballot {full['ballot']} ends and was never opened"
        elif before := self._come_before(full["about"], self._may_pass_failures(full["about"])):
            yield "G7", f"{full['about']} has its turn before the failures of {before}"
        yield from self._explain(full, approved, state)

    # --- Rules ---

    def _come_before(self, about: str, are_collected: bool) -> list[str]:
        """Whose failures have their turn before a proposal of this kind."""
        if about == "failure" or (are_collected and about != "join"):
            return []
        may_wait = ("node_failure", "") if self.attributes.get("exclusive") and about != "join" else ()
        return [one for one, cause in self.failing.items() if cause not in may_wait]

    def _may_pass_failures(self, about: str) -> bool:
        """Whether it may be decided without a vote while failures wait; a change of attributes by those before it."""
        return self._collected_failures if about == "attributes" else self.collects_failures

    @staticmethod
    def _needs_no_vote(running: Running, full: dict[str, Any], approved: bool) -> bool:
        """All who wanted to join are gone, or nobody is left to vote in the phase that would follow."""
        if approved:
            return not running.is_open
        return bool(full["joining"]) and len(full["left_out"]) == len(full["joining"])

    def _judge(self, running: Running, votes: list[list[str]], said: str) -> Iterator[Found]:
        if [vote[0] for vote in votes] != running.electorate:
            yield "G3", f"{votes} are not the votes of {running.electorate} in ballot {running.ballot}"
        cast = {vote[1] for vote in votes}
        if "reject" in cast:
            verdict = "rejected"
        elif running.fixed:
            verdict = "continues" if running.phase < running.fixed else "approved"
        else:
            verdict = "continues" if "continue" in cast else "approved"
        if verdict != said:
            yield "G3", f"phase {running.phase} of ballot {running.ballot} is {said} and not {verdict} with {votes}"

    def _take(self, running: Running, papers: Sequence[Paper]) -> None:
        """Of several states the oldest provider's counts, of several default votes REJECT."""
        states = [paper.state for paper in papers if paper.state is not None]
        if states:
            running.state = states[0]
        defaults = {paper.default_vote for paper in papers} - {None}
        if defaults:
            self.default_vote = "reject" if "reject" in defaults else "approve"

    def _explain(self, full: dict[str, Any], approved: bool, state: str | None) -> Iterator[Found]:
        """What stands before an outcome is just what follows from it."""
        expected: list[tuple[str, Any]] = []
        about = full["about"]
        if approved and about == "join":
            joined = [one for one in full["joining"] if one[0] not in full["left_out"]]
            expected.append(("joined", [one[0] for one in joined]))
        elif approved and about == "message":
            expected.append(("message", full["payload"]))
        elif approved and about == "attributes":
            expected.append(("attributes", full["changes"]))
        if approved and state is not None:
            expected.append(("state", state))
        if about == "failure" or (approved and about in ("leave", "expel")):
            expected.append(("left", sorted(full["leaving"])))
        found: list[tuple[str, Any]] = []
        left: list[str] = []
        for kind, effect in self._effects:
            if kind == "joined":
                found.append((kind, [one[0] for one in effect["providers"]]))
            elif kind == "left":
                left += effect["providers"]
            else:
                found.append((kind, effect[{"message": "payload", "attributes": "changes", "state": "value"}[kind]]))
        if left:
            found.append(("left", sorted(left)))
        self._effects.clear()
        if about in ("leave", "expel") and approved:  # who has failed meanwhile may be gone already
            expected = [one if one[0] != "left" else ("left", [id for id in one[1] if id in left]) for one in expected]
            expected = [one for one in expected if one != ("left", [])]
        if found != expected:
            what = "approved" if approved else "rejected"
            yield "G6", f"the {about} of ballot {full['ballot']} was {what} and {found} happened, not {expected}"
