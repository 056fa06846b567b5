"""Barriers of a group for blocking programs: whoever comes waits until all have.

A barrier belongs to a group and has a name; all parties say the same about it. Its rounds are numbered, and what each
brings to a round everybody gets (all-gather):

    barrier = group.barrier("epoch", parties=8)
    released = barrier.wait(b"my part", timeout=60)
    for provider, part in released.payloads.items():
        ...

It returns "released" or it raises: ``BarrierBroken`` says who is missing, the same to all. Barriers have a lane
of their own: joins, failures, ballots and messages go on meanwhile, and nobody who lives is taken for having come.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from .sansio import rounds
from .sansio.rounds import BarrierTerms, Missing, Released
from .views import Provider

__all__ = ["Barrier", "Missing", "Released"]


class Come(Protocol):
    """Come to a barrier and wait for the end of the round; a coroutine function in ``groupsvc.aio``."""

    def __call__(self, terms: BarrierTerms, payload: object, timeout: float | None, *, resets: bool = False) -> Any:
        """With these terms, and this payload; or to reset it."""


class KnownBarrier:
    """What is the same for both drivers."""

    def __init__(self, group: str, terms: BarrierTerms, come: Come) -> None:
        self._group = group
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
        released: Released = self._come(self._terms, payload, timeout)
        return released

    def all_gather(self, payload: bytes, *, timeout: float | None = None) -> dict[str, bytes]:
        """What everybody brings, by the id of the provider, the oldest first."""
        return self.wait(payload, timeout=timeout).payloads

    def broadcast(
        self, payload: bytes = b"", *, root: Provider | str | None = None, timeout: float | None = None
    ) -> bytes:
        """What ``root`` brings, a provider or its id; None: the oldest of those who come. The others bring nothing."""
        return rounds.of_root(self.wait(payload, timeout=timeout), root, self._group)

    def reduce(
        self, payload: bytes, function: Callable[[bytes, bytes], bytes], *, timeout: float | None = None
    ) -> bytes:
        """What everybody brings, put together two by two in the order of the providers: everybody gets the same."""
        return functools.reduce(function, self.wait(payload, timeout=timeout).payloads.values())

    def vote(self, approve: bool, *, timeout: float | None = None) -> bool:
        """Whether everybody approves. Nobody is voted for: who does not come breaks the round."""
        return rounds.approved(self.wait(rounds.YES if approve else rounds.NO, timeout=timeout))

    def reset(self, *, timeout: float | None = None) -> None:
        """Make a broken barrier whole again: done when all parties have called this. If it is not broken: nothing."""
        self._come(self._terms, b"", timeout, resets=True)
