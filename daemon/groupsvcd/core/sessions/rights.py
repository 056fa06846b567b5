"""Which right a request of a session needs, and in which group.

What a provider does to itself needs none: to vote, to leave, to come to a barrier. Whoever has no right to *create*
may still join without saying whether the group is to be there: it then joins only one that is (``membership``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsvc.wire.client_messages import (
    AnyClientRequest,
    ChangeAttributesAsk,
    ChangeStateAsk,
    ExpelAsk,
    JoinAsk,
    Multicast,
    SendAsk,
    SubmitOutside,
    SubscribeAsk,
    WhyAsk,
)

from ..access import Verb

if TYPE_CHECKING:
    from .session import Session

IN_A_GROUP: dict[type, Verb] = {JoinAsk: "join", SubscribeAsk: "subscribe", WhyAsk: "subscribe", SubmitOutside: "send"}
AS_A_PROVIDER: dict[type, Verb] = {
    Multicast: "send",
    SendAsk: "send",
    ChangeStateAsk: "propose",
    ChangeAttributesAsk: "propose",
    ExpelAsk: "expel",
}


def missing_right(session: Session, request: AnyClientRequest) -> tuple[Verb, str] | None:
    """What the session would have to be allowed, and where, and is not."""
    verb = IN_A_GROUP.get(type(request))
    if verb is not None:
        group: str = request.group  # type: ignore[union-attr]
    else:
        verb = AS_A_PROVIDER.get(type(request))
        if verb is None:
            return None
        group = getattr(session.parts.get(request.member), "group", "")  # type: ignore[union-attr]
        if not group:
            return None  # it is no member, which is answered elsewhere
    if not session.may(verb, group):
        return verb, group
    if isinstance(request, JoinAsk) and request.create and not session.may("create", group):
        return "create", group
    return None
