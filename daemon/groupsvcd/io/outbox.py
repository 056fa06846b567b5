"""What is to be sent, gathered: all messages for the same receiver leave in one frame.

The engine speaks in single messages. During one round of the reactor they are laid down here; at its end each
peer, each topic and each client gets one frame with everything for it. So an idle daemon sends one by one, and a
busy one in large frames, without any timer.

Some messages are true only until a moment (a lease behind them ends). That is compared with the clock here, right
before the bytes leave, and what is late is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, TypeVar

from groupsvc.wire.codec import Codec
from groupsvc.wire.limits import FRAME_BYTES_MAX

M = TypeVar("M")
R = TypeVar("R", str, bytes, int)

BODY_BYTES_MAX = FRAME_BYTES_MAX - 256
"""Leaves room for the header."""


class Outbox(Generic[R, M]):
    """Messages by receiver, in the order in which they were put."""

    def __init__(self, codec: Codec[M], clock: Callable[[], float], too_large: Callable[[str], None]) -> None:
        self._codec = codec
        self._clock = clock
        self._too_large = too_large
        self._waiting: dict[R, list[tuple[M, float]]] = {}

    def put(self, receiver: R, message: M, valid_until: float = math.inf) -> None:
        """Lay ``message`` down for ``receiver``; it does not leave after ``valid_until``."""
        waiting = self._waiting.get(receiver)
        if waiting is None:
            self._waiting[receiver] = [(message, valid_until)]
        else:
            waiting.append((message, valid_until))

    def flush(self, send: Callable[[R, bytes], object]) -> None:
        """Hand the body of one frame (of more if one cannot hold it) per receiver to ``send``."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        for receiver, messages in waiting.items():
            now = self._clock()
            good = [message for message, valid_until in messages if valid_until >= now]
            if good:
                self._send(receiver, good, send)

    def _send(self, receiver: R, messages: list[M], send: Callable[[R, bytes], object]) -> None:
        body = self._codec.encode(messages)
        if len(body) <= BODY_BYTES_MAX:
            send(receiver, body)
        elif len(messages) == 1:
            self._too_large(f"{type(messages[0]).__name__} for {receiver!r} has {len(body)} bytes")
        else:
            half = len(messages) // 2
            self._send(receiver, messages[:half], send)
            self._send(receiver, messages[half:], send)
