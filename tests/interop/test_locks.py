"""Locks with real daemons: whoever holds one is killed, stopped or cut off, and who waits gives up in every way.

What is written under the lock goes to a resource that records fences (L6): none may be smaller than one before it.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import groupsvc
from groupsvc import LockLost, aio
from groupsvc.sansio.contending import without_keepers
from groupsvc.testing import LocalDomain

from .both_drivers import Driver
from .programs import Program

PATIENCE_S = 30.0
DRIVERS = pytest.mark.parametrize("connect", [groupsvc.connect, aio.connect], ids=["blocking", "asyncio"])


@pytest.fixture
def name() -> str:
    """Of a lock of this test alone."""
    return f"locks/{time.time_ns()}"


def line(session: groupsvc.Session, name: str, kind: str = "lock") -> list[str]:
    """The nodes of those who stand in line, the holder first."""
    try:
        with session.subscribe(f"_{kind}/{name}") as watching:
            return [provider.node for provider in without_keepers(watching.view.providers)]
    except groupsvc.NoSuchGroup:
        return []


def wait_for_line(session: groupsvc.Session, name: str, *nodes: str, kind: str = "lock") -> None:
    """Until these stand in line, and nobody else."""
    until = time.monotonic() + PATIENCE_S
    while (found := line(session, name, kind)) != list(nodes):
        assert time.monotonic() < until, f"in line are {found} and not {nodes}"
        time.sleep(0.02)


HOLDER = """
session = groupsvc.connect(address)
lock = session.lock(name)
lock.acquire()
print(lock.fence, flush=True)
for order in sys.stdin:
    try:
        if order == "check\\n":
            lock.check()
        elif order == "release\\n":
            lock.release()
        print("done", flush=True)
    except groupsvc.GroupServiceError as error:
        print(type(error).__name__, flush=True)
"""


class TestHolding:
    """One at a time, in the order in which they came, with fences that grow."""

    @DRIVERS
    def test_acquire_check_release_in_both_drivers(self, shared_domain: LocalDomain, name: str, connect: Any) -> None:
        async def story() -> None:
            driver = Driver(connect)
            async with (
                await driver.connect(shared_domain.address("n1")) as one,
                await driver.connect(shared_domain.address("n2")) as two,
            ):
                here, there = one.lock(name), two.lock(name)
                assert await here.acquire() is True
                here.check()
                assert here.is_held
                assert here.valid_for > 0
                assert not here.lost.is_set()
                assert await there.acquire(timeout=0.2) is False
                assert not there.is_held
                first, lost = here.fence, here.lost
                waiting = asyncio.create_task(there.acquire(timeout=PATIENCE_S))
                await here.release()
                assert await waiting is True
                assert not lost.is_set(), "it was given back, not lost"
                assert first < there.fence
                async with one.lock(f"{name}/other") as held:
                    held.check()
                await there.release()

        asyncio.run(asyncio.wait_for(story(), 3 * PATIENCE_S))

    def test_turns_come_in_the_order_of_the_line(self, shared_domain: LocalDomain, name: str) -> None:
        order: list[str] = []
        sessions = [shared_domain.connect(node) for node in ("n1", "n2", "n3", "n1", "n3")]
        expected: list[str] = []
        with ThreadPoolExecutor(len(sessions)) as pool:
            first = sessions[0].lock(name)
            assert first.acquire()

            def work(number: int) -> None:
                with sessions[number].lock(name):
                    order.append(str(number))

            turns = []
            for number in range(1, 5):
                turns.append(pool.submit(work, number))
                expected.append(str(number))
                nodes = ["n1", "n2", "n3", "n1", "n3"][: number + 1]
                wait_for_line(sessions[0], name, *nodes)
            first.release()
            for turn in turns:
                turn.result(PATIENCE_S)
        assert expected == order
        for session in sessions:
            session.close()

    def test_threads_with_one_lock_object_take_turns(self, shared_domain: LocalDomain, name: str) -> None:
        """L6: a hundred turns of four threads over two sessions; never two at once, and fences grow."""
        fences: list[int] = []
        inside: list[int] = []
        with shared_domain.connect("n1") as one, shared_domain.connect("n3") as two:
            locks = [one.lock(name), two.lock(name)]

            def work(number: int) -> None:
                for _ in range(25):
                    with locks[number % 2] as held:
                        inside.append(number)
                        assert [number] == inside
                        fences.append(held.fence)
                        held.check()
                        inside.remove(number)

            with ThreadPoolExecutor(4) as pool:
                list(pool.map(work, range(4)))
        assert 100 == len(fences) == len(set(fences))
        assert sorted(fences) == fences

    @DRIVERS
    def test_a_reentrant_lock_is_had_again_by_its_owner_alone(
        self, shared_domain: LocalDomain, name: str, connect: Any
    ) -> None:
        if connect is groupsvc.connect:
            with shared_domain.connect("n1") as session:
                lock = session.lock(name, reentrant=True)
                with lock as outer, lock as inner:
                    assert outer is inner
                    assert lock.acquire()
                    lock.release()
                    assert ["n1"] == line(session, name)
                    with ThreadPoolExecutor(1) as pool:
                        assert not pool.submit(lock.acquire, 0.2).result(PATIENCE_S), "another thread is another owner"
                assert not lock.is_held
                wait_for_line(session, name)
            return

        async def story() -> None:
            async with aio.connect(shared_domain.address("n1")) as session:
                lock = session.lock(name, reentrant=True)
                async with lock as outer, lock as inner:
                    assert outer is inner
                    assert not await asyncio.create_task(lock.acquire(0.2)), "another task is another owner"
                assert not lock.is_held

        asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


class TestWaitersLeaveNoTrace:
    """Late, cancelled, interrupted, killed or with a closed session: nobody stays in the line."""

    @pytest.fixture
    def holder(self, shared_domain: LocalDomain, name: str) -> Iterator[groupsvc.Session]:
        """It has the lock all the time."""
        with shared_domain.connect("n1") as session, session.lock(name):
            yield session

    def test_who_is_late(self, shared_domain: LocalDomain, name: str, holder: groupsvc.Session) -> None:
        with shared_domain.connect("n2", default_timeout=0.3) as session:
            began = time.monotonic()
            with pytest.raises(groupsvc.TimedOut, match=r"within 0\.3 s; others hold it"), session.lock(name):
                pass
            assert 0.25 < time.monotonic() - began < 5.0
            assert session.lock(name).acquire(timeout=0.01) is False, "not even let in"
            wait_for_line(holder, name, "n1")

    def test_a_cancelled_task(self, shared_domain: LocalDomain, name: str, holder: groupsvc.Session) -> None:
        async def story() -> None:
            async with aio.connect(shared_domain.address("n2")) as session:
                for pause in (0.0, 0.001, 0.01, 0.2):
                    waiting = asyncio.create_task(session.lock(name).acquire())
                    await asyncio.sleep(pause)
                    waiting.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await waiting
                await asyncio.to_thread(wait_for_line, holder, name, "n1")

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))

    def test_an_interrupted_program(self, shared_domain: LocalDomain, name: str, holder: groupsvc.Session) -> None:
        """Ctrl-C anywhere: while it is let in, while it waits."""
        program = """
session = groupsvc.connect(address)
said = "in"
while True:
    try:
        print(said, flush=True)
        sys.stdin.readline()
        print("acquires", flush=True)
        session.lock(name).acquire()
    except KeyboardInterrupt:
        said = "interrupted"
"""
        with Program(program, shared_domain.address("n2"), name) as waiter:
            assert "in" == waiter.says()
            for pause in (0.0, 0.002, 0.01, 0.3):
                waiter.tell("acquire")
                assert "acquires" == waiter.says()
                time.sleep(pause)
                os.kill(waiter.pid, signal.SIGINT)
                assert "interrupted" == waiter.says()
            wait_for_line(holder, name, "n1")

    def test_a_killed_program(self, shared_domain: LocalDomain, name: str, holder: groupsvc.Session) -> None:
        with Program(HOLDER, shared_domain.address("n2"), name) as waiter:
            wait_for_line(holder, name, "n1", "n2")
            waiter.kill()
            wait_for_line(holder, name, "n1")

    @DRIVERS
    def test_a_session_that_is_closed_ends_the_wait_with_an_error(
        self, shared_domain: LocalDomain, name: str, holder: groupsvc.Session, connect: Any
    ) -> None:
        """It never hangs; and a lock of a closed session raises at once."""

        async def story() -> None:
            session = await Driver(connect).connect(shared_domain.address("n2"))
            lock = session.lock(name)
            waiting = asyncio.create_task(lock.acquire(timeout=PATIENCE_S))
            await asyncio.to_thread(wait_for_line, holder, name, "n1", "n2")
            await session.close()
            with pytest.raises(groupsvc.UsageError, match="this session was closed"):
                await waiting
            with pytest.raises(groupsvc.UsageError, match="this session was closed"):
                await lock.acquire()
            await asyncio.to_thread(wait_for_line, holder, name, "n1")

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))


class TestLosing:
    """The holder is told first; and it is said to whoever believes that it still holds it."""

    def test_a_killed_holder_is_followed_at_once(self, shared_domain: LocalDomain, name: str) -> None:
        with (
            shared_domain.connect("n1") as session,
            Program(HOLDER, shared_domain.address("n2"), name) as holder,
            ThreadPoolExecutor(1) as pool,
        ):
            fence = int(holder.says())
            lock = session.lock(name)
            waiting = pool.submit(lock.acquire, PATIENCE_S)
            wait_for_line(session, name, "n2", "n1")
            began = time.monotonic()
            holder.kill()
            assert waiting.result(PATIENCE_S)
            assert time.monotonic() - began < 5.0
            assert fence < lock.fence
            lock.release()

    def test_a_stopped_holder_keeps_it_and_nobody_waits_longer_than_he_wants(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        """It is not dead. When it goes on it holds it as before, with the same fence."""
        with shared_domain.connect("n1") as session, Program(HOLDER, shared_domain.address("n2"), name) as holder:
            fence = int(holder.says())
            holder.stop()
            began = time.monotonic()
            assert session.lock(name).acquire(timeout=6.0) is False
            assert 5.9 < time.monotonic() - began < 12.0
            holder.go_on()
            until = time.monotonic() + PATIENCE_S
            found = ""
            while found != "done":  # Suspended until its daemon has heard of it again
                assert time.monotonic() < until, found
                holder.tell("check")
                found = holder.says()
                assert found in ("done", "Suspended")
            holder.tell("release")
            assert "done" == holder.says()
            with session.lock(name) as held:
                assert fence < held.fence

    def test_an_expelled_holder_is_cancelled_where_it_awaits(self, shared_domain: LocalDomain, name: str) -> None:
        async def hold(lock: aio.Lock) -> None:
            async with lock:
                await expel_the_holder(shared_domain, name)
                await asyncio.sleep(PATIENCE_S)

        async def story() -> None:
            async with aio.connect(shared_domain.address("n1")) as session:
                with pytest.raises(LockLost, match=r"was lost while it was held \(it left: expelled\)"):
                    await hold(session.lock(name))
                task = asyncio.current_task()
                assert task is not None
                assert 0 == task.cancelling()
                lock = session.lock(name, reentrant=True)
                assert await lock.acquire()
                with pytest.raises(LockLost):
                    await hold(lock)
                with pytest.raises(LockLost):
                    await lock.release()

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))

    def test_who_wants_no_cancellation_has_an_event(self, shared_domain: LocalDomain, name: str) -> None:
        went_on: list[bool] = []

        async def hold(lock: aio.Lock) -> None:
            async with lock as held:
                await expel_the_holder(shared_domain, name)
                await asyncio.wait_for(held.lost.wait(), PATIENCE_S)
                with pytest.raises(groupsvc.Lost):
                    held.check()
                went_on.append(True)

        async def story() -> None:
            async with aio.connect(shared_domain.address("n1")) as session:
                with pytest.raises(LockLost):
                    await hold(session.lock(name, on_lost="event"))
                with pytest.raises(groupsvc.UsageError, match="on_lost is 'ignore'"):
                    session.lock(name, on_lost="ignore")  # type: ignore[arg-type]

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))
        assert went_on

    def test_a_cancellation_from_outside_stays_one(self, shared_domain: LocalDomain, name: str) -> None:
        async def story() -> None:
            async with aio.connect(shared_domain.address("n1")) as session:
                lock = session.lock(name)

                async def work() -> None:
                    async with lock:
                        inside.set()
                        await asyncio.sleep(PATIENCE_S)

                inside = asyncio.Event()
                task = asyncio.create_task(work())
                await inside.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert not lock.is_held
                assert await lock.acquire(timeout=PATIENCE_S)

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))

    def test_a_blocking_holder_hears_of_it_at_the_end_of_its_block(self, shared_domain: LocalDomain, name: str) -> None:
        def hold(lock: groupsvc.Lock, divisor: int) -> float:
            with lock as held:
                asyncio.run(expel_the_holder(shared_domain, name))
                assert held.lost.wait(PATIENCE_S)
                with pytest.raises(groupsvc.Lost):
                    held.check()
                return 1 / divisor

        with shared_domain.connect("n1") as session:
            lock = session.lock(name)
            with pytest.raises(LockLost):
                hold(lock, 1)
            with pytest.raises(ZeroDivisionError):  # what the block raises says more
                hold(lock, 0)
            assert lock.acquire()
            asyncio.run(expel_the_holder(shared_domain, name))
            assert lock.lost.wait(PATIENCE_S)
            with pytest.raises(LockLost):
                lock.release()

    def test_nobody_waits_for_a_lock_in_a_callback(self, shared_domain: LocalDomain, name: str) -> None:
        found: list[BaseException] = []

        def vote(proposal: groupsvc.Proposal) -> groupsvc.Vote:
            try:
                session.lock(name).acquire()
            except groupsvc.UsageError as error:
                found.append(error)
            return groupsvc.Vote.APPROVE

        with shared_domain.connect("n1") as session:
            group = session.join(f"callbacks/{name}", on_proposal=vote)
            assert group.propose_state(b"x", phases=groupsvc.Phases.N)
            assert "would not vote meanwhile" in str(found[0])


async def expel_the_holder(domain: LocalDomain, name: str) -> None:
    """By an operator, who joins the group of the lock for it."""
    async with aio.connect(domain.address("n3")) as session:
        lock = session.lock(name)
        waiting = asyncio.create_task(lock.acquire(timeout=PATIENCE_S))
        membership = None
        while membership is None:
            await asyncio.sleep(0.01)
            members = session._pump.machine.members.values()
            membership = next((one for one in members if one.group == f"_lock/{name}"), None)
        group = aio.Group(session._pump, membership, PATIENCE_S)
        assert await group.expel(without_keepers(group.providers)[0])
        assert await waiting
        await lock.release()


def write(path: Path, fence: int) -> bool:
    """A resource that takes nothing with a smaller fence than it has seen; what it has taken is in its file."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        is_taken = fence >= max([int(line) for line in file], default=0)
        if is_taken:
            file.write(f"{fence}\n")
        return is_taken


def taken(path: Path) -> list[int]:
    """All fences that it took."""
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


WRITER = """
from pathlib import Path
from tests.interop.test_locks import write
while True:
    try:
        with groupsvc.connect(address) as session:
            lock = session.lock(name)
            while True:
                with lock as held:
                    held.check()
                    write(Path(sys.argv[3]), held.fence)
    except (groupsvc.Failed, groupsvc.OutcomeUnknown) as error:
        print(error, file=sys.stderr)
"""


class TestNodesDie:
    """L6, with a domain of its own: daemons are killed under the holder and under the group's leader."""

    def test_fences_grow_while_writers_and_daemons_are_killed(
        self, local_domain: LocalDomain, name: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "resource"
        programs = [Program(WRITER, local_domain.address(node), name, str(path)) for node in ("n1", "n2", "n3", "n1")]
        try:
            for step in range(6):
                before = len(taken(path))
                if step == 1:
                    programs[3].kill()
                elif step == 2:
                    leader = next(info for info in _groups(local_domain) if info.name == f"_lock/{name}").leader
                    local_domain.kill(leader)
                elif step == 3:
                    local_domain.heal()
                elif step == 5:
                    programs[0].go_on()
                elif step == 4:
                    programs[0].stop()
                    time.sleep(1.0)  # it may hold the lock, and then nobody writes
                    continue
                until = time.monotonic() + 2 * PATIENCE_S
                while len(taken(path)) < before + 20:
                    assert time.monotonic() < until, f"nobody writes after step {step}"
                    time.sleep(0.05)
        finally:
            for program in programs:
                with program:
                    pass
        fences = taken(path)
        assert len(fences) > 100
        assert sorted(set(fences)) == fences, "one write for each turn, in the order of turns"

    def test_a_holder_that_sleeps_through_the_death_of_its_daemon_is_refused(
        self, local_domain: LocalDomain, name: str
    ) -> None:
        """The next one waits until the node of the first is gone; when the first wakes up, its guard says no."""
        local_domain.hand_over("n1")
        with (
            Program(HOLDER, local_domain.address("n3"), name) as holder,
            local_domain.connect("n1") as session,
            ThreadPoolExecutor(1) as pool,
        ):
            fence = int(holder.says())
            lock = session.lock(name)
            waiting = pool.submit(lock.acquire, 2 * PATIENCE_S)
            wait_for_line(session, name, "n3", "n1")
            holder.stop()
            local_domain.kill("n3")
            assert waiting.result(2 * PATIENCE_S)
            assert fence < lock.fence
            holder.go_on()
            holder.tell("check")
            assert holder.says() in ("Suspended", "Lost")

    def test_a_holder_whose_daemon_dies_knows_it_before_anybody_has_the_lock(
        self, local_domain: LocalDomain, name: str
    ) -> None:
        """kazoo's question: what happens to my lock when the session dies?"""
        local_domain.hand_over("n1")
        with local_domain.connect("n3") as cut_off, local_domain.connect("n1") as session:
            first, second = cut_off.lock(name), session.lock(name)
            assert first.acquire()
            seen: list[float] = []

            def watch() -> None:
                while True:
                    try:
                        first.check()
                    except (groupsvc.Suspended, groupsvc.Lost):
                        seen.append(time.monotonic())
                        return

            watching = threading.Thread(target=watch)
            watching.start()
            local_domain.kill("n3")
            assert second.acquire(timeout=2 * PATIENCE_S)
            had_at = time.monotonic()
            assert seen
            assert seen[0] < had_at
            watching.join(PATIENCE_S)
            assert first.lost.wait(PATIENCE_S)
            with pytest.raises(LockLost):
                first.release()
            with pytest.raises(groupsvc.DaemonUnreachable):
                first.acquire(timeout=1.0)

    @pytest.mark.alone
    def test_a_paused_daemon_costs_nothing_when_it_goes_on_in_time(self, local_domain: LocalDomain, name: str) -> None:
        """SUSPENDED, then RESUMED: it is still held, with the same fence; the wait goes on, too."""
        local_domain.hand_over("n1")
        with local_domain.connect("n3") as session, local_domain.connect("n2") as other, ThreadPoolExecutor(1) as pool:
            lock = session.lock(name)
            assert lock.acquire()
            fence = lock.fence
            waiting = pool.submit(other.lock(name).acquire, PATIENCE_S)
            wait_for_line(other, name, "n3", "n2")
            local_domain.pause("n3")
            time.sleep(0.5)
            local_domain.resume("n3")
            until = time.monotonic() + PATIENCE_S
            while not lock.valid_for:
                assert time.monotonic() < until
            lock.check()
            assert fence == lock.fence
            assert not waiting.done()
            lock.release()
            assert waiting.result(PATIENCE_S)


def _groups(domain: LocalDomain) -> tuple[groupsvc.GroupInfo, ...]:
    with domain.connect("n1") as session:
        return session.groups()


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 195, 7, None])
def test_odd_names_are_refused_at_once(shared_domain: LocalDomain, name: Any) -> None:
    with shared_domain.connect("n1") as session, pytest.raises(groupsvc.UsageError, match="cannot name a lock"):
        session.lock(name)


def test_wrong_use_is_told(shared_domain: LocalDomain, name: str) -> None:
    with shared_domain.connect("n1") as session:
        lock = session.lock(name)
        for what in (lock.release, lock.check, lambda: lock.fence, lambda: lock.valid_for, lambda: lock.lost):
            with pytest.raises(groupsvc.UsageError, match="is not held by this object"):
                what()
        with pytest.raises(groupsvc.UsageError, match="timeout is -1"):
            lock.acquire(timeout=-1)
        with pytest.raises(groupsvc.UsageError, match="reentrant is 1"):
            session.lock(name, reentrant=1)  # type: ignore[arg-type]
