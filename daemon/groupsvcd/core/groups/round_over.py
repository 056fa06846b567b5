"""The end of a round, as the parties of one node are told it.

Thirty-two processes of a node wait for the same round, and all get the same thirty-two parts: what is the same for
everybody is made once, when the first of them asks for it.

What somebody brought is told with the end itself if it is little. What is more is told before it, in pieces that fit
into a frame.
"""

from __future__ import annotations

from functools import cached_property

from msgspec.structs import replace

from groupsvc.wire.notices import ProviderId, Round

CARRIED_BYTES_MAX = 1024
"""What a party brings goes with the word that it has come, and with the end of the round, up to so much."""

PART_BYTES = 1024 * 1024
"""What parties brought is told in pieces of about so much."""

Part = tuple[tuple[ProviderId, bytes], ...]


class RoundOver:
    """How ``round_`` ended by entry ``seq``."""

    def __init__(self, seq: int, round_: Round) -> None:
        self.seq = seq
        self.round = round_
        self.size = 0  # of the answer in bytes, once somebody was answered

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What parties brought, if it is much."""
        parts: list[Part] = []
        part: list[tuple[ProviderId, bytes]] = []
        size = 0
        for provider, payload in self.round.arrived:
            if len(payload) > CARRIED_BYTES_MAX:
                if part and size + len(payload) > PART_BYTES:
                    parts.append(tuple(part))
                    part, size = [], 0
                part.append((provider, payload))
                size += len(payload)
        return (*parts, tuple(part)) if part else ()

    @cached_property
    def without_parts(self) -> Round:
        """The rest of it; if the round broke, nobody is told what the others had brought."""
        if self.round.end != "released" or not self.parts:
            return self.round
        arrived = [(one, payload if len(payload) <= CARRIED_BYTES_MAX else b"") for one, payload in self.round.arrived]
        return replace(self.round, arrived=tuple(arrived))
