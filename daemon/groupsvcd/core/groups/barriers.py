"""One node's part in the barriers of a group: who waits here, and while the node leads, who waits anywhere.

A leads, and a process of B comes to a barrier. B keeps it in its *waiting room* and tells A, who notes it in its
*gathering*; when the round is over A orders a ruling, and when that is applied, at B as everywhere, B's process is told
how it ended. What the stream has to say about all this is in ``rounds``; who is asked and answered, in ``sessions``.

What a process brings goes along with the word that it has come, if it is little. Else B submits it first, as an entry,
and its process has come when B has applied that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from groupsvc.wire.notices import Round

from ..peer_messages import Waits
from ..views import NodeId
from . import commands as cmd
from .gathering import Gathering
from .papers import GivesUp, Waiter
from .round_over import CARRIED_BYTES_MAX, RoundOver
from .waiting_room import Party, WaitingRoom

if TYPE_CHECKING:
    from .local_group import LocalGroup
    from .process_groups import ProcessGroups


WAITING_MAX = 10_000
"""Parties of one node at the barriers of one group."""


class Barriers:
    """The barriers of one group, on one node."""

    def __init__(self, groups: ProcessGroups, local: LocalGroup, submit: Callable[[bytes], None]) -> None:
        self._groups, self._local, self._submit = groups, local, submit
        self._room = WaitingRoom(groups.timers)
        self._gathering: Gathering | None = None
        self._bringing: dict[tuple[str, int], tuple[Waiter, Party]] = {}  # whose payloads are on their way
        self._last_brought = 0
        self._ruled: set[str] = set()  # where a ruling was applied, whether it fitted or not, since we looked
        self._renumbered = 0  # the last that we have seen

    # --- For sessions ---

    @property
    def is_full(self) -> bool:
        """Whether too many wait here already: in a group that stands still even those that have given up stay."""
        return len(self._bringing) + len(self._room) >= WAITING_MAX

    def has(self, barrier: str, provider: int) -> bool:
        """Whether this provider waits there already."""
        return (barrier, provider) in self._bringing or self._room.has(barrier, provider)

    def wait(self, waiter: Waiter, party: Party) -> None:
        """A provider of this node comes to a barrier; to which round, and since when, is filled in here.

        If it brings much, that goes first, and the provider has come when it is there.
        """
        if len(waiter.payload) <= CARRIED_BYTES_MAX:
            self._enter(waiter, party)
            return
        self._last_brought += 1
        self._bringing[waiter.barrier, waiter.provider] = (
            replace(waiter, payload=b"", brought=self._last_brought), party,
        )  # fmt: skip
        self._submit(cmd.encode(cmd.Bring(waiter.provider, waiter.barrier, self._last_brought, waiter.payload)))

    def _enter(self, waiter: Waiter, party: Party) -> None:
        group = self._local.group
        waiter = replace(waiter, round=group.rounds.next_round(waiter.barrier), since=group.seq)
        self._journal_entry(waiter)
        self._room.enter(waiter, party)
        self._send()

    def _was_brought(self, barrier: str, provider: int, number: int) -> None:
        bringing = self._bringing.get((barrier, provider))
        if bringing is None or bringing[0].brought != number:
            self._take_back(barrier, provider, number)  # nobody waits for that any more
            return
        waiter, party = self._bringing.pop((barrier, provider))
        group = self._local.group
        broken = group.rounds.broken(barrier)
        if broken is not None:
            party.ended(RoundOver(group.seq, broken))
        elif not group.rounds.has_brought((*self._groups.me, provider), barrier, number):
            party.in_vain("full")
        else:
            self._enter(waiter, party)

    def _take_back(self, barrier: str, provider: int, number: int) -> None:
        """What was brought is of no use to anybody: it makes room for others."""
        if number and self._local.group.rounds.has_brought((*self._groups.me, provider), barrier, number):
            self._submit(cmd.encode(cmd.Bring(provider, barrier, number, b"")))

    def give_up(self, barrier: str, provider: int, why: GivesUp, request: int) -> bool:
        """Whoever came there with this request does not wait any longer; whether it did."""
        bringing = self._bringing.get((barrier, provider))
        if bringing is not None and bringing[1].request == request:
            del self._bringing[barrier, provider]
            bringing[1].in_vain("late")
            return True
        is_waiting = self._room.give_up(barrier, provider, why, request)
        self._send()
        return is_waiting

    def line_up(self, barrier: str, provider: int, party: Party) -> bool:
        """This provider has given up there and comes again, before the end of that is known; False if it has not."""
        return self._room.line_up(barrier, provider, party)

    def drop(self, provider: int) -> None:
        """It is no provider any more, or its failure was ordered: no later round counts it."""
        for key in [key for key in self._bringing if key[1] == provider]:
            self._bringing.pop(key)[1].in_vain("out")
        self._room.drop(provider)

    # --- What comes ---

    def on_waits(self, node: NodeId, waiters: Iterable[Waiter]) -> None:
        """Providers of another node wait, or of this one by another way."""
        if self._gathering is not None:
            self._gathering.take(node, waiters, self._groups.now)
            self._groups.look_at(self._local)

    def applied(self) -> None:
        """An entry was applied. Who waits here is told now: with the next one it may be no provider any more."""
        rounds, turn = self._local.group.rounds, self._groups.turn
        brought, rounds.brought_now = rounds.brought_now, []
        for provider, barrier, number in brought:
            if provider[:2] == self._groups.me:
                self._was_brought(barrier, provider[2], number)
        ruled, rounds.ruled = rounds.ruled, set()
        ended, rounds.ended = rounds.ended, []
        self._ruled |= ruled
        if ruled and not ended and self._gathering is not None:
            turn.mark("barrier-ruling-void")
        for seq, round_ in ended:
            if self._gathering is not None:
                self._groups.census.round_ended(round_.end)
            self._journal_end(seq, round_)
            free, unneeded = self._room.over(seq, round_, self._groups.me, rounds)
            for waiter in unneeded:
                self._take_back(waiter.barrier, waiter.provider, waiter.brought)
            for party in free:
                party.may_come()  # it waits since this entry, not since the last that is delivered with it
            if self._room.waits_at(round_.barrier):
                turn.mark("barrier-passed-over")

    def look(self) -> None:
        """Entries were applied, or this node leads, or does not any more."""
        rounds = self._local.group.rounds
        if rounds.renumbered != self._renumbered:
            self._renumbered = rounds.renumbered
            self._room.renumber(rounds)
        ruled, self._ruled = self._ruled, set()
        if self._gathering is not None:
            self._gathering.look(ruled, self._groups.now)
        self._send()

    def lead(self, *, leads: bool) -> None:
        """Whether this node presides."""
        if leads == (self._gathering is not None):
            return
        self._gathering = None
        if leads:
            self._gathering = Gathering(self._local.group, lambda body: self._groups.rule(self._local, body))
            self._room.hurry()
            self._send()

    def start_again(self) -> None:
        """Another copy of the group takes the place of the one that was here."""
        self._gathering = None
        self._ruled, self._renumbered = set(), 0

    def leader_changed(self) -> None:
        """Somebody else leads, perhaps."""
        self._room.hurry()
        self._send()

    def lose(self, reason: str) -> None:
        """This node carries the group no longer."""
        self._gathering = None
        bringing, self._bringing = self._bringing, {}
        for _, party in bringing.values():
            party.lost(reason)
        self._room.lose(reason)

    def _send(self) -> None:
        self._room.send(self._groups.turn.now, self._pass_on)
        self._groups.look_at(self._local)

    def _pass_on(self, waiters: tuple[Waiter, ...]) -> None:
        if self._gathering is not None:
            self._gathering.take(self._groups.me, waiters, self._groups.turn.now)
        else:
            self._groups.send_to_leader(self._local, Waits(self._local.id, waiters))

    # --- For who audits ---

    def _journal_entry(self, waiter: Waiter) -> None:
        if self._groups.turn.is_audited:
            self._groups.turn.audit(
                "barrier_entered", group=self._local.id, seq=waiter.since, barrier=waiter.barrier, round=waiter.round,
                provider=[*self._groups.me, waiter.provider], parties=waiter.parties, on_failure=waiter.on_failure,
                resets=waiter.resets,
            )  # fmt: skip

    def _journal_end(self, seq: int, round_: Round) -> None:
        if self._groups.turn.is_audited and self._local.is_in:
            self._groups.turn.audit(
                "barrier_over", group=self._local.id, seq=seq, barrier=round_.barrier, round=round_.number,
                end=round_.end, parties=round_.parties, arrived=[list(one) for one, _ in round_.arrived],
                broken_by=round_.broken_by, who=[list(one) for one in round_.who],
                missing=[list(one) for one, _ in round_.missing],
            )  # fmt: skip

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When somebody is to be told again, or a ruling is taken for lost."""
        repeat_at = self._room.repeat_at
        return repeat_at if self._gathering is None else min(repeat_at, self._gathering.deadline)

    def tick(self) -> None:
        """Time has passed."""
        if self._groups.now >= self.deadline:
            self.look()
