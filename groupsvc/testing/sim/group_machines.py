"""States that simulated programs keep: a checksum over all that was ever delivered.

Two members that have delivered the same entries have the same state, and nobody who missed one can have it. A state
that is restored must be one that somebody gave for that very entry; at the end all members that are equally far must
have the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from groupsvcd.core.stream.entries import Entry, encode_entry

if TYPE_CHECKING:
    from .group_users import Member

PADDING = b"." * 1_500
"""Makes a state of several blocks, where blocks are small."""


class Chain:
    """The state of one member."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self.crc = 0

    def add(self, entries: Sequence[Entry]) -> None:
        """Entries were delivered."""
        for entry in entries:
            self.crc = crc32(encode_entry(entry.origin, entry.incarnation, entry.n, entry.body), self.crc)

    def snapshot(self) -> bytes:
        """Where the member is, and the checksum."""
        state = f"{self._member.reached} {self.crc} ".encode() + PADDING
        self._member.users.states.setdefault(self._member.group_id, set()).add(state)
        return state

    def restore(self, seq: int, state: bytes) -> None:
        """Become what another member is after entry ``seq``."""
        member = self._member
        if state not in member.users.states.get(member.group_id, ()):
            member.users.broken(
                "B6", f"{member.name} gets a state after {seq} that nobody gave: {state[:40]!r}", member
            )
            return
        at, crc, _ = state.split(b" ", 2)
        if int(at) != seq or seq < member.reached:
            member.users.broken(
                "B4", f"{member.name} at {member.reached} gets the state after {at!r} for {seq}", member
            )
        member.reached, self.crc = seq, int(crc)
        member.end_submits("the state may have it")  # who goes on from a state does not see what it is made of
