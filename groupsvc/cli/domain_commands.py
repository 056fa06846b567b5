"""Commands about the domain: ``dev``, ``status``, ``nodes``, ``statistics``, ``look-up``, ``hand-over``.

They use a plain connection, without a session: ``status`` answers also where no session could be had.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

import msgspec

from ..drivers.connection import DaemonConnection
from ..wire.client_messages import ClientReply, GroupRecord
from . import node_table, number_lines
from .colours import colour_argument, paint_for
from .exit_codes import ExitCode
from .options import asking, group_argument, readable
from .tables import one_line

if TYPE_CHECKING:
    from .options import Commands

DEV_NODES_MAX = 50
"""Each is a process of its own; more than this is a job for the simulator."""


def add(commands: Commands) -> None:
    """Add the parsers of this family."""
    dev = commands.add_parser(
        "dev", help="start a domain of several daemons here, in the foreground",
        description="Start a domain of several daemons here, in the foreground, to try things out. They end with"
        " Ctrl-C, and what they have kept goes with them. What to type in another terminal is printed.",
        epilog="example:\n  groupsvc dev --nodes 3", formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    dev.add_argument("--nodes", type=_node_count, default=3, metavar="N", help="how many daemons (default 3)")
    dev.add_argument("--json", action="store_true", help="print an object a line for programs")
    dev.set_defaults(command=_dev, ends_unread=True)

    status = asking(
        commands, "status", _status, help="the nodes, the name server, and what is wrong", example="groupsvc status"
    )
    colour_argument(status)
    nodes = asking(
        commands, "nodes", _nodes, help="the nodes of the domain: role, status, and since when each runs",
        example="groupsvc nodes",
    )  # fmt: skip
    colour_argument(nodes)

    asking(
        commands, "statistics", _statistics, help="what the daemon of this node has counted and measured",
        example="groupsvc statistics --json",
    )  # fmt: skip

    look_up = asking(commands, "look-up", _look_up, help="who leads a group", example="groupsvc look-up orders")
    group_argument(look_up)
    look_up.add_argument("--form", action="store_true", help="form the group at this node if there is none")

    hand_over = asking(
        commands, "hand-over", _hand_over, help="make another voter name server", example="groupsvc hand-over n2"
    )
    hand_over.add_argument("node", type=readable, metavar="NODE", help="name of the voter")


def _dev(options: argparse.Namespace) -> ExitCode:
    from . import dev  # starting daemons needs more than asking them

    return dev.run(options.nodes, is_json=options.json)


def _status(options: argparse.Namespace) -> ExitCode:
    with _connected(options) as connection:
        status = connection.status()
    if options.json:
        _print_json(status)
    else:
        print("\n".join(node_table.lines_of(status, paint_for(options.color, sys.stdout))))
    return ExitCode.OK if node_table.is_serving(status) else ExitCode.NOT_SERVING


def _nodes(options: argparse.Namespace) -> ExitCode:
    with _connected(options) as connection:
        status = connection.status()
    if options.json:
        found = {"asked": status.node, "serving": node_table.is_serving(status), "trouble": status.trouble}
        print(json.dumps({**found, "nodes": [node_table.node_object(node) for node in status.nodes]}, indent=2))
    else:
        print("\n".join(node_table.node_lines(status, paint_for(options.color, sys.stdout))))
    return ExitCode.OK if node_table.is_serving(status) else ExitCode.NOT_SERVING


def _statistics(options: argparse.Namespace) -> ExitCode:
    with _connected(options) as connection:
        parts = connection.statistics().parts
    if options.json:
        print(json.dumps(parts, indent=2))
    else:
        print("\n".join(one_line(line) for line in number_lines.lines_of(parts)))
    return ExitCode.OK


def _look_up(options: argparse.Namespace) -> ExitCode:
    with _connected(options) as connection:
        record = connection.look_up(options.group, form=options.form)
    if options.json:
        _print_json(record)
    elif record.exists:
        print(_group_line(record))
    else:
        advice = "a program that joins it forms it, and so does --form; `groupsvc groups` lists those that there are"
        print(f"groupsvc: there is no group {options.group!r}; {advice}", file=sys.stderr)
    return ExitCode.OK if record.exists else ExitCode.NOT_FOUND


def _hand_over(options: argparse.Namespace) -> ExitCode:
    with _connected(options) as connection:
        connection.hand_over(options.node)
    print(json.dumps({"name_server": options.node}) if options.json else f"{options.node} is name server")
    return ExitCode.OK


def _connected(options: argparse.Namespace) -> DaemonConnection:
    return DaemonConnection(options.address, options.timeout, client="groupsvc", keys=options.keys)


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


def _node_count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= DEV_NODES_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {DEV_NODES_MAX}")
    return int(text)
