"""The limits that an application can run into, under the names it knows them by.

They are settled where both halves find them: ``groupsvc.wire.limits``, each with its reason.
"""

from __future__ import annotations

from .wire.limits import (
    CHECKPOINT_BLOCK_BYTES_MAX,
    CHECKPOINT_BYTES_MAX,
    EVENTS_MAX,
    GRACE_S,
    GROUP_NAME_CHARS_MAX,
    MEMBERS_PER_SESSION_MAX,
    OUTCOMES_KEPT,
    OUTSTANDING_BYTES_MAX,
    OUTSTANDING_MAX,
    PAYLOAD_BYTES_MAX,
    PROVIDER_DATA_BYTES_MAX,
    PROVIDER_NAME_CHARS_MAX,
    REASON_CHARS_MAX,
    REQUESTS_WAITING_MAX,
    RESPONSIVE_S,
    SESSION_ALIVE_S,
    SESSION_NAME_CHARS_MAX,
    SESSIONS_MAX,
)

__all__ = [
    "CHECKPOINT_BLOCK_BYTES_MAX",
    "CHECKPOINT_BYTES_MAX",
    "EVENTS_MAX",
    "GRACE_S",
    "GROUP_NAME_CHARS_MAX",
    "MEMBERS_PER_SESSION_MAX",
    "OUTCOMES_KEPT",
    "OUTSTANDING_BYTES_MAX",
    "OUTSTANDING_MAX",
    "PAYLOAD_BYTES_MAX",
    "PROVIDER_DATA_BYTES_MAX",
    "PROVIDER_NAME_CHARS_MAX",
    "REASON_CHARS_MAX",
    "REQUESTS_WAITING_MAX",
    "RESPONSIVE_S",
    "SESSIONS_MAX",
    "SESSION_ALIVE_S",
    "SESSION_NAME_CHARS_MAX",
]
