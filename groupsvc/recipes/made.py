"""What a session makes: the methods of ``Session`` that give a recipe. It asks nobody; only using it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .locks import Lock, lock_line

if TYPE_CHECKING:
    from ..drivers.pump import Pump


class Recipes:
    """Those of blocking programs."""

    _pump: Pump
    _default_timeout: float

    def lock(self, name: str, *, reentrant: bool = False) -> Lock:
        """The lock of this name: one holder in the whole domain, first come, first served."""
        return Lock(self._pump, self._default_timeout, lock_line(name), is_reentrant=reentrant)
