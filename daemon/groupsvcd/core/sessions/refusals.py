"""What a proposer is told when its proposal never had its turn: a code, and a sentence with what to do."""

from __future__ import annotations

from groupsvc.wire.notices import Refusal

WORDS: dict[Refusal, tuple[str, str]] = {
    "busy": ("busy", "another proposal is being voted on; propose again later, or let it wait for its turn"),
    "stale_version": ("stale", "the state has version {version} by now; read it and propose again"),
    "not_a_member": ("not a member", "whoever proposes, or everybody who is to leave, is no provider of the group"),
    "withdrawn": ("timed out", "it did not have its turn in time and was withdrawn"),
    "ended": ("not a member", "the group has ended: its last provider has left"),
    "full": ("full", "too many proposals wait for their turn in this group; try later"),
}
"""Why a proposal never had its turn."""
