"""What a seed stands for: how large the world is, what is wrong with it, who uses it, and for how long.

Each seed has its own small palette of nemeses instead of all of them with small probability: two enemies that
meet often find more than twenty that meet by chance. Sizes are mostly small, because small worlds meet more
of their states per second; a few are large, so that nothing quadratic hides.
"""

from __future__ import annotations

import random
from typing import Any

import attrs

from .applications import ApplicationHabits
from .clients import Habits
from .group_nemeses import GROUP_NEMESES, GROUP_NEMESES_HARMLESS_TO_MEMORY
from .group_users import GroupHabits
from .nemeses import ALL, DRAWN_APART, HARMLESS_TO_MEMORY
from .network import CALM, Weather
from .newcomers import NewcomerHabits

FIRST_WITH_DRAINS = 400_000
"""Seeds before this one keep the enemies they had, in the same order."""

FIRST_WITH_NEWCOMERS = 350_000
ALL_WITH_NEWCOMERS = 1_000_000
"""Seeds before the first, and those between ``FIRST_WITH_DRAINS`` and the second, keep the users they had: some of them
stand in tests, as they were when they showed something."""


@attrs.frozen(kw_only=True)
class Plan:
    """Everything a run is made from, apart from the engine."""

    seed: int
    voters: int = 3
    nodes: int = 3
    seconds: float = 30.0
    faults: tuple[str, ...] = ()
    first_fault_at: float = 2.0
    fault_gap_s: float = 3.0
    weather: Weather = CALM
    habits: Habits = Habits()
    group_habits: GroupHabits = GroupHabits()
    application_habits: ApplicationHabits = ApplicationHabits()
    newcomer_habits: NewcomerHabits = NewcomerHabits()
    parameters: dict[str, Any] = attrs.field(factory=dict)
    parameters_of: dict[str, dict[str, Any]] = attrs.field(factory=dict)

    def describe(self) -> str:
        """One line for people."""
        faults = ", ".join(self.faults) or "no faults"
        groups = self.group_habits
        users = f" {groups.members} members of {groups.groups} groups," if groups.groups else ""
        apps = self.application_habits
        users += f" {apps.count} applications in {apps.groups} groups," if apps.count else ""
        users += f" {apps.ranks} tasks," if apps.ranks else ""
        users += f" {self.newcomer_habits.operators} who make tokens," if self.newcomer_habits.operators else ""
        return (
            f"{self.voters} voters, {self.nodes - self.voters} other nodes, {self.habits.count} clients,{users}"
            f" {self.seconds:.0f} s: {faults}"
        )


def has_groups(seed: int) -> bool:
    """Whether somebody uses groups in the world of a seed: the same answer since there are groups."""
    return random.Random(f"plan of groups/{seed}").random() >= 0.2


def has_applications(seed: int) -> bool:
    """Whether there are applications in it: the same answer since there are any."""
    return has_groups(seed) and _are_applications_drawn(seed)


def _are_applications_drawn(seed: int) -> bool:
    return random.Random(f"plan of applications/{seed}").random() >= 0.25


def draw(seed: int) -> Plan:
    """The plan of a seed."""
    plan = draw_domain(seed)
    options = random.Random(f"plan of options/{seed}").choice([0.0, 0.3])
    plan = attrs.evolve(plan, habits=attrs.evolve(plan.habits, options=options), newcomer_habits=draw_newcomers(seed))
    if not has_groups(seed):
        return plan
    rng = random.Random(f"plan of groups/{seed}")
    rng.random()  # whether there are groups
    groups = rng.choice([1, 1, 2, 3, 6])
    habits = GroupHabits(
        groups=groups,
        members=rng.randint(2, 4 + 2 * groups),
        strangers=rng.choice([0, 1, 2]),
        think_s=rng.choice([0.1, 0.3, 1.0]),
        burst=rng.choice([1, 4, 20]),
        window=rng.choice([4, 40]),
        leave=rng.choice([0.0, 0.02, 0.1]),
        returns=rng.choice([0.5, 1.0]),
    )
    common = {
        "group_checkpoint_every": rng.choice([5, 50, 1_000]),
        "history_entries_max": rng.choice([20, 1_000, 100_000]),
        "inline_bytes_max": rng.choice([20, 1_000, 16 * 1024]),
    }
    fast = random.Random(f"plan of fast groups/{seed}").choice([0.0, 0.0, 0.5, 1.0])
    waits = random.Random(f"plan of groups that wait/{seed}").choice([0.0, 0.0, 0.3])
    nodes = plan.nodes + (rng.randint(0, 3) if plan.nodes < 10 else 0)
    enemies = [nemesis.name for nemesis in rng.sample(GROUP_NEMESES, rng.choice([0, 1, 1, 2, 3]))]
    if not plan.parameters_of.get("n1", {}).get("durable", True):
        enemies = [name for name in enemies if name in GROUP_NEMESES_HARMLESS_TO_MEMORY]
    return attrs.evolve(
        plan,
        nodes=nodes,
        faults=(*plan.faults, *enemies, *_later_enemies(seed, plan)),
        group_habits=attrs.evolve(habits, fast=fast, waits=waits),
        application_habits=draw_applications(seed),
        parameters={**plan.parameters, **common},
    )


def draw_newcomers(seed: int) -> NewcomerHabits:
    """Who makes tokens and enrols with them: somebody in half of the worlds that may have such people."""
    if not (FIRST_WITH_NEWCOMERS <= seed < FIRST_WITH_DRAINS or seed >= ALL_WITH_NEWCOMERS):
        return NewcomerHabits()
    rng = random.Random(f"plan of newcomers/{seed}")
    return NewcomerHabits(
        operators=rng.choice([0, 0, 1, 2]), names=rng.choice([1, 2, 4]), think_s=rng.choice([0.5, 1.5]),
        pause_s=rng.choice([0.01, 0.3]), timeout_s=rng.choice([0.5, 2.0]), valid_s=rng.choice([2.0, 20.0]),
    )  # fmt: skip


def draw_applications(seed: int) -> ApplicationHabits:
    """Who uses process groups: in most worlds with groups a handful of applications does."""
    if not _are_applications_drawn(seed):
        return ApplicationHabits()
    rng = random.Random(f"plan of applications/{seed}")
    rng.random()  # whether there are any
    # Each of these has a source of its own, so that what a seed drew before they were added stays the same.
    of_tables = random.Random(f"plan of tables of applications/{seed}")
    of_barriers = random.Random(f"plan of barriers of applications/{seed}")
    of_stuck = random.Random(f"plan of applications that are stuck/{seed}")
    of_tasks = random.Random(f"plan of tasks and of barriers that wait/{seed}")
    of_kinds = random.Random(f"plan of kinds of groups of applications/{seed}")
    return ApplicationHabits(
        barriers=of_barriers.choice([0, 0, 1, 2, 3]),
        keeps=of_tasks.choice([0.0, 0.0, 0.5]),
        ranks=of_tasks.choice([0, 0, 0, 2, 3]),
        tables=of_tables.choice([0.0, 0.0, 0.5, 1.0]),
        earlier=of_tables.choice([0.0, 0.4]),
        count=rng.choice([2, 3, 4, 5]),
        groups=rng.choice([1, 1, 2]),
        parts_max=rng.choice([1, 2]),
        think_s=rng.choice([0.4, 0.8, 1.5]),
        burst=rng.choice([1, 4, 10]),
        watch=rng.choice([0.0, 0.2]),
        trouble_s=rng.choice([0.0, 5.0, 12.0]),
        stuck_s=of_stuck.choice([0.0, 0.0, 3.0]),
        exclusive=of_kinds.choice([0.0, 0.0, 0.5, 1.0]),
        fast=of_kinds.choice([0.0, 0.0, 0.5, 1.0]),
        continues=of_kinds.choice([0.0, 0.5, 1.0]),
        breaks_again=of_kinds.choice([0.0, 0.5]),
        hunted=of_kinds.choice([False, True]),
    )


def _later_enemies(seed: int, plan: Plan) -> tuple[str, ...]:
    """Those that were thought of later: half of the seeds have one or two, and all have those of before."""
    rng = random.Random(f"plan of later enemies of groups/{seed}")
    drawn = rng.sample(DRAWN_APART, rng.choice([0, 0, 1, 2]))
    in_memory = not plan.parameters_of.get("n1", {}).get("durable", True)
    is_drained = seed >= FIRST_WITH_DRAINS and random.Random(f"plan of drains/{seed}").random() < 0.4
    drains = ("drain",) if is_drained else ()
    return () if in_memory else (*(nemesis.name for nemesis in drawn), *drains)


def draw_domain(seed: int) -> Plan:
    """The plan of a seed as far as it concerns the domain, without programs that use groups."""
    rng = random.Random(f"plan/{seed}")
    voters = rng.choices([1, 2, 3, 5], weights=[4, 8, 70, 18])[0]
    others = 0 if rng.random() < 0.5 else rng.randint(1, 3)
    seconds = rng.uniform(15.0, 45.0)
    if rng.random() < 0.01:
        others, seconds = rng.randint(20, 120), 12.0
    names = [f"n{i}" for i in range(1, voters + others + 1)]
    palette = tuple(nemesis.name for nemesis in rng.sample(ALL, rng.choice([1, 2, 2, 3, 4, 6])))
    common: dict[str, Any] = {
        "checkpoint_every": rng.choice([5, 20, 100, 1_000]),
        "retention_margin": rng.choice([1, 5, 50]),
        "checkpoint_block_bytes": rng.choice([200, 1_000, 1_000_000]),
    }
    of: dict[str, dict[str, Any]] = {name: {"measured": rng.randrange(3)} for name in names}
    for name in names[:voters]:
        if rng.random() < 0.1:
            of[name]["preference"] = rng.randrange(5)
    if rng.random() < 0.15:
        of[rng.choice(names[:voters])]["pinned"] = True
    if voters >= 3 and rng.random() < 0.1:
        of[rng.choice(names[:voters])]["candidate"] = False
    if voters == 1 and rng.random() < 0.3:
        of[names[0]]["durable"] = False
        palette = tuple(name for name in palette if name in HARMLESS_TO_MEMORY)
    weather = CALM
    if rng.random() < 0.3:
        weather = Weather(
            delay_spread=rng.choice([0.002, 0.02, 0.08]),
            loss=rng.choice([0.0, 0.01]),
            repeat=rng.choice([0.0, 0.01]),
            overtake=rng.choice([0.0, 0.05]),
            late=rng.choice([0.0, 0.002]),
        )
    return Plan(
        seed=seed,
        voters=voters,
        nodes=len(names),
        seconds=seconds,
        faults=palette,
        first_fault_at=0.0 if rng.random() < 0.15 else rng.uniform(1.0, 4.0),
        fault_gap_s=rng.choice([0.7, 2.0, 5.0]),
        weather=weather,
        habits=Habits(count=rng.choice([1, 3, 5]), think_s=rng.choice([0.1, 0.5]), timeout_s=rng.choice([1.0, 4.0])),
        parameters=common,
        parameters_of=of,
    )
