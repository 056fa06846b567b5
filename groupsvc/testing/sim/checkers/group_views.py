"""V1 – V7 and L6 for groups: who holds a stream, by which grant, and what that means for who delivers what.

``view_installed`` is written by each server as it accepts a view, ``view_active`` by the leader once the directory has
confirmed it and before it gives the first number, ``members`` by every member as it delivers a change of the list.
Epochs are numbers of directory entries: they order views, whatever the order of the lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from groupsvc.wire.history import HistoryEvent

from .group_streams import ENDS_OF_PROCESSES, GroupStream, GroupView, Part, Server, Servers, members_of
from .lives import LIFE_OPS, Lives
from .verdict import Violation


def v1(stream: GroupStream) -> Iterator[Violation]:
    """Self-inclusion: who installs a view is one of its servers; who leads an active one is so by this very process.

    In durable groups by this very disk. Where only names were written, the name must do.
    """
    servers = Servers(stream.durable)
    for line in stream.of("boot", "view_installed", "view_active"):
        if line.op == "boot":
            servers.see(line)
        elif line.op == "view_installed":
            if line.node not in line.args["members"]:
                yield Violation("V1", f"{line.node} installed epoch {line.epoch} of {line.args['members']}", line.i)
        elif line.args["leader"] != line.node or list(servers.of(line)) not in [list(s) for s in line.args["servers"]]:
            text = f"{line.node}/{line.inc} leads epoch {line.epoch} of {line.args['servers']}"
            yield Violation("V1", text, line.i)


def v2(stream: GroupStream) -> Iterator[Violation]:
    """Local monotonicity: the epochs in which an incarnation installs a view, or delivers, never decrease.

    A delivery may lag behind what the same node has installed as a server, but never behind an earlier delivery.
    After ``restored`` a node follows anew; what it does then is in no lower epoch either.
    """
    installed: dict[Part, int] = {}
    followed: dict[Part, int] = {}
    for line in stream.of("view_installed", "delivered", "restored", "members"):
        me = (line.node, line.inc)
        known = installed if line.op == "view_installed" else followed
        before = known.get(me, 0)
        if line.epoch < before:
            text = f"{line.node} went from epoch {before} back to {line.epoch} ({line.op} {line.seq})"
            yield Violation("V2", text, line.i)
        known[me] = line.epoch


def v3(stream: GroupStream) -> Iterator[Violation]:
    """Agreement: an epoch has one leader, one set of servers, one k; the list after an entry is the same at all.

    An entry here is a number in a branch of the log (see ``lineage``).
    """
    views: dict[int, tuple[Any, ...]] = {}
    lists: dict[tuple[int, int], tuple[Part, ...]] = {}
    for line in stream.of("view_installed", "view_active", "members"):
        if line.op == "members":
            place = (stream.lineage.branch(line.seq, line.epoch), line.seq)
            members = members_of(line)
            if lists.setdefault(place, members) != members:
                text = f"the list after {line.seq} is {members} at {line.node}, elsewhere {lists[place]}"
                yield Violation("V3", text, line.i)
            continue
        names = [name for name, _ in line.args["servers"]] if line.op == "view_active" else line.args["members"]
        view = (line.args["leader"], tuple(sorted(names)), line.args["k"])
        if views.setdefault(line.epoch, view) != view:
            text = f"epoch {line.epoch} is {view} at {line.node}, elsewhere {views[line.epoch]}"
            yield Violation("V3", text, line.i)


def v4(stream: GroupStream) -> Iterator[Violation]:
    """Primary uniqueness, in four parts.

    *One*: an epoch is made active at one incarnation only, once.

    *One chain*: by epoch, each active view names as its base the active view before it. A view may be active
    although its leader died before it learnt so: then the base lies between the two, and was installed somewhere, or is
    the one that the group was formed with.

    *From enough*: when the log of an active view is ``recovered``, at least |S| - k + 1 servers of its base have
    promised the epoch, or min(k, |S| - k + 1) if the recovering process is the one that led the base; or one has
    promised that had installed a view above the base, whose log has it all. In forced views none of this is asked,
    nor in the first.

    *Not before*: nobody orders in an epoch before its ``view_active``, and nothing is delivered in it until then but
    what was announced stable, or delivered, in a lower one. In the step that makes it active the order of the lines
    is free.
    """
    authors: dict[int, Part] = {}
    for line in stream.of("view_active"):
        me = (line.node, line.inc)
        if line.epoch in authors:
            text = f"epoch {line.epoch} becomes active at {authors[line.epoch]} and at {me}"
            yield Violation("V4", text, line.i)
        authors.setdefault(line.epoch, me)
    yield from _chain(stream)
    yield from _from_enough(stream)
    yield from _not_before(stream)


def _chain(stream: GroupStream) -> Iterator[Violation]:
    before: GroupView | None = None
    for view in stream.active_views():
        assert view.active_at is not None
        expected = before.epoch if before is not None else 0
        base = view.base or 0
        is_known = base in stream.views or base == stream.id  # whoever formed it may have died at once
        silently = base > expected and is_known and base < view.epoch
        if base != expected and not silently:
            text = f"epoch {view.epoch} became active on base {base}, but {expected} was active before it"
            yield Violation("V4", text, view.active_at.i)
        before = view


def _from_enough(stream: GroupStream) -> Iterator[Violation]:
    servers = Servers(stream.durable)
    promised: dict[int, set[Server]] = {}
    installed: dict[Server, int] = {}  # the newest epoch each has installed
    ahead: dict[int, int] = {}  # epoch -> the highest epoch that was installed by one who has promised it
    for line in stream.of("boot", "promise", "view_installed", "recovered"):
        if line.op == "boot":
            servers.see(line)
            continue
        me = servers.of(line)
        if line.op == "promise":
            promised.setdefault(line.epoch, set()).add(me)
            ahead[line.epoch] = max(ahead.get(line.epoch, 0), installed.get(me, 0))
        elif line.op == "view_installed":
            installed[me] = line.epoch
        else:
            view = stream.views.get(line.epoch)
            base = stream.views.get(view.base or 0) if view is not None and view.active_at is not None else None
            if view is None or base is None or view.forced or ahead.get(line.epoch, 0) > base.epoch:
                continue
            who = promised.get(line.epoch, set())
            count = len(who.intersection(base.servers)) if base.servers else len({n for n, _ in who} & {*base.names})
            if count < base.promises_needed_by((line.node, line.inc)):
                text = (
                    f"{line.node} recovered epoch {line.epoch} with {count} promises of the servers of {base.epoch},"
                    f" which are {base.servers or base.names} with k = {base.k}"
                )
                yield Violation("V4", text, line.i)


def _not_before(stream: GroupStream) -> Iterator[Violation]:
    active = {view.epoch: view.active_at.t for view in stream.active_views() if view.active_at is not None}
    known: dict[int, int] = {}
    for line in stream.of("ordered", "stable", "delivered"):
        epoch = line.epoch
        if line.op == "stable":
            known[epoch] = max(known.get(epoch, 0), line.seq)
        elif line.t >= active.get(epoch, math.inf):
            if line.op == "delivered":
                known[epoch] = max(known.get(epoch, 0), line.seq)
        elif line.op == "ordered":
            yield Violation("V4", f"{line.node} orders {line.seq} in epoch {epoch}, which is not active", line.i)
        elif line.seq > max((seq for other, seq in known.items() if other < epoch), default=0):
            text = f"{line.node} delivers {line.seq} in epoch {epoch}, which is not active; it was not stable before"
            yield Violation("V4", text, line.i)


def v5(stream: GroupStream) -> Iterator[Violation]:
    """View synchrony: nodes that go from one view to the next together have delivered the same entries in the first.

    A view begins for a node when it delivers the first entry ordered in its epoch (``ViewStarted``), and ends with the
    next one's. Judged is everybody who delivered both; one that began to follow in the middle of a view is judged from
    there on.
    """
    starts: dict[tuple[int, int], int] = {}  # (number, CRC) of the first entry of an epoch
    begun: set[int] = set()
    followed: dict[Part, dict[int, int]] = {}  # what each has delivered since its view began
    view_of: dict[Part, int] = {}
    ended: dict[tuple[int, int], tuple[str, dict[int, int]]] = {}  # (view, next view) -> who, what
    for line in stream.of("ordered", "restored", "delivered"):
        me = (line.node, line.inc)
        if line.op == "ordered":
            if line.epoch not in begun:
                begun.add(line.epoch)
                starts[line.seq, line.crc] = line.epoch
        elif line.op == "restored":
            followed[me] = {}
        else:
            following = starts.get((line.seq, line.crc))
            if following is not None:
                mine, change = followed.get(me), (view_of.get(me, 0), following)
                if mine:
                    other, theirs = ended.setdefault(change, (line.node, mine))
                    text = _difference(line.node, mine, other, theirs)
                    if text:
                        yield Violation("V5", f"from epoch {change[0]} to {change[1]} {text}", line.i)
                    if min(mine) < min(theirs):
                        ended[change] = (line.node, mine)  # the longest one to compare the others with
                view_of[me], followed[me] = following, {}
            followed.setdefault(me, {})[line.seq] = line.crc


def _difference(a: str, mine: dict[int, int], b: str, theirs: dict[int, int]) -> str:
    first = max(min(mine), min(theirs))
    left = {seq: crc for seq, crc in mine.items() if seq >= first}
    right = {seq: crc for seq, crc in theirs.items() if seq >= first}
    if left == right:
        return ""
    where = min(seq for seq in left.keys() | right.keys() if left.get(seq) != right.get(seq))
    return f"{a} and {b} go together, but have not delivered the same at {where}"


def v6(stream: GroupStream) -> Iterator[Violation]:
    """Same-view delivery: an entry is delivered in one view only, the same at all.

    The first entry that a leader orders in an epoch is its own (``ViewStarted``), so that all others of the epoch stand
    behind it everywhere. And whoever delivers an entry has the same list of members then: the one of its newest
    ``members`` line. Who has just begun to follow knows none yet and is not judged.
    """
    first_of: set[int] = set()
    lists: dict[Part, tuple[Part, ...]] = {}
    list_at: dict[tuple[int, int], tuple[Part, ...]] = {}
    for line in stream.of("ordered", "members", "restored", "delivered"):
        me = (line.node, line.inc)
        if line.op == "ordered":
            if line.epoch not in first_of and line.origin:
                text = f"the first entry of epoch {line.epoch}, {line.seq}, comes from {line.origin}"
                yield Violation("V6", text, line.i)
            first_of.add(line.epoch)
        elif line.op == "members":
            lists[me] = members_of(line)
        elif line.op == "restored":
            lists.pop(me, None)
        elif me in lists:
            place = (stream.lineage.branch(line.seq, line.epoch), line.seq)
            known = list_at.setdefault(place, lists[me])
            if known != lists[me]:
                text = f"{line.node} delivers {line.seq} among {lists[me]}, others among {known}"
                yield Violation("V6", text, line.i)


def v7(stream: GroupStream) -> Iterator[Violation]:
    """Accuracy, at the end of a converged run: the newest list has exactly those who follow.

    Everybody in it runs with that incarnation, has begun to follow (``joined``) and not ended since (``group_lost``);
    everybody who has is in it.
    """
    if not stream.converged:
        return
    lives = Lives()
    following: dict[Part, HistoryEvent] = {}
    newest: HistoryEvent | None = None
    for line in stream.of(*LIFE_OPS, "down_learned", "joined", "group_lost", "members"):
        if line.op in LIFE_OPS:
            lives.see(line)
        if line.op == "boot" or line.op in ENDS_OF_PROCESSES:
            for part in [part for part in following if part[0] == line.node]:
                del following[part]
        elif line.op == "joined":
            following[line.node, line.inc] = line
        elif line.op == "group_lost":
            following.pop((line.node, line.inc), None)
        elif newest is None or (line.epoch, line.seq) >= (newest.epoch, newest.seq):
            newest = line
    members = set(members_of(newest)) if newest is not None else set()
    if not following:
        return  # nobody is left to keep the list
    for part in sorted(members - set(following)):
        assert newest is not None
        yield Violation("V7", f"{part[0]}/{part[1]} is in the last list and does not follow", newest.i)
    for part in sorted(set(following) - members):
        yield Violation("V7", f"{part[0]}/{part[1]} follows and is not in the last list", following[part].i)


def l6(stream: GroupStream) -> Iterator[Violation]:
    """Fences grow: of two active views the one of the higher epoch has the higher fence."""
    before: GroupView | None = None
    for view in stream.active_views():
        assert view.active_at is not None
        if before is not None and view.fence <= before.fence:
            text = f"epoch {view.epoch} has fence {view.fence}, epoch {before.epoch} had {before.fence}"
            yield Violation("L6", text, view.active_at.i)
        before = view
