"""V1 – V4 and V7: who is in, who leads, and that everybody says the same.

A *view* here is an epoch of the domain stream: its leader and its voters, written by each voter as it accepts
the epoch (``view_installed``). The *list* is the table of all nodes; its version is the number of the
directory entry that last changed it (``list_installed``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from groupsvc.wire.history import HistoryEvent

from .eras import Era
from .lives import LIFE_OPS, Lives, record_kind
from .outdated import voter_name
from .verdict import Violation

TIME_SLACK = 1e-6
"""Seconds; two clocks converted into one another differ by rounding."""


def v1(era: Era) -> Iterator[Violation]:
    """Self-inclusion: the node that installs a view is one of its members."""
    for line in era.of("view_installed"):
        if voter_name(line.node) not in line.args["members"]:
            yield Violation("V1", f"{line.node} installed epoch {line.epoch} of {line.args['members']}", line.i)


def v2(era: Era) -> Iterator[Violation]:
    """Local monotonicity.

    The epochs a node installs never decrease while it runs, nor below what its disk had (``persisted`` open)
    when it restarts; a new disk begins anew. What was installed in memory only may be forgotten by a crash,
    since ``Opened`` is said after the write. Equal epochs are fine. List versions never decrease within one
    boot and incarnation: a restarted node reads its list again from a checkpoint.
    """
    lives = Lives()
    epochs: dict[str, int] = {}
    on_disk: dict[str, int] = {}
    lists: dict[tuple[str, int, int], int] = {}
    for line in era.of("boot", "persisted", "view_installed", "list_installed"):
        if line.op == "boot":
            if lives.see(line):
                on_disk.pop(line.node, None)
            epochs[line.node] = on_disk.get(line.node, 0)
        elif line.op == "persisted":
            if record_kind(line) == "open":
                on_disk[line.node] = line.epoch
        elif line.op == "view_installed":
            before = epochs.get(line.node, 0)
            if line.epoch < before:
                yield Violation("V2", f"{line.node} went from epoch {before} back to {line.epoch}", line.i)
            epochs[line.node] = line.epoch
        else:
            life = (line.node, lives[line.node].boot, line.inc)
            before = lists.get(life, 0)
            if line.seq < before:
                yield Violation("V2", f"{line.node} went from list version {before} back to {line.seq}", line.i)
            lists[life] = line.seq


def v3(era: Era) -> Iterator[Violation]:
    """Agreement: an epoch has one leader, one set of members and one k; a list version one table of nodes."""
    views: dict[int, tuple[Any, ...]] = {}
    tables: dict[int, dict[str, tuple[Any, ...]]] = {}
    for line in era.of("view_installed", "list_installed"):
        if line.op == "view_installed":
            view = (line.args["leader"], tuple(sorted(line.args["members"])), line.args.get("k"))
            known = views.setdefault(line.epoch, view)
            if known != view:
                yield Violation("V3", f"epoch {line.epoch} is {view} at {line.node}, elsewhere {known}", line.i)
        else:
            table = _table(line)
            known_table = tables.setdefault(line.seq, table)
            if known_table != table:
                yield Violation(
                    "V3", f"list version {line.seq} is {table} at {line.node}, elsewhere {known_table}", line.i
                )


def v4(era: Era) -> Iterator[Violation]:
    """Primary uniqueness, in three parts.

    One node per epoch wins the office, recovers, or acknowledges. Consecutive views share a majority of each
    other. And no two nodes acknowledge side by side: when a node has acknowledged in epoch e, no other one
    acknowledges in a lower epoch any more. A leader leaves office a little before the voters that backed it
    may help another one, so there is no overlap, not even of a lease.
    """
    leader_of: dict[int, str] = {}
    first_word: dict[int, float] = {}
    for line in era.of("office", "recovered", "acknowledged"):
        if line.op == "office" and line.args.get("phase") == "left":
            continue
        leader = leader_of.setdefault(line.epoch, line.node)
        if leader != line.node:
            yield Violation("V4", f"epoch {line.epoch} is led by {leader} and by {line.node}", line.i)
        if line.op == "acknowledged":
            for epoch, since in first_word.items():
                if epoch > line.epoch and leader_of[epoch] != line.node and line.t > since + TIME_SLACK:
                    text = (
                        f"{line.node} acknowledges in epoch {line.epoch} {line.t - since:.3f} s after"
                        f" {leader_of[epoch]} began to in {epoch}"
                    )
                    yield Violation("V4", text, line.i)
                    break
            first_word.setdefault(line.epoch, line.t)
    yield from _chain(era)


def _chain(era: Era) -> Iterator[Violation]:
    views: dict[int, HistoryEvent] = {}
    for line in era.of("view_installed"):
        views.setdefault(line.epoch, line)
    before: HistoryEvent | None = None
    for _, line in sorted(views.items()):
        if before is not None:
            old, new = set(before.args["members"]), set(line.args["members"])
            shared = len(old & new)
            if 2 * shared <= len(old) or 2 * shared <= len(new):
                text = f"epoch {line.epoch} of {sorted(new)} shares no majority with {before.epoch} of {sorted(old)}"
                yield Violation("V4", text, line.i)
        before = line


def v7(era: Era) -> Iterator[Violation]:
    """Accuracy, at the end of a converged run.

    The last list of every running node, installed in its present boot, has exactly the running nodes up, each
    with its present incarnation. Every running voter's last view (on its present disk: a restart may take up
    the accepted one silently) is the same epoch, and its leader runs. A running node whose last ``lease`` line
    names an epoch names that one; list lines are not asked, since a new leader need not change the list.
    """
    if not era.converged:
        return
    lives = Lives()
    incarnation: dict[str, int] = {}
    tables: dict[str, HistoryEvent] = {}
    views: dict[str, HistoryEvent] = {}
    leases: dict[str, int] = {}
    for line in era.events:
        if line.type != "event" or line.group != 0 or not line.node:
            continue
        if line.op in LIFE_OPS:
            if lives.see(line):
                views.pop(line.node, None)
            tables.pop(line.node, None)
            leases.pop(line.node, None)
            incarnation[line.node] = 0
        elif line.op == "list_installed":
            tables[line.node] = line
        elif line.op == "view_installed":
            views[line.node] = line
        elif line.op == "lease" and line.epoch:
            leases[line.node] = line.epoch
        incarnation[line.node] = max(incarnation.get(line.node, 0), line.inc)
    running = lives.running()
    expected = {node: incarnation[node] for node in running}
    for node in running:
        last = tables.get(node)
        if last is None:
            yield Violation("V7", f"{node} runs and has no list", era.end)
            continue
        up = {name: entry[0] for name, entry in _table(last).items() if entry[1] == "up"}
        if up != expected:
            yield Violation("V7", f"{node} ends with {up} up, but {expected} run", last.i)
    yield from _same_leader(era, running, views, leases)


def _same_leader(
    era: Era, running: list[str], views: dict[str, HistoryEvent], leases: dict[str, int]
) -> Iterator[Violation]:
    newest = max((line.epoch for line in views.values()), default=0)
    for node in running:
        if node in era.voters:
            view = views.get(node)
            if view is None:
                yield Violation("V7", f"voter {node} runs and has no view", era.end)
            elif view.epoch != newest:
                yield Violation("V7", f"voter {node} ends in epoch {view.epoch}, others in {newest}", view.i)
            elif view.args["leader"] not in running:
                yield Violation("V7", f"{node} ends under {view.args['leader']}, which does not run", view.i)
        if leases.get(node, newest) != newest:
            yield Violation("V7", f"{node} ends with a lease of epoch {leases[node]}, voters in {newest}", era.end)


def _table(line: HistoryEvent) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(entry) for name, entry in line.args["nodes"].items()}
