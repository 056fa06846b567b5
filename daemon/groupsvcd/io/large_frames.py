"""Frames beyond the usual size, and how many bytes of them libzmq still holds.

The queues of libzmq are bounded by a number of frames, not of bytes. That is a bound for frames of the usual size;
a few that are a hundred times larger would break it. So these are counted here: libzmq takes them without a copy
and tells when it lets go of one, and while more than ``LARGE_BYTES_MAX`` would be under way the next one is dropped.

On the publishing socket one receiver that does not read makes all others miss large multicasts until its
connection is given up. They get them by repair. Large messages are rare there: a stream is multicast in usual frames
unless a single entry is larger.
"""

from __future__ import annotations

from collections import deque

import zmq

from groupsvc.wire.limits import FRAME_BYTES_MAX

from ..core.peer_messages import TOPIC_BYTES
from .sockets import NOBLOCK, Socket

LARGE_BYTES_MAX = FRAME_BYTES_MAX + TOPIC_BYTES
"""Under way at once: the largest frame there can be, or several smaller ones."""


class LargeFrames:
    """The large frames that were given to one socket."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._held: deque[tuple[zmq.MessageTracker, int]] = deque()

    @property
    def bytes_held(self) -> int:
        """What libzmq has not let go of."""
        self._held = deque(one for one in self._held if not one[0].done)
        return sum(size for _, size in self._held)

    def send(self, frame: bytes) -> bool:
        """Send ``frame``; False if there is no room for it now."""
        if self.bytes_held + len(frame) > LARGE_BYTES_MAX:
            return False
        tracker = self._socket.send(frame, NOBLOCK, copy=False, track=True)
        self._held.append((tracker, len(frame)))
        return True
