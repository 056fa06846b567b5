"""Who answers the name server, since when, and what that allows it to do.

The name server calls (``LeaderAlive`` n), the nodes answer (``Alive`` echo = n). Two things follow.

*Authority.* A majority of the voters answered call n: when call n was *sent*, no majority had promised a
higher epoch, so nobody else was name server then. Every lease the name server gives ends within ``lease`` of
that moment, and a successor waits longer than that before it gives anything away.

*Presence.* A node counts as present when it answers a call that was sent within the last ``lease``. An
answer that was delayed for a minute proves nothing. Time in which the name server itself did not run, or did
not call because its disk was full, is not held against anyone.
"""

from __future__ import annotations

import math

from ..parameters import CLOCK_DRIFT_MAX, Parameters


class RollCall:
    """The calls of one term of office and the answers to them."""

    def __init__(self, parameters: Parameters, claimed_at: float, won_at: float) -> None:
        self._parameters = parameters
        self._timers = parameters.timers
        self._others_needed = parameters.majority - 1
        self._sent: dict[int, float] = {}
        self._echoes: dict[str, int] = {}
        self._proven_after: dict[str, int] = {}
        self._present: dict[tuple[str, int], float] = {}
        self._dismissed: set[tuple[str, int]] = set()
        self._counted_from = won_at
        self.n = 0
        self.backed_n = 0
        self.backed_at = claimed_at  # promises were answers to the claim

    def call(self, now: float) -> int:
        """The number of a call that is sent now."""
        self.n += 1
        self._sent[self.n] = now
        while self._sent[oldest := next(iter(self._sent))] < now - self._timers.lease:
            del self._sent[oldest]
        if self._others_needed == 0:
            self.backed_n, self.backed_at = self.n, now
        return self.n

    def answer(self, node_id: tuple[str, int], echo: int, backs: bool, now: float) -> bool:
        """A node answers call ``echo``; ``backs`` if it is a voter that has its state. Returns whether it counts."""
        sent = self._sent.get(echo)
        if sent is None:
            return False
        name = node_id[0]
        if backs and name != self._parameters.node and echo > self._echoes.get(name, 0):
            self._echoes[name] = echo
            self._back()
        self._present[node_id] = now
        return True

    def _back(self) -> None:
        echoes = sorted(self._echoes.values(), reverse=True)
        if len(echoes) >= self._others_needed > 0:
            n = echoes[self._others_needed - 1]
            if n > self.backed_n and n in self._sent:
                self.backed_n, self.backed_at = n, self._sent[n]

    def forget(self, name: str) -> None:
        """The node shows another incarnation: answers to the calls until now prove nothing about its disk."""
        self._echoes.pop(name, None)
        self._proven_after[name] = self.n

    def proves(self, name: str, echo: int) -> bool:
        """Whether an answer to call ``echo`` was given after the node was last forgotten."""
        return echo > self._proven_after.get(name, 0)

    def dismiss(self, node_id: tuple[str, int], now: float) -> None:
        """This incarnation is gone; when its lease is over as well nobody will ask about it again."""
        self._dismissed.add(node_id)
        for gone in [one for one in self._dismissed if self.overdue(one, now)]:
            self._dismissed.discard(gone)
            self._present.pop(gone, None)

    # --- Authority ---

    def good_for(self, now: float) -> float:
        """How long leases may still last."""
        return self.backed_at + self._timers.lease - now

    @property
    def office_until(self) -> float:
        """When office ends unless a majority answers a later call.

        A little before any voter of the majority may promise to somebody else, by whatever clock.
        """
        if self._others_needed == 0:
            return math.inf
        return self.backed_at + self._timers.leader_silent * (1 - 2 * CLOCK_DRIFT_MAX)

    # --- Presence ---

    def last_seen(self, node_id: tuple[str, int]) -> float:
        """When this incarnation was last present, or the moment from which this term counts."""
        return max(self._present.get(node_id, -math.inf), self._counted_from)

    def overdue(self, node_id: tuple[str, int], now: float) -> bool:
        """Whether any lease this incarnation may have has ended by its own clock, whatever that clock is."""
        return now >= self.overdue_at(node_id)

    def overdue_at(self, node_id: tuple[str, int]) -> float:
        """When that will be, if nothing is heard of it until then."""
        return self.last_seen(node_id) + self._timers.lease + self._timers.margin

    def answered_lately(self, node_id: tuple[str, int], now: float) -> bool:
        """Whether this incarnation itself has answered a call of this term, within a lease."""
        return now - self._present.get(node_id, -math.inf) < self._timers.lease

    def pass_over(self, gap: float) -> None:
        """The name server itself did not run or call for ``gap`` seconds: nobody was absent in that time."""
        self._counted_from += gap
        for node_id in self._present:
            self._present[node_id] += gap
