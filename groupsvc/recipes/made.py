"""What a session makes: the methods of ``Session`` that give a recipe. It asks nobody; only using it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .counters import Counter, counter_line
from .elections import Election, election_line
from .latches import Latch, latch_line
from .locks import Lock, lock_line
from .parties import Party, party_line
from .rwlocks import ReadWriteLock, rwlock_lines
from .semaphores import Semaphore, semaphore_line

if TYPE_CHECKING:
    from ..drivers.pump import Pump


class Recipes:
    """Those of blocking programs."""

    _pump: Pump
    _default_timeout: float

    def lock(self, name: str, *, reentrant: bool = False) -> Lock:
        """The lock of this name: one holder in the whole domain, first come, first served."""
        return Lock(self._pump, self._default_timeout, lock_line(name), is_reentrant=reentrant)

    def rwlock(self, name: str) -> ReadWriteLock:
        """The lock of this name for readers, who share it, and writers, who do not."""
        return ReadWriteLock(self._pump, self._default_timeout, rwlock_lines(name))

    def semaphore(self, name: str, permits: int) -> Semaphore:
        """The semaphore of this name, which so many may hold at a time; everybody says the same number."""
        return Semaphore(self._pump, self._default_timeout, semaphore_line(name, permits), permits)

    def election(self, name: str, *, data: bytes = b"") -> Election:
        """The election of this name; the others see ``data`` of a candidate, an address for example."""
        return Election(self._pump, self._default_timeout, election_line(name, data))

    def counter(self, name: str) -> Counter:
        """The counter of this name: every number is given once."""
        return Counter(self._pump, self._default_timeout, counter_line(name))

    def latch(self, name: str, count: int) -> Latch:
        """The latch of this name, which opens when it was counted down so often; everybody says the same number."""
        return Latch(self._pump, self._default_timeout, latch_line(name, count), count)

    def party(self, name: str, *, data: bytes = b"") -> Party:
        """The party of this name: who is here; the others see ``data`` of me, an address for example."""
        return Party(self._pump, self._default_timeout, party_line(name, data))
