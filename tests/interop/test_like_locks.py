"""Elections, semaphores, and locks for readers and writers, with real daemons: the lines that are no plain lock."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import groupsvc
from groupsvc import Held, LockLost, aio
from groupsvc.testing import LocalDomain

from .both_drivers import Driver
from .programs import Program
from .test_locks import DRIVERS, PATIENCE_S, wait_for_line


@pytest.fixture
def name() -> str:
    """Of something of this test alone."""
    return f"like/{time.time_ns()}"


class TestElections:
    """One leads; the next one follows at once; everybody can ask who it is."""

    def test_who_leads_is_followed_by_who_waited_longest(self, shared_domain: LocalDomain, name: str) -> None:
        program = """
def lead(leadership):
    print(leadership.fence, flush=True)
    leadership.lost.wait()
groupsvc.connect(address).election(name, data=b"first").run(lead)
"""
        led: list[tuple[str, int]] = []
        with (
            shared_domain.connect("n1") as one,
            shared_domain.connect("n3") as two,
            Program(program, shared_domain.address("n2"), name) as first,
            ThreadPoolExecutor(2) as pool,
        ):
            fence = int(first.says())
            second, third = one.election(name, data=b"second"), two.election(name, data=b"third")

            def lead(who: str) -> Any:
                return lambda leadership: led.append((who, leadership.fence)) or who

            results = [pool.submit(second.run, lead("second"), timeout=PATIENCE_S)]
            wait_for_line(one, name, "n2", "n1", kind="election")
            results.append(pool.submit(third.run, lead("third"), timeout=PATIENCE_S))
            wait_for_line(one, name, "n2", "n1", "n3", kind="election")
            leader = third.leader()
            assert leader is not None
            assert (b"first", "n2") == (leader.data, leader.node)
            assert [b"first", b"second", b"third"] == [one.data for one in second.candidates()]
            first.kill()
            assert ["second", "third"] == [result.result(PATIENCE_S) for result in results]
            assert ["second", "third"] == [who for who, _ in led]
            assert fence < led[0][1] < led[1][1]
            wait_for_line(one, name, kind="election")
            assert second.leader() is None

    @DRIVERS
    def test_who_does_not_lead_in_time_is_no_candidate_any_more(
        self, shared_domain: LocalDomain, name: str, connect: Any
    ) -> None:
        async def story() -> None:
            driver = Driver(connect)
            async with await driver.connect(shared_domain.address("n1")) as session:
                election = session.election(name)
                async with aio.connect(shared_domain.address("n2")) as other:
                    leading, done = asyncio.Event(), asyncio.Event()

                    async def lead(leadership: Held[asyncio.Event]) -> None:
                        leading.set()
                        await done.wait()

                    task = asyncio.create_task(other.election(name).run(lead))
                    await asyncio.wait_for(leading.wait(), PATIENCE_S)
                    with pytest.raises(groupsvc.TimedOut, match="the lead of"):
                        await election.run(driver.callback(lambda leadership: None), timeout=0.3)
                    done.set()
                    await task
                with pytest.raises(groupsvc.UsageError, match="needs a function"):
                    await election.run(None)
                await asyncio.sleep(0.1)
                assert () == await election.candidates()

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))

    def test_a_leader_whose_daemon_dies_stops_by_its_own_clock(self, local_domain: LocalDomain, name: str) -> None:
        """Blocking it is told by an event, with asyncio it is cancelled; nobody had to reach it for that."""
        local_domain.hand_over("n1")
        ended: list[str] = []

        def lead(leadership: Held[threading.Event]) -> None:
            begun.release()
            assert leadership.lost.wait(PATIENCE_S)
            with pytest.raises(groupsvc.Lost):
                leadership.check()

        async def lead_too(leadership: Held[asyncio.Event]) -> None:
            begun.release()
            try:
                await asyncio.sleep(PATIENCE_S)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        async def run() -> None:
            session = await aio.connect(local_domain.address("n3"))
            await session.election(f"{name}/aio").run(lead_too)

        begun = threading.Semaphore(0)
        with ThreadPoolExecutor(2) as pool, local_domain.connect("n3") as session:
            results = [pool.submit(session.election(name).run, lead), pool.submit(asyncio.run, run())]
            for _ in results:
                assert begun.acquire(timeout=PATIENCE_S)
            local_domain.kill("n3")
            for result in results:
                with pytest.raises(LockLost):
                    result.result(PATIENCE_S)
        assert ["cancelled"] == ended


class TestSemaphores:
    """So many at a time, and everybody agrees on how many."""

    def test_never_more_than_its_permits(self, shared_domain: LocalDomain, name: str) -> None:
        inside, most = [0], [0]
        guard = threading.Lock()
        with shared_domain.connect("n1") as one, shared_domain.connect("n2") as two:
            semaphores = [one.semaphore(name, 3), two.semaphore(name, 3)]

            def work(number: int) -> None:
                for _ in range(10):
                    with semaphores[number % 2]:
                        with guard:
                            inside[0] += 1
                            most[0] = max(most[0], inside[0])
                        time.sleep(0.005)
                        with guard:
                            inside[0] -= 1

            with ThreadPoolExecutor(6) as pool:
                list(pool.map(work, range(6)))
            assert 3 == most[0]

    @DRIVERS
    def test_who_says_another_number_is_told_so(self, shared_domain: LocalDomain, name: str, connect: Any) -> None:
        async def story() -> None:
            async with await Driver(connect).connect(shared_domain.address("n1")) as session:
                first = session.semaphore(name, 2)
                assert await first.acquire()
                with pytest.raises(groupsvc.UsageError, match="others say something else about it"):
                    await session.semaphore(name, 3).acquire()
                await first.release()
                for permits in (0, -1, True, "2", 10_001):
                    with pytest.raises(groupsvc.UsageError, match="permits is"):
                        session.semaphore(name, permits)

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))

    def test_a_permit_of_the_dead_is_free(self, shared_domain: LocalDomain, name: str) -> None:
        program = """
semaphore = groupsvc.connect(address).semaphore(name, 2)
semaphore.acquire()
semaphore.acquire()
print("both", flush=True)
threading.Event().wait()
"""
        with (
            shared_domain.connect("n1") as session,
            Program(program, shared_domain.address("n2"), name) as holder,
            ThreadPoolExecutor(1) as pool,
        ):
            assert "both" == holder.says()
            waiting = pool.submit(session.semaphore(name, 2).acquire, PATIENCE_S)
            wait_for_line(session, name, "n2", "n2", "n1", kind="semaphore")
            holder.kill()
            assert waiting.result(PATIENCE_S)


class TestReadersAndWriters:
    """Readers together, writers alone, and nobody is overtaken."""

    @DRIVERS
    def test_readers_share_and_a_writer_is_not_kept_out_by_those_who_come_after_it(
        self, shared_domain: LocalDomain, name: str, connect: Any
    ) -> None:
        async def story() -> None:
            driver = Driver(connect)
            async with (
                await driver.connect(shared_domain.address("n1")) as one,
                await driver.connect(shared_domain.address("n2")) as two,
            ):
                with shared_domain.connect("n3") as watching:
                    first, second = one.rwlock(name).read(), two.rwlock(name).read()
                    assert await first.acquire()
                    assert await second.acquire(), "they read together"
                    writer = two.rwlock(name).write()
                    writing = asyncio.create_task(writer.acquire(timeout=PATIENCE_S))
                    await asyncio.to_thread(wait_for_line, watching, name, "n1", "n2", "n2", kind="rwlock")
                    late = one.rwlock(name).read()
                    assert not await late.acquire(timeout=0.2), "behind the writer"
                    await first.release()
                    assert not writing.done()
                    await second.release()
                    assert await writing
                    reading = asyncio.create_task(late.acquire(timeout=PATIENCE_S))
                    await asyncio.to_thread(wait_for_line, watching, name, "n2", "n1", kind="rwlock")
                    assert not reading.done()
                    await writer.release()
                    assert await reading
                    await late.release()

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))

    def test_who_reads_and_wants_to_write_is_late_and_does_not_hang(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        """kazoo's deadlock."""
        with shared_domain.connect("n1") as session:
            both = session.rwlock(name)
            with both.read():
                assert both.write().acquire(timeout=0.2) is False
            with both.write() as held:
                held.check()


@pytest.mark.parametrize("kind", ["rwlock", "election"])
def test_odd_names_are_refused_at_once(shared_domain: LocalDomain, kind: str) -> None:
    with shared_domain.connect("n1") as session:
        with pytest.raises(groupsvc.UsageError, match=f"cannot name a {kind}"):
            getattr(session, kind)("no spaces")
        with pytest.raises(groupsvc.UsageError, match="cannot name a semaphore"):
            session.semaphore("no spaces", 1)
