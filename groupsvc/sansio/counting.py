"""Counting what is said in a session, in both directions.

A says 1, 2, 3 and the connection breaks. Nobody knows whether 3 arrived, unless both have counted: the daemon says
"I have taken 2", and A repeats 3, only 3, and only once. The same holds for what the daemon tells. So each side keeps
what it said until the other has counted it (``Said``), and counts what it hears (``Heard``).

Numbers are never written on the wire: a connection keeps order, so counting is enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from ..errors import PeerProtocolError
from ..wire.client_messages import AnyClientRequest
from ..wire.limits import COUNT_EVERY_BYTES, COUNT_EVERY_ITEMS


class Said:
    """Requests of this session that the daemon has not counted yet, the oldest first."""

    def __init__(self) -> None:
        self.counted = 0
        self._kept: deque[AnyClientRequest] = deque()
        self.say: Callable[[AnyClientRequest], None] = self._kept.append  # the next request; kept until counted

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def total(self) -> int:
        """How many were ever said."""
        return self.counted + len(self._kept)

    def taken(self, count: int) -> None:
        """The daemon has counted so many. It cannot have counted what was never said, nor forgotten what it had."""
        if not self.counted <= count <= self.total:
            raise PeerProtocolError(
                f"the daemon has counted {count} requests; it had {self.counted} before, and {self.total} were said"
            )
        while self.counted < count:
            self._kept.popleft()
            self.counted += 1

    def after(self, count: int) -> Iterator[AnyClientRequest]:
        """Those after the first ``count``, to be said again."""
        return islice(iter(self._kept), count - self.counted, None)


class Heard:
    """What this session was told."""

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0  # since we said how far we have counted,
        self._told = 0  # which was so far

    @property
    def is_much(self) -> bool:
        """Whether it should be said now how far we are: the daemon keeps all of it until then."""
        return self.count - self._told >= COUNT_EVERY_ITEMS or self.bytes >= COUNT_EVERY_BYTES

    def said(self) -> int:
        """How far we are, which is being told to the daemon."""
        self._told = self.count
        self.bytes = 0
        return self.count
