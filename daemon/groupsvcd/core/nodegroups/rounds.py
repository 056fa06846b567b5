"""Rounds of Held: how a leader makes sure that it still leads.

B asks A up to where the stream was ordered. A leads, as far as A knows; but it may have been replaced a moment ago, and
entries may have been delivered of which A has never heard. So A sends its servers a beat with a number, and answers
when k of them, itself included, have said Held with that number, in its own epoch. Whoever would lead in A's place
needs the promises of so many servers that one of these k would be among them, and who has promised says no Held any
more. (Only A itself needs fewer to lead on, and then it knows.) So at the moment of the question nobody else led, and
what A had ordered by then was all.

Questions that come while a round is under way wait for the next one. One round answers all who wait for it.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ..views import NodeId


@attrs.frozen
class Asked:
    """A question: who asks, its number there, and where the stream ended when it came."""

    node: NodeId
    number: int
    seq: int


class Rounds:
    """The rounds of one leader in one view."""

    def __init__(self, k: int, begin: Callable[[int], None]) -> None:
        self._k = k
        self._begin = begin  # sends the beat of a round
        self._round = 0
        self._answers: set[str] = set()
        self._running: list[Asked] = []
        self._waiting: dict[tuple[NodeId, int], Asked] = {}
        self._confirmed: list[Asked] = []

    @property
    def number(self) -> int:
        """Of the round that is under way; 0 if none is."""
        return self._round if self._running else 0

    def ask(self, asked: Asked) -> None:
        """Somebody wants to know; a repeated question is the same one."""
        if not any((one.node, one.number) == (asked.node, asked.number) for one in (*self._running, *self._confirmed)):
            self._waiting.setdefault((asked.node, asked.number), asked)

    def start(self) -> None:
        """If anybody waits and no round is under way, begin one."""
        if self._waiting and not self._running:
            self._running = list(self._waiting.values())
            self._waiting.clear()
            self._round += 1
            self._answers.clear()
            self._begin(self._round)

    def answered(self, name: str, number: int) -> None:
        """A server of the view, or the leader itself, has said Held in this round."""
        if self._running and number == self._round:
            self._answers.add(name)
            if len(self._answers) >= self._k:
                self._confirmed += self._running
                self._running = []

    def confirmed(self, upto: int) -> list[Asked]:
        """Those whose questions can be answered, now that the stream is safe up to ``upto``."""
        ready = [one for one in self._confirmed if one.seq <= upto]
        if ready:
            self._confirmed = [one for one in self._confirmed if one.seq > upto]
        return ready

    @property
    def has_any(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._running or self._waiting or self._confirmed)
