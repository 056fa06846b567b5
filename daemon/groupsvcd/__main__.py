"""``groupsvcd``: the command that starts the daemon of a node.

Each kind of refusal has an exit code of its own, so that a supervisor can tell "try again" from "a person must look":

    0  stopped on request (SIGTERM, SIGINT) or drained (SIGUSR2), or the answer to --check-config, --version, --help
    1  an address cannot be listened at; it may be there in a moment
    2  the command line or the configuration is wrong; a restart will not help
    3  the engine halted, or an invariant broke; a restart is right
    4  the state directory must not be used; a restart will not help
    5  the disk failed while running; a restart reads what is really there
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import config as configuration
from . import daemon
from .command_line import EXIT_USAGE
from .command_line import parser as _parser
from .config import report
from .io.reactor import EXIT_OK
from .observe import log as logs


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as end:  # --help, --version, or a wrong command line; argparse has said which
        return end.code if isinstance(end.code, int) else EXIT_USAGE
    named = arguments.config or os.environ.get("GROUPSVC_CONFIG")
    path = Path(named) if named else None
    try:
        config = configuration.load(path)
    except configuration.BadConfig as bad:
        if arguments.check_config and arguments.json:
            print(json.dumps(report.of_problems(bad.problems)))
            return EXIT_USAGE
        for problem in bad.problems:
            print(f"groupsvcd: {problem}", file=sys.stderr)
        return EXIT_USAGE
    if arguments.check_config and arguments.json:
        print(json.dumps(report.of_config(config)))
        return EXIT_OK
    if arguments.check_config:
        return _report(config)
    logs.set_up(config.node, config.log_level, config.log_format)
    return daemon.run(config, reread=lambda: configuration.load(path))


def _report(config: configuration.Config) -> int:
    role = "voter" if config.is_voter else "node without a vote"
    print(f"configuration is good: {config.node}, {role} of a domain of {len(config.voters) or 1} voters")
    for warning in config.warnings():
        print(f"warning: {warning}")
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
