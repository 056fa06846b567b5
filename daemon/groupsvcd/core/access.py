"""Who may do what in which groups.

A program is known by what the kernel or its key says of it, never by what it says itself: a user of this machine with
its groups, or the name of a key. That is its *principal*. A rule says that some principals may do some things in groups
whose names match a pattern; what no rule allows is not allowed. Without any rule everything is allowed to everybody who
gets in at all.

    [[access]]
    who = ["user:alice", "key:reports"]
    groups = ["db-*", "_lock/db-*"]
    may = ["join", "create", "send"]

Root and the user of the daemon may do everything: they could write another rule. In a pattern ``*`` stands for any
characters, also none; everything else stands for itself.

Rules are compared where they are asked for, on the node of the program: a node believes the others that they have done
the same. Nothing here reads a file or asks the system: users and groups are numbers by now.

There is no right to vote. Whoever is a provider is asked, and one that may not answer would hold up every ballot.
"""

from __future__ import annotations

from typing import Literal, get_args

import attrs

Verb = Literal["create", "join", "subscribe", "propose", "expel", "send", "admin"]

VERBS: tuple[Verb, ...] = get_args(Verb)
"""What a rule may allow. ``admin`` concerns no group: to hand the office over, and to change settings of the domain."""

EVERYBODY = "*"

TOKEN_MARK = "token:"
"""How the name of the key begins of somebody who was let in by a token; the token's public key follows. No name in a
configuration has a colon."""

REMEMBERED_MAX = 10_000
"""Answers that are kept; then all are forgotten. Each is found out again in some microseconds."""


@attrs.frozen
class Principal:
    """Who somebody is, as far as that was proven. All that is left empty: not at all."""

    uid: int = -1
    gids: frozenset[int] = frozenset()
    key: str = ""
    is_trusted: bool = False

    @property
    def identity(self) -> str:
        """Who it is, without what it belongs to; as a rule would name it."""
        if self.key:
            return f"key:{self.key}"
        return f"user:{self.uid}" if self.uid >= 0 else EVERYBODY

    @property
    def token(self) -> str:
        """The token by which it was let in: then it may enrol a node, and nothing that a rule could allow."""
        return self.key.removeprefix(TOKEN_MARK) if self.key.startswith(TOKEN_MARK) else ""


UNKNOWN = Principal()
"""Somebody of whom nothing is proven: over tcp without keys."""

TRUSTED = Principal(is_trusted=True)
"""The daemon itself, and what lives in it."""


@attrs.frozen
class Who:
    """One entry of ``who``: how it is written, and which user, group or key that is; all empty: everybody."""

    written: str
    uid: int = -1
    gid: int = -1
    key: str = ""

    def is_(self, principal: Principal) -> bool:
        """Whether this means the principal."""
        if self.written == EVERYBODY:
            return True
        if self.key:
            return self.key == principal.key
        return (self.uid >= 0 and self.uid == principal.uid) or (self.gid >= 0 and self.gid in principal.gids)


@attrs.frozen
class Rule:
    """These may do this there."""

    who: tuple[Who, ...]
    groups: tuple[str, ...]
    may: frozenset[Verb]

    def concerns(self, group: str) -> bool:
        """Whether one of its patterns matches."""
        return any(_matches(pattern, group) for pattern in self.groups)


class Access:
    """All rules of a node."""

    def __init__(self, rules: tuple[Rule, ...] = ()) -> None:
        self.rules = rules
        self.is_open = not rules
        self._users = {one.uid: one.written for rule in rules for one in rule.who if one.uid >= 0}
        self._remembered: dict[tuple[Principal, str, str], bool] = {}

    def allows(self, principal: Principal, verb: Verb, group: str = "") -> bool:
        """Whether somebody may do this; ``group`` is empty for ``admin``."""
        if principal.token:
            return False
        if self.is_open or principal.is_trusted:
            return True
        asked = (principal, verb, group)
        found = self._remembered.get(asked)
        if found is None:
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            found = self._remembered[asked] = any(
                verb in rule.may and (verb == "admin" or rule.concerns(group)) for rule in self._rules_of(principal)
            )
        return found

    def names_admin(self, principal: Principal) -> bool:
        """Whether somebody may say which nodes there are: root, the user of the daemon, or whom a rule names.

        A node may do everything. So where there are no rules that is not allowed to everybody who gets in.
        """
        return principal.is_trusted or (not self.is_open and self.allows(principal, "admin"))

    def sees(self, principal: Principal, group: str) -> bool:
        """Whether somebody may know that there is such a group: who may do anything there."""
        return any(verb != "admin" and self.allows(principal, verb, group) for verb in VERBS)

    def _rules_of(self, principal: Principal) -> list[Rule]:
        return [rule for rule in self.rules if any(one.is_(principal) for one in rule.who)]

    def name_of(self, principal: Principal) -> str:
        """How a rule names it."""
        return self._users.get(principal.uid, principal.identity) if not principal.key else principal.identity

    def refusal(self, principal: Principal, verb: Verb, group: str = "") -> str:
        """The sentence for who may not, with what would allow it."""
        name = self.name_of(principal)
        who = "a program without a key" if name == EVERYBODY else name
        if self.is_open:  # a first rule would forbid all others what it does not allow
            text = f"{who} may not {_words(verb)}: as long as this node has no rules that is for root and the user of"
            return f"{text} the daemon; rules ([[access]]) say who else may, and from the first one on who may do what"
        where = "" if verb == "admin" else f" in group {group!r}"
        groups = "" if verb == "admin" else f' groups = ["{group}"]'
        rule = f'[[access]] who = ["{name}"]{groups} may = ["{verb}"]'
        return f"no rule of this node allows {who} to {_words(verb)}{where}; one that would: {rule}"


OPEN = Access()


def _matches(pattern: str, group: str) -> bool:
    first, *others = pattern.split("*")
    if not others:
        return pattern == group
    *between, last = others
    if len(group) < len(first) + len(last) or not (group.startswith(first) and group.endswith(last)):
        return False
    at, end = len(first), len(group) - len(last)
    for part in between:  # each as early as it can be
        at = group.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _words(verb: Verb) -> str:
    return "administer the domain (admin)" if verb == "admin" else verb
