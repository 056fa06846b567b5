"""CONNECTED, SUSPENDED, LOST, CLOSED: the life of a session, and the lease that decides between the first two.

CONNECTED means: what I know of my memberships is true, by my own clock. The daemon says for how many seconds it vouches
for that; they count from when the question was *sent*, never from when the answer came, so this side stops believing
before a domain that only lost sight of its node may go on without it. Past it, or as soon as the connection breaks, the
session is SUSPENDED; it may come back, with everything it had. A daemon that died is another matter: nobody waits for a
lease then, and the others may have gone on before this side noticed (``holding.py``). LOST is for ever: the memberships
are gone. CLOSED is what the program itself asked for.

A new session begins as SUSPENDED: nobody has vouched for anything yet.
"""

from __future__ import annotations

import enum
import math


class SessionState(enum.Enum):
    """What a program may rely on; see the module's text."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"
    CLOSED = "closed"


LEGAL: dict[SessionState, frozenset[SessionState]] = {
    SessionState.CONNECTED: frozenset({SessionState.SUSPENDED, SessionState.LOST, SessionState.CLOSED}),
    SessionState.SUSPENDED: frozenset({SessionState.CONNECTED, SessionState.LOST, SessionState.CLOSED}),
    SessionState.LOST: frozenset({SessionState.CLOSED}),
    SessionState.CLOSED: frozenset(),
}
"""From where to where."""

IS_OVER = (SessionState.LOST, SessionState.CLOSED)


class Lease:
    """Until when the daemon vouches for what is known here."""

    def __init__(self) -> None:
        self.until = -math.inf
        self._asked: dict[int, float] = {}  # when each question that is not answered yet was sent

    def asked(self, id: int, now: float) -> None:
        """A question is sent."""
        self._asked[id] = now

    def granted(self, id: int, good_for: float) -> bool:
        """It was answered; False if nobody asked. The newest question decides, also if it shortens the lease."""
        sent = self._asked.pop(id, None)
        if sent is None:
            return False
        for older in [one for one in self._asked if one < id]:
            del self._asked[older]
        self.until = sent + good_for if good_for > 0 else -math.inf
        return True

    def waits_for(self, id: int) -> bool:
        """Whether this question has had no answer."""
        return id in self._asked

    @property
    def questions(self) -> int:
        """How many have had no answer."""
        return len(self._asked)

    @property
    def waits_since(self) -> float:
        """When the oldest of them was sent."""
        return next(iter(self._asked.values()), math.inf)

    def revoked(self) -> None:
        """The daemon vouches for nothing."""
        self.until = -math.inf

    def forget_questions(self) -> None:
        """The connection is gone, and with it every answer."""
        self._asked.clear()
