"""References in a log and the payloads they refer to: what is complete, what is missing, and whom to ask.

A log with a reference whose payload has not come yet is *complete* only up to the entry before it. Whoever holds,
reports or delivers does so up to there. A missing payload is asked for like a missing entry: after a little while,
because it may be on its way; many in one question; the servers in turn and the leader last (see ``asking``); backing
off, with some randomness (SAM-06). A payload that is here is never asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

from ..parameters import Timers
from ..peer_messages import Data, DataAsk
from ..tally import add
from ..views import NodeId
from .carrier import Carrier
from .entries import Piece, Reference, decode_reference, fits, is_reference, length_of, payload_of
from .log import Log
from .payloads import PayloadId, Payloads

ASKED_AT_ONCE_MAX = 64
"""Payloads in one question."""

ANSWER_BYTES_MAX = 4 * 1024 * 1024
"""Payloads in answer to one question; the rest is asked for again."""


class Library:
    """The payloads of one log."""

    def __init__(self, carrier: Carrier, log: Log, timers: Timers, rng: Random) -> None:
        self.payloads = Payloads()
        self._carrier = carrier
        self._log = log
        self._timers = timers
        self._rng = rng
        self._references: dict[int, PayloadId] = {}
        self.lacking: dict[PayloadId, int] = {}  # in the order of their entries
        self.asked = 0  # how often for what is lacking now
        self.ask_at = math.inf
        self.first_wait: Callable[[], float] = lambda: timers.repair_delay
        self.numbered_upto: Callable[[NodeId], int] = lambda origin: 0  # what of an origin the host has had

    @property
    def complete_upto(self) -> int:
        """The number up to which no payload is missing."""
        if self.lacking:
            return next(iter(self.lacking.values())) - 1
        return self._log.last

    def lacks(self, payload_id: PayloadId) -> bool:
        """Whether an entry of the log waits for this payload."""
        return payload_id in self.lacking

    def wants(self, payload_id: PayloadId) -> bool:
        """Whether an entry waits for this payload, or may come that does."""
        return self.lacks(payload_id) or payload_id[2] > self.numbered_upto(payload_id[:2])

    # --- The log changes ---

    def appended(self, first_seq: int, entries: Sequence[Piece]) -> None:
        """Entries are in the log now."""
        for piece in entries:
            if isinstance(piece, bytes) and is_reference(piece):
                self._refer(first_seq, decode_reference(piece))
            first_seq += length_of(piece)

    def _refer(self, seq: int, reference: Reference) -> None:
        payload_id = (reference.origin, reference.incarnation, reference.n)
        self._references[seq] = payload_id
        payload = self.payloads.get(payload_id)
        if payload is not None and not fits(reference, payload):
            self.payloads.drop(payload_id)  # the number was given anew, and this came under it before
            payload = None
        if payload is not None:
            self.payloads.ordered(payload_id)
        else:
            self.lacking[payload_id] = seq
            if self.ask_at == math.inf:
                self.ask_at = self._carrier.turn.now + self.first_wait()

    def switched(self, keep_upto: int, entries: Sequence[Piece]) -> None:
        """The log was cut behind ``keep_upto`` and goes on with ``entries``."""
        for seq in [seq for seq in self._references if seq > keep_upto]:
            payload_id = self._references.pop(seq)
            self.lacking.pop(payload_id, None)
            self.payloads.unorder(payload_id)
        self.appended(keep_upto + 1, entries)

    def dropped(self, upto: int) -> None:
        """Entries up to ``upto`` are no longer kept."""
        for seq in [seq for seq in self._references if seq <= upto]:
            payload_id = self._references.pop(seq)
            self.lacking.pop(payload_id, None)
            self.payloads.drop(payload_id)

    def lacking_in(self, after: int, upto: int, entries: list[bytes]) -> dict[PayloadId, int]:
        """Payloads that a log of our entries beyond ``after`` up to ``upto``, and then these, would lack, in order."""
        missing = {payload_id: seq for payload_id, seq in self.lacking.items() if after < seq <= upto}
        for seq, entry in enumerate(entries, max(after, upto) + 1):
            if is_reference(entry):
                payload = self.payloads.get(payload_of(entry))
                if payload is None or not fits(decode_reference(entry), payload):
                    self.payloads.drop(payload_of(entry))
                    missing[payload_of(entry)] = seq
        return missing

    # --- Payloads come and go ---

    def take(self, data: Data) -> bool:
        """A payload has come; whether it is new here, and of use."""
        payload_id = (data.origin, data.incarnation, data.n)
        seq = self.lacking.get(payload_id)
        if not self.wants(payload_id):
            return False
        if seq is not None and not fits(decode_reference(self._log.entry(seq)), data.payload):
            return False
        if seq is None:
            return self.payloads.put(payload_id, data.payload)
        del self.lacking[payload_id]
        self.payloads.put_ordered(payload_id, data.payload)
        self.asked = 0
        if not self.lacking:
            self.ask_at = math.inf
        return True

    def drop_numbered(self) -> None:
        """The host has gone on behind entries that we never saw: their payloads wait for nothing any more."""
        for payload_id in self.payloads.unordered:
            if not self.wants(payload_id):
                self.payloads.drop(payload_id)

    def answer(self, sender: str, ask: DataAsk) -> None:
        """Somebody misses payloads."""
        size = 0
        for payload_id in ask.payloads:
            payload = self.payloads.get(payload_id)
            if payload is not None and (size == 0 or size + len(payload) <= ANSWER_BYTES_MAX):
                size += len(payload)
                add(self._carrier.turn.tally.retransmits, "payload")
                self._carrier.send(sender, Data(self._carrier.stream, *payload_id, payload))

    def ask(self, whom: str, payload_ids: list[PayloadId]) -> None:
        """Ask one node for these."""
        self._carrier.send(whom, DataAsk(self._carrier.stream, tuple(payload_ids[:ASKED_AT_ONCE_MAX])))

    def next_ask(self) -> tuple[list[PayloadId], int] | None:
        """If it is time to ask: what for, and how often it was asked before; plans the next time."""
        now = self._carrier.turn.now
        if now < self.ask_at:
            return None
        if not self.lacking:
            self.asked = 0
            self.ask_at = math.inf
            return None
        attempt = self.asked
        self.asked += 1
        wait = min(self._timers.repair_delay * 2 ** min(attempt + 1, 10), self._timers.repeat_max)
        self.ask_at = now + wait * (1 + 0.5 * self._rng.random())
        return list(self.lacking)[:ASKED_AT_ONCE_MAX], attempt
