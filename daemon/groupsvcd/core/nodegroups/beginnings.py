"""Where new members begin: the leader's side (SAM-15).

G asks to be inserted, and a user there wants everything after entry 480. The leader says yes if its log has what comes
after it, repeats the number in its answer, and keeps those entries for a lease, in which G fetches them (``backlog``).
If they are gone, it names the oldest number that G could have. A new leader knows nothing of this; G asks again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..stream.server import Server
from ..views import NodeId
from .backlog import no_longer_kept
from .user import CHECKPOINT, NOW


class Beginnings:
    """The numbers that new members begin after, in one view."""

    def __init__(self, server: Server, lease: float) -> None:
        self._server = server
        self._lease = lease
        self._begins: dict[NodeId, int] = {}
        self._keep_until: dict[NodeId, float] = {}  # for how long what is behind it is kept for them

    def judge(self, since: int) -> tuple[int, str]:
        """The number that a new member begins after, if it wants anything earlier than now; or why it cannot."""
        log, delivered, begins = self._server.log, self._server.delivered, since
        if since == NOW:
            return NOW, ""
        if since == CHECKPOINT:  # others may have the advertised one before we have come so far
            begins = min(max(self._server.replica.checkpoints.advertised.seq, log.base), delivered)
        if begins > delivered:
            return NOW, f"the stream has come to entry {delivered} only, not to {begins}"
        if begins < log.base:
            return NOW, no_longer_kept(begins, log.base)
        return begins, ""

    def note(self, node: NodeId, begins: int) -> None:
        """A member, or one that is about to be inserted, begins there."""
        self._begins[node] = begins
        self._keep(node)

    def of(self, node: NodeId) -> int:
        """What a member is told; from then on it has a lease's time to fetch it."""
        self._keep(node)
        return self._begins.get(node, NOW)

    def _keep(self, node: NodeId) -> None:
        self._keep_until[node] = self._server.turn.now + self._lease

    def forget(self, node: NodeId) -> None:
        """No member any more."""
        self._begins.pop(node, None)

    def kept(self) -> Iterable[int]:
        """What comes after these is kept."""
        now = self._server.turn.now
        self._keep_until = {node: at for node, at in self._keep_until.items() if at > now}
        return [self._begins[node] for node in self._keep_until if self._begins.get(node, NOW) != NOW]
