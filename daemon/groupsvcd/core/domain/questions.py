"""Questions about the directory, and which of them have to wait.

A group that is there may be told at once: at worst the answer is old, and whoever is asked next knows better. "There
is no such group", and any value that callers compare and set, must be true *now*. The name server knows that no
other one had a majority at the time of the question once a majority has answered a call sent after it. Who only
wants to *find* a group, to form it otherwise, need not wait: forming decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..peer_messages import Ask
from ..views import NodeId

if TYPE_CHECKING:
    from .directory import Directory


class Questions:
    """Those that wait: who asked what, and which call must be answered first."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[NodeId, int], tuple[int, Ask]] = {}

    def wait(self, asker: NodeId, ask: Ask, after: int) -> None:
        """Answer once a majority has answered call ``after``; a repeated question does not wait twice."""
        self.waiting.setdefault((asker, ask.number), (after, ask))

    def ready(self, backed: int) -> list[tuple[NodeId, Ask]]:
        """Take out those that may be answered now that a majority has answered call ``backed``."""
        found = [(asker, ask) for (asker, _), (after, ask) in self.waiting.items() if after <= backed]
        for asker, ask in found:
            del self.waiting[asker, ask.number]
        return found

    def newest_call_needed(self) -> int:
        """The call that the newest question waits for; 0 if none waits."""
        return max((after for after, _ in self.waiting.values()), default=0)


def needs_proof(directory: Directory, ask: Ask) -> bool:
    """Whether the answer must be known to be true now."""
    return ask.what != "find" and (ask.what != "group" or directory.group(ask.key) is None)


def answer(directory: Directory, ask: Ask, is_over: Callable[[NodeId], bool]) -> tuple[dict[str, Any], str]:
    """(what the directory says, a problem or ""); ``is_over``: whether any lease of this incarnation has ended.

    An incarnation that said goodbye, or whose disk another one has, is gone at once, for it acts no more. But programs
    of its node rely on its lease by their own clocks: who asks whether nobody there holds anything is told of both.
    """
    if ask.what in ("group", "find"):
        group = directory.group(ask.key)
        return {"group": None if group is None else group.as_answer()}, ""
    if ask.what == "groups":
        return {"groups": [group.as_answer() for group in directory.groups.all()], "seq": directory.applied}, ""
    if ask.what == "gone":
        name, _, incarnation = ask.key.rpartition("/")
        which = (name, int(incarnation) if incarnation.isdecimal() else 0)
        return {"gone": which[1] > 0 and directory.nodes.is_gone(which) and is_over(which)}, ""
    if ask.what == "config":
        value, version = directory.config(ask.key)
        return {"value": value, "version": version}, ""
    return {}, f"the name server does not know the question {ask.what!r}"
