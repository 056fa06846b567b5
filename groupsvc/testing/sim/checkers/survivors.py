"""Who may not be contradicted when a fast group changes its leader.

In a fast group an entry is delivered before k servers hold it, so a new leader may lack it: what only the dead have
seen is lost. But whoever lives and follows the group has promised the new epoch before its leader chose a log, and all
that it delivered is in that log. One exception: a leader that has waited for ``lease`` goes on without those who are up
and from whom it has heard nothing, and says who they are (``left_out``). They may be contradicted; and they end, which
is B6's matter.

So for each ``recovered`` there is a set of *survivors*: the processes that follow the group at that moment and are
neither dead nor declared down, without those who were waited for in vain. A forced view knows only of those who are
in the logs that are left, so nothing is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupsvc.wire.history import HistoryEvent

Part = tuple[str, int]
"""One incarnation of one node."""

SURVIVORS_OPS = (
    "boot", "crash", "halted", "down_learned", "node_down", "list_installed", "joined", "group_lost", "restored",
    "delivered", "granted", "recovered",
)  # fmt: skip
"""What tells who follows a group, and how long a leader has waited."""


def survivors(lines: Iterable[HistoryEvent], lease: float) -> dict[int, frozenset[Part]]:
    """By the position of each ``recovered``: who may not be contradicted by that log."""
    following: set[Part] = set()
    down: set[Part] = set()
    granted: dict[tuple[str, int], float] = {}
    found: dict[int, frozenset[Part]] = {}
    for line in lines:
        me = (line.node, line.inc)
        if line.op in ("joined", "restored", "delivered"):
            following.add(me)
        elif line.op == "granted":
            granted[line.node, line.epoch] = line.t
        elif line.op == "node_down":
            down.add((str(line.args["name"]), int(line.args["inc"])))
        elif line.op == "list_installed":  # a new name server does not tell again whom the old one had declared down
            nodes = line.args["nodes"].items()
            down |= {(name, inc) for name, (inc, status) in nodes if status != "up"}
        elif line.op == "group_lost":
            following.discard(me)
        elif line.op == "recovered":
            waited = line.t - granted.get((line.node, line.epoch), line.t) >= lease
            left_out = {(str(name), int(inc)) for name, inc in line.args.get("left_out", ())} if waited else set()
            found[line.i] = frozenset(following - down - left_out)
        else:
            following = {part for part in following if part[0] != line.node}
    return found
