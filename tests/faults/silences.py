"""How long receivers got nothing: what a receiver writes down of it, and what a run makes of what all wrote.

A killed leader takes sessions of other nodes with it: receiver R on node B is told that its session is lost, or that it
lags too far, and comes back by itself some seconds later. To its user that is one silence, from the last message it got
to the next one, whatever lay between. So a gap does not end where a stay ends: ``SilenceLog`` lives as long as the
program does. (Once it did: what passed between being put out and being back was counted nowhere.)

Lines of the log are ``[since, to, why]``, by the clock of the machine:

- ``""``: a gap; nothing came between two messages, for longer than ``SILENCE_S``;
- ``open``: a gap that had not ended when the program was told to end;
- ``first``: the first message of all; before it nobody knows whether there was anything to get;
- ``joined``, ``Lost``, ``Overrun``, ``Dissolved``: moments, in which it came in or was put out.

Whose daemon was killed waits for its restart, and is *away* until it is in the group again. Gaps in which it was away
are told apart; all others are gaps of the service.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

SILENCE_S = 0.1
"""Shorter ones are not written down."""

GAPS = ("", "open")


class Silence(NamedTuple):
    """One line."""

    since: float
    to: float
    why: str = ""


class SilenceLog:
    """Of one receiver, through all its lives."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._last: float | None = None  # when it got its last message

    def joined(self, now: float) -> None:
        """It is in the group, and has got nothing yet."""
        self._write(now, now, "joined")

    def got(self, now: float) -> None:
        """A message; whatever was before it is over."""
        if self._last is None:
            self._write(now, now, "first")
        elif now - self._last > SILENCE_S:
            self._write(self._last, now, "")
        self._last = now

    def put_out(self, now: float, why: str) -> None:
        """It is in the group no longer. The gap goes on."""
        self._write(now, now, why)

    def end(self, now: float) -> None:
        """The program ends, and so does everything."""
        if self._last is not None and now - self._last > SILENCE_S:
            self._write(self._last, now, "open")

    def _write(self, since: float, to: float, why: str) -> None:
        self._file.write(json.dumps([since, to, why]) + "\n")
        self._file.flush()


def read(path: Path) -> list[Silence]:
    """All lines; none if it has not begun."""
    return [Silence(*json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


# --- What a run makes of it ---

Logs = Mapping[str, Sequence[Silence]]
"""By node, that of its receiver."""


def away(log: Iterable[Silence], killed_at: Iterable[float]) -> list[tuple[float, float]]:
    """From when to when this receiver had no daemon, or was not in the group again: after each kill of its daemon."""
    joined = [one.to for one in log if one.why == "joined"]
    return [(at, min((to for to in joined if to > at), default=math.inf)) for at in killed_at]


def gaps(logs: Logs, kills: Sequence[tuple[str, float]], ended: float) -> list[tuple[str, Silence]]:
    """Gaps of receivers that were not away, each whole; what lies behind the end of the run is cut off."""
    found = []
    for node, log in logs.items():
        times = away(log, [at for killed, at in kills if killed == node])
        for one in log:
            gap = Silence(one.since, min(one.to, ended), one.why)
            if one.why in GAPS and gap.since < gap.to and not any(gap.since <= to and gap.to >= at for at, to in times):
                found.append((node, gap))
    return found


def after_kill(
    found: Iterable[tuple[str, Silence]], killed: str, at: float, until: float
) -> float:  # fmt: skip
    """The longest gap of a receiver on another node that lay between this kill and the next, wholly or in part."""
    return max((one.to - one.since for node, one in found if node != killed and one.since < until and one.to > at),
               default=0.0)  # fmt: skip


def longest(found: Iterable[tuple[str, Silence]]) -> float:
    """Of all."""
    return max((one.to - one.since for _, one in found), default=0.0)
