"""G1 – G8, G10 for applications: one story for all, and it is the one that the votes lead to.

Every story is replayed through a model of its own (``group_model``), with the votes as their casters wrote them down;
and all stories of a group are laid side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

from groupsvc.wire.history import HistoryEvent

from .application_stories import FOR_SUBSCRIBERS, Stories, Story, Told
from .group_model import GroupModel, Paper
from .verdict import Violation

CLOCKS_DIFFER = 0.01
"""How much sooner than by the harness' clock a time limit may be over by a node's own."""

DISSOLVED = "the group has dissolved"
"""What who watches is told at the end of a group begins like this."""

EFFECTS = frozenset({"joined", "left", "state", "attributes", "message", "failing", "responsive"})

Times = dict[tuple[int, int], float]
"""(group, seq) -> when it happened first."""

Known = dict[tuple[int, int], tuple[int, int]]
"""(group, seq) -> up to which entry its leader knew the group when it ordered this one: at least, and at most."""

Failed = dict[str, tuple[int, str]]
"""Provider -> the entry that says it has failed, and the cause."""


# --- G1, G2, G8: side by side --------------------------------------------------------------------------------


def g1(stories: Stories, converged: bool = False, lost: frozenset[int] = frozenset()) -> Iterator[Violation]:
    """The same sequence for all.

    But for what the group went on without (``void``): who was told of that is told of nothing of the group as it went
    on, and in a converged run his part has ended.
    Who is told of an entry is told what the others are, and nobody is left out of one between two that he is told of.
    Of the entry that lets it in a member is told from its own join on, of the entry that removes it only that, and of
    the last one before its end perhaps only the beginning: its daemon may have been stopped there for good. So it is
    with the last one of a run that was cut off, where the daemon may stand still.
    Subscribers are told what was approved: the same of it, in the same order (G8).
    """
    for group, those in stories.groups():
        whole: dict[int, tuple[tuple[int, ...], Story]] = {}
        longest: dict[int, tuple[tuple[int, ...], Story]] = {}  # of those who may have been told only the beginning
        for story in those:
            if not story.provider:
                continue
            for told in story.whole:
                if told.seq == story.view["seq"] or _removes(stories, story, told):
                    continue
                is_cut = story.may_be_cut(told, converged=converged)
                first, other = (longest if is_cut else whole).setdefault(told.seq, (told.digests, story))
                common = min(len(first), len(told.digests)) if is_cut else None
                if first[:common] != told.digests[:common]:
                    yield _different(told, story, other, "G1")
                elif is_cut and len(told.digests) > len(first):
                    longest[told.seq] = (told.digests, story)
        for story in those:
            yield from _partly(stories, story, whole, converged)
            yield from _left_out(stories, group, story)
    if converged:
        yield from _still_there(stories, lost)


def _still_there(stories: Stories, lost: frozenset[int]) -> Iterator[Violation]:
    """Who has not been told that he has lost his group, which went on without something that he was told of."""
    those = chain(stories.wholly_void, *stories.by_group.values())
    for story in those:
        if story.void_from < math.inf and story.ended is None and story.group not in lost:
            text = f"{story.title} is in group {story.group} in the end, which went on without {story.void_from}"
            yield Violation("G1", text, story.began.i)


def _removes(stories: Stories, story: Story, told: Told) -> bool:
    return any(line.args["kind"] == "left" and story.provider in stories.of(line)["providers"] for line in told.lines)


def _different(told: Told, story: Story, other: Story, invariant: str) -> Violation:
    kinds = [line.args["kind"] for line in told.lines]
    text = f"{story.title} is told {kinds} of entry {told.seq} of group {story.group}, {other.title} something else"
    return Violation(invariant, text, told.lines[-1].i)


def _partly(
    stories: Stories, story: Story, whole: dict[int, tuple[tuple[int, ...], Story]], converged: bool
) -> Iterator[Violation]:
    """Who is told only a part of an entry is told no more than that."""
    for told in story.whole:
        known = whole.get(told.seq)
        if known is None:
            continue
        digests, other = known
        is_cut = story.may_be_cut(told, converged=converged)
        if story.provider and told.seq == story.view["seq"]:
            behind = digests[digests.index(told.digests[0]) :] if told.digests[0] in digests else ()
            is_same = told.digests == (behind[: len(told.digests)] if is_cut else behind)
        elif story.provider and is_cut and not _removes(stories, story, told):
            is_same = told.digests == digests[: len(told.digests)]
        elif story.provider:
            is_same = set(told.digests) <= set(digests)
        else:
            shown = tuple(crc for crc in digests if _kind(stories, story.group, told.seq, crc) in FOR_SUBSCRIBERS)
            is_same = told.digests == (shown[: len(told.digests)] if is_cut else shown)
        if not is_same:
            yield _different(told, story, other, "G1" if story.provider else "G8")


def _kind(stories: Stories, group: int, seq: int, crc: int) -> str:
    return str(stories.first_told[group, seq, crc].args["kind"])


def _left_out(stories: Stories, group: int, story: Story) -> Iterator[Violation]:
    told = story.whole
    if len(told) < 2:
        return
    to_subscribers = not story.provider
    seqs = [one.seq for one in told]
    if any(after <= before for before, after in pairwise(seqs)):
        yield Violation("G1", f"{story.title} is told of entries {seqs} of group {group}", told[-1].lines[-1].i)
    known = stories.between(group, seqs[0], seqs[-1] - 1, to_subscribers=to_subscribers)
    missed = sorted(set(known) - set(seqs))
    if missed:
        text = f"{story.title} is told of {seqs[0]} and {seqs[-1]} of group {group}, and not of {missed[:5]}"
        yield Violation("G8" if to_subscribers else "G1", text, told[-1].lines[-1].i)


def g2(stories: Stories) -> Iterator[Violation]:
    """Outcome agreement: what a proposer is answered, or whoever asks later, is what all were told."""
    told: dict[tuple[int, int, str], dict[str, Any]] = {}
    for place in stories.first_told:
        full = stories.full[place]
        if "reason" in full and "approved" in full:
            told[place[0], full["ballot"], full["proposal"]] = full
    for call in stories.calls.values():
        end = call.end
        if end is None or end.type != "ok" or "approved" not in end.result or stories.is_void(end):
            continue
        known = told.get((end.group, end.result["ballot"], end.result["proposal"]))
        if known is None:
            continue
        for what in ("approved", "phases", "reason", "votes", "left_out"):
            if known[what] != end.result[what]:
                text = f"{end.who} is answered {what} {end.result[what]} in ballot {known['ballot']}, all were told"
                yield Violation("G2", f"{text} {known[what]}", end.i)


# --- G3 – G7, G10: story by story ------------------------------------------------------------------------------


def g3(stories: Stories, delivered: Times, ordered: Times, known: Known) -> Iterator[Violation]:
    """Every story is what follows from its votes; ``group_model`` has the rules of G1, G3, G6, G7, G9, G10.

    G4: a vote that was cast by its provider is the first that it cast in that phase; what it cast a second time, late,
    or in another phase is nowhere. G5: a default is cast for who has failed, for whose code has raised an error, for
    who does not answer its daemon, or after the time limit, counted from the moment that the first node knew of the
    phase. Who does not answer, as far as the leader knows, is not waited for until then; unless its daemon had its vote
    before anybody was told that it does not answer.
    """
    phases = _fixed_phases(stories)
    for group, those in stories.groups():
        failed = _failed(stories, those)
        for story in those:
            yield from Replay(stories, group, story, failed, phases, delivered, ordered, known).run()


def _failed(stories: Stories, those: list[Story]) -> Failed:
    """Who has failed, with which entry and how, as anybody was told."""
    found: Failed = {}
    for story in those:
        for told in story.told:
            for line in told.lines:
                if line.args["kind"] == "failing":
                    full = stories.of(line)
                    found.setdefault(str(full["provider"]), (told.seq, str(full["cause"])))
    return found


def _fixed_phases(stories: Stories) -> dict[str, int]:
    """By the unique value of a proposal: how many phases its proposer wanted; 0: as many as are asked for."""
    found: dict[str, int] = {}
    for call in stories.calls.values():
        if call.invoke.op in ("propose_state", "send_by_ballot"):
            args = call.invoke.args
            value = str(args["value"] if call.invoke.op == "propose_state" else args["payload"])
            found[value] = args["phases"] if isinstance(args["phases"], int) else 0
    return found


class Replay:
    """One story, replayed."""

    def __init__(
        self, stories: Stories, group: int, story: Story, failed: Failed, phases: dict[str, int],
        delivered: Times, ordered: Times, known: Known,
    ) -> None:  # fmt: skip
        self._stories, self._group, self._story = stories, group, story
        self._phases, self._delivered, self._ordered, self._known = phases, delivered, ordered, known
        view = story.view
        failing = sorted((seq, one, cause) for one, (seq, cause) in failed.items() if seq <= view["seq"])
        causes = {one: cause for _, one, cause in failing}
        self._model = GroupModel(view, story.began.result["attributes"], causes)

    def run(self) -> Iterator[Violation]:
        """What cannot be."""
        story, model = self._story, self._model
        start = story.view["seq"]
        for told in story.whole:
            for invariant, text in model.begin_entry():
                if story.provider:  # who only watches is told of no outcome
                    yield Violation(invariant, f"{story.title}: {text}", told.lines[-1].i)
            is_first, is_last = told.seq <= start, _removes(self._stories, story, told)
            for line in told.lines:
                for invariant, text in self._take(line, is_first=is_first):
                    yield Violation(invariant, f"{story.title}, entry {told.seq}: {text}", line.i)
            if is_last:
                return
            if not is_first:
                yield from self._look_at_view(told)

    def _take(self, line: HistoryEvent, *, is_first: bool) -> Iterator[tuple[str, str]]:
        kind, full, model = str(line.args["kind"]), self._stories.of(line), self._model
        if is_first and kind != "proposed":
            return  # the view that it began with has it all
        if kind in EFFECTS:
            yield from model.happened(kind, full, line.seq)
        elif kind == "proposed":
            fixed = 0
            if full["about"] in ("state", "message") and full["phase"] == 1:
                fixed = self._phases.get(str(full["state"] if full["about"] == "state" else full["payload"]), 0)
            elif model.ballot is not None:
                fixed = model.ballot.fixed
            yield from model.proposed(full, line.seq, fixed)
        elif kind == "phase_ended":
            yield from self._count(full["votes"], line.seq)
            yield from model.phase_ended(full, self._papers(full["votes"], None))
        elif kind == "ended":
            if model.ballot is not None and full["votes"]:
                yield from self._count(full["votes"], line.seq)
            if self._story.provider:
                yield from model.ended(full, self._papers(full["votes"], full["state"]))

    def _look_at_view(self, told: Told) -> Iterator[Violation]:
        """G1: the view that goes with an entry is the group after it."""
        if not self._story.provider:
            return
        for line in told.lines:
            if line.args["kind"] != "message" and line.args["view"] != self._model.digest:
                text = (
                    f"{self._story.title} is shown another view with entry {told.seq} than follows from what it is told"
                )
                yield Violation("G1", text, line.i)
                return

    # --- Votes ---

    def _cast(self, provider: str) -> list[dict[str, Any]]:
        """What it cast first in the running phase, as it wrote it down.

        Beside that may stand what it cast when it had not heard yet that the phase had begun, and its daemon had opened
        it: that line is written when the vote arrives there. One of these is its vote.
        """
        running = self._model.ballot
        assert running is not None
        lines = self._stories.votes.get((self._group, provider, running.ballot, running.phase), ())
        counted = [line.args for line in lines if not line.args.get("stray") and not line.args.get("refused")]
        early = [args for args in counted if args.get("early")]
        return early + [args for args in counted if not args.get("early")][:1]

    def _count(self, votes: list[list[str]], seq: int) -> Iterator[tuple[str, str]]:
        running = self._model.ballot
        if running is None:
            return
        where = f"in phase {running.phase} of ballot {running.ballot}"
        for provider, vote, why in votes:
            cast = self._cast(provider)
            votes_itself = self._votes_by_itself(provider)
            if why == "":
                if cast and all(one["vote"] != vote for one in cast):
                    yield "G4", f"{provider} voted {cast[-1]['vote']} first {where}, and {vote} was counted"
                elif not cast and not votes_itself:
                    yield "G4", f"{provider} did not vote {where}, and {vote} was counted as its vote"
                continue
            if vote != self._model.default_vote:
                yield "G5", f"{vote} was cast for {provider} {where}, the default is {self._model.default_vote}"
            if why == "raised" and all(one["vote"] is not None for one in cast):
                yield "G5", f"{provider} is said to have raised an error {where}, and has not"
            elif why == "failed" and provider not in self._model.failed:
                yield "G5", f"{provider} is said to have failed {where}, and has not"
            elif why == "late":
                yield from self._was_late(provider, where, seq)
                if self._answered(provider, seq) == {False}:
                    yield "G5", f"{provider} was waited for {where}, and did not answer its daemon"
            elif why == "unresponsive" and self._answered(provider, seq) == {True}:
                yield "G5", f"{provider} is said not to answer {where}, and did"
            elif why == "unresponsive" and self._had_voted(provider, seq):
                yield "G5", f"{provider} is said not to answer {where}, and its daemon had its vote before that"

    def _votes_by_itself(self, provider: str) -> bool:
        """Whether its library votes for it; of somebody whose story nobody has, nobody knows."""
        for story in self._stories.by_group.get(self._group, ()):
            if story.provider == provider:
                return story.votes == "itself"
        return True

    def _answered(self, provider: str, seq: int) -> set[bool | None]:
        """Whether it answered its daemon, as far as the leader knew that ordered this entry: what may have been so."""
        known = self._known.get((self._group, seq))
        if known is None:
            return {None}
        least, most = known
        return {self._model.answers(provider, upto) for upto in range(least, most + 1)}

    def _had_voted(self, provider: str, seq: int) -> bool:
        """Whether its daemon had its vote before it was announced that it does not answer; if the time was not over."""
        running, known = self._model.ballot, self._known.get((self._group, seq))
        assert running is not None
        taken = self._stories.taken.get((self._group, provider, running.ballot, running.phase))
        announced = None if known is None else self._model.silent_since(provider, known[1])
        if taken is None or announced is None or taken >= self._delivered.get((self._group, announced), 0.0):
            return False
        opened, closed = self._delivered.get((self._group, running.opened_seq)), self._ordered.get((self._group, seq))
        if opened is None or closed is None:
            return False
        return not running.time_limit or closed - opened < running.time_limit * (1 - CLOCKS_DIFFER)

    def _was_late(self, provider: str, where: str, seq: int) -> Iterator[tuple[str, str]]:
        running = self._model.ballot
        assert running is not None
        opened = self._delivered.get((self._group, running.opened_seq))
        closed = self._ordered.get((self._group, seq))
        if not running.time_limit:
            yield "G5", f"{provider} was late {where}, which has no time limit"
        elif opened is not None and closed is not None and closed - opened < running.time_limit * (1 - CLOCKS_DIFFER):
            took = closed - opened
            yield "G5", f"{provider} was late {where} after {took:.3f} of {running.time_limit:g} s"

    def _papers(self, votes: list[list[str]], state: str | None) -> list[Paper]:
        """What came with the votes; of two that are alike the one that explains the state, if one does."""
        found: list[Paper] = []
        for provider, vote, why in votes:
            cast = self._cast(provider) if self._model.ballot is not None and why == "" else []
            alike = [one for one in cast if one["vote"] == vote]
            if alike:
                counted = next((one for one in alike if one.get("state") == state), alike[-1])
                found.append(Paper(counted.get("state"), counted.get("default_vote")))
        return found


# --- G10 ----------------------------------------------------------------------------------------------------


def g10(stories: Stories, converged: bool, lost: frozenset[int]) -> Iterator[Violation]:
    """Nobody leaves a group twice, or joins it again under the same id, or joins it at all when it has ended.

    In a converged run those who are listed in the end are just those who know it. Not so in groups that wait for their
    disks for ever (``lost``): nothing is ordered there any more, so nobody is told who failed.
    """
    for group, those in stories.groups():
        left: dict[str, int] = {}
        for (of, seq, _), line in sorted(stories.first_told.items(), key=lambda item: item[0][:2]):
            if of != group or line.args["kind"] not in ("left", "joined"):
                continue
            full = stories.of(line)
            for one in full["providers"]:
                provider = one if isinstance(one, str) else one[0]
                if line.args["kind"] == "left" and left.setdefault(provider, seq) != seq:
                    yield Violation("G10", f"{provider} leaves group {group} with {left[provider]} and {seq}", line.i)
                elif line.args["kind"] == "joined" and left.get(provider, seq) < seq:
                    yield Violation("G10", f"{provider} joins group {group} with {seq} after it had left", line.i)
        yield from _in_what_is_left(group, those)
        if converged and group not in lost:
            yield from _listed_in_the_end(stories, group, those)


def _in_what_is_left(group: int, those: list[Story]) -> Iterator[Violation]:
    """Who watched is told the end with the entry that removed the last provider; nobody is let in behind that one.

    Unless it missed something: then its last entry may be any.
    """
    ends = [
        story.told[-1].seq
        for story in those
        if story.ended is not None and str(story.ended.args["why"]).startswith(DISSOLVED)
        and story.told and story.missed_at < 0 and not story.void
    ]  # fmt: skip
    for story in those:
        if story.provider and ends and story.view["seq"] > min(ends):
            text = f"{story.title} joins group {group} with {story.view['seq']}, and it had ended with {min(ends)}"
            yield Violation("G10", text, story.began.i)


def _listed_in_the_end(stories: Stories, group: int, those: list[Story]) -> Iterator[Violation]:
    knowing = {story.provider for story in those if story.provider and story.ended is None}
    for story in those:
        if not story.provider or story.ended is not None or story.missed_at >= 0:
            continue
        listed = {str(one[0]) for one in story.view["providers"]}
        for told in story.told:
            for line in told.lines:
                if line.args["kind"] == "joined":
                    listed.update(str(one[0]) for one in stories.of(line)["providers"])
                elif line.args["kind"] == "left":
                    listed.difference_update(stories.of(line)["providers"])
        ghosts = sorted(listed - knowing)
        if ghosts:
            text = f"{story.title} sees {ghosts} in group {group} in the end, and nobody is that"
            yield Violation("G10", text, story.began.i)
