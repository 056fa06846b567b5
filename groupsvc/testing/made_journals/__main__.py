"""``python -m groupsvc.testing.made_journals DIR``: write journals of a domain that never was."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .planting import PLANTS
from .story import Shape
from .writing import make_journals


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m groupsvc.testing.made_journals", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR", help="where to write; it should be empty")
    parser.add_argument("--events", type=int, default=200_000, help="about how many lines (default: %(default)s)")
    parser.add_argument("--nodes", type=int, default=5, help="how many nodes (default: %(default)s)")
    parser.add_argument("--groups", type=int, default=8, help="how many groups (default: %(default)s)")
    parser.add_argument("--level", choices=("batch", "full"), default="full", help="default: %(default)s")
    parser.add_argument("--parquet", action="store_true", help="as Parquet, as groupsvc journal compact makes it")
    parser.add_argument("--jobs", type=int, default=1, help="processes that write (default: %(default)s)")
    parser.add_argument(
        "--plant", action="append", default=[], choices=(*PLANTS, "all"), help="a contradiction; may be given again"
    )
    options = parser.parse_args(arguments)
    plants = list(PLANTS) if "all" in options.plant else options.plant
    shape = Shape.of_events(options.events, nodes=options.nodes, groups=options.groups, level=options.level)
    began = time.monotonic()
    made = make_journals(options.directory, shape, plants=plants, parquet=options.parquet, jobs=options.jobs)
    print(f"{made.lines} lines, {made.files} files, {made.bytes} bytes in {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
