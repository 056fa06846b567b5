"""Signals: a handler may use the session, and what it raises comes between two steps."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

import groupsvc
from groupsvc import SessionState
from groupsvc.drivers.interrupts import Guard
from groupsvc.events import Message
from groupsvc.sansio.event_buffer import EventBuffer, MessageRun
from groupsvc.testing import LocalDomain
from groupsvc.views import View
from groupsvc.voting_words import Vote
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_on_a_socket import PATIENCE_S, DaemonOnASocket, daemon_on_a_socket

ROUNDS = 15
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1]


@contextmanager
def handler(number: signal.Signals, handle: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """One of the program's own."""
    before = signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, before)


class TooLong(Exception):
    """What a program raises when its alarm rings."""


def ring(number: int, frame: FrameType | None) -> None:
    raise TooLong


class TestGuards:
    """What must happen whole is not torn, whatever signal comes."""

    @pytest.mark.parametrize("number", SIGNALS)
    def test_what_a_handler_raises_comes_after_the_step(self, number: signal.Signals) -> None:
        done: list[str] = []

        def step() -> None:
            with Guard(threading.RLock()):
                os.kill(os.getpid(), number)
                done.append("the rest of it")

        with handler(number, ring), pytest.raises(TooLong):
            step()
        assert ["the rest of it"] == done

    @pytest.mark.parametrize("number", SIGNALS)
    def test_the_handler_of_the_program_is_there_again(self, number: signal.Signals) -> None:
        with handler(number, ring):
            with Guard(threading.RLock()):
                pass
            assert signal.getsignal(number) is ring

    def test_who_comes_back_into_a_step_is_told_so(self) -> None:
        guard = Guard(threading.RLock())
        with pytest.raises(groupsvc.UsageError, match="in the middle"), guard, guard:
            pass
        with guard:
            pass


class TestHandlers:
    """A handler that closes the session, as services do at the end."""

    @pytest.mark.parametrize("number", SIGNALS)
    def test_closing_while_the_program_waits(self, daemon: DaemonOnASocket, number: signal.Signals) -> None:
        session = groupsvc.connect(daemon.address)
        group = session.join("db")
        with handler(number, lambda *_: session.close()):
            threading.Timer(0.05, lambda: os.kill(os.getpid(), number)).start()
            assert [] == list(group.events())
        assert SessionState.CLOSED is session.state
        daemon.wait_for(wire.CloseSession)

    @pytest.mark.parametrize("number", SIGNALS)
    def test_closing_while_the_program_sends(self, daemon: DaemonOnASocket, number: signal.Signals) -> None:
        """A program that only sends is inside of the lock half of its time."""

        def send_and_close() -> groupsvc.Session:
            session = groupsvc.connect(daemon.address)
            group = session.join("db")
            with handler(number, lambda *_: session.close()):
                threading.Timer(0.005, lambda: os.kill(os.getpid(), number)).start()
                while not group.ended:
                    with contextlib.suppress(groupsvc.WouldBlock, groupsvc.NotAMember):
                        group.multicast_nowait(b"x")
            return session

        watchdog = threading.Timer(
            5 * PATIENCE_S, lambda: os._exit(3)
        )  # nothing else ends a thread that waits for itself
        watchdog.start()
        for _ in range(20):
            assert SessionState.CLOSED is send_and_close().state
        watchdog.cancel()

    def test_who_waits_when_a_handler_has_used_the_session_is_told_at_once(self) -> None:
        """What comes next was read by the background, and nobody woke who waits until it had to say that it lives."""
        with LocalDomain(nodes=1) as domain, domain.connect("n1") as session, domain.connect("n1") as other:
            waiting, last = (one.join("db").barrier() for one in (session, other))
            came: list[float] = []

            def come() -> None:
                for _ in range(ROUNDS):
                    rings.wait(PATIENCE_S)
                    rings.clear()
                    os.kill(os.getpid(), signal.SIGALRM)
                    handled.wait(PATIENCE_S)
                    handled.clear()
                    last.wait()
                    came.append(time.monotonic())

            rings, handled = threading.Event(), threading.Event()

            def handle(number: int, frame: FrameType | None) -> None:
                session.groups()
                handled.set()

            thread = threading.Thread(target=come)
            late = []
            with handler(signal.SIGALRM, handle):
                thread.start()
                for number in range(ROUNDS):
                    threading.Timer(0.02, rings.set).start()
                    waiting.wait()
                    now = time.monotonic()
                    while len(came) <= number:
                        pass
                    late.append(now - came[number])
                thread.join()
            assert statistics.median(late) < 0.1

    def test_an_alarm_reaches_the_program_and_costs_no_session(self) -> None:
        """It rings somewhere in the middle of everything, again and again."""
        with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
            group = session.join("db", events=True)
            hits = 0
            with handler(signal.SIGALRM, ring):
                while hits < 200:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 0.0003)
                        while True:
                            group.multicast(b"x")
                            group.next_event(timeout=0.001)
                    except TooLong:
                        hits += 1
            group.flush()
            assert group.sync() == group.view.seq
            assert SessionState.CONNECTED is session.state


class TestEvents:
    """An interrupt may cost the event in hand, and no more."""

    def test_after_an_interrupt_at_any_line_the_buffer_is_right_about_what_it_has(self) -> None:
        view = View(0, 0, (), b"", 0, Vote.APPROVE)
        line = 0
        while True:
            buffer = EventBuffer()
            buffer.append(MessageRun("db", 1, None, "n1/1/1", (b"a", b"b"), view), group="db")
            buffer.append(Message(None, b"c", 3, "db", "n1/1/1", view), group="db")
            left = line = line + 1

            def interrupt(frame: FrameType, event: str, arg: object) -> object:
                nonlocal left
                if frame.f_code.co_name != "take":
                    return None
                left -= event == "line"
                if not left:
                    raise KeyboardInterrupt
                return interrupt

            found = 0
            interrupted = False
            before = sys.gettrace()
            sys.settrace(interrupt)  # type: ignore[arg-type]
            try:
                while buffer.take() is not None:
                    found += 1
            except KeyboardInterrupt:
                interrupted = True
            finally:
                sys.settrace(before)
            while buffer.take() is not None:
                found += 1
            assert buffer.is_empty, f"interrupted at line {line}"
            assert found in (1, 2, 3)
            if not interrupted:
                break
        assert line > 5


class TestForks:
    """A child that was forked by another thread, while the main one was in the middle of a step."""

    @pytest.mark.parametrize("number", SIGNALS)
    def test_the_child_has_the_handlers_of_the_program(self, number: signal.Signals) -> None:
        found: list[int] = []

        def fork() -> None:
            pid = os.fork()
            if not pid:
                os._exit(0 if signal.getsignal(number) is ring else 1)
            found.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

        with handler(number, ring), Guard(threading.RLock()):
            thread = threading.Thread(target=fork)
            thread.start()
            thread.join()
        assert [0] == found
