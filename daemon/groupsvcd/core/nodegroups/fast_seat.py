"""What this node is in a fast group: the same roles, and other rules for who becomes what.

- A claim makes whoever gets it promise, receivers too. It stays a *server* without a view, refuses everything older and
  delivers nothing, until it hears the leader of an active view, and follows that one as a receiver, or opens its log.
- Who has promised delivers nothing and skips nothing, also as a receiver, until it hears of an active view at least as
  new.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ..peer_messages import Block, Refused, Repair
from ..stream.fast import FastReceiver, FastReplica, FastServer
from ..stream.receiver import Receiver
from ..stream.server import Server
from ..views import Server as ServerId
from ..views import View
from .fast_leading import FastLeading
from .fast_recovery import FastGranted, FastRecovery
from .granted import Granted
from .leading import Leading
from .seat import Seat

if TYPE_CHECKING:
    from .node_group import NodeGroup


class FastSeat(Seat):
    """The roles of this node in one fast group."""

    about_views: ClassVar[dict[str, Any]] = {"delivery": "fast"}
    replica: FastReplica

    def __init__(self, group: NodeGroup, replica: FastReplica, activate: Callable[[int, int], None]) -> None:
        replica.sync_window = group.settings.sync_window
        super().__init__(group, replica, activate)

    # --- Roles ---

    def _new_receiver(self, epoch: int) -> Receiver:
        return FastReceiver(self.replica, epoch)

    def _new_server(self, promised: int, k: int, *, complete: bool = True) -> Server:
        return FastServer(self.replica, promised, k, complete=complete)

    def _new_leading(self, server: Server, view: View) -> Leading:
        return FastLeading(self.group, server, view)

    def _new_granted(self, view: View, base: View) -> Granted:
        return FastGranted(
            self.group.id, self.turn.node, view, base, is_up=lambda name: self._is_up_as(name, view, base),
            opened=self._enough_opened, members=self.inheritance.heritage().members, is_member_up=self.station.is_up,
            is_patient=lambda: isinstance(self.recovery, FastRecovery) and self.recovery.is_patient,
            has_led=self._has_led(base), numbered=self.replica.log.last,
        )  # fmt: skip

    def _new_recovery(self, server: Server, view: View, granted: Granted) -> FastRecovery:
        assert isinstance(granted, FastGranted)
        return FastRecovery(
            server, view.epoch, granted, self._timers, delivered=lambda: self.inheritance.delivered,
            contradicted=lambda: self._contradicted_in(view.epoch), stuck=self._go_back,
        )  # fmt: skip

    def _as_server(self) -> Server:
        """Our role as one that may promise; a receiver's log is what it delivered, by the views it saw begin."""
        role = self.role
        if isinstance(role, Receiver):
            self._promised_view = None
            promised = self.epoch
            self._freeze()
            self.role = role = self._new_server(promised, 1)
        return role

    def _as_receiver(self, server: Server) -> Receiver:
        self._freeze()
        return super()._as_receiver(server)

    def _freeze(self) -> None:
        """Our log is what was delivered, by the views in it; more comes from a view that is known to be active."""
        self.replica.switch(self.group.roll.epoch, self.replica.settled, ())
        self.replica.began = 0

    # --- Messages ---

    def _follower(self, sender: str, epoch: int, began: int) -> Receiver | Server | None:
        """A receiver, too, refuses what is older: it may have promised."""
        if epoch < self.epoch and not isinstance(self.role, Server):
            self.replica.carrier.send(sender, Refused(self.group.id, self.epoch))
            return None
        return super()._follower(sender, epoch, began)

    def _can_take(self, message: Repair | Block) -> bool:
        role = self.role
        if not isinstance(role, Receiver) or message.accepted == role.epoch >= self._bound:
            return True
        if isinstance(message, Block) or message.accepted <= role.epoch or message.accepted < self._bound:
            return role.epoch >= self._bound  # what was stable then; who promised skips nothing, as it delivers nothing
        return super()._can_take(message)

    def holds_for(self, servers: tuple[ServerId, ...]) -> bool:
        """Whether the group can go on from our copy: who has promised is a server, whatever it was."""
        return self._mine in servers
