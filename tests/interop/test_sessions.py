"""Sessions at real daemons, by raw messages: join, vote, speak, break, die."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from groupsvc.testing.local_domain import LocalDomain
from groupsvc.wire.client_messages import CastVote, ChangeStateAsk, Multicast, OutcomeIs
from groupsvc.wire.notices import Failing, Joined, Left, PhaseOpened, StateChanged

from .raw_session import RawSession

NOTICED_S = 0.010
"""From the end of a process to what the others are told: a pidfd, one entry, one round."""
SLACK_S = 0.190
"""For a machine that is busy with other things."""


@pytest.fixture(scope="module")
def domain() -> LocalDomain:  # type: ignore[misc]
    with LocalDomain(nodes=3) as made:
        yield made  # type: ignore[misc]


def test_two_nodes_join_vote_and_speak(domain: LocalDomain) -> None:
    """GS-20 to GS-24 from socket to socket."""
    one, two = domain.names[:2]
    with RawSession(domain.address(one)) as a, RawSession(domain.address(two)) as b:
        a.join("orders", state_phases="n")
        b.join("orders")
        a.until(lambda: 2 == len(a.notices(Joined)), "both are in")
        number = a.say(ChangeStateAsk, a.member, -1, -1.0, False, 10.0, b"red", -1)
        for session in (a, b):
            session.until(lambda session=session: session.notices(PhaseOpened), "it is asked")  # type: ignore[misc]
            opened = session.notices(PhaseOpened)[-1]
            session.say(CastVote, session.member, opened.ballot, opened.phase, "approve")
        outcome = a.answer(number)
        assert isinstance(outcome, OutcomeIs)
        assert outcome.outcome.approved
        b.until(lambda: b.notices(StateChanged), "the state has changed")
        b.say(Multicast, b.member, (b"one", b"two"))
        for session in (a, b):
            session.until(lambda session=session: len(session.payloads) == 2, "both came")  # type: ignore[misc]
            assert [b"one", b"two"] == session.payloads


def test_a_session_goes_on_on_another_connection(domain: LocalDomain) -> None:
    """Nothing is missed, and nobody sees it fail."""
    one, two = domain.names[:2]
    with RawSession(domain.address(one)) as a, RawSession(domain.address(two)) as b:
        a.join("resumed")
        b.join("resumed")
        a.until(lambda: 2 == len(a.notices(Joined)), "both are in")
        b.say(Multicast, b.member, tuple(b"%d" % n for n in range(100)))
        a.resume()
        b.say(Multicast, b.member, tuple(b"%d" % n for n in range(100, 200)))
        a.until(lambda: len(a.payloads) == 200, "all came")
        assert [b"%d" % n for n in range(200)] == a.payloads
        assert [] == b.notices(Failing)


def test_a_killed_process_is_shown_to_all_at_once(domain: LocalDomain) -> None:
    """GS-33."""
    one, two = domain.names[:2]
    took: list[float] = []
    for attempt in range(3):
        group = f"killed-{attempt}"
        with RawSession(domain.address(one)) as a:
            a.join(group)
            command = [sys.executable, "-m", "tests.interop.raw_session", domain.address(two), group]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout is not None
                assert "joined\n" == child.stdout.readline()
                a.until(lambda a=a: 2 == len(a.notices(Joined)), "both are in")  # type: ignore[misc]
                child.kill()
                killed_at = time.monotonic()
                a.until(lambda a=a: a.notices(Left), "it has left")  # type: ignore[misc]
                took.append(a.told_at(Left) - killed_at)
            assert ["failure"] == [failing.cause for failing in a.notices(Failing)]
            assert ["failure"] == [left.cause for left in a.notices(Left)]
    assert min(took) < NOTICED_S + SLACK_S, took
