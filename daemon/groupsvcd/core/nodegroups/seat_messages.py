"""Messages about the stream of a group: what a seat does about each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..identity import Sender
from ..peer_messages import (
    Beat,
    Block,
    BlockAsk,
    CheckpointHeld,
    Claim,
    Data,
    DataAsk,
    DataHeld,
    Grant,
    Held,
    Insert,
    Leave,
    Open,
    Opened,
    Order,
    Promised,
    Refused,
    Relay,
    Repair,
    RepairAsk,
    Seen,
    Submit,
    SyncAsk,
)
from .seat import Seat

Doing = Callable[[Seat, Sender, Any], None]


def for_seats() -> dict[type, Doing]:
    """By kind of message; a table for each node, so that a bug planted in ``Seat`` is in those made after it."""
    return {
        Order: Seat.on_order,
        Beat: Seat.on_beat,
        Held: Seat.on_held,
        Seen: Seat.on_seen,
        SyncAsk: Seat.on_sync_ask,
        Data: Seat.on_data,
        DataHeld: Seat.on_data_held,
        CheckpointHeld: Seat.on_checkpoint_held,
        DataAsk: Seat.on_data_ask,
        Submit: Seat.on_submit,
        Relay: Seat.on_relay,
        Claim: Seat.on_claim,
        Promised: Seat.on_promised,
        Open: Seat.on_open,
        Opened: Seat.on_opened,
        RepairAsk: Seat.on_repair_ask,
        Repair: Seat.on_repair,
        BlockAsk: Seat.on_block_ask,
        Block: Seat.on_block,
        Refused: Seat.on_refused,
        Insert: Seat.on_insert,
        Leave: Seat.on_leave,
        Grant: lambda seat, sender, grant: seat.take_grant(grant.view, grant.base),
    }
