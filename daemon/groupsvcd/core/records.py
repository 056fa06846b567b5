"""What a daemon writes to its state directory, as values.

The engine never touches a disk. It hands these records to the driver inside ``Persist`` effects; the
journal thread (or the simulated disk) applies them in order, one transaction per batch, and on the next
start gives back a ``Stored``: the state that all synced records add up to.

Voters write the domain stream in step with the protocol, and every node with a state directory the streams of the
durable groups it is a server of. A node without one writes nothing at all.
"""

from __future__ import annotations

import attrs

NO_DOMAIN = bytes(16)
"""The domain id of a node that has not joined or formed a domain yet."""


@attrs.frozen
class NodeRecord:
    """Who this node is: its newest incarnation and the domain it belongs to."""

    incarnation: int
    domain: bytes


@attrs.frozen
class OptionsRecord:
    """What the domain says about the options of its daemons: (key, value, version), all of them, by key."""

    options: tuple[tuple[str, str, int], ...]


@attrs.frozen
class PromiseRecord:
    """From now on this server refuses every epoch below ``epoch`` on ``stream``."""

    stream: int
    epoch: int


@attrs.frozen
class AppendRecord:
    """``entries`` follow the log of ``stream`` from ``first_seq`` on, without a gap."""

    stream: int
    first_seq: int
    entries: tuple[bytes, ...]


@attrs.frozen
class OpenRecord:
    """The log changes over to ``epoch`` in one step.

    What is stored up to ``keep_upto`` stays, everything above goes, ``entries`` follow from
    ``keep_upto + 1`` on. The promise and the accepted epoch both become ``epoch``.
    """

    stream: int
    epoch: int
    keep_upto: int
    entries: tuple[bytes, ...]


@attrs.frozen
class CheckpointRecord:
    """The state after entry ``seq`` is ``state``; entries up to ``drop_upto`` are no longer needed.

    ``drop_upto`` is at most ``seq``. A log that ends before ``seq`` (a replica that caught up from
    another's checkpoint) is emptied and begins at ``seq + 1``.
    """

    stream: int
    seq: int
    state: bytes
    drop_upto: int


@attrs.frozen
class AboutRecord:
    """What a durable group is called and what was agreed upon for it, as bytes: a restart has to know."""

    stream: int
    about: bytes


@attrs.frozen
class PayloadRecord:
    """A large payload of ``stream``, from now on or until it is dropped: (origin, its incarnation, its number)."""

    stream: int
    payload_id: tuple[str, int, int]
    payload: bytes


@attrs.frozen
class DropPayloadsRecord:
    """These payloads of ``stream`` are no longer needed."""

    stream: int
    payload_ids: tuple[tuple[str, int, int], ...]


@attrs.frozen
class ForgetRecord:
    """This node has nothing to do with ``stream`` any more."""

    stream: int


StreamRecord = (
    PromiseRecord | AppendRecord | OpenRecord | CheckpointRecord | AboutRecord | PayloadRecord | DropPayloadsRecord
    | ForgetRecord
)  # fmt: skip
Record = NodeRecord | OptionsRecord | StreamRecord


@attrs.frozen
class StoredStream:
    """One stream as it was last synced: entries ``base + 1 … base + len(entries)``.

    ``checkpoint_seq`` is at least ``base``: a margin of entries before the checkpoint is kept so that a
    short lag is repaired without sending the whole state.

    ``damage`` says what is not as it was written. Then nothing of the log is given, and whoever reads this must not
    speak as the server that had it.
    """

    promised: int = 0
    accepted: int = 0
    base: int = 0
    entries: tuple[bytes, ...] = ()
    checkpoint_seq: int = 0
    checkpoint: bytes = b""
    about: bytes = b""
    payloads: dict[tuple[str, int, int], bytes] = attrs.field(factory=dict)
    damage: str = ""


@attrs.frozen
class Stored:
    """Everything a daemon finds in its state directory when it starts."""

    state_id: str
    incarnation: int = 0
    domain: bytes = NO_DOMAIN
    streams: dict[int, StoredStream] = attrs.field(factory=dict)
    options: tuple[tuple[str, str, int], ...] = ()
