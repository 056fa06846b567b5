"""The limits that an application can run into, under the names it knows them by: ``groupsvc.limits.payload_bytes_max``.

They are settled where both halves find them, ``groupsvc.wire.limits``, each with its reason. There they are constants
of the protocol, in capitals, as in docs/PROTOCOL.md and in what a daemon says; here they are values to read.
"""

from __future__ import annotations

from typing import Final

from .wire import limits as _wire

__all__ = [
    "barrier_name_chars_max",
    "barrier_payload_bytes_max",
    "checkpoint_block_bytes_max",
    "checkpoint_bytes_max",
    "events_max",
    "grace_s",
    "group_name_chars_max",
    "members_per_session_max",
    "outcomes_kept",
    "outstanding_bytes_max",
    "outstanding_max",
    "payload_bytes_max",
    "provider_data_bytes_max",
    "provider_name_chars_max",
    "reason_chars_max",
    "requests_waiting_max",
    "responsive_s",
    "round_bytes_max",
    "session_alive_s",
    "session_name_chars_max",
    "sessions_max",
    "vote_messages_bytes_max",
]

payload_bytes_max: Final = _wire.PAYLOAD_BYTES_MAX
"""Of a message, or a state value."""

vote_messages_bytes_max: Final = _wire.VOTE_MESSAGES_BYTES_MAX
"""Of what is said with the votes of one phase; each who votes has an equal share: divide by ``proposal.electorate``."""

outstanding_max: Final = _wire.OUTSTANDING_MAX
"""Messages of one provider that have not come back; with more, ``multicast`` waits."""

outstanding_bytes_max: Final = _wire.OUTSTANDING_BYTES_MAX
"""The same in bytes."""

events_max: Final = _wire.EVENTS_MAX
"""Events of one group that the program has not read."""

group_name_chars_max: Final = _wire.GROUP_NAME_CHARS_MAX
"""Of the name of a group."""

provider_name_chars_max: Final = _wire.PROVIDER_NAME_CHARS_MAX
"""Of the name of a provider."""

provider_data_bytes_max: Final = _wire.PROVIDER_DATA_BYTES_MAX
"""What a provider shows of itself."""

barrier_name_chars_max: Final = _wire.BARRIER_NAME_CHARS_MAX
"""Of the name of a barrier."""

barrier_payload_bytes_max: Final = _wire.BARRIER_PAYLOAD_BYTES_MAX
"""What one party brings to a barrier."""

round_bytes_max: Final = _wire.ROUND_BYTES_MAX
"""What all parties of a round bring that is small."""

reason_chars_max: Final = _wire.REASON_CHARS_MAX
"""Why somebody is expelled."""

session_name_chars_max: Final = _wire.SESSION_NAME_CHARS_MAX
"""Of the name of a session."""

sessions_max: Final = _wire.SESSIONS_MAX
"""Sessions of one node."""

members_per_session_max: Final = _wire.MEMBERS_PER_SESSION_MAX
"""Memberships and subscriptions of one session."""

requests_waiting_max: Final = _wire.REQUESTS_WAITING_MAX
"""Calls of one session that are not answered yet."""

outcomes_kept: Final = _wire.OUTCOMES_KEPT
"""Outcomes of a group that can be asked for afterwards."""

session_alive_s: Final = _wire.SESSION_ALIVE_S
"""How often a session says that it is alive."""

responsive_s: Final = _wire.RESPONSIVE_S
"""A program that does not answer for so long is ``Unresponsive``."""

grace_s: Final = _wire.GRACE_S
"""For how long a session without a connection can be resumed."""

checkpoint_block_bytes_max: Final = _wire.CHECKPOINT_BLOCK_BYTES_MAX
"""One block of what ``snapshot`` gives."""

checkpoint_bytes_max: Final = _wire.CHECKPOINT_BYTES_MAX
"""All blocks of it."""
