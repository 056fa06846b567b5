"""Frames between daemons.

Each daemon listens at two endpoints: a ROUTER, into which all others push what is for this node alone, and an
XPUB, to which others subscribe. It has one DEALER per peer for what goes out, and one SUB for all multicasts:

    A.DEALER(B) ────────► B.ROUTER          A.XPUB ────────► B.SUB, C.SUB

B hears a multicast of A on a topic if B listens to A *and* has subscribed to the topic. To the voters everybody
listens, always; to any other node one listens while one shares a group with it. The topic of the domain is always
subscribed to. What nobody wants is filtered at A and costs no network.

Frames may be lost and the protocol repeats what matters, so nothing ever waits here: to a peer that is not
connected nothing is sent at all (``IMMEDIATE``: no queue of stale frames greets a node that comes back), and a
full queue drops. When the connection of a DEALER breaks, its monitor tells and ``Probes`` goes and knocks.

How much a peer that does not read may cost (C was stopped, and A goes on sending):

    A's DEALER to C      96 frames of at most 256 KiB   24 MiB
                         and larger frames, together     8 MiB
    C's part of A's XPUB the same                       32 MiB
    in all                                              64 MiB

    and what A wants to hear of C: some 120 bytes for each topic that it joins or leaves meanwhile

When C has not taken anything for ``DEAD_LINK_MS`` the kernel ends the connection, and all of it is free again; over ipc
when C ends.

With keys (``keys.py``) both endpoints let in only nodes that are listed, and A expects B's key where it connects to B.
A frame that comes over a connection of B and says that it is from C is dropped. While B changes its key two are listed;
which of them it has, A finds out by trying. Whose a connection is, is looked up by its key for every frame, in the list
as it is then: a key that was revoked is nobody's, also when its node is listed again with another one. Its connections
are ended at both ports, and how many there may be of each key is limited (``gate.py``).

A node whose key A does not list is told so where it connects to A's ROUTER, so that it can tell its people. A socket of
ZeroMQ that was told that gives up; here it is made to try again. At the XPUB nobody is told anything, for there nobody
would notice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Mapping

import attrs
import zmq

from groupsvc.drivers import curve
from groupsvc.wire.frames import claimed_sender
from groupsvc.wire.limits import FRAME_BYTES_MAX, FRAME_BYTES_USUAL
from groupsvc.wire.survey_messages import LinkState

from ..core.peer_messages import DOMAIN_TOPIC, TOPIC_BYTES
from . import sockets
from .addresses import multicast_address, problem_with_peer_address
from .complaints import Complaints
from .gate import Gate
from .keys import MULTICASTS, NODES, Names, PeerKeys
from .large_frames import LargeFrames
from .probes import Probes
from .publisher import Publisher
from .sockets import NOBLOCK, PEER_RECEIVE_QUEUE_FRAMES, Context, Socket, has_more
from .subscribers import Subscribers
from .watch import Watch

DEALER_EVENTS = int(zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_HANDSHAKE_SUCCEEDED) | curve.HANDSHAKE_FAILED

KEY_TRIAL_S = 0.2
"""So long one of two keys of a peer is tried before the other one is: what ZeroMQ waits between two connections."""

NOT_LISTED = 400
"""What the other end says of our key, if it says anything (``keys.py``)."""
NOT_LISTED_AGAIN_S = 0.2
"""So long after it has said so it is asked again: as often as ZeroMQ would."""

BYTES_PER_ROUND = FRAME_BYTES_MAX
"""From each source: after so much it is the turn of the others."""

FORGOTTEN_PER_SEND = 16

SETTLING_S = 1.0
"""A link that does not stand after this is told as one that does not."""


class _Everything:
    """Contains whatever one asks for."""

    def __contains__(self, _: object) -> bool:
        return True


EVERYTHING = _Everything()


@attrs.define
class _Peer:
    address: str
    dealer: Socket
    monitor: Socket
    large: LargeFrames
    key: int = 0  # which of its keys is expected
    tried_since: float = 0.0
    sent: int = 0
    sent_bytes: int = 0
    dropped: int = 0
    state: LinkState = "connecting"
    made_at: float = 0.0


@attrs.frozen
class LinkStatistics:
    """What went over the link to one node since it is there; frames that were dropped found no room or nobody."""

    node: str
    address: str
    listens: bool
    frames_sent: int
    frames_dropped: int
    state: LinkState
    bytes_sent: int = 0


@attrs.frozen(kw_only=True)
class PeerStatistics:
    """What goes between this node and all others; of nodes that are linked no longer, too."""

    links: tuple[LinkStatistics, ...]
    frames_sent: int  # to one node each
    frames_dropped: int
    bytes_sent: int
    multicasts_sent: int
    multicasts_dropped: int  # large ones for which there was no room
    multicast_bytes: int
    frames_received: int


class Peers:
    """The sockets of one daemon towards all others."""

    def __init__(
        self,
        context: Context,
        *,
        node: str,
        address: str,
        voters: Mapping[str, str],
        watch: Watch,
        clock: Callable[[], float],
        refused: Callable[[str], None],
        complaints: Complaints,
        queue_frames: int,
        insecure: bool,
        keys: PeerKeys | None = None,
    ) -> None:
        self._context = context
        self._node = node
        self._voters = frozenset(voters)
        self._watch = watch
        self._complaints = complaints
        self._queue_frames = queue_frames
        self._may_leave = insecure or keys is not None
        self._keys = keys
        self._owners = {} if keys is None else _owners(keys.nodes)
        self._without_key: dict[str, tuple[str, bool]] = {}  # whom we cannot reach until it is listed
        self._clock = clock
        self._peers: dict[str, _Peer] = {}
        self._heard: dict[str, str] = {}  # whom we listen to, and where their multicasts come from
        self._topics = {DOMAIN_TOPIC}
        self._bound: list[str] = []
        self._hung_up = LinkStatistics("", "", False, 0, 0, "connecting")  # what went over links that are no more
        self._frames_received = 0
        self.is_empty = True
        self._tell_refused = refused
        self.probes = Probes(watch, clock, self._refused)
        self._again: dict[str, float] = {}  # who does not list our key, and when to ask again
        is_listed = None if keys is None else self._is_listed
        self.router = sockets.new_socket(
            context, zmq.ROUTER, send_queue=queue_frames, receive_queue=PEER_RECEIVE_QUEUE_FRAMES
        )
        self.router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._gate = Gate(self.router, port=address, watch=watch, complaints=complaints, is_listed=is_listed)
        self.publisher = Publisher(
            context, address=multicast_address(address), send_queue=queue_frames, watch=watch, complaints=complaints,
            is_listed=is_listed,
        )  # fmt: skip
        self.subscriber = sockets.new_subscriber(context)
        self.subscriber.setsockopt(zmq.SUBSCRIBE, DOMAIN_TOPIC)
        self._apart: Subscribers | None = None  # with keys, instead of the one for all
        if keys is not None:
            curve.serve(self.router, keys.own, NODES)
            curve.serve(self.publisher.socket, keys.own, MULTICASTS)
            self._apart = Subscribers(context, own=keys.own, watch=watch, first_topic=DOMAIN_TOPIC)
        try:
            sockets.bind(self.router, address)
            self._bound.append(address)
            self.publisher.bind()
            self._bound.append(multicast_address(address))
        except BaseException:
            self.close()
            raise
        for name, its_address in voters.items():
            self.connect(name, its_address)

    # --- Out --------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Everybody we can send to."""
        return list(self._peers)

    def statistics(self) -> tuple[LinkStatistics, ...]:
        """All links, by name."""
        return tuple(
            LinkStatistics(
                node, peer.address, node in self._heard, peer.sent, peer.dropped, peer.state, peer.sent_bytes
            )
            for node, peer in sorted(self._peers.items())
        )

    def states(self) -> dict[str, LinkState]:
        """How all links stand, by name; of one that was made a moment ago nobody can say."""
        settled = self._clock() - SETTLING_S
        return {
            node: peer.state
            for node, peer in self._peers.items()
            if peer.state != "connecting" or peer.made_at <= settled
        }

    def barred_by(self) -> list[str]:
        """The voters that do not list the key of this node."""
        return sorted(node for node in self._voters if node in self._peers and self._peers[node].state == "not listed")

    def totals(self) -> PeerStatistics:
        """All of it; sums only ever grow, also when a link is dropped."""
        links = self.statistics()
        all_links = (*links, self._hung_up)
        return PeerStatistics(
            links=links,
            frames_sent=sum(link.frames_sent for link in all_links),
            frames_dropped=sum(link.frames_dropped for link in all_links),
            bytes_sent=sum(link.bytes_sent for link in all_links),
            multicasts_sent=self.publisher.sent,
            multicasts_dropped=self.publisher.dropped,
            multicast_bytes=self.publisher.sent_bytes,
            frames_received=self._frames_received,
        )

    def connect(self, node: str, address: str, *, listen: bool = False) -> None:
        """From now on ``node`` is reached at ``address``; with ``listen`` its multicasts are heard, too."""
        if node == self._node:
            return
        problem = problem_with_peer_address(address, may_leave=self._may_leave)
        if problem is not None:
            self._complaints.note("bad address", f"{node} cannot be reached: {problem}")
            return
        if self._keys is not None and node not in self._keys.nodes:
            self._complaints.note("no key", f"{node} cannot be reached: there is no key of it in [node_keys]")
            self._without_key[node] = (address, listen)
            return
        self._listen(node, multicast_address(address) if listen or node in self._voters else None)
        peer, key = self._peers.get(node), 0
        if peer is not None:
            if peer.address == address:
                return
            key = peer.key  # as its multicasts are heard
            self._hang_up(node, peer)
        dealer = sockets.new_dealer(self._context, send_queue=self._queue_frames)
        monitor = sockets.monitor(dealer, DEALER_EVENTS)
        self._peers[node] = _Peer(address, dealer, monitor, LargeFrames(dealer), key, made_at=self._clock())
        self._watch.add(sockets.fd_of(monitor), lambda: self._connection_changed(node, monitor))
        if self._keys is not None:
            curve.show(dealer, self._keys.own)
            curve.expect(dealer, self._keys.nodes[node][key])
        dealer.connect(address)

    def disconnect(self, node: str) -> None:
        """Nothing is sent to ``node`` any more, and its multicasts are not heard; voters stay as they are."""
        self._without_key.pop(node, None)
        peer = self._peers.get(node)
        if peer is not None and node not in self._voters:
            self._listen(node, None)
            self._hang_up(node, peer)

    def change_keys(self, nodes: Names) -> None:
        """The table of keys is another one: who is new in it is connected to, who is out hears and is heard no more.

        Of a node that has changed its key the new one is expected, from now on or, while both are listed, when the one
        that worked does not work any longer.
        """
        if self._keys is None:
            return
        before, self._keys = self._keys.nodes, attrs.evolve(self._keys, nodes=nodes)
        owners_before, self._owners = self._owners, _owners(nodes)
        for key in owners_before.keys() - self._owners.keys():
            self._gate.cut(key)
            self.publisher.cut(key)
        for node, peer in list(self._peers.items()):
            expected, keys = before[node][peer.key], nodes.get(node, ())
            if not keys:
                self._without_key[node] = (peer.address, node in self._heard)
                self._heard.pop(node, None)
                if self._apart is not None:
                    self._apart.forget(node)
                self._hang_up(node, peer)
            elif expected in keys:
                peer.key = keys.index(expected)
            else:
                self._expect(node, peer, 0)
        waiting, self._without_key = self._without_key, {}
        for node, (address, listen) in waiting.items():
            self.connect(node, address, listen=listen)

    def subscribe(self, topic: bytes) -> None:
        """Hear multicasts on ``topic`` from everybody we listen to."""
        if topic not in self._topics:  # libzmq counts: what is subscribed to twice must be given up twice
            self._topics.add(topic)
            self.subscriber.setsockopt(zmq.SUBSCRIBE, topic)
            if self._apart is not None:
                self._apart.subscribe(topic)

    def unsubscribe(self, topic: bytes) -> None:
        """Hear them no longer."""
        if topic in self._topics and topic != DOMAIN_TOPIC:
            self._topics.remove(topic)
            self.subscriber.setsockopt(zmq.UNSUBSCRIBE, topic)
            if self._apart is not None:
                self._apart.unsubscribe(topic)

    def send(self, node: str, frame: bytes) -> bool:
        """Send to one peer; False if it was dropped, because there is no connection or no room."""
        peer = self._peers.get(node)
        if peer is None:
            return False
        try:
            if len(frame) <= FRAME_BYTES_USUAL:
                peer.dealer.send(frame, NOBLOCK)
                has_room = True
            else:
                has_room = peer.large.send(frame)
        except zmq.Again:
            has_room = False
            self._forget_what_came_back(node, peer)
        if has_room:
            peer.sent += 1
            peer.sent_bytes += len(frame)
        else:
            peer.dropped += 1
        return has_room

    def _forget_what_came_back(self, node: str, peer: _Peer) -> None:
        """Nobody answers over a DEALER. If somebody did, libzmq sees no end of that connection before it is read."""
        with contextlib.suppress(zmq.Again):
            for _ in range(FORGOTTEN_PER_SEND):
                peer.dealer.recv(NOBLOCK, copy=False)
                self._complaints.note("bad frame", f"{node} has answered over the connection on which it is spoken to")

    def multicast(self, frame: bytes) -> None:
        """Send to everybody who subscribes to the topic that stands before the frame; slow ones miss it."""
        self.publisher.multicast(frame)

    # --- In ---------------------------------------------------------------------------------------------

    def receive(self, frames_max: int, ready: Container[object] = EVERYTHING) -> list[memoryview]:
        """What has come, from each of the sources in ``ready`` at most ``frames_max`` messages; then see ``is_empty``.

        After ``BYTES_PER_ROUND`` it is enough from one, too.

        The frames are looks into the memory of libzmq, which is free again when they are forgotten.
        """
        found: list[memoryview] = []
        if self._apart is not None:
            multicasts_read = self._receive_apart(found, frames_max, ready is EVERYTHING)
        else:
            multicasts_read = self.subscriber not in ready or self._receive_multicast(found, frames_max)
        directs_read = self.router not in ready or self._receive_direct(found, frames_max)
        self.is_empty = multicasts_read and directs_read
        self._frames_received += len(found)
        return found

    @property
    def has_unread(self) -> bool:
        """Whether ``receive`` may find something of which no socket tells."""
        return self._apart is not None and self._apart.has_unread

    def read_subscriptions(self) -> None:
        """Read and forget who subscribes and unsubscribes; unread they would pile up."""
        self.publisher.read_subscriptions()

    def _receive_multicast(self, found: list[memoryview], frames_max: int) -> bool:
        receive, left = self.subscriber.recv, BYTES_PER_ROUND
        try:
            for _ in range(frames_max):
                if left <= 0:
                    return False
                part = receive(NOBLOCK, copy=False)
                left -= len(part)
                if part.more:
                    left, extra = 0, sockets.drop_rest(self.subscriber)  # of any size
                    self._complaints.note("bad frame", f"a multicast with {extra} parts too many")
                    continue
                found.append(part.buffer[TOPIC_BYTES:])
                if len(found) == 1 and not has_more(self.subscriber):
                    return True
        except zmq.Again:
            return True
        return False

    def _receive_apart(self, found: list[memoryview], frames_max: int, all_of_them: bool) -> bool:
        assert self._apart is not None

        def take(node: str, part: zmq.Frame, receiving: Socket) -> bool:
            if part.more:
                extra = sockets.drop_rest(receiving)  # of any size
                self._complaints.note("bad frame", f"a multicast of {node} with {extra} parts too many")
                return False
            frame = part.buffer[TOPIC_BYTES:]
            if self._is_true(node.encode(), frame):
                found.append(frame)
            return True

        self._apart.receive(frames_max, BYTES_PER_ROUND, take, all_of_them=all_of_them)
        return not self._apart.has_unread

    def _receive_direct(self, found: list[memoryview], frames_max: int) -> bool:
        receive, heard, before, left = self.router.recv, self._gate.heard, len(found), BYTES_PER_ROUND
        try:
            for _ in range(frames_max):
                if left <= 0:
                    return False
                receive(NOBLOCK)  # the routing id, which a ROUTER puts before at least one part
                part = receive(NOBLOCK, copy=False)
                left -= len(part)
                connection = heard(part)
                if part.more:
                    left, extra = 0, sockets.drop_rest(self.router)  # of any size
                    self._complaints.note("bad frame", f"a message from a peer with {extra} parts too many")
                    continue
                if self._keys is not None and not self._is_true(self._owners.get(connection.key, b""), part.buffer):
                    continue
                found.append(part.buffer)
                if len(found) == before + 1 and not has_more(self.router):
                    return True
        except zmq.Again:
            return True
        return False

    def _is_listed(self, key: str) -> bool:
        return key in self._owners

    def _is_true(self, proven: bytes, frame: memoryview) -> bool:
        """Whether a frame is from whom it says; ``proven``: whose key its connection has, b"" if nobody's."""
        claimed = claimed_sender(frame)
        if proven and claimed == proven:
            return True
        who, says = proven.decode() or "nobody known", claimed.decode(errors="replace")
        self._complaints.note("false name", f"a frame from {who} says that it is from {says!r}; it was dropped")
        return False

    # --- Connections ------------------------------------------------------------------------------------

    def _connection_changed(self, node: str, monitor: Socket) -> None:
        for event, value in sockets.monitor_events(monitor):
            peer = self._peers.get(node)
            if peer is None or peer.monitor is not monitor:
                return
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                peer.state = "connected"
                self._again.pop(node, None)
                self.probes.forget(node)
            elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH and value == NOT_LISTED:
                peer.state = "not listed"
                self._again[node] = self._clock() + NOT_LISTED_AGAIN_S
                text = f"{node} does not list the key of this node: it was never listed there, or is not any more"
                self._complaints.note("not listed", text)
            elif event & curve.HANDSHAKE_FAILED:
                peer.state = "not let in"
                self._not_admitted(node, peer)
            else:
                if peer.state in ("connected", "connecting") or event == zmq.EVENT_CLOSED:
                    peer.state = "broken"
                self.probes.connection_broke(node, peer.address)

    @property
    def deadline(self) -> float:
        """When ``run`` has something to do."""
        return min(self.probes.deadline, *self._again.values()) if self._again else self.probes.deadline

    def run(self) -> None:
        """Knock where a connection broke, and where our key was not listed."""
        self.probes.run()
        for node in [node for node, at in self._again.items() if at <= self._clock()]:
            del self._again[node]
            peer = self._peers[node]
            peer.dealer.disconnect(peer.address)
            peer.dealer.connect(peer.address)

    def _refused(self, node: str) -> None:
        peer = self._peers.get(node)
        if peer is not None:
            peer.state = "refused"
        self._tell_refused(node)

    def _not_admitted(self, node: str, peer: _Peer) -> None:
        """Somebody is at the address of ``node`` and does not speak with us; if it has two keys, try the other one."""
        if self._keys is None:
            return  # nothing was asked of it: it ended, or wants keys
        keys, now = self._keys.nodes[node], self._clock()
        if now < peer.tried_since + KEY_TRIAL_S:
            return
        text = f"who is at {peer.address} has not the key of {node} in [node_keys] (or it was just ending)"
        self._complaints.note("not let in", text)
        if len(keys) == 1:
            return
        peer.tried_since = now
        self._expect(node, peer, (peer.key + 1) % len(keys))

    def _expect(self, node: str, peer: _Peer, key: int) -> None:
        """Connect anew, to who has this one of the keys of ``node``."""
        assert self._keys is not None
        peer.key = key
        self._again.pop(node, None)
        peer.dealer.disconnect(peer.address)
        curve.expect(peer.dealer, self._keys.nodes[node][key])
        peer.dealer.connect(peer.address)
        heard = self._heard.get(node)
        if heard is not None and self._apart is not None:
            self._apart.listen(node, heard, self._keys.nodes[node][key])

    def _listen(self, node: str, endpoint: str | None) -> None:
        """Hear the multicasts of ``node`` from ``endpoint`` and from nowhere else.

        Of two names with one endpoint one is out of date. It is connected to once, and until neither is wanted:
        connected twice, everything from there would come twice.
        """
        if self._keys is not None:
            peer = self._peers.get(node)
            self._listen_apart(node, endpoint, self._keys.nodes[node][0 if peer is None else peer.key])
            return
        before = self._heard.pop(node, None)
        if before is not None and before != endpoint and before not in self._heard.values():
            self.subscriber.disconnect(before)
        if endpoint is not None:
            if before != endpoint and endpoint not in self._heard.values():
                self.subscriber.connect(endpoint)
            self._heard[node] = endpoint

    def _listen_apart(self, node: str, endpoint: str | None, key: str) -> None:
        """The same with keys: everybody has a socket of its own, and of two names with one endpoint one has the key."""
        assert self._apart is not None
        if endpoint is None:
            self._heard.pop(node, None)
            self._apart.forget(node)
        elif self._heard.get(node) != endpoint:
            self._heard[node] = endpoint
            self._apart.listen(node, endpoint, key)

    def _hang_up(self, node: str, peer: _Peer, linger_ms: int = 0) -> None:
        del self._peers[node]
        before = self._hung_up
        self._hung_up = LinkStatistics(
            "", "", False, before.frames_sent + peer.sent, before.frames_dropped + peer.dropped, "connecting",
            before.bytes_sent + peer.sent_bytes,
        )  # fmt: skip
        self.probes.forget(node)
        self._again.pop(node, None)
        self._watch.remove(sockets.fd_of(peer.monitor))
        peer.dealer.disable_monitor()
        peer.monitor.close(linger=0)
        peer.dealer.close(linger=linger_ms)

    def close(self, linger_ms: int = 0) -> None:
        """Close everything; frames on their way get ``linger_ms`` to leave."""
        for node, peer in list(self._peers.items()):
            self._hang_up(node, peer, linger_ms)
        self.probes.close()
        while self._bound:
            sockets.remove_socket_file(self._bound.pop())
        if self._apart is not None:
            self._apart.close()
        self.subscriber.close(linger=0)
        self.publisher.close(linger_ms)
        self._gate.close()
        self.router.close(linger=0)


def _owners(nodes: Names) -> dict[str, bytes]:
    """Whose each key is."""
    return {key: node.encode() for node, keys in nodes.items() for key in keys}
