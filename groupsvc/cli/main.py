"""The ``groupsvc`` command: parse, let the command do it, return a documented exit code.

Answers go to standard output, everything else to standard error. A user's mistake or a missing daemon is a
sentence and an exit code, never a stack trace. The commands themselves are one file per family.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence

from .. import __version__
from ..errors import GroupServiceError
from ..sansio.arguments import group_name
from . import (
    audit_command,
    barrier_command,
    completion,
    config_commands,
    doctor,
    domain_commands,
    drain_command,
    group_changes,
    group_questions,
    joining,
    journal_commands,
    keygen,
    lock_commands,
    streams,
    token_command,
    watching,
)
from .advice import explained
from .child_process import NotStarted
from .command_tree import commands_below
from .exit_codes import EXIT_CODES_TEXT, ExitCode, code_of
from .options import Command
from .tables import one_line

RUNNING = ("lock", "elect", "barrier")
"""Commands that run another one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    streams.make_usable()
    parser = whole_parser()
    typed, argv = cut(sys.argv[1:] if arguments is None else list(arguments))
    if meant := meant_by(parser, typed):
        parser.error(meant)
    options, unknown = parser.parse_known_args(typed)
    misplaced = getattr(options, "misplaced", [])
    if misplaced:
        whole = f"groupsvc {typed[0]} {options.name} -- {misplaced[0]}"
        options.runs.error(f"the command to run stands behind --, as in `{whole}`")
    if unknown:
        _innermost(parser, typed).error(f"unrecognized arguments: {' '.join(unknown)}")
    options.argv = argv
    command: Command | None = options.command
    if command is None:
        parser.print_help(sys.stderr)
        return ExitCode.USAGE
    if not getattr(options, "ends_unread", False):
        streams.outlive_readers()
    try:
        if hasattr(options, "group"):  # before anybody is asked: the same mistake has the same answer everywhere
            group_name(options.group, may_be_reserved=True)
        code = command(options)
        sys.stdout.flush()
        return code
    except NotStarted as error:
        print(one_line(f"groupsvc: {error}"), file=sys.stderr)
        return error.code
    except GroupServiceError as error:
        print(one_line(f"groupsvc: {explained(error, options)}"), file=sys.stderr)
        return code_of(error)
    except BrokenPipeError:  # `groupsvc watch | head -1`
        streams.read_nowhere(sys.stdout.fileno())
        return ExitCode.OK
    except OSError as error:  # a full disk behind standard output, most likely
        streams.read_nowhere(sys.stdout.fileno())
        about = f"{error.filename}" if error.filename is not None else "the answer"
        print(one_line(f"groupsvc: {about} could not be written: {error.strerror}"), file=sys.stderr)
        return ExitCode.OUTPUT


def meant_by(parser: argparse.ArgumentParser, typed: list[str]) -> str:
    """What to say of a command that there is not, if there is one that is called much like it; else ""."""
    for place, word in enumerate(typed):
        below = commands_below(parser)
        if word.startswith("-") or not below:
            return ""
        if word not in below:
            close = difflib.get_close_matches(word, below, n=1)
            whole = " ".join(("groupsvc", *typed[:place]))
            return f"there is no command {word!r}; did you mean `{whole} {close[0]}`?" if close else ""
        parser = below[word]
    return ""


def _innermost(parser: argparse.ArgumentParser, typed: list[str]) -> argparse.ArgumentParser:
    """That of the command which was typed: it shows what could have been."""
    for word in typed:
        below = commands_below(parser)
        if word not in below:
            break
        parser = below[word]
    return parser


def cut(typed: list[str]) -> tuple[list[str], list[str]]:
    """What is ours, and behind the first ``--`` the command to run, if this is a command that runs one."""
    if not typed or typed[0] not in RUNNING or "--" not in typed:
        return typed, []
    place = typed.index("--")
    return typed[:place], typed[place + 1 :]


def whole_parser() -> argparse.ArgumentParser:
    """That of the command with all its commands."""
    parser = argparse.ArgumentParser(
        prog="groupsvc",
        description="Ask and operate the group service of this node.",
        epilog=EXIT_CODES_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"groupsvc {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for family in (
        domain_commands,
        drain_command,
        group_questions,
        watching,
        joining,
        group_changes,
        lock_commands,
        barrier_command,
        keygen,
        token_command,
        doctor,
    ):
        family.add(commands)
    config_commands.add(commands)
    journal_commands.add(commands)
    audit_command.add(commands)
    completion.add(commands, whole=lambda: parser)
    return parser
