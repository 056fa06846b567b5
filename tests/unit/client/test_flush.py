"""``flush`` says that everything was delivered only if it was, to everybody who asks."""

from __future__ import annotations

import asyncio
import threading

import pytest

import groupsvc
from groupsvc import aio
from groupsvc.errors import OutcomeUnknown
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_in_memory import Line
from tests.unit.client.daemon_on_a_socket import PATIENCE_S, DaemonOnASocket, daemon_on_a_socket
from tests.unit.client.scenes import join, multicast


def refuses(request: wire.AnyClientRequest) -> list[wire.AnyClientReply] | None:
    """Messages are not answered, whatever is."""
    return [] if isinstance(request, wire.Multicast) else None


def test_all_who_wait_are_told_that_messages_were_lost(daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
    daemon.memory.script = refuses
    group = session.join("db")
    group.multicast(b"x")
    (ask,) = daemon.wait_for(wire.Multicast)
    ends: list[str] = []
    flushes = threading.Barrier(3)

    def flush() -> None:
        flushes.wait(PATIENCE_S)
        try:
            group.flush(PATIENCE_S)
            ends.append("delivered")
        except OutcomeUnknown as error:
            ends.append(",".join(error.ids))

    threads = [threading.Thread(target=flush) for _ in range(2)]
    for thread in threads:
        thread.start()
    flushes.wait(PATIENCE_S)
    while len(session._pump._sleepers) + bool(session._pump._pumping) < 2:
        threads[0].join(0.001)
    daemon.tell(wire.Problem(ask.id, "unknown", "", "the node has lost the group"))
    for thread in threads:
        thread.join(PATIENCE_S)
    assert ["n1/7/1/1", "n1/7/1/1"] == ends


def test_who_asks_after_the_end_is_told_it_as_often_as_it_asks(
    daemon: DaemonOnASocket, session: groupsvc.Session
) -> None:
    daemon.memory.script = refuses
    group = session.join("db", events=True)
    group.multicast(b"x")
    daemon.wait_for(wire.Multicast)
    daemon.tell(wire.SessionNews("lost", "declared down"))
    for _ in range(2):
        with pytest.raises(OutcomeUnknown, match="declared down") as caught:
            group.flush()
        assert ("n1/7/1/1",) == caught.value.ids


def test_in_asyncio_all_tasks_are_told() -> None:
    async def flush(address: str, daemon: DaemonOnASocket) -> list[object]:
        async with aio.connect(address) as session:
            group = await session.join("db")
            group.multicast_nowait(b"x")
            await asyncio.get_running_loop().run_in_executor(None, daemon.wait_for, wire.Multicast)
            flushes = [asyncio.ensure_future(group.flush(PATIENCE_S)) for _ in range(2)]
            await session.groups()  # both have begun
            daemon.tell(wire.SessionNews("lost", "declared down"))
            return await asyncio.gather(*flushes, return_exceptions=True)

    with daemon_on_a_socket(refuses) as daemon:
        ends = asyncio.run(flush(daemon.address, daemon))
    assert [OutcomeUnknown, OutcomeUnknown] == [type(end) for end in ends]


def test_several_refusals_are_one_error_that_names_all(line: Line) -> None:
    membership = join(line)
    line.daemon.script = lambda request: (
        [wire.Problem(request.id, *request.payloads[0].decode().split(","), "")]  # type: ignore[arg-type,list-item]
        if isinstance(request, wire.Multicast)
        else None
    )
    for why in (b"failed,full", b"unknown,", b"unknown,"):
        multicast(line, membership, why)
    line.run()
    error = membership.own.take_error(0)
    assert isinstance(error, OutcomeUnknown), "what is not known is not told as what certainly did not happen"
    assert ("n1/7/1/2", "n1/7/1/3") == error.ids
    assert membership.own.take_error(membership.own.told) is None, "it was told"
