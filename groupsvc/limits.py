"""The limits that an application can run into, under the names it knows them by.

They are settled where both halves find them (``groupsvc.wire.limits``, each with its reason); what is only the
library's own is here.
"""

from __future__ import annotations

from .wire.limits import (
    EVENTS_MAX,
    GRACE_S,
    GROUP_NAME_CHARS_MAX,
    MEMBERS_PER_SESSION_MAX,
    OUTCOMES_KEPT,
    OUTSTANDING_MAX,
    PAYLOAD_BYTES_MAX,
    PROVIDER_DATA_BYTES_MAX,
    PROVIDER_NAME_CHARS_MAX,
    REASON_CHARS_MAX,
    REQUESTS_WAITING_MAX,
    RESPONSIVE_S,
    SESSION_ALIVE_S,
)

OUTSTANDING_BYTES_MAX = 32 * 1024 * 1024
"""Bytes of one provider's messages that it has not seen come back: with more it waits, however few they are."""

__all__ = [
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
    "SESSION_ALIVE_S",
]
