"""One node's part in the barriers of a group: who waits here, and while the node leads, who waits anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..peer_messages import Waits
from ..views import NodeId
from .gathering import Gathering
from .papers import GivesUp, Waiter
from .waiting_room import Party, WaitingRoom

if TYPE_CHECKING:
    from .local_group import LocalGroup
    from .process_groups import ProcessGroups


class Barriers:
    """The barriers of one group, on one node."""

    def __init__(self, groups: ProcessGroups, local: LocalGroup) -> None:
        self._groups, self._local = groups, local
        self._room = WaitingRoom(groups.timers)
        self._gathering: Gathering | None = None

    # --- For sessions ---

    def has(self, barrier: str, provider: int) -> bool:
        """Whether this provider waits there already."""
        return self._room.has(barrier, provider)

    def wait(self, waiter: Waiter, party: Party) -> None:
        """A provider of this node comes to a barrier; to which round, and since when, is filled in here."""
        group = self._local.group
        waiter = replace(waiter, round=group.rounds.next_round(waiter.barrier), since=group.seq)
        self._room.enter(waiter, party)
        self._send()

    def give_up(self, barrier: str, provider: int, why: GivesUp) -> bool:
        """It does not wait any longer; whether it did."""
        is_waiting = self._room.give_up(barrier, provider, why)
        self._send()
        return is_waiting

    def drop(self, provider: int) -> None:
        """It is no provider any more."""
        self._room.drop(provider)

    # --- What comes ---

    def on_waits(self, node: NodeId, waiters: Iterable[Waiter]) -> None:
        """Providers of another node wait, or of this one by another way."""
        if self._gathering is not None:
            self._gathering.take(node, waiters, self._groups.now)
            self._groups.look_at(self._local)

    def look(self) -> None:
        """Entries were applied, or this node leads, or does not any more."""
        rounds = self._local.group.rounds
        if rounds.ended:
            ended, rounds.ended = rounds.ended, []
            for seq, round_ in ended:
                self._room.over(seq, round_, self._groups.me, rounds)
        ruled, rounds.ruled = rounds.ruled, set()
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

    def leader_changed(self) -> None:
        """Somebody else leads, perhaps."""
        self._room.hurry()
        self._send()

    def lose(self, reason: str) -> None:
        """This node carries the group no longer."""
        self._gathering = None
        self._room.lose(reason)

    def _send(self) -> None:
        self._room.send(self._groups.now, self._pass_on)
        self._groups.look_at(self._local)

    def _pass_on(self, waiters: tuple[Waiter, ...]) -> None:
        if self._gathering is not None:
            self._gathering.take(self._groups.me, waiters, self._groups.now)
        else:
            self._groups.send_to_leader(self._local, Waits(self._local.id, waiters))

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
