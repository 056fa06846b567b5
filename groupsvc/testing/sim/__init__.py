"""The simulator: a whole domain in one process, driven from one seed, with every fault we know by name."""

from __future__ import annotations

from .clients import Habits
from .convergence import converge, disagreement
from .group_users import GroupHabits
from .nemeses import BY_NAME as NEMESES
from .network import CALM, Weather
from .node import Node
from .plan import Plan, draw
from .transcript import Play
from .trial import Trial, run_plan, run_seed, shortest_prefix
from .world import Failure, World, load_engine

__all__ = [
    "CALM",
    "NEMESES",
    "Failure",
    "GroupHabits",
    "Habits",
    "Node",
    "Plan",
    "Play",
    "Trial",
    "Weather",
    "World",
    "converge",
    "disagreement",
    "draw",
    "load_engine",
    "run_plan",
    "run_seed",
    "shortest_prefix",
]
