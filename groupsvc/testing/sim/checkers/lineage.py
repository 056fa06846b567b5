"""Which log is a group's: there is one, unless a forced view had to go on without its end.

A and B hold group 7 and deliver up to entry 40; both are gone for ever, C has 38. The directory lets C continue by
a *forced* view, and entries 39 and 40 are lost: *void*. From then on there are other entries 39 and 40, and a history
that has both breaks no promise, as long as nobody who had delivered the void ones goes on as if nothing had happened.

So the log has *branches*. ``branch(seq, epoch)`` names the one to which an entry delivered in an epoch belongs: 0 for
the first, else the epoch of the forced view that began it. Entries of one branch are comparable, others are not.
Where a branch begins is read from the log that was recovered for the view: at the first number where it lacks or
contradicts something that had been delivered, or announced stable, in a lower epoch. A view that loses something and
was not allowed to is a ``loss``: B6 if it had been delivered, L4 if it had been announced.

A branch can come back. C is gone, too, and D, which followed A and B and was cut off from C, is all that is left: the
next forced view has the first entries 39 and 40 again, and it is C's that are void. So of each cut it is known what the
log has from there on, as far as its leader delivered it or told it with ``recovered``; who has delivered just that goes
on rightly.

Allowed are forced views, and views that may have taken over the log of a forced one that was granted but never became
active: the directory's grants after a server went down are not marked as forced, and a server that had accepted the
forced view's log brings it with it. Of a view of which nobody wrote down whether it is forced (its leader does when it
is granted the epoch) nothing is known: it may be.

In a fast group every view may do without what only the dead have delivered, and without what those delivered who were
waited for in vain (see ``survivors``); what was announced stable it may not lose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from groupsvc.wire.history import HistoryEvent

from .survivors import Part
from .verdict import Violation

if TYPE_CHECKING:
    from .group_streams import GroupView


@attrs.frozen
class Cut:
    """Where the log of a view goes on without something that had been delivered or announced before."""

    epoch: int
    first: int  # the first number that is void below the epoch
    brought: Mapping[int, int]  # number -> CRC: what that log has from there on


@attrs.define
class _Log:
    """What is known of one epoch."""

    delivered: dict[int, int] = attrs.field(factory=dict)  # number -> CRC
    delivered_by: list[tuple[int, int, Part]] = attrs.field(factory=list)  # number, CRC, who; in fast groups
    led: dict[int, int] = attrs.field(factory=dict)  # what its leader recovered and ordered
    announced: int = 0  # highest number that its leader called stable
    recovered: HistoryEvent | None = None
    leaders: Mapping[int, int] = attrs.field(factory=dict)  # number -> CRC: what its leader had delivered by then


class Lineage:
    """The branches of one group's log."""

    def __init__(
        self, lines: Iterable[HistoryEvent], views: Mapping[int, GroupView],
        survivors: Mapping[int, frozenset[Part]] | None = None,
    ) -> None:  # fmt: skip
        self.cuts: list[Cut] = []  # by epoch
        self.losses: list[Violation] = []
        self._views = views
        self._survivors = survivors  # of a fast group, by the position of each ``recovered``
        logs: dict[int, _Log] = {}
        runs: dict[Part, dict[int, int]] = {}  # what each node has delivered since it began
        for line in lines:
            if line.op == "restored":
                runs.pop((line.node, line.inc), None)
                continue
            log = logs.get(line.epoch)
            if log is None:
                log = logs[line.epoch] = _Log()
            if line.op == "delivered":
                log.delivered.setdefault(line.seq, line.crc)
                runs.setdefault((line.node, line.inc), {})[line.seq] = line.crc
                if survivors is not None:
                    log.delivered_by.append((line.seq, line.crc, (line.node, line.inc)))
            elif line.op == "ordered":
                log.led[line.seq] = line.crc
            elif line.op == "stable":
                log.announced = max(log.announced, line.seq)
            else:
                log.recovered = line
                log.leaders = dict(runs.get((line.node, line.inc), ()))
                log.led.update((int(seq), int(crc)) for seq, crc in line.args["tail"])
        self._follow(logs)

    def branch(self, seq: int, epoch: int) -> int:
        """The branch of the entry with this number, delivered in this epoch."""
        for cut in reversed(self.cuts):
            if cut.epoch <= epoch and cut.first <= seq:
                return cut.epoch
        return 0

    def is_void(self, seq: int, epoch: int, crc: int) -> bool:
        """Whether this entry, delivered in this epoch, is not in the log as it was in the end."""
        return self.is_without(seq, epoch, crc, math.inf)

    def is_without(self, seq: int, epoch: int, crc: int, later: float) -> bool:
        """Whether the log of a later epoch goes on without this entry: the last cut between the two decides."""
        for cut in reversed(self.cuts):
            if epoch < cut.epoch <= later and cut.first <= seq:
                return cut.brought.get(seq) != crc
        return False

    def cut_before(self, epoch: int, later: float) -> int:
        """The lowest number from which on a log between this epoch and a later one goes on without what it had."""
        return min(cut.first for cut in self.cuts if epoch < cut.epoch <= later)

    def is_ever_cut(self, seq: int, epoch: int) -> bool:
        """Whether any later epoch began without an entry of this number."""
        return any(cut.epoch > epoch and cut.first <= seq for cut in self.cuts)

    def _follow(self, logs: Mapping[int, _Log]) -> None:
        delivered: dict[int, tuple[int, int]] = {}  # number -> CRC, epoch: what no view may lose
        announced: dict[int, tuple[int, int]] = {}
        effective = {view.epoch for view in self._views.values() if view.active_at is not None}
        effective |= {view.base for view in self._views.values() if view.base}
        by_whom: list[tuple[int, int, Part]] = []
        for epoch in sorted(logs):
            log = logs[epoch]
            if log.recovered is not None:
                if self._survivors is not None and not self._may_lose(epoch, effective):
                    self._ask_survivors(log.recovered, by_whom, self._survivors.get(log.recovered.i, frozenset()))
                self._judge(log, delivered, announced, effective)
            if self.cuts and self.cuts[-1].epoch == epoch:
                cut = self.cuts[-1]
                by_whom = [one for one in by_whom if one[0] < cut.first or cut.brought.get(one[0]) == one[1]]
            by_whom += log.delivered_by
            for seq, crc in log.delivered.items():
                delivered.setdefault(seq, (crc, epoch))
            for seq, crc in log.led.items():
                if seq <= log.announced:
                    announced.setdefault(seq, (crc, epoch))

    def _ask_survivors(
        self, recovered: HistoryEvent, delivered: Iterable[tuple[int, int, Part]], survivors: frozenset[Part]
    ) -> None:
        base, log = int(recovered.args["base"]), {int(seq): int(crc) for seq, crc in recovered.args["tail"]}
        for seq, crc, part in delivered:
            if part in survivors and seq > base and log.get(seq) != crc:
                text = (
                    f"the log recovered for epoch {recovered.epoch} ends at {recovered.args['last']} and lacks {seq}"
                    f" ({crc:08x}), which {part[0]}/{part[1]} has delivered, and lives"
                )
                self.losses.append(Violation("B6", text, recovered.i))
                return

    def _judge(
        self,
        led: _Log,
        delivered: dict[int, tuple[int, int]],
        announced: dict[int, tuple[int, int]],
        effective: set[int],
    ) -> None:
        recovered = led.recovered
        assert recovered is not None
        epoch, base, last = recovered.epoch, int(recovered.args["base"]), int(recovered.args["last"])
        log = {seq: crc for seq, crc in led.leaders.items() if seq <= base}
        begins = min(log, default=base + 1)
        log.update((int(seq), int(crc)) for seq, crc in recovered.args["tail"])
        lost: list[tuple[int, Violation]] = []
        for invariant, known, word in (("B6", delivered, "delivered"), ("L4", announced, "announced stable")):
            seq = _first_lost(known, log, begins - 1)
            if seq:
                crc, before = known[seq]
                text = (
                    f"the log recovered for epoch {epoch} ends at {last} and lacks {seq} ({crc:08x}),"
                    f" which was {word} in epoch {before}"
                )
                lost.append((seq, Violation(invariant, text, recovered.i)))
        if not lost:
            return
        if not self._may_lose(epoch, effective) and not (self._survivors is not None and _only_delivered(lost)):
            self.losses.extend(violation for _, violation in lost)
        elif epoch in effective:
            first = min(seq for seq, _ in lost)
            brought = {seq: crc for seq, crc in log.items() if seq >= first}
            self.cuts.append(Cut(epoch, first, brought))
            for known in (delivered, announced):
                for seq in [seq for seq in known if seq >= first]:
                    del known[seq]
            delivered.update((seq, (crc, epoch)) for seq, crc in brought.items() if seq <= base)

    def _may_lose(self, epoch: int, effective: set[int]) -> bool:
        view = self._views.get(epoch)
        base = view.base if view is not None and view.base is not None else None
        if base is None:
            base = max((other for other in effective if other < epoch), default=0)
        return any(other.forced is not False for other in self._views.values() if base < other.epoch <= epoch)


def _only_delivered(lost: Iterable[tuple[int, Violation]]) -> bool:
    """Whether nothing is lost that was announced stable; the survivors of a fast group are asked elsewhere."""
    return all(violation.invariant == "B6" for _, violation in lost)


def _first_lost(known: Mapping[int, tuple[int, int]], log: Mapping[int, int], base: int) -> int:
    """The lowest number above ``base`` that is known and not so in the log; 0 if there is none."""
    return min((seq for seq, (crc, _) in known.items() if seq > base and log.get(seq) != crc), default=0)
