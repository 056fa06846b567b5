"""Daemons that this one does not understand, or that do not understand it: what is done about their frames.

Their frames are dropped, and the log says which versions they write and read. That is all a daemon does that is in the
domain: whoever sends such frames is the newcomer. A daemon that is not in it yet may be the newcomer itself, and ends
with the reason

- at once, when the voters that it does not understand are so many that the others are no majority;
- when it has heard one of them for ``STEADY_S`` without a pause, and is not in yet. The others may be there and have
  nothing to say to it, as long as one leads.

The second takes longer than voters need to find one another. So one node with the wrong program does not keep the
others from starting: A, A and C start after a power failure, the two are in within two seconds, and C ends. If A and C
are all there is, both end, and whoever starts them again tries until a third one is there.

Only voters are counted, and only what was heard lately: they may have got another program since.
"""

from __future__ import annotations

from collections.abc import Callable

from groupsvc.wire.frames import OtherVersion
from groupsvc.wire.versions import REMEDY

from .complaints import Complaints

STEADY_S = 5.0
PAUSE_S = 2.0
"""After so long a frame does not count any more. Voters that lead, or look for others, speak every second at least."""


class VersionsHeard:
    """Which voters were heard that do not understand this daemon."""

    def __init__(
        self,
        node: str,
        voters: tuple[str, ...],
        *,
        clock: Callable[[], float],
        complaints: Complaints,
        halt: Callable[[str], None],
        is_in: Callable[[], bool],
    ) -> None:
        self._node = node
        self._voters = voters
        self._clock = clock
        self._complaints = complaints
        self._halt = halt
        self._is_in = is_in
        self._heard: dict[str, tuple[float, float]] = {}  # since when without a pause, and when last

    def heard(self, frame: OtherVersion) -> None:
        """A frame of such a daemon has come."""
        self._complaints.note("wire version", f"{frame}: nothing that it says is heard. {REMEDY}")
        if frame.sender not in self._voters or frame.sender == self._node or self._is_in():
            return
        now = self._clock()
        since, last = self._heard.get(frame.sender, (now, now))
        since = since if now - last <= PAUSE_S else now
        self._heard[frame.sender] = (since, now)
        strange = sum(1 for _, last in self._heard.values() if now - last <= PAUSE_S)
        if 2 * (len(self._voters) - strange) <= len(self._voters) or now - since >= STEADY_S:
            self._halt(f"this node may not join the domain: {frame}. {REMEDY}")
