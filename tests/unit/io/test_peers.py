"""Frames between two real daemons' sockets, and knocking at the door of one that is gone."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from groupsvc.testing.loopback_ports import PortBlock
from groupsvcd.core.peer_messages import DOMAIN_TOPIC, topic_of
from groupsvcd.io import clocks
from groupsvcd.io.peers import Peers
from groupsvcd.io.sockets import CannotBind, Context
from tests.unit.io.conftest import Loop


class Pair:
    """Nodes a and b, both voters, and whom each found refusing."""

    def __init__(self, context: Context, loop: Loop, voters: dict[str, str]) -> None:
        self.context, self.loop, self.voters = context, loop, voters
        self.refused: dict[str, list[str]] = {"a": [], "b": []}
        self.a = self.made("a")
        self.b = self.made("b")

    def made(self, node: str) -> Peers:
        return Peers(
            self.context,
            node=node,
            address=self.voters[node],
            voters=self.voters,
            watch=self.loop.watch,
            clock=clocks.now,
            refused=self.refused[node].append,
            complaints=self.loop.complaints,
            queue_frames=16,
            insecure=False,
        )

    def exchanged(self, sender: Peers, to: str, receiver: Peers, frame: bytes) -> bool:
        """Whether ``frame`` arrives, sent again and again until it does."""
        found: list[memoryview] = []
        return self.loop.until(
            lambda: frame in found,
            lambda: sender.send(to, frame),
            lambda: found.extend(receiver.receive(100)),
        )

    def close(self) -> None:
        self.a.close()
        self.b.close()


@pytest.fixture(params=["tcp", "ipc"])
def pair(request: pytest.FixtureRequest, context: Context, loop: Loop, short_path: Path) -> Iterator[Pair]:
    blocks = [PortBlock(), PortBlock()]
    voters = dict(zip("ab", [block.address for block in blocks], strict=True))
    if request.param == "ipc":
        voters = {name: f"ipc://{short_path}/{name}" for name in "ab"}
    made = Pair(context, loop, voters)
    yield made
    made.close()
    for block in blocks:
        block.close()


def test_frames_arrive_in_both_directions(pair: Pair) -> None:
    assert pair.exchanged(pair.a, "b", pair.b, b"from a")
    assert pair.exchanged(pair.b, "a", pair.a, b"from b")


def test_a_multicast_reaches_the_others_and_never_oneself(pair: Pair) -> None:
    found: list[memoryview] = []
    own: list[memoryview] = []
    assert pair.loop.until(
        lambda: b"to all" in found,
        lambda: pair.a.multicast(DOMAIN_TOPIC + b"to all"),
        lambda: found.extend(pair.b.receive(100)),
        lambda: own.extend(pair.a.receive(100)),
        pair.a.read_subscriptions,
    )
    assert [] == own


def test_another_topic_is_not_delivered(pair: Pair) -> None:
    found: list[memoryview] = []
    assert pair.loop.until(
        lambda: b"to all" in found,
        lambda: pair.a.multicast(topic_of(1) + b"not for b"),
        lambda: pair.a.multicast(DOMAIN_TOPIC + b"to all"),
        lambda: found.extend(pair.b.receive(100)),
    )
    assert {b"to all"} == set(map(bytes, found))


def test_to_somebody_unknown_or_not_connected_nothing_is_queued(pair: Pair) -> None:
    assert not pair.a.send("nobody", b"x")
    pair.a.connect("c", "ipc:///nonexistent/c")
    assert not any(pair.a.send("c", b"x") for _ in range(100))


def test_a_peer_that_is_gone_is_found_refusing_and_one_that_is_back_is_not(pair: Pair) -> None:
    assert pair.exchanged(pair.a, "b", pair.b, b"hello")
    assert [] == pair.refused["a"]
    pair.b.close()
    assert pair.loop.until(lambda: pair.refused["a"].count("b") >= 2, pair.a.probes.run)
    pair.b = pair.made("b")
    assert pair.exchanged(pair.a, "b", pair.b, b"welcome back")
    assert pair.loop.until(lambda: pair.a.probes.deadline > clocks.now() + 10, pair.a.probes.run)


def test_an_address_that_leaves_the_machine_is_not_connected_to(pair: Pair) -> None:
    pair.a.connect("far", "tcp://192.0.2.1:7400")
    assert "far" not in pair.a.names
    assert 1 == pair.loop.complaints.counts["bad address"]


def test_a_new_address_replaces_the_old(pair: Pair, context: Context, short_path: Path) -> None:
    elsewhere: zmq.Socket[bytes] = context.socket(zmq.ROUTER)
    elsewhere.bind(f"ipc://{short_path}/elsewhere")
    pair.a.connect("b", f"ipc://{short_path}/elsewhere")
    assert pair.loop.until(lambda: elsewhere.poll(0), lambda: pair.a.send("b", b"moved"))
    elsewhere.close(linger=0)


def test_garbage_in_any_number_of_parts_is_skipped(pair: Pair, context: Context) -> None:
    """X2: what follows the garbage is read as if it had not been."""
    stranger: zmq.Socket[bytes] = context.socket(zmq.DEALER)
    stranger.connect(pair.voters["b"])
    for parts in ([b""], [b"a", b"b"], [b"", b"", b"", b"x"], [b"good"]):
        stranger.send_multipart(parts)
    found: list[memoryview] = []
    assert pair.loop.until(lambda: b"good" in found, lambda: found.extend(pair.b.receive(100)))
    assert [b"", b"good"] == found
    assert 2 == pair.loop.complaints.counts["bad frame"]
    stranger.close(linger=0)


def test_bytes_that_are_not_zeromq_disturb_nobody(pair: Pair) -> None:
    """X2: a web browser at the port of a daemon."""
    address = pair.voters["b"]
    if address.startswith("tcp://"):
        raw = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
    else:
        raw = socket.socket(socket.AF_UNIX)
        raw.connect(address.removeprefix("ipc://"))
    raw.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
    assert pair.exchanged(pair.a, "b", pair.b, b"still there")
    raw.close()


def test_an_address_in_use_is_refused(pair: Pair) -> None:
    with pytest.raises(CannotBind, match="cannot listen at"):
        pair.made("b")
    assert pair.exchanged(pair.a, "b", pair.b, b"the first one is unharmed")
