"""What is wrong with a configuration, and where it stands."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from groupsvc.errors import UsageError

Note = Callable[[str, str], None]
"""Takes down that something is wrong: with which option, and what."""


@attrs.frozen
class Problem:
    """One thing wrong: which option, where it stands, and why it cannot be."""

    key: str
    where: str
    text: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.key, self.text) if part)


class BadConfig(UsageError):
    """The configuration cannot be used; ``problems`` has every reason."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def did_you_mean(word: str, known: list[str]) -> str:
    """The end of a sentence about an unknown word."""
    import difflib  # only needed when something is wrong

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
