"""Every kind of line that a daemon writes into its event journal, and from which level on.

``docs/reference/journal.md`` says of each what it means; a test compares that page, this table and the engine. Level
``batch`` is for operation: enough to check order, views, ballots and barriers. ``full`` has in addition what comes once
per entry, or several times per batch.
"""

from __future__ import annotations

from typing import Literal

Level = Literal["batch", "full"]

_ALWAYS = (
    # of the journal itself
    "journal", "journal_lost",
    # of the node and its domain
    "started", "canvass", "promise", "office", "leader_known", "leader_lost", "node_up", "node_down", "node_gone",
    "unwelcome", "list_installed", "lease", "isolated", "rejoined", "down_learned", "trouble", "group_dropped",
    "drain",
    # of streams
    "granted", "recovered", "view_installed", "view_active", "view_left", "restored", "delivered", "members", "joined",
    "group_lost", "quorum_lost", "given_up",
    # of process groups
    "provider_joined", "provider_failing", "provider_left", "state", "attributes", "responsive", "emptied", "fenced",
    "phase", "voted", "votes", "outcome", "refused", "barrier_entered", "barrier_over",
    # of sessions
    "session_opened", "session_resumed", "session_ended",
    # records of who came, was refused, or asked for something (groupsvcd.core.audit)
    "client_admitted", "client_refused", "key_admitted", "key_refused", "access_denied", "expel_asked",
    "token_pending", "token_made", "token_used", "token_shown_again", "token_refused", "token_expired", "token_revoked",
)  # fmt: skip

_FULL = ("ordered", "stable", "held", "digest", "mark")
"""What the domain's own stream orders is written at both levels, as it is little."""

LEVELS: dict[str, Level] = {**dict.fromkeys(_ALWAYS, "batch"), **dict.fromkeys(_FULL, "full")}

_LEFT_OUT = frozenset(_FULL)


def is_written(kind: str, group: int, level: Level) -> bool:
    """Whether a daemon whose journal has this level writes such a line."""
    return level == "full" or kind not in _LEFT_OUT or (group == 0 and kind != "mark")
