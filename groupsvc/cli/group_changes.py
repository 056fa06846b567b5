"""Commands that change something in a group: ``state`` with a value, and ``send``.

Only providers may propose, so these join the group for a moment, under the name "groupsvc-cli", and leave again. The
others see it come and go; where joins are voted on, they vote on this one. A group that does not exist is not formed.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from .. import UsageError
from .exit_codes import ExitCode
from .group_questions import connected
from .options import asking, count, group_argument
from .tables import in_json, shown

if TYPE_CHECKING:
    from .options import Commands

NAME = "groupsvc-cli"
"""What the other providers see us as."""


def add(commands: Commands) -> None:
    """Add the parsers of this family."""
    state = asking(
        commands, "state", _state, help="show the state value of a group, or propose another one",
        example="groupsvc state db 'primary = n2' --if-version 4",
    )  # fmt: skip
    group_argument(state)
    state.add_argument("value", nargs="?", metavar="VALUE", help="the value to propose; without it the value is shown")
    state.add_argument("--if-version", type=count, metavar="N", help="only if the version is N still")

    send = asking(
        commands, "send", _send, help="send a text to all providers of a group", example="groupsvc send db hello"
    )
    group_argument(send)
    send.add_argument("text", metavar="TEXT", help="the text")


def _state(options: argparse.Namespace) -> ExitCode:
    if options.value is None:
        return _show_state(options)
    with connected(options) as session, session.join(options.group, name=NAME, create=False) as group:
        proposed = _bytes(options.value)
        outcome = group.propose_state(proposed, if_version=options.if_version).require()
        agreed = proposed if outcome.state is None else outcome.state  # a voter may have changed it
        version = group.state_version if outcome.view is None else outcome.view.state_version
    _print_state(options, agreed, version)
    return ExitCode.OK


def _show_state(options: argparse.Namespace) -> ExitCode:
    if options.if_version is not None:
        raise UsageError("--if-version is for proposing a VALUE")
    with connected(options) as session, session.subscribe(options.group) as subscription:
        view = subscription.view
    _print_state(options, view.state, view.state_version)
    return ExitCode.OK


def _print_state(options: argparse.Namespace, value: bytes, version: int) -> None:
    if options.json:
        print(json.dumps({"group": options.group, **in_json("state", value), "state_version": version}, indent=2))
    else:
        print(f"{options.group}: {shown(value)}, version {version}")


def _send(options: argparse.Namespace) -> ExitCode:
    with connected(options) as session, session.join(options.group, name=NAME, create=False) as group:
        outcome = group.send(_bytes(options.text)).require()
        others = len(group.providers) - 1
    if options.json:
        print(json.dumps({"group": options.group, "providers": others, "phases": outcome.phases}, indent=2))
    else:
        print(f"{options.group}: sent, to {others} {'provider' if others == 1 else 'providers'}")
    return ExitCode.OK


def _bytes(text: str) -> bytes:
    """What was typed, also if it is no text."""
    return text.encode(errors="surrogateescape")
