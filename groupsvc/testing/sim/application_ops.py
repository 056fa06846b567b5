"""The names of what applications do and are told, as the lines of a history have them: docs/PROTOCOL.md lists the same.

A *call* has two lines, ``invoke`` and one of ``ok``, ``fail``, ``info``; an *event* has one.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

OPS: dict[str, str] = {
    "open_session": "call",
    "join_group": "call",
    "subscribe_group": "call",
    "leave_group": "call",
    "say_goodbye": "call",
    "propose_state": "call",
    "send_by_ballot": "call",
    "expel": "call",
    "change_attributes": "call",
    "multicast": "call",
    "flush": "call",
    "submit_outside": "call",
    "catch_up": "call",
    "come_to_barrier": "call",
    "reset_barrier": "call",
    "ask_round": "call",
    "ask_outcome": "call",
    "ask_groups": "call",
    "ask_why": "call",
    "close_session": "call",
    "session": "event",
    "vote": "event",
    "vote_sent": "event",
    "vote_taken": "event",
    "told": "event",
    "table": "event",
    "at_barrier": "event",
    "missed": "event",
    "member_ended": "event",
    "process_began": "event",
    "process_ended": "event",
    "process_stopped": "event",
    "process_goes_on": "event",
}
"""Every op of an application."""

COME, RESET = AT_BARRIERS = ("come_to_barrier", "reset_barrier")
"""Those that wait for the end of a round."""

ASK_ROUND = "ask_round"

FENCE_BITS = 20
"""The lower part of a fence counts changes of membership within a view, the rest is the view's."""

_encoder = msgspec.json.Encoder(order="deterministic")


def digest(*parts: object) -> int:
    """Of anything that JSON can say."""
    return crc32(_encoder.encode(parts))
