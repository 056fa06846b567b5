"""``groupsvc keygen``: a key pair, in two files, and what to write where.

It asks nobody and needs no daemon, but for ``--join`` (``joining``). What it prints is for whoever sets up a domain; no
secret is printed.
"""

from __future__ import annotations

import argparse
import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from ..drivers.connection import TIMEOUT_S
from ..errors import UsageError
from ..keys import is_key_name, public_key, write_keys
from .enrolling import join
from .exit_codes import EXIT_CODES_TEXT, ExitCode
from .options import timeout

if TYPE_CHECKING:
    from .options import Commands

_WHAT_TO_DO = """secret key of {name}: {secret} (only {name} needs it, and only its user may read it)
public key of {name}: {public}

If {name} is a node, in the configuration of its daemon:

    key_file = "{secret}"

and in that of every daemon of the domain:

    [node_keys]
    {quoted} = "{key}"

If {name} is a program, in the configuration of the daemons that it connects to, beside listen_clients:

    [client_keys]
    {quoted} = "{key}"

and in the program, {servers}:

    groupsvc.connect("tcp://HOST:PORT", keys="{secret}")"""


def add(commands: Commands) -> None:
    """Add the parser of this command."""
    parser = commands.add_parser(
        "keygen", help="make a key pair for a node, or for a program that connects from another machine",
        description="Make a key pair for a node, or for a program that connects from another machine: NAME.key, which"
        " is secret, and NAME.pub. Prints what to write into which configuration. Nothing is ever written over. With"
        " --join and a token of `groupsvc token` the key of a new node is listed in its domain, and the configuration"
        " of its daemon is written; if the answer was lost (exit code 5), the same command again tells how it ended.",
        epilog=f"example:\n  groupsvc keygen --name n1 --out /etc/groupsvc/keys\n  groupsvc keygen --join FILE"
        f" --out /etc/groupsvc\n\n{EXIT_CODES_TEXT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="where to write, a directory that is there (default: here)",
    )
    parser.add_argument("--name", metavar="NAME", help="whose keys they are (default: the name of this host)")
    parser.add_argument(
        "--server", action="append", default=[], metavar="KEY",
        help="for a program: the public key of a daemon that it connects to, or its .pub file; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--join", metavar="FILE", help="enrol a new node with the token that is in this file, or - for standard input"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE",
        help="with --join: the configuration to write (default: NAME.toml beside the keys)",
    )  # fmt: skip
    parser.add_argument(
        "--peer-address", metavar="ADDRESS",
        help="with --join: where the other nodes reach this one, tcp://HOST:PORT (default: found out)",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=timeout, default=TIMEOUT_S, metavar="S",
        help=f"with --join: seconds to wait (default {TIMEOUT_S:g})",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print an object for programs")
    parser.set_defaults(command=_keygen)


def _keygen(options: argparse.Namespace) -> ExitCode:
    from ..drivers.curve import new_keys  # ZeroMQ makes them

    if options.join is not None:
        if options.server:
            raise UsageError("--server is for the key of a program, and --join for that of a node")
        return join(options)
    if options.config is not None or options.peer_address is not None:
        raise UsageError("--config and --peer-address go with --join")
    name = socket.gethostname() if options.name is None else options.name
    if not is_key_name(name):
        raise UsageError(f"{name!r} is no name: 1 to 63 letters, digits, '.', '_' or '-'")
    keys = new_keys(tuple(map(public_key, options.server)))
    secret, public = write_keys(options.out.expanduser().absolute(), name, keys)
    if options.json:
        print(json.dumps({"name": name, "public": keys.public, "secret_file": str(secret), "public_file": str(public)}))
    else:
        servers = (
            "which knows its server" if keys.servers else f'with server = "the key of that daemon" added to {secret}'
        )
        quoted = json.dumps(name) if "." in name else name  # for TOML, n1.example would be a table n1
        print(
            _WHAT_TO_DO.format(name=name, quoted=quoted, secret=secret, public=public, key=keys.public, servers=servers)
        )
    return ExitCode.OK
