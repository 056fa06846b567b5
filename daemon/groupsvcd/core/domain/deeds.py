"""What was done with tokens, recorded whoever is still there to be told.

Machine D shows a token at B, B sends to the name server that D's key be listed, and D hangs up, or has no patience:
then nobody waits for the answer, and whoever records a deed when it answers somebody records nothing. So each is
recorded twice. When B *sends* it: from then on it may happen, also if B dies in the next moment (``token_pending``).
And when B knows that it *has* happened: by the answer or, if that is lost or nobody waits for it, by the list of nodes,
in which the line stands (``token_made``, ``token_used``, ``token_revoked``).

A line that was listed and replaced before B had a list is not seen, if the answer is lost as well; then the first
record is all that B has. Of two operators whose answers were lost and who revoked the same, both are recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import attrs

from ..audit import Audit

PENDING_MAX = 1_000
"""Deeds of which this node does not know yet what became of them: as many as there can be names. The oldest is
forgotten first; that it was sent is recorded."""


@attrs.define(eq=False)
class Deed:
    """Somebody wants ``line`` listed over version ``over`` of a setting; ``op`` is its record once it is."""

    op: str
    who: str
    args: dict[str, Any]
    setting: str
    line: str
    over: int
    is_recorded: bool = False


class Deeds:
    """All that was sent from this node and whose end is not known."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._pending: deque[Deed] = deque(maxlen=PENDING_MAX)

    def sent(self, deed: Deed) -> None:
        """It is on its way to the name server."""
        self._audit.record("token_pending", deed.who, deed=deed.op, **deed.args)
        self._pending.append(deed)

    def done(self, deed: Deed) -> None:
        """It has happened."""
        if not deed.is_recorded:
            deed.is_recorded = True
            self._audit.record(deed.op, deed.who, **deed.args)

    def refused(self, deed: Deed) -> None:
        """It has not happened, and will not."""
        if deed in self._pending:
            self._pending.remove(deed)

    def look(self, options: Mapping[str, tuple[str, int]]) -> None:
        """This is listed now."""
        for deed in list(self._pending):
            line, version = options.get(deed.setting, ("", 0))
            if version > deed.over and line == deed.line:
                self.done(deed)
            if version > deed.over or deed.is_recorded:
                self._pending.remove(deed)
