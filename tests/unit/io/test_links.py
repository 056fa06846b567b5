"""Whom a node can send to and whose multicasts it hears: made, replaced and given up one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from groupsvcd.core.peer_messages import DOMAIN_TOPIC, topic_of
from groupsvcd.io import clocks
from groupsvcd.io.peers import Peers
from groupsvcd.io.sockets import Context
from tests.unit.io.conftest import Loop

SEVEN, EIGHT = topic_of(7), topic_of(8)


class Nodes:
    """Node v is the only voter; a and b are two nodes like most."""

    def __init__(self, context: Context, loop: Loop, directory: Path) -> None:
        self.context, self.loop, self.directory = context, loop, directory
        self.made: list[Peers] = []
        self.v, self.a, self.b = (self.make(name) for name in "vab")
        self.heard: list[bytes] = []

    def address(self, name: str) -> str:
        return f"ipc://{self.directory}/{name}"

    def make(self, name: str) -> Peers:
        peers = Peers(
            self.context,
            node=name,
            address=self.address(name),
            voters={"v": self.address("v")},
            watch=self.loop.watch,
            clock=clocks.now,
            refused=lambda _: None,
            complaints=self.loop.complaints,
            queue_frames=16,
            insecure=False,
        )
        self.made.append(peers)
        return peers

    def listen(self, peers: Peers) -> None:
        self.heard += map(bytes, peers.receive(100))

    def hears(self, peers: Peers, sender: Peers, topic: bytes, frame: bytes) -> bool:
        """Whether a multicast of ``sender`` arrives, repeated until it does."""
        return self.loop.until(
            lambda: frame in self.heard, lambda: sender.multicast(topic + frame), lambda: self.listen(peers)
        )

    def gets(self, peers: Peers, sender: Peers, name: str, frame: bytes) -> bool:
        """Whether a frame for ``name`` alone arrives, repeated until it does."""
        return self.loop.until(
            lambda: frame in self.heard, lambda: sender.send(name, frame), lambda: self.listen(peers)
        )


@pytest.fixture
def nodes(context: Context, loop: Loop, short_path: Path) -> Iterator[Nodes]:
    made = Nodes(context, loop, short_path)
    yield made
    for peers in made.made:
        peers.close()


def test_a_multicast_is_heard_by_who_listens_and_has_subscribed(nodes: Nodes) -> None:
    nodes.b.connect("a", nodes.address("a"), listen=True)
    nodes.b.subscribe(SEVEN)
    assert nodes.hears(nodes.b, nodes.a, SEVEN, b"of seven")
    assert nodes.hears(nodes.b, nodes.a, DOMAIN_TOPIC, b"of the domain")


def test_a_topic_not_subscribed_to_is_not_heard(nodes: Nodes) -> None:
    nodes.b.connect("a", nodes.address("a"), listen=True)
    nodes.b.subscribe(SEVEN)
    assert nodes.loop.until(
        lambda: b"of seven" in nodes.heard,
        lambda: nodes.a.multicast(EIGHT + b"of eight"),
        lambda: nodes.a.multicast(SEVEN + b"of seven"),
        lambda: nodes.listen(nodes.b),
    )
    assert {b"of seven"} == set(nodes.heard)


def test_without_listening_a_node_can_be_sent_to_and_is_not_heard(nodes: Nodes) -> None:
    """The voter is heard all the same: the domain's liveness hangs on it."""
    nodes.b.connect("a", nodes.address("a"))
    nodes.b.subscribe(SEVEN)
    assert nodes.gets(nodes.a, nodes.b, "a", b"for a alone")
    assert nodes.loop.until(
        lambda: b"of the voter" in nodes.heard,
        lambda: nodes.a.multicast(SEVEN + b"of a"),
        lambda: nodes.v.multicast(SEVEN + b"of the voter"),
        lambda: nodes.listen(nodes.b),
    )
    assert b"of a" not in nodes.heard


def test_a_second_connect_replaces_the_first(nodes: Nodes) -> None:
    c = nodes.make("c")
    nodes.b.subscribe(SEVEN)
    nodes.b.connect("x", nodes.address("a"), listen=True)
    assert nodes.hears(nodes.b, nodes.a, SEVEN, b"x at its old place")
    nodes.b.connect("x", nodes.address("c"), listen=True)
    assert nodes.hears(nodes.b, c, SEVEN, b"x at its new place")
    assert nodes.gets(c, nodes.b, "x", b"for x")
    nodes.heard.clear()
    assert nodes.loop.until(
        lambda: b"x again" in nodes.heard,
        lambda: nodes.a.multicast(SEVEN + b"who was x"),
        lambda: c.multicast(SEVEN + b"x again"),
        lambda: nodes.listen(nodes.b),
    )
    assert b"who was x" not in nodes.heard


def test_listening_can_begin_and_end_at_the_same_address(nodes: Nodes) -> None:
    nodes.b.subscribe(SEVEN)
    nodes.b.connect("a", nodes.address("a"))
    nodes.b.connect("a", nodes.address("a"), listen=True)
    assert nodes.hears(nodes.b, nodes.a, SEVEN, b"loud")
    nodes.b.connect("a", nodes.address("a"))
    nodes.heard.clear()
    assert nodes.loop.until(
        lambda: b"of the voter" in nodes.heard,
        lambda: nodes.a.multicast(SEVEN + b"quiet"),
        lambda: nodes.v.multicast(SEVEN + b"of the voter"),
        lambda: nodes.listen(nodes.b),
    )
    assert b"quiet" not in nodes.heard
    assert nodes.gets(nodes.a, nodes.b, "a", b"still sent to")


def test_after_a_disconnect_nothing_is_sent_and_nothing_is_heard(nodes: Nodes) -> None:
    nodes.b.subscribe(SEVEN)
    nodes.b.connect("a", nodes.address("a"), listen=True)
    assert nodes.hears(nodes.b, nodes.a, SEVEN, b"before")
    nodes.a.multicast(SEVEN + b"behind all that was said before")
    assert nodes.loop.until(lambda: nodes.heard[-1].startswith(b"behind"), lambda: nodes.listen(nodes.b))
    nodes.b.disconnect("a")
    nodes.b.disconnect("a")
    assert ["v"] == nodes.b.names
    assert not nodes.b.send("a", b"x")
    nodes.heard.clear()
    assert nodes.hears(nodes.b, nodes.v, SEVEN, b"of the voter")
    assert {b"of the voter"} == set(nodes.heard)


def test_a_voter_stays_connected_and_heard_whatever_is_asked_for(nodes: Nodes) -> None:
    nodes.b.connect("v", nodes.address("v"))
    nodes.b.disconnect("v")
    assert nodes.hears(nodes.b, nodes.v, DOMAIN_TOPIC, b"of the voter")
    assert nodes.gets(nodes.v, nodes.b, "v", b"for the voter")


def test_two_names_at_one_address_do_not_double_what_comes_from_there(nodes: Nodes) -> None:
    """A node that was renamed: the old name is given up a little later."""
    nodes.b.subscribe(SEVEN)
    nodes.b.connect("old", nodes.address("a"), listen=True)
    nodes.b.connect("new", nodes.address("a"), listen=True)
    assert nodes.hears(nodes.b, nodes.a, SEVEN, b"hello")
    nodes.heard.clear()
    for n in range(10):
        nodes.a.multicast(SEVEN + b"%d" % n)
    assert nodes.loop.until(lambda: b"9" in nodes.heard, lambda: nodes.listen(nodes.b))
    numbers = [frame for frame in nodes.heard if frame != b"hello"]
    assert [b"%d" % n for n in range(10)] == numbers
    nodes.b.disconnect("old")
    assert nodes.hears(nodes.b, nodes.a, SEVEN, b"still heard as new")


def test_a_topic_given_up_is_not_heard_however_often_it_was_asked_for(nodes: Nodes) -> None:
    nodes.b.connect("a", nodes.address("a"), listen=True)
    for topic in (SEVEN, SEVEN, EIGHT):
        nodes.b.subscribe(topic)
    assert nodes.hears(nodes.b, nodes.a, SEVEN, b"of seven")
    nodes.b.unsubscribe(SEVEN)
    nodes.b.unsubscribe(DOMAIN_TOPIC)  # of no effect: everybody is in the domain
    assert nodes.hears(nodes.b, nodes.a, DOMAIN_TOPIC, b"of the domain")
    nodes.heard.clear()
    assert nodes.loop.until(
        lambda: b"of eight" in nodes.heard,
        lambda: nodes.a.multicast(SEVEN + b"of seven, late"),
        lambda: nodes.a.multicast(EIGHT + b"of eight"),
        lambda: nodes.listen(nodes.b),
    )
    assert {b"of eight"} == set(nodes.heard) - {b"of the domain", b"of seven"}


def test_links_count_what_was_sent_and_what_was_dropped(nodes: Nodes) -> None:
    """A frame that finds no connection is dropped at once and counted; what nobody is linked to counts nowhere."""
    nodes.a.connect("b", nodes.address("b"), listen=True)
    nodes.a.connect("c", nodes.address("c"))
    assert nodes.gets(nodes.b, nodes.a, "b", b"for b")
    assert not nodes.a.send("c", b"for c")
    assert not nodes.a.send("d", b"for d")
    b, c, v = nodes.a.statistics()
    assert ("b", True, True) == (b.node, b.listens, b.frames_sent > 0)
    assert ("c", False, 0, 1) == (c.node, c.listens, c.frames_sent, c.frames_dropped)
    assert ("v", True, 0, 0) == (v.node, v.listens, v.frames_sent, v.frames_dropped)


def test_how_a_link_stands_is_told_by_who_has_it(nodes: Nodes) -> None:
    """a reaches v; where b was, nobody listens any more; of a link that was just made nobody can say anything."""
    nodes.a.connect("b", nodes.address("b"))
    assert nodes.loop.until(lambda: {"v": "connected", "b": "connected"} == nodes.a.states(), nodes.a.probes.run)
    nodes.b.close()
    nodes.made.remove(nodes.b)
    assert nodes.loop.until(lambda: "refused" == nodes.a.states()["b"], nodes.a.probes.run)
    nodes.a.connect("c", nodes.address("c"))
    assert "c" not in nodes.a.states() or "connecting" != nodes.a.states()["c"]
