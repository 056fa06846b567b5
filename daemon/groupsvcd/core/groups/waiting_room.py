"""The processes of one node that wait at barriers of a group, until their rounds have ended.

B's daemon tells the leader who has come, and repeats it until the end of the round is delivered here. Which round that
is, B decides: the next one as far as B has applied the stream. If that ends without B's process, because the barrier
takes only so many and others came first, B's process has come to the one after it: B says so, and nobody else can.

A process whose time is up says that it gives up, and then the round breaks for all; unless its end came first. If that
was the end of a round that did not count it, it has not come to the next: it waited in vain, and knows it.

Its program may come again before that is known: then it waits behind itself, and comes with the entry that is the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, Protocol

import attrs
from msgspec.structs import replace

from groupsvc.wire.notices import Round

from ..parameters import Timers
from ..views import NodeId
from .papers import GivesUp, Waiter
from .round_over import RoundOver
from .rounds import Rounds

WAITERS_PER_MESSAGE = 200
"""With what each brings, so many fit into a frame of the usual size."""

InVain = Literal["late", "out", "full"]
"""Its time was up; it is no provider any more; there is no room for what it brings."""


class Party(Protocol):
    """Whoever waits, by a request of its own. It is told one of these, once."""

    @property
    def request(self) -> int:
        """The number of it."""

    def ended(self, over: RoundOver) -> None:
        """How the round ended, and by which entry."""

    def in_vain(self, why: InVain) -> None:
        """It certainly counted for no round."""

    def may_come(self) -> None:
        """Whoever it waited behind has its end; this may be told before one of the others."""

    def lost(self, reason: str) -> None:
        """What became of its round is not known here."""


@attrs.define
class _Waiting:
    waiter: Waiter
    party: Party
    behind: list[Party] = attrs.field(factory=list)  # the same provider, which wants to come again


class WaitingRoom:
    """Those of one group on one node."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: dict[tuple[str, int], _Waiting] = {}  # by barrier and provider
        self._unsent: dict[tuple[str, int], None] = {}
        self.repeat_at = math.inf
        self._wait = timers.repeat_first

    def has(self, barrier: str, provider: int) -> bool:
        """Whether it waits there already."""
        return (barrier, provider) in self._waiting

    def waits_at(self, barrier: str) -> bool:
        """Whether anybody does."""
        return any(key[0] == barrier for key in self._waiting)

    def enter(self, waiter: Waiter, party: Party) -> None:
        """A provider of this node comes to the next round."""
        key = waiter.barrier, waiter.provider
        self._waiting[key] = _Waiting(waiter, party)
        self._unsent[key] = None

    def line_up(self, barrier: str, provider: int, party: Party) -> bool:
        """Wait behind a party of this provider that has given up; False if there is none."""
        waiting = self._waiting.get((barrier, provider))
        if waiting is None or not waiting.waiter.gives_up:
            return False
        waiting.behind.append(party)
        return True

    def give_up(self, barrier: str, provider: int, why: GivesUp, request: int) -> bool:
        """Whoever came there with this request does not wait any longer; whether it did."""
        key = barrier, provider
        waiting = self._waiting.get(key)
        if waiting is None:
            return False
        behind = [one for one in waiting.behind if one.request == request]
        if behind:
            waiting.behind.remove(behind[-1])
            behind[-1].in_vain("late")
            return True
        if waiting.party.request != request:
            return False
        if not waiting.waiter.gives_up:
            waiting.waiter = replace(waiting.waiter, gives_up=why)
            self._unsent[key] = None
        return True

    def drop(self, provider: int) -> None:
        """This provider of the node is none any more: no round that ends from now on counts it."""
        for key in [key for key in self._waiting if key[1] == provider]:
            self._unsent.pop(key, None)
            waiting = self._waiting.pop(key)
            for party in (waiting.party, *waiting.behind):
                party.in_vain("out")

    def over(self, seq: int, round_: Round, me: NodeId, rounds: Rounds) -> tuple[list[Party], list[Waiter]]:
        """A round has ended. Who may come now, because it waited behind another; and who has come in vain."""
        counted = {provider for provider, _ in round_.arrived}
        over = RoundOver(seq, round_)
        free: list[Party] = []
        in_vain: list[Waiter] = []
        for key, waiting in [item for item in self._waiting.items() if item[0][0] == round_.barrier]:
            waiter = waiting.waiter
            if waiter.round > round_.number:
                continue  # it has come to a later one
            passed = round_.end == "released" and (*me, waiter.provider) not in counted
            if passed and not waiter.gives_up:
                waiting.waiter = replace(waiter, round=rounds.next_round(round_.barrier), since=seq)
                self._unsent[key] = None
                continue
            del self._waiting[key]
            self._unsent.pop(key, None)
            if passed:
                in_vain.append(waiter)
                waiting.party.in_vain("late")
            else:
                waiting.party.ended(over)
            free += waiting.behind
        return free, in_vain

    def renumber(self, rounds: Rounds) -> None:
        """Rounds that are open have got other numbers: whoever has come to one has come to that under its new one."""
        for key, waiting in self._waiting.items():
            number = rounds.next_round(key[0])
            if waiting.waiter.round < number:
                waiting.waiter = replace(waiting.waiter, round=number)
                self._unsent[key] = None

    def __len__(self) -> int:
        return len(self._waiting)

    def hurry(self) -> None:
        """Somebody else leads, perhaps: it is told of all of them."""
        self._unsent = dict.fromkeys(self._waiting)
        self._wait = self._timers.repeat_first

    def send(self, now: float, send: Callable[[tuple[Waiter, ...]], None]) -> None:
        """Tell of those that have just come; and of all of them, now and then."""
        if not self._waiting:
            self.repeat_at = math.inf
            return
        if now >= self.repeat_at:
            self._unsent = dict.fromkeys(self._waiting)
            self._wait = min(2 * self._wait, self._timers.repeat_max)
        elif self._unsent:
            self._wait = self._timers.repeat_first
        if self._unsent:
            self.repeat_at = now + self._wait
            unsent, self._unsent = self._unsent, {}
            waiters = [self._waiting[key].waiter for key in unsent]
            for first in range(0, len(waiters), WAITERS_PER_MESSAGE):
                send(tuple(waiters[first : first + WAITERS_PER_MESSAGE]))

    def lose(self, reason: str) -> None:
        """Nothing more comes: what became of their rounds is not known here."""
        waiting, self._waiting, self._unsent = self._waiting, {}, {}
        self.repeat_at = math.inf
        for one in waiting.values():
            for party in (one.party, *one.behind):
                party.lost(reason)
