"""How the newest proposals of a group ended: for who asks afterwards, and for people who want to know why.

It is part of the group, the same at every member after the same entry, and in every checkpoint; so it is bounded, in
number and in bytes. Of a large outcome only who voted what and why is kept: what was proposed is in the state by now,
or was told to everybody and belongs to nobody any more.
"""

from __future__ import annotations

from collections import deque

import msgspec
from msgspec.structs import replace

from groupsvc.wire.limits import OUTCOMES_KEPT
from groupsvc.wire.notices import Outcome, ProposalId

OUTCOME_BYTES_MAX = 16 * 1024
"""Of one outcome that is kept whole."""

OUTCOMES_BYTES_MAX = 1024 * 1024
"""Of all that are kept; the oldest are forgotten first."""

_encoder = msgspec.msgpack.Encoder(order="deterministic")


class Ledger:
    """The newest outcomes, the oldest first, each with the entry that it ended with."""

    def __init__(self, kept: tuple[tuple[int, Outcome], ...] = ()) -> None:
        self._kept: deque[tuple[int, Outcome]] = deque()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        for seq, outcome in kept:
            self.note(seq, outcome)

    @property
    def outcomes(self) -> tuple[tuple[int, Outcome], ...]:
        """All that are kept."""
        return tuple(self._kept)

    def note(self, seq: int, outcome: Outcome) -> None:
        """A ballot has ended."""
        size = _size_of(outcome)
        if size > OUTCOME_BYTES_MAX:
            outcome = _without_bytes(outcome)
            size = _size_of(outcome)
        self._kept.append((seq, outcome))
        self._sizes.append(size)
        self._bytes += size
        while len(self._kept) > OUTCOMES_KEPT or (self._bytes > OUTCOMES_BYTES_MAX and len(self._kept) > 1):
            self._kept.popleft()
            self._bytes -= self._sizes.popleft()

    def find(self, proposal: ProposalId) -> tuple[int, Outcome] | None:
        """How this one ended, if that is still known."""
        for seq, outcome in self._kept:
            if proposal in outcome.subject.proposals:
                return seq, outcome
        return None


def _size_of(outcome: Outcome) -> int:
    return len(_encoder.encode(outcome))


def _without_bytes(outcome: Outcome) -> Outcome:
    """Without what was proposed and said; who voted what stays."""
    subject = outcome.subject
    joining = tuple(replace(provider, data=b"") for provider in subject.joining)
    return replace(outcome, subject=replace(subject, state=None, payload=b"", joining=joining), messages=())
