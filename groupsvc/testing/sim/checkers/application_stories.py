"""What applications wrote, put together: their calls, and of each membership what it was told, entry by entry.

A *story* is one membership or subscription, from the answer that let it in to its end. What it read is kept by entry
(``seq``), since several things may follow from one. What an event says in full stands in the first line with its
digest; ``Stories.full`` finds it. A story whose reader was too slow has holes from ``missed_at`` on. What it was told
of entries that its group went on without is kept apart (``void``).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from groupsvc.wire.history import HistoryEvent

from .invocations import Call, CallKey, call_key
from .void import Runs, run_with

FOR_SUBSCRIBERS = frozenset({"joined", "left", "state", "attributes"})
"""What a subscriber is told: what was approved, and never a vote."""

Key = tuple[str, int]
"""Whose membership, and which of his."""


@attrs.define(eq=False)
class Told:
    """Everything that one story was told of one entry."""

    seq: int
    lines: list[HistoryEvent] = attrs.field(factory=list)

    @property
    def digests(self) -> tuple[int, ...]:
        """What must be the same for all who are told everything."""
        return tuple(line.crc for line in self.lines)


@attrs.define(eq=False)
class Story:
    """One membership or subscription."""

    who: str
    m: int
    group: int
    name: str
    provider: str  # "" for a subscription
    began: HistoryEvent
    votes: str
    told: list[Told] = attrs.field(factory=list)
    ended: HistoryEvent | None = None
    since: int | str | None = None  # which earlier messages it asked for; None: none
    since_in: int | None = None  # if that is after an entry: of which group
    table: int | None = None  # None: it keeps none; 0: a new one; else that of a group with this id, which it still had
    earlier: list[HistoryEvent] = attrs.field(factory=list)  # what it read before its own join, also of that entry
    void_from: float = math.inf  # the first entry that its node was given and the group went on without
    void_at: float = math.inf  # where that was: what it was told, or answered, behind that may be void
    void: list[HistoryEvent] = attrs.field(factory=list)  # what it was told of these
    missed_at: int = -1  # how many entries it was told of before something was left out; -1: nothing was

    @property
    def view(self) -> dict[str, Any]:
        """What it began with."""
        view: dict[str, Any] = self.began.result["view"]
        return view

    @property
    def is_durable(self) -> bool:
        """Whether its group is on disks."""
        return bool(self.began.result.get("durable"))

    @property
    def whole(self) -> list[Told]:
        """What it was told before anything was left out."""
        return self.told if self.missed_at < 0 else self.told[: self.missed_at]

    def may_be_cut(self, told: Told, *, converged: bool = True) -> bool:
        """Whether it is the last that it was told of: who tells may stop in the middle of an entry, and never go on.

        Or, in a run that has not converged, not have gone on yet.
        """
        is_over = self.ended is not None or not converged
        return is_over and told is self.told[-1] and not self.void

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.who} (m={self.m}, {self.provider or 'subscriber'})"


class Stories:
    """All that applications wrote."""

    def __init__(self, lines: Sequence[HistoryEvent], runs: Runs | None = None) -> None:
        self.lines = lines
        self._runs: Runs = runs or {}
        self.by_key: dict[Key, Story] = {}
        self.by_group: dict[int, list[Story]] = {}
        self.wholly_void: list[Story] = []  # of those who were let in by an entry that their group went on without
        self.calls: dict[CallKey, Call] = {}
        self.votes: dict[tuple[int, str, int, int], list[HistoryEvent]] = {}  # group, provider, ballot, phase
        self.taken: dict[tuple[int, str, int, int], float] = {}  # the same: when its daemon had it first
        self.events: list[HistoryEvent] = []  # but told and votes
        self.full: dict[tuple[int, int, int], dict[str, Any]] = {}
        self.first_told: dict[tuple[int, int, int], HistoryEvent] = {}
        for position, line in enumerate(lines):
            if line.type != "event":
                self._call(position, line)
            elif line.op == "told":
                self._told(line)
            elif line.op in ("vote", "vote_taken"):
                args = line.args
                key = (line.group, str(args["provider"]), int(args["ballot"]), int(args["phase"]))
                if line.op == "vote":
                    self.votes.setdefault(key, []).append(line)
                else:
                    self.taken.setdefault(key, line.t)
            else:
                self.events.append(line)
                self._event(line)
        self._known: dict[tuple[int, bool], list[int]] = {}

    def _call(self, position: int, line: HistoryEvent) -> None:
        key = call_key(line)
        if line.type == "invoke":
            self.calls.setdefault(key, Call(line, position, carried=False))
            return
        call = self.calls.get(key)
        if call is None or call.end is not None:
            return
        call.end, call.ended = line, position
        if line.type == "ok" and line.op in ("join_group", "subscribe_group"):
            m = int(line.result["m"])
            args = call.invoke.args
            story = Story(
                line.who, m, int(line.result["group"]), str(args["name"]), str(line.result["provider"]), line,
                str(args.get("votes", "")), since=args.get("since"), table=args.get("table"),
                since_in=args.get("since_in"),
            )  # fmt: skip
            self._look_for_void(story)
            self.by_key[line.who, m] = story
            if story.void_from <= story.view["seq"]:
                self.wholly_void.append(story)
            else:
                self.by_group.setdefault(story.group, []).append(story)

    def _look_for_void(self, story: Story) -> None:
        node, inc = story.began.node, story.began.inc
        if story.provider:
            node, text, _ = story.provider.rsplit("/", 2)
            inc = int(text)
        run = run_with(self._runs, story.group, node, inc, int(story.view["seq"]), story.began.i)
        if run is not None:
            story.void_from, story.void_at = run.void_from, run.void_at

    def _told(self, line: HistoryEvent) -> None:
        place = (line.group, line.seq, line.crc)
        if "full" in line.args:
            self.full.setdefault(place, line.args["full"])
        story = self.by_key.get((line.who, int(line.args["m"])))
        if story is not None and line.seq >= story.void_from:
            story.void.append(line)
            return
        self.first_told.setdefault(place, line)
        if story is None:
            return
        begins = int(story.view["seq"])
        is_earlier = line.seq < begins or (line.args["kind"] == "message" and not story.told and line.seq == begins)
        if is_earlier and story.provider:
            story.earlier.append(line)
            return
        if not story.told or story.told[-1].seq != line.seq:
            story.told.append(Told(line.seq))
        story.told[-1].lines.append(line)

    def _event(self, line: HistoryEvent) -> None:
        if line.op not in ("missed", "member_ended"):
            return
        story = self.by_key.get((line.who, int(line.args["m"])))
        if story is None:
            return
        if line.op == "member_ended":
            story.ended = line
        elif story.missed_at < 0:
            story.missed_at = max(len(story.told) - 1, 0)  # of the last entry a part may be missing

    # --- Looking things up ---

    def is_void(self, line: HistoryEvent) -> bool:
        """Whether this may say something that its group went on without: the end of a call, or what somebody was told.

        What was answered when its node had been given such an entry may follow from that.
        """
        story = self.by_key.get((line.who, int(line.args.get("m", 0))))
        if story is None:
            return False
        return line.seq >= story.void_from if line.op == "told" else line.i >= story.void_at

    def groups(self) -> Iterator[tuple[int, list[Story]]]:
        """Every group whose id is known, with its stories."""
        return ((group, stories) for group, stories in sorted(self.by_group.items()) if group)

    def of(self, line: HistoryEvent) -> dict[str, Any]:
        """What a ``told`` line says in full."""
        return self.full[line.group, line.seq, line.crc]

    def known(self, group: int, *, to_subscribers: bool) -> list[int]:
        """The entries of a group of which anybody was told, in order."""
        key = (group, to_subscribers)
        found = self._known.get(key)
        if found is None:
            seqs: set[int] = set()
            for story in self.by_group.get(group, ()):
                for told in story.told:
                    if to_subscribers and not any(line.args["kind"] in FOR_SUBSCRIBERS for line in told.lines):
                        continue
                    seqs.add(told.seq)
            found = self._known[key] = sorted(seqs)
        return found

    def between(self, group: int, after: int, upto: int, *, to_subscribers: bool) -> list[int]:
        """Those of them after one number, up to another."""
        known = self.known(group, to_subscribers=to_subscribers)
        return known[bisect_right(known, after) : bisect_right(known, upto)]

    def newest_upto(self, group: int, upto: int, *, to_subscribers: bool) -> int:
        """The last of them that is not above this number; 0 if there is none."""
        known = self.known(group, to_subscribers=to_subscribers)
        place = bisect_left(known, upto + 1)
        return known[place - 1] if place else 0
