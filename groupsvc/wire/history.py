"""One line of history: the same schema for simulator runs, fault runs and the daemons' journals.

Whoever wants to prove something about a run reads these lines and nothing else, so a checker written for
the simulator also judges a real cluster, and a history kept today can be judged by a checker of tomorrow.

``type`` says what kind of line it is: ``invoke`` / ``ok`` / ``fail`` / ``info`` belong to a call of a client
(``fail`` = certainly did not happen, ``info`` = unknown), ``event`` is something a daemon did. Order by
(``boot``, ``i``), never by the wall clock.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA_VERSION = 1

EventType = Literal["invoke", "ok", "fail", "info", "event"]


class HistoryEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One thing that happened, with every clock and number needed to judge it."""

    v: int  # SCHEMA_VERSION of the writer; always written
    i: int  # position in this journal; grows by one
    boot: str = ""  # which run of the writing process
    t: float  # the harness' clock in the simulator, CLOCK_BOOTTIME in a daemon, seconds
    local: float = 0.0  # the node's own clock where it differs from t
    wall_ns: int = 0  # wall clock, for people
    node: str = ""
    inc: int = 0
    who: str = "daemon"  # "daemon", "sim" (the harness: faults), or the name of a client
    type: EventType = "event"
    op: str
    group: int = 0  # stream id; 0 is the domain
    epoch: int = 0
    seq: int = 0
    origin: str = ""  # who the entry comes from, "node/incarnation"
    n: int = 0  # its number at the origin
    mid: str = ""  # message id of payloads that travel apart from their order
    crc: int = 0  # CRC-32 of the bytes the line is about
    args: dict[str, Any] = {}
    result: dict[str, Any] = {}


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(HistoryEvent)


def to_line(event: HistoryEvent) -> bytes:
    """The line of ndjson for ``event``, newline included."""
    return _encoder.encode(event) + b"\n"


def from_line(line: bytes) -> HistoryEvent:
    """The event a line stands for; raises ``msgspec.DecodeError`` (or its ``ValidationError``) with the reason."""
    try:
        return _decoder.decode(line)
    except (UnicodeDecodeError, RecursionError) as problem:
        raise msgspec.DecodeError(f"line of {len(line)} bytes is no event: {problem}") from None
