"""Frames between daemons.

Each daemon listens at two endpoints: a ROUTER, into which all others push what is for this node alone, and an
XPUB, to which all others subscribe. It has one DEALER per peer for what goes out, and one SUB for the
multicasts of every voter:

    A.DEALER(B) ────────► B.ROUTER          A.XPUB ────────► B.SUB, C.SUB

Frames may be lost and the protocol repeats what matters, so nothing ever waits here: to a peer that is not
connected nothing is sent at all (``IMMEDIATE``: no queue of stale frames greets a node that comes back), and a
full queue drops. When the connection of a DEALER breaks, its monitor tells and ``Probes`` goes and knocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import zmq

from ..core.peer_messages import DOMAIN_TOPIC
from . import sockets
from .addresses import multicast_address, problem_with_peer_address
from .complaints import Complaints
from .probes import Probes
from .sockets import NOBLOCK, RCVMORE, SNDMORE_NOBLOCK, Context, Socket
from .watch import Watch

MULTICAST_QUEUE_FRAMES = 1_000
DEALER_EVENTS = int(zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_HANDSHAKE_SUCCEEDED)


@attrs.define
class _Peer:
    address: str
    dealer: Socket
    monitor: Socket


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
    ) -> None:
        self._context = context
        self._node = node
        self._voters = dict(voters)
        self._watch = watch
        self._complaints = complaints
        self._queue_frames = queue_frames
        self._insecure = insecure
        self._peers: dict[str, _Peer] = {}
        self._bound: list[str] = []
        self.is_empty = True
        self.probes = Probes(watch, clock, refused)
        self.router = sockets.new_socket(context, zmq.ROUTER, send_queue=queue_frames)
        self.router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self.publisher = sockets.new_socket(context, zmq.XPUB, send_queue=MULTICAST_QUEUE_FRAMES)
        self.publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.subscriber = sockets.new_socket(context, zmq.SUB, send_queue=queue_frames)
        self.subscriber.setsockopt(zmq.SUBSCRIBE, DOMAIN_TOPIC)
        sockets.set_heartbeat(self.subscriber)
        try:
            for listening, its_address in ((self.router, address), (self.publisher, multicast_address(address))):
                sockets.bind(listening, its_address)
                self._bound.append(its_address)
        except BaseException:
            self.close()
            raise
        for name, its_address in voters.items():
            if name != node:
                self.subscriber.connect(multicast_address(its_address))
                self.connect(name, its_address)

    # --- Out --------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Everybody we can send to."""
        return list(self._peers)

    def connect(self, node: str, address: str) -> None:
        """From now on ``node`` is reached at ``address``."""
        peer = self._peers.get(node)
        if node == self._node or (peer is not None and peer.address == address):
            return
        problem = problem_with_peer_address(address, insecure=self._insecure)
        if problem is not None:
            self._complaints.note("bad address", f"{node} cannot be reached: {problem}")
            return
        if peer is not None:
            self._disconnect(node, peer)
        dealer = sockets.new_socket(self._context, zmq.DEALER, send_queue=self._queue_frames, receive_queue=1)
        dealer.setsockopt(zmq.IMMEDIATE, 1)
        sockets.set_heartbeat(dealer)
        monitor = sockets.monitor(dealer, DEALER_EVENTS)
        self._peers[node] = _Peer(address, dealer, monitor)
        self._watch.add(sockets.fd_of(monitor), lambda: self._connection_changed(node, monitor))
        dealer.connect(address)
        if node in self._voters and self._voters[node] != address:
            self.subscriber.disconnect(multicast_address(self._voters[node]))
            self._voters[node] = address
            self.subscriber.connect(multicast_address(address))

    def send(self, node: str, frame: bytes) -> bool:
        """Send to one peer; False if it was dropped, because there is no connection or no room."""
        peer = self._peers.get(node)
        if peer is None:
            return False
        try:
            peer.dealer.send(frame, NOBLOCK)
        except zmq.Again:
            return False
        return True

    def multicast(self, topic: bytes, frame: bytes) -> None:
        """Send to everybody who subscribes to ``topic``; slow ones miss it."""
        self.publisher.send(topic, SNDMORE_NOBLOCK)
        self.publisher.send(frame, NOBLOCK)

    # --- In ---------------------------------------------------------------------------------------------

    def receive(self, frames_max: int) -> list[bytes]:
        """What has come, at most ``frames_max`` messages from each of the two sources; then see ``is_empty``."""
        found: list[bytes] = []
        multicasts_read = self._receive_multicast(found, frames_max)
        self.is_empty = self._receive_direct(found, frames_max) and multicasts_read
        return found

    def read_subscriptions(self) -> None:
        """Read and forget who subscribes and unsubscribes; unread they would pile up."""
        try:
            while True:
                self.publisher.recv(NOBLOCK)
        except zmq.Again:
            pass

    def _receive_multicast(self, found: list[bytes], frames_max: int) -> bool:
        receive, option = self.subscriber.recv, self.subscriber.getsockopt
        try:
            for _ in range(frames_max):
                receive(NOBLOCK)
                if not option(RCVMORE):
                    self._complaints.note("bad frame", "a multicast without content")
                    continue
                frame = receive(NOBLOCK)
                if option(RCVMORE):
                    extra = sockets.drop_rest(self.subscriber)
                    self._complaints.note("bad frame", f"a multicast with {extra} parts too many")
                    continue
                found.append(frame)
        except zmq.Again:
            return True
        return False

    def _receive_direct(self, found: list[bytes], frames_max: int) -> bool:
        receive, option = self.router.recv, self.router.getsockopt
        try:
            for _ in range(frames_max):
                receive(NOBLOCK)  # the routing id, which a ROUTER puts before at least one part
                frame = receive(NOBLOCK)
                if option(RCVMORE):
                    extra = sockets.drop_rest(self.router)
                    self._complaints.note("bad frame", f"a message from a peer with {extra} parts too many")
                    continue
                found.append(frame)
        except zmq.Again:
            return True
        return False

    # --- Connections ------------------------------------------------------------------------------------

    def _connection_changed(self, node: str, monitor: Socket) -> None:
        for event, _ in sockets.monitor_events(monitor):
            peer = self._peers.get(node)
            if peer is None or peer.monitor is not monitor:
                return
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self.probes.forget(node)
            else:
                self.probes.connection_broke(node, peer.address)

    def _disconnect(self, node: str, peer: _Peer, linger_ms: int = 0) -> None:
        del self._peers[node]
        self.probes.forget(node)
        self._watch.remove(sockets.fd_of(peer.monitor))
        peer.dealer.disable_monitor()
        peer.monitor.close(linger=0)
        peer.dealer.close(linger=linger_ms)

    def close(self, linger_ms: int = 0) -> None:
        """Close everything; frames on their way get ``linger_ms`` to leave."""
        for node, peer in list(self._peers.items()):
            self._disconnect(node, peer, linger_ms)
        self.probes.close()
        while self._bound:
            sockets.remove_socket_file(self._bound.pop())
        self.subscriber.close(linger=0)
        self.publisher.close(linger=linger_ms)
        self.router.close(linger=0)
