"""G11: after the same entry the tables of all providers are the same, and what all writes before it add up to.

The writes of a group are known from whoever applied them. A model of its own applies them from the beginning, and every
line of a table, whether it was restored from a checkpoint or has applied a message, must have the digest of the model
after that entry; and who wrote must be told what the model says became of its write.

The table lives as long as the group has a provider. So a group has *lives*: one ends when nobody is listed any more.
The next one begins with nothing; or in a durable group, if the last ones were cut off with their nodes, where the one
before has ended. Which of the two it is cannot always be seen by applications, but it is the same for all.

A program that comes with the table of another group of the same name must not be let in: that one counted otherwise.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import attrs

from groupsvc.wire.history import HistoryEvent

from ..application_tables import table_digest
from .application_stories import Stories, Story
from .verdict import Violation

GOING = ("leave_group", "say_goodbye", "expel", "close_session")
"""Calls by which a provider goes otherwise than with its node."""


@attrs.define
class Timeline:
    """A table, entry by entry, that was empty after entry ``since``."""

    since: int = 0
    rows: dict[str, tuple[str, int]] = attrs.field(factory=dict)
    seqs: list[int] = attrs.field(factory=lambda: [0])
    digests: list[int] = attrs.field(factory=lambda: [table_digest({})])
    results: dict[int, bool] = attrs.field(factory=dict)

    def copy(self) -> Timeline:
        """To go on from."""
        return Timeline(self.since, dict(self.rows), list(self.seqs), list(self.digests), dict(self.results))

    def apply(self, seq: int, write: list[Any]) -> None:
        """The next write: (kind, key, value, expected)."""
        kind, key, value, expected = write
        before = self.rows.get(key)
        fits = kind != "cas" or expected == (None if before is None else before[0])
        self.results[seq] = before is not None if kind == "delete" else fits
        if fits and value is None:
            self.rows.pop(key, None)
        elif fits:
            self.rows[key] = (value, seq)
        self.seqs.append(seq)
        self.digests.append(table_digest(self.rows))

    def at(self, seq: int) -> int:
        """The digest after this entry."""
        return self.digests[bisect_right(self.seqs, seq) - 1]


@attrs.define
class Life:
    """A group from the first that joins it until nobody is listed."""

    begins: int
    is_known: bool  # else somebody may have begun it of whom nobody knows
    listed: set[str] = attrs.field(factory=set)
    stories: list[Story] = attrs.field(factory=list)


def g11(stories: Stories, domain: Sequence[HistoryEvent]) -> Iterator[Violation]:
    """The rule stands above."""
    of_member: dict[tuple[str, int], list[HistoryEvent]] = {}
    for line in stories.events:
        if line.op == "table":
            of_member.setdefault((line.who, int(line.args["m"])), []).append(line)
    if not of_member:
        return
    crashed = {(line.node, line.inc): line.i for line in domain if line.op in ("crash", "halted")}
    for group, those in stories.groups():
        tables = [story for story in those if story.table is not None]
        lines = {
            (one.who, one.m): [
                line for line in of_member.get((one.who, one.m), []) if int(line.args["seq"]) < one.void_from
            ]
            for one in tables
        }
        yield from _judge(group, stories, _lives(stories, tables), lines, crashed)


def _lives(stories: Stories, those: list[Story]) -> list[Life]:
    lives: list[Life] = []
    for story in sorted(those, key=lambda one: int(one.view["seq"])):
        begins = int(story.view["seq"])
        older = {str(one[0]) for one in story.view["providers"] if one[3] < begins}
        together = [one for one in those if int(one.view["seq"]) == begins]
        older.update(gone for one in together for gone in _left_behind(stories, one))
        if not lives or (lives[-1].begins < begins and not older & lives[-1].listed):
            lives.append(Life(begins, _is_told_by_the_first(story, together) and not older))
        life = lives[-1]
        life.stories.append(story)
        life.listed.update(str(one[0]) for one in story.view["providers"])
        for told in story.told:
            for line in told.lines:
                if line.args["kind"] == "joined":
                    life.listed.update(str(one[0]) for one in stories.of(line)["providers"])
    return lives


def _is_told_by_the_first(story: Story, together: list[Story]) -> bool:
    """Whether it is known who was there, and left with the same entry, when the first of those joined.

    They are told of that entry from their own join on. One who goes at once may be told of less.
    """
    first = next((str(one[0]) for one in story.view["providers"] if one[3] == story.view["seq"]), "")
    return any(one.whole and not one.may_be_cut(one.whole[0]) for one in together if one.provider == first)


def _left_behind(stories: Stories, story: Story) -> set[str]:
    """Who was still listed when it joined, and left with the same entry."""
    first = story.told[0].lines if story.told and story.told[0].seq == story.view["seq"] else []
    return {str(one) for line in first if line.args["kind"] == "left" for one in stories.of(line)["providers"]}


def _judge(
    group: int, stories: Stories, lives: list[Life], lines: dict[tuple[str, int], list[HistoryEvent]],
    crashed: dict[tuple[str, int], int],
) -> Iterator[Violation]:  # fmt: skip
    writes: dict[int, list[Any]] = {}
    for those in lines.values():
        for line in those:
            if "write" in line.args:
                write = writes.setdefault(int(line.args["seq"]), line.args["write"])
                if write != line.args["write"]:
                    yield Violation("G11", f"{line.who} applies {line.args['write']}, others {write}", line.i)
    timeline = Timeline()
    for life, following in pairwise([*lives, None]):
        assert life is not None
        ends = math.inf if following is None else following.begins
        found = []
        for option in _options(stories, lives[: lives.index(life)], life, timeline, crashed):
            begins = max(option.since, option.seqs[-1])
            for seq in sorted(seq for seq in writes if begins < seq <= ends):
                option.apply(seq, writes[seq])
            found.append((list(_wrong(group, life, lines, option)), option))
        problems, timeline = min(found, key=lambda one: len(one[0]))
        yield from problems


def _options(
    stories: Stories, before: list[Life], life: Life, timeline: Timeline, crashed: dict[tuple[str, int], int]
) -> list[Timeline]:
    """With which table this life may begin."""
    if not before:
        return [timeline]
    if not life.stories[0].is_durable and life.is_known:
        return [Timeline(life.begins)]
    came_unseen = _may_have_come_unseen(stories, life)
    if life.is_known and not came_unseen and _were_cut_off(stories, before[-1], life.begins, crashed):
        return [timeline.copy()]
    return [timeline.copy(), Timeline(life.begins)]


def _may_have_come_unseen(stories: Stories, life: Life) -> bool:
    """Whether somebody may have joined, and gone, between this life and the one before: nobody was there to be told.

    Its program was late, and does not know what became of its join. With its goodbye the table is gone.
    """
    first = min(life.stories, key=lambda one: one.began.i)
    return any(
        call.invoke.op == "join_group" and call.verdict == "info"
        and call.invoke.args["name"] == first.name and call.invoke.i < first.began.i
        for call in stories.calls.values()
    )  # fmt: skip


def _were_cut_off(stories: Stories, life: Life, upto: int, crashed: dict[tuple[str, int], int]) -> bool:
    """Whether all who were listed in the end certainly went with their nodes, and nobody was about to go."""
    if any(call.invoke.op in GOING and call.verdict != "ok" for call in stories.calls.values()):
        return False
    left: set[str] = set()
    for one in stories.by_group[life.stories[0].group]:
        for told in one.told:
            for line in told.lines:
                if line.args["kind"] == "left" and told.seq < upto:
                    left.update(stories.of(line)["providers"])
    known = {one.provider: one for one in life.stories}
    for provider in life.listed - left:
        node, inc, _ = provider.rsplit("/", 2)
        crash, story = crashed.get((node, int(inc))), known.get(provider)
        if crash is None or story is None or (story.ended is not None and story.ended.i < crash):
            return False
    return bool(life.listed - left)


def _wrong(
    group: int, life: Life, lines: dict[tuple[str, int], list[HistoryEvent]], timeline: Timeline
) -> Iterator[Violation]:
    for story in life.stories:
        if story.table not in (0, group):
            text = f"{story.title} goes on with the table of group {story.table}, which had the same name"
            yield Violation("G11", f"group {group}: {text}", story.began.i)
            continue
        for line in lines[story.who, story.m]:
            seq, did = int(line.args["seq"]), line.args["did"]
            if line.args["digest"] != timeline.at(seq):
                text = f"{story.title} has {did} {seq}, and its table is not what all writes up to there add up to"
                yield Violation("G11", f"group {group}: {text}", line.i)
                break  # it stays wrong
            if line.args.get("result", timeline.results.get(seq)) != timeline.results.get(seq):
                text = f"{story.title} is told {line.args['result']} of its write {seq}: {line.args['write']}"
                yield Violation("G11", f"group {group}: {text}", line.i)
