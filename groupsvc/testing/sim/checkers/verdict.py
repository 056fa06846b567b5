"""What a checker says when a promise was broken."""

from __future__ import annotations

import attrs


@attrs.frozen
class Violation:
    """Invariant ``invariant`` does not hold; the event numbered ``at`` shows it, ``text`` says how."""

    invariant: str
    text: str
    at: int
