"""R5: the rounds that a group keeps (``on_failure="wait"``), from the lines of those who ask for them.

What must hold when A asks for round 57 of a barrier:

- *It is that round*: of this barrier and with this number; it was released, those who came had said that they wait for
  the dead, and it had ended by the entry up to which A's node had come.
- *It is what they were told who were there*: who is listed, in this order, and what each had brought. If nobody is left
  who was released from it, then all who ask are told the same. Everybody who is listed had come, with what is listed.
- *There is no gap.* If A is told that it is not kept, then it had not ended, as far as A's node knew; or it was not
  released, or not to be kept; or since then the group has lost its quorum, or its last provider: everything that was
  kept is dropped then. In these worlds there are never more rounds than a group keeps. A fast group drops them with
  every view, and is not asked to have any.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from .application_stories import Story
from .barriers import Barriers, Place, Population, Round, populations
from .invocations import Call
from .verdict import Violation

KEPT = ("end", "parties", "arrived")
"""What is told of a round that is over."""


@attrs.define(eq=False)
class Question:
    """Somebody has asked for a round."""

    call: Call
    story: Story
    place: Place
    number: int
    applied: int | None = None  # how far its daemon had come in the group when it was asked

    @property
    def result(self) -> dict[str, Any]:
        """What it was told."""
        return {} if self.call.end is None else self.call.end.result

    @property
    def at(self) -> int:
        """Where it was told."""
        return self.call.invoke.i if self.call.end is None else self.call.end.i

    @property
    def title(self) -> str:
        """For people."""
        asked = f"for round {self.number} of barrier {self.place[1]} of group {self.place[0]}"
        return f"{self.story.title}, who asks {asked} with call {self.call.invoke.args['id']},"


def r5(found: Barriers) -> Iterator[Violation]:
    """A round that is kept is told as it was; what is not kept is said, and only that."""
    questions = list(_questions(found))
    of = populations(found, {question.place[0] for question in questions})
    told: dict[tuple[Place, int], Question] = {}
    for question in questions:
        known = found.rounds.get((question.place, question.number))
        if question.result.get("not_kept"):
            yield from _not_kept(found, question, known, of[question.place[0]])
        elif question.call.verdict == "ok":
            yield from _kept(found, question, known)
            first = told.setdefault((question.place, question.number), question)
            yield from _alike(question, first.result, f"to {first.story.title}")


def _questions(found: Barriers) -> Iterator[Question]:
    stories = found.stories
    applied = {
        (line.who, int(line.args["call"])): int(line.args["applied"]) for line in stories.events
        if line.op == "at_barrier"
    }  # fmt: skip
    for key, call in stories.calls.items():
        invoke = call.invoke
        story = stories.by_key.get((invoke.who, int(invoke.args.get("m", 0))))
        if invoke.op != "ask_round" or not invoke.group or story is None:
            continue
        if call.end is None or not stories.is_void(call.end):
            place = (invoke.group, str(invoke.args["barrier"]))
            yield Question(call, story, place, int(invoke.args["round"]), applied.get((key[0], int(key[1]))))


# --- What is kept ---


def _kept(found: Barriers, question: Question, known: Round | None) -> Iterator[Violation]:
    result = question.result
    if (result["round"], result["end"]) != (question.number, "released"):
        text = f"{question.title} is told how round {result['round']} ended: {result['end']}"
        yield Violation("R5", text, question.at)
        return
    for provider, crc in result["arrived"]:
        visit = found.brought.get((question.place, str(provider), int(crc)))
        if visit is None or visit.call.invoke.i > question.at:
            text = f"{question.title} is told that {provider} had come with {crc}, which it had not"
            yield Violation("R5", text, question.at)
        elif visit.call.invoke.args["on_failure"] != "wait":
            yield Violation("R5", f"{question.title} is told of a round that was not to be kept", question.at)
    if known is None:
        return
    yield from _alike(question, known.result, "to those who were there")
    if known.seq is not None and int(result["seq"]) < known.seq:
        text = f"{question.title} is told how it ended by a node that had come to {result['seq']}: it ended with"
        yield Violation("R5", f"{text} {known.seq}", question.at)


def _alike(question: Question, other: Mapping[str, Any], whom: str) -> Iterator[Violation]:
    different = [what for what in KEPT if question.result.get(what) != other[what]]
    if different:
        yield Violation("R5", f"{question.title} is told otherwise than {whom}: {different}", question.at)


# --- What is not ---


def _not_kept(found: Barriers, question: Question, known: Round | None, those: Population) -> Iterator[Violation]:
    if known is None or known.seq is None or known.end != "released" or not _is_to_be_kept(found, known):
        return
    result = question.result
    if result["is_fast"] or int(result["lost_seq"]) > known.seq:
        return
    if question.applied is None or question.applied < known.seq or _was_empty(question, known.seq, those):
        return
    text = f"{question.title} is told that it is not kept; it ended with entry {known.seq}, and"
    yield Violation("R5", f"{text} its node had come to {question.applied}", question.at)


def _is_to_be_kept(found: Barriers, known: Round) -> bool:
    visits = [found.brought.get((known.place, provider, crc)) for provider, crc in known.listed]
    return any(visit is not None and visit.call.invoke.args["on_failure"] == "wait" for visit in visits)


def _was_empty(question: Question, since: int, those: Population) -> bool:
    """Whether the group may have had no provider after this entry, up to the one to which it had come when asked."""
    asked = question.applied
    assert asked is not None
    reached: float = since
    while reached <= asked:
        # Who joins with the entry by which the last one leaves joins a group that begins anew.
        there = [provider for provider in those.story_of if _first(those, provider) < reached]
        further = max((_last(those, provider, question) for provider in there), default=0.0)
        if further <= reached:
            return True
        reached = further
    return False


def _first(those: Population, provider: str) -> float:
    """Since when it was certainly there."""
    return those.joined.get(provider, math.inf)


def _last(those: Population, provider: str, question: Question) -> float:
    """Before which entry it had certainly not left."""
    if provider == question.story.provider:
        return math.inf  # it asks, so it is there
    told = those.story_of[provider].told
    return those.left.get(provider, told[-1].seq if told else 0)
