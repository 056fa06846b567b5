"""What a check has found: a word for how bad it is, a sentence, and what to do about it."""

from __future__ import annotations

import enum

import attrs


class Level(enum.Enum):
    """FAIL: it does not work, or will not when it is needed. WARN: it works, and is worth a look."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@attrs.frozen
class Finding:
    """One result of one check; ``advice`` is what to do, empty if nothing is."""

    check: str
    level: Level
    text: str
    advice: str = ""

    def as_object(self) -> dict[str, object]:
        """For programs."""
        return {"check": self.check, "level": self.level.value, "text": self.text, "advice": self.advice}


def ok(check: str, text: str) -> Finding:
    """All is well."""
    return Finding(check, Level.OK, text)


def warn(check: str, text: str, advice: str = "") -> Finding:
    """Worth a look."""
    return Finding(check, Level.WARN, text, advice)


def fail(check: str, text: str, advice: str = "") -> Finding:
    """It does not work."""
    return Finding(check, Level.FAIL, text, advice)
