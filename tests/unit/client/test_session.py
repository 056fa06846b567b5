"""The blocking driver: any number of threads, one socket, and nobody waits for ever."""

from __future__ import annotations

import _thread
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import groupsvc
from groupsvc import GroupAttributes, SessionState, Vote
from groupsvc.drivers import pump
from groupsvc.sansio import session_machine
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_in_memory import Script
from tests.unit.client.daemon_on_a_socket import PATIENCE_S, DaemonOnASocket, daemon_on_a_socket
from tests.unit.client.test_signals import handler


def only_greets(
    daemon: DaemonOnASocket, otherwise: Callable[[wire.AnyClientRequest], list[wire.AnyClientReply]]
) -> None:
    """Nothing but the greeting is as usual."""
    usual = daemon.memory.handle
    daemon.memory.handle = (  # type: ignore[method-assign]
        lambda request: usual(request) if isinstance(request, wire.Hello) else otherwise(request)
    )


def never(*kinds: type[wire.AnyClientRequest]) -> Script:
    """These are not answered."""
    return lambda request: [] if isinstance(request, kinds) else None


class TestConnecting:
    """A session, or an error that says what to do."""

    def test_who_we_talk_to(self, session: groupsvc.Session) -> None:
        assert ("n1", "n1/7/5", SessionState.CONNECTED) == (session.node, session.id, session.state)

    def test_no_daemon(self, tmp_path: Path) -> None:
        with pytest.raises(groupsvc.DaemonUnreachable, match="groupsvc dev"):
            groupsvc.connect(f"ipc://{tmp_path}/none.sock")

    def test_a_daemon_that_opens_no_session(self) -> None:
        with daemon_on_a_socket() as daemon:
            only_greets(daemon, lambda request: [])
            with pytest.raises(groupsvc.DaemonUnreachable, match="did not answer within"):
                groupsvc.connect(daemon.address, timeout=0.1)

    def test_a_daemon_that_refuses(self) -> None:
        with daemon_on_a_socket() as daemon:
            only_greets(daemon, lambda request: [wire.Problem(request.id, "failed", "full", "no room")])
            with pytest.raises(groupsvc.Busy, match="no room"):
                groupsvc.connect(daemon.address)

    def test_the_address_of_the_environment(self, daemon: DaemonOnASocket, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GROUPSVC_ADDRESS", daemon.address)
        with groupsvc.connect() as session:
            assert "n1" == session.node

    @pytest.mark.parametrize("wrong", [{"timeout": 0}, {"timeout": -1.0}, {"name": 3}, {"keys": "x"}, {"address": 3}])
    def test_wrong_arguments(self, wrong: dict[str, object]) -> None:
        with pytest.raises(groupsvc.UsageError):
            groupsvc.connect(**{"address": "ipc:///nowhere", **wrong})  # type: ignore[arg-type]


class TestGroups:
    """The calls, end to end over a socket."""

    def test_join_propose_read_leave(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        with session.join("db", name="alpha", data=b"me", events=True) as group:
            assert group.is_oldest
            assert ("alpha", b"me") == (group.me.name, group.me.data)
            outcome = group.propose_state(b"primary=alpha", if_version=0)
            assert outcome.approved
            assert outcome.require() is outcome
            assert (b"primary=alpha", 1) == (group.state, group.state_version)
            assert ["Joined", "StateChanged", "Approved"] == [type(one).__name__ for one in group.events(timeout=0)]
        assert isinstance(daemon.memory.requests[-1], wire.LeaveAsk)
        with pytest.raises(groupsvc.NotAMember):
            group.propose_state(b"x")

    def test_an_exception_in_the_block_is_a_goodbye(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        with pytest.raises(ZeroDivisionError), session.join("db"):
            _ = 1 / 0
        assert isinstance(daemon.memory.requests[-1], wire.GoodbyeAsk)

    def test_a_leave_that_is_rejected_is_a_goodbye(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        daemon.memory.script = lambda request: (
            [wire.Problem(request.id, "failed", "busy", "")] if isinstance(request, wire.LeaveAsk) else None
        )
        with session.join("db"):
            pass
        assert isinstance(daemon.memory.requests[-1], wire.GoodbyeAsk)

    def test_messages_come_back_in_order(self, session: groupsvc.Session) -> None:
        with session.join("db", events=True) as group:
            ids = [group.multicast(b"%d" % number) for number in range(5000)]
            group.flush()
            found = [event for event in group.events(timeout=0) if isinstance(event, groupsvc.Message)]
        assert [b"%d" % number for number in range(5000)] == [event.payload for event in found]
        assert 5000 == len(set(ids))
        assert found[0].sender == group.me
        assert list(range(2, 5002)) == [event.seq for event in found]

    def test_messages_gather_while_others_are_on_their_way(
        self, daemon: DaemonOnASocket, session: groupsvc.Session
    ) -> None:
        with session.join("db") as group:
            for _ in range(3000):
                group.multicast(b"x")
            group.flush()
        requests = [one for one in daemon.memory.requests if isinstance(one, wire.Multicast)]
        assert len(requests) < 1000
        assert 1 == len(requests[0].payloads), "the first goes at once"

    def test_after_a_burst_a_single_one_goes_though_nobody_waits(
        self, daemon: DaemonOnASocket, session: groupsvc.Session
    ) -> None:
        def came() -> int:
            return sum(len(one.payloads) for one in daemon.memory.requests if isinstance(one, wire.Multicast))

        with session.join("db") as group:
            for burst in range(3):
                for _ in range(10):
                    group.multicast(b"x")
                group.flush()
                group.multicast(b"alone")
                until = time.monotonic() + 5.0
                while came() < 11 * (burst + 1):
                    assert time.monotonic() < until
                    os.sched_yield()
                group.flush()

    def test_too_many_on_their_way(self) -> None:
        with daemon_on_a_socket(never(wire.Multicast)) as daemon:
            session = groupsvc.connect(daemon.address, default_timeout=0.05)
            group = session.join("db")
            for _ in range(groupsvc.limits.outstanding_max):
                group.multicast_nowait(b"x")
            with pytest.raises(groupsvc.WouldBlock, match="as many messages"):
                group.multicast_nowait(b"x")
            with pytest.raises(groupsvc.TimedOut):
                group.multicast(b"x")
            with pytest.raises(groupsvc.OutcomeUnknown) as caught:
                group.flush()
            assert 4096 == len(caught.value.ids)
            session.close()

    def test_wrong_arguments_send_nothing(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        group = session.join("db")
        before = len(daemon.memory.requests)
        wrong: list[Callable[[], object]] = [
            lambda: session.join(""),
            lambda: session.join("a b"),
            lambda: session.join("x" * 201),
            lambda: session.join("_lock/x"),
            lambda: session.join("db"),
            lambda: session.join("x", name="n" * 201),
            lambda: session.join("x", name="\ud800"),
            lambda: session.join("x", data=bytes(70_000)),
            lambda: session.join("x", attributes=GroupAttributes(client_version="v" * 201)),
            lambda: session.join("x", attributes=GroupAttributes(replicas=1 << 70)),
            lambda: session.join("x", timeout=0),
            lambda: session.join("x", timeout=float("nan")),
            lambda: session.join("x", on_proposal=3),  # type: ignore[arg-type]
            lambda: session.join("x", attributes={"durable": True}),  # type: ignore[arg-type]
            lambda: session.join("x", attributes=GroupAttributes(default_vote=Vote.CONTINUE)),
            lambda: session.subscribe("x", wait=-1),
            lambda: group.propose_state("text"),  # type: ignore[arg-type]
            lambda: group.propose_state(bytes(5 << 20)),
            lambda: group.propose_state(b"", if_version=-1),
            lambda: group.propose_state(b"", if_version=1 << 63),
            lambda: group.propose_state(b"", phases=0),
            lambda: group.propose_state(b"", phases=1001),
            lambda: group.propose_state(b"", time_limit=0),
            lambda: group.propose_state(b"", on_busy="wait"),  # type: ignore[arg-type]
            lambda: group.multicast("text"),  # type: ignore[arg-type]
            lambda: group.multicast(bytes(5 << 20)),
            lambda: group.expel(),
            lambda: group.expel("nobody"),
            lambda: group.expel("n" * 64 + "/1/1"),
            lambda: group.expel(f"n1/{1 << 70}/1"),
            lambda: group.expel(*["n1/1/1"] * 10_001),
            lambda: group.expel("n1/1/1", reason="\ud800"),
            lambda: group.change_attributes(),
            lambda: group.change_attributes(speed=3),
            lambda: group.change_attributes(default_vote=Vote.CONTINUE),
            lambda: group.outcome("nothing"),
            lambda: group.leave(code="x"),  # type: ignore[arg-type]
            lambda: group.next_event(timeout=-1),
            lambda: group.flush(timeout=-1),
            lambda: group.held(-1),
        ]
        for number, call in enumerate(wrong):
            try:
                call()
            except groupsvc.UsageError:
                continue
            pytest.fail(f"wrong call number {number} was taken")
        assert before == len(daemon.memory.requests)

    def test_next_event_returns_none_in_time(self, session: groupsvc.Session) -> None:
        with session.join("db") as group:
            assert group.next_event(timeout=0) is None
            assert group.next_event(timeout=0.01) is None

    def test_one_reader_per_group(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        group = session.join("db")
        problem: list[BaseException] = []

        def read() -> None:
            try:
                group.next_event()
            except groupsvc.UsageError as error:
                problem.append(error)

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        while not problem:
            readers[1].join(0.01)
            readers[0].join(0.01)
        daemon.tell(wire.MessagesCame(1, 2, ("n2", 1, 1), (b"x",)))
        for reader in readers:
            reader.join(PATIENCE_S)
        assert 1 == len(problem)

    def test_the_guard_of_what_is_held(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        group = session.join("lock")
        held = group.held(group.fence)
        with held:
            held.check()
            assert 0 < held.valid_for <= 10.0
        daemon.tell(wire.SessionNews("suspended", "no lease"))
        daemon.memory.good_for = 0.0
        while session.state is SessionState.CONNECTED:
            session.dispatch(0.1)
        with pytest.raises(groupsvc.Suspended):
            held.check()
        assert not held.lost.is_set()
        daemon.tell(wire.MemberLost(1, False, "lagged"))
        assert held.lost.wait(PATIENCE_S)
        with pytest.raises(groupsvc.Lost, match="lagged"):
            held.check()

    def test_a_fence_that_nobody_has_seen_is_not_held(self, session: groupsvc.Session) -> None:
        group = session.join("db")
        with pytest.raises(groupsvc.UsageError, match="the newest seen here is"):
            group.held(group.fence + 1)


class TestThreads:
    """Who waits pumps; the others are not forgotten."""

    def test_many_threads_call_at_once(self, session: groupsvc.Session) -> None:
        group = session.join("db")
        results: list[bool] = []

        def work() -> None:
            for _ in range(20):
                results.append(group.propose_state(b"x").approved)
                group.multicast(b"y")
            group.flush()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert [True] * 160 == results
        assert 1 + 160 + 160 == group.view.seq

    def test_a_reader_and_a_caller(self, session: groupsvc.Session) -> None:
        group = session.join("db", events=True)
        seen: list[bytes] = []

        def read() -> None:
            seen.extend(event.value for event in group.events() if isinstance(event, groupsvc.StateChanged))

        reader = threading.Thread(target=read)
        reader.start()
        for number in range(50):
            group.propose_state(b"%d" % number)
        group.leave()
        reader.join(PATIENCE_S)
        assert not reader.is_alive(), "events() ends with the membership"
        assert [b"%d" % number for number in range(50)] == seen

    def test_while_nobody_waits_the_session_is_pumped(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        session.join("db")
        daemon.wait_for(wire.SessionAlive, 2)
        daemon.tell(daemon.memory.opened(1))
        (vote,) = daemon.wait_for(wire.CastVote)
        assert isinstance(vote, wire.CastVote)
        assert "approve" == vote.vote

    def test_a_session_that_breaks_in_the_background_takes_no_other_with_it(
        self, daemon: DaemonOnASocket, session: groupsvc.Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def breaks(fds: frozenset[int]) -> None:
            raise RuntimeError("can't start new thread")

        with daemon_on_a_socket() as other, groupsvc.connect(other.address) as broken:
            monkeypatch.setattr(broken._pump, "pump_from_background", breaks)
            other.tell(wire.SessionNews("suspended", "no lease"))
            daemon.wait_for(wire.SessionAlive, 1 + len(daemon.memory.alive))
            daemon.wait_for(wire.SessionAlive, 2 + len(daemon.memory.alive))

    def test_closing_ends_those_who_wait(self, daemon: DaemonOnASocket) -> None:
        session = groupsvc.connect(daemon.address)
        group = session.join("db")
        reader = threading.Thread(target=lambda: list(group.events()))
        reader.start()
        session.close()
        session.close()
        reader.join(PATIENCE_S)
        assert not reader.is_alive()
        assert SessionState.CLOSED is session.state
        with pytest.raises(groupsvc.UsageError, match="closed"):
            session.groups()

    def test_all_groups_in_one_iterator(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        merged = session.events(timeout=PATIENCE_S)
        one = session.join("one")
        two = session.join("two")
        two.multicast(b"b")
        two.flush()
        one.multicast(b"a")
        found = [(event.group, type(event).__name__) for _, event in zip(range(4), merged, strict=False)]
        assert [("one", "Joined"), ("two", "Joined"), ("two", "Message"), ("one", "Message")] == found

    def test_events_are_read_in_one_place(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        """Else a reader of one group would be given events of others, or wait for ever for its own."""
        one = session.join("one", events=True)
        reader = threading.Thread(target=lambda: list(one.events()))
        reader.start()
        while not one._membership.buffer.reader:  # type: ignore[union-attr]
            reader.join(0.001)
        with pytest.raises(groupsvc.UsageError, match="another thread"):
            session.events()
        one.goodbye()
        reader.join(PATIENCE_S)
        two = session.join("two", events=True)
        merged = session.events(timeout=PATIENCE_S)
        three = session.join("three")
        three.multicast(b"x")
        three.flush()
        for group in (two, three):
            for read in (group.next_event, group.events):
                with pytest.raises(groupsvc.UsageError, match=r"session\.events\(\)"):
                    read()
        assert ["two", "three", "three"] == [event.group for _, event in zip(range(3), merged, strict=False)]

    def test_a_loop_of_ones_own(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        group = session.join("db", events=True)
        session.dispatch()
        poll = select.poll()
        poll.register(session.fileno(), select.POLLIN)
        poll.poll(1000)
        session.dispatch()
        daemon.tell(wire.MessagesCame(1, 2, ("n2", 1, 1), (b"x",)))
        events: list[groupsvc.Event] = []
        while len(events) < 2:
            assert poll.poll(PATIENCE_S * 1000)
            session.dispatch()
            events.extend(group.events(timeout=0))
        assert isinstance(events[1], groupsvc.Message)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session does not give up before a busy machine has come to connect it again."""
    for module in (pump, session_machine):
        monkeypatch.setattr(module, "GRACE_S", PATIENCE_S)


class TestConnectionsBreak:
    """The session goes on, or says that it is lost."""

    @pytest.mark.usefixtures("patient")
    def test_a_call_in_hand_ends_as_if_nothing_had_happened(
        self, daemon: DaemonOnASocket, session: groupsvc.Session
    ) -> None:
        group = session.join("db", events=True)
        for number in range(5):
            daemon.server.cut()
            assert group.propose_state(b"%d" % number).approved
        while session.state is SessionState.SUSPENDED:  # an answer that was missed comes before the lease
            session.dispatch(PATIENCE_S)
        assert SessionState.CONNECTED is session.state
        events = list(group.events(timeout=0))
        changed = [event.value for event in events if isinstance(event, groupsvc.StateChanged)]
        assert [b"0", b"1", b"2", b"3", b"4"] == changed
        told = [type(event) for event in events if isinstance(event, groupsvc.Suspended | groupsvc.Resumed)]
        assert [groupsvc.Suspended, groupsvc.Resumed] * (len(told) // 2) == told

    @pytest.mark.usefixtures("patient")
    def test_many_threads_while_it_breaks_again_and_again(
        self, daemon: DaemonOnASocket, session: groupsvc.Session
    ) -> None:
        group = session.join("db", events=True)
        results: list[bool] = []

        def work() -> None:
            for _ in range(15):
                results.append(group.propose_state(b"x").approved)
                group.multicast(b"y")
            group.flush()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for count in range(10, 60, 10):
            daemon.wait_for(wire.ChangeStateAsk, count)
            daemon.server.cut()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert [True] * 60 == results
        not_of_the_stream = groupsvc.Approved | groupsvc.Suspended | groupsvc.Resumed
        seen = [event.seq for event in group.events(timeout=0) if not isinstance(event, not_of_the_stream)]
        assert list(range(1, 122)) == seen, "nothing is lost, nothing is done twice"

    def test_a_daemon_that_forgot_us(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        group = session.join("db", events=True)
        daemon.memory.knows_the_session = False
        daemon.server.cut()
        assert ["Joined", "Suspended", "Lost"] == [type(event).__name__ for event in group.events()]
        assert SessionState.LOST is session.state
        with pytest.raises(groupsvc.DaemonUnreachable, match="connect and join again"):
            session.groups()

    def test_garbage_is_the_end_of_the_session(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        group = session.join("db", events=True)
        daemon.server.say(wire.SessionIs(99, 1, b"", 0, 1.0, ("n1", 7, 0)))
        assert ["Joined", "Lost"] == [type(event).__name__ for event in group.events()]


class TestInterrupts:
    """Ctrl-C ends a wait and nothing else."""

    def test_a_wait_is_interrupted_and_the_session_is_as_good_as_before(self, session: groupsvc.Session) -> None:
        group = session.join("db", events=True)
        timer = threading.Timer(0.05, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            for _ in group.events():
                pass
        assert group.propose_state(b"still here").approved

    def test_a_call_is_interrupted_and_its_late_answer_disturbs_nobody(self) -> None:
        with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
            daemon.memory.script = never(wire.JoinAsk)
            timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                session.join("db")
            ask = daemon.memory.requests[-1]
            daemon.memory.script = None
            daemon.tell(*daemon.memory.answers(ask))
            daemon.wait_for(wire.GoodbyeAsk)
            assert session.groups() == ()

    def test_a_storm_of_interrupts_tears_nothing(self, session: groupsvc.Session) -> None:
        group = session.join("db", events=True)
        over = threading.Event()
        is_exposed = False  # the storm is for the library, not for the lines of this test

        def interrupt(number: int, frame: FrameType | None) -> None:
            nonlocal is_exposed
            if is_exposed:
                is_exposed = False
                raise KeyboardInterrupt

        def storm() -> None:
            while not over.wait(0.001):
                os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=storm)
        with handler(signal.SIGINT, interrupt):
            thread.start()
            hits = 0
            while hits < 50:
                try:
                    is_exposed = True
                    group.multicast(b"x")
                    group.next_event(timeout=0.001)
                    is_exposed = False
                except KeyboardInterrupt:
                    hits += 1
            over.set()
            thread.join()
        group.flush()
        assert group.sync() == group.view.seq


PROGRAM = """
import os, sys, threading
import groupsvc
session = groupsvc.connect(sys.argv[1])
group = session.join("db", events=True)
"""


def run(daemon: DaemonOnASocket, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", PROGRAM + program, daemon.address],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip


class TestProcesses:
    """Forks and ends."""

    @pytest.mark.parametrize(
        "program",
        [
            "",
            "threading.Thread(target=lambda: list(group.events()), daemon=True).start()",
            "group.multicast(b'x')",
            "session.close()",
            "raise SystemExit(0)",
        ],
        ids=["plain", "a thread waits", "messages on their way", "closed", "exit"],
    )
    def test_a_program_ends_cleanly(self, daemon: DaemonOnASocket, program: str) -> None:
        done = run(daemon, program)
        assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
        daemon.wait_for(wire.CloseSession)

    def test_a_forked_child_connects_for_itself(self, daemon: DaemonOnASocket) -> None:
        program = """
held = group.held(group.fence)
pid = os.fork()
if not pid:
    try:
        group.propose_state(b"x")
    except groupsvc.UsageError as error:
        print(error)
    for look in (held.check, lambda: held.valid_for, lambda: group.held(0), session.fileno):
        try:
            print("held", look())
        except groupsvc.UsageError:
            pass
    print(session.state.name)
    session.close()
    with groupsvc.connect(sys.argv[1]) as own, own.join("other") as mine:
        print(mine.propose_state(b"child").approved)
    sys.stdout.flush()
    sys.exit(0)
os.waitpid(pid, 0)
print(group.propose_state(b"parent").approved)
"""
        done = run(daemon, program)
        assert "" == done.stderr
        first, *rest = done.stdout.splitlines()
        assert "a forked child calls groupsvc.connect()" in first
        assert ["LOST", "True", "True"] == rest, "and nothing is held there"
