"""Daemons with keys: who is let in, as whom, and what is told of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq
from zmq.utils import z85

from groupsvc.drivers import curve
from groupsvc.drivers.curve import new_keys
from groupsvc.keys import Keys
from groupsvc.testing.loopback_ports import PortBlock
from groupsvc.wire import frames
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core.audit import RECORDS_PER_S, Audit
from groupsvcd.core.peer_messages import DOMAIN_TOPIC
from groupsvcd.io import clocks
from groupsvcd.io.complaints import Complaints
from groupsvcd.io.keys import NODES, Doorkeeper, PeerKeys
from groupsvcd.io.peers import NOT_LISTED_AGAIN_S, Peers
from groupsvcd.io.sockets import new_context
from tests.unit.io.conftest import Loop

A, B, C, NEW, STRANGER = (new_keys() for _ in range(5))
LISTED = {"a": (A.public,), "b": (B.public, NEW.public), "c": (C.public,)}


def frame(sender: str, body: bytes = b"\x90", topic: bytes = b"") -> bytes:
    return frames.pack(FrameKind.PEER, bytes(16), sender.encode(), 1, body, topic=topic)


class Node:
    """One daemon's sockets towards others, in a context of their own, as in a process of their own."""

    def __init__(
        self, loop: Loop, name: str, voters: dict[str, str], own: Keys, listed: dict[str, tuple[str, ...]]
    ) -> None:
        self.context = new_context()
        self.complaints = Complaints(clocks.now)
        self.heard: list[bytes] = []
        self._doorkeeper = Doorkeeper(self.context, doors={NODES: listed}, watch=loop.watch, complaints=self.complaints)
        self.peers = Peers(
            self.context,
            node=name,
            address=voters[name],
            voters=voters,
            watch=loop.watch,
            clock=clocks.now,
            refused=lambda _: None,
            complaints=self.complaints,
            queue_frames=16,
            insecure=False,
            keys=PeerKeys(own, listed),
        )

    def change(self, listed: dict[str, tuple[str, ...]]) -> None:
        """Other keys are listed, as after a reload, or when the domain says so."""
        self._doorkeeper.change({NODES: listed})
        self.peers.change_keys(listed)

    def listen(self) -> None:
        self.peers.run()
        self.heard += map(bytes, self.peers.receive(100))
        self.peers.read_subscriptions()

    def close(self) -> None:
        self.peers.close()
        self._doorkeeper.close()
        self.context.term()


Start = Callable[..., Node]


@pytest.fixture(params=["tcp", "ipc"])
def voters(request: pytest.FixtureRequest, short_path: Path) -> Iterator[dict[str, str]]:
    blocks = [PortBlock(), PortBlock()]
    if request.param == "tcp":
        yield dict(zip("ab", [block.address for block in blocks], strict=True))
    else:
        yield {name: f"ipc://{short_path}/{name}" for name in "ab"}
    for block in blocks:
        block.close()


@pytest.fixture
def start(loop: Loop, voters: dict[str, str]) -> Iterator[Start]:
    made: list[Node] = []

    def starting(name: str, own: Keys, listed: dict[str, tuple[str, ...]] = LISTED) -> Node:
        made.append(Node(loop, name, voters, own, listed))
        return made[-1]

    yield starting
    for node in made:
        node.close()


def arrives(loop: Loop, sender: Node, to: str, receiver: Node, name: str, body: bytes = b"\x90") -> bool:
    return loop.until(
        lambda: frame(name, body) in receiver.heard,
        lambda: sender.peers.send(to, frame(name, body)),
        receiver.listen,
        sender.listen,
    )


def is_multicast(loop: Loop, sender: Node, receiver: Node, name: str, body: bytes) -> bool:
    return loop.until(
        lambda: frame(name, body) in receiver.heard,
        lambda: sender.peers.multicast(frame(name, body, DOMAIN_TOPIC)),
        receiver.listen,
        sender.listen,
    )


def test_nodes_that_know_each_other_hear_each_other(loop: Loop, start: Start) -> None:
    a, b = start("a", A), start("b", B)
    assert arrives(loop, a, "b", b, "a")
    assert arrives(loop, b, "a", a, "b")
    assert is_multicast(loop, a, b, "a", b"to all")
    assert is_multicast(loop, b, a, "b", b"to all")
    assert {} == a.complaints.counts == b.complaints.counts


def test_a_node_cannot_speak_in_the_name_of_another(loop: Loop, start: Start) -> None:
    """What b says as c is dropped, and told; what it says as b still arrives."""
    a, b = start("a", A), start("b", B)
    assert is_multicast(loop, b, a, "b", b"first")
    assert arrives(loop, b, "a", a, "b")

    def said_as_c() -> None:
        b.peers.send("a", frame("c", b"direct"))
        b.peers.send("a", b"short")
        b.peers.multicast(frame("c", b"multicast", DOMAIN_TOPIC))

    assert loop.until(lambda: a.complaints.counts.get("false name", 0) >= 3, said_as_c, a.listen)
    assert is_multicast(loop, b, a, "b", b"last")
    assert arrives(loop, b, "a", a, "b", b"last")
    assert {"b"} == {frames.claimed_sender(heard).decode() for heard in a.heard}


@pytest.mark.parametrize("keys", [STRANGER, None], ids=["stranger", "without keys"])
def test_who_is_not_listed_is_not_heard_and_hears_nothing(
    loop: Loop, start: Start, voters: dict[str, str], keys: Keys | None
) -> None:
    a = start("a", A)
    context = new_context()
    dealer, subscriber = context.socket(zmq.DEALER), context.socket(zmq.SUB)
    subscriber.setsockopt(zmq.SUBSCRIBE, b"")
    for stranger, address in ((dealer, a.peers._bound[0]), (subscriber, a.peers._bound[1])):
        if keys is not None:
            curve.show(stranger, keys)
            curve.expect(stranger, A.public)
        stranger.setsockopt(zmq.LINGER, 0)
        stranger.connect(address)
    dealer.send(frame("b", b"from nowhere"))
    b = start("b", B)  # when b has got through twice, the stranger has had its time
    for body in (b"one", b"two"):
        assert arrives(loop, b, "a", a, "b", body)
        assert is_multicast(loop, a, b, "a", body)
    assert frame("b", b"from nowhere") not in a.heard
    assert 0 == subscriber.poll(0)
    assert (keys is not None) == ("stranger" in a.complaints.counts)
    context.destroy(linger=0)


def test_a_node_is_not_let_in_with_the_key_of_another_name(loop: Loop, start: Start) -> None:
    """C's key at b's address: a expects b there, and does not speak with c."""
    a, false_b = start("a", A), start("b", C)
    assert loop.until(
        lambda: a.complaints.counts.get("not let in") or a.peers._peers["b"].key, a.listen, false_b.listen
    )
    assert not a.peers.send("b", frame("a"))
    # It gets in as c, which it is, and as nobody else.
    assert loop.until(
        lambda: a.complaints.counts.get("false name"), lambda: false_b.peers.send("a", frame("b")), a.listen
    )
    assert [] == a.heard


@pytest.mark.parametrize("own", [B, NEW], ids=["old", "new"])
def test_of_two_keys_either_will_do(loop: Loop, start: Start, own: Keys) -> None:
    a, b = start("a", A), start("b", own)
    assert arrives(loop, a, "b", b, "a")
    assert arrives(loop, b, "a", a, "b")
    assert is_multicast(loop, b, a, "b", b"to all")


def test_a_node_comes_back_with_its_new_key_and_is_heard(loop: Loop, start: Start) -> None:
    a, b = start("a", A), start("b", B)
    assert is_multicast(loop, b, a, "b", b"old")
    b.close()
    b = start("b", NEW)
    assert is_multicast(loop, b, a, "b", b"new")
    assert arrives(loop, a, "b", b, "a")


def test_who_was_refused_is_let_in_once_it_is_listed(loop: Loop, start: Start) -> None:
    """An operator adds the key and starts the daemon again; nobody has to touch the one that was refused."""
    only_a = {"a": (A.public,), "b": (STRANGER.public,)}
    a, b = start("a", A, only_a), start("b", B)
    assert loop.until(lambda: a.complaints.counts.get("stranger"), a.listen)
    assert loop.until(lambda: b.complaints.counts.get("not listed"), b.listen)
    a.close()
    a = start("a", A)
    assert arrives(loop, b, "a", a, "b")
    assert is_multicast(loop, a, b, "a", b"to all")


def test_a_node_without_a_listed_key_is_not_connected_to(loop: Loop, start: Start) -> None:
    a = start("a", A)
    a.peers.connect("z", "tcp://127.0.0.1:9", listen=True)
    assert 1 == a.complaints.counts["no key"]
    assert "z" not in a.peers.names


def test_with_keys_peers_may_be_on_other_machines(loop: Loop, start: Start) -> None:
    a = start("a", A)
    a.peers.connect("c", "tcp://192.0.2.7:7400")
    assert "c" in a.peers.names


def test_a_key_that_was_revoked_is_not_heard_again_when_its_node_is_listed_with_another(
    loop: Loop, start: Start
) -> None:
    """Who has the stolen key loses its connection, does not get in again under the name of b, and is told why."""
    a, thief = start("a", A), start("b", B)
    assert arrives(loop, thief, "a", a, "b", b"before")
    for listed in ({"a": (A.public,)}, {"a": (A.public,), "b": (NEW.public,)}):
        a.change(listed)
        a.heard.clear()
        refused = a.complaints.counts.get("stranger", 0)
        assert loop.until(
            lambda refused=refused: a.complaints.counts.get("stranger", 0) >= refused + 3,  # type: ignore[misc]
            lambda: thief.peers.send("a", frame("b", b"stolen")),
            a.listen,
            thief.listen,
        )
        assert [] == a.heard
        assert ["a"] == thief.peers.barred_by()
    assert thief.complaints.counts.get("not listed")


def test_a_node_that_is_listed_again_gets_in_again_without_being_started_anew(loop: Loop, start: Start) -> None:
    """A ZeroMQ socket that was told that its key is not listed gives up; ours begins again."""
    a, b = start("a", A), start("b", B)
    assert arrives(loop, b, "a", a, "b", b"before")
    a.change({"a": (A.public,)})
    assert loop.until(lambda: ["a"] == b.peers.barred_by(), a.listen, b.listen)
    assert b.peers.deadline <= clocks.now() + NOT_LISTED_AGAIN_S
    a.change(LISTED)
    assert loop.until(
        lambda: frame("b", b"after") in a.heard,
        lambda: b.peers.send("a", frame("b", b"after")),
        b.listen,
        a.listen,
    )
    assert loop.until(lambda: not b.peers.barred_by())
    assert is_multicast(loop, a, b, "a", b"to all")


def test_a_node_that_is_not_listed_any_more_hears_no_multicasts_and_the_others_do(loop: Loop, start: Start) -> None:
    """Its connection is ended, and no other."""
    a, b = start("a", A), start("b", B)
    context = new_context()
    other = context.socket(zmq.SUB)
    other.setsockopt(zmq.SUBSCRIBE, b"")
    other.setsockopt(zmq.LINGER, 0)
    other.setsockopt(zmq.RCVTIMEO, 10_000)
    curve.show(other, C)
    curve.expect(other, A.public)
    other.connect(a.peers._bound[1])

    def said_and_heard(body: bytes) -> bool:
        a.peers.multicast(frame("a", body, DOMAIN_TOPIC))
        return bool(other.poll(1)) and other.recv().endswith(body)

    assert is_multicast(loop, a, b, "a", b"before")
    assert loop.until(lambda: said_and_heard(b"before"), a.listen)
    a.change({"a": (A.public,), "c": (C.public,)})
    a.peers.multicast(frame("a", b"at once", DOMAIN_TOPIC))
    while not (body := other.recv()).endswith(b"at once"):  # it is there, or the test is late
        assert body.endswith(b"before")
    assert loop.until(lambda: a.complaints.counts.get("stranger", 0) >= 3, a.listen, b.listen)  # b has knocked in vain
    assert loop.until(lambda: said_and_heard(b"after"), a.listen, b.listen)
    assert {frame("a", b"before")} == set(b.heard)
    context.destroy(linger=0)


def test_a_key_that_is_added_ends_no_connection(loop: Loop, start: Start) -> None:
    a, b = start("a", A), start("b", B)
    assert is_multicast(loop, a, b, "a", b"before")
    a.change({**LISTED, "d": (STRANGER.public,)})
    a.peers.multicast(frame("a", b"at once", DOMAIN_TOPIC))
    assert loop.until(lambda: frame("a", b"at once") in b.heard, b.listen)


def test_a_flood_of_strangers_with_a_new_key_each_is_ten_lines(loop: Loop) -> None:
    """What is refused shows the key, and is counted without it."""
    context, records = new_context(), []
    audit = Audit(lambda: 0.0, lambda op, args: records.append((op, args["who"])))
    keeper = Doorkeeper(
        context, doors={NODES: LISTED}, watch=loop.watch, complaints=Complaints(clocks.now), audit=audit
    )
    try:
        for number in range(100):
            key = number.to_bytes(32, "big")
            question = [b"1.0", b"%d" % number, b"nodes", b"192.0.2.1", b"", b"CURVE", key]
            assert b"400" == keeper._answer(question)[2]
        expected = [("key_refused", z85.encode(number.to_bytes(32, "big")).decode()) for number in range(RECORDS_PER_S)]
        assert expected == records
    finally:
        keeper.close()
        context.term()


def test_of_multicasts_in_several_parts_one_is_enough_for_a_round(loop: Loop, start: Start) -> None:
    """They are garbage, of any size: each is dropped as a whole, and then it is the turn of the others."""
    a, b = start("a", A), start("b", B)
    assert is_multicast(loop, a, b, "a", b"before")
    dropped = [0]

    def listen() -> None:
        b.listen()
        dropped.append(b.complaints.counts.get("bad frame", 0))
        assert dropped[-1] <= dropped[-2] + 1

    for _ in range(10):
        a.peers.publisher.socket.send_multipart([DOMAIN_TOPIC + frame("a"), b"x", b"x"])
    assert loop.until(lambda: 10 == dropped[-1], listen)
