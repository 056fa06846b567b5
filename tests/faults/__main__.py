"""Faults on real daemons, from the command line: run some, run all, check a history that was kept.

python -m tests.faults run --nemesis kill --workload mix --seed 7 --seconds 30
python -m tests.faults run --matrix --runs 3
python -m tests.faults check histories/kill-mix-3-7-1700000000.ndjson
python -m tests.faults list
python -m tests.faults kills --minutes 10
python -m tests.faults soak --hours 24
python -m tests.faults ledger
python -m tests.faults planted
python -m tests.faults sweep
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
from pathlib import Path

from . import kills, ledger, recording, soak
from .judging import counts, judge
from .nemeses import NEMESES
from .planted import FOUND_BY
from .runs import Run
from .wires import Missing, sweep
from .workloads import WORKLOADS

SHOWN_MAX = 20
PLANTED_SEEDS_MAX = 5
LEDGERS = Path(__file__).parents[2] / "docs" / "ledger"


def main(argv: list[str] | None = None) -> int:
    """The command; 1 if something was found, 2 if nothing could be run."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="faults on real daemons")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run one, or all")
    run.add_argument("--nemesis", action="append", choices=sorted(NEMESES))
    run.add_argument("--workload", action="append", choices=sorted(WORKLOADS))
    run.add_argument("--matrix", action="store_true", help="every nemesis; workloads in turn, or those that are named")
    run.add_argument("--runs", type=int, default=1, help="of each nemesis")
    run.add_argument("--seed", type=int, default=1)
    run.add_argument("--nodes", type=int, default=0, help="default: three and five in turn")
    run.add_argument("--seconds", type=float, default=25.0)
    run.add_argument("--keep", action="store_true", help="keep histories of good runs, too")
    run.add_argument("--plant", default="", help="one of the simulator's bugs, in every daemon: the run must be red")
    run.add_argument("--ledger", type=Path, default=None)
    check = commands.add_parser("check", help="judge histories that were kept")
    check.add_argument("files", nargs="+", type=Path)
    killing = commands.add_parser("kills", help="full load, and leaders are killed twice a minute")
    killing.add_argument("--minutes", type=float, default=10.0)
    killing.add_argument("--per-minute", type=float, default=2.0)
    killing.add_argument("--seed", type=int, default=1)
    killing.add_argument("--ledger", type=Path, default=None)
    soaking = commands.add_parser("soak", help="one nemesis after the other for hours, and nothing may grow")
    soaking.add_argument("--hours", type=float, default=1.0)
    soaking.add_argument("--seed", type=int, default=1)
    soaking.add_argument("--ledger", type=Path, default=None)
    commands.add_parser("ledger", help="what all runs add up to")
    commands.add_parser("planted", help="bugs for disks, each of which its nemesis must find")
    commands.add_parser("list", help="all nemeses and workloads, and what is missing here")
    commands.add_parser("sweep", help="remove namespaces that a run has left behind")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that everything is removed
    match arguments.command:
        case "run":
            return _run(arguments)
        case "check":
            return max(map(_check, arguments.files))
        case "kills":
            return _kills(arguments)
        case "soak":
            return _soak(arguments)
        case "ledger":
            return _ledger()
        case "planted":
            return _planted()
        case "list":
            return _list()
        case _:
            print(f"removed: {', '.join(sweep()) or 'nothing'}")
            return 0


def _run(arguments: argparse.Namespace) -> int:
    nemeses = sorted(NEMESES) if arguments.matrix and not arguments.nemesis else arguments.nemesis or ["kill"]
    workloads = arguments.workload or (sorted(WORKLOADS) if arguments.matrix else ["mix"])
    is_red, ran, number = False, 0, 0
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        for nemesis in nemeses:
            workload = workloads[number % len(workloads)]
            number += 1
            one = Run(
                nemesis=nemesis, workload=workload, seed=seed, seconds=arguments.seconds, keep=arguments.keep,
                plant=arguments.plant, nodes=arguments.nodes or (5 if number % 3 == 0 else 3),
            )  # fmt: skip
            try:
                result = one.go()
            except Missing as missing:
                print(f"{one.title}: skipped, {missing}", flush=True)
                continue
            ran += 1
            is_red |= bool(result.findings)
            line = ledger.line_of(result)
            print(ledger.in_words(line), flush=True)
            for finding in result.findings[:SHOWN_MAX]:
                print(f"    {finding}", flush=True)
            if result.kept is not None:
                print(f"    kept: {result.kept}", flush=True)
            if arguments.ledger is not None and not arguments.plant:
                ledger.append(arguments.ledger, line)
    return 2 if not ran else int(is_red)


def _kills(arguments: argparse.Namespace) -> int:
    run = kills.KillRun(minutes=arguments.minutes, per_minute=arguments.per_minute, seed=arguments.seed)
    try:
        line = run.go()
    except Missing as missing:
        print(f"cannot be run here: {missing}", file=sys.stderr)
        return 2
    print("\n".join(["Why sessions have ended:", *(f"  {note}" for note in run.notes)]), flush=True)
    print(kills.in_words(run, line), flush=True)
    if arguments.ledger is not None:
        ledger.append(arguments.ledger, line)
    return int(line["verdict"] == "red")


def _soak(arguments: argparse.Namespace) -> int:
    run = soak.Soak(hours=arguments.hours, seed=arguments.seed)
    try:
        line = run.go()
    except Missing as missing:
        print(f"cannot be run here: {missing}", file=sys.stderr)
        return 2
    print(soak.in_words(run, line), flush=True)
    if arguments.ledger is not None:
        ledger.append(arguments.ledger, line)
    return int(line["verdict"] == "red")


def _ledger() -> int:
    print(ledger.table(ledger.read(LEDGERS / "faults.ndjson")))
    for name in ("kills", "soak"):
        for line in ledger.read(LEDGERS / f"{name}.ndjson"):
            figures = {key: value for key, value in line.items() if key not in ("kind", "problems")}
            print(f"{name}: {json.dumps(figures)}")
    return 0


def _planted() -> int:
    """1 if a bug was not found."""
    missed = 0
    for plant, (nemesis, words) in FOUND_BY.items():
        for seed in range(1, PLANTED_SEEDS_MAX + 1):
            findings = map(str, Run(nemesis=nemesis, workload="mix", seed=seed, plant=plant).go().findings)
            found = next((one for one in findings if re.match(words, one)), "")
            if found:
                print(f"{plant} is found by {nemesis} with seed {seed}: {found}", flush=True)
                break
        else:
            print(f"{plant} is not found by {nemesis} in {PLANTED_SEEDS_MAX} runs", flush=True)
            missed += 1
    return int(missed > 0)


def _check(path: Path) -> int:
    history = recording.read(path)
    findings, found = judge(history), counts(history)
    print(f"{path}: {len(history)} lines, {found.ops} calls, longest gap {found.gap_s} s, {len(findings)} findings")
    for finding in findings:
        print(f"    {finding}")
    return int(bool(findings))


def _list() -> int:
    for name, nemesis in NEMESES.items():
        try:
            nemesis().look()
            words = ""
        except Missing as missing:
            words = f" (not here: {missing})"
        print(f"nemesis {name}: {(nemesis.__doc__ or '').strip()}{words}")
    for name in WORKLOADS:
        print(f"workload {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
