"""``groupsvc watch``: what happens in a group, a line for each event, until Ctrl-C.

It subscribes: the providers do not see it, it has no vote, and it is told what was approved: who came and left, the
state value, attributes. It is not told messages, which are for providers.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from typing import TYPE_CHECKING

from .. import Dissolved, Event, Group, Lost, Subscription, View
from . import event_lines
from .colours import Paint, colour_argument, paint_for
from .exit_codes import ExitCode
from .group_questions import connected
from .options import asking, group_argument, seconds

if TYPE_CHECKING:
    from .options import Commands


def add(commands: Commands) -> None:
    """Add the parser of this family."""
    watch = asking(
        commands, "watch", _watch, help="what happens in a group, one line for each event, until Ctrl-C",
        example="groupsvc watch db --for 60",
    )  # fmt: skip
    group_argument(watch)
    watch.add_argument(
        "--for", type=seconds, default=math.inf, dest="duration", metavar="S", help="end after S seconds"
    )
    watch.add_argument(
        "--wait", type=seconds, default=0.0, metavar="S", help="wait S seconds for the group to appear (default 0)"
    )
    colour_argument(watch)
    watch.set_defaults(ends_unread=True)


def _watch(options: argparse.Namespace) -> ExitCode:
    try:
        with connected(options) as session, session.subscribe(options.group, wait=options.wait) as subscription:
            print_view(subscription.view, options)
            return print_events(subscription, options)
    except KeyboardInterrupt:  # this is how one ends it
        return ExitCode.OK


def print_view(view: View, options: argparse.Namespace) -> None:
    """The group as it was in the beginning."""
    paint = paint_for(options.color, sys.stdout)
    if options.json:
        print(json.dumps(event_lines.first_object(options.group, view)), flush=True)
    else:
        print(f"{paint(f'{_now()}  entry {view.seq}', 'faint')}  {event_lines.first_line(view)}", flush=True)


def print_events(source: Subscription | Group, options: argparse.Namespace) -> ExitCode:
    """A line for each, until the time is over or nothing more can come."""
    until, paint = time.monotonic() + options.duration, paint_for(options.color, sys.stdout)
    while (left := until - time.monotonic()) > 0:
        event = source.next_event(timeout=left)
        if event is None:
            if source.ended:
                return ExitCode.LOST
            continue
        print(json.dumps(event_lines.object_of(event)) if options.json else _line(event, paint), flush=True)
        if isinstance(event, Dissolved):
            return ExitCode.OK
        if isinstance(event, Lost):
            return ExitCode.UNREACHABLE
    return ExitCode.OK


def _line(event: Event, paint: Paint) -> str:
    seq = getattr(event, "seq", None)
    where = "" if seq is None else f"  entry {seq}"
    return f"{paint(f'{_now()}{where}', 'faint')}  {paint(event_lines.line_of(event), event_lines.style_of(event))}"


def _now() -> str:
    return time.strftime("%H:%M:%S")
