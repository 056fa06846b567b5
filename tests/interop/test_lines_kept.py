"""The line of a lock goes on between turns: so they are fair, and quick; and it ends when nobody uses it any more."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from groupsvc.testing import LocalDomain

PATIENCE_S = 20.0


@pytest.fixture
def name() -> str:
    """Of a lock of this test alone."""
    return f"line/{time.time_ns()}"


def test_who_asks_again_at_once_gets_it_after_who_waited(shared_domain: LocalDomain, name: str) -> None:
    """Who is nearer to the leader is not the faster one: each gives it back only when the other stands in line."""
    turns = 20
    order: list[str] = []

    def work(node: str, other: str) -> None:
        with shared_domain.connect(node) as session:
            lock = session.lock(name)
            until = time.monotonic() + PATIENCE_S
            for _ in range(turns):
                with lock:
                    order.append(node)
                    while order.count(other) < turns and other not in [one.node for one in lock.in_line()]:
                        assert time.monotonic() < until, f"{other} does not come"

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work, *nodes) for nodes in (("n1", "n2"), ("n2", "n1"))]:
            done.result(2 * PATIENCE_S)
    assert all(one != other for one, other in itertools.pairwise(order)), order


def test_the_line_ends_when_nobody_has_used_it_for_a_while(
    shared_domain: LocalDomain, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groupsvc.sansio.contending.KEEP_S", 0.3)
    with shared_domain.connect("n1") as session, shared_domain.connect("n2") as other:
        lock = session.lock(name)
        with lock:
            time.sleep(0.7)  # longer than that: it is in use
            assert ["n1"] == [provider.node for provider in lock.in_line()]
        assert () == lock.in_line()
        until = time.monotonic() + PATIENCE_S
        while f"_lock/{name}" in [group.name for group in other.groups()]:
            assert time.monotonic() < until, "the line is still there"
            time.sleep(0.05)
        with lock:  # and begins anew
            lock.check()
