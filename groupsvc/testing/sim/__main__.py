"""``python -m groupsvc.testing.sim``: run seeds, replay one, fingerprint traces, sum up the ledger.

run --seeds 200                 a sample on both cores; exit code 1 if a promise was broken
replay 4711 --log               one seed again, told like a play
digest --seeds 5                fingerprints of traces
ledger                          what was run so far, by protocol and in all: seeds, failures, faults, marks
scale                           1 000 nodes and 10 000 groups: what they cost, measured against docs/SCALE.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ...cli.streams import outlive_readers
from . import ledger
from .plan import draw
from .runner import Order, check_determinism, run
from .transcript import Play
from .trial import judge_nothing, judge_with_checkers, run_plan, run_seed
from .world import ENGINE


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(arguments)
    outlive_readers()  # ``replay 4711 --log | head`` has the verdict of the whole run
    if options.command == "ledger":
        return _ledger(options.file)
    if options.plant is not None:
        # Imported only here: it reaches into the production core and is of no use to applications.
        from .planted import BY_NAME

        if options.plant not in BY_NAME:
            print(f"no bug {options.plant!r} to plant; there are: {', '.join(sorted(BY_NAME))}", file=sys.stderr)
            return 2
        with BY_NAME[options.plant].planted():
            return _obey(options)
    return _obey(options)


def _obey(options: argparse.Namespace) -> int:
    if options.command == "replay":
        return _replay(options)
    if options.command == "scale":
        from .scale.story import Size, Story

        size = Size(nodes=options.nodes, groups=options.groups, seconds=options.seconds, seed=options.first)
        table = Story(size, sys.stderr).tell()
        table.print(sys.stdout)
        return 1 if table.faults else 0
    if options.command == "digest":
        for seed in range(options.first, options.first + options.seeds):
            trial = run_seed(seed, engine=options.engine, judge=judge_nothing, with_digest=True)
            print(seed, trial.digest, trial.events)
        return 0
    order = Order(
        seeds=options.seeds,
        first=_first(options),
        jobs=options.jobs,
        minutes=options.minutes,
        ledger=options.ledger,
        engine=options.engine,
        checked=not options.unchecked,
        plant=options.plant,
        marks_required=options.require_marks,
    )
    if options.check_determinism:
        return check_determinism(order)
    return run(order)


def _first(options: argparse.Namespace) -> int:
    if options.first is not None:
        return int(options.first)
    return ledger.next_seed(options.ledger, ledger.protocol_version()) if options.ledger is not None else 0


def _ledger(file: Path) -> int:
    present = ledger.protocol_version()
    by_protocol = ledger.sums(file)
    for protocol, total in by_protocol.items():
        print(f"protocol {protocol}{' (the present one)' if protocol == present else ''}")
        for line in total.describe():
            print(f"  {line}")
    print(f"all {len(by_protocol)} protocols")
    for line in ledger.in_all(by_protocol).describe():
        print(f"  {line}")
    return 0


def _replay(options: argparse.Namespace) -> int:
    plan = draw(options.seed)
    print(f"seed {options.seed}: {plan.describe()}")
    play = Play(print, steady=options.steady) if options.log else None
    judge = judge_nothing if options.unchecked else judge_with_checkers
    world, trial = run_plan(
        plan, engine=options.engine, judge=judge, events_max=options.events, until=options.until, play=play
    )
    if play is not None:
        play.release()
    if options.trace is not None:
        with open(options.trace, "wb") as trace:
            trace.writelines(world.history.lines())
    for failure in trial.failures:
        print(f"{failure.invariant} at {failure.t:.6f}: {failure.text}")
    print(f"{trial.events} events, {trial.steps} steps, {trial.simulated_s:.3f} simulated s, {trial.ran_s:.2f} s")
    return 1 if trial.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m groupsvc.testing.sim", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--engine", default=ENGINE, help="module:class of the engine (default: %(default)s)")
    common.add_argument("--plant", metavar="BUG", help="with this bug in the core (see planted.py); it must be found")
    common.add_argument("--unchecked", action="store_true", help="do not run the checkers on the history")

    many = commands.add_parser("run", parents=[common], help="run a range of seeds")
    many.add_argument("--seeds", type=int, default=200)
    many.add_argument("--first", type=int, help="the first seed (default: the next one by the ledger, else 0)")
    many.add_argument("--jobs", type=int, default=2)
    many.add_argument("--minutes", type=float, help="begin no new seed after so many minutes")
    many.add_argument("--ledger", type=Path, help="append the result to this file")
    many.add_argument("--require-marks", action="store_true", help="fail if a required mark was not hit")
    many.add_argument("--check-determinism", action="store_true", help="compare traces of two processes instead")

    one = commands.add_parser("replay", parents=[common], help="run one seed again")
    one.add_argument("seed", type=int)
    one.add_argument("--until", type=float, help="stop at this simulated time and heal nothing")
    one.add_argument("--events", type=int, help="stop after so many events and heal nothing")
    one.add_argument("--trace", type=Path, help="write the history there, as ndjson")
    one.add_argument("--log", action="store_true", help="tell the run like a play")
    one.add_argument("--steady", action="store_true", help="with every beat and lease")

    books = commands.add_parser("ledger", help="sum up what was run so far")
    books.add_argument("file", type=Path, nargs="?", default=Path("docs/ledger/sim.ndjson"))

    scale = commands.add_parser("scale", parents=[common], help="a large run, measured against what is computed")
    scale.add_argument("--nodes", type=int, default=1_000)
    scale.add_argument("--groups", type=int, default=10_000)
    scale.add_argument("--seconds", type=float, default=60.0, help="simulated, in all")
    scale.add_argument("--first", type=int, default=1, help="the seed")

    digest = commands.add_parser("digest", parents=[common], help="print fingerprints of traces")
    digest.add_argument("--seeds", type=int, default=1)
    digest.add_argument("--first", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
