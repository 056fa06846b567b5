"""Many seeds on all cores: a progress bar, a summary, and for a failure everything needed to see it again."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.pool import AsyncResult
from pathlib import Path
from typing import TextIO

import attrs

from . import ledger, marks
from .plan import draw
from .trial import Judge, Trial, judge_nothing, judge_with_checkers, run_seed, shortest_prefix
from .world import ENGINE

FAILURES_EXPLAINED_MAX = 3
"""Each explanation runs the seed a dozen times more."""

SEEDS_PER_TASK = 4


@attrs.frozen(kw_only=True)
class Order:
    """What was asked for on the command line."""

    seeds: int
    first: int = 0
    jobs: int = 2
    minutes: float | None = None
    ledger: Path | None = None
    engine: str = ENGINE
    checked: bool = True
    plant: str | None = None  # the name of a bug that is planted in the core, for the replay
    marks_required: bool = False
    failures_max: int = 10

    @property
    def judge(self) -> Judge:
        """Who looks at the finished worlds."""
        return judge_with_checkers if self.checked else judge_nothing


@attrs.define
class Tally:
    """What all trials add up to."""

    seeds: int = 0
    with_groups: int = 0
    with_applications: int = 0
    steps: int = 0
    frames: int = 0
    simulated_s: float = 0.0
    ran_s: float = 0.0
    judged_s: float = 0.0
    marks: dict[str, int] = attrs.field(factory=dict)
    failed: list[Trial] = attrs.field(factory=list)

    def add(self, trial: Trial) -> None:
        """Count one more."""
        plan = draw(trial.seed)
        self.seeds += 1
        self.with_groups += plan.group_habits.groups > 0
        self.with_applications += plan.application_habits.count > 0
        self.steps += trial.steps
        self.frames += trial.frames
        self.simulated_s += trial.simulated_s
        self.ran_s += trial.ran_s
        self.judged_s += trial.judged_s
        for name, count in trial.marks.items():
            self.marks[name] = self.marks.get(name, 0) + count
        if trial.failures:
            self.failed.append(trial)

    @property
    def faults(self) -> dict[str, int]:
        """How often each nemesis came, by name."""
        prefix = "fault "
        return {name.removeprefix(prefix): n for name, n in sorted(self.marks.items()) if name.startswith(prefix)}

    @property
    def other_marks(self) -> dict[str, int]:
        """How often each place of the engines was come by."""
        return {name: n for name, n in sorted(self.marks.items()) if not name.startswith("fault ")}


def run(order: Order, out: TextIO = sys.stdout) -> int:
    """Run the seeds, print the summary; the exit code."""
    began = time.monotonic()
    tally = Tally()
    bar = Bar(order.seeds, sys.stderr)
    for trial in _trials(order, tally, began):
        tally.add(trial)
        bar.show(tally.seeds, len(tally.failed))
    bar.end()
    took = time.monotonic() - began
    print_summary(tally, took, out)
    absent = marks.missing(tally.marks)
    if absent:
        print(f"marks not hit: {', '.join(absent)}", file=out)
    tally.failed.sort(key=lambda trial: trial.seed)
    for trial in tally.failed[:FAILURES_EXPLAINED_MAX]:
        explain(trial, order, out)
    for trial in tally.failed[FAILURES_EXPLAINED_MAX:]:
        print(f"seed {trial.seed} failed, too: {trial.failures[0].invariant}", file=out)
    if order.ledger is not None:
        failed = [trial.seed for trial in tally.failed]
        ledger.append(
            order.ledger, first=order.first, seeds=tally.seeds, failed=failed, result="failed" if failed else "ok",
            with_groups=tally.with_groups, with_applications=tally.with_applications,
            steps=tally.steps, simulated_s=round(tally.simulated_s), took_s=round(took, 1),
            marks=tally.other_marks, faults=tally.faults,
        )  # fmt: skip
        total, total_failed = ledger.seeds_so_far(order.ledger, ledger.protocol_version())
        print(f"ledger: {total} seeds of this protocol so far, {total_failed} failed", file=out)
    return 1 if tally.failed or (absent and order.marks_required) else 0


def _trials(order: Order, tally: Tally, began: float) -> Iterator[Trial]:
    def time_is_up() -> bool:
        late = order.minutes is not None and time.monotonic() - began > order.minutes * 60
        return late or len(tally.failed) >= order.failures_max

    seeds = range(order.first, order.first + order.seeds)
    if order.jobs <= 1:
        _prepare()
        for seed in seeds:
            if time_is_up():
                return
            yield _run_one(seed, order)
        return
    with multiprocessing.Pool(order.jobs, initializer=_prepare) as pool:
        # Only a few tasks are under way at a time, so that the seeds that were run are a range when time is up.
        under_way: list[AsyncResult[list[Trial]]] = []
        position = 0
        while position < len(seeds) or under_way:
            while position < len(seeds) and len(under_way) < 2 * order.jobs and not time_is_up():
                chunk = seeds[position : position + SEEDS_PER_TASK]
                under_way.append(pool.apply_async(_run_some, (chunk, order)))
                position += SEEDS_PER_TASK
            if not under_way:
                return
            yield from under_way.pop(0).get()


def _prepare() -> None:
    # A run makes few cycles and much that lives to its end: collecting between runs is enough. What was imported stays
    # for good and need not be looked at each time.
    gc.disable()
    gc.freeze()


def _run_some(seeds: range, order: Order) -> list[Trial]:
    return [_run_one(seed, order) for seed in seeds]


def _run_one(seed: int, order: Order) -> Trial:
    trial = run_seed(seed, engine=order.engine, judge=order.judge)
    gc.collect()
    return trial


class Bar:
    """How far it is, redrawn in place on a terminal, now and then in a log."""

    WIDTH = 40

    def __init__(self, total: int, out: TextIO) -> None:
        self.total = max(total, 1)
        self.out = out
        self.began = time.monotonic()
        self.next_note = 0.1

    def show(self, done: int, failed: int) -> None:
        """Draw."""
        share = done / self.total
        took = time.monotonic() - self.began
        left = took / share - took if share else 0.0
        text = f"{done}/{self.total} seeds, {failed} failed, {left:.0f} s left"
        if self.out.isatty():
            filled = int(share * self.WIDTH)
            self.out.write(f"\r[{'#' * filled}{'.' * (self.WIDTH - filled)}] {text}   ")
            self.out.flush()
        elif share >= self.next_note:
            self.out.write(f"{text}\n")
            self.out.flush()
            self.next_note += 0.1

    def end(self) -> None:
        """Leave the line."""
        if self.out.isatty():
            self.out.write("\n")


def print_summary(tally: Tally, took: float, out: TextIO) -> None:
    """The numbers of a sample."""
    core_s = max(tally.ran_s, 1e-9)
    print(f"{tally.seeds} seeds, {len(tally.failed)} failed, {took:.1f} s", file=out)
    print(
        f"{tally.steps} engine steps, {tally.frames} frames, {tally.simulated_s:.0f} simulated s;"
        f" {tally.steps / core_s:.0f} steps and {tally.simulated_s / core_s:.0f} simulated s per core-second"
        f" (checkers: {tally.judged_s / max(tally.ran_s + tally.judged_s, 1e-9):.0%} of the time)",
        file=out,
    )
    print("faults: " + (", ".join(f"{name} {n}" for name, n in tally.faults.items()) or "none"), file=out)
    print("marks: " + (", ".join(f"{name} {n}" for name, n in tally.other_marks.items()) or "none"), file=out)


def explain(trial: Trial, order: Order, out: TextIO) -> None:
    """Say what failed, how soon, and how to see it again."""
    prefix = shortest_prefix(draw(trial.seed), trial, engine=order.engine, judge=order.judge)
    print(f"\nseed {trial.seed} failed: {trial.plan}", file=out)
    print(f"  {prefix.failure.invariant}: {prefix.failure.text}", file=out)
    for other in trial.failures[1:5]:
        print(f"  also {other.invariant}: {other.text}", file=out)
    print(f"  shortest prefix: {prefix.events} events, up to t = {prefix.t:.6f} s", file=out)
    more = "" if order.engine == ENGINE else f" --engine {order.engine}"
    more += "" if order.checked else " --unchecked"
    more += f" --plant {order.plant}" if order.plant else ""
    if prefix.events < trial.events:
        more += f" --events {prefix.events}"
    print(f"  replay: python -m groupsvc.testing.sim replay {trial.seed}{more} --log", file=out)


def check_determinism(order: Order, out: TextIO = sys.stdout) -> int:
    """Run every seed in two processes with different hash seeds and compare the traces (X3)."""
    command = [sys.executable, "-m", "groupsvc.testing.sim", "digest", "--first", str(order.first)]
    command += ["--seeds", str(order.seeds), "--engine", order.engine]
    digests = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"could not run {' '.join(command)}: {done.stderr}", file=out)
            return 1
        digests.append(done.stdout.splitlines())
    different = [a.split()[0] for a, b in zip(*digests, strict=True) if a != b]
    if different:
        print(f"X3: seeds whose trace depends on the hash seed: {', '.join(different)}", file=out)
        return 1
    print(f"{order.seeds} seeds gave the same trace twice", file=out)
    return 0
