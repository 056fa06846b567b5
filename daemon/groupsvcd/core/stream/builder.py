"""Building a new log beside the old one.

Two parties do this. A new leader fetches the best log that was reported to it; a server fetches, from the
leader, what the log of the new epoch has and its own has not. Until the new log is complete the old one is
what the server reports and repairs from: dropping the old tail too early loses stable entries when the
leader dies half way.

A log with references needs their payloads, too. Those of an entry that the source keeps no longer it has no longer
either; then the new log is cut before that entry, and the source gives its checkpoint instead.

The source may have begun later than what is to be fetched, and we may have that ourselves, and not know that it is
stable: B holds up to 9, the word that 9 is stable was lost, and G, from which B fetches, joined with 9. G's checkpoint
tells whether our own entries are those that it stands behind (``own``, see ``heritage``). Then we take them as if G had
given them: our users have not had them yet, and nobody else may have them any more.
"""

from __future__ import annotations

import math

from ..parameters import Timers
from ..peer_messages import Repair, RepairAsk
from .assembly import Assembly
from .heritage import Own, none_of_ours

PAYLOAD_ASKS_MAX = 3
"""So often the source is asked for payloads without any coming before they count as kept no longer."""


class Builder:
    """The log that will be: own entries up to ``keep``, then what is fetched, up to ``last``."""

    def __init__(
        self, stream: int, source: str, source_accepted: int, keep: int, last: int, timers: Timers,
        own: Own = none_of_ours,
    ) -> None:  # fmt: skip
        self.stream = stream
        self.source = source
        self.source_accepted = source_accepted
        self.keep = keep
        self.last = last
        self.entries: list[bytes] = []
        self.checkpoint_seq = 0
        self.checkpoint = b""
        self._own = own
        self._assembly = Assembly()
        self._timers = timers
        self._wait = timers.repeat_first
        self.ask_at = -math.inf
        self._lacked: float = math.inf  # payloads when we last asked for them
        self._asks_in_vain = 0

    @property
    def reached(self) -> int:
        """Up to where the new log is there."""
        return max(self.keep, self.checkpoint_seq) + len(self.entries)

    @property
    def missing(self) -> bool:
        """Whether something is still to be fetched."""
        return self.reached < self.last

    def next_ask(self, now: float) -> RepairAsk | None:
        """What to send to ``source`` now, if it is time to."""
        if not self.missing or now < self.ask_at:
            return None
        self.asked(now)
        return self._assembly.ask(self.source, self.stream, self.reached + 1, self.last)

    def asked(self, now: float) -> None:
        """The source was asked for something, or something has to wait; plans when to look again."""
        self.ask_at = now + self._wait
        self._wait = min(2 * self._wait, self._timers.repeat_max)

    def has_asked_in_vain(self, lacking: int) -> bool:
        """So many payloads are lacking, and it is time to ask: whether there is no use in asking for them again."""
        if lacking < self._lacked:
            self._asks_in_vain = 0
            self._wait = self._timers.repeat_first
        self._lacked = lacking
        self._asks_in_vain += 1
        return self._asks_in_vain > PAYLOAD_ASKS_MAX

    def cut(self, seq: int) -> None:
        """Do without entry ``seq`` and what follows: it is to be fetched anew, or a checkpoint beyond it."""
        own = max(self.keep, self.checkpoint_seq)
        if seq > own:
            del self.entries[seq - own - 1 :]
        else:
            self.keep, self.entries = seq - 1, []
        self._lacked, self._asks_in_vain = math.inf, 0
        self.ask_at = -math.inf

    def take(self, sender: str, repair: Repair) -> bool:
        """Use an answer; returns whether it brought anything."""
        if sender != self.source or repair.accepted != self.source_accepted or not self.missing:
            return False
        before, grew = self.reached, False
        if repair.checkpoint_seq > self.reached and not 0 < repair.kept_from <= self.reached + 1:
            state = self._assembly.take(sender, repair)
            grew = self._assembly.grew
            if state is not None:
                self._go_on_behind(repair, state)
        if repair.first <= self.reached + 1:
            self.entries.extend(repair.entries[self.reached + 1 - repair.first :])
        if self.reached == before and not grew:
            return False
        self._wait = self._timers.repeat_first
        self.ask_at = -math.inf
        return True

    def _go_on_behind(self, repair: Repair, state: bytes) -> None:
        """The source has not got what is next: it comes from our own log, if that reaches far enough, or not at all."""
        own = self._own(self.keep, repair.checkpoint_seq, state)
        if 0 < repair.kept_from <= self.keep + len(own) + 1:
            self.checkpoint_seq, self.checkpoint, self.entries = 0, b"", own
        else:
            self.checkpoint_seq, self.checkpoint, self.entries = repair.checkpoint_seq, state, []
