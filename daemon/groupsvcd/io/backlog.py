"""Requests that have been read and wait for their turn.

A frame may hold a hundred thousand requests, and a program may send such frames one after the other. If all were
handled as they come, everybody else, the lease of the node among them, would wait until that is done. So in one round
of the reactor only so many requests are handled; of the others each client has a queue here, and in every round some of
each queue have their turn, beside what is read newly from those who have none.

ZeroMQ itself reads from all connections in turn. So a client that floods is slowed down to its share, and one whose
queue grows all the same is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from groupsvc.wire.client_messages import AnyClientRequest

REQUESTS_PER_ROUND = 512
"""Some ten milliseconds of work."""
FROM_QUEUES_PER_ROUND = REQUESTS_PER_ROUND // 2
"""The other half is for those who have no queue."""
BYTES_PER_ROUND = 2 * 1024 * 1024
"""After so much no further frame is read."""
REQUESTS_PER_FRAME_MAX = 100_000
"""What fits into a frame of the usual size."""
REQUESTS_WAITING_MAX = 200_000
"""Of one client. The library has at most some ten thousand on their way."""


class Backlog:
    """The queues of all clients that have one."""

    def __init__(self) -> None:
        self.queues: dict[int, deque[AnyClientRequest]] = {}  # by client

    def __bool__(self) -> bool:
        return bool(self.queues)

    def __contains__(self, client: int) -> bool:
        return client in self.queues

    def add(self, client: int, requests: Iterable[AnyClientRequest]) -> bool:
        """These wait, too; False if that is too much."""
        queue = self.queues.setdefault(client, deque())
        queue.extend(requests)
        return len(queue) <= REQUESTS_WAITING_MAX

    def forget(self, client: int) -> None:
        """Nothing waits for this one any more."""
        self.queues.pop(client, None)

    def take(self) -> list[tuple[int, AnyClientRequest]]:
        """Whose turn it is: the first of every queue."""
        found: list[tuple[int, AnyClientRequest]] = []
        share = max(1, FROM_QUEUES_PER_ROUND // max(1, len(self.queues)))
        for client, queue in list(self.queues.items()):
            found += [(client, queue.popleft()) for _ in range(min(share, len(queue)))]
            if not queue:
                del self.queues[client]
        return found


def requests_in(body: bytes | memoryview) -> int:
    """How many requests a body says it has, before anything of it is read."""
    first = body[:1]
    if first == b"\xdd":
        return int.from_bytes(body[1:5], "big")
    return int.from_bytes(body[1:3], "big") if first == b"\xdc" else 15
