"""One contradiction of each kind, to be planted into a sound story: what an audit must find, each by the right rule.

A plant sees the lines of every node, in their order and before they are numbered, and changes, leaves out or repeats
those that it is about. Most change the journal of one node, so that it contradicts the others or itself. Some change
all of them alike: a vote that all count wrongly breaks no agreement, and only who recounts it sees it. What it strikes
is far from the beginning, so nobody finds it by reading the first lines; and all together hide none of each other.

``also`` names rules that are broken by the same change, and cannot but be: who has left out an entry has delivered
something else than the others between two lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs
import msgspec

from groupsvc.wire.history import HistoryEvent

from .story import Shape

Edit = Callable[[str, Iterable[HistoryEvent]], Iterator[HistoryEvent]]
"""From the lines of a node to those that it is to have written."""

_replace = msgspec.structs.replace


@attrs.frozen(kw_only=True)
class Plant:
    """What is planted, and which rules must see it."""

    rule: str
    what: str
    edit: Callable[[Shape], Edit]
    also: frozenset[str] = frozenset()
    level: str = "full"

    @property
    def rules(self) -> frozenset[str]:
        """All that are broken by it."""
        return self.also | {self.rule}


@attrs.frozen
class _Nth:
    """One line of some nodes: the so-manieth that fits."""

    op: str
    nodes: tuple[str, ...]  # nobody: all nodes
    fits: Callable[[HistoryEvent], bool]
    change: Callable[[HistoryEvent], list[HistoryEvent]]
    number: int

    def __call__(self, node: str, lines: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
        count = 0
        for line in lines:
            if line.op == self.op and (not self.nodes or node in self.nodes) and self.fits(line):
                count += 1
                if count == self.number:
                    yield from self.change(line)
                    continue
            yield line


def _with(line: HistoryEvent, **args: Any) -> HistoryEvent:
    return _replace(line, args={**line.args, **args})


def _of_first_group(line: HistoryEvent) -> bool:
    return line.group == 20


def _one(
    op: str, node: str, change: Callable[[HistoryEvent], list[HistoryEvent]], *, number: Callable[[Shape], int],
    fits: Callable[[HistoryEvent], bool] = _of_first_group,
) -> Callable[[Shape], Edit]:  # fmt: skip
    return lambda shape: _Nth(op, (node,) if node else (), fits, change, max(1, number(shape)))


def _hot_blocks(shape: Shape) -> int:
    return int(shape.blocks * shape.hot)


def _late(every: str) -> Callable[[Shape], int]:
    """The one at three quarters of those that the first group has."""
    return lambda shape: int(_hot_blocks(shape) * 0.75) // int(getattr(shape, every))


def _entry(shape: Shape) -> int:
    return int(_hot_blocks(shape) * 0.6) * shape.entries


def _is_message(line: HistoryEvent) -> bool:
    return line.group == 20 and line.origin != ""


def _later_view(line: HistoryEvent) -> bool:
    return line.group == 20 and line.epoch > 20


def _views(shape: Shape) -> int:
    """Somewhere behind the middle, of those that one node leads."""
    return max(1, _hot_blocks(shape) // shape.view_every // shape.nodes // 2)


def _swapped(shape: Shape) -> Edit:
    """B5, everywhere alike: two messages of one origin change places in its count."""
    at = _entry(shape) // shape.entries * shape.entries

    def edit(node: str, lines: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
        count = {"ordered": 0, "delivered": 0}
        pair: dict[int, int] = {}
        for line in lines:
            if line.op in count and _is_message(line):
                if not pair and line.seq >= at and line.n > shape.entries:
                    pair = {line.seq: 1, line.seq + 1: -1} if line.n % shape.entries == 1 else {}
                if line.seq in pair:
                    line = _replace(line, n=line.n + pair[line.seq])
            yield line

    return edit


def _short(shape: Shape) -> Edit:
    """B3: at the end n5 has not delivered the last block of the last group."""

    def edit(node: str, lines: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
        if node != "n5":
            yield from lines
            return
        held: list[HistoryEvent] = []
        last = 20 + shape.groups - 1
        for line in lines:
            if line.group == last and line.op == "held":
                yield from held
                held = [line]
            elif held and line.group == last and line.op in ("delivered", "digest", "ordered", "stable"):
                held.append(line)
            elif held and line.group == last:
                yield from held
                held = []
                yield line
            else:
                yield line
        yield from (line for line in held if line.op not in ("delivered", "digest"))

    return edit


def _moved_list(shape: Shape) -> Edit:
    """V6: a node without a journal comes with one list and is gone with the next; n3 learns of it one entry late."""

    def edit(node: str, lines: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
        left, waiting = max(1, _hot_blocks(shape) // shape.view_every * 2 // 5), None
        for line in lines:
            if line.op == "members" and _later_view(line):
                left -= 1
                if not left:
                    line = _with(line, members=[*line.args["members"], ["guest", 1]])
                    if node == "n3":
                        waiting = line
                        continue
            yield line
            if waiting is not None and line.op == "delivered" and line.group == waiting.group:
                yield waiting
                waiting = None

    return edit


def _without_last(shape: Shape) -> Edit:
    """V5: n4 goes to the next list without the entry that it begins with."""

    def edit(node: str, lines: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
        left, kept = max(1, _hot_blocks(shape) // shape.view_every // 2), []
        for line in lines:
            if node != "n4" or line.group != 20:
                yield line
                continue
            if line.op == "delivered" and not line.origin and left > 0:
                kept = [line]  # what the view begins with comes behind it
                continue
            if kept and line.op == "members":
                left -= 1
                if left:
                    yield from kept
                kept = []
            elif kept and line.op != "digest":
                yield from kept
                kept = []
            yield line

    return edit


def _not_come(shape: Shape) -> Edit:
    """R3: a provider at n4 that has come to earlier rounds does not come to one, and is counted all the same."""

    def edit(node: str, lines: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
        left, seen = max(1, _late("barrier_every")(shape) * 2 // 3), set()
        for line in lines:
            if node == "n4" and line.op == "barrier_entered" and line.group == 20:
                provider = tuple(line.args["provider"])
                left -= 1
                if left <= 0 and provider in seen:
                    left = shape.blocks
                    continue
                seen.add(provider)
            yield line

    return edit


def _lower_view(line: HistoryEvent) -> list[HistoryEvent]:
    """V2: behind a view it installs an older one again."""
    return [line, _replace(line, epoch=20, args={**line.args, "leader": "n1"})]


PLANTS: dict[str, Plant] = {
    plant.rule: plant
    for plant in (
        Plant(rule="B1", what="n3 delivers other bytes under a number", also=frozenset({"V5"}),
              edit=_one("delivered", "n3", lambda line: [_replace(line, crc=line.crc ^ 1)], number=_entry,
                        fits=_is_message)),
        Plant(rule="B3", what="n5 never delivers the last block of a group", edit=_short),
        Plant(rule="B4", what="n2 leaves out an entry", also=frozenset({"V5"}),
              edit=_one("delivered", "n2", lambda line: [], number=_entry, fits=_is_message)),
        Plant(rule="B5", what="two messages of one origin have changed their places everywhere", edit=_swapped),
        Plant(rule="B6", what="a new leader's log ends before what was delivered",
              edit=_one("recovered", "n2", lambda line: [_with(_replace(line, seq=line.seq - 3), last=line.seq - 3)],
                        number=_views)),
        Plant(rule="V1", what="n4 installs a view that it is not in", also=frozenset({"V3"}),
              edit=_one("view_installed", "n4", lambda line: [_with(line, members=["n1", "n2", "n3", "n5"])],
                        number=_late("view_every"))),
        Plant(rule="V2", what="n2 installs an older view behind a newer one",
              edit=_one("view_installed", "n2", _lower_view, number=_late("view_every"))),
        Plant(rule="V3", what="n3 knows another quorum for a view",
              edit=_one("view_installed", "n3", lambda line: [_with(line, k=1)],
                        number=lambda shape: _hot_blocks(shape) // shape.view_every * 3 // 5)),
        Plant(rule="V4", what="a view goes on from one that is long over",
              edit=_one("view_active", "n3", lambda line: [_with(line, base=20)], number=_views, fits=_later_view)),
        Plant(rule="V5", what="n4 goes to a list without the entry that it begins with", also=frozenset({"B4"}),
              edit=_without_last),
        Plant(rule="V6", what="n3 learns of a list one entry too late", also=frozenset({"V5"}), edit=_moved_list),
        Plant(rule="L1", what="n2 leads a view that another one leads",
              edit=_one("view_installed", "n2", lambda line: [line, _active(line)], number=_late("view_every"),
                        fits=lambda line: _later_view(line) and line.args["leader"] != "n2")),
        Plant(rule="L2", what="n2 recovers an epoch that it has not promised",
              edit=lambda shape: _unpromised("n2", _views(shape))),
        Plant(rule="L3", what="n3 has promised a higher epoch and installs a view",
              edit=_one("view_installed", "n3", lambda line: [_promise(line), line],
                        number=lambda shape: _hot_blocks(shape) // shape.view_every * 3 // 10,
                        fits=lambda line: _later_view(line) and line.args["leader"] not in ("n3", "n4"))),
        Plant(rule="L5", what="n1 announces something in an epoch that it has left",
              edit=lambda shape: _announced("n1", _views(shape))),
        Plant(rule="L6", what="the fence of a view is lower than that before",
              edit=_one("view_active", "n4", lambda line: [_with(line, fence=1)], number=_views, fits=_later_view)),
        Plant(rule="G1", what="n4 has not seen a ballot begin",
              edit=_one("phase", "n4", lambda line: [], number=_late("ballot_every"))),
        Plant(rule="G2", what="n2 tells another reason for an outcome",
              edit=_one("outcome", "n2", lambda line: [_with(line, reason="nobody knows")],
                        number=_late("ballot_every"))),
        Plant(rule="G3", what="all tell that a ballot was rejected in which nobody rejected",
              edit=_one("outcome", "", lambda line: [_with(line, approved=False)], number=_late("ballot_every"),
                        fits=lambda line: line.group == 20 and bool(line.args["approved"]))),
        Plant(rule="G4", what="a vote is counted that was cast otherwise",
              edit=_one("voted", "n3", lambda line: [_with(line, vote="continue")], number=_late("ballot_every"))),
        Plant(rule="G5", what="a voter is called late before its time",
              edit=_one("outcome", "", lambda line: [_with(line, at=line.args["at"] - 0.3)],
                        number=lambda shape: _late("ballot_every")(shape) // 6,
                        fits=lambda line: line.group == 20 and any(why == "late" for _, _, why in line.args["votes"]))),
        Plant(rule="G10", what="somebody leaves twice",
              edit=_one("provider_left", "n2", lambda line: [line, line], number=_late("failure_every"))),
        Plant(rule="R1", what="a round ends before one of those who count has come",
              edit=_one("barrier_entered", "n4", lambda line: [_replace(line, t=line.t + 5.0)],
                        number=_late("barrier_every"))),
        Plant(rule="R2", what="a round has ended otherwise at n3",
              edit=_one("barrier_over", "n3", lambda line: [_with(line, end="broken", broken_by="timeout")],
                        number=lambda shape: _late("barrier_every")(shape) * 3 // 4)),
        Plant(rule="R3", what="one counts for a round that has come only to the one before",
              edit=_not_come),
    )
}  # fmt: skip
"""By the rule that must find it."""


def _active(line: HistoryEvent) -> HistoryEvent:
    servers = [[name, 0] for name in line.args["members"]]
    args = {"base": 0, "fence": 0, "forced": False, "k": line.args["k"], "leader": line.args["leader"],
            "servers": servers}  # fmt: skip
    return _replace(line, op="view_active", args={**args, "base": line.epoch - 1, "fence": line.epoch << 20})


def _promise(line: HistoryEvent) -> HistoryEvent:
    return _replace(line, op="promise", epoch=line.epoch + 1, seq=0, args={})


def _unpromised(node: str, number: int) -> Edit:
    def edit(name: str, lines: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
        left = number
        granted = False
        for line in lines:
            if name == node and line.op == "granted" and line.group == 20:
                left -= 1
                granted = left == 0
            if granted and line.op == "promise" and line.group == 20:
                granted = False
                continue
            yield line

    return edit


def _announced(node: str, number: int) -> Edit:
    """L5: after it has promised to the next, it still announces something in its own epoch."""

    def edit(name: str, lines: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
        left, newest = number, None
        for line in lines:
            yield line
            if name != node or line.group != 20:
                continue
            if line.op == "stable":
                newest = line
            elif line.op == "promise" and newest is not None and newest.epoch < line.epoch and left:
                left -= 1
                if not left:
                    yield _replace(newest, t=line.t, wall_ns=line.wall_ns)

    return edit
