"""Taking over a stream: promise → choose → open.

A led epoch 7 and died. B has the authority for epoch 8 (the domain stream: enough voters support it; a
group: the directory granted it). B may not order anything before it has everything that may have been
stable:

1. B promises 8 itself, then asks the servers for their promise. Each answer reports a log: (accepted epoch,
   last entry). With enough promises no entry can become stable in epoch 7 any more, and at least one of the
   reports has everything that did.
2. B takes the report with the largest (accepted, last). The accepted epoch comes first: a longer log of an
   older epoch may end in entries that were replaced. It fetches what its own log lacks.
3. B switches to that log (accepted = 8, on disk), and only then tells the servers to *open* it.
4. When enough servers have opened, the whole of the opened log is stable and B goes on numbering after it.

A server that comes late is asked for its promise and told to open at any time later; that is how one that
was away gets back in.
"""

from __future__ import annotations

import enum
import math
from typing import Any, Protocol
from zlib import crc32

from ..parameters import Timers
from ..peer_messages import Claim, Open, Opened, Promised, Repair
from ..views import View, Views
from .builder import Builder
from .server import Server


class Phase(enum.Enum):
    """How far a recovery is."""

    ASKING = "asking"
    FETCHING = "fetching"
    OPENING = "opening"
    OPEN = "open"
    ABANDONED = "abandoned"


class Authority(Protocol):
    """By whose word a leader recovers a stream, and what is enough: all that differs between domain and groups."""

    def claim(self, *, is_chosen: bool) -> Claim:
        """What is said to those whose promise we want; ``is_chosen``: we have the chosen log by now."""

    def asked(self) -> tuple[str, ...]:
        """Whose promises and reports are wanted."""

    def counting(self, reports: dict[str, Promised]) -> list[str] | None:
        """Whose reports count, if they are enough to choose; else None."""

    def opens(self) -> tuple[str, ...]:
        """Who is told to open the log."""

    def is_open(self, opened_by: dict[str, int]) -> bool:
        """Whether enough have."""

    def view(self) -> View | None:
        """Who is to hold the stream, if the servers do not know that anyway."""

    def genesis(self) -> tuple[bytes, ...]:
        """The first entries of a stream that has none."""

    def won(self) -> None:
        """Enough have promised."""

    def opened(self) -> None:
        """Enough have opened."""


class Recovery:
    """One leader's way from the authority for an epoch to an open stream."""

    def __init__(self, server: Server, epoch: int, authority: Authority, timers: Timers) -> None:
        turn = server.turn
        self.turn = turn
        self.server = server
        self.epoch = epoch
        self.authority = authority
        self.phase = Phase.ASKING
        self.reports: dict[str, Promised] = {}
        self.incarnations: dict[str, int] = {}  # in which each of the others promised
        self.holders: dict[str, str] = {}  # name -> state id as the chosen log has it; empty without disks
        self.opened_by: dict[str, int] = {}
        self.views: Views = ()  # of the chosen log, if those who open it want to know
        self.tail_may_be_lost = False  # whether that log lacks what was stable, for all we know
        self._about_choice: dict[str, Any] = {}  # what else the history says of it
        self.claimed_at = math.inf
        self.progress_at = turn.now
        self._timers = timers
        self._builder: Builder | None = None
        self._open: Open | None = None
        self._repeat_at = math.inf
        self._wait = timers.repeat_first

    def begin(self) -> None:
        """Promise the epoch ourselves; ask the others once that is safe."""
        self.server.promise(self.epoch)

        def safe() -> None:
            if self.server.promised == self.epoch and self.phase is Phase.ASKING:
                self.claimed_at = self.turn.now
                self.reports[self.turn.node] = self.server.report()
                self._ask_all()
                self._count()

        self.server.carrier.persist(self.server.promise_record(), done=safe)

    def _ask_all(self) -> None:
        self._repeat_at = self.turn.now + self._wait
        self._wait = min(2 * self._wait, self._timers.repeat_max)
        claim, opens = self.authority.claim(is_chosen=self._open is not None), self.authority.opens()
        for name in self.authority.asked():
            if name not in self.reports:
                self.server.carrier.send(name, claim)
            elif name in opens and name not in self.opened_by:
                self._tell_open(name)

    def _tell_open(self, name: str) -> None:
        """Only once our own log of the epoch is on disk: who opens fetches from it."""
        if self._open is not None and self.turn.node in self.opened_by and name != self.turn.node:
            self.server.carrier.vouch(name, self._open)

    def on_promised(self, sender: str, incarnation: int, report: Promised) -> None:
        """A server promises and reports its log."""
        if report.epoch != self.epoch or sender not in self.authority.asked() or self.phase is Phase.ABANDONED:
            return
        if self.claimed_at == math.inf:
            return  # nobody was asked yet
        new = sender not in self.reports
        self.reports[sender] = report
        self.incarnations[sender] = incarnation
        if self.phase is Phase.ASKING:
            self._count()
        elif new and sender in self.authority.opens():
            self._tell_open(sender)
            self._hurry()

    def recount(self) -> None:
        """Those who are missing may no longer be up: what we have may be enough by now."""
        if self.phase is Phase.ASKING and self.claimed_at < math.inf:
            self._count()

    def _count(self) -> None:
        counting = self.authority.counting(self.reports)
        if counting is not None:
            self.reports = {name: self.reports[name] for name in counting}
            self.authority.won()
            self._choose()

    def _choose(self) -> None:
        me, server = self.turn.node, self.server
        best = self._best()
        report = self.reports[best]
        self.holders = dict(report.voters)
        self.phase = Phase.FETCHING
        self.progress_at = self.turn.now
        if report.accepted == 0:
            builder = server.new_builder(me, 0, server.log.last, server.log.last)
            builder.entries.extend(self.authority.genesis())
        else:
            keep = server.common_upto(report.accepted, report.last)
            builder = server.new_builder(best, report.accepted, keep, report.last)
        self._builder = builder
        if best != me:
            self.turn.mark("leader-fetches-log")
        self._fetch_on(report.accepted)

    def _best(self) -> str:
        """Whose log to take."""
        return best_report(self.turn.node, self.reports)

    def _fetch_on(self, accepted: int) -> None:
        builder = self._builder
        if builder is None:
            return
        if self.server.is_complete(builder):
            self._install(builder, accepted)
            return
        ask = builder.next_ask(self.turn.now)
        if ask is not None:
            self.server.carrier.send(builder.source, ask)

    def on_repair(self, sender: str, repair: Repair) -> None:
        """A piece of the chosen log."""
        if self.phase is Phase.FETCHING and self._builder is not None and self._builder.take(sender, repair):
            self.progress_at = self.turn.now
            self._fetch_on(self._builder.source_accepted)

    def on_data(self) -> None:
        """A payload has come that the chosen log may have lacked."""
        if self.phase is Phase.FETCHING and self._builder is not None:
            self.progress_at = self.turn.now
            self._fetch_on(self._builder.source_accepted)

    def _install(self, builder: Builder, accepted: int) -> None:
        self._builder = None
        server, turn = self.server, self.turn
        known = min(server.stable, server.delivered)  # of what comes after that nothing is in the history yet
        stable = min(max(report.stable for report in self.reports.values()), builder.reached)
        server.replica.leader = turn.node
        view = self.authority.view()
        self._open = Open(
            server.stream, self.epoch, accepted, builder.reached, stable, server.log.checkpoint_seq, view, self.views,
            self.tail_may_be_lost,
        )  # fmt: skip
        server.replica.tail_may_be_lost = self.tail_may_be_lost
        server.install(self.epoch, builder, stable)
        first = max(known, server.log.base)
        tail = [[seq, crc32(server.log.entry(seq))] for seq in range(first + 1, server.log.last + 1)]
        turn.journal("recovered", group=server.stream, epoch=self.epoch, seq=server.log.last, last=server.log.last,
                     base=first, tail=tail, **self._about_choice)  # fmt: skip
        self.phase = Phase.OPENING

    def on_opened(self, sender: str, incarnation: int, message: Opened) -> None:
        """A server has the log; our own server says so too, once it is safe."""
        if message.epoch != self.epoch or sender not in self.reports or self._open is None:
            return
        if sender != self.turn.node and self.incarnations.get(sender) != incarnation:
            return
        new = sender not in self.opened_by
        self.opened_by[sender] = message.last
        if new and sender == self.turn.node:
            for name in self.authority.opens():
                if name in self.reports:
                    self._tell_open(name)
            self._hurry()
        if self.phase is Phase.OPENING and self.turn.node in self.opened_by:
            self.progress_at = self.turn.now
            if self.authority.is_open(self.opened_by):
                self.phase = Phase.OPEN
                self.authority.opened()

    def abandon(self) -> None:
        """Somebody else was quicker, or it took too long: nothing more is asked or counted."""
        self.phase = Phase.ABANDONED
        self._builder, self._open = None, None
        self._repeat_at = math.inf

    def forget(self, name: str) -> None:
        """A server came back as another incarnation: what it said before no longer counts for it."""
        self.reports.pop(name, None)
        self.opened_by.pop(name, None)
        self._hurry()

    def choose_anew(self) -> None:
        """The reporter of the chosen log is lost before we have it: its promise no longer counts."""
        if self.phase is not Phase.FETCHING or self._builder is None:
            return
        self.turn.mark("chosen-log-lost")
        self.reports.pop(self._builder.source, None)
        self._builder = None
        self.phase = Phase.ASKING
        self.progress_at = self.turn.now
        self._count()
        self._hurry()

    def invite(self) -> None:
        """Somebody who could not promise before may do so now: ask again soon."""
        self._hurry()

    def _hurry(self) -> None:
        if self.claimed_at == math.inf:
            return  # our own promise is not on disk yet: nothing may be said
        self._wait = self._timers.repeat_first
        self._repeat_at = min(self._repeat_at, self.turn.now + self._wait)

    @property
    def deadline(self) -> float:
        """When something is to be repeated."""
        at = self._repeat_at
        if self._builder is not None:
            at = min(at, self._builder.ask_at)
        return at

    def tick(self) -> None:
        """Repeat what has not been answered."""
        if self._builder is not None and self.phase is Phase.FETCHING:
            self._fetch_on(self._builder.source_accepted)
        if self.turn.now >= self._repeat_at:
            if all(name in self.opened_by for name in self.authority.opens()):
                self._repeat_at = math.inf
            else:
                self._ask_all()


def counting_reports(me: str, reports: dict[str, Promised]) -> list[str]:
    """Whose promises count: not that of a disk which, as the best log tells, was replaced by another.

    A disk that was put back has forgotten what its successor promised and held. The log that has the replacement
    is always better than one that ends before it.
    """
    holders = dict(reports[best_report(me, reports)].voters)
    return [name for name, report in reports.items() if not holders or holders.get(name) == report.state_id]


def best_report(me: str, reports: dict[str, Promised]) -> str:
    """Who has everything that may be stable: the largest (accepted, last); of equals we, then the smaller name."""
    names = [me, *sorted(name for name in reports if name != me)]
    return max(names, key=lambda name: (reports[name].accepted, reports[name].last))
