"""Computed against measured: lines with a tolerance, bounds, and whatever was found wrong."""

from __future__ import annotations

from typing import TextIO

import attrs


@attrs.frozen
class Line:
    """One figure."""

    name: str
    computed: float
    measured: float
    within: float  # largest deviation, as a share of what was computed

    @property
    def deviation(self) -> float:
        """As a share of what was computed."""
        return (self.measured - self.computed) / self.computed if self.computed else float(self.measured != 0)

    @property
    def is_kept(self) -> bool:
        """Whether the formula is right."""
        return abs(self.deviation) <= self.within


class Table:
    """What a run has shown."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.bounds: list[tuple[str, float, float]] = []
        self.notes: list[str] = []
        self.problems: list[str] = []

    def add(self, line: Line) -> None:
        """One more figure."""
        self.lines.append(line)

    def bound(self, name: str, most: float, measured: float) -> None:
        """Something that must not be passed."""
        self.bounds.append((name, most, measured))

    def check(self, name: str, expected: object, found: object) -> None:
        """Something that must be so."""
        if expected != found:
            self.problems.append(f"{name}: expected {expected}, found {found}")

    def note(self, text: str) -> None:
        """Something worth knowing."""
        self.notes.append(text)

    @property
    def faults(self) -> list[str]:
        """Everything that is not as it should be."""
        found = [
            f"{line.name}: {line.measured:.1f} measured, {line.computed:.1f} computed, off by {line.deviation:+.0%}"
            for line in self.lines
            if not line.is_kept
        ]
        passed = [bound for bound in self.bounds if bound[2] > bound[1]]
        found += [f"{name}: {measured:.0f} is more than {most:.0f}" for name, most, measured in passed]
        return found + self.problems

    def print(self, out: TextIO) -> None:
        """For people."""
        print(f"\n{'operation':52s} {'computed':>12s} {'measured':>12s}  off by  allowed", file=out)
        for line in self.lines:
            figures = f"{line.computed:12.1f} {line.measured:12.1f} {line.deviation:+7.1%} {line.within:7.0%}"
            print(f"{line.name:52s} {figures}{'' if line.is_kept else '  <-- not kept'}", file=out)
        for name, most, measured in self.bounds:
            mark = "" if measured <= most else "  <-- passed"
            print(f"{name:52s} {most:12.0f} {measured:12.0f}  at most{mark}", file=out)
        for note in self.notes:
            print(note, file=out)
        for problem in self.problems[:20]:
            print(f"PROBLEM {problem}", file=out)
        if len(self.problems) > 20:
            print(f"… and {len(self.problems) - 20} more", file=out)
