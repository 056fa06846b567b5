"""``groupsvcd``: the command that starts the daemon of a node.

Each kind of refusal has an exit code of its own, so that a supervisor can tell "try again" from "a person must look":

    0  stopped on request (SIGTERM, SIGINT), or the answer to --check-config, --version, --help
    1  the configuration is bad, or an address cannot be listened at
    2  the command line is wrong
    3  the engine halted, or an invariant broke; a restart is right
    4  the state directory must not be used; a restart will not help
    5  the disk failed while running; a restart reads what is really there
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from groupsvc import __version__

from . import config as configuration
from . import daemon
from .config import report
from .daemon import EXIT_CONFIG
from .io.reactor import EXIT_OK
from .observe import log as logs

EXIT_USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as end:  # --help, --version, or a wrong command line; argparse has said which
        return end.code if isinstance(end.code, int) else EXIT_USAGE
    path = arguments.config or os.environ.get("GROUPSVC_CONFIG")
    try:
        config = configuration.load(Path(path) if path else None)
    except configuration.BadConfig as bad:
        if arguments.check_config and arguments.json:
            print(json.dumps(report.of_problems(bad.problems)))
            return EXIT_CONFIG
        for problem in bad.problems:
            print(f"groupsvcd: {problem}", file=sys.stderr)
        return EXIT_CONFIG
    if arguments.check_config and arguments.json:
        print(json.dumps(report.of_config(config)))
        return EXIT_OK
    if arguments.check_config:
        return _report(config)
    logs.set_up(config.node, config.log_level)
    return daemon.run(config)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="groupsvcd",
        description="The groupsvc daemon of this node.",
        epilog="Without a configuration it is a domain of one, kept in memory. Every option can also be set as"
        " GROUPSVC_… in the environment. Exit codes: 0 stopped on request, 1 bad configuration or address in use,"
        " 2 wrong command line, 3 halted, 4 state directory refused, 5 disk error.",
    )
    parser.add_argument("--config", metavar="FILE", help="configuration in TOML (default: $GROUPSVC_CONFIG, else none)")
    parser.add_argument("--check-config", action="store_true", help="report every problem of the configuration and end")
    parser.add_argument("--json", action="store_true", help="with --check-config: print an object for programs")
    parser.add_argument("--version", action="version", version=f"groupsvcd {__version__}")
    return parser


def _report(config: configuration.Config) -> int:
    role = "voter" if config.is_voter else "node without a vote"
    print(f"configuration is good: {config.node}, {role} of a domain of {len(config.voters) or 1} voters")
    for warning in config.warnings():
        print(f"warning: {warning}")
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
