"""What can be typed behind ``groupsvcd``; its --help and its man page are made from it."""

from __future__ import annotations

import argparse

from groupsvc import __version__
from groupsvc.wire import versions

EXIT_USAGE = 2
"""What was typed or configured is wrong: the same again is wrong again. argparse uses the same number."""


def parser() -> argparse.ArgumentParser:
    """That of the daemon's command."""
    found = argparse.ArgumentParser(
        prog="groupsvcd",
        description="The groupsvc daemon of this node.",
        epilog="Without a configuration it is a domain of one, kept in memory. Every option can also be set as"
        " GROUPSVC_… in the environment. SIGHUP reads the configuration again, SIGUSR2 hands over what this node leads"
        " and ends, SIGTERM ends. Exit codes: 0 stopped on request or drained, 1 address in use, 2 wrong"
        " command line or configuration, 3 halted, 4 state directory refused, 5 disk error.",
    )
    found.add_argument("--config", metavar="FILE", help="configuration in TOML (default: $GROUPSVC_CONFIG, else none)")
    found.add_argument("--check-config", action="store_true", help="report every problem of the configuration and end")
    found.add_argument("--json", action="store_true", help="with --check-config: print an object for programs")
    found.add_argument(
        "--version", action="version", version=f"groupsvcd {__version__} ({versions.in_words(versions.OWN)})"
    )
    return found
