"""Barriers with real daemons and real processes: one domain, both drivers, deaths of processes and of nodes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import groupsvc
from groupsvc import BarrierBroken, aio, clock
from groupsvc.testing import LocalDomain

from .programs import Program

PATIENCE_S = 30.0


def _together(*calls: Callable[[], Any]) -> list[Any]:
    """All at once; what each returned or raised."""

    def end(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except groupsvc.GroupServiceError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(end, calls))


def test_many_rounds_over_three_nodes_with_joins_and_messages_between(shared_domain: LocalDomain) -> None:
    """R1, R2: everybody gets the same, in every round, and whoever joins is waited for from then on."""
    name = f"barriers/{time.time_ns()}"
    sessions = [shared_domain.connect(node) for node in ("n1", "n2", "n3")]
    groups = [session.join(name, name=f"p{number}") for number, session in enumerate(sessions)]
    rounds: list[list[groupsvc.Released]] = [[] for _ in groups]

    def work(me: int) -> None:
        barrier = groups[me].barrier("step")
        for step in range(50):
            groups[me].multicast(b"between")
            rounds[me].append(barrier.wait(f"{me}/{step}".encode(), timeout=PATIENCE_S))

    _together(*(lambda me=me: work(me) for me in range(3)))  # type: ignore[misc]
    assert rounds[0] == rounds[1] == rounds[2]
    assert list(range(1, 51)) == [one.round for one in rounds[0]]
    for step, one in enumerate(rounds[0]):
        assert {group.me.id: f"{me}/{step}".encode() for me, group in enumerate(groups)} == one.payloads
        assert [group.me.id for group in groups] == list(one.payloads)
    for session in sessions:
        session.close()


def test_a_megabyte_of_everybody_reaches_everybody(shared_domain: LocalDomain) -> None:
    name = f"barriers/{time.time_ns()}"
    sessions = [shared_domain.connect(node) for node in ("n1", "n2", "n3", "n1")]
    groups = [session.join(name, name=str(number)) for number, session in enumerate(sessions)]
    parts = {group.me.id: os.urandom(1_000_000) for group in groups}
    for _ in range(3):
        barrier = [(group.barrier("gather"), parts[group.me.id]) for group in groups]
        found = _together(*(lambda one=one: one[0].wait(one[1], timeout=PATIENCE_S) for one in barrier))  # type: ignore[misc]
        assert [parts] * 4 == [one.payloads for one in found]
    for session in sessions:
        session.close()


def test_in_asyncio_a_cancelled_wait_breaks_the_round_and_all_can_reset_it(shared_domain: LocalDomain) -> None:
    async def story() -> None:
        name = f"barriers/{time.time_ns()}"
        async with aio.connect(shared_domain.address("n1")) as one, aio.connect(shared_domain.address("n2")) as two:
            first, second = await one.join(name, name="a"), await two.join(name, name="b")
            here, there = first.barrier(), second.barrier()
            waiting = asyncio.create_task(here.wait(timeout=PATIENCE_S))
            await asyncio.sleep(0.2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(BarrierBroken):  # when it comes again it is told how that ended
                await here.wait(timeout=PATIENCE_S)
            with pytest.raises(BarrierBroken, match=r"a .* did not want to wait any longer") as broken:
                await there.wait(timeout=PATIENCE_S)
            assert ("cancelled", ["a"]) == (broken.value.why, [who.name for who in broken.value.who])
            await asyncio.gather(here.reset(timeout=PATIENCE_S), there.reset(timeout=PATIENCE_S))
            both = await asyncio.gather(here.wait(b"1"), there.wait(b"2"))
            assert both[0] == both[1]
            assert [b"1", b"2"] == list(both[0].payloads.values())

    asyncio.run(story())


def test_a_time_out_names_who_is_missing_and_comes_in_time(shared_domain: LocalDomain) -> None:
    name = f"barriers/{time.time_ns()}"
    with shared_domain.connect("n1") as one, shared_domain.connect("n2") as two:
        first = one.join(name, name="a")
        two.join(name, name="b")
        began = time.monotonic()
        too_few = r"1 of 3 had come.*missing: b .*the group has 1 provider too few"
        with pytest.raises(BarrierBroken, match=too_few) as broken:
            first.barrier("start", parties=3).wait(timeout=0.5)
        assert 0.4 < time.monotonic() - began < 5.0
        assert ("timeout", 3, 1) == (broken.value.why, broken.value.expected, broken.value.never_came)
        assert [("b", "n2", True)] == [
            (one.provider.name, one.provider.node, one.responds) for one in broken.value.missing
        ]


def test_a_time_out_names_a_party_that_is_stopped_and_says_since_when_it_is_silent(shared_domain: LocalDomain) -> None:
    """It lives, so nothing but the time ends the round; and of each who is missing it is said whether it ever came."""
    name = f"barriers/{time.time_ns()}"
    program = """
group = groupsvc.connect(address).join(name, name="victim")
group.barrier("step").wait(timeout=60)
print("came", flush=True)
threading.Event().wait()
"""
    with shared_domain.connect("n1") as one, shared_domain.connect("n2") as two:
        first = one.join(name, name="a", events=True)
        with Program(program, shared_domain.address("n3"), name) as victim:
            shared_domain.wait_until(lambda: len(first.providers) == 2, "the victim has joined")
            assert 1 == first.barrier("step").wait(timeout=PATIENCE_S).round
            assert "came" == victim.says()
            two.join(name, name="b")
            victim.stop()
            events = first.events(timeout=PATIENCE_S)
            assert next(event.provider.name for event in events if isinstance(event, groupsvc.Unresponsive)) == "victim"
            told_at = clock.now()
            with pytest.raises(BarrierBroken) as broken:
                first.barrier("step").wait(timeout=0.5)
            victim.go_on()
        found = {missing.provider.name: missing for missing in broken.value.missing}
        assert {"victim": ("n3", False, True), "b": ("n2", True, False)} == {
            key: (missing.provider.node, missing.responds, missing.ever_came) for key, missing in found.items()
        }
        since = found["victim"].since
        assert since is not None
        assert told_at - 2.0 < since <= told_at
        assert found["b"].since is None
        assert re.search(r"victim \(n3/\S+\), which has not responded for \d+\.\d s", str(broken.value))
        assert re.search(r"b \(n2/\S+\), which has come to no round yet", str(broken.value))


def test_a_party_that_is_killed_breaks_the_round_with_its_name(shared_domain: LocalDomain) -> None:
    name = f"barriers/{time.time_ns()}"
    program = """
group = groupsvc.connect(address).join(name, name="victim")
print("in", flush=True)
group.barrier().wait(timeout=60)
"""
    with shared_domain.connect("n1") as one, shared_domain.connect("n2") as two:
        groups = [one.join(name, name="a"), two.join(name, name="b")]
        with Program(program, shared_domain.address("n3"), name) as victim:
            assert "in" == victim.says()
            killer = threading.Timer(0.5, os.kill, (victim.pid, signal.SIGKILL))
            killer.start()
            with pytest.raises(BarrierBroken, match=r"victim .* died") as broken:
                groups[0].barrier().wait(timeout=PATIENCE_S)
            killer.join()
        assert ("failure", ["victim"]) == (broken.value.why, [who.name for who in broken.value.who])
        assert ["b"] == [one.provider.name for one in broken.value.missing]


def test_a_program_cannot_wait_at_a_barrier_inside_a_callback(shared_domain: LocalDomain) -> None:
    name = f"barriers/{time.time_ns()}"
    found: list[BaseException] = []

    def vote(proposal: groupsvc.Proposal) -> groupsvc.Vote:
        try:
            group.barrier().wait(timeout=1)
        except groupsvc.UsageError as error:
            found.append(error)
        return groupsvc.Vote.APPROVE

    with shared_domain.connect("n1") as session:
        group = session.join(name, on_proposal=vote)
        assert group.propose_state(b"x", phases=groupsvc.Phases.N)
        assert "would not vote meanwhile" in str(found[0])


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"name": "x" * 201}, "a barrier's name"),
        ({"name": 7}, "a barrier's name"),
        ({"parties": 0}, "parties is 0"),
        ({"parties": True}, "parties is True"),
        ({"on_failure": "wait"}, "on_failure is 'wait'"),
    ],
)
def test_wrong_terms_are_refused_at_once(shared_domain: LocalDomain, arguments: dict[str, Any], words: str) -> None:
    with shared_domain.connect("n1") as session, session.join(f"barriers/{time.time_ns()}") as group:
        with pytest.raises(groupsvc.UsageError, match=words):
            group.barrier(**arguments)
        with pytest.raises(groupsvc.UsageError, match="barrier_payload_bytes_max"):
            group.barrier().wait(b"x" * (groupsvc.limits.barrier_payload_bytes_max + 1))
