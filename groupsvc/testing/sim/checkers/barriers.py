"""R1 – R4: barriers, from the lines of those who came to them.

Whoever comes brings something that nobody else brings, so that a list of arrivals names the calls that count. What was
told of the group's entries says who was a provider, and who had died, at the entry by which a round ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import attrs

from groupsvc.wire.history import HistoryEvent

from .application_stories import Stories, Story
from .invocations import Call
from .verdict import Violation

REPLY_SLACK_S = 0.5
"""How much longer than its timeout a call may take."""

CLOCK_S = 0.01
"""How exactly a process is woken up."""

RATES_DIFFER = 0.99
"""A second of one clock is at least so long by another."""

LAST_S = 5.0
"""In a world in which all is well, when the last one has come: until all are released."""

Place = tuple[int, str]
"""Group and barrier."""


@attrs.define(eq=False)
class Visit:
    """One call of one party."""

    call: Call
    story: Story
    place: Place
    applied: int | None = None  # how far its daemon had come in the group when the request came

    @property
    def provider(self) -> str:
        """Who."""
        return self.story.provider

    @property
    def resets(self) -> bool:
        """Whether it wants the barrier reset."""
        return self.call.invoke.op == "reset_barrier"

    @property
    def result(self) -> dict[str, Any]:
        """How the round ended, if it was told that; else {}."""
        end = self.call.end
        return end.result if end is not None and "round" in end.result else {}

    @property
    def title(self) -> str:
        """For people."""
        return f"call {self.call.invoke.args['id']} of {self.story.title}"


@attrs.define(eq=False)
class Round:
    """One round, with all who were told how it ended."""

    place: Place
    number: int
    visits: list[Visit] = attrs.field(factory=list)

    @property
    def result(self) -> dict[str, Any]:
        """How it ended."""
        return self.visits[0].result

    @property
    def end(self) -> str:
        """released, broken or reset."""
        return str(self.result["end"])

    @property
    def listed(self) -> list[tuple[str, int]]:
        """Who has arrived, and with what."""
        return [(str(provider), int(crc)) for provider, crc in self.result["arrived"]]

    @property
    def seq(self) -> int | None:
        """The entry by which it ended; None: nobody tells who waited for it, others find a barrier broken later."""
        waited = {str(provider) for provider, _ in self.result["arrived"]}
        seqs = [
            int(one.result["seq"]) for one in self.visits
            if one.provider in waited and (self.end != "broken" or (one.applied or math.inf) < one.result["seq"])
        ]  # fmt: skip
        return min(seqs, default=None)

    @property
    def at(self) -> HistoryEvent:
        """The first line that tells of it."""
        ends = [one.call.end for one in self.visits if one.call.end is not None]
        return min(ends, key=lambda line: line.i)

    @property
    def title(self) -> str:
        """For people."""
        return f"round {self.number} of barrier {self.place[1]} of group {self.place[0]}"


class Barriers:
    """All that happened at barriers; and since which entry of a group, as daemons say, nodes and providers are out."""

    def __init__(self, stories: Stories, out: Mapping[int, Mapping[str, int]]) -> None:
        self.stories = stories
        self.out = out
        self.visits: list[Visit] = []
        self.rounds: dict[tuple[Place, int], Round] = {}
        self.brought: dict[tuple[Place, str, int], Visit] = {}
        by_call: dict[tuple[str, int], Visit] = {}
        for key, call in stories.calls.items():
            invoke = call.invoke
            if invoke.op not in ("come_to_barrier", "reset_barrier") or not invoke.group:
                continue
            story = stories.by_key.get((invoke.who, int(invoke.args["m"])))
            if story is None:
                continue
            visit = Visit(call, story, (invoke.group, str(invoke.args["barrier"])))
            self.visits.append(visit)
            by_call[key] = visit
            if not visit.resets:
                self.brought[visit.place, visit.provider, int(invoke.args["payload"])] = visit
            if call.end is not None and stories.is_void(call.end):
                continue
            if visit.result and (visit.result["arrived"] or visit.result["end"] == "broken"):
                number = int(visit.result["round"])
                self.rounds.setdefault((visit.place, number), Round(visit.place, number)).visits.append(visit)
        for line in stories.events:
            if line.op == "at_barrier" and (line.who, int(line.args["call"])) in by_call:
                by_call[line.who, int(line.args["call"])].applied = int(line.args["applied"])

    def released(self) -> Iterator[Round]:
        """Rounds from which somebody was released."""
        return (one for one in self.rounds.values() if one.end == "released")

    def in_order(self) -> Iterator[list[Round]]:
        """The rounds of each barrier by number."""
        by_place: dict[Place, list[Round]] = {}
        for (place, _), one in sorted(self.rounds.items()):
            by_place.setdefault(place, []).append(one)
        return iter(by_place.values())


class Population:
    """Who was a provider of a group when, as far as anybody was told."""

    def __init__(self, stories: Stories, group: int, out: Mapping[str, int]) -> None:
        self._stories = stories
        self._out = out
        self._those = [story for story in stories.by_group.get(group, ()) if story.provider]
        self.story_of = {story.provider: story for story in self._those}
        self.failing: dict[str, int] = {}  # since which entry
        self.left: dict[str, int] = {}
        self.joined: dict[str, int] = {}
        for (of, seq, crc), line in stories.first_told.items():
            if of != group:
                continue
            full = stories.full[of, seq, crc]
            if line.args["kind"] == "failing":
                self.failing[str(full["provider"])] = seq
            elif line.args["kind"] == "left":
                self.left.update((str(one), seq) for one in full["providers"])
            elif line.args["kind"] == "joined":
                self.joined.update((str(one[0]), seq) for one in full["providers"])
        for story in self._those:
            self.joined.update((str(one[0]), int(one[3])) for one in story.view["providers"])

    def is_gone(self, provider: str, seq: int) -> bool:
        """Whether it was certainly no more, or had left, before this entry."""
        return min(self.failing.get(provider, seq), self.left.get(provider, seq)) < seq

    def is_out(self, provider: str, seq: int) -> bool:
        """Whether it was failing before this entry, or its node had been given up by the group with all processes."""
        return min(self._out.get(provider, seq), self._out.get(provider.rpartition("/")[0], seq)) < seq

    def lists(self, seq: int) -> Iterator[tuple[Story, list[str]]]:
        """Everybody who was told of all entries from some time before this one until after it: whom he saw then."""
        for story in self._those:
            whole = story.whole
            if int(story.view["seq"]) >= seq or not whole or whole[-1].seq < seq:
                continue
            listed = [str(one[0]) for one in story.view["providers"]]
            for told in whole:
                if told.seq >= seq:
                    break
                for line in told.lines:
                    if line.args["kind"] == "joined":
                        known = set(listed)
                        listed += [
                            one for one in map(str, (it[0] for it in self._stories.of(line)["providers"]))
                            if one not in known
                        ]  # fmt: skip
                    elif line.args["kind"] == "left":
                        listed = [one for one in listed if one not in self._stories.of(line)["providers"]]
            yield story, listed


def populations(found: Barriers, groups: Iterable[int]) -> dict[int, Population]:
    """Of these groups."""
    return {group: Population(found.stories, group, found.out.get(group, {})) for group in groups}


# --- R1 -------------------------------------------------------------------------------------------------------


def r1(found: Barriers) -> Iterator[Violation]:
    """Nobody is released before all required have come.

    Everybody who is listed had come, with what is listed, before the first was released; and was a provider at the
    entry that ended the round, and not known to be dead. A round of all providers lists every one who was that. So many
    are listed as the barrier takes, by the word of all who came, in the order of the providers.
    """
    rounds = list(found.released())
    of = populations(found, {one.place[0] for one in rounds})
    for one in rounds:
        first = one.at
        for provider, crc in one.listed:
            visit = found.brought.get((one.place, provider, crc))
            if visit is None or visit.call.invoke.i > first.i:
                text = f"{one.title} releases {[visit.provider for visit in one.visits]}, and {provider} had not come"
                yield Violation("R1", f"{text} with {crc}", first.i)
            elif visit.call.invoke.args["parties"] != one.result["parties"]:
                said = visit.call.invoke.args["parties"]
                text = f"{one.title} takes {one.result['parties']}, and {provider} had said {said}"
                yield Violation("R1", text, first.i)
        parties = int(one.result["parties"])
        if parties and len(one.listed) != parties:
            yield Violation("R1", f"{one.title} takes {parties}, and lists {len(one.listed)}", first.i)
        seq = one.seq
        if seq is not None:
            yield from _population(one, seq, of[one.place[0]], first)


def _population(one: Round, seq: int, population: Population, first: HistoryEvent) -> Iterator[Violation]:
    listed = [provider for provider, _ in one.listed]
    for provider in listed:
        if population.is_gone(provider, seq):
            yield Violation("R1", f"{one.title} ends with {seq} and lists {provider}, which was no more", first.i)
    for story, providers in population.lists(seq):
        if [provider for provider in providers if provider in listed] != listed:
            text = f"{one.title} lists {listed}, and {story.title} knows {providers} in this order"
            yield Violation("R1", text, first.i)
        if one.result["parties"]:
            continue
        began_with = {str(it[0]) for it in story.view["providers"]}
        for provider in providers:
            if provider in listed or population.is_gone(provider, seq):
                continue
            other = population.story_of.get(provider)
            is_over = other is None or (other.ended is not None and other.ended.i < first.i)
            is_over = is_over or population.is_out(provider, seq)  # it need not know that yet
            if provider in began_with and is_over:
                continue  # who joins is not told who was failing already
            text = f"{one.title} ends with {seq} and releases {listed} without {provider}, which lives and had not come"
            yield Violation("R1", text, first.i)


# --- R2 -------------------------------------------------------------------------------------------------------

AGREED = ("end", "parties", "arrived", "broken_by", "by", "missing")


def r2(found: Barriers) -> Iterator[Violation]:
    """A round has one end, the same for all who are told; later rounds end with later entries.

    A barrier that broke releases nobody before it was reset, and only such a one is reset. With its last provider a
    group forgets what had broken.
    """
    for one in found.rounds.values():
        known = one.result
        for visit in one.visits[1:]:
            different = [what for what in AGREED if visit.result[what] != known[what]]
            if one.end != "broken" and visit.result["seq"] != known["seq"]:
                different.append("seq")
            if different:
                text = f"{one.title} ended otherwise for {visit.title} than for {one.visits[0].title}: {different}"
                assert visit.call.end is not None
                yield Violation("R2", text, visit.call.end.i)
    for rounds in found.in_order():
        for before, after in pairwise(rounds):
            if before.seq is not None and after.seq is not None and before.seq >= after.seq:
                text = f"{after.title} ends with entry {after.seq}, the one before with {before.seq}"
                yield Violation("R2", text, after.at.i)
            if after.number != before.number + 1:
                continue
            if (before.end, after.end) == ("broken", "released") and _somebody_stayed(before, after):
                yield Violation(
                    "R2", f"{after.title} releases somebody, and it broke before and was not reset", after.at.i
                )
            if (before.end, after.end) == ("released", "reset"):
                yield Violation("R2", f"{after.title} is a reset, and it was not broken", after.at.i)


def _somebody_stayed(before: Round, after: Round) -> bool:
    seq = before.seq
    return seq is not None and any(int(visit.story.view["seq"]) < seq for visit in after.visits)


# --- R3 -------------------------------------------------------------------------------------------------------


def r3(found: Barriers) -> Iterator[Violation]:
    """Rounds do not leak: a call counts for one round, which is the one that it is told of; what failed for none."""
    counted: dict[int, Round] = {}
    for one in found.released():
        providers = [provider for provider, _ in one.listed]
        if len(set(providers)) != len(providers):
            yield Violation("R3", f"{one.title} lists somebody twice: {providers}", one.at.i)
        for provider, crc in one.listed:
            visit = found.brought.get((one.place, provider, crc))
            if visit is None:
                continue
            other = counted.setdefault(visit.call.invoke.i, one)
            if other is not one:
                yield Violation("R3", f"{visit.title} counts for {one.title} and for {other.title}", one.at.i)
            verdict, end = visit.call.verdict, visit.call.end
            if verdict == "fail" or (visit.result and int(visit.result["round"]) != one.number):
                assert end is not None
                text = f"{visit.title} counts for {one.title}, and ended with {verdict} {end.result}"
                yield Violation("R3", text, max(end.i, one.at.i))
    yield from _own_ends(found)
    yield from _only_forward(found)


def _own_ends(found: Barriers) -> Iterator[Violation]:
    for visit in found.visits:
        end = visit.call.end
        if visit.call.verdict != "ok" or end is None:
            continue
        expected = "reset" if visit.resets else "released"
        if visit.result.get("end") != expected:
            yield Violation("R3", f"{visit.title} ended well with {visit.result}, and not with {expected}", end.i)
        own = [visit.provider, visit.call.invoke.args.get("payload")]
        if not visit.resets and own not in visit.result["arrived"]:
            yield Violation("R3", f"{visit.title} is released, and not listed in {visit.result['arrived']}", end.i)


def _only_forward(found: Barriers) -> Iterator[Violation]:
    newest: dict[tuple[Place, str], tuple[int, bool]] = {}
    for visit in found.visits:
        if not visit.result or (visit.resets and not visit.result["arrived"] and visit.call.verdict == "ok"):
            continue
        number, is_broken = int(visit.result["round"]), visit.result["end"] == "broken"
        before, was_broken = newest.get((visit.place, visit.provider), (0, False))
        if number < before or (number == before and not (is_broken and was_broken)):
            assert visit.call.end is not None
            text = f"{visit.title} ends with round {number}, and an earlier call of it with {before}"
            yield Violation("R3", text, visit.call.end.i)
        newest[visit.place, visit.provider] = number, is_broken


# --- R4 -------------------------------------------------------------------------------------------------------


def r4(found: Barriers, *, reply_slack_s: float = REPLY_SLACK_S) -> Iterator[Violation]:
    """Every call ends in its time; a death has the outcome that was wanted; when all is well all are released.

    Nobody's time is over before it is. Who says ``break`` about a barrier of all providers is not released from a round
    that was open when one of them died; who says anything else is not told that a death broke it. Real processes may
    be given more time to reply than simulated ones need.
    """
    yield from _in_time(found, reply_slack_s)
    yield from _not_before_their_time(found)
    yield from _deaths(found)
    yield from _last_rounds(found)


def _in_time(found: Barriers, reply_slack_s: float) -> Iterator[Violation]:
    """By the harness' clock, which no clock of a node is far from unless it jumps; who stands still ends later."""
    stood: dict[str, list[tuple[float, float]]] = {}  # by whom: since when, until when
    for line in found.stories.events:
        if line.op == "process_stopped":
            stood.setdefault(line.who, []).append((line.t, math.inf))
        elif line.op == "process_goes_on" and stood.get(line.who):
            since, _ = stood[line.who].pop()
            stood[line.who].append((since, line.t))
    for visit in found.visits:
        invoke, end = visit.call.invoke, visit.call.end
        if end is None:
            continue
        timeout = float(invoke.args["timeout"])
        until = invoke.t + (timeout + reply_slack_s) / RATES_DIFFER
        until = max([until, *(upto for since, upto in stood.get(invoke.who, ()) if since <= until <= upto)])
        if end.t > until + CLOCK_S:
            text = f"{visit.title} ended {end.t - invoke.t:.3f} s after it began; its time was {timeout:.3f} s"
            yield Violation("R4", text, end.i)


def _not_before_their_time(found: Barriers) -> Iterator[Violation]:
    calls: dict[tuple[Place, str], list[Visit]] = {}
    for visit in found.visits:
        calls.setdefault((visit.place, visit.provider), []).append(visit)
    for one in found.rounds.values():
        why = one.result["broken_by"]
        if why not in ("timeout", "cancelled"):
            continue
        for provider in one.result["by"]:
            if not any(_gave_up(visit, why, one.at) for visit in calls.get((one.place, provider), ())):
                text = f"{one.title} is broken because of {provider} ({why}), which has not given up"
                yield Violation("R4", text, one.at.i)


def _gave_up(visit: Visit, why: str, at: HistoryEvent) -> bool:
    invoke, end = visit.call.invoke, visit.call.end
    if why == "cancelled":
        said = ("cancelled", "OutcomeUnknown")  # a call that its daemon did not answer in time is taken back, too
        return end is not None and end.result.get("error") in said and end.i < at.i
    timeout = float(invoke.args["timeout"]) * RATES_DIFFER
    by_its_own_clock = end is not None and invoke.local + timeout <= end.local  # which may have jumped
    return invoke.i < at.i and (by_its_own_clock or invoke.t + timeout <= at.t)


def _deaths(found: Barriers) -> Iterator[Violation]:
    terms: dict[Place, set[tuple[int, str]]] = {}
    for visit in found.visits:
        args = visit.call.invoke.args
        terms.setdefault(visit.place, set()).add((int(args["parties"]), str(args["on_failure"])))
    rounds = [one for one in found.rounds.values() if len(terms[one.place]) == 1]
    of = populations(found, {one.place[0] for one in rounds})
    for one in rounds:
        parties, on_failure = next(iter(terms[one.place]))
        if one.result["broken_by"] in ("failure", "left") and on_failure != "break":
            text = f"{one.title} is broken by {one.result['broken_by']}, and should go on without the dead"
            yield Violation("R4", text, one.at.i)
        if one.end == "released" and on_failure == "break" and not parties and one.seq is not None:
            opened = _open_since(found, one)
            population = of[one.place[0]]
            for provider, seq in population.failing.items():
                if opened < seq < one.seq and population.joined.get(provider, seq) < opened:
                    text = f"{one.title} was open since {opened} and ended with {one.seq}, released"
                    yield Violation("R4", f"{text}, though {provider} died with {seq}", one.at.i)


def _open_since(found: Barriers, one: Round) -> float:
    """The entry after which somebody who is counted had certainly come to it; inf: not known."""
    before = found.rounds.get((one.place, one.number - 1))
    if one.number > 1 and (before is None or before.seq is None):
        return math.inf
    passed = 0 if before is None or before.seq is None else before.seq
    came = [found.brought[one.place, provider, crc].applied for provider, crc in one.listed
            if (one.place, provider, crc) in found.brought]  # fmt: skip
    return min((max(passed, applied) for applied in came if applied is not None), default=math.inf)


def _last_rounds(found: Barriers) -> Iterator[Violation]:
    """When the last one has come all are released, and soon; or, where one dies or is put out, are told so."""
    batches: dict[tuple[Place, int], list[Visit]] = {}
    for visit in found.visits:
        if "last" in visit.call.invoke.args:
            batches.setdefault((visit.place, int(visit.call.invoke.args["last"])), []).append(visit)
    for those in batches.values():
        complete = max(visit.call.invoke.t for visit in those)
        for visit in those:
            end = visit.call.end
            if end is None or not _is_as_expected(visit) or end.t > complete + LAST_S:
                text = (
                    "has not ended" if end is None else f"ended with {end.type} {end.result}, {end.t - complete:.3f} s"
                )
                text = f"{visit.title} at barrier {visit.place[1]} {text} after the last one had come, and all is well"
                yield Violation("R4", text, visit.call.invoke.i if end is None else end.i)


def _is_as_expected(visit: Visit) -> bool:
    ends, end = visit.call.invoke.args.get("ends", ""), visit.call.end
    if ends == "broken":
        return visit.result.get("broken_by") == "failure"
    if ends == "not a member":
        return end is not None and end.result.get("error") == "NotAMember"
    return visit.call.verdict == "ok"
