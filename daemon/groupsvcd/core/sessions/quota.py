"""How much of a node one principal may have, in all its sessions together.

It has memberships and subscriptions, and groups that it had formed here without being in them (``LookUpAsk``): such a
group stays as long as its node, until somebody joins. From then on it is its providers', and counted with them.

What a principal has is counted when that was not done for a while; in between, what it gets is added and what it gives
back is not seen. So the number is never too small, and whoever seems to have too much is counted again at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from ..turn import Turn

if TYPE_CHECKING:
    from .session import Session

COUNT_EVERY_S = 1.0

MEMBERS_MAX = 50_000
"""Memberships, subscriptions and groups that were formed, unless the operator says something else
(``limits.members_per_principal_max``)."""


class Quota:
    """What all principals have; ``formed`` says for whom groups are here, or about to be, once for each of them."""

    def __init__(
        self, turn: Turn, sessions: Callable[[], Collection[Session]], formed: Callable[[], Iterable[str]]
    ) -> None:
        self._turn, self._sessions, self._formed = turn, sessions, formed
        self._counts: dict[str, int] = {}
        self._groups: Counter[str] = Counter()  # what was formed, as it was counted last, and what was asked for since
        self._counted_at = 0.0
        self.members_max = MEMBERS_MAX

    def takes_one(self, identity: str) -> bool:
        """Whether this principal may have one more, which it then has."""
        if self._turn.now >= self._counted_at + COUNT_EVERY_S:
            self._counts.clear()
            self._groups = Counter(self._formed())
            self._counted_at = self._turn.now
        count = self._counts.get(identity, self.members_max)
        if count >= self.members_max:
            mine = (session for session in self._sessions() if session.principal.identity == identity)
            count = self._counts[identity] = sum(len(session.parts) for session in mine) + self._groups[identity]
        if count >= self.members_max:
            return False
        self._counts[identity] = count + 1
        return True

    def forms_one(self, identity: str) -> bool:
        """The same for a group that is formed and not joined."""
        if not self.takes_one(identity):
            return False
        self._groups[identity] += 1
        return True
