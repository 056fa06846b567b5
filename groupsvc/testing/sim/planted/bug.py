"""One planted bug: where it is, in which world it shows itself soonest, and how it is caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from groupsvcd.core.invariants import InvariantBroken
from groupsvcd.core.views import AttributeValue

from ..group_users import GroupHabits
from ..matrices import matrices, problem_under
from ..network import CALM, Weather
from ..newcomers import NewcomerHabits
from ..plan import Plan, draw_domain
from ..trial import come_to_an_end, judge_with_checkers, make_world
from ..world import Failure

Replacement = Callable[[Any], Any]
"""Given the original, returns what stands in its place."""

SEEDS_MAX = 200
"""How many seeds may pass before a bug that is planted must have shown itself."""

LOOKS = (0.25, 0.5, 1.0)
"""When a world is judged, as shares of its time, before it is healed and judged again: most bugs are seen soon."""

LOST = ("L4", "B3", "B4", "B6", "S1", "K1", "engine")
"""What a lost stable entry looks like, whoever sees it first; ``engine``: an invariant of the core itself."""


@attrs.frozen(kw_only=True)
class Stage:
    """The small world of groups in which a bug of theirs shows itself soonest."""

    attributes: Mapping[str, AttributeValue] = attrs.field(factory=dict)  # of every group
    voters: int = 3
    nodes: int = 5
    seconds: float = 15.0
    members: int = 6
    strangers: int = 0
    leave: float = 0.02
    think_s: float = 0.2
    burst: int = 4
    gap_s: float = 1.0  # between two faults
    weather: Weather = CALM
    parameters: Mapping[str, Any] = attrs.field(factory=dict)

    def plan(self, seed: int, faults: tuple[str, ...]) -> Plan:
        """The plan of a seed on this stage."""
        habits = GroupHabits(
            groups=1, members=self.members, strangers=self.strangers, think_s=self.think_s, burst=self.burst,
            window=40, leave=self.leave, returns=1.0, attributes=self.attributes,
        )  # fmt: skip
        return Plan(
            seed=seed, voters=self.voters, nodes=self.nodes, seconds=self.seconds, faults=faults,
            fault_gap_s=self.gap_s, weather=self.weather, group_habits=habits,
            parameters={"group_checkpoint_every": 50, "retention_margin": 20, **self.parameters},
        )  # fmt: skip


@attrs.frozen
class Planted:
    """One short cut: what it is, what goes wrong, and which invariants may show it."""

    name: str
    short_cut: str
    goes_wrong: str
    shown_by: tuple[str, ...]
    where: tuple[tuple[Any, str, Replacement], ...]
    under_cut_links: bool = False  # shown by a matrix of cut links, not by seeds
    faults: tuple[str, ...] = ()  # the enemies that show it soonest; () = those of the seed
    voters: int = 0  # 0 = as the seed has it
    stage: Stage | None = None  # of groups; None: the bug is one of the domain
    options: float = 0.0  # how often clients set options of the daemons
    operators: int = 0  # who make tokens
    first_seed: int = 0  # where to begin: a seed that showed it not long ago

    def plan(self, seed: int) -> Plan:
        """The plan of a seed, with the enemies and the size that show this bug soonest."""
        if self.stage is not None:
            return self.stage.plan(seed, self.faults)
        plan = draw_domain(seed)
        if self.faults:
            plan = attrs.evolve(plan, faults=self.faults, fault_gap_s=2.0)
        if self.options:
            plan = attrs.evolve(plan, habits=attrs.evolve(plan.habits, options=self.options))
        if self.operators:
            habits = NewcomerHabits(operators=self.operators, think_s=0.5, pause_s=0.01)
            plan = attrs.evolve(plan, newcomer_habits=habits)
        if self.voters:
            plan = attrs.evolve(plan, voters=self.voters, nodes=self.voters, parameters_of={})
        return plan

    def is_shown_by(self, failure: Failure) -> bool:
        """Whether this is what the bug leads to. A core that breaks because the patch no longer fits is not."""
        return failure.invariant in self.shown_by and not breaks_anyhow(failure)

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The core has this bug inside the block."""
        originals = [(owner, name, vars(owner)[name]) for owner, name, _ in self.where]
        for owner, name, replacement in self.where:
            setattr(owner, name, replacement(vars(owner)[name]))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)


def instead(what: Any) -> Replacement:
    """Something else altogether."""
    return lambda original: what


def property_of(function: Callable[[Any], Any]) -> Replacement:
    """Another property."""
    return lambda original: property(function)


def caught(bug: Planted) -> tuple[int, Failure] | None:
    """The seed and the first broken promise that show the bug, or None if nothing does."""
    with bug.planted():
        if bug.under_cut_links:
            problems = (problem_under(matrix) for matrix in matrices())
            return next(((0, Failure("V7", problem, 0.0)) for problem in problems if problem is not None), None)
        for seed in range(bug.first_seed, bug.first_seed + SEEDS_MAX):
            for failure in broken_promises(bug.plan(seed)):
                if breaks_anyhow(failure):
                    break  # what else this seed shows may come of that
                if bug.is_shown_by(failure):
                    return seed, failure
    return None


def breaks_anyhow(failure: Failure) -> bool:
    """Whether the core broke, and not at an invariant of its own: so it does if the patch no longer fits."""
    return failure.invariant == "engine" and InvariantBroken.__name__ not in failure.text


def broken_promises(plan: Plan) -> Iterator[Failure]:
    """What goes wrong in a world, as soon as it can be seen; who has seen enough need not wait for the end.

    A broken promise stays broken however the run goes on, so what a look before the end shows is there at the end.
    """
    world = make_world(plan)
    for share in LOOKS:
        world.run(until=share * plan.seconds)
        if world.failures:
            break
        yield from judge_with_checkers(world, False)
    converged = come_to_an_end(world)
    yield from world.failures
    yield from judge_with_checkers(world, converged)
