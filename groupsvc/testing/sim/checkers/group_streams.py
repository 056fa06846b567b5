"""Streams of groups: the pieces of a history that the checkers of groups read.

Everything a group does stands under its id. A form of life that the domain's stream does not know makes the rules
of its checkers their own: servers change. A view (epoch, leader, servers, k) is granted and activated by the directory,
its quorum is k of *its* servers, and a server is a process: ``(name, incarnation)``, in durable groups a disk,
``(name, state id)``. A process that was restarted, or that learnt that it had been given up, is another one with an
empty memory. So most rules speak of a *part*: what one incarnation of one node does in one group.

A group's piece has its own lines, the calls of the programs that use it (``submit``; see ``USER_OPS``), and those
lines of the domain that tell of lives and deaths (``SHARED_OPS``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from groupsvc.wire.history import HistoryEvent

from ..application_ops import OPS
from .eras import LEASE_DEFAULT
from .lineage import Lineage
from .lines_by_op import LinesByOp
from .lives import Lives
from .survivors import SURVIVORS_OPS, survivors

Part = tuple[str, int]
"""One incarnation of one node."""

Server = tuple[str, int | str]
"""(name, incarnation); in durable groups (name, state id)."""

Submitted = Mapping[tuple[str, int], set[int]]
"""(origin, n) -> the CRCs of what was submitted to a group of one name under that number."""

USER_OPS = frozenset({"join", "leave", "submit", "sync"})
"""Calls of programs inside the daemons.

All name the group (``args.name``) and have its id where the program knows it. A ``submit`` has the number and the CRC
of the entry as it is to stand in the stream, or 0 if its program, being no member, does not know them yet; its good end
tells ``seq`` if the program, being a member, has seen it there.
"""

SHARED_OPS = frozenset({"boot", "crash", "halted", "down_learned", "node_down", "node_gone", "list_installed"})
"""What the domain knows and every group is concerned with."""

ENDS_OF_PROCESSES = frozenset({"crash", "halted", "down_learned"})
"""After these an incarnation is over: its memory is gone, or given up."""


@attrs.frozen(kw_only=True)
class GroupView:
    """A view as its servers and its leader wrote it down."""

    epoch: int
    leader: str
    names: tuple[str, ...]
    k: int
    forced: bool | None
    base: int | None  # the epoch active before; this and ``forced`` are None where nobody has said
    servers: tuple[Server, ...]  # empty where nobody has said more than the names
    fence: int
    active_at: HistoryEvent | None  # the leader's line; None if nobody knows that it was ever active

    @property
    def promises_needed(self) -> int:
        """So many of its servers know all that can have been stable in it."""
        return len(self.names) - self.k + 1

    def promises_needed_by(self, part: Part) -> int:
        """The process that led it has all that was numbered in it: k are enough for that one to go on."""
        led = self.active_at is not None and part == (self.active_at.node, self.active_at.inc)
        return min(self.k, self.promises_needed) if led else self.promises_needed


class GroupStream:
    """One group, from its formation on."""

    def __init__(
        self, group: int, lines: Sequence[HistoryEvent], submitted: Submitted, *, converged: bool, end: int,
        lease: float = LEASE_DEFAULT, history_entries_max: int = 0,
    ) -> None:  # fmt: skip
        self.id = group
        self.history_entries_max = history_entries_max  # how far a member may lag; 0: nobody has said
        self._lines = LinesByOp(lines)
        self.submitted = submitted
        self.converged = converged
        self.end = end
        self.views = _views(self.of("granted", "view_installed", "view_active"))
        self.fast = any(line.args.get("delivery") == "fast" for line in self.of("view_active"))
        bound = survivors(self.of(*SURVIVORS_OPS), lease) if self.fast else None
        self.lineage = Lineage(self.of("ordered", "stable", "recovered", "restored", "delivered"), self.views, bound)
        self.durable = any(isinstance(which, str) for view in self.views.values() for _, which in view.servers)

    def of(self, *ops: str, calls: Iterable[str] = ()) -> Iterator[HistoryEvent]:
        """The daemons' and the driver's lines with these names, and those of programs' ``calls``, in order."""
        return self._lines.of(ops, calls)

    def active_views(self) -> list[GroupView]:
        """The views that a leader knew to be active, by epoch."""
        return [view for _, view in sorted(self.views.items()) if view.active_at is not None]


class Servers:
    """Who speaks: the present process or disk behind each node's name."""

    def __init__(self, durable: bool) -> None:
        self._durable = durable
        self._lives = Lives()

    def see(self, boot: HistoryEvent) -> None:
        """A process begins."""
        self._lives.see(boot)

    def of(self, line: HistoryEvent) -> Server:
        """As which server of a view the writer of a line speaks."""
        return (line.node, self._lives[line.node].state_id if self._durable else line.inc)


@attrs.frozen
class Pieces:
    """A history taken apart."""

    domain: list[HistoryEvent] = attrs.field(factory=list)
    groups: dict[int, list[HistoryEvent]] = attrs.field(factory=dict)  # with the shared lines and their calls
    calls: list[HistoryEvent] = attrs.field(factory=list)  # of the programs that use groups
    names: dict[int, str] = attrs.field(factory=dict)  # of groups, as far as programs have told them
    applications: list[HistoryEvent] = attrs.field(factory=list)  # what they called and were told

    def streams(
        self, *, converged_from: int | None, end: int, lease: float = LEASE_DEFAULT, history_entries_max: int = 0
    ) -> list[GroupStream]:
        """All groups, oldest first; those that began at ``converged_from`` or later are expected to be in order."""
        by_name: dict[str, dict[tuple[str, int], set[int]]] = {}
        for line in self.calls:
            if line.op == "submit" and line.type == "invoke":
                submitted = by_name.setdefault(str(line.args["name"]), {})
                submitted.setdefault((f"{line.node}/{line.inc}", line.n), set()).add(line.crc)
        result: list[GroupStream] = []
        for group, lines in sorted(self.groups.items()):
            first = next(line.i for line in lines if line.group)
            is_lost = any(line.op == "disks_lost" for line in lines)  # it waits for ever, and rightly so
            converged = converged_from is not None and first >= converged_from and not is_lost
            name = self.names.get(group, "")
            submitted = by_name.get(name, {})
            result.append(
                GroupStream(
                    group,
                    lines,
                    submitted,
                    converged=converged,
                    end=end,
                    lease=lease,
                    history_entries_max=history_entries_max,
                )
            )
        return result


def split(history: Iterable[HistoryEvent]) -> Pieces:
    """The lines of the domain, those of each group, those of the groups' users."""
    pieces = Pieces()
    domain, groups = pieces.domain, pieces.groups
    shared: list[HistoryEvent] = []
    for line in history:
        if line.op in OPS:
            pieces.applications.append(line)
            continue
        if line.type != "event" and line.op in USER_OPS:
            pieces.calls.append(line)
            if line.op == "join" and line.type == "ok":
                pieces.names.setdefault(int(line.result["group"]), str(line.args["name"]))
            if not line.group:
                continue
        if line.group:
            lines = groups.get(line.group)
            if lines is None:
                lines = groups[line.group] = list(shared)
            lines.append(line)
            continue
        domain.append(line)
        if line.op in SHARED_OPS and line.type == "event":
            shared.append(line)
            for lines in groups.values():
                lines.append(line)
    return pieces


def members_of(line: HistoryEvent) -> tuple[Part, ...]:
    """The list in a ``members`` line."""
    return tuple((str(name), int(inc)) for name, inc in line.args["members"])


def _views(lines: Iterable[HistoryEvent]) -> dict[int, GroupView]:
    """Each epoch's view by what is written of it first; ``V3`` sees to it that all say the same.

    A server that installs a view does not say on whose word; its leader has, when it was ``granted`` the epoch.
    """
    views: dict[int, GroupView] = {}
    grants: dict[int, dict[str, Any]] = {}
    for line in lines:
        if line.op == "granted":
            grants.setdefault(line.epoch, line.args)
            continue
        known = views.get(line.epoch)
        if known is None or (line.op == "view_active" and known.active_at is None):
            views[line.epoch] = _view(line, {**grants.get(line.epoch, {}), **line.args})
    return views


def _view(line: HistoryEvent, args: dict[str, Any]) -> GroupView:
    servers = tuple((str(name), which) for name, which in args.get("servers", ()))
    return GroupView(
        epoch=line.epoch,
        leader=str(args["leader"]),
        names=tuple(name for name, _ in servers) or tuple(args.get("members", ())),
        k=int(args["k"]),
        forced=None if args.get("forced") is None else bool(args["forced"]),
        base=None if args.get("base") is None else int(args["base"]),
        servers=servers,
        fence=int(args.get("fence", 0)),
        active_at=line if line.op == "view_active" else None,
    )
