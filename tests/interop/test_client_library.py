"""The client library with real daemons: what an application is promised, seen from applications.

Each test is a story of programs on two or three nodes. Programs that must die or fork are processes of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import groupsvc
from groupsvc import (
    Answer,
    Cause,
    DefaultCast,
    GroupAttributes,
    Phases,
    ProposalKind,
    Reason,
    SessionState,
    Vote,
    aio,
)
from groupsvc.addresses import socket_path
from groupsvc.sansio.event_buffer import EventBuffer
from groupsvc.testing import LocalDomain
from groupsvcd.core.parameters import Timers

PATIENCE_S = 20.0


@pytest.fixture
def sessions(shared_domain: LocalDomain) -> Iterator[Callable[[str], groupsvc.Session]]:
    """Sessions at nodes by name, closed at the end."""
    with ExitStack() as stack:
        yield lambda node: stack.enter_context(shared_domain.connect(node))


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A group of this test alone."""
    plain = "".join(character if character.isalnum() else "-" for character in request.node.name)
    return f"t/{plain}/{time.time_ns()}"


Connect = Callable[[str], groupsvc.Session]
VOTED = GroupAttributes(state_phases=Phases.N, time_limit=10.0)


def read(group: groupsvc.Group | groupsvc.Subscription, kind: type, count: int = 1) -> list[object]:
    """The next events of a kind; others are passed over."""
    found: list[object] = []
    for event in group.events(timeout=PATIENCE_S):
        if isinstance(event, kind):
            found.append(event)
        if len(found) == count:
            return found
    raise AssertionError(f"{len(found)} of {count} {kind.__name__} came")


class TestMembership:
    """Join, leave, and who is there."""

    def test_two_nodes_see_each_other(self, sessions: Connect, name: str) -> None:
        with sessions("n1").join(name, name="a", data=b"1", events=True) as first:
            assert first.is_oldest
            with sessions("n2").join(name, name="b", events=True) as second:
                (_, joined) = read(first, groupsvc.Joined, 2)
                assert isinstance(joined, groupsvc.Joined)
                assert ["a", "b"] == [one.name for one in second.providers]
                assert second.view == joined.view
                assert second.oldest == first.me
                assert second.fence > 0
            (left,) = read(first, groupsvc.Left)
            assert isinstance(left, groupsvc.Left)
            assert (Cause.LEAVE, "b") == (left.cause, left.providers[0].name)
            assert [first.me] == list(first.providers)

    def test_create_and_attributes(self, sessions: Connect, name: str) -> None:
        session = sessions("n1")
        with pytest.raises(groupsvc.NoSuchGroup):
            session.join(name, create=False)
        with pytest.raises(groupsvc.NoSuchGroup):
            session.subscribe(name)
        with session.join(name, create=True, attributes=VOTED) as group:
            assert (Phases.N, 10.0) == (group.attributes.state_phases, group.attributes.time_limit)
            other = sessions("n2")
            with pytest.raises(groupsvc.GroupExists):
                other.join(name, create=True)
            with pytest.raises(groupsvc.AttributesMismatch, match="time_limit"):
                other.join(name, attributes=GroupAttributes(time_limit=3.0))
            with other.join(name, attributes=VOTED) as second:
                assert VOTED.state_phases is second.attributes.state_phases
            assert name in [one.name for one in session.groups()]

    def test_a_rejected_join_says_who_rejected_it(self, sessions: Connect, name: str) -> None:
        attributes = GroupAttributes(join_phases=Phases.N)
        with sessions("n1").join(name, name="keeper", attributes=attributes, on_proposal=lambda _: Vote.REJECT):
            with pytest.raises(groupsvc.JoinRejected, match=r"n1/.* REJECT") as caught:
                sessions("n2").join(name, name="stranger")
            assert Reason.EXPLICIT_REJECT is caught.value.outcome.reason
            assert name == caught.value.group

    @pytest.mark.alone
    def test_a_member_that_is_killed_leaves_as_failed_at_once(
        self, shared_domain: LocalDomain, sessions: Connect, name: str
    ) -> None:
        group = sessions("n1").join(name, events=True)
        program = start(shared_domain, "n2", name, "print('in', flush=True)\nthreading.Event().wait()")
        assert "in" == line_of(program)
        read(group, groupsvc.Joined, 2)
        began = time.monotonic()
        program.kill()
        (failing,) = read(group, groupsvc.Failing)
        (left,) = read(group, groupsvc.Left)
        program.wait()
        assert isinstance(failing, groupsvc.Failing)
        assert isinstance(left, groupsvc.Left)
        assert Cause.FAILURE is failing.cause is left.cause
        assert time.monotonic() - began < 2.0, "noticed by the kernel's word, not by silence"

    def test_who_is_expelled_is_told(self, sessions: Connect, name: str) -> None:
        first = sessions("n1").join(name, name="a")
        second = sessions("n2").join(name, name="b", events=True)
        assert first.expel(second.me, reason="too loud").approved
        (left,) = read(second, groupsvc.Left)
        assert isinstance(left, groupsvc.Left)
        assert (Cause.EXPELLED, "too loud") == (left.cause, left.reason)
        with pytest.raises(groupsvc.NotAMember):
            second.propose_state(b"x")

    def test_goodbye_and_close(self, sessions: Connect, name: str, shared_domain: LocalDomain) -> None:
        group = sessions("n1").join(name, events=True)
        second = sessions("n2").join(name)
        second.goodbye()
        (left,) = read(group, groupsvc.Left)
        assert isinstance(left, groupsvc.Left)
        assert Cause.GOODBYE is left.cause
        with shared_domain.connect("n3") as third:
            third.join(name)
        (left,) = read(group, groupsvc.Left)
        assert isinstance(left, groupsvc.Left)
        assert Cause.GOODBYE is left.cause

    def test_a_subscriber_watches_until_the_group_dissolves(self, sessions: Connect, name: str) -> None:
        group = sessions("n1").join(name)
        watcher = sessions("n2").subscribe(name)
        assert watcher.providers == group.providers
        group.propose_state(b"seen")
        (changed,) = read(watcher, groupsvc.StateChanged)
        assert isinstance(changed, groupsvc.StateChanged)
        assert b"seen" == changed.value
        group.leave()
        assert "Dissolved" == [type(event).__name__ for event in watcher.events(timeout=PATIENCE_S)][-1]

    def test_a_subscriber_may_wait_for_a_group_to_appear(self, sessions: Connect, name: str) -> None:
        watching = sessions("n2")
        joined = threading.Timer(0.2, lambda: sessions("n1").join(name))
        joined.start()
        with watching.subscribe(name, wait=PATIENCE_S) as watcher:
            assert 1 == len(watcher.providers)
        joined.join()
        with watching.subscribe("_hosts") as hosts:
            assert {"n1", "n2", "n3"} <= {one.name for one in hosts.providers}


class TestBallots:
    """Propose, vote in phases, and everybody knows why it ended so."""

    def test_reject_continue_and_approve(self, sessions: Connect, name: str) -> None:
        asked: list[tuple[ProposalKind, int, tuple[bytes, ...]]] = []

        def vote(proposal: groupsvc.Proposal) -> Vote | Answer:
            messages = tuple(one.payload for one in proposal.messages)
            asked.append((proposal.kind, proposal.phase, messages))
            if proposal.state == b"never":
                return Vote.REJECT
            return Answer(Vote.CONTINUE, message=b"once more") if proposal.phase == 1 else Vote.APPROVE

        first = sessions("n1").join(name, name="a", attributes=VOTED)
        second = sessions("n2").join(name, name="b", on_proposal=vote, events=True)
        outcome = first.propose_state(b"yes")
        assert (True, 2, Reason.EXPLICIT_APPROVE) == (outcome.approved, outcome.phases, outcome.reason)
        assert [(ProposalKind.STATE, 1, ()), (ProposalKind.STATE, 2, (b"once more",))] == asked
        assert ("b", b"once more") == (outcome.messages[0].provider.name, outcome.messages[0].payload)
        outcome = first.propose_state(b"never")
        assert not outcome
        assert (Reason.EXPLICIT_REJECT, b"yes") == (outcome.reason, first.state)
        assert {"a": Vote.APPROVE, "b": Vote.REJECT} == {one.provider.name: one.vote for one in outcome.tally}
        with pytest.raises(groupsvc.Rejected, match="REJECT"):
            outcome.require()
        kinds = [type(event).__name__ for event in second.events(timeout=0.5)]
        assert kinds[-7:] == ["Proposed", "PhaseEnded", "Proposed", "StateChanged", "Approved", "Proposed", "Rejected"]
        again = first.outcome(outcome.proposal.id)
        assert (again.approved, again.tally) == (outcome.approved, outcome.tally)
        assert [True, False] == [
            one.approved for one in sessions("n3").why(name) if one.proposal.kind is ProposalKind.STATE
        ]

    def test_an_error_in_the_vote_is_the_default_and_shown(
        self, sessions: Connect, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reported: list[object] = []
        monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_type))

        def broken(proposal: groupsvc.Proposal) -> Vote:
            raise ZeroDivisionError

        attributes = GroupAttributes(state_phases=Phases.N, default_vote=Vote.REJECT)
        first = sessions("n1").join(name, name="a", attributes=attributes)
        sessions("n2").join(name, name="b", on_proposal=broken)
        outcome = first.propose_state(b"x")
        assert (False, Reason.DEFAULT_REJECT) == (outcome.approved, outcome.reason)
        assert DefaultCast.RAISED is {one.provider.name: one.default for one in outcome.tally}["b"]
        assert [ZeroDivisionError] == reported

    def test_who_does_not_vote_in_time_is_late(self, sessions: Connect, name: str) -> None:
        first = sessions("n1").join(name, name="a", attributes=VOTED)
        sessions("n2").join(name, name="b", on_proposal=groupsvc.MANUAL)
        outcome = first.propose_state(b"x", time_limit=0.3)
        assert outcome.approved
        assert DefaultCast.LATE is {one.provider.name: one.default for one in outcome.tally}["b"]

    def test_whose_code_hangs_is_not_waited_for_until_the_time_limit(self, sessions: Connect, name: str) -> None:
        """GS-27: it is announced, and gets the default vote; it stays a provider."""
        go_on = threading.Event()

        def hangs(proposal: groupsvc.Proposal) -> Vote:
            go_on.wait(25.0)
            return Vote.REJECT

        first = sessions("n1").join(name, name="a", attributes=VOTED, events=True)
        sessions("n2").join(name, name="b", on_proposal=hangs)
        outcome = first.propose_state(b"x", time_limit=20.0, timeout=15.0)
        go_on.set()
        assert outcome.approved
        assert DefaultCast.UNRESPONSIVE is {one.provider.name: one.default for one in outcome.tally}["b"]
        assert ["b"] == [one.provider.name for one in first.events(timeout=0) if isinstance(one, groupsvc.Unresponsive)]
        assert ["a", "b"] == [one.name for one in first.providers]

    def test_votes_by_hand(self, sessions: Connect, name: str) -> None:
        first = sessions("n1").join(name, attributes=VOTED)
        second = sessions("n2").join(name, on_proposal=groupsvc.MANUAL, events=True)
        outcomes: list[groupsvc.Outcome] = []
        proposer = threading.Thread(target=lambda: outcomes.append(first.propose_state(b"x")))
        proposer.start()
        (proposed,) = read(second, groupsvc.Proposed)
        assert isinstance(proposed, groupsvc.Proposed)
        proposed.proposal.vote(Vote.REJECT)
        proposer.join(PATIENCE_S)
        assert [False] == [one.approved for one in outcomes]

    def test_compare_and_set(self, sessions: Connect, name: str) -> None:
        """Of two that set at once, over the same version, one succeeds."""
        groups = [sessions(node).join(name) for node in ("n1", "n2", "n3")]
        results: list[str] = []

        def bid(group: groupsvc.Group) -> None:
            try:
                group.propose_state(group.me.id.encode(), if_version=0).require()
                results.append("won")
            except groupsvc.StaleVersion:
                results.append("stale")

        threads = [threading.Thread(target=bid, args=(group,)) for group in groups]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert ["stale", "stale", "won"] == sorted(results)
        for group in groups:
            group.sync()
        assert 1 == len({group.state for group in groups})
        assert {1} == {group.state_version for group in groups}

    def test_busy(self, sessions: Connect, name: str) -> None:
        first = sessions("n1").join(name, attributes=VOTED)
        second = sessions("n2").join(name, on_proposal=groupsvc.MANUAL, events=True)
        proposer = threading.Thread(target=lambda: first.propose_state(b"x"))
        proposer.start()
        (proposed,) = read(second, groupsvc.Proposed)
        assert isinstance(proposed, groupsvc.Proposed)
        with pytest.raises(groupsvc.Busy):
            second.propose_state(b"y", on_busy="fail")
        with pytest.raises(groupsvc.TimedOut):
            second.propose_state(b"y", timeout=0.2)
        proposed.proposal.vote(Vote.APPROVE)
        proposer.join(PATIENCE_S)
        assert b"x" == first.state


class TestMessages:
    """Ordered, pipelined, and each exactly once."""

    def test_from_outside_and_by_ballot(self, sessions: Connect, name: str) -> None:
        group = sessions("n1").join(name, name="a", events=True)
        sessions("n2").multicast(name, b"hello")
        assert group.send(b"by ballot").approved
        group.multicast(b"plain")
        group.flush()
        found = [(event.sender and event.sender.name, event.payload) for event in read(group, groupsvc.Message, 3)]  # type: ignore[attr-defined]
        assert [(None, b"hello"), ("a", b"by ballot"), ("a", b"plain")] == found

    def test_large_messages(self, sessions: Connect, name: str) -> None:
        group = sessions("n1").join(name, events=True)
        for _ in range(6):
            group.multicast(bytes(groupsvc.limits.payload_bytes_max))
        group.flush()
        assert {groupsvc.limits.payload_bytes_max} == {len(event.payload) for event in read(group, groupsvc.Message, 6)}  # type: ignore[attr-defined]


class TestFailures:
    """The holder knows first, and nobody waits for ever."""

    @pytest.mark.faults
    def test_a_daemon_that_is_killed_loses_the_session_and_says_so(self, shared_domain: LocalDomain, name: str) -> None:
        with shared_domain.connect("n3") as session:
            group = session.join(name, events=True)
            held = group.held(group.fence)
            group.multicast(b"x")
            shared_domain.kill("n3")
            kinds = [type(event).__name__ for event in group.events(timeout=PATIENCE_S)]
            assert ["Suspended", "Lost"] == kinds[-2:]
            assert SessionState.LOST is session.state
            assert held.lost.is_set()
            with pytest.raises(groupsvc.DaemonUnreachable, match="connect and join again"):
                session.groups()

    @pytest.mark.faults
    def test_a_daemon_that_is_stopped_suspends_by_our_own_clock(self, shared_domain: LocalDomain, name: str) -> None:
        with shared_domain.connect("n3") as session:
            group = session.join(name, events=True)
            held = group.held(group.fence)
            shared_domain.pause("n3")
            began = vouched = time.monotonic()
            with contextlib.suppress(groupsvc.Suspended):
                while (now := time.monotonic()) - began < PATIENCE_S:
                    held.check()
                    vouched = now  # it was after that, on a busy machine much later
                    time.sleep(0.01)
            assert vouched - began < Timers().lease
            assert (SessionState.SUSPENDED, False) == (session.state, group.is_oldest)
            with pytest.raises((groupsvc.OutcomeUnknown, groupsvc.Failed)):
                group.propose_state(b"x", timeout=0.2)
            shared_domain.resume("n3")
            last = None
            for event in group.events(timeout=PATIENCE_S):
                last = event
                if isinstance(event, groupsvc.Resumed | groupsvc.Lost):
                    break
            assert isinstance(last, groupsvc.Resumed | groupsvc.Lost)

    @pytest.mark.faults
    def test_a_node_cut_off_from_the_majority_suspends_and_comes_back_with_all_it_had(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        with shared_domain.connect("n3") as session:
            group = session.join(name, events=True)
            held = group.held(group.fence)
            assert group.is_oldest
            shared_domain.pause("n1")
            shared_domain.pause("n2")
            # On a busy machine it may be suspended before that for a moment, and what was on its way ends it again:
            # only after a lease nobody can vouch for it any more.
            time.sleep(Timers().lease)
            while SessionState.SUSPENDED is not session.state:
                read(group, groupsvc.Suspended)
            assert (False, group.me) == (group.is_oldest, group.oldest), "as far as anybody here knows"
            with pytest.raises(groupsvc.Suspended):
                held.check()
            with pytest.raises((groupsvc.OutcomeUnknown, groupsvc.Failed)):
                group.propose_state(b"x", timeout=0.2)
            shared_domain.resume("n1")
            shared_domain.resume("n2")
            while SessionState.CONNECTED is not session.state:
                read(group, groupsvc.Resumed)
            assert group.is_oldest
            held.check()
            assert group.propose_state(b"y").approved

    def test_a_connection_that_breaks_costs_nothing(
        self, shared_domain: LocalDomain, sessions: Connect, name: str
    ) -> None:
        first = sessions("n1").join(name, name="a", events=True)
        second = sessions("n2").join(name, name="b", events=True)
        for number in range(300):
            first.multicast(b"%d" % number)
            if number % 100 == 50:
                first.sync()
                assert break_connections_to(shared_domain.address("n1"))
                assert second.propose_state(b"%d" % number).approved
        first.flush()
        for group in (first, second):
            payloads = [event.payload for event in read(group, groupsvc.Message, 300)]  # type: ignore[attr-defined]
            assert [b"%d" % number for number in range(300)] == payloads
        assert [first.me, second.me] == list(second.providers), "nobody has failed"

    def test_a_callback_that_hangs_is_unresponsive_and_not_dead(
        self, shared_domain: LocalDomain, sessions: Connect, name: str
    ) -> None:
        returns = threading.Event()

        def hangs(proposal: groupsvc.Proposal) -> Vote:
            returns.wait(PATIENCE_S)
            return Vote.APPROVE

        first = sessions("n1").join(name, name="a", attributes=VOTED, events=True)
        sessions("n2").join(name, name="b", on_proposal=hangs)
        assert first.propose_state(b"x", time_limit=0.2).approved
        (silent,) = read(first, groupsvc.Unresponsive)
        assert isinstance(silent, groupsvc.Unresponsive)
        assert "b" == silent.provider.name
        returns.set()
        read(first, groupsvc.Responsive)
        assert 2 == len(first.providers)

    def test_a_provider_that_does_not_read_leaves_and_is_told(self, sessions: Connect, name: str) -> None:
        first = sessions("n1").join(name, name="a", events=True)
        slow = sessions("n2").join(name, name="slow", events=True)
        slow._membership.buffer = slow._membership.reads = EventBuffer(limit=50)
        for number in range(200):
            first.multicast(b"%d" % number)
        (left,) = read(first, groupsvc.Left)
        assert isinstance(left, groupsvc.Left)
        assert (Cause.OVERRUN, "slow") == (left.cause, left.providers[0].name)
        found = list(slow.events(timeout=PATIENCE_S))
        assert ["Overrun", "Lost"] == [type(event).__name__ for event in found[-2:]]
        messages = [event.payload for event in found if isinstance(event, groupsvc.Message)]
        assert [b"%d" % number for number in range(len(messages))] == messages

    def test_a_join_that_is_late_is_taken_back(self, sessions: Connect, name: str) -> None:
        attributes = GroupAttributes(join_phases=Phases.N, time_limit=30.0)
        first = sessions("n1").join(name, attributes=attributes, on_proposal=groupsvc.MANUAL, events=True)
        with pytest.raises(groupsvc.TimedOut):
            sessions("n2").join(name, timeout=0.3)
        (ended,) = read(first, groupsvc.Rejected)
        assert isinstance(ended, groupsvc.Rejected)
        assert [first.me] == list(first.providers)

    def test_interrupted_and_as_good_as_before(self, sessions: Connect, name: str) -> None:
        group = sessions("n1").join(name, events=True)
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            for _ in group.events():
                pass
        assert group.propose_state(b"still here").approved

    def test_a_program_that_ends_says_goodbye_and_a_forked_child_is_another(
        self, shared_domain: LocalDomain, sessions: Connect, name: str
    ) -> None:
        group = sessions("n1").join(name, events=True)
        program = start(shared_domain, "n2", name, FORKING)
        output, errors = program.communicate(timeout=PATIENCE_S)
        assert ("", 0) == (errors, program.returncode)
        assert ["UsageError", "child True", "parent True"] == output.split("\n")[:-1]
        causes = [event.cause for event in read(group, groupsvc.Left, 2)]  # type: ignore[attr-defined]
        assert [Cause.LEAVE, Cause.GOODBYE] == causes


PROGRAM = """
import os, sys, threading
import groupsvc
session = groupsvc.connect(sys.argv[1])
group = session.join(sys.argv[2])
"""

FORKING = """
pid = os.fork()
if not pid:
    try:
        group.propose_state(b"x")
    except groupsvc.UsageError as error:
        print(type(error).__name__, flush=True)
    with groupsvc.connect(sys.argv[1]) as own, own.join(sys.argv[2], name="child") as mine:
        print("child", mine.propose_state(b"child").approved, flush=True)
    sys.exit(0)
os.waitpid(pid, 0)
print("parent", group.propose_state(b"parent").approved, flush=True)
"""


def start(domain: LocalDomain, node: str, group: str, program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + program, domain.address(node), group],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def break_connections_to(address: str) -> int:
    """Shut down the sockets of this process that lead there, as a fault would; how many there were."""
    found = 0
    for entry in os.listdir("/proc/self/fd"):
        try:
            copy = os.dup(int(entry))
        except OSError:
            continue
        try:
            with socket.socket(fileno=copy) as connection:
                copy = -1
                if connection.family == socket.AF_UNIX and connection.getpeername() == socket_path(address):
                    connection.shutdown(socket.SHUT_RDWR)
                    found += 1
        except OSError:
            if copy >= 0:
                os.close(copy)
    return found


def line_of(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


def test_aio_the_same(shared_domain: LocalDomain, name: str) -> None:
    """Join at two nodes, vote, set, send, and leave, on one event loop."""

    async def vote(proposal: groupsvc.Proposal) -> Vote:
        return Vote.REJECT if proposal.state == b"never" else Vote.APPROVE

    async def story() -> None:
        async with (
            asyncio.timeout(PATIENCE_S),
            aio.connect(shared_domain.address("n1")) as one,
            aio.connect(shared_domain.address("n2")) as two,
            one.join(name, name="a", attributes=VOTED, events=True) as first,
        ):
            async with two.join(name, name="b", on_proposal=vote, events=True) as second:
                assert (await first.propose_state(b"yes", if_version=0)).approved
                assert not await first.propose_state(b"never")
                for number in range(1000):
                    await first.multicast(b"%d" % number)
                await first.flush()
                await second.sync()
                payloads = [
                    event.payload async for event in second.events(timeout=0) if isinstance(event, groupsvc.Message)
                ]
                assert [b"%d" % number for number in range(1000)] == payloads
            async for event in first.events():
                if isinstance(event, groupsvc.Left):
                    break
            assert [first.me] == list(first.providers)

    asyncio.run(story())
