"""What a session of asyncio makes: the same methods as in ``made.py``.

Who loses what it holds in the body of an ``async with`` is cancelled and gets ``LockLost``; with ``on_lost="event"``
only the latter, at the end.
"""

from __future__ import annotations

from ..drivers.loop_pump import LoopPump
from .aio_counters import Counter
from .aio_elections import Election
from .aio_latches import Latch
from .aio_locks import Lock, OnLost
from .aio_parties import Party
from .aio_rwlocks import ReadWriteLock
from .aio_semaphores import Semaphore
from .counters import counter_line
from .elections import election_line
from .latches import latch_line
from .locks import lock_line
from .parties import party_line
from .rwlocks import rwlock_lines
from .semaphores import semaphore_line


class Recipes:
    """Those of programs with a loop."""

    _pump: LoopPump
    _default_timeout: float

    def lock(self, name: str, *, reentrant: bool = False, on_lost: OnLost = "cancel") -> Lock:
        """The lock of this name: one holder in the whole domain, first come, first served.

        Who loses it in the body of an ``async with`` is cancelled and gets ``LockLost``; with ``on_lost="event"`` only
        the latter, at the end.
        """
        return Lock(self._pump, self._default_timeout, lock_line(name), is_reentrant=reentrant, on_lost=on_lost)

    def rwlock(self, name: str, *, on_lost: OnLost = "cancel") -> ReadWriteLock:
        """The lock of this name for readers, who share it, and writers, who do not."""
        return ReadWriteLock(self._pump, self._default_timeout, rwlock_lines(name), on_lost=on_lost)

    def semaphore(self, name: str, permits: int, *, on_lost: OnLost = "cancel") -> Semaphore:
        """The semaphore of this name, which so many may hold at a time; everybody says the same number."""
        line = semaphore_line(name, permits)
        return Semaphore(self._pump, self._default_timeout, line, permits, on_lost=on_lost)

    def election(self, name: str, *, data: bytes = b"", on_lost: OnLost = "cancel") -> Election:
        """The election of this name; the others see ``data`` of a candidate, an address for example."""
        return Election(self._pump, self._default_timeout, election_line(name, data), on_lost=on_lost)

    def counter(self, name: str) -> Counter:
        """The counter of this name: every number is given once."""
        return Counter(self._pump, self._default_timeout, counter_line(name))

    def latch(self, name: str, count: int) -> Latch:
        """The latch of this name, which opens when it was counted down so often; everybody says the same number."""
        return Latch(self._pump, self._default_timeout, latch_line(name, count), count)

    def party(self, name: str, *, data: bytes = b"") -> Party:
        """The party of this name: who is here; the others see ``data`` of me, an address for example."""
        return Party(self._pump, self._default_timeout, party_line(name, data))
