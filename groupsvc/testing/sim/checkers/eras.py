"""Eras: how long the promises of one domain reach.

All promises rest on a majority of disks. When *every* voter has lost its state (the ordinary restart of a
memory-only domain of one; a burnt-down site) a new domain is formed and counts from the start again, which
breaks nothing that was promised. So a history is cut wherever the last voter with a memory boots without it,
and each piece is judged alone. Losing all but one disk is no such cut: then nothing may go on at all.

Two things live through a cut. Processes: the newest life lines of each node are carried into the next era.
Calls: an invoke still open is carried over as well (``carried``), because its answer may come late; whatever
it says is about the old domain, so the rules about its effect leave it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from groupsvc.wire.history import HistoryEvent

from .invocations import Call, CallKey, call_key, calls_of
from .lines_by_op import LinesByOp
from .lives import LIFE_OPS, Lives, record_kind

LEASE_DEFAULT = 2.0
"""Seconds; the default of the daemon's ``timers.lease``."""

_WRITES_OF_A_MEMBER = frozenset({"promise", "append", "open", "checkpoint"})


@attrs.frozen(eq=False, kw_only=True)
class Era:
    """One piece of a history and what the harness knows about it."""

    events: Sequence[HistoryEvent]
    voters: tuple[str, ...]
    converged: bool  # healed, no new calls, waited until quiet; only ever true for the last era
    start: int = 0  # the number of the first event that is its own
    lease: float = LEASE_DEFAULT
    carried: frozenset[tuple[str, int]] = frozenset()  # (client, id) of calls invoked in an earlier era
    calls: dict[CallKey, Call] = attrs.field(init=False)  # of clients
    _of_domain: LinesByOp = attrs.field(init=False)

    @calls.default
    def _calls(self) -> dict[CallKey, Call]:
        return calls_of(self.events, self.carried)

    @_of_domain.default
    def _by_op(self) -> LinesByOp:
        return LinesByOp([line for line in self.events if line.group == 0])

    @property
    def majority(self) -> int:
        """How many voters make a decision."""
        return len(self.voters) // 2 + 1

    @property
    def end(self) -> int:
        """The number of the last event: where something that never came is missed."""
        return self.events[-1].i if self.events else 0

    def of(self, *ops: str) -> Iterator[HistoryEvent]:
        """The daemons' and the driver's lines with these names, of the domain stream, in order."""
        return self._of_domain.of(ops)

    def covered_by_majority(self, value_of: dict[str, int]) -> int:
        """The largest number that a majority of voters has reached or passed."""
        reached = sorted((value_of.get(voter, 0) for voter in self.voters), reverse=True)
        return reached[self.majority - 1]


def eras(history: Sequence[HistoryEvent], voters: tuple[str, ...], converged: bool, lease: float) -> list[Era]:
    """``history`` cut where all voters stand without memory."""
    cuts = [*_cuts(history, voters), len(history)]
    result: list[Era] = []
    start = 0
    for cut in cuts:
        alive, calls = _carried(history, start)
        result.append(
            Era(
                events=[*alive, *calls.values(), *history[start:cut]] if start else history[:cut],
                voters=voters,
                converged=converged and cut == len(history),
                start=history[start].i if start else 0,
                lease=lease,
                carried=frozenset(calls),
            )
        )
        start = cut
    return result


def _cuts(history: Sequence[HistoryEvent], voters: tuple[str, ...]) -> list[int]:
    cuts: list[int] = []
    lives = Lives()
    with_memory: set[str] = set()
    for position, line in enumerate(history):
        if line.op == "boot":
            if lives.see(line) and line.node in with_memory:
                with_memory.discard(line.node)
                if not with_memory:
                    cuts.append(position)
        elif line.node in voters and (
            line.op == "view_installed" or (line.op == "persisted" and record_kind(line) in _WRITES_OF_A_MEMBER)
        ):
            with_memory.add(line.node)
    return cuts


def _carried(
    history: Sequence[HistoryEvent], start: int
) -> tuple[list[HistoryEvent], dict[tuple[str, int], HistoryEvent]]:
    boots: dict[str, HistoryEvent] = {}
    ends: dict[str, HistoryEvent] = {}
    calls: dict[tuple[str, int], HistoryEvent] = {}
    for line in history[:start]:
        if line.type == "event":
            if line.op == "boot":
                boots[line.node] = line
                ends.pop(line.node, None)
            elif line.op in LIFE_OPS:
                ends[line.node] = line
        elif line.type == "invoke":
            calls[call_key(line)] = line
        else:
            calls.pop(call_key(line), None)
    return [*boots.values(), *ends.values()], calls
