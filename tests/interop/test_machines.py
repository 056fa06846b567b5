"""State machines with real daemons: tables stay equal while members come, go and are killed, and daemons restart."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import groupsvc
from groupsvc import GroupAttributes, aio
from groupsvc.tables import AioTable, Table
from groupsvc.testing import LocalDomain

PATIENCE_S = 20.0


@pytest.fixture
def sessions(shared_domain: LocalDomain) -> Iterator[Callable[[str], groupsvc.Session]]:
    """Sessions at nodes by name, closed at the end."""
    with ExitStack() as stack:
        yield lambda node: stack.enter_context(shared_domain.connect(node))


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A group of this test alone."""
    plain = "".join(character if character.isalnum() else "-" for character in request.node.name)
    return f"t/{plain}/{time.time_ns()}"


Connect = Callable[[str], groupsvc.Session]
SOON = GroupAttributes(checkpoint_every=50)


class Kept(Table):
    """A table that counts how often it was asked for a checkpoint, and given one."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshots = 0
        self.restored: list[int] = []

    def snapshot(self) -> list[bytes]:  # type: ignore[override]
        self.snapshots += 1
        return list(super().snapshot())

    def restore(self, blocks: object) -> None:
        super().restore(blocks)  # type: ignore[arg-type]
        self.restored.append(len(self))


def equal(*tables: Table) -> bool:
    """All of them, after everything that was written before, also by those that did not wait for it."""
    for table in tables:
        table.group.flush()
    for table in tables:
        table.sync()
    return len({tuple(table.snapshot()) for table in tables}) == 1


def test_tables_are_equal_while_members_come_and_go(sessions: Connect, name: str) -> None:
    """SAM-07, SAM-08: who comes late gets a checkpoint and the messages since, while others go on writing."""
    first, second, third = Kept(), Kept(), Kept()
    sessions("n1").join(name, machine=first, attributes=SOON, name="first")
    with sessions("n2").join(name, machine=second, name="second"):
        for number in range(300):
            first.put_nowait(f"a{number}", b"%d" % number)
            second.put_nowait(f"b{number}", b"%d" % number)
        sessions("n3").join(name, machine=third, name="third")
        for number in range(0, 300, 2):
            second.delete(f"a{number}") if number < 40 else third.put_nowait(f"a{number}", b"new")
        assert equal(first, second, third)
        assert first.snapshots + second.snapshots >= 3
        assert third.restored != [0]
    assert equal(first, third)


def test_a_machine_is_of_one_member_at_a_time(sessions: Connect, name: str) -> None:
    """Else its writes would be applied to it twice, and compare_and_set be told the contrary of what happened."""
    table, session = Kept(), sessions("n1")
    group = session.join(name, machine=table, name="first")
    for again in (session, sessions("n2")):
        for where in (name, f"{name}/other"):
            with pytest.raises(groupsvc.UsageError, match=f"this machine is in group '{name}' already"):
                again.join(where, machine=table, name="second")
    assert table.compare_and_set("k", None, b"1")
    group.leave()
    with session.join(f"{name}/other", machine=table):
        assert {} == dict(table)


def test_a_scribe_that_is_killed_in_mid_snapshot_costs_nobody_anything(shared_domain: LocalDomain, name: str) -> None:
    """It hangs in snapshot() and is killed there; the others take a checkpoint, and who joins has the whole table."""
    program = f"""
import sys, time
import groupsvc
from groupsvc.tables import Table

class Hanging(Table):
    def snapshot(self):
        print("asked", flush=True)
        yield b"".join(super().snapshot())
        time.sleep(60)

session = groupsvc.connect({shared_domain.address("n1")!r})
session.join({name!r}, machine=Hanging(), name="scribe", attributes=groupsvc.GroupAttributes(checkpoint_every=50))
print("in", flush=True)
time.sleep(60)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    scribe = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert scribe.stdout is not None
        assert "in\n" == scribe.stdout.readline()
        with shared_domain.connect("n2") as session, shared_domain.connect("n3") as late:
            table, second = Kept(), Kept()
            session.join(name, machine=table, name="writer")
            for number in range(60):
                table.put(f"k{number}", b"%d" % number)
            assert "asked\n" == scribe.stdout.readline()
            assert 0 == table.snapshots
            os.kill(scribe.pid, signal.SIGKILL)
            for number in range(60, 120):
                table.put(f"k{number}", b"%d" % number)
            late.join(name, machine=second, name="late")
            assert equal(table, second)
            assert 120 == len(second)
            assert table.snapshots >= 1
            assert ["writer", "late"] == [provider.name for provider in table.group.providers]
    finally:
        scribe.kill()
        scribe.wait()
        assert scribe.stdout is not None
        scribe.stdout.close()


def test_a_durable_table_and_state_are_there_after_all_daemons_were_killed(name: str) -> None:
    """GS-31, SAM-08: checkpoint, tail, state value and version come from the disks."""
    rules = GroupAttributes(durable=True, checkpoint_every=50)
    with LocalDomain(nodes=3) as domain:
        tables = [Kept() for _ in range(3)]
        with ExitStack() as stack:
            for node, table in zip(domain.names, tables, strict=True):
                session = stack.enter_context(domain.connect(node))
                session.join(name, machine=table, name=node, attributes=rules)
            for number in range(130):
                tables[number % 3].put(f"k{number}", b"%d" % number)
            tables[0].group.propose_state(b"red").require()
            assert equal(*tables)
            expected = tables[0].copy()
            for node in domain.names:
                domain.kill(node)
        for node in domain.names:
            domain.restart(node, wait=False)
        domain.wait_until_up(*domain.names)
        again = Kept()
        with domain.connect("n2") as session:
            group = session.join(name, machine=again, name="again", create=False, timeout=40.0)
            assert expected == again.copy()
            assert (b"red", 1) == (group.state, group.state_version)
            assert [0] != again.restored
            again.put("after", b"1")
            assert 131 == len(again)


def test_earlier_messages_without_a_machine(sessions: Connect, name: str) -> None:
    """SAM-15: from a number that is kept, from the checkpoint, or from now."""
    group = sessions("n1").join(name, name="first", events=True)
    for number in range(5):
        group.multicast(b"%d" % number)
    group.flush()
    seqs = [event.seq for event in group.events(timeout=1.0) if isinstance(event, groupsvc.Message)]
    session = sessions("n2")
    for since, expected in ((seqs[1], 3), (groupsvc.CHECKPOINT, 5), (groupsvc.NOW, 0), (0, 5)):
        with session.join(name, name="late", since=since, events=True) as late:
            read: list[bytes] = []
            while isinstance(event := late.next_event(timeout=PATIENCE_S), groupsvc.Message):
                read.append(event.payload)
            assert [b"%d" % number for number in range(5 - expected, 5)] == read
            assert isinstance(event, groupsvc.Joined)
    with pytest.raises(groupsvc.Failed, match="oldest number to begin after is"):
        session.join(name, name="future", since=10_000)


def test_a_number_of_a_group_that_has_ended_is_not_one_of_the_next(shared_domain: LocalDomain, name: str) -> None:
    """GS-12: a program comes back with a new session, and what it kept is from before: it is told so."""
    with shared_domain.connect("n1") as session:
        group = session.join(name, events=True)
        for number in range(5):
            group.multicast(b"old %d" % number)
        group.flush()
        last = [event for event in group.events(timeout=0.5) if isinstance(event, groupsvc.Message)][-1]
        kept = str(last.view.position)
        group.leave()
    with shared_domain.connect("n2") as other, shared_domain.connect("n1") as session:
        others = other.join(name, events=True, timeout=PATIENCE_S)
        for number in range(20):
            others.multicast(b"new %d" % number)
        others.flush()
        for since in (last.seq, groupsvc.Position.parse(kept)):
            with pytest.raises(groupsvc.Failed, match="may be another one by now"):
                session.join(name, since=since)
        third = [event for event in others.events(timeout=0.5) if isinstance(event, groupsvc.Message)][2]
        with session.join(name, since=third.view.position) as group:
            assert b"new 3" == next(event.payload for event in group.events() if isinstance(event, groupsvc.Message))


def test_tables_in_asyncio(shared_domain: LocalDomain, name: str) -> None:
    async def scene() -> None:
        one, other = AioTable(), AioTable()
        async with (
            aio.connect(shared_domain.address("n1")) as first,
            aio.connect(shared_domain.address("n2")) as second,
            first.join(name, machine=one, attributes=SOON, name="one"),
        ):
            await asyncio.gather(*(one.put(f"k{number}", b"%d" % number) for number in range(200)))
            async with second.join(name, machine=other, name="other"):
                assert 200 == len(other)
                won = await asyncio.gather(*(table.compare_and_set("leader", None, b"x") for table in (one, other)))
                assert [False, True] == sorted(won)
                await one.sync()
                assert dict(one) == dict(other)

    asyncio.run(scene())


def test_a_machine_that_fails_has_lost_the_group_and_the_others_see_it_leave(sessions: Connect, name: str) -> None:
    class Fragile(Table):
        def apply(self, entry: groupsvc.Message) -> None:
            super().apply(entry)
            if "poison" in self:
                raise ValueError("cannot digest this")

    table, fragile = Table(), Fragile()
    watching = sessions("n1").join(name, machine=table, name="strong", events=True)
    group = sessions("n2").join(name, machine=fragile, name="weak", events=True)
    table.put("poison", b"1")
    *_, last = group.events(timeout=PATIENCE_S)
    assert isinstance(last, groupsvc.Lost)
    assert "cannot digest this" in last.reason
    left = next(event for event in watching.events(timeout=PATIENCE_S) if isinstance(event, groupsvc.Left))
    assert ["weak"] == [provider.name for provider in left.providers]


def test_groups_are_watched_as_they_come_and_go(sessions: Connect, name: str) -> None:
    with sessions("n1").subscribe("_groups") as watching:
        with sessions("n2").join(name):
            while name not in {provider.name for provider in watching.view.providers}:
                assert watching.next_event(timeout=PATIENCE_S) is not None
        while name in {provider.name for provider in watching.view.providers}:
            assert watching.next_event(timeout=PATIENCE_S) is not None
