"""What a session of asyncio makes: the same methods as in ``made.py``."""

from __future__ import annotations

from ..drivers.loop_pump import LoopPump
from .aio_locks import Lock, OnLost
from .locks import lock_line


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
