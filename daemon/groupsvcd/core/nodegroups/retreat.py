"""How a leader goes back from a view that it cannot open.

D leads alone and takes in E, so that two hold the group. The view with both is granted; but then the link between
them breaks, while both still reach the name server. Nobody is declared down and nobody complains: E follows nobody yet,
and D is about to lead. So D, having waited for a lease, proposes the view without those who have not opened. The same
for E, which is to lead with F because D left or died, and cannot reach F. The directory takes such a proposal from
whoever was granted the newest view; the base stays the view that is active, so nothing is lost by it.

E may also be well, and slow: it lacked large payloads, and fetched for longer than D waits. Between two views nothing
is numbered, so D does not try it again at once: E is *late* until it has delivered, as a receiver, what it could not
open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..domain.commands import ProposeView, encode_command
from ..stream.recovery import Recovery
from ..views import View
from .granted import Granted

if TYPE_CHECKING:
    from .seat import Seat


def go_back(seat: Seat, recovery: Recovery, granted: Granted) -> None:
    """Propose the view without those who have not opened for so long."""
    group, me, view = seat.group, seat.turn.node, granted.granted
    servers = tuple(server for server in view.servers if server[0] in recovery.opened_by)
    if view.forced or servers == view.servers or not any(one in granted.base.servers for one in servers):
        return
    seat.turn.mark("group-goes-back")
    group.late = {name: seat.replica.log.last for name in view.names if name not in recovery.opened_by}
    k = min(group.settings.k_wanted, len(servers))
    command = ProposeView(group.id, view.epoch, me, servers, k, seat.station.me)

    def answered(answer: dict[str, Any]) -> None:
        found = answer.get("group") or {}
        pending = found.get("pending")
        if answer.get("ok") and pending is not None and pending["leader"] == me and seat.recovery is recovery:
            seat.take_grant(View.from_answer(pending), View.from_answer(found["active"]))

    group.command(
        f"a view of {group.name!r} without who cannot be reached",
        lambda: encode_command(command), answered, lambda text: None,
    )  # fmt: skip
