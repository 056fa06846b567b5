"""Calls of clients, put together from their two lines.

A call is an ``invoke`` and, later, at most one of ``ok``, ``fail``, ``info`` with the same client and number.
The number is ``args.id`` or, where a writer has no such argument, the line's ``n``. A look-up that may form the
group is either ``look_up`` with ``form`` or ``form``; its name is ``args.name`` or ``args.group``.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from groupsvc.wire.history import HistoryEvent

CallKey = tuple[str, int]


@attrs.define(eq=False)
class Call:
    """One call; positions are places in the list of lines, not event numbers."""

    invoke: HistoryEvent
    began: int
    carried: bool  # invoked in an earlier era
    end: HistoryEvent | None = None
    ended: int = -1

    @property
    def verdict(self) -> str:
        """How it ended: ok, fail, info; a call that never ended is info."""
        return "info" if self.end is None else self.end.type

    @property
    def is_look_up(self) -> bool:
        """Whether it asks for a group."""
        return self.invoke.op in ("look_up", "form")

    @property
    def forms(self) -> bool:
        """Whether it asks for a group to be formed if there is none."""
        return self.invoke.op == "form" or (self.invoke.op == "look_up" and bool(self.invoke.args.get("form", False)))

    @property
    def name(self) -> str:
        """The group it asks for."""
        return str(self.invoke.args.get("name") or self.invoke.args.get("group") or "")

    @property
    def shown_seq(self) -> int:
        """The number of the directory entry that its good answer rests on; 0 if there is none."""
        if self.end is None or self.end.type != "ok":
            return 0
        if self.is_look_up:
            return int(self.end.result.get("group", 0)) if self.end.result.get("exists") else 0
        if self.invoke.op in ("config_get", "config_set"):
            return int(self.end.result.get("version") or 0)
        return 0


def call_key(line: HistoryEvent) -> CallKey:
    """Whose call a line belongs to, and which of that client's."""
    return line.who, int(line.args.get("id", line.n))


def calls_of(lines: Iterable[HistoryEvent], carried: frozenset[CallKey]) -> dict[CallKey, Call]:
    """All calls by key; of several completions the first counts."""
    calls: dict[CallKey, Call] = {}
    for position, line in enumerate(lines):
        if line.type == "event":
            continue
        key = call_key(line)
        if line.type == "invoke":
            calls.setdefault(key, Call(line, position, key in carried and key not in calls))
        else:
            call = calls.get(key)
            if call is not None and call.end is None:
                call.end, call.ended = line, position
    return calls
