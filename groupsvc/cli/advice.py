"""What to do about an error, in the words of the command line.

The advice of the library names its parameters and methods, and nobody can type those into a shell. So a command
prints what happened without it, and what can be typed instead.
"""

from __future__ import annotations

import argparse

from ..drivers.daemon_socket import AsksForKeys
from ..errors import DaemonUnreachable, GroupServiceError, NoSuchGroup, OutcomeUnknown, StaleVersion, TimedOut
from ..keys import KeysNeeded


def explained(error: GroupServiceError, options: argparse.Namespace) -> str:
    """What happened, and what to type about it."""
    advice = _advice(error, options)
    return f"{error.what}; {advice}" if advice else error.what


def _advice(error: GroupServiceError, options: argparse.Namespace) -> str:
    match error:
        case NoSuchGroup() if hasattr(options, "wait"):
            return "with --wait S it is waited for"
        case NoSuchGroup():
            return "a program that joins it forms it; `groupsvc groups` lists those that there are"
        case StaleVersion() if hasattr(options, "group"):
            return f"`groupsvc state {options.group}` shows it"
        case StaleVersion() if hasattr(options, "if_version"):
            return f"`groupsvc config get {options.key}` shows it"
        case OutcomeUnknown():
            return f"{_how_to_look(options)} before you try again"
        case TimedOut():
            return "try again, or wait longer with --timeout S"
        case KeysNeeded() | AsksForKeys():
            return "give --keys FILE, or set GROUPSVC_KEYS; `groupsvc keygen` makes one"
        case DaemonUnreachable() if error.advice:
            return "try again"
        case _:
            return ""


def _how_to_look(options: argparse.Namespace) -> str:
    """What shows whether something has happened after all."""
    if hasattr(options, "if_version") and hasattr(options, "key"):
        return f"look at `groupsvc config get {options.key}`"
    if not hasattr(options, "group"):
        return "look at `groupsvc status`"
    command = "look-up" if hasattr(options, "form") else "why"
    return f"look at `groupsvc {command} {options.group}`"
