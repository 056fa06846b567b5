"""Parties at barriers, on real engines: what the tests of barriers have in common."""

from __future__ import annotations

from groupsvc.wire.client_messages import BarrierAsk, RoundIs, RoundPart
from groupsvc.wire.notices import Joined, Round

from .applications import Application


def come(
    application: Application, payload: bytes = b"", *, name: str = "", parties: int = 0, on_failure: str = "break",
    timeout: float = 60.0, resets: bool = False,
) -> int:  # fmt: skip
    """It comes to a barrier; the number of the request."""
    return application.ask(
        BarrierAsk, application.member, name, parties, on_failure, payload, resets, timeout
    )  # fmt: skip


def payloads_of(application: Application, number: int) -> dict[tuple[str, int, int], bytes]:
    """What everybody brought, as it was told: what is much comes before the end of the round."""
    *parts, last = application.answers(number)
    assert isinstance(last, RoundIs)
    assert all(isinstance(part, RoundPart) for part in parts)
    brought = {one: payload for part in parts if isinstance(part, RoundPart) for one, payload in part.payloads}
    return {one: brought.get(one, payload) for one, payload in last.round.arrived}


def round_of(application: Application, number: int) -> Round:
    """How the round ended to which it came with this request."""
    answer = application.answer(number)
    assert isinstance(answer, RoundIs), answer
    return answer.round


def id_of(application: Application) -> tuple[str, int, int]:
    """Its newest provider."""
    mine = [one for notice in application.notices(Joined) for one in notice.providers]
    return next(one.id for one in mine if one.id[2] == application.member and one.id[0] == application.node)
