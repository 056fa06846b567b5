"""How much of a node one principal may have, in all its sessions together.

What a principal has is counted when that was not done for a while; in between, what it gets is added and what it gives
back is not seen. So the number is never too small, and whoever seems to have too much is counted again at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ..turn import Turn

if TYPE_CHECKING:
    from .session import Session

COUNT_EVERY_S = 1.0

MEMBERS_MAX = 50_000
"""Memberships and subscriptions, unless the operator says something else (``limits.members_per_principal_max``)."""


class Quota:
    """The memberships and subscriptions of all principals."""

    def __init__(self, turn: Turn, sessions: Callable[[], Collection[Session]]) -> None:
        self._turn, self._sessions = turn, sessions
        self._counts: dict[str, int] = {}
        self._counted_at = 0.0
        self.members_max = MEMBERS_MAX

    def takes_one(self, identity: str) -> bool:
        """Whether this principal may have one more, which it then has."""
        if self._turn.now >= self._counted_at + COUNT_EVERY_S:
            self._counts.clear()
            self._counted_at = self._turn.now
        count = self._counts.get(identity, self.members_max)
        if count >= self.members_max:
            mine = (session for session in self._sessions() if session.principal.identity == identity)
            count = self._counts[identity] = sum(len(session.parts) for session in mine)
        if count >= self.members_max:
            return False
        self._counts[identity] = count + 1
        return True
