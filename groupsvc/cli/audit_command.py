"""``groupsvc audit``: any amount of event journals, checked on Spark. It asks no daemon."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .exit_codes import EXIT_CODES_TEXT, ExitCode

if TYPE_CHECKING:
    from .options import Commands


def add(commands: Commands) -> None:
    """Add the parser of this command."""
    from ..spark.audit.command import options  # imports no pyspark

    parser = commands.add_parser(
        "audit", help="check event journals of all nodes on Spark, and write a report",
        description="Check the event journals of all nodes of a domain on Spark, and write tables and a report.",
        epilog=f"example:\n  groupsvc audit n1/ n2/ n3/ --out audit/\n\n{EXIT_CODES_TEXT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    options(parser)
    parser.set_defaults(command=_audit)


def _audit(options: argparse.Namespace) -> ExitCode:
    from ..spark.audit.command import run

    return ExitCode(run(options))
