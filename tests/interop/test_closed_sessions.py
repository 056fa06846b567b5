"""A session that is over gives back what it had, at once: who reconnects for years needs no garbage collector."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator

import pytest

import groupsvc
from groupsvc.testing import LocalDomain

SESSIONS = 6
GONE_S = 10.0
"""The thread in the background may have it in its hands for a moment."""


@pytest.fixture
def domain() -> Iterator[LocalDomain]:
    with LocalDomain(nodes=1) as running:
        yield running


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What refers to itself in a circle stays."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_nothing_is_left_of_sessions_that_are_over(domain: LocalDomain) -> None:
    """X1: their descriptors are given back with them, but for the one that the background looked at last."""
    over = [closed(domain) for _ in range(SESSIONS)]
    until = time.monotonic() + GONE_S
    while sum(pump() is not None for pump in over) > 1 and time.monotonic() < until:
        time.sleep(0.01)
    assert 1 >= sum(pump() is not None for pump in over)


def closed(domain: LocalDomain) -> weakref.ref[object]:
    """A session that was used, voted, and is closed; nobody has it any more."""
    session = groupsvc.connect(domain.address("n1"))
    group = session.join("here", on_proposal=lambda proposal: groupsvc.Vote.APPROVE)
    group.multicast(b"red")
    group.flush()
    assert group.propose_state(b"blue", phases=groupsvc.Phases.N)
    pump = weakref.ref(session._pump)
    session.close()
    return pump
