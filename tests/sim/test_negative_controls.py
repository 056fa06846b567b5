"""The simulator is worth something only if a bad driver is found out; here the driver is made bad on purpose.

Each control breaks one promise that engines build on, and the checkers must turn red within a few seeds. None of
them looks at the engine: they stay valid however it changes.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import msgspec
import pytest

from groupsvc.testing.sim import Habits, Node, Plan, run_plan
from groupsvc.testing.sim.disk import Disk, Log
from groupsvcd.core.effects import Effect, Journal, Multicast, Persist, ReplyToClient, SendToPeer

FORGETS_S = 0.3
SEEDS = 40


class LyingDisk(Disk):
    """Says it has synced and loses the newest writes when the process dies, as if fsync were free."""

    __slots__ = ("earlier",)

    def _end(self, ticket: int, _: object) -> None:
        earlier = getattr(self, "earlier", [])
        self.earlier = [*earlier[-40:], (self.node.world.t, copy.deepcopy(self.logs))]
        super()._end(ticket, _)

    def process_died(self) -> None:
        super().process_died()
        earlier: list[tuple[float, dict[int, Log]]] = getattr(self, "earlier", [])
        lost = [logs for t, logs in earlier if t > self.node.world.t - FORGETS_S]
        if lost:
            self.logs = lost[0]
        self.earlier = []


class HastyDisk(Disk):
    """Tells the engine that a write is safe while it is still under way."""

    __slots__ = ()

    def submit(self, persist: Persist) -> None:
        self.node.world.push(self.node.world.t, self._tell, self.node.process, persist)
        super().submit(Persist(persist.number, persist.records))

    def _tell(self, process: int, persist: Persist) -> None:
        if process == self.node.process:
            self.node.persisted([persist])

    def _end(self, ticket: int, _: object) -> None:
        persisted = self.batch
        if ticket == self.ticket and self.syncing and not self.stuck and not self.error:
            self.batch = []
            for persist in persisted:
                for record in persist.records:
                    self.apply(record, seen=True)
        super()._end(ticket, _)


def _execute_without_looking_at_the_clock(self: Node, effects: Sequence[Effect]) -> None:
    timeless: list[Effect] = [
        msgspec.structs.replace(effect, valid_until=math.inf)
        if isinstance(effect, SendToPeer | Multicast | ReplyToClient | Journal)
        else effect
        for effect in effects
    ]
    _execute(self, timeless)


_execute = Node._execute


def _first_red(*faults: str) -> set[str]:
    """The invariants broken in the first seed that breaks any."""
    for seed in range(SEEDS):
        plan = Plan(seed=seed, seconds=25.0, faults=faults, fault_gap_s=0.7, habits=Habits(count=5, think_s=0.1))
        _, trial = run_plan(plan)
        if trial.failures:
            return {failure.invariant for failure in trial.failures}
    return set()


def test_a_disk_that_lies_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """B1, B4, B6, L4: what was acknowledged is lost and somebody sees it."""
    monkeypatch.setattr("groupsvc.testing.sim.node.Disk", LyingDisk)
    assert _first_red("power-loss-all", "kill-idle") & {"B1", "B3", "B4", "B6", "L1", "L2", "L4", "K1", "V3"}


def test_words_before_their_write_is_safe_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """L2, S1."""
    monkeypatch.setattr("groupsvc.testing.sim.node.Disk", HastyDisk)
    assert _first_red() >= {"L2", "S1"}


def test_a_driver_that_ignores_how_long_words_are_true_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """L5, V4: a name server wakes up and finishes the sentence it had begun."""
    monkeypatch.setattr(Node, "_execute", _execute_without_looking_at_the_clock)
    assert _first_red("pause") & {"L5", "V4", "L7"}


def test_with_an_honest_driver_the_same_seeds_are_green() -> None:
    """The controls differ from this in one thing only."""
    for faults in (("power-loss-all", "kill-idle"), ("pause",)):
        for seed in range(3):
            plan = Plan(seed=seed, seconds=25.0, faults=faults, fault_gap_s=0.7, habits=Habits(count=5, think_s=0.1))
            assert () == run_plan(plan)[1].failures
