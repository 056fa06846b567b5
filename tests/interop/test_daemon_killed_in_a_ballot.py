"""A daemon is killed while ballots run: the others agree how they ended, and its own programs are told all they can be.

Two ballots at once: n3 leads the group of the one and only takes part in the other. In each a program on n3 proposes,
and programs on n1 and n2 vote when n3 is dead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import attrs
import pytest

import groupsvc
from groupsvc import MANUAL, Cause, DefaultCast, Group, GroupAttributes, Phases, Reason, SessionState, Vote
from groupsvc.testing import LocalDomain

PATIENCE_S = 30.0
DEADLINE_S = 15.0
"""Of every call at the daemon that dies: all of them end long before, and none later."""

VOTED = GroupAttributes(state_phases=Phases.N, time_limit=2 * PATIENCE_S)


class Attempt:
    """A call on a thread of its own, and how it ended."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self.took_s = 0.0
        self._call = call
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        began = time.monotonic()
        try:
            self._call()
        except groupsvc.GroupServiceError as error:
            self.error = error
        self.took_s = time.monotonic() - began

    def ended(self) -> BaseException | None:
        self._thread.join(DEADLINE_S + PATIENCE_S)
        assert not self._thread.is_alive(), "it hangs"
        assert self.took_s < DEADLINE_S + 1.0
        return self.error


@attrs.frozen
class Ballot:
    """A group with a provider on each node, in the order of ``nodes``; the one on n3 proposes."""

    name: str
    at: dict[str, Group]

    @classmethod
    def opened(cls, name: str, sessions: dict[str, groupsvc.Session], nodes: tuple[str, ...]) -> Ballot:
        return cls(
            name,
            {
                node: sessions[node].join(name, name=node, attributes=VOTED, on_proposal=MANUAL, events=True)
                for node in nodes
            },
        )

    def propose(self) -> Attempt:
        return Attempt(lambda: self.at["n3"].propose_state(b"proposed on n3", timeout=DEADLINE_S))

    def event(self, node: str, kind: type[groupsvc.Event]) -> groupsvc.Event:
        for event in self.at[node].events(timeout=PATIENCE_S):
            if isinstance(event, kind):
                return event
        raise AssertionError(f"no {kind} at {node}")


@pytest.fixture
def sessions(shared_domain: LocalDomain) -> Iterator[dict[str, groupsvc.Session]]:
    with ExitStack() as stack:
        yield {
            node: stack.enter_context(shared_domain.connect(node, default_timeout=DEADLINE_S))
            for node in shared_domain.names
        }


@pytest.mark.faults
def test_a_daemon_is_killed_under_running_ballots(
    shared_domain: LocalDomain, sessions: dict[str, groupsvc.Session]
) -> None:
    """Nothing hangs past its deadline, on either side."""
    states: list[SessionState] = []
    lost = threading.Event()

    @sessions["n3"].on_state
    def changed(state: SessionState) -> None:
        states.append(state)
        if state is SessionState.LOST:
            lost.set()

    stamp = time.time_ns()
    ballots = [
        Ballot.opened(f"led/{stamp}", sessions, ("n3", "n1", "n2")),
        Ballot.opened(f"followed/{stamp}", sessions, ("n1", "n2", "n3")),
    ]
    proposals = [ballot.propose() for ballot in ballots]
    opened = {
        (ballot.name, node): ballot.event(node, groupsvc.Proposed) for ballot in ballots for node in ("n1", "n2", "n3")
    }
    held = [ballot.at["n3"].held(ballot.at["n3"].fence) for ballot in ballots]
    shared_domain.pause("n3")  # so that what is said now is heard by nobody
    message = ballots[0].at["n3"].multicast(b"into the dark")
    flush = Attempt(ballots[0].at["n3"].flush)
    shared_domain.kill("n3")
    for (_, node), event in opened.items():
        assert isinstance(event, groupsvc.Proposed)
        if node != "n3":
            event.proposal.vote(Vote.APPROVE)
    for ballot in ballots:
        ends = [ballot.event(node, groupsvc.Approved) for node in ("n1", "n2")]
        outcomes = [end.outcome for end in ends if isinstance(end, groupsvc.Approved)]
        assert outcomes[0] == outcomes[1]
        assert ends[0] == ends[1]
        assert (True, 1, Reason.DEFAULT_APPROVE) == (outcomes[0].approved, outcomes[0].phases, outcomes[0].reason)
        assert {"n1": DefaultCast.NOT, "n2": DefaultCast.NOT, "n3": DefaultCast.FAILED} == {
            counted.provider.name: counted.default for counted in outcomes[0].tally
        }
        lefts = [ballot.event(node, groupsvc.Left) for node in ("n1", "n2")]
        assert lefts[0] == lefts[1]
        assert isinstance(lefts[0], groupsvc.Left)
        assert Cause.NODE_FAILURE is lefts[0].cause
        for node in ("n1", "n2"):
            ballot.at[node].sync()
            assert (b"proposed on n3", 1) == (ballot.at[node].state, ballot.at[node].state_version)
            assert {"n1", "n2"} == {provider.name for provider in ballot.at[node].providers}
    for proposal in proposals:
        assert isinstance(proposal.ended(), groupsvc.OutcomeUnknown)
    unknown = flush.ended()
    assert isinstance(unknown, groupsvc.OutcomeUnknown)
    assert (message,) == unknown.ids
    assert lost.wait(PATIENCE_S)
    assert [SessionState.SUSPENDED, SessionState.LOST] == states
    for ballot, guard in zip(ballots, held, strict=True):
        kinds = [type(event).__name__ for event in ballot.at["n3"].events(timeout=PATIENCE_S)]
        assert ["Suspended", "Lost"] == kinds[-2:]
        assert guard.lost.is_set()
        with pytest.raises(groupsvc.Lost):
            guard.check()
