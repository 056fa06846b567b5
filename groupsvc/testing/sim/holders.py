"""L6: who may hold something alone has it no more, by its own clock, when others are told that it has left.

Looked at is the moment in which somebody reads that a provider has left because it is dead. The harness knows whether
that one's program is still there and, by its own clock, believes that it is in the group: its session is connected, and
its daemon vouches for it. A program that is stopped believes it as soon as it goes on.

With the end of its process, or of its session's grace, a provider is out of any group. With its node it is only out of
an *exclusive* one, for a node that is down may not be gone (docs/GUARANTEES.md). Who is expelled, or does not read, is
out at once, and knows it when it hears of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsvc import events
from groupsvc.session_states import SessionState
from groupsvc.views import text_of

if TYPE_CHECKING:
    from .application import Application, Part
    from .applications import Applications


def look_for_holders(applications: Applications, reader: Application, part: Part, event: events.Left) -> None:
    """``reader`` has read in ``part`` that somebody has left."""
    is_exclusive = part.membership._attributes.get("exclusive") is True
    if event.cause.value == "node_failure" and is_exclusive:
        applications.mark("app-exclusive-gone")
    elif event.cause.value != "failure":
        return
    gone = {provider.id for provider in event.providers}
    for app in applications.all:
        for held in app.parts.values():
            if held.is_open and held.membership.my_id is not None and text_of(held.membership.my_id) in gone:
                if _believes(app):
                    text = f"{reader.name} is told that {app.name} has left {part.name}, and {app.name} holds it still"
                    applications.broken("L6", text, app)


def _believes(app: Application) -> bool:
    """Whether its own clock says that it is in its groups; the clock is looked at, and not moved."""
    machine = app.machine
    if machine is None or not app.is_running or machine.state is not SessionState.CONNECTED:
        return False
    return machine.valid_for(max(app.now, app.node.offset + app.node.rate * app.world.t)) > 0
