"""A domain in which all goes well, told from the side of one node: the lines that its daemon would write.

Five nodes carry some groups, one of which has most of the traffic. In each group entries are ordered in blocks, all
messages of a block coming from one origin; now and then a ballot is held, a barrier passed, a provider fails and comes
back, and the lead is handed to the next node. Everything follows from the shape of the story and from nothing else, so
each node's journal can be written by itself, and fits to the others.

Every group has its own clock, which runs on by ``BLOCK_S`` with each of its blocks; node number k sees everything k
half milliseconds after it happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Literal

import attrs

from groupsvc.wire.history import HistoryEvent

Provider = list[Any]

FIRST_INCARNATION = 1_794_000_000_000_000
WALL_NS = 1_794_000_000_000_000_000
BLOCK_S = 0.02
LATER_S = 0.0005
"""By which each node sees everything later than the one before."""

TIME_LIMIT_S = 0.4
ORDER = 0x9E3779B97F4A7C15
_BITS = (1 << 64) - 1


@attrs.frozen(kw_only=True)
class Shape:
    """How large a story is, and what is in it."""

    blocks: int
    groups: int = 8
    nodes: int = 5
    entries: int = 8  # in a block
    hot: float = 0.6  # the part of all blocks that is in the first group
    ballot_every: int = 25  # blocks of a group
    barrier_every: int = 20
    view_every: int = 120
    failure_every: int = 150
    level: Literal["batch", "full"] = "full"
    seed: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Of the nodes."""
        return tuple(f"n{number}" for number in range(1, self.nodes + 1))

    def lines(self) -> float:
        """About how many lines all nodes together write for a block."""
        if self.level == "batch":
            return self.nodes * 1.6
        return self.entries * (self.nodes + 1) + 2 * self.nodes + self.nodes * 1.2

    @classmethod
    def of_events(cls, events: int, **others: Any) -> Shape:
        """A shape with about so many lines."""
        return cls(blocks=max(400, round(events / cls(blocks=1, **others).lines())), **others)


@attrs.define
class Group:
    """One group as the story goes on."""

    id: int
    number: int
    now: float
    seq: int = 0
    base: int = 0
    epoch: int = 0
    view: int = 0
    fence: int = 0
    blocks: int = 0
    rounds: int = 0
    late: int = 0
    sent: dict[str, int] = attrs.field(factory=dict)
    providers: list[Provider] = attrs.field(factory=list)


class Story:
    """The lines of one node, in their order; numbers and times of writing come later."""

    def __init__(self, shape: Shape, node: str) -> None:
        self.shape = shape
        self.node = node
        self.number = shape.names.index(node)
        self.inc = FIRST_INCARNATION + self.number
        self._full = shape.level == "full"

    def lines(self) -> Iterator[HistoryEvent]:
        """From the first to the last."""
        shape = self.shape
        yield from self._domain()
        groups = [Group(id=20 + number, number=number, now=2.0) for number in range(shape.groups)]
        for group in groups:
            yield from self._begin(group)
        dice = Random(shape.seed)
        others = (1.0 - shape.hot) / max(1, shape.groups - 1)
        weights = [shape.hot if not number else others for number in range(shape.groups)]
        lease_at = 2.0
        left = shape.blocks
        while left:
            for group in dice.choices(groups, weights, k=min(left, 4_096)):
                left -= 1
                yield from self._block(group)
                if groups[0].now >= lease_at:
                    lease_at += 0.5
                    yield self._line("lease", at=groups[0].now, epoch=1, args={"until": groups[0].now + 2.0})
        end = max(group.now for group in groups) + 1.0
        yield self._line("lease", at=end, epoch=1, args={"until": end + 2.0})

    def _line(
        self, op: str, *, at: float, group: int = 0, epoch: int = 0, seq: int = 0, origin: str = "", n: int = 0,
        crc: int = 0, args: dict[str, Any] | None = None,
    ) -> HistoryEvent:  # fmt: skip
        t = 1_000.0 + at + self.number * LATER_S
        return HistoryEvent(
            v=1, i=0, t=t, wall_ns=WALL_NS + int(t * 1e9), node=self.node, inc=self.inc, op=op, group=group,
            epoch=epoch, seq=seq, origin=origin, n=n, crc=crc, args=args or {},
        )  # fmt: skip

    # --- The domain ---

    def _domain(self) -> Iterator[HistoryEvent]:
        names, voters = self.shape.names, self.shape.names[:3]
        is_voter, is_first = self.node in voters, self.number == 0
        state = {"formed": is_first, "state_id": f"disk-of-{self.node}", "voter": is_voter}
        yield self._line("started", at=0.0, args=state)
        if is_voter:
            yield self._line("promise", at=0.1, epoch=1)
            if is_first:
                yield self._line("office", at=0.2, epoch=1, args={"phase": "won"})
            view = {"k": 2, "leader": names[0], "members": list(voters)}
            yield self._line("view_installed", at=0.2, epoch=1, seq=1, args=view)
            if is_first:
                tail = {"base": 0, "last": 1, "tail": [[1, _crc(0, 1)]]}
                yield self._line("recovered", at=0.2, epoch=1, seq=1, args=tail)
                yield self._line("office", at=0.3, epoch=1, args={"phase": "open"})
            for seq in range(1, len(names) + 2):
                if is_first and seq > 1:
                    yield self._line("ordered", at=0.3, epoch=1, seq=seq, crc=_crc(0, seq))
                yield self._line("delivered", at=0.4, epoch=1, seq=seq, crc=_crc(0, seq))
        yield self._line("lease", at=1.0, epoch=1, args={"until": 3.0})
        yield self._line("rejoined", at=1.0, epoch=1)

    # --- Views and providers ---

    def _begin(self, group: Group) -> Iterator[HistoryEvent]:
        group.epoch, group.fence = group.id, group.id << 20
        yield self._line("joined", at=group.now, group=group.id, args={"era": 0})
        yield from self._view(group, base=0)
        group.providers = [[name, FIRST_INCARNATION + k, 1] for k, name in enumerate(self.shape.names)]
        yield from self._own(group)
        group.fence += 1
        args = {"providers": [list(one) for one in group.providers], "names": list(self.shape.names),
                "fence": group.fence}  # fmt: skip
        yield self._line("provider_joined", at=group.now, group=group.id, seq=group.seq, args=args)

    def _hand_over(self, group: Group) -> Iterator[HistoryEvent]:
        before = group.epoch
        if self.node == self._leader(group):
            yield self._line("view_left", at=group.now, group=group.id, epoch=before)
        group.view += 1
        group.epoch += 10_000 + group.number
        group.now += 0.3
        leads = self.node == self._leader(group)
        if leads:
            args = {"base": before, "forced": False}
            yield self._line("granted", at=group.now, group=group.id, epoch=group.epoch, args=args)
        yield self._line("promise", at=group.now, group=group.id, epoch=group.epoch)
        if leads:
            chosen: dict[str, Any] = {"base": group.seq, "last": group.seq, "tail": []}
            yield self._line("recovered", at=group.now, group=group.id, epoch=group.epoch, seq=group.seq, args=chosen)
        group.fence = group.epoch << 20
        yield from self._view(group, base=before)
        yield self._line("fenced", at=group.now, group=group.id, seq=group.seq,
                         args={"fence": group.fence + 1, "lost": False})  # fmt: skip
        group.fence += 1

    def _leader(self, group: Group) -> str:
        return self.shape.names[(group.number + group.view) % self.shape.nodes]

    def _view(self, group: Group, base: int) -> Iterator[HistoryEvent]:
        names, leader = self.shape.names, self._leader(group)
        members = [[name, FIRST_INCARNATION + k] for k, name in enumerate(names)]
        k = self.shape.nodes // 2 + 1
        group.now += 0.01
        args: dict[str, Any] = {"k": k, "leader": leader, "members": list(names)}
        yield self._line("view_installed", at=group.now, group=group.id, epoch=group.epoch, seq=group.seq, args=args)
        if self.node == leader:
            args = {"base": base, "fence": group.fence, "forced": False, "k": k, "leader": leader, "servers": members}
            yield self._line("view_active", at=group.now, group=group.id, epoch=group.epoch, seq=group.seq, args=args)
        yield from self._own(group)
        args = {"era": 0, "fence": group.fence, "leader": leader, "members": members}
        yield self._line("members", at=group.now, group=group.id, epoch=group.epoch, seq=group.seq, args=args)

    # --- Entries ---

    def _own(self, group: Group) -> Iterator[HistoryEvent]:
        """The leader orders something of its own; the digest begins anew behind it."""
        group.seq += 1
        yield from self._delivered(group, group.seq, group.seq, "", 0)
        group.base = group.seq

    def _delivered(self, group: Group, first: int, last: int, origin: str, n: int) -> Iterator[HistoryEvent]:
        at, leads = group.now, self.node == self._leader(group)
        digest = {"base": group.base, "digest": _digest(group.id, group.base, last), "first": first}
        if not self._full:
            yield self._line("delivered", at=at, group=group.id, epoch=group.epoch, seq=last, args=digest)
            return
        for seq in range(first, last + 1) if leads else ():
            yield self._line("ordered", at=at, group=group.id, epoch=group.epoch, seq=seq, origin=origin,
                             n=n + seq - first, crc=_crc(group.id, seq))  # fmt: skip
        yield self._line("held", at=at, group=group.id, epoch=group.epoch, seq=last)
        if leads:
            yield self._line("stable", at=at, group=group.id, epoch=group.epoch, seq=last)
        for seq in range(first, last + 1):
            yield self._line("delivered", at=at, group=group.id, epoch=group.epoch, seq=seq, origin=origin,
                             n=n + seq - first if origin else 0, crc=_crc(group.id, seq))  # fmt: skip
        yield self._line("digest", at=at, group=group.id, epoch=group.epoch, seq=last, args=digest)

    def _block(self, group: Group) -> Iterator[HistoryEvent]:
        shape = self.shape
        group.blocks += 1
        group.now += BLOCK_S
        sender = (group.blocks * 7) % shape.nodes
        origin = f"{shape.names[sender]}/{FIRST_INCARNATION + sender}"
        first, n = group.seq + 1, group.sent.get(origin, 0) + 1
        group.sent[origin] = n + shape.entries - 1
        group.seq += shape.entries
        yield from self._delivered(group, first, group.seq, origin, n)
        if group.blocks % shape.failure_every == 0:
            yield from self._failure(group)
        if group.blocks % shape.ballot_every == 0:
            yield from self._ballot(group)
        if group.blocks % shape.barrier_every == 0:
            yield from self._barrier(group)
        if group.blocks % shape.view_every == 0:
            yield from self._hand_over(group)

    # --- Ballots and barriers ---

    def _failure(self, group: Group) -> Iterator[HistoryEvent]:
        """A provider fails; a ballot runs without its vote; it leaves and another one joins in its place."""
        place = group.blocks // self.shape.failure_every % self.shape.nodes
        failed = group.providers[place]
        yield from self._own(group)
        args: dict[str, Any] = {"cause": "process_failure", "provider": list(failed)}
        yield self._line("provider_failing", at=group.now, group=group.id, seq=group.seq, args=args)
        yield from self._ballot(group, failed=failed)
        yield from self._own(group)
        group.fence += 1
        args = {"cause": "failed", "fence": group.fence, "providers": [list(failed)]}
        yield self._line("provider_left", at=group.now, group=group.id, seq=group.seq, args=args)
        again = [*failed[:2], failed[2] + 1]
        group.providers[place] = again
        yield from self._own(group)
        group.fence += 1
        args = {"fence": group.fence, "names": [failed[0]], "providers": [again]}
        yield self._line("provider_joined", at=group.now, group=group.id, seq=group.seq, args=args)

    def _ballot(self, group: Group, failed: Provider | None = None) -> Iterator[HistoryEvent]:
        yield from self._own(group)
        ballot, began = group.seq, 1_000.0 + group.now + self.number * LATER_S
        group.late += 1
        late = group.providers[group.late % len(group.providers)] if group.late % 4 == 0 and failed is None else None
        rejects = group.late % 7 == 0 and group.providers[0] not in (failed, late)
        subject: dict[str, Any] = {"joining": [], "kind": "state", "leaving": [],
                                   "proposals": [[self.shape.names[0], FIRST_INCARNATION, ballot]]}  # fmt: skip
        electorate = [list(one) for one in group.providers]
        phase = {"at": began, "ballot": ballot, "electorate": electorate, "phase": 1, "phases": 0,
                 "time_limit": TIME_LIMIT_S, **subject}  # fmt: skip
        yield self._line("phase", at=group.now, group=group.id, seq=ballot, args=phase)
        votes: list[list[Any]] = []
        for one in group.providers:
            if one is failed or one is late:
                votes.append([list(one), "approve", "failed" if one is failed else "late"])
                continue
            vote = "reject" if rejects and one is group.providers[0] else "approve"
            votes.append([list(one), vote, ""])
            if one[0] == self.node:
                args = {"ballot": ballot, "phase": 1, "provider": list(one), "vote": vote}
                yield self._line("voted", at=group.now + 0.005, group=group.id, args=args)
        took = TIME_LIMIT_S + 0.001 if late is not None else 0.01 + 0.002 * (group.late % 5)
        group.now += took
        yield from self._own(group)
        outcome = {"approved": not rejects, "at": began + took, "ballot": ballot, "left_out": [], "phases": 1,
                   "reason": "rejected" if rejects else "approved", "votes": votes, **subject}  # fmt: skip
        yield self._line("outcome", at=group.now, group=group.id, seq=group.seq, args=outcome)

    def _barrier(self, group: Group) -> Iterator[HistoryEvent]:
        group.rounds += 1
        for one in group.providers:
            if one[0] == self.node:
                args: dict[str, Any] = {"barrier": "step", "on_failure": "break", "parties": 0, "provider": list(one),
                                        "resets": False, "round": group.rounds}  # fmt: skip
                yield self._line("barrier_entered", at=group.now, group=group.id, seq=group.seq, args=args)
        group.now += 0.004 + 0.001 * (group.rounds % 9)
        yield from self._own(group)
        args = {"arrived": [list(one) for one in group.providers], "barrier": "step", "broken_by": "",
                "end": "released", "missing": [], "parties": 0, "round": group.rounds, "who": []}  # fmt: skip
        yield self._line("barrier_over", at=group.now, group=group.id, seq=group.seq, args=args)


def _crc(group: int, seq: int) -> int:
    return (seq * 2_654_435_761 + group * 97) & 0xFFFF_FFFF


def _digest(group: int, base: int, seq: int) -> str:
    return f"{(seq * ORDER + base * 31 + group) & _BITS:016x}"
