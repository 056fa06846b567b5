"""The authority of a group's new leader: a grant of the directory.

The directory granted epoch e with *base* P, the view that was active then, with servers S and quorum k. Whatever was
stable in P is held by k of S. So |S| - k + 1 promises of servers *of P* are enough: together with any k of S they have
one in common. A report of a log that was accepted after P is enough, too: whoever opened that log had asked so many
before. Promises of others count for nothing, however many there are. And somebody must have the log of P, whoever
promised: if nobody has, disks are not what they were, and the group waits for one that is.

If the one that led P is to lead again, the same process, its log has everything that was numbered in P, stable or not,
and it numbers nothing more in it: so no entry can be stable that it has not, whoever promises. Then k promises are
enough, if somebody among them, it or another, has the payloads of all that, too. That k is not for the sake of the
entries: who hears fewer than k gets nothing stable, and should not take the group with it.

A *forced* grant comes when the quorum of P is lost for ever. Then everybody who is up and may have something reports,
and the best of it is what is left.
"""

from __future__ import annotations

from collections.abc import Callable

from ..invariants import invariant
from ..peer_messages import Claim, Promised
from ..views import Server, View


class Granted:
    """What one recovery of a group's stream rests on."""

    def __init__(
        self, stream: int, me: str, view: View, base: View, *, is_up: Callable[[str], bool],
        opened: Callable[[], None], has_led: bool = False, numbered: int = 0,
    ) -> None:  # fmt: skip
        self._stream = stream
        self._me = me
        self.granted = view
        self.base = base
        self._is_up = is_up
        self._opened = opened
        self._has_led = has_led  # this process has led P
        self._numbered = numbered  # and this is the last number that it gave
        self._asked = tuple(dict.fromkeys((*base.names, *view.names)))
        self._servers: dict[str, Server] = {}  # who is behind a name: in P it may have been another incarnation

    def recognises(self, server: Server) -> bool:
        """Whether this very server may promise; notes who it is."""
        if server in self.base.servers or server in self.granted.servers:
            self._servers[server[0]] = server
            return True
        return False

    def claim(self, *, is_chosen: bool) -> Claim:
        """The epoch is all there is to say: only the directory gives them.

        In a forced grant everybody is waited for who is up and may have something; who has nothing any more says so.
        """
        return Claim(self._stream, self.granted.epoch, view=self.granted, from_all=self.granted.forced)

    def asked(self) -> tuple[str, ...]:
        """The servers of P and of the new view."""
        return self._asked

    def counting(self, reports: dict[str, Promised]) -> list[str] | None:
        """All reports, if enough of them are of servers of P, or one is of a log accepted after P."""
        if self._me not in reports:
            return None
        if self.granted.forced:
            missing = [name for name in self._asked if name not in reports and self._is_up(name)]
            return None if missing else list(reports)
        of_base = sum(1 for name in reports if self._servers.get(name) in self.base.servers)
        newest = max(report.accepted for report in reports.values())
        needed = self._promises_needed(reports)
        is_enough = of_base >= needed and (newest == self.base.epoch or self._was_never_written)
        return list(reports) if is_enough or newest > self.base.epoch else None

    def _promises_needed(self, reports: dict[str, Promised]) -> int:
        """Fewer, if we led P and somebody reports all that we numbered, with its payloads: as a rule we do."""
        of_base = (report.last for report in reports.values() if report.accepted == self.base.epoch)
        is_all_there = self._has_led and max(of_base, default=-1) >= self._numbered
        return self.base.promises_its_leader_needs if is_all_there else self.base.promises_needed

    @property
    def _was_never_written(self) -> bool:
        """Whether P may be in no log at all: a disk formed the group and stopped before it had written anything.

        That is so only of the first view of a durable group, whose epoch is the group's id.
        """
        return self.base.epoch == self._stream and isinstance(self.base.servers[0][1], str)

    def opens(self) -> tuple[str, ...]:
        """The servers of the new view."""
        return self.granted.names

    def is_open(self, opened_by: dict[str, int]) -> bool:
        """k of the new view have the log, we among them."""
        holding = sum(1 for name in opened_by if self._servers.get(name) in self.granted.servers)
        return self._me in opened_by and holding >= self.granted.k

    def view(self) -> View | None:
        """The servers learn from Open who they are."""
        return self.granted

    def genesis(self) -> tuple[bytes, ...]:
        """Nobody who reports has the stream: all who had it are lost for ever, or no disk ever had anything of it."""
        is_empty = self.granted.forced or self._was_never_written
        invariant(is_empty, f"nobody of {self._asked} has the stream of epoch {self.base.epoch}")
        return ()

    def won(self) -> None:
        """Enough have promised; nobody is told."""

    def opened(self) -> None:
        """k have the log: now the directory has to confirm."""
        self._opened()
