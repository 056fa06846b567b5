"""The asyncio driver: the same machine, driven by the program's own event loop.

No thread, no lock, and no ``zmq.asyncio``, which costs four times as much: the loop watches the descriptors of the
socket. They tell once that something came, so every turn reads until nothing is left, and after a send it looks again.
Messages of one iteration of the loop gather and go out together at its end.

Callbacks (``on_proposal``, ``on_state``) run on the loop, one at a time, in one task; they may be ``async def``. If the
program blocks its loop, it is silent towards the daemon, and what it knows runs out by its own clock: that is meant.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import inspect
import logging
import math
import os
import threading
from collections.abc import Callable
from typing import Any

from .. import clock
from ..errors import DaemonUnreachable, Failed, GroupServiceError, PeerProtocolError, TimedOut, UsageError
from ..keys import GivenKeys, Keys
from ..positions import known_at
from ..sansio.applying import MachineDue
from ..sansio.asking import Start
from ..sansio.membership_machine import Membership
from ..sansio.problems import error_of
from ..sansio.session_machine import DenialDue, Due, SessionMachine, StateDue, VoteDue
from ..session_states import IS_OVER, SessionState
from ..voting import Answer, Proposal
from ..wire.client_messages import Welcome
from ..wire.limits import GRACE_S, TIMEOUT_S_MAX
from .connection import DaemonConnection
from .daemon_socket import DaemonSocket, does_not_answer
from .dead_links import silence_s_max
from .exchange import FRAMES_PER_TURN, exchange
from .pump import KNOCK_S, UNSENT_WAIT_S, judged

_log = logging.getLogger("groupsvc.client")

VOTE_S = 5.0
"""A vote that is cast by another thread waits so long for the loop to take it."""


class LoopPump:
    """One session on one event loop."""

    def __init__(self, address: str, name: str, keys: Keys | None = None) -> None:
        self.address = address
        self._keys: GivenKeys = keys or False  # what was decided when it was opened
        self.machine = SessionMachine(name, self._cast, known_at(address), silence_s_max(address))
        self.state_listeners: list[Callable[[SessionState], object]] = []
        self.welcome: Welcome
        self._name = name
        self._pid = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._socket: DaemonSocket | None = None
        self._waiters: set[asyncio.Future[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._turn_is_due = False
        self._parted = 0
        self._is_ending = False
        self._due: asyncio.Queue[Due] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._callbacks: asyncio.Task[None] | None = None
        self._in_proposal = False

    # --- Opening and closing ---

    async def open(self, timeout: float) -> None:
        """Knock, greet, open the session."""
        until = clock.now() + timeout
        connection = await self._connection(timeout)
        self.welcome = connection.welcome
        self._take(connection.detach())
        machine = self.machine
        try:
            machine.connected(clock.now())
            self.turn()
            is_open = await self.wait_until(lambda: machine.is_on or machine.state in IS_OVER, until)
            if machine.refused is not None:
                raise error_of(machine.refused, f"open a session with the daemon at {self.address}")
            if not is_open:
                raise does_not_answer(self.address, timeout)
            if machine.state in IS_OVER:
                raise DaemonUnreachable(f"could not open a session at {self.address}: {machine.end_reason}")
        except BaseException:
            self.end()
            raise

    async def _connection(self, timeout: float) -> DaemonConnection:
        """Greeting may wait for a slow daemon, so a helping thread does it.

        One of our own: a program that ends waits for those of the loop's executor, and so for a daemon that is silent.
        """
        connect = functools.partial(DaemonConnection, self.address, timeout, client=self._name or None, keys=self._keys)
        greeting: asyncio.Future[DaemonConnection] = self._loop.create_future()

        def greet() -> None:
            try:
                connection, error = connect(), None
            except BaseException as problem:
                connection, error = None, problem
            try:
                self._loop.call_soon_threadsafe(_settle, greeting, connection, error)
            except RuntimeError:  # the loop is closed
                if connection is not None:
                    connection.close()

        threading.Thread(target=greet, name="groupsvc connect", daemon=True).start()
        return await greeting

    def _take(self, socket: DaemonSocket) -> None:
        self._socket = socket
        self._is_ending = False
        self._loop.add_reader(socket.fds[0], self.turn)
        self._loop.add_reader(socket.fds[1], self._connection_changed)

    def _drop_socket(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            for fd in socket.fds:
                self._loop.remove_reader(fd)
            socket.close()

    async def close(self, start: Start, timeout: float) -> None:
        """Say goodbye to everything, then end."""
        if os.getpid() != self._pid or self.machine.state is SessionState.CLOSED:
            return
        self.check_usable()  # on another loop nothing of this one may be touched
        try:
            if self.machine.state is not SessionState.LOST:
                with contextlib.suppress(GroupServiceError):
                    await self.finish(start, timeout)
        finally:
            self.end()

    def end(self) -> None:
        """End without a word."""
        self.machine.end()
        self._drop_socket()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._hand_out()
        self._wake()
        for task in self._tasks:
            has_work = task is self._callbacks and not self._due.empty()  # it ends by itself, when all are told
            if task is not asyncio.current_task() and not has_work:
                task.cancel()

    # --- Calls and waiting ---

    async def finish(self, start: Start, timeout: float) -> Any:
        """Start a call and wait for its end; one that is longer than a daemon waits is started again."""
        self.check_usable()
        until = clock.now() + timeout
        while True:
            left = until - clock.now()
            call = start(clock.now(), min(max(left, 0.001), TIMEOUT_S_MAX))
            ended: asyncio.Future[None] = self._loop.create_future()
            call.on_done = lambda ended=ended: None if ended.done() else ended.set_result(None)
            self.turn()
            try:
                await ended
            except asyncio.CancelledError:
                self.machine.abandon(call)
                self.turn()
                raise
            try:
                return call.result
            except TimedOut:
                if timeout <= TIMEOUT_S_MAX or clock.now() >= until:
                    raise

    @property
    def is_mine(self) -> bool:
        """Whether this process made it, and not one that it was forked from."""
        return os.getpid() == self._pid

    def check_process(self) -> None:
        """Raise in a child of the process that made it."""
        if not self.is_mine:
            text = f"this session belongs to process {self._pid}; a forked child connects for its own"
            raise UsageError(text)

    def check_usable(self) -> None:
        """Raise in a child of the process that made it, and on another loop."""
        self.check_process()
        if _running_loop() is not self._loop:
            text = "this session belongs to another event loop; use it in coroutines of the loop it was connected on"
            raise UsageError(f"{text}, or connect again")

    def check_may_wait_for_votes(self, membership: Membership) -> None:
        """Raise in a callback that would wait for itself."""
        if self._callbacks is None or asyncio.current_task() is not self._callbacks:
            return
        if self._in_proposal or callable(membership.on_proposal):
            text = (
                f"a proposal to group {membership.group!r} inside a callback would wait for a vote that only this one"
                " can cast; propose from another task, or send a message with multicast"
            )
            raise UsageError(text, group=membership.group)

    async def wait_until(self, ready: Callable[[], bool], until: float) -> bool:
        """Until ``ready()``; False if the time is over first."""
        while not ready():
            left = until - clock.now()
            if left <= 0:
                return False
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.add(waiter)
            try:
                await asyncio.wait((waiter,), timeout=None if left == math.inf else left)
            finally:
                self._waiters.discard(waiter)
        return True

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    # --- One turn ---

    def turn_soon(self) -> None:
        """At the end of this iteration of the loop."""
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._due_turn)

    def _due_turn(self) -> None:
        self._turn_is_due = False
        self.turn()

    def _connection_changed(self) -> None:
        if self._socket is not None:
            self._is_ending = self._is_ending or self._socket.is_over
            self.turn()

    def turn(self) -> None:
        """Send, receive, let time pass."""
        machine, socket = self.machine, self._socket
        state, received = machine.state, 0
        try:
            if socket is None:
                machine.tick(clock.now())
            else:
                received = exchange(machine, socket)
                self._is_ending = self._is_ending or machine.is_hung_up
                if self._is_ending and received < FRAMES_PER_TURN:
                    self._lost_connection()
        except PeerProtocolError as problem:
            _log.error("the daemon at %s sent what cannot be understood: %s", self.address, problem)
            machine.lose(str(problem))
        except Exception as problem:  # done by half: what is left of it cannot be trusted
            _log.exception("a session with %s broke", self.address)
            machine.lose(f"an error in the library: {problem!r}")
        if machine.state in IS_OVER:
            self._drop_socket()
        self._hand_out()
        self._set_timer()
        if received >= FRAMES_PER_TURN:
            self.turn_soon()
        if received or machine.state is not state or machine.parted != self._parted:
            self._parted = machine.parted
            self._wake()

    def _set_timer(self) -> None:
        deadline, now = self.machine.deadline, clock.now()
        if self._socket is not None and self._socket.unsent:
            deadline = min(deadline, now + UNSENT_WAIT_S)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline < math.inf:
            self._timer = self._loop.call_later(max(0.0, deadline - now), self.turn)

    # --- Connections break ---

    def _lost_connection(self) -> None:
        self.machine.disconnected(clock.now())
        self._drop_socket()
        if self.machine.state in IS_OVER or not self.machine.id:
            self.machine.lose("the daemon closed the connection or died")
        else:
            self._start(self._reconnect())

    def _start(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _reconnect(self) -> None:
        """Until the daemon's patience ends; then the machine itself says that all is lost."""
        from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

        retrying = AsyncRetrying(
            stop=stop_after_delay(GRACE_S),
            wait=wait_random_exponential(multiplier=0.02, max=0.3),
            retry=retry_if_exception_type(Failed),
            reraise=True,
        )
        try:
            connection: DaemonConnection = await retrying(self._connection, KNOCK_S)
        except GroupServiceError as problem:
            _log.warning("the daemon at %s could not be reached again: %s", self.address, problem)
            return
        if self.machine.state in IS_OVER:
            connection.close()
            return
        self._take(connection.detach())
        self.machine.connected(clock.now())
        self.turn()

    # --- Callbacks ---

    def _hand_out(self) -> None:
        due = self.machine.due
        while due:
            task = due.popleft()
            if isinstance(task, StateDue) and not self.state_listeners:
                continue
            self._due.put_nowait(task)
            if self._callbacks is None or self._callbacks.done():
                self._callbacks = self._start(self._run_callbacks())

    async def _run_callbacks(self) -> None:
        while self.machine.state not in IS_OVER or not self._due.empty():
            task = await self._due.get()
            self.machine.busy_since = clock.now()
            try:
                if isinstance(task, VoteDue):
                    await self._ask_for_vote(task)
                elif isinstance(task, MachineDue):
                    await self._run_machine(task)
                elif isinstance(task, DenialDue):
                    self._report("a vote was not taken", task.error)
                else:
                    await self._tell_state(task)
            finally:
                self.machine.busy_since = None

    @property
    def is_callback(self) -> bool:
        """Whether the caller *is* a callback."""
        return self._callbacks is not None and asyncio.current_task() is self._callbacks

    async def _run_machine(self, due: MachineDue) -> None:
        try:
            due.run()
            for error in due.unseen:
                self._report("no checkpoint was taken: snapshot() raised an error", error)
        finally:
            due.settle()
            self.turn()
            self._wake()
        await asyncio.sleep(0)  # a long line must not stop the loop

    async def _tell_state(self, due: StateDue) -> None:
        for listener in list(self.state_listeners):
            try:
                found = listener(due.state)
                if inspect.isawaitable(found):
                    await found
            except (Exception, asyncio.CancelledError) as error:
                if _is_being_cancelled():
                    raise
                _log.exception("on_state(%s) raised an error", due.state.name)
                self._report(f"on_state({due.state.name}) raised an error", error)

    async def _ask_for_vote(self, due: VoteDue) -> None:
        """Ask the application; an error of it is the default vote, and everybody sees why."""
        membership, proposal = due.membership, due.proposal
        if not membership.is_open(proposal):
            return
        assert callable(membership.on_proposal)
        answer: Answer | None = None
        self._in_proposal = True
        try:
            found = membership.on_proposal(proposal)
            if inspect.isawaitable(found):
                found = await found
            if found is None:
                return  # it votes later
            answer = judged(found, proposal)
        except (Exception, asyncio.CancelledError) as error:
            if _is_being_cancelled():
                raise
            _log.exception("on_proposal gave no vote; %s gets the default vote", proposal.in_words)
            self._report(f"on_proposal gave no vote on {proposal.in_words}", error)
        finally:
            self._in_proposal = False
        with contextlib.suppress(GroupServiceError):  # too late, or it voted by itself
            self.check_process()
            membership.vote_as_returned(proposal, answer)
            self.turn()

    def _report(self, what: str, error: BaseException) -> None:
        """As the loop reports what no task waits for: the log alone may have no reader."""
        self._loop.call_exception_handler({"message": f"groupsvc: {what}", "exception": error})

    def _cast(self, membership: Membership, proposal: Proposal, answer: Answer | None) -> None:
        self.check_process()
        if threading.get_ident() == self._thread:
            membership.vote(proposal, answer)
            self.turn()
            return
        done: concurrent.futures.Future[None] = concurrent.futures.Future()

        def vote() -> None:
            if not done.set_running_or_notify_cancel():
                return  # it was withdrawn
            try:
                membership.vote(proposal, answer)
                done.set_result(None)
            except BaseException as error:
                done.set_exception(error)
            self.turn()

        what = f"could not vote on {proposal.in_words} in group {proposal.group!r}"
        try:
            self._loop.call_soon_threadsafe(vote)
        except RuntimeError:
            raise Failed(f"{what}: its event loop is closed; connect again", group=proposal.group) from None
        try:
            done.result(VOTE_S)
        except concurrent.futures.TimeoutError:
            if done.cancel():
                text = f"{what}: its event loop has not run for {VOTE_S:g} s; do not block it, and vote again"
                raise TimedOut(text, group=proposal.group) from None
            done.result()  # it has just been cast; or it came too late, which is a TimeoutError as well


def _is_being_cancelled() -> bool:
    """Whether it is this task that ends, and not only something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _settle(
    greeting: asyncio.Future[DaemonConnection], connection: DaemonConnection | None, error: BaseException | None
) -> None:
    if connection is None:
        if not greeting.done():
            greeting.set_exception(error or AssertionError("neither greeted nor refused"))
    elif greeting.done():  # whoever wanted it was cancelled
        connection.close()
    else:
        greeting.set_result(connection)
