"""Payloads that travel apart from their order (SAM-04).

B sends a megabyte. It multicasts the bytes itself; the servers keep them here and report to the leader that they have
them; the leader orders a *reference*: who sent it, its number there, how long it is. A payload waits here until its
reference comes, and then for as long as that entry is kept. What was reported is never dropped before its origin has
failed: its number may be given at any moment. When there is no room a payload is not taken, nor reported; its origin
still has it and sends it again.
"""

from __future__ import annotations

PayloadId = tuple[str, int, int]
"""Origin, its incarnation, its number there."""

UNORDERED_BYTES_MAX = 32 * 1024 * 1024
"""Of payloads of one group that are in no entry yet: two full windows of senders."""


class Payloads:
    """What this node has of the payloads of one stream."""

    def __init__(self) -> None:
        self._held: dict[PayloadId, bytes] = {}
        self._unordered: dict[PayloadId, None] = {}
        self._unordered_bytes = 0
        self.bytes = 0  # of all of them
        self.dropped: list[PayloadId] | None = None  # what the disk still has, if the log is on disk

    def __contains__(self, payload_id: PayloadId) -> bool:
        return payload_id in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, payload_id: PayloadId) -> bytes:
        return self._held[payload_id]

    def get(self, payload_id: PayloadId) -> bytes | None:
        """The bytes, if we have them."""
        return self._held.get(payload_id)

    @property
    def unordered(self) -> tuple[PayloadId, ...]:
        """Those whose reference we have not seen, the oldest first."""
        return tuple(self._unordered)

    def load(self, stored: dict[PayloadId, bytes]) -> None:
        """What the disk has; which of it is ordered, the log tells."""
        for payload_id, payload in stored.items():
            self._held[payload_id] = payload
            self._unordered[payload_id] = None
            self._unordered_bytes += len(payload)
            self.bytes += len(payload)

    def all(self) -> tuple[tuple[PayloadId, bytes], ...]:
        """Everything that is here."""
        return tuple(self._held.items())

    def put_ordered(self, payload_id: PayloadId, payload: bytes) -> None:
        """Keep a payload whose reference is in the log: there must be room for it."""
        if payload_id not in self._held:
            self._held[payload_id] = payload
            self.bytes += len(payload)

    def put(self, payload_id: PayloadId, payload: bytes) -> bool:
        """Keep a payload whose reference may come; False if it was here already, or there is no room.

        There is always room for what comes before all others of its origin: it is the next to get a number, and servers
        that are full of what comes behind it would wait for ever.
        """
        has_room = self._unordered_bytes + len(payload) <= UNORDERED_BYTES_MAX
        if payload_id in self._held or not (has_room or self._is_first(payload_id)):
            return False
        self.bytes += len(payload)
        self._held[payload_id] = payload
        self._unordered[payload_id] = None
        self._unordered_bytes += len(payload)
        return True

    def _is_first(self, payload_id: PayloadId) -> bool:
        origin, n = payload_id[:2], payload_id[2]
        return all(n < other[2] for other in self._unordered if other[:2] == origin)

    def ordered(self, payload_id: PayloadId) -> None:
        """Its reference is in the log: it stays as long as that entry."""
        if payload_id in self._unordered:
            del self._unordered[payload_id]
            self._unordered_bytes -= len(self._held[payload_id])

    def unorder(self, payload_id: PayloadId) -> None:
        """The entry that referred to it is not in the log of a new epoch; it may come again under another number."""
        if payload_id in self._held and payload_id not in self._unordered:
            self._unordered[payload_id] = None
            self._unordered_bytes += len(self._held[payload_id])

    def drop(self, payload_id: PayloadId) -> None:
        """Nobody needs it any more."""
        payload = self._held.pop(payload_id, None)
        if payload is None:
            return
        self.bytes -= len(payload)
        if self.dropped is not None:
            self.dropped.append(payload_id)
        if payload_id in self._unordered:
            del self._unordered[payload_id]
            self._unordered_bytes -= len(payload)

    def drop_unordered_of(self, origin: str, incarnation: int) -> None:
        """The origin has failed: what it did not get ordered never will be."""
        for payload_id in [one for one in self._unordered if one[:2] == (origin, incarnation)]:
            self.drop(payload_id)
