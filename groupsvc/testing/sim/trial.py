"""One seed from beginning to end: make its world, run it, heal it, judge it; and cut a failing one short.

The shortest failing prefix is found by running the seed again with fewer events: a broken promise stays broken
however the run goes on, so bisection on the number of events finds the first at which the checkers see it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from groupsvc.wire.history import HistoryEvent

from .bounds import left_over, over_their_limits
from .convergence import WITHIN_S, converge
from .plan import Plan, draw
from .world import ENGINE, Failure, World

if TYPE_CHECKING:
    from .transcript import Play

Judge = Callable[[World, bool], Iterable[Failure]]
"""Looks at a finished world, told whether it converged."""


@attrs.frozen(kw_only=True)
class Trial:
    """What came out of one run."""

    seed: int
    plan: str
    failures: tuple[Failure, ...]
    events: int
    steps: int
    frames: int
    simulated_s: float
    ran_s: float  # seconds of a core, for the world alone
    judged_s: float  # and for the checkers
    marks: dict[str, int]
    converged: bool
    digest: str = ""


def make_world(plan: Plan, *, engine: str = ENGINE, play: Play | None = None) -> World:
    """The world of a plan, nothing run yet."""
    return World(
        plan.seed,
        plan.nodes,
        voters=plan.voters,
        faults=plan.faults,
        first_fault_at=plan.first_fault_at,
        fault_gap_s=plan.fault_gap_s,
        parameters=plan.parameters,
        parameters_of=plan.parameters_of,
        weather=plan.weather,
        habits=plan.habits,
        group_habits=plan.group_habits,
        application_habits=plan.application_habits if engine == ENGINE else None,  # engines of tests have no sessions
        newcomer_habits=plan.newcomer_habits if engine == ENGINE else None,
        engine=engine,
        play=play,
    )


def judge_with_checkers(world: World, converged: bool) -> Iterable[Failure]:
    """Every invariant of the house, from the history alone."""
    from .checkers import check

    history: Sequence[HistoryEvent] = world.history.events()
    parameters = world.nodes[world.voters[0]].parameters
    violations = check(
        history, voters=world.voters, converged=converged, lease=parameters.timers.lease,
        history_entries_max=parameters.history_entries_max,
    )  # fmt: skip
    for violation in violations:
        at = history[violation.at].t if 0 <= violation.at < len(history) else world.t
        yield Failure(violation.invariant, violation.text, at)


def judge_nothing(world: World, converged: bool) -> Iterable[Failure]:
    """For engines that do not journal what the checkers read."""
    return ()


def run_plan(
    plan: Plan,
    *,
    engine: str = ENGINE,
    judge: Judge = judge_with_checkers,
    events_max: int | None = None,
    until: float | None = None,
    with_digest: bool = False,
    play: Play | None = None,
) -> tuple[World, Trial]:
    """Run a plan to its end, or only a prefix of it (then nothing is healed and no liveness demanded)."""
    began = time.process_time()
    world = make_world(plan, engine=engine, play=play)
    seconds = plan.seconds if until is None else min(until, plan.seconds + 4 * WITHIN_S)
    converged = False
    if events_max is None and (until is None or until > plan.seconds):
        world.run(until=plan.seconds)
        converged = come_to_an_end(world)
    else:
        world.run(until=seconds, events_max=events_max)
    ran = time.process_time()
    failures = list(world.failures)
    failures += judge(world, converged)
    judged = time.process_time()
    trial = Trial(
        seed=plan.seed,
        plan=plan.describe(),
        failures=tuple(failures),
        events=world.processed,
        steps=world.steps,
        frames=sum(node.frames_sent for node in world.nodes.values()),
        simulated_s=world.t,
        ran_s=ran - began,
        judged_s=judged - ran,
        marks=world.marks,
        converged=converged,
        digest=trace_digest(world) if with_digest else "",
    )
    return world, trial


def come_to_an_end(world: World) -> bool:
    """When the plan is over: nothing has grown too large, everything is healed, nothing is left over."""
    for problem in over_their_limits(world):
        world.found("X1", problem)
    converged = not world.failures and converge(world)
    for problem in left_over(world) if converged else ():
        world.found("X1", problem)
    return converged


def run_seed(
    seed: int, *, engine: str = ENGINE, judge: Judge = judge_with_checkers, with_digest: bool = False
) -> Trial:
    """Run one seed."""
    return run_plan(draw(seed), engine=engine, judge=judge, with_digest=with_digest)[1]


def trace_digest(world: World) -> str:
    """A fingerprint of the whole history."""
    digest = hashlib.sha256()
    for line in world.history.lines():
        digest.update(line)
    return digest.hexdigest()


@attrs.frozen
class Prefix:
    """The shortest beginning of a run that already fails."""

    events: int
    t: float
    failure: Failure


def shortest_prefix(plan: Plan, trial: Trial, *, engine: str = ENGINE, judge: Judge = judge_with_checkers) -> Prefix:
    """Cut a failing run as short as it still fails.

    A failure that only the healed end shows (no convergence) has no shorter prefix: the whole run is it.
    """
    first = trial.failures[0]
    whole = Prefix(trial.events, trial.simulated_s, first)

    def fails(events: int) -> Prefix | None:
        world, cut = run_plan(plan, engine=engine, judge=judge, events_max=events)
        return Prefix(world.processed, world.t, cut.failures[0]) if cut.failures else None

    # The prefix run does not heal at ``plan.seconds``, so it is the same run only up to there.
    _, before_healing = run_plan(plan, engine=engine, judge=judge, until=plan.seconds)
    if not before_healing.failures:
        return whole
    best = Prefix(before_healing.events, before_healing.simulated_s, before_healing.failures[0])
    low, high = 0, best.events
    while high - low > 1:
        middle = (low + high) // 2
        cut = fails(middle)
        if cut is None:
            low = middle
        else:
            best, high = cut, middle
    return best
