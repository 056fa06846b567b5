"""Where clients of other services are known to hang for ever, as scenarios that ours passes, each with a deadline.

The threads are those of kazoo, python-zk/kazoo on GitHub; the numbers are in the text of each test. The network between
a program and its daemon is a forwarder, which is broken off and mended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

import pytest

import groupsvc
from groupsvc import LockLost, SessionState
from groupsvc.testing import LocalDomain

from .forwarder import Forwarder
from .programs import Program
from .test_locks import wait_for_line

DEADLINE_S = 15.0
"""Hard: whoever has not ended by then hangs, and is left behind."""

T = TypeVar("T")


@pytest.fixture(scope="module")
def domain() -> Iterator[LocalDomain]:
    """One node with a door for programs on other machines."""
    with LocalDomain(nodes=1, keys=True) as domain:
        yield domain


@pytest.fixture
def network(domain: LocalDomain) -> Iterator[Forwarder]:
    """Between the program of the test and its daemon."""
    with Forwarder(domain.remote_address("n1")) as network:
        yield network


@pytest.fixture
def session(domain: LocalDomain, network: Forwarder) -> Iterator[groupsvc.Session]:
    """Of the program that might hang."""
    session = groupsvc.connect(network.address, keys=domain.keys, default_timeout=DEADLINE_S)
    yield session
    soon(session.close).result(DEADLINE_S)


@pytest.fixture
def other(domain: LocalDomain) -> Iterator[groupsvc.Session]:
    """Of somebody whose connection is always good."""
    with domain.connect("n1") as other:
        yield other


@pytest.fixture
def name() -> str:
    """Of a lock of this test alone."""
    return f"hangs/{time.time_ns()}"


def soon(call: Callable[..., T], *arguments: Any) -> Future[T]:
    """What comes of a call that runs beside the test; its thread holds up nobody, also if it never ends."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call(*arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def wait_for_state(session: groupsvc.Session, state: SessionState) -> None:
    until = time.monotonic() + DEADLINE_S
    while session.state is not state:
        assert time.monotonic() < until, f"{session.state} and not {state}"
        time.sleep(0.01)


FORKING = """
import multiprocessing
session = groupsvc.connect(address)
held = session.lock(name)
held.acquire()
waiting = threading.Thread(target=lambda: session.lock(name).acquire(60))
waiting.start()

def inherited(number):
    try:
        return held.acquire(1)
    except groupsvc.UsageError:
        return "told"

def own(number):
    with groupsvc.connect(address) as mine, mine.lock(name + "/own"):
        return number

with multiprocessing.get_context("fork").Pool(2) as pool:
    print(*pool.map(inherited, range(3)), flush=True)
    print(*pool.map(own, range(3)), flush=True)
    pool.close()
    pool.join()
held.check()
held.release()
waiting.join()
print("done", flush=True)
"""


def test_a_client_after_a_fork(domain: LocalDomain, name: str) -> None:
    """519, 628, 554: a pool of ``multiprocessing`` is forked while the parent holds a lock and a thread of it waits.

    Children that use the parent's session are told so, and can have their own; the parent goes on; all of them end.
    """
    with Program(FORKING, domain.address("n1"), name) as program:
        assert "told told told" == program.says()
        assert "0 1 2" == program.says()
        assert "done" == program.says()
        assert 0 == program.ends()


def test_a_wait_for_a_lock_over_a_break_of_the_connection(
    session: groupsvc.Session, other: groupsvc.Session, network: Forwarder, name: str
) -> None:
    """282: the turn comes while the waiter is cut off; ``acquire`` returns when the connection is good again."""
    holding = other.lock(name)
    assert holding.acquire()
    lock = session.lock(name)
    waiting = soon(lock.acquire, 2 * DEADLINE_S)
    wait_for_line(other, name, "n1", "n1")
    network.break_off()
    wait_for_state(session, SessionState.SUSPENDED)
    fence = holding.fence
    holding.release()
    wait_for_line(other, name, "n1")
    assert not waiting.done(), "nobody vouches for it yet"
    network.mend()
    assert waiting.result(DEADLINE_S) is True
    assert fence < lock.fence
    lock.check()
    lock.release()


def test_any_use_of_a_lock_of_a_closed_session(session: groupsvc.Session, other: groupsvc.Session, name: str) -> None:
    """482: it raises at once, whatever it is, also in a thread that waited when it was closed."""
    lock, rwlock = session.lock(name), session.rwlock(name)
    assert lock.acquire()
    waiting = soon(session.lock(name).acquire, 10 * DEADLINE_S)
    wait_for_line(other, name, "n1", "n1")
    soon(session.close).result(DEADLINE_S)
    with pytest.raises(groupsvc.UsageError, match="this session was closed"):
        waiting.result(DEADLINE_S)
    calls: list[Callable[[], object]] = [
        lock.acquire, lock.try_acquire, lock.__enter__, lock.in_line, session.lock(name).acquire, rwlock.read().acquire,
        rwlock.write().acquire, session.semaphore(name, 2).acquire, session.election(name).candidates,
        lambda: session.election(name).run(print), session.counter(name).next, session.party(name).enter,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(groupsvc.UsageError, match="this session was closed"):
            soon(call).result(DEADLINE_S)
    with pytest.raises(groupsvc.Lost):
        lock.check()
    with pytest.raises(LockLost):
        lock.release()


def test_nobody_is_left_in_the_line_by_a_session_that_was_suspended(
    session: groupsvc.Session, other: groupsvc.Session, network: Forwarder, name: str
) -> None:
    """760: who gives up while it is cut off, or only begins then, is in nobody's way when the connection is back."""
    lock = other.lock(name)
    assert lock.acquire()
    gives_up = soon(session.lock(name).acquire, 1.0)
    wait_for_line(other, name, "n1", "n1")
    network.break_off()
    wait_for_state(session, SessionState.SUSPENDED)
    begins = soon(session.lock(name).acquire, 0.3)
    assert (False, False) == (gives_up.result(DEADLINE_S), begins.result(DEADLINE_S))
    network.mend()
    wait_for_state(session, SessionState.CONNECTED)
    wait_for_line(other, name, "n1")
    lock.release()
    assert soon(session.lock(name).acquire).result(DEADLINE_S) is True


def test_a_listener_that_uses_locks_when_the_connection_is_back(
    session: groupsvc.Session, other: groupsvc.Session, network: Forwarder, name: str
) -> None:
    """170, 649: SUSPENDED, then CONNECTED, with a listener that takes and releases, and readers and writers in line.

    What would wait for itself is told so; the first reader goes on, then the writer has it, then the second reader.
    """
    told: list[object] = []
    table = session.rwlock(name)
    first, second, held = table.read(), table.read(), session.lock(name)
    writing = other.rwlock(name).write()
    assert first.acquire()
    assert held.acquire()

    @session.on_state
    def hear(state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            try:
                session.lock(f"{name}/other").acquire()
            except groupsvc.UsageError as error:
                told.append(error)
            held.release()
            told.append(state)

    writer = soon(writing.acquire, 2 * DEADLINE_S)
    wait_for_line(other, name, "n1", "n1", kind="rwlock")
    reader = soon(second.acquire, 2 * DEADLINE_S)
    wait_for_line(other, name, "n1", "n1", "n1", kind="rwlock")
    network.break_off()
    wait_for_state(session, SessionState.SUSPENDED)
    network.mend()
    assert soon(other.lock(name).acquire).result(DEADLINE_S) is True, "the listener has released it"
    assert not writer.done()
    soon(first.release).result(DEADLINE_S)
    assert writer.result(DEADLINE_S) is True
    assert not reader.done()
    soon(writing.release).result(DEADLINE_S)
    assert reader.result(DEADLINE_S) is True
    assert "would not vote meanwhile" in str(told[0])
    assert SessionState.CONNECTED is told[1]


def test_what_becomes_of_my_lock_when_a_listener_blocks_and_the_session_dies(
    session: groupsvc.Session, other: groupsvc.Session, network: Forwarder, name: str
) -> None:
    """2, 381: a listener that never returns holds up neither the lease of the session nor the news that it is lost.

    A break that is over in time costs nothing. Then the session dies: the holder is told before the next one has it;
    and the other end of 282, who waits for a lock with that session is told, long before its time is up.
    """
    may_go_on, blocks = threading.Event(), threading.Event()

    @session.on_state
    def hear(state: SessionState) -> None:
        blocks.set()
        may_go_on.wait()

    try:
        lock = session.lock(name)
        assert lock.acquire()
        fence, lost = lock.fence, lock.lost
        network.break_off()
        assert blocks.wait(DEADLINE_S)
        with pytest.raises(groupsvc.Suspended):
            lock.check()
        network.mend()
        wait_for_state(session, SessionState.CONNECTED)
        lock.check()
        assert fence == lock.fence
        waiting = soon(other.lock(name).acquire, 2 * DEADLINE_S)
        wait_for_line(other, name, "n1", "n1")
        behind = soon(session.lock(name).acquire, 10 * DEADLINE_S)
        wait_for_line(other, name, "n1", "n1", "n1")
        network.break_off()
        assert waiting.result(DEADLINE_S) is True
        with pytest.raises((groupsvc.Suspended, groupsvc.Lost)):
            lock.check()
        assert lost.wait(DEADLINE_S)
        with pytest.raises(LockLost):
            soon(lock.release).result(DEADLINE_S)
        with pytest.raises(groupsvc.DaemonUnreachable):
            behind.result(DEADLINE_S)
        wait_for_line(other, name, "n1")
    finally:
        may_go_on.set()
