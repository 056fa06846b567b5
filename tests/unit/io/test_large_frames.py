"""Frames beyond the usual size: they arrive whole, and few bytes of them wait for a peer that does not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from groupsvc.wire.limits import FRAME_BYTES_MAX, FRAME_BYTES_USUAL
from groupsvcd.io.large_frames import LARGE_BYTES_MAX, LargeFrames
from groupsvcd.io.sockets import Context, Socket
from tests.unit.io.conftest import Loop

LARGE = b"x" * (4 * FRAME_BYTES_USUAL)


@pytest.fixture
def sockets(context: Context, short_path: Path) -> Iterator[tuple[Socket, Socket]]:
    """A DEALER and the ROUTER it is connected to, both with queues far longer than needed."""
    receiving: Socket = context.socket(zmq.ROUTER)
    sending: Socket = context.socket(zmq.DEALER)
    receiving.bind(f"ipc://{short_path}/r")
    sending.connect(f"ipc://{short_path}/r")
    yield sending, receiving
    sending.close(linger=0)
    receiving.close(linger=0)


def test_a_peer_that_does_not_read_is_sent_a_bounded_number_of_bytes(
    context: Context, loop: Loop, short_path: Path
) -> None:
    sending: Socket = context.socket(zmq.DEALER)
    sending.connect(f"ipc://{short_path}/nobody")
    large = LargeFrames(sending)
    taken = sum(large.send(LARGE) for _ in range(100))
    assert LARGE_BYTES_MAX // len(LARGE) == taken
    assert taken * len(LARGE) == large.bytes_held
    sending.close(linger=0)
    assert loop.until(lambda: large.bytes_held == 0)


def test_when_the_peer_reads_there_is_room_again(sockets: tuple[Socket, Socket], loop: Loop) -> None:
    sending, receiving = sockets
    large = LargeFrames(sending)
    read: list[bytes] = []

    def read_all() -> None:
        while receiving.poll(0):
            receiving.recv()
            read.append(receiving.recv())

    sent: list[bool] = []
    assert loop.until(lambda: sum(sent) == 30, lambda: sent.append(large.send(LARGE)), read_all)
    assert loop.until(lambda: len(read) == 30, read_all)
    assert {LARGE} == set(read)
    assert loop.until(lambda: large.bytes_held == 0)


def test_the_largest_frame_there_is_can_be_sent(sockets: tuple[Socket, Socket], loop: Loop) -> None:
    sending, receiving = sockets
    frame = bytes(FRAME_BYTES_MAX)
    assert LargeFrames(sending).send(frame)
    assert loop.until(lambda: receiving.poll(0))
    receiving.recv()
    assert frame == receiving.recv()
