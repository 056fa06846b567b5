"""What most tests of the machine begin with."""

from __future__ import annotations

import math
from typing import Any

from groupsvc.events import Event
from groupsvc.sansio import asking
from groupsvc.sansio.asking import Start
from groupsvc.sansio.calls import Call
from groupsvc.sansio.membership_machine import Membership
from groupsvc.sansio.session_machine import SessionMachine
from tests.unit.client.daemon_in_memory import Line

HOW: dict[str, Any] = {"phases": None, "time_limit": None, "on_busy": "queue"}


def new_machine(silence_s_max: float = math.inf) -> SessionMachine:
    """One whose votes are cast at once."""
    return SessionMachine(
        "test",
        lambda membership, proposal, answer: membership.vote(proposal, answer),
        silence_s_max=silence_s_max,
    )


def begin(line: Line, start: Start, timeout: float = 10.0) -> Call:
    """Start a call; nothing is carried yet."""
    return start(line.now, timeout)


def done(line: Line, start: Start, timeout: float = 10.0) -> Any:
    """Start a call, carry everything, and take its result."""
    call = begin(line, start, timeout)
    line.run()
    return call.result


def join(
    line: Line, group: str = "db", *, on_proposal: object = None, events: bool = True, name: str = "a"
) -> Membership:
    """A provider."""
    start = asking.join(
        line.machine, group, name=name, attributes=None, create=None, data=b"", on_proposal=on_proposal, events=events
    )
    membership = done(line, start)
    assert isinstance(membership, Membership)
    return membership


def propose(line: Line, membership: Membership, value: bytes, if_version: int | None = None) -> Start:
    """A change of the state."""
    return asking.propose_state(line.machine, membership, value, if_version, **HOW)


def multicast(line: Line, membership: Membership, *payloads: bytes) -> None:
    """Messages; nothing is carried yet."""
    for payload in payloads:
        line.machine.has_spoken.add(membership)
        membership.own.add(payload)
    line.machine.say_what_gathers()


def events(membership: Membership) -> list[Event]:
    """All that were not read yet."""
    assert membership.buffer is not None
    found: list[Event] = []
    while (event := membership.buffer.take()) is not None:
        found.append(event)
    return found


def kinds(membership: Membership) -> list[str]:
    """Their names."""
    return [type(event).__name__ for event in events(membership)]
