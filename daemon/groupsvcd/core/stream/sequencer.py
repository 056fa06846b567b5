"""The leader's pen: gives numbers, and learns what is stable.

A leads with B and C. Whatever reaches A within one step is numbered in one go, appended to A's own log and
sent to B and C in one Order; each says ``Held`` when its copy is safe, A too. The k-th largest of these
numbers is stable: k servers have everything up to there. It rides on the next Order; if there is none, an
Order without entries tells it at once. Beats go on, slowly, to whoever lags, so that a lost tail is noticed.

If two are enough and memory is all that counts, B needs not be told: it holds an entry, and A held it before B could
hear of it. So A says in an Order up to where it holds the stream itself (``nearly``), and B delivers at once. Only A
does not know of it yet; but no recovery asks what A knew, it asks who has the entry.
"""

from __future__ import annotations

import math
from zlib import crc32

from ..invariants import invariant
from ..parameters import Timers
from ..peer_messages import Beat, Held, Order
from ..views import Views
from .duplicates import DuplicateFilter
from .entries import Piece, Run, encode_entry, encode_reference, length_of, one_by_one, size_of
from .server import Server

ORDER_BYTES_MAX = 224 * 1024
"""Entries of one Order: with what is around them they stay below the usual size of a frame."""


class Sequencer:
    """Orders the entries of one epoch."""

    ack_required = False  # whether everybody is asked to say once it has what leaves now; servers do so anyway

    def __init__(self, server: Server, epoch: int, k: int, origins: DuplicateFilter, timers: Timers) -> None:
        self.turn = server.turn
        self.server = server
        self.carrier = server.carrier
        self.epoch = epoch
        self.origins = origins
        self._k = k
        self._timers = timers
        self._held: dict[str, int] = {}
        self._delivered: dict[str, int] = {}
        self._fresh: list[Piece] = []
        self._fresh_count = 0  # entries in them
        self._stable_told = 0
        self._nearly_told = 0  # up to where a server that holds the entries knows that they are stable
        self._beat_at = math.inf
        self.discard = 0
        self.seen = 0  # every member of a group has delivered so much
        self.began = 0  # number of the first entry of a group's view
        self.views: Views = ()  # of a group's log, this one included, for those who never heard of it
        self.servers_suffice = False  # whether nobody but servers follows the stream

    @property
    def next_seq(self) -> int:
        """The number the next entry gets."""
        return self.server.log.last + self._fresh_count + 1

    def order(self, origin: str, incarnation: int, n: int, body: bytes) -> int:
        """Give the next number; the entry leaves with ``flush``."""
        seq = self.next_seq
        entry = encode_entry(origin, incarnation, n, body)
        if origin:
            self.origins.ordered((origin, incarnation), n, seq)
        self._fresh.append(entry)
        self._fresh_count += 1
        if self.carrier.journals_entries:
            self.turn.journal("ordered", group=self.server.stream, epoch=self.epoch, seq=seq, crc=crc32(entry),
                              origin=f"{origin}/{incarnation}" if origin else "", n=n)  # fmt: skip
        return seq

    def order_run(self, origin: str, incarnation: int, first_n: int, bodies: tuple[bytes, ...]) -> None:
        """Give the next numbers to what one origin submitted in a row."""
        seq, count = self.next_seq, len(bodies)
        run = Run(origin, incarnation, first_n, bodies)
        self._fresh.append(run)
        self._fresh_count += count
        self.origins.ordered((origin, incarnation), first_n + count - 1, seq + count - 1)
        if self.carrier.journals_entries:
            name = f"{origin}/{incarnation}"
            for position, entry in enumerate(one_by_one((run,))):
                self.turn.journal("ordered", group=self.server.stream, epoch=self.epoch, seq=seq + position,
                                  crc=crc32(entry), origin=name, n=first_n + position)  # fmt: skip

    def order_reference(self, origin: str, incarnation: int, n: int, size: int, crc: int) -> None:
        """Give the next number to a payload that travels apart."""
        self.turn.mark("large-ordered")
        seq = self.next_seq
        entry = encode_reference(origin, incarnation, n, size, crc)
        self._fresh.append(entry)
        self._fresh_count += 1
        self.origins.ordered((origin, incarnation), n, seq)
        if self.carrier.journals_entries:
            self.turn.journal("ordered", group=self.server.stream, epoch=self.epoch, seq=seq, crc=crc32(entry),
                              origin=f"{origin}/{incarnation}", n=n)  # fmt: skip

    def flush(self) -> None:
        """Send everything numbered in this step, in one Order if it fits."""
        if not self._fresh:
            return
        server, fresh = self.server, tuple(self._fresh)
        first, last = server.log.last + 1, self.next_seq - 1
        self._fresh.clear()
        self._fresh_count = 0
        invariant(server.log.accepted == self.epoch, f"ordering in {self.epoch} on a log of {server.log.accepted}")
        if not self.carrier.journals_entries:
            self.turn.audit("ordered", group=server.stream, epoch=self.epoch, seq=last, first=first)
        self._stable_told = server.stable
        kept_bytes, tally = server.log.bytes, self.turn.tally
        server.append_own(fresh)
        tally.ordered_entries += last - first + 1
        tally.ordered_bytes += server.log.bytes - kept_bytes
        if not self.carrier.durable:
            self._hold_own()
        for pieces in _that_fit(fresh):
            self.carrier.publish(self._order_of(first, pieces))
            first += sum(map(length_of, pieces))
        self._beat_at = self.turn.now + self._timers.beat_interval

    def _order_of(self, first: int, entries: tuple[Piece, ...]) -> Order:
        return Order(
            self.server.stream, self.epoch, first, entries, self._stable_told, self.discard, self.began, self._nearly(),
            self.ack_required,
        )  # fmt: skip

    def _nearly(self) -> int:
        """Up to where we hold the stream, if one more server is enough and our memory counts; about to be told."""
        if self._k == 2 and not self.carrier.durable:
            self._nearly_told = self.server.held_upto
        return self._nearly_told

    def on_held(self, sender: str, held: Held) -> None:
        """A server says what it has."""
        if held.epoch == self.epoch and sender in self.server.servers:
            self.holds(sender, held.upto)
            self.delivered_by(sender, held.delivered)

    def delivered_by(self, name: str, upto: int) -> None:
        """``name`` has delivered everything up to ``upto``."""
        if upto > self._delivered.get(name, 0):
            self._delivered[name] = upto

    def holds(self, name: str, upto: int) -> None:
        """``name`` has everything up to ``upto``."""
        if upto > self._held.get(name, 0):
            self._held[name] = upto
            self._advance()

    def _hold_own(self) -> None:
        """The leader's own copy is safe at once. What that makes stable is told after what is being sent now."""
        upto = self.server.held_upto
        if upto > self._held.get(self.turn.node, 0):
            self._held[self.turn.node] = upto
            if self._stable_now > self.server.stable:
                self.turn.round_trip.append(self._advance)

    def held_by(self, name: str) -> int:
        """Up to where ``name`` holds the stream, as far as it said in this epoch."""
        return self._held.get(name, 0)

    def forget(self, name: str) -> None:
        """A server came back as another incarnation: it has to say anew what it holds."""
        self._held.pop(name, None)
        self._delivered.pop(name, None)
        self._beat_at = min(self._beat_at, self.turn.now + self._timers.beat_interval)

    @property
    def _stable_now(self) -> int:
        numbers = sorted(self._held.values(), reverse=True)
        return numbers[self._k - 1] if len(numbers) >= self._k else 0

    def _advance(self) -> None:
        stable = self._stable_now
        if stable > self.server.stable and self.server.promised == self.epoch:
            self.turn.audit("stable", group=self.server.stream, epoch=self.epoch, seq=stable)
            self.server.announce_stable(stable)

    def tell_stable(self) -> None:
        """At the end of a step: what became stable and did not ride on an Order is told at once."""
        server = self.server
        if server.replica.stable_said > self._stable_told < server.stable:  # what is stable here was said to be
            self._stable_told = server.stable
            if any(name not in self._held for name in server.servers):
                self.carrier.publish(self.beat())  # which is answered
                return
            self._beat_at = self.turn.now + self._timers.beat_interval
            if not self.servers_suffice or server.stable > self._nearly_told:
                self.carrier.publish(self._order_of(server.log.last + 1, ()))

    def _lagging(self) -> tuple[str, ...]:
        last, stable = self.server.log.last, self.server.stable
        return tuple(
            name
            for name in self.server.servers
            if self._held.get(name, 0) < last or self._delivered.get(name, 0) < stable
        )

    def beat(self) -> Beat:
        """Where the stream stands."""
        server = self.server
        self._beat_at = self.turn.now + self._timers.beat_interval
        seq, size, crc = server.replica.checkpoints.advertised
        return Beat(
            server.stream, self.epoch, server.log.last, server.stable, seq, self.discard, self.began, self._nearly(),
            views=self.views, checkpoint_size=size, checkpoint_crc=crc, seen=self.seen,
        )  # fmt: skip

    @property
    def deadline(self) -> float:
        """When the next Beat is due."""
        return self._beat_at

    def tick(self) -> None:
        """Remind those who lag."""
        if self.turn.now >= self._beat_at:
            lagging = [name for name in self._lagging() if name != self.turn.node]
            if lagging:
                beat = self.beat()
                for name in lagging:
                    self.carrier.vouch(name, beat)
            else:
                self._beat_at = math.inf


def _that_fit(pieces: tuple[Piece, ...]) -> list[tuple[Piece, ...]]:
    """The entries in parts of at most ``ORDER_BYTES_MAX``, or of one piece; no Submit, and so no run, is larger."""
    if len(pieces) == 1:
        return [pieces]
    parts: list[tuple[Piece, ...]] = []
    start = room = 0
    for position, piece in enumerate(pieces):
        size = size_of(piece)
        if size > room and position > start:
            parts.append(pieces[start:position])
            start = position
        room = ORDER_BYTES_MAX - size if start == position else room - size
    return [*parts, pieces[start:]]
