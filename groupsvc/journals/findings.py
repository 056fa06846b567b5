"""What an audit of journals has found: contradictions, how much was compared, and what could not be.

The names of rules are those of docs/GUARANTEES.md and of the simulator's checkers: B4 is total order, and so on.
"""

from __future__ import annotations

from collections import Counter

import attrs

from .reading import Place


@attrs.frozen
class Contradiction:
    """Two lines, or one, that cannot both be if the service keeps its word."""

    rule: str
    text: str
    places: tuple[Place, ...]

    def __str__(self) -> str:
        where = ", ".join(map(str, self.places))
        return f"{self.rule}: {self.text} ({where})"


@attrs.define
class Findings:
    """Of one audit."""

    contradictions: list[Contradiction] = attrs.field(factory=list)
    compared: Counter[str] = attrs.field(factory=Counter)  # by rule
    unchecked: dict[str, int] = attrs.field(factory=dict)  # why, and how often
    lines: int = 0

    def contradict(self, rule: str, text: str, *places: Place) -> None:
        """This cannot be."""
        self.contradictions.append(Contradiction(rule, text, places))

    def cannot_check(self, why: str, count: int = 1) -> None:
        """Something that was not looked at, and why."""
        self.unchecked[why] = self.unchecked.get(why, 0) + count
