"""Counters, latches and parties with real daemons: what lasts as long as anybody has it open."""

from __future__ import annotations

import asyncio
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import groupsvc
from groupsvc import aio
from groupsvc.testing import LocalDomain

from .both_drivers import Driver
from .programs import Program
from .test_locks import DRIVERS, PATIENCE_S


@pytest.fixture
def name() -> str:
    """Of something of this test alone."""
    return f"kept/{time.time_ns()}"


class TestCounters:
    """Every number once."""

    def test_many_at_once_get_different_numbers_that_grow_for_each(self, shared_domain: LocalDomain, name: str) -> None:
        with shared_domain.connect("n1") as one, shared_domain.connect("n2") as two, ThreadPoolExecutor(4) as pool:
            counters = [one.counter(name), two.counter(name)]

            def work(number: int) -> list[int]:
                return [counters[number % 2].next() for _ in range(20)]

            found = list(pool.map(work, range(4)))
        assert 80 == len({number for numbers in found for number in numbers})
        for numbers in found:
            assert sorted(numbers) == numbers

    @DRIVERS
    def test_no_number_comes_again_when_everybody_had_closed_it(
        self, shared_domain: LocalDomain, name: str, connect: Any
    ) -> None:
        async def story() -> None:
            driver = Driver(connect)
            numbers: list[int] = []
            for node in ("n1", "n2", "n1"):
                async with await driver.connect(shared_domain.address(node)) as session:
                    async with session.counter(name) as counter:
                        numbers += [*await counter.take(1000), await counter.next()]
                    again = session.counter(name)
                    numbers.append(await again.next())
                    await again.close()
            assert sorted(set(numbers)) == numbers

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))

    @DRIVERS
    def test_who_has_used_up_the_numbers_of_a_fence_gets_others(
        self, shared_domain: LocalDomain, name: str, connect: Any
    ) -> None:
        async def story() -> None:
            async with await Driver(connect).connect(shared_domain.address("n1")) as session:
                counter = session.counter(name)
                most = 1 << 16
                runs = [await counter.take(most) for _ in range(18)]
                for before, after in itertools.pairwise(runs):
                    assert before[-1] < after[0]
                    assert most == len(after)
                with pytest.raises(groupsvc.UsageError, match="count is 65537"):
                    await counter.take(most + 1)

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))


class TestLatches:
    """They open once, and everybody agrees on when."""

    def test_it_opens_when_programs_have_counted_it_down_and_died(self, shared_domain: LocalDomain, name: str) -> None:
        program = """
latch = groupsvc.connect(address).latch(name, 2)
print(latch.count_down(), flush=True)
threading.Event().wait()
"""
        with shared_domain.connect("n1") as session, session.latch(name, 2) as latch:
            for left in ("1", "0"):
                assert not latch.wait(timeout=0.05)
                with Program(program, shared_domain.address("n2"), name) as one:
                    assert left == one.says()
            assert latch.wait(timeout=PATIENCE_S)
            with shared_domain.connect("n3") as late:
                assert late.latch(name, 2).wait(timeout=PATIENCE_S), "it is still open"

    @DRIVERS
    def test_wrong_use_is_told(self, shared_domain: LocalDomain, name: str, connect: Any) -> None:
        async def story() -> None:
            async with await Driver(connect).connect(shared_domain.address("n1")) as session:
                async with session.latch(name, 2):
                    with pytest.raises(groupsvc.UsageError, match="others say something else about it"):
                        await session.latch(name, 3).count_down()
                for count in (0, True, "2", 1_000_001):
                    with pytest.raises(groupsvc.UsageError, match="count is"):
                        session.latch(name, count)
                for kind in (session.counter, session.party, lambda name: session.latch(name, 1)):
                    with pytest.raises(groupsvc.UsageError, match="cannot name a"):
                        kind("no spaces")

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))

    @DRIVERS
    def test_a_session_that_is_closed_ends_the_wait(self, shared_domain: LocalDomain, name: str, connect: Any) -> None:
        async def story() -> None:
            session = await Driver(connect).connect(shared_domain.address("n1"))
            latch, party = session.latch(name, 1), session.party(name)
            waiting = [
                asyncio.create_task(latch.wait(timeout=PATIENCE_S)),
                asyncio.create_task(party.wait_for(2, timeout=PATIENCE_S)),
            ]
            await latch.left()
            await party.enter()
            await session.close()
            for wait in waiting:
                with pytest.raises(groupsvc.UsageError, match="this session was closed"):
                    await wait

        asyncio.run(asyncio.wait_for(story(), 2 * PATIENCE_S))


def test_a_party_lists_who_is_there_until_it_leaves_or_dies(shared_domain: LocalDomain, name: str) -> None:
    program = """
groupsvc.connect(address).party(name, data=b"of the program").enter()
print("in", flush=True)
threading.Event().wait()
"""
    with shared_domain.connect("n1") as session, Program(program, shared_domain.address("n2"), name) as one:
        assert "in" == one.says()
        party = session.party(name, data=b"mine")
        assert [b"of the program"] == [member.data for member in party.members()]
        assert party.wait_for(2, timeout=PATIENCE_S)
        assert [b"of the program", b"mine"] == [member.data for member in party.members()]
        fence = party.fence()
        one.kill()
        until = time.monotonic() + PATIENCE_S
        while len(party.members()) > 1:
            assert time.monotonic() < until
        assert [b"mine"] == [member.data for member in party.members()]
        alone = party.fence()
        assert fence < alone, "what is done by the list with the dead one can be refused"
        party.close()
        with session.party(name) as again:
            assert 1 == len(again.members())
            assert alone < again.fence(), "also when everybody had left meanwhile"


def test_the_fence_of_a_party_is_the_same_for_all_who_see_the_same_list(shared_domain: LocalDomain, name: str) -> None:
    async def seen_elsewhere() -> int:
        async with aio.connect(shared_domain.address("n2")) as session, session.party(name) as party:
            assert await party.wait_for(2, timeout=PATIENCE_S)
            return await party.fence()

    with shared_domain.connect("n1") as session, session.party(name) as party:
        alone, elsewhere = party.fence(), asyncio.run(seen_elsewhere())
        until = time.monotonic() + PATIENCE_S
        while party.fence() <= elsewhere:  # it has left again, which is one more change
            assert time.monotonic() < until
        assert alone < elsewhere
