"""What somebody is told whose wish never had its turn, or who was not let in: a code, and a sentence."""

from __future__ import annotations

from groupsvc.wire.notices import Refusal

from ..nodegroups.user import TurnedAway

WORDS: dict[Refusal, tuple[str, str]] = {
    "busy": ("busy", "another proposal is being voted on; propose again later, or let it wait for its turn"),
    "stale_version": ("stale", "the state has another version by now; read it and propose again"),
    "not_a_member": ("not a member", "whoever proposes, or everybody who is to leave, is no provider of the group"),
    "withdrawn": ("timed out", "it did not have its turn in time and was withdrawn"),
    "full": ("full", "too many proposals wait for their turn in this group; try later"),
}
"""Why a proposal never had its turn."""


def of_turned_away(reason: str) -> tuple[str, str]:
    """(code, text) for somebody who cannot take part in a group."""
    return reason.kind if isinstance(reason, TurnedAway) else "refused", str(reason)
