"""Everything that a session is told, in one order, kept until its client has counted it.

Answers to requests, what happened in groups, that the node is suspended: one line for all of it, and each has the next
number, though no number is on the wire: both sides count. The client says now and then how far it has counted, and
what it has is dropped here. When its connection breaks it says so once more, on another one, and gets what comes after;
so it is told everything once, whatever became of the frames.

Two bounds. What is sent and not counted stays below a window: a program that does not read leaves no more than that in
the queues of its socket. What is kept in all stays below ``UNCOUNTED_ITEMS_MAX`` and ``UNCOUNTED_BYTES_MAX``: a program
that is stopped costs its node so much memory, then it has lost its session, and nobody else anything (X1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from groupsvc.wire.client_messages import AnyClientReply
from groupsvc.wire.limits import FRAME_BYTES_MAX, UNCOUNTED_BYTES_MAX, UNCOUNTED_ITEMS_MAX

TELLING_BYTES_MAX = FRAME_BYTES_MAX - 64 * 1024
"""Of one telling: it fits into a frame."""

WINDOW_ITEMS = 900
"""Sent and not counted. A client counts after 256 at the latest, and its socket takes a thousand frames."""

WINDOW_BYTES = 16 * 1024 * 1024
"""The same in bytes; a client counts after one MiB."""

CROWDED_ITEMS = UNCOUNTED_ITEMS_MAX // 2
CROWDED_BYTES = UNCOUNTED_BYTES_MAX // 2
"""From here on whoever only watches is told that it missed something, and the rest is for who takes part."""


class Tellings:
    """The line of one session. ``send`` puts something on its connection."""

    def __init__(self, send: Callable[[AnyClientReply], None]) -> None:
        self._send = send
        self._kept: deque[tuple[AnyClientReply, int]] = deque()
        self._unsent: deque[tuple[AnyClientReply, int]] = deque()  # the last of them
        self._counted = 0
        self._bytes = 0
        self._unsent_bytes = 0
        self._sent_upto = 0  # on whatever connection
        self._missed_upto = 0  # what there was when the program came back
        self._is_connected = False

    @property
    def last(self) -> int:
        """The number of the newest."""
        return self._counted + len(self._kept)

    def can_be_counted(self, upto: int) -> bool:
        """Whether a client can have counted so far, and what comes after it is still here."""
        return self._counted <= upto <= self._sent_upto

    @property
    def is_over_full(self) -> bool:
        """Whether more is kept than may be."""
        return len(self._kept) > UNCOUNTED_ITEMS_MAX or self._bytes > UNCOUNTED_BYTES_MAX

    @property
    def is_crowded(self) -> bool:
        """Whether the client is well behind."""
        return len(self._kept) > CROWDED_ITEMS or self._bytes > CROWDED_BYTES

    @property
    def is_resuming(self) -> bool:
        """Whether not all is sent yet that happened while its program was away."""
        return self.last - len(self._unsent) < self._missed_upto

    def was_away(self) -> None:
        """Its program has not been heard for so long that nobody vouches for it any more, and is back."""
        self._missed_upto = self.last

    def put(self, telling: AnyClientReply, size: int) -> None:
        """The next; it has about so many bytes."""
        item = (telling, size)
        kept = self._kept
        kept.append(item)
        self._bytes += size
        if self._is_connected and not self._unsent and len(kept) < WINDOW_ITEMS and self._bytes < WINDOW_BYTES:
            self._sent_upto = self._counted + len(kept)
            self._send(telling)
        else:
            self._unsent.append(item)
            self._unsent_bytes += size
            if self._is_connected:
                self._send_more()  # if all that is there was laid aside

    def lay_aside(self, telling: AnyClientReply, size: int) -> None:
        """The next, which nobody waits for: it goes with the one after it, or when the client counts."""
        self._kept.append((telling, size))
        self._bytes += size
        self._unsent.append((telling, size))
        self._unsent_bytes += size

    @property
    def _has_room(self) -> bool:
        sent = len(self._kept) - len(self._unsent)
        return sent < WINDOW_ITEMS and self._bytes - self._unsent_bytes < WINDOW_BYTES

    def count(self, upto: int) -> None:
        """The client has these, which were sent."""
        for _ in range(upto - self._counted):
            self._bytes -= self._kept.popleft()[1]
        self._counted = max(upto, self._counted)
        while len(self._unsent) > len(self._kept):  # it has what was sent on a connection before this one
            self._unsent_bytes -= self._unsent.popleft()[1]
        if self._is_connected:
            self._send_more()

    def _send_more(self) -> None:
        while self._unsent and self._has_room:
            telling, size = self._unsent.popleft()
            self._unsent_bytes -= size
            self._sent_upto = max(self._sent_upto, self.last - len(self._unsent))
            self._send(telling)

    def disconnect(self) -> None:
        """Nothing reaches the client."""
        self._is_connected = False

    def connect(self, seen: int) -> None:
        """The client is there, on a new connection, and has counted so far: it is told everything after that."""
        self.disconnect()
        self.count(seen)
        self._is_connected = True
        self.was_away()
        self._unsent = deque(self._kept)
        self._unsent_bytes = self._bytes
        self._send_more()
