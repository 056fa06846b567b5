"""The roll of a group: who carries it, in join order, and what every origin has submitted.

It is a function of the stream and of nothing else, so it is the same at every member after the same entry, goes into
checkpoints, and tells a new leader all it needs: whom it leads, and which submissions are in the log already.

An origin's row is dropped when its node's failure was ordered, or when its last entry lies ``logical_lifetime`` numbers
back and it is no member; what it submits later is too old and is never numbered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from groupsvc.wire.codec import Reader

from ..stream.entries import Run
from ..views import NodeId, Server, Views
from .controls import AnyControl, NodeInserted, NodeRemoved, NodesFailed, ViewStarted

PRUNE_EVERY = 1_024
"""Entries after which origins that were silent for a lifetime are looked for; at the same ones everywhere."""

VIEWS_KEPT = 16
"""Of so many views that may have lost something the roll knows where they began: who missed more missed too much."""

NO_VIEW: Views = ((0, 0),)
"""Before any view that could have lost something."""


class StoredRoll(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The roll in a checkpoint."""

    epoch: int
    leader: str
    servers: tuple[Server, ...]
    k: int
    fence: int
    members: tuple[tuple[str, int, int], ...]
    origins: tuple[tuple[str, int, int, int], ...]
    views: Views = NO_VIEW
    began: int = 0


_encoder = msgspec.msgpack.Encoder()
_reader: Reader[StoredRoll] = Reader(StoredRoll, "roll of a group")


class Roll:
    """Members, servers and origins after the entry that was applied last."""

    def __init__(self, logical_lifetime: int, *, fast: bool = False) -> None:
        self.epoch = 0
        self.began = 0  # the number of the ViewStarted of that epoch
        self.leader = ""
        self.servers: tuple[Server, ...] = ()
        self.k = 0
        self.fence = 0
        self.members: dict[NodeId, int] = {}  # in join order, each with the term it was inserted for
        self.origins: dict[NodeId, tuple[int, int]] = {}  # last number, and the entry it became
        self.views = NO_VIEW  # the newest ones that may have lost something: epoch, and the number of its ViewStarted
        self._fast = fast
        self._lifetime = logical_lifetime

    @property
    def server_names(self) -> tuple[str, ...]:
        """The nodes that hold the stream in the view that was started last."""
        return tuple(name for name, _ in self.servers)

    def relays(self, leader: str, me: str) -> tuple[str, ...]:
        """The servers that may pass on what does not reach the leader."""
        return tuple(name for name in self.server_names if name not in (leader, me))

    def note(self, first_seq: int, runs: Sequence[Run]) -> dict[NodeId, int]:
        """What origins submitted has become entries ``first_seq`` and so on; returns the newest number of each."""
        newest: dict[NodeId, int] = {}
        for run in runs:
            origin = (run.origin, run.incarnation)
            last_seq, last_n = first_seq + len(run.bodies) - 1, run.n + len(run.bodies) - 1
            for seq in range(-first_seq % PRUNE_EVERY + first_seq, last_seq + 1, PRUNE_EVERY):
                self.origins[origin] = (last_n - (last_seq - seq), seq)
                self.prune(seq)
            self.origins[origin] = (last_n, last_seq)
            newest[origin] = last_n
            first_seq = last_seq + 1
        return newest

    def prune(self, seq: int) -> None:
        """At entry ``seq``: forget the origins that were silent for a lifetime."""
        too_old = [
            origin
            for origin, (_, last) in self.origins.items()
            if seq - last > self._lifetime and origin not in self.members
        ]
        for origin in too_old:
            del self.origins[origin]

    def apply(self, seq: int, control: AnyControl) -> None:
        """Entry ``seq`` changes the view or the members."""
        if isinstance(control, ViewStarted):
            self.views = self.views_after(self.views, (self.epoch, self.began), seq, control)
            self.epoch, self.began, self.leader = control.epoch, seq, control.leader
            self.servers, self.k = control.servers, control.k
            self.fence = control.fence
        elif isinstance(control, NodeInserted):
            self.members[control.node] = control.term
            n, last = self.origins.get(control.node, (control.last_n, seq))
            self.origins[control.node] = (max(n, control.last_n), last)
            self.fence += 1
        elif isinstance(control, NodeRemoved):
            self.members.pop(control.node, None)
            self.fence += 1
        elif isinstance(control, NodesFailed):
            for node in control.nodes:
                self.members.pop(node, None)
                self.origins.pop(node, None)
            self.fence += 1
        if seq % PRUNE_EVERY == 0:
            self.prune(seq)

    def views_after(self, views: Views, newest: tuple[int, int], seq: int, started: ViewStarted) -> Views:
        """``views``, and the one that entry ``seq`` starts, if that may have lost something that was delivered.

        In a safe group that is a forced view only; in a fast one any, for what only the dead have delivered is lost. A
        forced view may go on from an old log, and lack views that others followed: so the ``newest`` that it has is
        listed with it.
        """
        if not (self._fast or started.tail_may_be_lost):
            return views
        before = (newest,) if newest[0] and newest[0] != views[-1][0] else ()
        return (*views, *before, (started.epoch, seq))[-VIEWS_KEPT:]

    @property
    def beginning(self) -> int:
        """The newest view that may have lost something, by its epoch: what was delivered is of that one, or later."""
        return self.views[-1][0]

    @property
    def shown(self) -> dict[str, Any]:
        """For a line of history."""
        members = [list(node) for node in self.members]
        return {"members": members, "era": self.beginning, "leader": self.leader, "fence": self.fence}

    def snapshot(self) -> bytes:
        """Everything, as bytes."""
        members = tuple((name, inc, term) for (name, inc), term in self.members.items())
        origins = tuple((name, inc, *row) for (name, inc), row in sorted(self.origins.items()))
        stored = StoredRoll(
            self.epoch, self.leader, self.servers, self.k, self.fence, members, origins, self.views, self.began
        )
        return _encoder.encode(stored)

    def restore(self, state: bytes) -> None:
        """Become what a snapshot was taken of; raises ``PeerProtocolError`` if it is none, and stays what it is."""
        stored = _reader.read(state)
        self.epoch, self.leader, self.servers, self.k = stored.epoch, stored.leader, stored.servers, stored.k
        self.fence, self.views, self.began = stored.fence, stored.views, stored.began
        self.members = {(name, inc): term for name, inc, term in stored.members}
        self.origins = {(name, inc): (n, seq) for name, inc, n, seq in stored.origins}


def epoch_in(state: bytes) -> int:
    """The newest view as a snapshot of the roll has it."""
    return _reader.read(state).epoch


class Checkpoint(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a copy of the stream can go on from: the roll and, if the application has one, its state."""

    roll: bytes
    application: bytes


_checkpoint_reader: Reader[Checkpoint] = Reader(Checkpoint, "checkpoint of a group")


def encode_checkpoint(roll: bytes, application: bytes) -> bytes:
    """The bytes of a checkpoint."""
    return _encoder.encode(Checkpoint(roll, application))


def decode_checkpoint(state: bytes) -> Checkpoint:
    """The checkpoint that the bytes stand for; raises ``PeerProtocolError``."""
    return _checkpoint_reader.read(state)
