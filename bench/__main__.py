"""``python -m bench [MEASURE…]``: measure, print the table, exit with 1 if a promise does not hold."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from . import (
    barriers,
    busy_machine,
    costs,
    failover,
    formation,
    group_failover,
    journal,
    keys,
    locks,
    memory,
    multicast,
    sessions,
    simulator,
    spark_barriers,
    stopped_receiver,
    watched,
)
from .row import Effort, Measure, Row, table

MEASURES: dict[str, Measure] = {
    "kill": failover.killed,
    "pause": failover.paused,
    "busy": busy_machine.measure,
    "start": formation.measure,
    "memory": memory.measure,
    "sim": simulator.measure,
    "floor": multicast.bare,
    "costs": costs.measure,
    "rates": multicast.rates,
    "durable": multicast.durable,
    "journal": journal.measure,
    "form": multicast.formation,
    "leader": group_failover.killed,
    "stopped": stopped_receiver.measure,
    "clients": sessions.rates,
    "ballots": sessions.ballots,
    "deaths": sessions.deaths,
    "import": sessions.importing,
    "barriers": barriers.rates,
    "broken": barriers.deaths,
    "keys": keys.measure,
    "locks": locks.handover,
    "spark": spark_barriers.rates,
    "metrics": watched.measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measures asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"any of: {', '.join(MEASURES)} (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each measure; the median is shown (default 5)")
    parser.add_argument("--quick", action="store_true", help="one short run of each: for a first impression only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.measures if name not in MEASURES]
    if unknown or options.runs < 1:
        parser.error(f"no such measure: {', '.join(unknown)}" if unknown else "--runs must be at least 1")
    effort = Effort(runs=1 if options.quick else options.runs, quick=options.quick)
    rows: list[Row] = []
    for name in options.measures or MEASURES:
        began = time.monotonic()
        rows += MEASURES[name](effort)
        print(f"{name}: measured in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(table(rows))
    if options.json is not None:
        options.json.write_text(json.dumps([attrs.asdict(row) for row in rows], indent=2) + "\n")
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
