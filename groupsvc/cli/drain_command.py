"""``groupsvc drain``: the daemon of a node hands over what it leads, tells its programs, and ends.

Each question to the daemon is answered a moment later, or as its last word; so this command has always one under way,
and knows how it ended. It returns when the daemon is gone. Who interrupts it does not interrupt the drain.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING

from ..drivers.connection import DaemonConnection
from ..errors import DaemonUnreachable, GroupServiceError, OutcomeUnknown, UsageError
from ..wire.client_messages import DrainIs
from ..wire.limits import DRAIN_S
from .exit_codes import ExitCode
from .options import asking
from .tables import one_line

if TYPE_CHECKING:
    from .options import Commands

ASK_S = 5.0
"""For one answer; it comes within a moment."""

GONE_S = 10.0
"""How long a daemon may take from its last word to its end."""


def add(commands: Commands) -> None:
    """Add the parser."""
    asking(
        commands, "drain", _drain, help="have this node hand over what it leads and end",
        example="groupsvc drain --timeout 60 && reboot",
        seconds="seconds after which the daemon ends all the same, and says what was left", otherwise=DRAIN_S,
    )  # fmt: skip


def _drain(options: argparse.Namespace) -> int:
    last: DrainIs | None = None
    with DaemonConnection(options.address, ASK_S, client="groupsvc", keys=options.keys) as connection:
        node = connection.welcome.node
        try:
            while last is None or last.stage in ("finishing", "leaving"):
                now = connection.drain(options.timeout)
                if not options.json and (last is None or _words(now) != _words(last)):
                    print(one_line(_words(now)), file=sys.stderr, flush=True)
                last = now
        except (DaemonUnreachable, OutcomeUnknown) as error:
            raise DaemonUnreachable(f"the daemon of {node} went away without saying how its drain ended") from error
        _wait_until_gone(connection)
    if options.json:
        print(json.dumps({"node": last.node, "drained": last.stage == "drained", "left": list(last.left)}))
    elif last.stage == "drained":
        print(f"{last.node} is drained and has ended")
    else:
        print(one_line(f"{last.node} has ended, its time was over; left were: {'; '.join(last.left)}"))
    return ExitCode.OK if last.stage == "drained" else ExitCode.LATE


def _words(now: DrainIs) -> str:
    return f"{now.node} {now.stage}" + (f": {'; '.join(now.left)}" if now.left else "")


def _wait_until_gone(connection: DaemonConnection) -> None:
    """The daemon has said its last word, and closes its sockets."""
    until = time.monotonic() + GONE_S
    try:
        while time.monotonic() < until:
            connection.status(timeout=0.5)
    except (GroupServiceError, UsageError):
        return
