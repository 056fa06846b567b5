"""``python -m bench.peers``: visit every peer that is installed, in turns, and write table and chart.

    python -m bench.peers                          all rows at all peers, five rounds: about a quarter of an hour
    python -m bench.peers --peers corosync,redis   these beside the floor and ours
    python -m bench.peers --rows barrier-8,single  these rows alone
    python -m bench.peers --calm 20                wait for moments in which others use little of the machine
    python -m bench.peers --quick                  one short round: whether it works, not how fast it is
    python -m bench.peers --page                   table and chart from the results there are

What was measured is kept in a file of results. Another part of the same day is added to it, and takes the place of the
same rows of another commit; on another day it begins anew. Every part has the floor and ours in it, as only figures of
one round are divided.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from . import results
from .page import OWN, write_page
from .peer import Peer
from .rows import QUICK, ROWS, WHOLE
from .those import PEERS, chosen
from .visitor import FailedRow, FoundFigure, visited

ROUNDS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for; 1 if something that is installed failed."""
    options = _parsed(arguments)
    if options.page:
        write_page(results.read(options.results))
        return 0
    peers, missing = chosen(options.peers)
    for name, why in missing.items():
        print(f"without {name}: {why}", file=sys.stderr)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all servers are ended on the way out
    rows = frozenset(options.rows or ROWS)
    measured = results.new(peers, missing, sys.argv[1:] if arguments is None else arguments)
    failed = 0
    rounds = 1 if options.quick else options.runs
    began = time.monotonic()
    for number in range(rounds):
        for position, peer in enumerate(_turn(peers, number)):
            failed += not _visited(peer, rows, number, measured, options)
            done = number * len(peers) + position + 1
            left = (time.monotonic() - began) / done * (rounds * len(peers) - done)
            print(
                f"  round {number + 1} of {rounds}; about {left / 60:.1f} minutes left; others used"
                f" {100 * measured.parts[0].others[-1]:.0f} % of the machine",
                file=sys.stderr,
                flush=True,
            )
    if options.quick:
        print(results.text(measured))
        return min(failed, 1)
    whole = results.merged(options.results, measured)
    results.write(options.results, whole)
    print(results.text(whole))
    write_page(whole)
    return min(failed, 1)


def _turn(peers: list[Peer], number: int) -> list[Peer]:
    """Floor and ours first; the others begin with another one in every round, so that none always comes late."""
    own = [peer for peer in peers if peer.name in OWN]
    others = [peer for peer in peers if peer.name not in OWN]
    first = number % len(others) if others else 0
    return [*own, *others[first:], *others[:first]]


def _visited(
    peer: Peer, rows: frozenset[str], number: int, measured: results.Results, options: argparse.Namespace
) -> bool:
    part = measured.parts[0]
    part.others.append(round(results.wait_until_calm(options.calm / 100), 3))
    is_whole = True
    for said in visited(peer.name, rows, QUICK if options.quick else WHOLE):
        if isinstance(said, FoundFigure) and ROWS[said.row].is_better_higher and not said.value:
            said = FailedRow(said.row, "nothing was delivered at all three while it was measured")
        if isinstance(said, FoundFigure):
            measured.samples.append(results.Sample(measured.run, number, said.peer, said.row, said.value))
            print(
                f"{said.peer:<14} {said.row:<11} {said.value:,.4g} {ROWS[said.row].unit}", file=sys.stderr, flush=True
            )
        else:
            is_whole = False
            print(f"{peer.name:<14} {said.row:<11} failed: {said.why}", file=sys.stderr, flush=True)
            what = ROWS[said.row].title if said.row else "what was still to come"
            part.failures.append(f"{peer.title}, {what}, round {number + 1}: {said.why}")
    return is_whole


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    def listed(known: Sequence[str]) -> object:
        def read(text: str) -> list[str]:
            names = text.split(",")
            if unknown := [name for name in names if name not in known]:
                raise argparse.ArgumentTypeError(f"no such thing: {', '.join(unknown)}; there are {', '.join(known)}")
            return names

        return read

    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=listed(list(PEERS)), help=f"of: {', '.join(PEERS)}")
    parser.add_argument("--rows", type=listed(list(ROWS)), help=f"of: {', '.join(ROWS)}")
    parser.add_argument("--runs", type=int, default=ROUNDS, help=f"rounds (default {ROUNDS})")
    parser.add_argument(
        "--calm", type=float, default=100, metavar="PERCENT",
        help="before each visit wait until others use at most so much of the machine, for five minutes if need be",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="one short round; nothing is written")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page anew")
    parser.add_argument("--results", type=Path, default=results.FILE, help="the file of results")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
