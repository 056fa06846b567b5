"""What this node is in a fast group: the same roles, and other rules for who becomes what.

- A claim makes whoever gets it promise, receivers too. It stays a *server* without a view, refuses everything older and
  delivers nothing, until it hears the leader of an active view, and follows that one as a receiver, or opens its log.
- A beat tells the views of a log, and so whether our own entries are in it. A node that is no server follows a higher
  epoch only after such a beat, or a repair that tells the same. The leader sends one ahead of its first order. An order
  of a view that we know nothing of is not heard.
- Whoever has delivered what the log of an active view lacks is *detached*: its users have lost the group, it opens and
  reports nothing any more, and leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ..peer_messages import Beat, Block, Complaint, Open, Promised, Refused, Repair
from ..stream.entries import decode_entry, is_reference
from ..stream.fast import FastReceiver, FastReplica, FastServer
from ..stream.heritage import Heritage, has_beginning
from ..stream.receiver import Receiver
from ..stream.recovery import Recovery
from ..stream.server import Server
from ..views import View
from .controls import AnyControl, NodeInserted, ViewStarted, decode_control
from .fast_leading import FastLeading
from .fast_recovery import FastGranted, FastRecovery
from .granted import Granted
from .leading import Leading
from .roll import VIEWS_KEPT
from .seat import Seat

if TYPE_CHECKING:
    from .node_group import NodeGroup

CONTRADICTED = "the group goes on without entries that were delivered here"


class FastSeat(Seat):
    """The roles of this node in one fast group."""

    about_views: ClassVar[dict[str, Any]] = {"delivery": "fast"}
    replica: FastReplica

    def __init__(self, group: NodeGroup, replica: FastReplica, activate: Callable[[int, int], None]) -> None:
        self._bound = 0  # what was promised before we became a receiver
        self._known_active = 0  # newest epoch whose leader was heard
        replica.sync_window = group.settings.sync_window
        replica.heritage = self._heritage
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
            opened=self._enough_opened, members=self._heritage().members, is_member_up=self.station.is_up,
            is_patient=lambda: isinstance(self.recovery, FastRecovery) and self.recovery.is_patient,
        )  # fmt: skip

    def _new_recovery(self, server: Server, view: View, granted: Granted) -> Recovery:
        assert isinstance(granted, FastGranted)
        return FastRecovery(
            server, view.epoch, granted, self._timers,
            delivered=lambda: (self.group.roll.epoch, self.replica.delivered),
            contradicted=lambda: self._contradicted_in(view.epoch),
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
        """The view goes on without us as server; what we promised still binds us."""
        self._bound = max(self._bound, server.promised)
        self._freeze()
        return super()._as_receiver(server)

    def _freeze(self) -> None:
        """Our log is what was delivered, by the views in it; more comes from a view that is known to be active."""
        self.replica.switch(self.group.roll.epoch, self.replica.settled, ())
        self.replica.began = 0

    @property
    def epoch(self) -> int:
        """The highest epoch this node knows of, or has promised."""
        return max(super().epoch, self._bound)

    def take_grant(self, view: View, base: View) -> None:
        """The directory wants us to lead in ``view``."""
        if self._is_detached:
            self._cannot_serve_in(view.epoch)
        else:
            super().take_grant(view, base)

    def _lead(self, server: Server, view: View, opened_by: dict[str, int]) -> None:
        super()._lead(server, view, opened_by)
        assert self.leading is not None
        if len(self.group.roll.members) > 1:
            server.carrier.publish(self.leading.sequencer.beat())  # ahead of the first order, for those who only follow

    # --- What the log has ---

    def _heritage(self) -> Heritage:
        """Views and members as of the end of the log; what was not delivered of it is looked through."""
        roll, replica = self.group.roll, self.replica
        views, members = roll.views, dict(roll.members)
        for seq, control in self._undelivered_controls():
            if isinstance(control, ViewStarted):
                views = (*views, (control.epoch, seq))[-VIEWS_KEPT:]
            elif isinstance(control, NodeInserted):
                members[control.node] = control.term
        if not replica.delivered and not replica.log.last:
            return Heritage((), ())
        return Heritage(views, tuple(members))

    def _undelivered_controls(self) -> list[tuple[int, AnyControl]]:
        replica = self.replica
        first = replica.delivered + 1
        entries = replica.log.between(first, replica.library.complete_upto)
        found: list[tuple[int, AnyControl]] = []
        for seq, raw in enumerate(entries, first):
            if not is_reference(raw):
                entry = decode_entry(raw)
                if not entry.origin:
                    found.append((seq, decode_control(entry.body)))
        return found

    def _is_ours_in(self, views: tuple[tuple[int, int], ...], last: float) -> bool:
        """Whether a log has everything that was delivered here."""
        return has_beginning(views, last, self.group.roll.epoch, self.replica.delivered)

    def _detach(self) -> None:
        if not self._is_detached:
            self._is_detached = True
            self.turn.mark("group-tail-lost")
            self._stop_leading()
            self.group.forsake(CONTRADICTED)

    def _contradicted_in(self, epoch: int) -> None:
        """We are to lead, and the view before, which was active, has gone on without what was delivered here."""
        self._detach()
        self._cannot_serve_in(epoch)

    def _cannot_serve_in(self, epoch: int) -> None:
        """Others have to do it."""
        member = self.station.member
        if member.hears_leader and not member.isolated:
            self.turn.send(member.leader, Complaint(self.group.id, epoch, unable=True))

    # --- Messages ---

    def _follower(self, sender: str, epoch: int, began: int) -> Receiver | Server | None:
        """An order is heard in the view that we are in; a server refuses what is older."""
        if epoch < self.epoch and not isinstance(self.role, Server):
            self.replica.carrier.send(sender, Refused(self.group.id, self.epoch))
            return None
        known = epoch == self.replica.log.accepted or epoch < self.epoch
        return self.role if known and not self._is_detached else None

    def _follower_after(self, sender: str, beat: Beat) -> Receiver | Server | None:
        role, epoch = self.role, beat.epoch
        if epoch == self.replica.log.accepted or epoch < self.epoch:
            return self._follower(sender, epoch, beat.began)
        self._known_active = epoch
        if self._is_detached or not self._is_ours_in(beat.views, beat.last):
            self._detach()
            self.replica.leader = sender  # who lets us go
            return None
        view = self._promised_view
        if isinstance(role, Server) and epoch == role.promised and view is not None and self._mine in view.servers:
            return None  # we are to open its log
        return self._as_receiver(role) if isinstance(role, Server) else role

    def _report(self, server: Server, *, whatever_there_is: bool) -> Promised:
        if self._is_detached:
            return Promised(self.group.id, server.promised, 0, 0, 0, 0)
        return super()._report(server, whatever_there_is=whatever_there_is)

    def _can_open(self, message: Open) -> bool:
        """Whether what was delivered here is in that log.

        If not, we came too late to be asked; but the view is not active yet. In the one that is granted in its place we
        are asked again, as a member.
        """
        if message.epoch == self.replica.log.accepted:
            return True
        if self._is_detached or not self._is_ours_in(message.views, message.last):
            if message.epoch > self._known_active:
                self._cannot_serve_in(message.epoch)
            return False
        return True

    def _can_take(self, message: Repair | Block) -> bool:
        role = self.role
        if not isinstance(role, Receiver) or message.accepted == role.epoch >= self._bound:
            return True
        if isinstance(message, Block) or message.accepted <= role.epoch or message.accepted < self._bound:
            return role.epoch >= self._bound  # what was stable then; who promised skips nothing, as it delivers nothing
        if not message.began or self._is_detached:
            return False
        if not self._is_ours_in(message.views, math.inf):
            self._detach()
            return False
        return True

    def superseded_by(self, view: View) -> None:
        """The name server says that this view is active: perhaps the one that we promised, and hear nothing of."""
        super().superseded_by(view)
        role = self.role
        if isinstance(role, Server) and role.log.accepted < view.epoch == self.epoch and self._mine not in view.servers:
            self._as_receiver(role)
            self.replica.leader, self.replica.servers = view.leader, view.names

    @property
    def _is_orphan(self) -> bool:
        """Whether all who hold the stream are down, and we are not one of them."""
        servers = self.group.roll.servers
        return (
            bool(servers)
            and self._mine not in servers
            and all(isinstance(which, int) and self.station.is_down((name, which)) for name, which in servers)
        )
