"""Taking over a fast group: everybody who carries it promises and reports, not only those who hold it.

A led epoch 7 and died; B is granted epoch 8. As in any group, enough servers of the view before must promise, so that B
learns what is stable. That tells B also who carries the group: a member is in the stream before it is told so. All of
them that are up have to promise and report what they delivered; only then B chooses, and takes the longest log, so that
nobody who is alive is contradicted.

A log that was opened for an epoch that never became active is nothing but a copy of the log of the view before: in a
fast group it does not outrank a longer one of that view itself.

C may be up and out of B's reach. B waits for it as long as it takes to declare a silent node down, ``lease`` +
``margin``, and then goes on without it. C, if it has delivered more, will find itself contradicted, and has lost the
group: the group does not wait for ever for one link.

A receiver may have begun later than where B's own copy ends. What lies before is fetched from another that has it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..parameters import Timers
from ..peer_messages import Claim, Promised
from ..stream.builder import Builder
from ..stream.recovery import Phase
from ..stream.server import Server
from ..views import NodeId, View
from ..views import Server as ServerId
from .granted import Granted
from .inheritance import GroupRecovery


class FastGranted(Granted):
    """What the recovery of a fast group rests on: a grant, and the word of all who carry it."""

    def __init__(
        self, stream: int, me: str, view: View, base: View, *, is_up: Callable[[str], bool],
        opened: Callable[[], None], members: tuple[NodeId, ...], is_member_up: Callable[[NodeId], bool],
        is_patient: Callable[[], bool], has_led: bool = False, numbered: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(stream, me, view, base, is_up=is_up, opened=opened, has_led=has_led, numbered=numbered)
        self.members = dict.fromkeys(members)
        self._is_member_up = is_member_up
        self._is_patient = is_patient

    def note(self, members: tuple[NodeId, ...]) -> tuple[str, ...]:
        """These carry the group, as somebody's log tells; returns whom we did not know of."""
        new = [node for node in members if node not in self.members]
        self.members.update(dict.fromkeys(new))
        return tuple(name for name, _ in new if name != self._me)

    def recognises(self, server: ServerId) -> bool:
        """Whether this very node may promise; notes who it is."""
        if server in self.members:
            self._servers[server[0]] = server
            return True
        return super().recognises(server)

    def claim(self, *, is_chosen: bool) -> Claim:
        """What is said to everybody who carries the group."""
        return Claim(self._stream, self.granted.epoch, view=self.granted, from_all=True)

    def asked(self) -> tuple[str, ...]:
        """The servers of both views, and all members."""
        return tuple(dict.fromkeys((*self._asked, *(name for name, _ in self.members))))

    def counting(self, reports: dict[str, Promised]) -> list[str] | None:
        """All reports, if enough servers are among them and nobody else who is up is missing."""
        enough = super().counting(reports)
        if enough is None or (self._is_patient() and self.missing(reports)):
            return None
        return enough

    def missing(self, reports: dict[str, Promised]) -> list[NodeId]:
        """Who carries the group, is up, and has not reported."""
        return [
            node
            for node in self.members
            if node[0] != self._me
            and (node[0] not in reports or self._servers.get(node[0]) != node)
            and self._is_member_up(node)
        ]


class FastRecovery(GroupRecovery):
    """One leader's way to an open stream that contradicts no survivor."""

    def __init__(
        self, server: Server, epoch: int, granted: FastGranted, timers: Timers, *,
        delivered: Callable[[], tuple[tuple[int, int], int]], contradicted: Callable[[], None],
        stuck: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__(server, epoch, granted, timers, delivered=delivered, contradicted=contradicted, stuck=stuck)
        self.granted = granted
        self._chosen = ""

    @property
    def is_patient(self) -> bool:
        """Whether those who do not answer are still waited for."""
        return self.turn.now < self.claimed_at + self._timers.lease + self._timers.margin

    def on_promised(self, sender: str, incarnation: int, report: Promised) -> None:
        """A member promises, and tells whom it knows as members."""
        new = self.granted.note(report.members) if report.epoch == self.epoch else ()
        super().on_promised(sender, incarnation, report)
        if self.phase is Phase.ASKING:
            for name in new:
                self.server.carrier.send(name, self.granted.claim(is_chosen=False))

    def _best(self) -> str:
        """The longest log of the view before; of equals ours, then the smaller name."""
        base, reports = self.granted.base.epoch, self.reports
        names = [self.turn.node, *sorted(name for name in reports if name != self.turn.node)]
        return max(names, key=lambda name: (min(reports[name].accepted, base), reports[name].last))

    def _choose(self) -> None:
        self._chosen = self._best()
        left_out = self.granted.missing(self.reports)
        if left_out:
            self.turn.mark("fast-left-out")
        self._about_choice = {"left_out": [list(node) for node in left_out]}
        super()._choose()

    def _fetch_on(self, accepted: int) -> None:
        if self._builder is not None:
            self._builder.source = self._source_of(self._builder, accepted)
        super()._fetch_on(accepted)

    def _source_of(self, builder: Builder, accepted: int) -> str:
        """Who has the next entry: the reporter of the chosen log, unless it began later."""
        if self.reports[self._chosen].base > builder.reached:
            for name, report in sorted(self.reports.items()):
                if report.accepted == accepted and report.base <= builder.reached < report.last:
                    return name
        return self._chosen

    def tick(self) -> None:
        """Repeat what has not been answered; go on without those who do not answer."""
        super().tick()
        self.recount()
