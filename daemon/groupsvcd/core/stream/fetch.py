"""Fetching a checkpoint in blocks, from several servers at once (SAM-07, SAM-08).

D lags, and what it misses is no longer kept. B, whom it asked, tells it of the checkpoint after entry 2000: so many
bytes, this checksum. All servers that have it have the same bytes, so D asks B for one block and C for the next, a few
at a time each; the leader only if it was the one to tell. Who does not answer in time is left out, and its blocks are
asked for elsewhere; who has the checkpoint no longer, or another one, says so and is left out, too. When nobody is left
D gives up, and asks anew what there is.

When all blocks are there, the checksum must be that of the whole. If it is not, somebody's bytes are not what it
says they are, and nobody knows whose: everything is fetched again, from one server alone.

The blocks are bounded in size so that none holds up the liveness frames behind it, and in number so that a large
state does not fill the queues of those that have other things to do.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from zlib import crc32

from .checkpoints import Described

IN_FLIGHT_EACH_MAX = 2
"""Blocks asked from one server and not there yet: one travels while the next is being read."""

IN_FLIGHT_MAX = 8
"""Blocks asked from all of them together."""


class Fetch:
    """One checkpoint on its way."""

    def __init__(self, described: Described, sources: Sequence[str], *, block_bytes: int, patience: float) -> None:
        self.described = described
        self._sources = list(dict.fromkeys(sources))  # those that may have it, the best first
        self._block_bytes = block_bytes
        self._patience = patience
        self._missing = deque(range(0, described.size, block_bytes))
        self._asked: dict[int, tuple[str, float]] = {}  # offset -> whom, and when
        self._blocks: dict[int, bytes] = {}
        self.served: set[str] = set()  # who gave something

    @property
    def is_whole(self) -> bool:
        """Whether all blocks are there."""
        return not self._missing and not self._asked

    @property
    def state(self) -> bytes | None:
        """The checkpoint, once it is whole; None if it does not add up."""
        state = b"".join(self._blocks[offset] for offset in sorted(self._blocks))
        fits = (len(state), crc32(state)) == (self.described.size, self.described.crc)
        return state if fits else None

    @property
    def is_hopeless(self) -> bool:
        """Whether nobody is left to ask."""
        return not self._sources and not self.is_whole

    @property
    def deadline(self) -> float:
        """When somebody has taken too long."""
        return min((at for _, at in self._asked.values()), default=math.inf) + self._patience

    def next_asks(self, now: float) -> list[tuple[str, int, int]]:
        """(server, offset, size) of the blocks to ask for now."""
        for server in {server for server, at in self._asked.values() if now - at >= self._patience}:
            self.leave_out(server)
        asks: list[tuple[str, int, int]] = []
        while self._missing and len(self._asked) < IN_FLIGHT_MAX:
            server = min(self._sources, key=self._in_flight, default="")
            if not server or self._in_flight(server) >= IN_FLIGHT_EACH_MAX:
                break
            offset = self._missing.popleft()
            self._asked[offset] = (server, now)
            asks.append((server, offset, self._size_at(offset)))
        return asks

    def _in_flight(self, server: str) -> int:
        return sum(1 for other, _ in self._asked.values() if other == server)

    def _size_at(self, offset: int) -> int:
        return min(self._block_bytes, self.described.size - offset)

    def take(self, sender: str, described: Described, offset: int, block: bytes) -> None:
        """A block has come, or a server says that it has not got this checkpoint."""
        if described != self.described or len(block) != self._size_at(offset):
            self.leave_out(sender)
        elif offset in self._asked or offset in self._missing:
            self._asked.pop(offset, None)
            if offset in self._missing:
                self._missing.remove(offset)
            self._blocks[offset] = block
            self.served.add(sender)

    def leave_out(self, server: str) -> None:
        """Ask others for what it was asked for."""
        if server in self._sources:
            self._sources.remove(server)
        for offset in sorted(offset for offset, (other, _) in self._asked.items() if other == server):
            del self._asked[offset]
            self._missing.appendleft(offset)

    def from_one(self) -> Fetch | None:
        """It does not add up: the same again, from one of those that gave something; None if there was only one."""
        if len(self.served) < 2:
            return None
        source = min(self.served)
        return Fetch(self.described, (source,), block_bytes=self._block_bytes, patience=self._patience)
