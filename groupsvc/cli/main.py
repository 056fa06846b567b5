"""The commands of ``groupsvc``: parse, ask the daemon, print, return a documented exit code.

Answers go to standard output, everything else to standard error. A user's mistake or a missing daemon is a
sentence and an exit code, never a stack trace.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence

import msgspec

from .. import __version__
from ..connection import TIMEOUT_S, DaemonConnection
from ..errors import DaemonUnreachable, GroupServiceError, NoSuchGroup, OutcomeUnknown, PeerProtocolError, UsageError
from ..wire.client_messages import ClientReply, GroupRecord
from ..wire.limits import GROUP_NAME_CHARS_MAX
from . import node_table
from .exit_codes import EXIT_CODES_TEXT, ExitCode

DEV_NODES_MAX = 50
"""Each is a process of its own; more than this is a job for the simulator."""

_CODE_OF: tuple[tuple[type[GroupServiceError], ExitCode], ...] = (
    (UsageError, ExitCode.USAGE),
    (DaemonUnreachable, ExitCode.UNREACHABLE),
    (NoSuchGroup, ExitCode.NOT_FOUND),
    (OutcomeUnknown, ExitCode.UNKNOWN),
    (PeerProtocolError, ExitCode.PROTOCOL),
    (GroupServiceError, ExitCode.FAILED),
)

Command = Callable[[argparse.Namespace], ExitCode]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    command: Command | None = options.command
    if command is None:
        parser.print_help(sys.stderr)
        return ExitCode.USAGE
    try:
        code = command(options)
        sys.stdout.flush()
        return code
    except GroupServiceError as error:
        print(f"groupsvc: {error}", file=sys.stderr)
        return next(code for kind, code in _CODE_OF if isinstance(error, kind))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `groupsvc status | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except OSError as error:  # a full disk behind standard output, most likely
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"groupsvc: the answer could not be written: {error.strerror}", file=sys.stderr)
        return ExitCode.OUTPUT


def _dev(options: argparse.Namespace) -> ExitCode:
    from . import dev  # starting daemons needs more than asking them

    return dev.run(options.nodes)


def _status(options: argparse.Namespace) -> ExitCode:
    with _connected(options) as connection:
        status = connection.status()
    if options.json:
        _print_json(status)
    else:
        print("\n".join(node_table.lines_of(status)))
    return ExitCode.OK if node_table.is_serving(status) else ExitCode.NOT_SERVING


def _look_up(options: argparse.Namespace) -> ExitCode:
    with _connected(options) as connection:
        record = connection.look_up(options.name, form=options.form)
    if options.json:
        _print_json(record)
    elif record.exists:
        print(_group_line(record))
    else:
        print(f"groupsvc: there is no group {options.name!r}", file=sys.stderr)
    return ExitCode.OK if record.exists else ExitCode.NOT_FOUND


def _hand_over(options: argparse.Namespace) -> ExitCode:
    with _connected(options) as connection:
        connection.hand_over(options.node)
    print(json.dumps({"name_server": options.node}) if options.json else f"{options.node} is name server")
    return ExitCode.OK


def _connected(options: argparse.Namespace) -> DaemonConnection:
    return DaemonConnection(options.address, options.timeout, client="groupsvc")


def _group_line(record: GroupRecord) -> str:
    formed = "formed by this node, " if record.formed else ""
    servers = ", ".join(record.servers)
    return f"{record.name}: {formed}id {record.group}, epoch {record.epoch}, led by {record.leader}, held by {servers}"


def _print_json(reply: ClientReply) -> None:
    """The reply as an object; ``array_like`` is for the wire only."""
    fields = msgspec.structs.asdict(reply)
    fields.pop("id")
    if "nodes" in fields:
        fields["nodes"] = [msgspec.structs.asdict(node) for node in fields["nodes"]]
    print(json.dumps(fields, indent=2))


# --- The command line -----------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="groupsvc",
        description="Ask and operate the group service of this node.",
        epilog=EXIT_CODES_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"groupsvc {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    dev = commands.add_parser("dev", help="start a domain of several daemons here, in the foreground")
    dev.add_argument("--nodes", type=_node_count, default=3, metavar="N", help="how many daemons (default 3)")
    dev.set_defaults(command=_dev)

    status = _asking(commands.add_parser("status", help="the nodes, the name server, and what is wrong"))
    status.set_defaults(command=_status)

    look_up = _asking(commands.add_parser("look-up", help="who leads a group"))
    look_up.add_argument("name", type=_readable, metavar="NAME", help="name of the group")
    look_up.add_argument("--form", action="store_true", help="form the group at this node if there is none")
    look_up.set_defaults(command=_look_up)

    hand_over = _asking(commands.add_parser("hand-over", help="make another voter name server"))
    hand_over.add_argument("node", type=_readable, metavar="NODE", help="name of the voter")
    hand_over.set_defaults(command=_hand_over)
    return parser


def _asking(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """A command that asks a daemon."""
    parser.add_argument(
        "--address", help="client socket of the daemon (default: GROUPSVC_ADDRESS, else this node's daemon)"
    )
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_S, metavar="S", help=f"seconds to wait (default {TIMEOUT_S:g})"
    )
    parser.add_argument("--json", action="store_true", help="print an object for programs")
    parser.epilog = EXIT_CODES_TEXT
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    return parser


def _readable(text: str) -> str:
    """A name as typed; bytes that are no text and endless ones are refused without being repeated."""
    if not text.isprintable() or len(text) > GROUP_NAME_CHARS_MAX:
        raise argparse.ArgumentTypeError(f"a name is printable text of at most {GROUP_NAME_CHARS_MAX} characters")
    return text


def _node_count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= DEV_NODES_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {DEV_NODES_MAX}")
    return int(text)
