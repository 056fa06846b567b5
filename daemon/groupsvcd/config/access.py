"""The rules of who may do what, as an operator writes them.

    [[access]]
    who = ["user:alice", "group:ops", "key:reports"]
    groups = ["db-*", "_lock/*"]
    may = ["join", "create", "send"]

Users and groups of the system are looked up here, once, when the file is read: the daemon compares numbers, and never
waits for a directory of users. A user or group can also be given by number.
"""

from __future__ import annotations

import grp
import pwd
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.access import EVERYBODY, VERBS, Rule, Who
from .problems import Note, did_you_mean

if TYPE_CHECKING:
    from .options import Config

OPTIONS = ("who", "groups", "may")
KINDS = ("user", "group", "key")


def rules_of(content: Any, note: Note) -> tuple[Rule, ...]:
    """The rules in ``content``; what cannot be one is noted."""
    if not isinstance(content, list) or not all(isinstance(table, dict) for table in content):
        note("access", "is a list of tables; write each rule under [[access]]")
        return ()
    return tuple(_rule(number, table, note) for number, table in enumerate(content, 1))


def _rule(number: int, table: dict[str, Any], note: Note) -> Rule:
    def problem(option: str, text: str) -> None:
        note("access", f"rule {number}: {option} {text}")

    for option in sorted(table.keys() - set(OPTIONS)):
        problem(option, f"is no part of a rule{did_you_mean(option, list(OPTIONS))}")
    who = _texts(table, "who", problem)
    may = _texts(table, "may", problem)
    if may and set(may) <= {"admin"}:  # which concerns no group
        groups: tuple[str, ...] = ()
    else:
        groups = _texts(table, "groups", problem)
    for verb in may:
        if verb not in (*VERBS, EVERYBODY):
            problem("may", f"names {verb!r}, which is none of {', '.join(VERBS)}{did_you_mean(verb, list(VERBS))}")
    allowed = frozenset(VERBS) if EVERYBODY in may else frozenset(verb for verb in VERBS if verb in may)
    found = tuple(one for one in (_who(text, problem) for text in who) if one is not None)
    return Rule(found, groups, allowed)


def _texts(table: dict[str, Any], option: str, problem: Note) -> tuple[str, ...]:
    given = table.get(option, [])
    found = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else ()
    if not found or not all(isinstance(text, str) and text for text in found):
        problem(option, "is a list of texts with at least one in it")
        return ()
    return found


def _who(text: str, problem: Note) -> Who | None:
    if text == EVERYBODY:
        return Who(text)
    kind, _, name = text.partition(":")
    if kind not in KINDS or not name:
        problem("who", f"names {text!r}; write user:NAME, group:NAME, key:NAME or *")
        return None
    if kind == "key":
        return Who(text, key=name)
    number = _number(name, kind, problem)
    if number is None:
        return None
    return Who(text, uid=number) if kind == "user" else Who(text, gid=number)


def _number(name: str, kind: str, problem: Note) -> int | None:
    if name.isdecimal():
        return int(name)
    look_up: Callable[[str], int] = _uid if kind == "user" else _gid
    try:
        return look_up(name)
    except KeyError:
        problem("who", f"names {kind}:{name}, and this machine knows no such {kind}")
        return None


def _uid(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def _gid(name: str) -> int:
    return grp.getgrnam(name).gr_gid


def judge_access(config: Config, note: Note) -> None:
    """Keys that nobody has."""
    for number, rule in enumerate(config.access, 1):
        for one in rule.who:
            if one.key and one.key not in config.client_keys:
                hint = did_you_mean(one.key, list(config.client_keys))
                note("access", f"rule {number}: who names {one.written}, which is not in [client_keys]{hint}")
