"""Barriers of a group for blocking programs: whoever comes waits until all have.

A barrier belongs to a group and has a name; all parties say the same about it. Its rounds are numbered, and what each
brings to a round everybody gets (all-gather):

    barrier = group.barrier("epoch", parties=8)
    released = barrier.wait(b"my part", timeout=60)
    for provider, part in released.payloads.items():
        ...

It returns "released" or it raises: ``BarrierBroken`` says who is missing, and is the same for all. Barriers have a lane
of their own: joins, failures, ballots and messages go on meanwhile, and nobody who lives is taken for having come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from .sansio.rounds import BarrierTerms, Missing, Released

__all__ = ["Barrier", "Missing", "Released"]

Come = Callable[[BarrierTerms, object, bool, float | None], Any]
"""Come to the barrier and wait for the end of the round; a coroutine function in ``groupsvc.aio``."""


class KnownBarrier:
    """What is the same for both drivers."""

    def __init__(self, terms: BarrierTerms, come: Come) -> None:
        self._terms = terms
        self._come = come

    @property
    def name(self) -> str:
        """Within the group."""
        return self._terms.name

    @property
    def parties(self) -> int | None:
        """How many it takes; None: all providers, as they are when the round ends."""
        return self._terms.parties or None

    def __repr__(self) -> str:
        return f"<Barrier {self.name!r} for {self.parties or 'all providers'}>"


class Barrier(KnownBarrier):
    """One barrier of one group."""

    def wait(self, payload: bytes = b"", *, timeout: float | None = None) -> Released:
        """Come, and wait until everybody has; ``BarrierBroken`` if that cannot be, or not in time."""
        return cast(Released, self._come(self._terms, payload, False, timeout))

    def reset(self, *, timeout: float | None = None) -> None:
        """Make a broken barrier whole again: done when all parties have called this. If it is not broken: nothing."""
        self._come(self._terms, b"", True, timeout)
