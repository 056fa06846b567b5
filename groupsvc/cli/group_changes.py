"""Commands that change something in a group: ``state`` with a value, ``send``, and ``expel``.

Only providers may propose, so these join the group for a moment, under the name "groupsvc-cli", and leave again. The
others see it come and go; where joins are voted on, they vote on this one. A group that does not exist is not formed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .. import Failed, Group, Provider, UsageError
from ..wire.limits import PROVIDER_NAME_CHARS_MAX
from .exit_codes import ExitCode
from .group_questions import connected, provider_object
from .options import asking, count, group_argument
from .tables import in_json, one_line, shown

if TYPE_CHECKING:
    from .options import Commands

NAME = "groupsvc-cli"
"""What the other providers see us as."""

PROVIDER_CHARS_MAX = PROVIDER_NAME_CHARS_MAX
"""Of a provider's name; an id is never longer."""


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

    expel = asking(
        commands, "expel", _expel, help="propose that providers leave a group, whether they want or not",
        example="groupsvc expel db reporter-2 --reason 'its disk is full'",
    )  # fmt: skip
    group_argument(expel)
    expel.add_argument(
        "providers", nargs="+", type=provider_text, metavar="PROVIDER",
        help="name or id of a provider, as `groupsvc members` shows them; a name that several have is refused",
    )  # fmt: skip
    expel.add_argument("--reason", default="", metavar="TEXT", help="why, for them and for those who stay")


@contextmanager
def joined(options: argparse.Namespace) -> Iterator[Group]:
    """A provider for a moment.

    That a proposal failed is an answer to it and no failure of ours: we leave in order also then, and ``groupsvc why``
    does not tell the others of a provider that has failed.
    """
    refused: Failed | None = None
    with connected(options) as session, session.join(options.group, name=NAME, create=False) as group:
        try:
            yield group
        except Failed as problem:
            refused = problem
    if refused is not None:
        raise refused


def _state(options: argparse.Namespace) -> ExitCode:
    if options.value is None:
        return _show_state(options)
    with joined(options) as group:
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
    with joined(options) as group:
        outcome = group.send(_bytes(options.text)).require()
        others = len(group.providers) - 1
    if options.json:
        print(json.dumps({"group": options.group, "providers": others, "phases": outcome.phases}, indent=2))
    else:
        print(f"{options.group}: sent, to {others} {'provider' if others == 1 else 'providers'}")
    return ExitCode.OK


def _expel(options: argparse.Namespace) -> ExitCode:
    with joined(options) as group:
        others = [one for one in group.providers if one.id != group.me.id]
        targets = [found_provider(one, others, options.group) for one in dict.fromkeys(options.providers)]
        outcome = group.expel(*targets, reason=options.reason).require()
    if options.json:
        found = {"group": options.group, "expelled": [provider_object(one) for one in targets]}
        print(json.dumps({**found, "reason": options.reason, "phases": outcome.phases}, indent=2))
    else:
        print(one_line(f"{options.group}: expelled {', '.join(map(str, targets))}"))
    return ExitCode.OK


def found_provider(word: str, providers: Sequence[Provider], group: str) -> Provider:
    """The one that ``word`` stands for: its id, or a name that it alone has."""
    found = [one for one in providers if one.id == word] or [one for one in providers if one.name == word]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Failed(f"group {group!r} has no provider {word!r}; `groupsvc members {group}` lists those that there are")
    ids = ", ".join(one.id for one in found)
    raise Failed(f"{len(found)} providers of group {group!r} are called {word!r}: give the id of one, {ids}")


def provider_text(text: str) -> str:
    """What may be the name or the id of a provider."""
    if not text.isprintable() or not 1 <= len(text) <= PROVIDER_CHARS_MAX:
        raise argparse.ArgumentTypeError(f"a provider is printable text of 1 to {PROVIDER_CHARS_MAX} characters")
    return text


def _bytes(text: str) -> bytes:
    """What was typed, also if it is no text."""
    return text.encode(errors="surrogateescape")
