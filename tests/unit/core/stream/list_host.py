"""The simplest state machine a stream can drive: a list of what was delivered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

from groupsvcd.core.effects import Effect
from groupsvcd.core.parameters import Timers
from groupsvcd.core.records import Record, StoredStream
from groupsvcd.core.stream.carrier import Carrier
from groupsvcd.core.stream.delivery import Holders
from groupsvcd.core.stream.entries import Run, encode_entry, one_by_one
from groupsvcd.core.stream.replica import Replica, Retention
from groupsvcd.core.turn import Turn


def entry(text: str) -> bytes:
    """An entry of the leader's own with this body."""
    return encode_entry("", 0, 0, text.encode())


def entries(texts: str) -> tuple[bytes, ...]:
    """One entry per letter."""
    return tuple(entry(letter) for letter in texts)


def state_after(log: Sequence[bytes]) -> bytes:
    """The checkpoint of a ``ListHost`` that has delivered all of this."""
    return json.dumps([text.hex() for text in log]).encode()


class ListHost:
    """Delivers into a list; its checkpoint is the list."""

    def __init__(self) -> None:
        self.delivered: list[bytes] = []
        self.is_cheap = True

    def deliver(self, first_seq: int, runs: list[Run]) -> None:
        """The next entries; none is skipped and none comes twice."""
        assert first_seq == len(self.delivered) + 1, (first_seq, len(self.delivered))
        self.delivered += one_by_one(runs)

    def restore(self, seq: int, state: bytes) -> None:
        """Become what the checkpoint says."""
        self.delivered = [bytes.fromhex(text) for text in json.loads(state)]
        assert seq == len(self.delivered)

    def snapshot(self) -> bytes:
        """All of it."""
        return state_after(self.delivered)

    @property
    def can_snapshot(self) -> bool:
        """The list is here."""
        return True

    @property
    def snapshots_cheaply(self) -> bool:
        """It is only a test."""
        return self.is_cheap

    def holders(self) -> Holders:
        """No disks."""
        return Holders()

    def switching(self, epoch: int) -> tuple[Record, ...]:
        """Nothing besides."""
        return ()


def replica_of(
    turn: Turn, host: ListHost, stored: StoredStream, servers: Sequence[str], *, carrier: type[Carrier] = Carrier,
    until_discarded: bool = False, **retention: int,
) -> Replica:  # fmt: skip
    """A copy of stream 0 that tells the servers one by one and writes through the turn."""
    keeps = {"checkpoint_every": 1_000, "margin": 200, "block_bytes": 1024 * 1024, **retention}
    names = tuple(servers)
    kept = Retention(**keeps, until_discarded=until_discarded)
    return Replica(carrier(turn, 0, names), stored, names, kept, Timers(), Random(1), host)


def drain(turn: Turn) -> list[Effect]:
    """The effects so far."""
    effects, turn.effects = turn.effects, []
    return effects
