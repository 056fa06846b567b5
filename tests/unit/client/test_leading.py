"""Who leads by being the oldest, and who may not believe it (K2)."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

import groupsvc
from groupsvc import SessionState
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_on_a_socket import PATIENCE_S, DaemonOnASocket


def _wait_for(group: groupsvc.Group, kind: type[groupsvc.Event]) -> None:
    assert any(isinstance(event, kind) for event in group.events(timeout=PATIENCE_S)), f"no {kind.__name__} came"


def test_who_is_suspended_does_not_believe_that_it_leads(daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
    """K2: who is oldest is known as it was; but nobody vouches for it."""
    group = session.join("db", events=True)
    assert group.is_oldest
    good_for, daemon.memory.good_for = daemon.memory.good_for, 0.0
    daemon.tell(wire.SessionNews("suspended", "no lease"))
    _wait_for(group, groupsvc.Suspended)
    assert (False, group.me, SessionState.SUSPENDED) == (group.is_oldest, group.oldest, session.state)
    daemon.memory.good_for = good_for
    daemon.tell(wire.SessionNews("resumed", ""))
    _wait_for(group, groupsvc.Resumed)
    assert group.is_oldest


def test_a_lease_that_ends_by_the_own_clock_ends_leading_before_any_thread_had_its_turn(
    session: groupsvc.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process was stopped: nothing was read yet, no event came, and it must not act."""
    group = session.join("db")
    assert group.is_oldest
    monkeypatch.setattr("groupsvc.known_group.clock", SimpleNamespace(now=lambda: math.inf))
    assert not group.is_oldest


@pytest.mark.parametrize("end", ["lost", "closed", "goodbye", "leave"])
def test_who_is_no_member_any_more_is_not_the_oldest(
    daemon: DaemonOnASocket, session: groupsvc.Session, end: str
) -> None:
    group = session.join("db", events=True)
    assert (False, True, 1) == (group.ended, group.is_oldest, len(group.providers))
    match end:
        case "lost":
            daemon.tell(wire.SessionNews("lost", "declared down"))
        case "closed":
            session.close()
        case "goodbye":
            group.goodbye()
        case _:
            group.leave()
    while group.next_event(timeout=PATIENCE_S) is not None:
        pass
    assert (True, False, None, ()) == (group.ended, group.is_oldest, group.oldest, group.providers)
