"""Connections at a port for nodes: how many there may be, and that the right one is ended."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import socket
from collections.abc import Iterator

import pytest
import zmq

from groupsvc.drivers import curve
from groupsvc.drivers.curve import new_keys
from groupsvcd.core.domain.limits import NODES_MAX
from groupsvcd.io import clocks, gate, sockets
from groupsvcd.io import publisher as publishing
from groupsvcd.io.complaints import Complaints
from groupsvcd.io.gate import Gate
from groupsvcd.io.keys import MULTICASTS, NODES, Doorkeeper
from groupsvcd.io.publisher import SUBSCRIPTION_BYTES, Publisher
from groupsvcd.io.sockets import NOBLOCK, Context
from groupsvcd.io.strangers import cookie_of
from groupsvcd.io.watch import Watch
from tests.unit.io.conftest import Loop

A, B, C = (new_keys() for _ in range(3))
TOPIC = bytes(SUBSCRIPTION_BYTES - 1)


class Door:
    """A ROUTER with a gate, at which b and c may come in; b may be taken off the list."""

    def __init__(self, context: Context, loop: Loop, *, keys: bool) -> None:
        self.context, self.loop, self.keys = context, loop, keys
        self.listed = {B.public, C.public}
        self.heard: list[bytes] = []
        self.now = 100.0
        self._keeper = Doorkeeper(
            context,
            doors={NODES: {"b": (B.public,), "c": (C.public,)}},
            watch=loop.watch,
            complaints=Complaints(clocks.now),
        )
        self.router = sockets.new_socket(context, zmq.ROUTER, send_queue=16, receive_queue=16)
        self.gate = Gate(
            self.router,
            port="the port",
            watch=loop.watch,
            complaints=loop.complaints,
            is_listed=self.listed.__contains__ if keys else None,
            clock=lambda: self.now,
        )
        if keys:
            curve.serve(self.router, A, NODES)
        self.router.bind("tcp://127.0.0.1:*")
        self.endpoint = self.router.getsockopt_string(zmq.LAST_ENDPOINT)

    def dealer(self, own: curve.Keys = B) -> zmq.Socket[bytes]:
        made: zmq.Socket[bytes] = self.context.socket(zmq.DEALER)
        made.setsockopt(zmq.LINGER, 0)
        made.setsockopt(zmq.RECONNECT_IVL, -1)  # who is cut off stays so
        if self.keys:
            curve.show(made, own)
            curve.expect(made, A.public)
        made.connect(self.endpoint)
        return made

    def raw(self) -> socket.socket:
        """A connection that says nothing."""
        return socket.create_connection(("127.0.0.1", int(self.endpoint.rpartition(":")[2])))

    def read(self) -> None:
        try:
            while True:
                self.router.recv(NOBLOCK)
                part = self.router.recv(NOBLOCK, copy=False)
                self.gate.heard(part)
                self.heard.append(part.bytes)
        except zmq.Again:
            pass

    def hears(self, speaker: zmq.Socket[bytes], said: bytes) -> bool:
        speaker.send(said)
        return self.loop.until(lambda: said in self.heard, self.read)

    def close(self) -> None:
        self.gate.close()
        self.router.close(linger=0)
        self._keeper.close()


@pytest.fixture(params=[True, False], ids=["keys", "no keys"])
def door(request: pytest.FixtureRequest, context: Context, loop: Loop) -> Iterator[Door]:
    made = Door(context, loop, keys=request.param)
    yield made
    made.close()


@pytest.fixture
def keyed(context: Context, loop: Loop) -> Iterator[Door]:
    made = Door(context, loop, keys=True)
    yield made
    made.close()


def is_ended(raw: socket.socket) -> bool:
    """Whether the other end hung up; its greeting is read over."""
    raw.setblocking(False)
    try:
        while raw.recv(1_000):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_of_very_many_silent_connections_the_oldest_is_ended_and_who_speaks_stays(door: Door, loop: Loop) -> None:
    door.gate.silent_max = 3
    speaker = door.dealer()
    assert door.hears(speaker, b"first")
    silent = [door.raw() for _ in range(3)]
    assert loop.until(lambda: 3 == len(door.gate._silent), door.read)
    assert [False] * 3 == [is_ended(one) for one in silent]
    silent.append(door.raw())
    assert loop.until(lambda: is_ended(silent[0]), door.read)
    assert [False] * 3 == [is_ended(one) for one in silent[1:]]
    assert 1 == loop.complaints.counts["silent node"]
    assert door.hears(speaker, b"last")
    for one in silent:
        one.close()
    speaker.close()


def test_what_is_over_is_forgotten(door: Door, loop: Loop) -> None:
    speaker, silent = door.dealer(), door.raw()
    assert door.hears(speaker, b"hello")
    assert loop.until(lambda: 1 == len(door.gate._silent) == len(door.gate._known), door.read)
    speaker.close()
    silent.close()
    assert loop.until(lambda: not (door.gate._silent or door.gate._known or door.gate._of), door.read)


def test_who_knocks_without_a_key_ends_no_connection_of_a_node(keyed: Door, loop: Loop) -> None:
    """At a voter that is not the name server a node is silent, and its connection is the oldest."""
    keyed.gate.silent_max, keyed.gate.arriving_max = 4, 1
    node = keyed.dealer()
    assert loop.until(lambda: 1 == len(keyed.gate._arriving), keyed.read)
    keyed.now += gate.ARRIVING_S
    knocking = [keyed.raw() for _ in range(6)]
    assert loop.until(lambda: 6 - 3 <= [is_ended(one) for one in knocking].count(True), keyed.read)
    assert [True] * 3 == [is_ended(one) for one in knocking[:3]]
    assert keyed.hears(node, b"here all the time")
    for one in (*knocking, node):
        one.close()


def test_a_domain_whose_nodes_all_connect_at_once_fits_beside_it(context: Context, loop: Loop) -> None:
    """Nearly all of its nodes are silent at a voter that is not the name server; as long as descriptors allow it."""
    made = Door(context, loop, keys=False)
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // gate.DESCRIPTORS_SHARE
    assert made.gate.silent_max == min(room, gate.SILENT_MAX)
    assert made.gate.silent_max - made.gate.arriving_max >= min(NODES_MAX, room * NODES_MAX // gate.SILENT_MAX)
    made.close()


def test_a_node_that_connects_again_and_again_is_one_node(keyed: Door, loop: Loop) -> None:
    for number in range(50):
        dealer = keyed.dealer()
        assert keyed.hears(dealer, b"%d" % number)
        dealer.close()
        assert loop.until(lambda: not keyed.gate._known, keyed.read)
    assert not keyed.loop.complaints.counts


def test_a_late_frame_of_a_connection_that_was_ended_ends_nothing_else(keyed: Door, loop: Loop) -> None:
    """Its descriptor is somebody else's, who has not come in at this port at all."""
    thief = keyed.dealer()
    for said in (b"1", b"2", b"3"):
        thief.send(said)
    assert loop.until(lambda: keyed.router.poll(0))
    keyed.router.recv()
    keyed.gate.heard(keyed.router.recv(copy=False))
    (fd,) = keyed.gate._known
    keyed.listed.remove(B.public)
    keyed.gate.cut(B.public)
    assert loop.until(lambda: not cookie_of(fd))
    pairs = [socket.socketpair()]
    while fd not in {one.fileno() for pair in pairs for one in pair} and len(pairs) < 50:
        pairs.append(socket.socketpair())
    assert fd in {one.fileno() for pair in pairs for one in pair}, "the kernel gives the lowest that is free"
    keyed.read()
    assert [b"2", b"3"] == keyed.heard
    for here, there in pairs:
        here.sendall(b"x")
        assert b"x" == there.recv(1)
        here.close()
        there.close()
    thief.close()


def test_who_comes_while_no_descriptor_is_free_is_known_and_can_be_ended(
    keyed: Door, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "dup", _none_is_free)
    thief = keyed.dealer()
    monitor = sockets.monitor(thief, zmq.EVENT_DISCONNECTED)
    assert keyed.hears(thief, b"hello")
    assert 1 == len(keyed.gate._known)
    keyed.listed.remove(B.public)
    keyed.gate.cut(B.public)
    assert not keyed.gate._known
    assert loop.until(lambda: list(sockets.monitor_events(monitor)))
    thief.disable_monitor()
    monitor.close(linger=0)
    thief.close()


def test_a_late_word_of_one_who_was_ended_harms_nobody_who_has_its_descriptor_now(keyed: Door, loop: Loop) -> None:
    """What b had said lay unread; then c came in, and got the descriptor that b had had."""
    for _ in range(20):
        thief = keyed.dealer()
        thief.send(b"late")
        assert loop.until(lambda: keyed.router.poll(0))
        keyed.router.recv()
        late = keyed.router.recv(copy=False)
        thief.close()
        assert loop.until(lambda: not keyed.gate._silent, keyed.gate.look)
        other = keyed.dealer(C)
        assert loop.until(lambda: 1 == len(keyed.gate._silent), keyed.gate.look)
        if {late.get(zmq.SRCFD)} == keyed.gate._silent.keys():  # the kernel gives the lowest that is free
            break
        other.close()
        assert loop.until(lambda: not keyed.gate._silent, keyed.gate.look)
    assert {late.get(zmq.SRCFD)} == keyed.gate._silent.keys()
    keyed.listed.remove(B.public)
    keyed.gate.cut(B.public)
    keyed.gate._doubtful.clear()  # c came after that, though not in this test
    keyed.gate.heard(late)
    assert keyed.hears(other, b"c is here")
    other.close()


def _none_is_free(fd: int) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_of_more_connections_of_a_key_than_a_node_needs_the_oldest_is_ended(keyed: Door, loop: Loop) -> None:
    other = keyed.dealer(C)
    assert keyed.hears(other, b"other")
    dealers = [keyed.dealer() for _ in range(gate.PER_KEY_MAX + 1)]
    monitor = sockets.monitor(dealers[0], zmq.EVENT_DISCONNECTED)
    for number, dealer in enumerate(dealers):
        assert keyed.hears(dealer, b"%d" % number)
    assert loop.until(lambda: list(sockets.monitor_events(monitor)), keyed.read)
    assert 1 == loop.complaints.counts["too many connections"]
    for number, dealer in enumerate([*dealers[1:], other]):
        assert keyed.hears(dealer, b"%d again" % number)
    dealers[0].disable_monitor()
    monitor.close(linger=0)
    for dealer in (*dealers, other):
        dealer.close()


def test_without_keys_nobody_is_counted_as_anybody(context: Context, loop: Loop) -> None:
    door = Door(context, loop, keys=False)
    dealers = [door.dealer() for _ in range(2 * gate.PER_KEY_MAX)]
    for round_ in range(2):
        for number, dealer in enumerate(dealers):
            assert door.hears(dealer, b"%d in round %d" % (number, round_))
    assert not loop.complaints.counts
    for dealer in dealers:
        dealer.close()
    door.close()


def test_who_was_let_in_a_moment_before_the_key_was_revoked_is_ended_with_its_first_word(
    keyed: Door, loop: Loop
) -> None:
    late, other = keyed.dealer(), keyed.dealer(C)
    assert keyed.hears(other, b"other")
    assert loop.until(lambda: 1 == len(keyed.gate._silent), keyed.read)
    monitor = sockets.monitor(late, zmq.EVENT_DISCONNECTED)
    keyed.listed.remove(B.public)
    keyed.gate.cut(B.public)
    late.send(b"late")
    assert loop.until(lambda: list(sockets.monitor_events(monitor)), keyed.read)
    assert keyed.hears(other, b"other again")
    late.disable_monitor()
    monitor.close(linger=0)
    late.close()
    other.close()


def test_another_connection_under_the_same_descriptor_is_not_ended(keyed: Door, loop: Loop) -> None:
    """The one that is known has ended, and nobody has seen that yet."""
    dealer, other = keyed.dealer(), keyed.dealer(C)
    assert keyed.hears(dealer, b"hello")
    assert keyed.hears(other, b"hello of c")
    fds = {known.key: fd for fd, known in keyed.gate._known.items()}
    taken_over = keyed.gate._known[fds[B.public]]
    keyed.gate._known[fds[C.public]] = taken_over  # as if the descriptor of c had been that of b
    keyed.gate._of[B.public] = {fds[C.public]: None}
    keyed.gate.cut(B.public)
    assert keyed.hears(other, b"c goes on")
    dealer.close()
    other.close()


# --- The port of the multicasts ------------------------------------------------------------------------------


def _listening(context: Context, loop: Loop, watch: Watch) -> Publisher:
    made = Publisher(
        context,
        address="tcp://127.0.0.1:*",
        send_queue=16,
        watch=watch,
        complaints=loop.complaints,
        is_listed=lambda key: True,
    )
    curve.serve(made.socket, A, MULTICASTS)
    made.bind()
    return made


def _subscriber(context: Context, publisher: Publisher, topic: bytes) -> zmq.Socket[bytes]:
    made: zmq.Socket[bytes] = context.socket(zmq.SUB)
    for option, value in ((zmq.LINGER, 0), (zmq.RECONNECT_IVL, -1), (zmq.SUBSCRIBE, topic)):
        made.setsockopt(option, value)
    curve.show(made, B)
    curve.expect(made, A.public)
    made.connect(publisher.socket.getsockopt_string(zmq.LAST_ENDPOINT))
    return made


def _hears(loop: Loop, publisher: Publisher, subscriber: zmq.Socket[bytes], said: bytes) -> bool:
    return loop.until(
        lambda: subscriber.poll(0) and subscriber.recv().endswith(said),
        lambda: publisher.multicast(TOPIC + said),
        publisher.read_subscriptions,
    )


def test_who_connects_anew_under_a_descriptor_that_it_had_is_found_when_its_key_is_revoked(
    context: Context, loop: Loop
) -> None:
    """It subscribes once, and what is told of the end of the connection before may be read after that."""
    keeper = Doorkeeper(context, doors={NODES: {"b": (B.public,)}}, watch=loop.watch, complaints=loop.complaints)
    unseen = Watch()
    publisher = _listening(context, loop, unseen)
    for _ in range(20):
        first = _subscriber(context, publisher, TOPIC)
        assert _hears(loop, publisher, first, b"one")
        (fd,) = publisher._gate._known
        first.close()
        assert loop.until(lambda fd=fd: not cookie_of(fd))  # type: ignore[misc]
        second = _subscriber(context, publisher, TOPIC)
        assert _hears(loop, publisher, second, b"two")
        if {fd} == publisher._gate._known.keys():
            break
        second.close()
        assert loop.until(lambda: not publisher._gate._known, publisher._gate.look)
    assert {fd} == publisher._gate._known.keys(), "the kernel gives the lowest that is free"
    monitor = sockets.monitor(second, zmq.EVENT_DISCONNECTED)
    publisher.cut(B.public)
    assert loop.until(lambda: list(sockets.monitor_events(monitor)))
    second.disable_monitor()
    monitor.close(linger=0)
    second.close()
    publisher.close(0)
    keeper.close()
    unseen.close()


def _hog(context: Context, publisher: Publisher) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
    """Somebody with a listed key who says what he likes, and the monitor of his connection."""
    made: zmq.Socket[bytes] = context.socket(zmq.XSUB)
    made.setsockopt(zmq.LINGER, 0)
    made.setsockopt(zmq.RECONNECT_IVL, -1)
    curve.show(made, B)
    curve.expect(made, A.public)
    monitor = sockets.monitor(made, zmq.EVENT_DISCONNECTED)
    made.connect(publisher.socket.getsockopt_string(zmq.LAST_ENDPOINT))
    return made, monitor


def test_ten_thousand_subscriptions_are_read_soon(context: Context, loop: Loop) -> None:
    """Who connects anew has to tell all that it has; until one is read, nothing of that group is sent there."""
    keeper = Doorkeeper(context, doors={NODES: {"b": (B.public,)}}, watch=loop.watch, complaints=loop.complaints)
    publisher = _listening(context, loop, loop.watch)
    member: zmq.Socket[bytes] = context.socket(zmq.SUB)
    member.setsockopt(zmq.SNDHWM, 0)
    for number in range(10_000):
        member.setsockopt(zmq.SUBSCRIBE, number.to_bytes(SUBSCRIPTION_BYTES - 1, "big"))
    curve.show(member, B)
    curve.expect(member, A.public)
    member.connect(publisher.socket.getsockopt_string(zmq.LAST_ENDPOINT))
    readings = 0

    def read() -> None:
        nonlocal readings
        publisher.read_subscriptions()
        readings += any(len(one.topics) for one in publisher._gate._known.values())

    assert loop.until(lambda: [10_000] == [len(one.topics) for one in publisher._gate._known.values()], read)
    assert readings < 20
    member.close(linger=0)
    publisher.close(0)
    keeper.close()


@pytest.mark.parametrize("kind", ["more and more", "on and off"])
def test_who_floods_with_subscriptions_is_read_by_and_by_and_ended(
    context: Context, loop: Loop, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(publishing, "SUBSCRIPTIONS_PER_READING", 10)
    monkeypatch.setattr(publishing, "SUBSCRIPTIONS_MAX", 200)
    keeper = Doorkeeper(context, doors={NODES: {"b": (B.public,)}}, watch=loop.watch, complaints=loop.complaints)
    publisher = _listening(context, loop, loop.watch)
    honest = _subscriber(context, publisher, TOPIC)
    assert _hears(loop, publisher, honest, b"one")
    hog, monitor = _hog(context, publisher)
    hog.send(b"\1" + bytes(7))
    assert loop.until(lambda: 2 == len(publisher._gate._known), publisher.read_subscriptions)  # else on and off is off
    readings, numbers = 0, itertools.count()

    def flood_and_read() -> None:
        nonlocal readings
        for number in itertools.islice(numbers, 50):
            begins = kind == "more and more" or number % 2 == 0
            topic = number if kind == "more and more" else number // 2
            hog.send((b"\1" if begins else b"\0") + topic.to_bytes(8, "big"))
        readings += 1
        publisher.read_subscriptions()

    assert loop.until(lambda: list(sockets.monitor_events(monitor)), flood_and_read)
    assert readings >= 20
    assert _hears(loop, publisher, honest, b"two")
    hog.disable_monitor()
    for one in (monitor, hog, honest):
        one.close(linger=0)
    publisher.close(0)
    keeper.close()


def test_who_says_what_is_no_subscription_is_ended(context: Context, loop: Loop) -> None:
    """It was counted as if it ended one, so that nobody saw how many there were."""
    keeper = Doorkeeper(context, doors={NODES: {"b": (B.public,)}}, watch=loop.watch, complaints=loop.complaints)
    publisher = _listening(context, loop, loop.watch)
    hog, monitor = _hog(context, publisher)
    hog.send(b"\1" + TOPIC)
    for unknown in (b"\0other", b"\0other again"):
        hog.send(unknown)
    assert loop.until(lambda: publisher._gate._known, publisher.read_subscriptions)
    assert [1] == [len(one.topics) for one in publisher._gate._known.values()]
    hog.send(b"\2 hello")
    assert loop.until(lambda: list(sockets.monitor_events(monitor)), publisher.read_subscriptions)
    hog.disable_monitor()
    monitor.close(linger=0)
    hog.close()
    publisher.close(0)
    keeper.close()


def test_who_subscribes_to_a_book_is_ended(context: Context, loop: Loop) -> None:
    keeper = Doorkeeper(context, doors={NODES: {"b": (B.public,)}}, watch=loop.watch, complaints=loop.complaints)
    publisher = _listening(context, loop, loop.watch)
    honest = _subscriber(context, publisher, TOPIC)
    assert _hears(loop, publisher, honest, b"one")
    hog = _subscriber(context, publisher, bytes(100_000))
    monitor = sockets.monitor(hog, zmq.EVENT_DISCONNECTED)
    assert loop.until(lambda: list(sockets.monitor_events(monitor)), publisher.read_subscriptions)
    assert _hears(loop, publisher, honest, b"two")
    hog.disable_monitor()
    monitor.close(linger=0)
    hog.close()
    honest.close()
    publisher.close(0)
    keeper.close()
