"""Frames between two real daemons' sockets, and knocking at the door of one that is gone."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from groupsvc.testing.loopback_ports import PortBlock
from groupsvcd.core.peer_messages import DOMAIN_TOPIC, topic_of
from groupsvcd.io import clocks
from groupsvcd.io.addresses import multicast_address
from groupsvcd.io.peers import BYTES_PER_ROUND, Peers
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


def test_who_connects_anew_hears_every_one_of_many_topics(pair: Pair) -> None:
    """All subscriptions are told again over each new connection; for a group of which one got lost b would be deaf."""
    topics = {f"{number}".encode(): topic_of(number) for number in range(1, 1_000)}
    for topic in topics.values():
        pair.b.subscribe(topic)
    assert pair.exchanged(pair.b, "a", pair.a, b"there")
    pair.a.close()
    assert pair.loop.until(lambda: pair.refused["b"].count("a") >= 2, pair.b.probes.run)
    pair.a = pair.made("a")
    found: list[memoryview] = []
    unheard = dict(topics)

    def say() -> None:
        for text, topic in itertools.islice(unheard.items(), 10):
            pair.a.multicast(topic + text)

    def hear() -> None:
        found.extend(pair.b.receive(100))
        while found:
            unheard.pop(bytes(found.pop()), None)

    assert pair.loop.until(lambda: not unheard, pair.a.read_subscriptions, say, hear), f"{len(unheard)} are not heard"


def test_topics_that_come_and_go_while_a_voter_is_away_are_not_kept_for_it(pair: Pair, context: Context) -> None:
    """Every lock is one; in a day there would be millions, and who comes at last would hear of all of them."""
    block = PortBlock()
    pair.b.connect("c", block.address, listen=True)
    for number in range(1, 5_000):
        pair.b.subscribe(topic_of(number))
        pair.b.unsubscribe(topic_of(number))
    publisher: zmq.Socket[bytes] = context.socket(zmq.XPUB)
    publisher.setsockopt(zmq.XPUB_VERBOSER, 1)
    publisher.bind(multicast_address(block.address))
    assert pair.loop.until(lambda: publisher.poll(0), lambda: pair.b.receive(1))
    heard = []
    while publisher.poll(200):
        heard.append(publisher.recv())
    assert [b"\1" + DOMAIN_TOPIC] == heard
    publisher.close(linger=0)
    block.close()


def is_bound(listening: zmq.Socket[bytes], address: str) -> bool:
    """Whether it listens there; not yet, as long as who did so before is about to end."""
    try:
        listening.bind(address)
    except zmq.ZMQError:
        return False
    return True


def test_a_peer_that_talks_back_is_found_gone_and_back_all_the_same(pair: Pair, context: Context) -> None:
    """Nothing is read over what goes out; libzmq sees no end of a connection whose queue is full."""
    address = f"{pair.voters['a']}x" if pair.voters["a"].startswith("ipc") else "tcp://127.0.0.1:*"
    for turn in ("first", "second"):
        other: zmq.Socket[bytes] = context.socket(zmq.ROUTER)
        assert pair.loop.until(lambda: is_bound(other, address))  # noqa: B023
        address = other.getsockopt_string(zmq.LAST_ENDPOINT)
        pair.b.connect("talker", address)
        assert pair.loop.until(lambda: other.poll(0), lambda: pair.b.send("talker", b"hello")), turn  # noqa: B023
        who, _ = other.recv_multipart()
        for _ in range(5):
            other.send_multipart([who, b"what?"])
        other.close(linger=100)
    assert 0 < pair.loop.complaints.counts["bad frame"]


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


@pytest.mark.parametrize("over", ["direct", "multicast"])
def test_after_so_many_bytes_of_one_it_is_the_turn_of_the_others(pair: Pair, context: Context, over: str) -> None:
    """A frame may have 8 MiB: counted by frames alone a round could have 2 GiB."""
    size, count = BYTES_PER_ROUND // 4 + 1, 10
    sender: zmq.Socket[bytes] = context.socket(zmq.PUB if over == "multicast" else zmq.DEALER)
    if over == "multicast":
        sender.bind("inproc://sender")
        pair.b.subscriber.connect("inproc://sender")
    else:
        sender.connect(pair.voters["b"])
    rounds: list[int] = []

    def read() -> None:
        found = [len(frame) for frame in pair.b.receive(100)]
        assert set(found) <= {size}
        assert len(found) <= 4
        assert pair.b.is_empty or 4 == len(found), "what is left is read in the next round"
        rounds.append(len(found))

    topic = DOMAIN_TOPIC if over == "multicast" else b""
    for _ in range(count):
        sender.send(topic + bytes(size))
    assert pair.loop.until(lambda: count == sum(rounds), read)
    assert 4 == max(rounds)
    sender.close(linger=0)


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
