"""Limits of what may be on the wire: name with unit, value, reason."""

from __future__ import annotations

FRAME_BYTES_MAX = 8 * 1024 * 1024
"""Largest frame a daemon parses. A checkpoint of a directory with thousands of nodes and groups fits; a
hostile length field cannot make us allocate more."""

FRAME_BYTES_USUAL = 256 * 1024
"""Messages are put together into frames up to this size; only a single message that is larger makes a larger frame.
Large enough that what a frame costs does not matter, small enough not to hold up a liveness frame behind it."""

NODE_NAME_BYTES_MAX = 63
"""A host name label; node names travel in every frame."""

GROUP_NAME_CHARS_MAX = 200
"""Long enough for a path-like name, short enough to be logged whole."""

CONFIG_KEY_CHARS_MAX = 200
"""As group names."""

CONFIG_VALUE_BYTES_MAX = 64 * 1024
"""A shared setting, not a file store; every voter keeps it in memory and on disk."""

TIMEOUT_S_MAX = 3600.0
"""No request waits longer in a daemon; who wants to wait for ever asks again."""

KEEPALIVE_S = 1
DEAD_LINK_MS = 4_000
"""The kernel tries out a connection over which nothing comes, so often, and ends one whose other end has acknowledged
nothing for so long: after a cut in the network it would go on for minutes. Well above every pause that the protocol
itself bridges. ZeroMQ's own heartbeats must not be used: they end the process (``drivers/dead_links.py``)."""

SILENT_LINK_S = 30.0
"""A session over tcp gives up a connection over which it was answered nothing for so long, though the kernel was. A
frame counts when all of it has come; over a link with less than 2.3 Mbit/s the largest takes longer. Who gives up in
the middle of one has to begin it anew, and would for ever; that the session is suspended does not wait for this."""

# --- Sessions and groups ---

PAYLOAD_BYTES_MAX = 4 * 1024 * 1024
"""Largest message or state value: it fits into a frame with room to spare."""

VOTE_MESSAGES_BYTES_MAX = 2 * 1024 * 1024
"""What the votes of one phase say, all together: everybody is shown all of it, in one frame, beside a state value."""

PROVIDER_DATA_BYTES_MAX = 64 * 1024
"""What a provider shows of itself: every member keeps it, and every list of providers carries it."""

PROVIDER_NAME_CHARS_MAX = 200
"""As group names."""

PROVIDERS_MAX = 10_000
"""Providers and joiners of one group: every ballot names them all."""

REASON_CHARS_MAX = 1000
"""Why somebody is expelled: a sentence or two for people."""

OUTSTANDING_MAX = 4096
"""Messages of one provider that it has not seen come back. With more it waits: what is kept for it stays bounded."""

OUTSTANDING_BYTES_MAX = 8 * 1024 * 1024
"""The same in bytes; a message that is larger than what is left of it waits, too."""

SESSION_NAME_CHARS_MAX = 200
"""As group names."""

SESSIONS_MAX = 10_000
"""Sessions of one node."""

MEMBERS_PER_SESSION_MAX = 10_000
"""Memberships and subscriptions of one session."""

REQUESTS_WAITING_MAX = 10_000
"""Requests of one session that are not answered yet."""

UNCOUNTED_ITEMS_MAX = 100_000
UNCOUNTED_BYTES_MAX = 64 * 1024 * 1024
"""What a session was told and has not counted. A program that is stopped, or reads too slowly, loses its session past
either."""

COUNT_EVERY_ITEMS = 256
COUNT_EVERY_BYTES = 1024 * 1024
"""A client says how far it has counted after so much, at the latest."""

EVENTS_MAX = 100_000
"""Events of one group that the program has not read, in the client library."""

SESSION_ALIVE_S = 0.5
"""How often a client says that it is alive, and asks for how long what it knows is true."""

RESPONSIVE_S = 5.0
"""A program that has not been alive, or whose answering code has been busy, for so long is unresponsive."""

GRACE_S = 3.0
"""For how long a session waits for its client to resume it. A process that ends is noticed at once, without this."""

OUTCOMES_KEPT = 100
"""Outcomes of a group that can be asked for afterwards: they are part of every checkpoint."""

# --- Barriers ---

BARRIER_NAME_CHARS_MAX = 200
"""As group names."""

BARRIER_PAYLOAD_BYTES_MAX = 4 * 1024 * 1024
"""What one party brings to a barrier for all the others: as a message."""

ROUND_BYTES_MAX = 4 * 1024 * 1024
"""What all of them bring that travels with the end of the round, which is one entry and fits into a frame."""

# --- The end of a daemon ---

DRAIN_S = 30.0
"""How long a drain may take if nobody says otherwise: several elections and leases fit into it."""

# --- State machines of applications ---

CHECKPOINT_BLOCK_BYTES_MAX = 1024 * 1024
"""One block of an application's checkpoint: an entry of its own, so it must not hold up others for long."""

CHECKPOINT_BYTES_MAX = 16 * 1024 * 1024
"""All blocks of one: every member keeps it, and so does every checkpoint of the stream."""

TAIL_BYTES_WANTED = 2 * 1024 * 1024
"""With so many bytes of messages since the newest checkpoint another one is wanted, however few messages they are."""

TAIL_TIMES_MAX = 4
"""So many times what calls for a checkpoint may gather; then nobody takes one, and what gathered is dropped."""

TAIL_MESSAGES_MIN = 4_000
"""So many messages may gather in any case: those of a fast writer come while a checkpoint is on its way."""


def vote_message_bytes_max(voters: int) -> int:
    """What each of so many may say with its vote: an equal share, so that nobody's word depends on the others'."""
    return VOTE_MESSAGES_BYTES_MAX // max(1, voters)
