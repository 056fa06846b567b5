"""``groupsvc audit``: any amount of event journals, checked on Spark. It asks no daemon.

What it takes stands here, and what it does in ``groupsvc.spark.audit``, which no other command has to import.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .exit_codes import EXIT_CODES_TEXT, ExitCode

if TYPE_CHECKING:
    from .options import Commands


MEMORY = "4g"


def add(commands: Commands) -> None:
    """Add the parser of this command."""
    parser = commands.add_parser(
        "audit", help="check event journals of all nodes on Spark, and write a report",
        description="Check the event journals of all nodes of a domain on Spark, and write tables and a report.",
        epilog=f"example:\n  groupsvc audit n1/ n2/ n3/ --out audit/\n\n{EXIT_CODES_TEXT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    options(parser)
    parser.set_defaults(command=_audit)


def options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "journals", nargs="+", metavar="PATH",
        help="directories with journals, segments, or histories of whole runs; also what Hadoop can read",
    )  # fmt: skip
    parser.add_argument(
        "--out", required=True, metavar="DIR",
        help="where report and tables are written; on a cluster, an address that all workers reach",
    )  # fmt: skip
    parser.add_argument("--apart", action="store_true", help="every PATH has the journals of a domain of its own")
    parser.add_argument(
        "--settled", action="store_true",
        help="the domain was at rest when the journals ended: ask whether all have what anybody has",
    )  # fmt: skip
    parser.add_argument("--master", metavar="URL", help="of Spark (default: what spark-submit says, else local[*])")
    parser.add_argument("--memory", default=MEMORY, metavar="SIZE", help="of the driver (default: %(default)s)")
    parser.add_argument("--work", metavar="DIR", help="for tables meanwhile; on a cluster, an address as for --out")
    parser.add_argument("--json", action="store_true", help="print the summary as an object")
    parser.add_argument("--quiet", action="store_true", help="do not tell what is being done")


def _audit(chosen: argparse.Namespace) -> ExitCode:
    from ..spark.audit.command import run

    return ExitCode(run(chosen))
