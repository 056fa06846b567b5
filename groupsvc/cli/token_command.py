"""``groupsvc token``: let a new machine enrol itself, see what is listed, and take it off the list.

The pair of a token is made here; the daemon is told the public half. The secret half is printed and kept nowhere.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from ..addresses import TCP, checked_address, is_loopback, is_wildcard, tcp_host_and_port
from ..drivers.connection import DaemonConnection
from ..errors import UsageError
from ..tokens import Token
from ..wire.enrolment_messages import TOKEN_VALID_S, NodeKeyLine, TokenIs
from .exit_codes import ExitCode
from .options import asking, readable, seconds
from .tables import aligned, one_line

if TYPE_CHECKING:
    from .options import Commands

EXAMPLE = "groupsvc token --node n4 | ssh n4 groupsvc keygen --join - --out /etc/groupsvc/keys"

_KINDS = {"key": "enrolled", "file": "in the file of this daemon"}


def add(commands: Commands) -> None:
    """Add the parser."""
    parser = asking(
        commands, "token", _token, help="let a new node get its key listed, once; or take it off the list",
        example=EXAMPLE,
    )  # fmt: skip
    parser.description = (
        "Make a token with which one new machine gets its key listed as that of a node, once and within a time, and"
        " print it in one line: it is a secret until it is used. `groupsvc keygen --join` uses it there. Only root, the"
        " user of the daemon, and who may admin by a rule can make tokens. The daemon needs keys and listen_clients."
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--node", type=readable, metavar="NAME", help="make a token for a node that is to be called so")
    what.add_argument("--list", action="store_true", help="show all tokens and keys of nodes, as this daemon has them")
    what.add_argument(
        "--revoke", type=readable, metavar="NODE",
        help="list nothing for this node any more: neither its token nor, if that was used, the key that was enrolled",
    )  # fmt: skip
    parser.add_argument(
        "--valid", type=seconds, default=TOKEN_VALID_S, metavar="S",
        help=f"seconds in which it must be used (default {TOKEN_VALID_S:g})",
    )  # fmt: skip
    parser.add_argument(
        "--via", metavar="ADDRESS",
        help="where the new machine reaches this daemon, tcp://HOST:PORT (default: as listen_clients says)",
    )  # fmt: skip


def _token(options: argparse.Namespace) -> ExitCode:
    if options.via is not None and not checked_address(options.via).startswith(TCP):
        raise UsageError(f"{options.via} is a socket of this machine; --via is {TCP}HOST:PORT")
    with DaemonConnection(options.address, options.timeout, client="groupsvc", keys=options.keys) as connection:
        if options.list:
            _list(options, connection)
        elif options.revoke is not None:
            _revoke(options, connection)
        else:
            _make(options, connection)
    return ExitCode.OK


def _make(options: argparse.Namespace, connection: DaemonConnection) -> None:
    from ..drivers.curve import new_keys

    pair = new_keys()
    made = connection.token(options.node, pair.public, options.valid)
    address = options.via or _reached_at(made, connection.address)
    line = Token(made.node, made.domain, address, made.server, made.until, pair.secret).line()
    if options.json:
        said = {"node": made.node, "token": line, "until": made.until, "address": address, "replaced": made.replaced}
        print(json.dumps(said))
        return
    until = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(made.until))
    instead = ", instead of the one before" if made.replaced else ""
    text = f"a token for {made.node} of domain {made.domain}, until {until}, to be shown at {address}{instead}"
    print(one_line(text), file=sys.stderr)
    if is_loopback(tcp_host_and_port(address)[0]):
        print(
            "that is an address of this machine for itself; for another one say --via tcp://HOST:PORT", file=sys.stderr
        )
    print(line)


def _reached_at(made: TokenIs, asked_at: str) -> str:
    """Where the daemon listens; one that listens at all addresses of its machine is reached as we reached it."""
    host, port = tcp_host_and_port(made.address)
    if not is_wildcard(host):
        return made.address
    host = tcp_host_and_port(asked_at)[0] if asked_at.startswith(TCP) else socket.getfqdn()
    return f"{TCP}[{host}]:{port}" if ":" in host else f"{TCP}{host}:{port}"


def _revoke(options: argparse.Namespace, connection: DaemonConnection) -> None:
    done = connection.revoke(options.revoke)
    if options.json:
        print(json.dumps({"node": done.node, "revoked": done.what, "version": done.version}))
    elif done.what == "token":
        print(one_line(f"the token of {done.node} is revoked; it had not been used"))
    elif any(line.node == done.node and line.kind == "file" for line in connection.node_keys().lines):
        here = f"[node_keys] of {connection.welcome.node}"
        text = f"the key of {done.node} is not enrolled any more, but it stands in {here}"
        print(one_line(f"{text}, and is heard until that line is taken out of all files, and they are loaded again"))
    else:
        print(one_line(f"the key of {done.node} is listed no more: the other nodes do not hear it any more"))


def _list(options: argparse.Namespace, connection: DaemonConnection) -> None:
    found = connection.node_keys()
    if options.json:
        lines = [msgspec.structs.asdict(line) for line in found.lines]
        print(json.dumps({"node": connection.welcome.node, "now": found.now, "keys": lines}, indent=2))
        return
    rows = [["NODE", "KEY", "WHAT", "VERSION"]]
    rows += [[line.node, line.public, _what(line, found.now), str(line.version or "-")] for line in found.lines]
    print("\n".join(aligned(rows)))


def _what(line: NodeKeyLine, now: int) -> str:
    if line.kind != "token":
        return _KINDS[line.kind]
    return f"token, for {line.until - now} s more" if line.until > now else "token, expired"
