"""What is to be sent, gathered: all messages for the same receiver leave in one frame.

The engine speaks in single messages. During one round of the reactor they are laid down here; at its end each
peer, each topic and each client gets one frame with everything for it. So an idle daemon sends one by one, and a
busy one in large frames, without any timer. What is more than a frame of the usual size leaves in several of them;
only a single message that is larger makes a larger frame.

Some messages are true only until a moment (a lease behind them ends). That is compared with the clock here, right
before the bytes leave, and what is late is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, TypeVar

from groupsvc.wire.codec import Codec
from groupsvc.wire.limits import FRAME_BYTES_MAX, FRAME_BYTES_USUAL

M = TypeVar("M")
R = TypeVar("R", str, bytes, int)

HEADER_ROOM_BYTES = 256
"""What a frame has beside its body, at most."""
BODY_BYTES_USUAL = FRAME_BYTES_USUAL - HEADER_ROOM_BYTES
BODY_BYTES_MAX = FRAME_BYTES_MAX - HEADER_ROOM_BYTES


class Outbox(Generic[R, M]):
    """Messages by receiver, in the order in which they were put."""

    def __init__(self, codec: Codec[M], clock: Callable[[], float], too_large: Callable[[str], None]) -> None:
        self._codec = codec
        self._clock = clock
        self._too_large = too_large
        self.waiting: dict[R, list[M]] = {}
        self._ends: dict[R, dict[int, float]] = {}  # by receiver and position: until when, if not for ever

    def put(self, receiver: R, message: M, valid_until: float = math.inf) -> None:
        """Lay ``message`` down for ``receiver``; it does not leave after ``valid_until``."""
        waiting = self.waiting.get(receiver)
        if waiting is None:
            self.waiting[receiver] = waiting = [message]
        else:
            waiting.append(message)
        if valid_until != math.inf:
            self._ends.setdefault(receiver, {})[len(waiting) - 1] = valid_until

    def flush(self, send: Callable[[R, bytes], object]) -> None:
        """Hand the body of one frame (of more if it would be too large) per receiver to ``send``."""
        waiting, self.waiting = self.waiting, {}
        ends, self._ends = self._ends, {}
        for receiver, messages in waiting.items():
            if receiver in ends:
                messages = self._still_true(messages, ends[receiver])
                if not messages:
                    continue
            self._send_to(receiver, messages, send)

    def _still_true(self, messages: list[M], ends: dict[int, float]) -> list[M]:
        now = self._clock()
        if min(ends.values()) >= now:
            return messages
        late = {position for position, end in ends.items() if end < now}
        return [message for position, message in enumerate(messages) if position not in late]

    def _send_to(self, receiver: R, messages: list[M], send: Callable[[R, bytes], object]) -> None:
        """Each message is encoded once: those for a large frame take too long for more."""
        codec = self._codec
        if len(messages) == 1:
            body = codec.encode(messages)
            if len(body) <= BODY_BYTES_USUAL:
                send(receiver, body)
                return
        frame: list[bytes] = []
        room = BODY_BYTES_USUAL
        for message in messages:
            encoded = codec.encode_one(message)
            size = len(encoded)
            if size > BODY_BYTES_MAX:
                self._too_large(f"{type(message).__name__} for {receiver!r} has {size} bytes")
                continue
            if frame and size > room:
                send(receiver, codec.joined(frame))
                frame, room = [], BODY_BYTES_USUAL
            frame.append(encoded)
            room -= size
        if frame:
            send(receiver, codec.joined(frame))
