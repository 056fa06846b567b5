"""What the commands have in common: the options of those that ask a daemon, and what may be typed.

Every family of commands has a file with a function ``add(commands)``, which adds its parsers; ``main`` calls them all.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..drivers.connection import TIMEOUT_S
from ..wire.limits import GROUP_NAME_CHARS_MAX, TIMEOUT_S_MAX
from .exit_codes import EXIT_CODES_TEXT

Command = Callable[[argparse.Namespace], int]

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]


def asking(
    commands: Commands, name: str, command: Command, *, help: str, example: str, seconds: str = "seconds to wait",
    otherwise: float = TIMEOUT_S,
) -> argparse.ArgumentParser:  # fmt: skip
    """A command that asks a daemon; ``example`` is shown under its help, ``seconds`` is what its time-out means."""
    parser = commands.add_parser(
        name,
        help=help,
        description=help[0].upper() + help[1:] + ".",
        epilog=f"example:\n  {example}\n\n{EXIT_CODES_TEXT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reaching_arguments(parser)
    parser.add_argument(
        "--timeout", type=timeout, default=otherwise, metavar="S", help=f"{seconds} (default {otherwise:g})"
    )
    parser.add_argument("--json", action="store_true", help="print an object for programs")
    parser.set_defaults(command=command)
    return parser


def running(
    commands: Commands, name: str, command: Command, *, help: str, description: str, usage: str, example: str
) -> argparse.ArgumentParser:
    """A command that runs another one, which stands behind ``--``; ``main`` puts that into ``options.argv``."""
    parser = commands.add_parser(
        name,
        help=help,
        usage=f"groupsvc {name} {usage}",
        description=description,
        epilog=f"example:\n  {example}\n\n{EXIT_CODES_TEXT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", type=readable, metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("misplaced", nargs="*", default=[], help=argparse.SUPPRESS)
    reaching_arguments(parser)
    parser.set_defaults(command=command, runs=parser)
    return parser


def reaching_arguments(parser: argparse.ArgumentParser) -> None:
    """Which daemon, and how."""
    parser.add_argument(
        "--address", help="client socket of the daemon (default: GROUPSVC_ADDRESS, else this node's daemon)"
    )
    parser.add_argument(
        "--keys",
        type=_key_file,
        metavar="FILE",
        help="key file for a daemon on another machine, or none (default: GROUPSVC_KEYS)",
    )


def _key_file(text: str) -> str | Literal[False]:
    """The path of a key file; a daemon that is ``insecure`` is asked without."""
    return False if text == "none" else text


def timeout_argument(parser: argparse.ArgumentParser, what: str) -> None:
    """How long a command that runs another one waits before it does; ``what`` it does when the time is up."""
    text = f"{what} within S seconds (default: wait for ever)"
    parser.add_argument("--timeout", type=seconds, default=math.inf, metavar="S", help=text)


def group_argument(parser: argparse.ArgumentParser) -> None:
    """The group that the command is about."""
    parser.add_argument("group", type=readable, metavar="GROUP", help="name of the group")


def readable(text: str) -> str:
    """A name as typed; bytes that are no text and endless ones are refused without being repeated."""
    if not text.isprintable() or not 1 <= len(text) <= GROUP_NAME_CHARS_MAX:
        raise argparse.ArgumentTypeError(f"a name is printable text of 1 to {GROUP_NAME_CHARS_MAX} characters")
    return text


def seconds(text: str) -> float:
    """A time span; nan, and what is negative, is none."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not found >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return found


def timeout(text: str) -> float:
    """How long a daemon may take; none waits for ever."""
    found = seconds(text)
    if not 0 < found <= TIMEOUT_S_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0 and at most {TIMEOUT_S_MAX:g} seconds")
    return found


def count(text: str) -> int:
    """A number from zero on."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return int(text)
