"""The blocking driver: one session's machine and socket, shared by any number of threads.

Who waits, pumps. A thread that needs an answer sends its request, and then reads the socket itself until the answer is
there; others that wait meanwhile sleep and are woken by it; when it leaves, one of them takes over, and if nobody waits
the background thread does. So a call costs no change of threads, and the session lives while the program computes.

Rules:

- The machine and the socket are touched only under the guard, and nobody waits under it.
- Waiting is polling the socket's *descriptor*, which needs no lock. It tells once that something came, so whoever reads
  or sends goes on until a look found nothing (``_exchange``); who has done neither since needs no look of his own.
- A connection that broke is replaced by a thread made for that, which tries until the daemon's patience ends.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import select
import threading
import weakref
from collections.abc import Callable, Collection
from typing import Any

from .. import clock
from ..errors import DaemonUnreachable, Failed, GroupServiceError, PeerProtocolError, TimedOut, UsageError
from ..events import Event
from ..keys import GivenKeys, Keys
from ..positions import known_at
from ..sansio.applying import MachineDue
from ..sansio.asking import Start
from ..sansio.calls import Call
from ..sansio.event_buffer import EventBuffer
from ..sansio.membership_machine import Membership
from ..sansio.problems import error_of
from ..sansio.session_machine import DenialDue, SessionMachine, StateDue, VoteDue
from ..session_states import IS_OVER, SessionState
from ..voting import Answer, Proposal, problem_with_answer
from ..voting_words import Vote
from ..wire.client_messages import CloseSession
from ..wire.limits import GRACE_S, TIMEOUT_S_MAX
from .background import background
from .callbacks import Callbacks, report
from .connection import DaemonConnection
from .daemon_socket import DaemonSocket, does_not_answer
from .dead_links import silence_s_max
from .exchange import FRAMES_PER_TURN, exchange
from .interrupts import Guard

_log = logging.getLogger("groupsvc.client")

UNSENT_WAIT_S = 0.01
"""When ZeroMQ takes no more, it is tried again after this."""

GATHER_S = 0.005
"""Of a program that sends in bursts, and does something else before it waits again, a message may lie for so long."""

KNOCK_S = 0.5
"""How long one attempt to reach the daemon again may take."""

EXIT_S = 0.5
"""At the end of the process, no session holds it up longer than this."""


class Pump:
    """Everything about one session that needs a lock."""

    def __init__(self, address: str, name: str, timeout: float, keys: Keys | None = None) -> None:
        self.address = address
        self._keys: GivenKeys = keys or False  # what was decided when it was opened
        self.is_foreign = False
        self.deadline = math.inf  # for the background
        self._due = math.inf  # for whoever reads
        self.machine = SessionMachine(name, _weakly(self._cast), known_at(address), silence_s_max(address))
        self.lock = threading.RLock()  # a handler of a signal may find it held by its own thread
        self.guard = Guard(self.lock)
        self.state_listeners: list[Callable[[SessionState], object]] = []
        self.turns = 0  # with something received: what ``dispatch`` waits for
        self._name = name
        self._pid = os.getpid()
        self._callbacks = Callbacks(f"groupsvc callbacks {name}".rstrip(), _weakly(self._callback_runs))
        self._in_proposal = False
        self._sleepers: list[threading.Lock] = []
        self._pumping = 0  # the thread that reads the socket, 0: the background
        self._socket: DaemonSocket | None = None
        self._kick = self._eventfd(0)
        self._poll = select.poll()
        self._poll.register(self._kick, select.POLLIN)
        self._ready = -1
        self._gathered = False  # since the background looked last
        self._gathers_until = math.inf  # when it looks again
        self._has_more = False  # more has come than one turn takes
        self._is_ending = False  # the other end of the connection has gone
        self._over = threading.Event()
        self._background = background(self)
        self._open(timeout)

    # --- Opening and closing ---

    def _open(self, timeout: float) -> None:
        until = clock.now() + timeout
        connection = DaemonConnection(self.address, timeout, client=self._name or None, keys=self._keys)
        self.welcome = connection.welcome
        try:
            with self.guard:
                self._take(connection.detach())
                self.machine.connected(clock.now())
            machine = self.machine
            is_open = self.wait_until(lambda: machine.is_on or machine.state in IS_OVER, until)
            if machine.refused is not None:
                raise error_of(machine.refused, f"open a session with the daemon at {self.address}")
            if not is_open:
                raise does_not_answer(self.address, timeout)
            if machine.state in IS_OVER:
                raise DaemonUnreachable(f"could not open a session at {self.address}: {machine.end_reason}")
        except BaseException:
            self.end()
            raise
        self._background.add(self)

    def _take(self, socket: DaemonSocket) -> None:
        self._socket = socket
        self._is_ending = False
        for fd in socket.fds:
            self._poll.register(fd, select.POLLIN)
        self._background.watch(self, socket.fds)
        if not self._pumping:
            self._background.resume(socket.fds[0])

    def _drop_socket(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            self._background.unwatch(socket.fds)
            for fd in socket.fds:
                self._poll.unregister(fd)
            socket.close()

    def close(self, start: Start, timeout: float) -> None:
        """Say goodbye to everything, then end."""
        if self.is_foreign or self.machine.state is SessionState.CLOSED:
            return
        try:
            if self.machine.state is not SessionState.LOST:
                with contextlib.suppress(GroupServiceError):
                    self.finish(start, timeout)
        finally:
            self.end()

    def end(self) -> None:
        """End without a word."""
        if self.is_foreign:
            return
        self._background.remove(self)
        with self.guard:
            self._over.set()
            self.machine.end()
            self._drop_socket()
            self._hand_out()
            self._wake_others()
        self._callbacks.end()

    def end_with_the_process(self) -> None:
        """The interpreter ends: tell the daemon, wait a moment, wake nobody."""
        if self.is_foreign or not self.lock.acquire(timeout=EXIT_S):
            return
        try:
            self._over.set()
            machine, socket = self.machine, self._socket
            if socket is None or not machine.is_on:
                return
            machine.say_what_gathers()
            close = CloseSession(machine.next_id())
            machine.say(close)
            socket.send(machine.outbox)
            machine.outbox.clear()
            _wait_for_answer(socket, close.id, clock.now() + EXIT_S)
            self._drop_socket()
        except Exception:
            _log.debug("a session could not be closed at exit", exc_info=True)
        finally:
            self.lock.release()

    # --- Calls ---

    def finish(self, start: Start, timeout: float) -> Any:
        """Start a call and wait for its end; one that is longer than a daemon waits is started again."""
        self.check_process()
        if 0.001 <= timeout <= TIMEOUT_S_MAX:
            return self._ended(start, timeout).result
        until = clock.now() + timeout
        while True:
            left = until - clock.now()
            call = self._ended(start, min(max(left, 0.001), TIMEOUT_S_MAX))
            try:
                return call.result
            except TimedOut:
                if timeout <= TIMEOUT_S_MAX or clock.now() >= until:
                    raise

    def _ended(self, start: Start, timeout: float) -> Call:
        """A call from its start to its end; if the caller is interrupted at any point, it is given up."""
        call: Call | None = None

        def begin() -> None:
            nonlocal call
            call = start(clock.now(), timeout)

        try:
            self.wait_until(lambda: call is not None and call.is_done, math.inf, begin)
            assert call is not None
            return call
        except BaseException:
            if call is not None:
                with self.guard:
                    self.machine.abandon(call)
                    self._turn()
            raise

    @property
    def is_mine(self) -> bool:
        """Whether this process made it, and not one that it was forked from."""
        return not self.is_foreign and os.getpid() == self._pid

    def check_usable(self) -> None:
        """Raise where it cannot be used."""
        self.check_process()

    def check_process(self) -> None:
        """Raise in a child of the process that made it."""
        if self.is_foreign or os.getpid() != self._pid:
            text = f"this session belongs to process {self._pid}; a forked child calls groupsvc.connect() for its own"
            raise UsageError(text)

    def check_may_wait_for_votes(self, membership: Membership) -> None:
        """Raise in a callback that would wait for itself."""
        if self._callbacks.is_here and (self._in_proposal or callable(membership.on_proposal)):
            text = (
                f"a proposal to group {membership.group!r} inside a callback would wait for votes that only the thread"
                " of this callback can cast; propose from another thread, or send a message with multicast"
            )
            raise UsageError(text, group=membership.group)

    def do(self, step: Callable[[], Any]) -> Any:
        """One step under the guard, and what follows from it is sent."""
        self.check_usable()
        with self.guard:
            found = step()
            self._turn()
            self._leave_the_rest()
            return found

    def gather(self) -> None:
        """Under the lock: something is about to wait for company. The background sends it if nobody does before."""
        self._gathered = True
        if self._gathers_until == math.inf:
            self._gathers_until = clock.now() + GATHER_S
            self.deadline = min(self.deadline, self._gathers_until)
            self._background.wake()

    def _look_what_gathers(self) -> None:
        """While there are bursts the background looks every ``GATHER_S``, and nobody has to wake it for each."""
        if clock.now() >= self._gathers_until:
            self._gathers_until = clock.now() + GATHER_S if self._gathered else math.inf
            self._gathered = False

    # --- Waiting ---

    def next_event(self, buffer: EventBuffer, has_ended: Callable[[], bool], patience: float) -> Event | None:
        """The next event; None if none comes within ``patience`` seconds, or ever."""
        me = threading.get_ident()
        if buffer.reader not in (0, me):
            raise UsageError("these events are being read by another thread already; a group has one reader")
        try:
            buffer.reader = me
            event = buffer.take()
            if event is None:
                self.check_usable()
                self.wait_until(lambda: not buffer.is_empty or has_ended(), clock.now() + patience)
                event = buffer.take()
            return event
        finally:
            buffer.reader = 0

    def wait_until(self, ready: Callable[[], bool], until: float, begin: Callable[[], None] | None = None) -> bool:
        """Until ``ready()``, which is asked under the guard; False if the time is over first.

        ``begin`` is called once before, in the same step as what follows from it: a step less for every call.
        """
        me = threading.get_ident()
        is_nested = self._pumping == me  # a handler of a signal, run where its own thread waits
        sleeper: threading.Lock | None = None
        fds: Collection[int] = ()
        looks = until != math.inf and until <= clock.now()  # who does not wait at all is told by no descriptor
        try:
            while True:
                with self.guard:
                    if begin is not None:
                        begin()
                        begin = None
                    self._turn(fds, looks=looks)
                    is_ready = ready()
                    if is_ready or (now := clock.now()) >= until:
                        if self._pumping == me and not is_nested:
                            self._stop_pumping()
                        return is_ready
                    pause = 0.0 if self._has_more else max(0.0, min(until, self._due) - now)
                    if self._pumping == me:
                        pass
                    elif not self._pumping:
                        self._pumping = me
                        if self._socket is not None:
                            self._background.pause(self._socket.fds[0])
                    else:
                        sleeper = threading.Lock()
                        sleeper.acquire()
                        self._sleepers.append(sleeper)
                if sleeper is None:
                    fds = self._sleep_on_socket(pause)
                else:
                    sleeper.acquire(timeout=min(pause, threading.TIMEOUT_MAX) if pause < math.inf else -1)
                    sleeper, fds = None, ()
        finally:
            if is_nested:
                os.eventfd_write(self._kick, 1)  # who waits outside goes on to read, and has missed what was read here
            elif self._pumping == me:
                with self.guard:
                    self._stop_pumping()

    def _sleep_on_socket(self, pause: float) -> Collection[int]:
        timeout = None if pause == math.inf else math.ceil(pause * 1000)
        try:
            found = self._poll.poll(timeout)
        except RuntimeError:  # it is in use: this is a handler of a signal, run where its own thread waits
            found = self._another_poll().poll(timeout)
        fds = dict(found)
        if self._kick in fds:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._kick)
        return fds

    def _another_poll(self) -> select.poll:
        poll = select.poll()
        with self.guard:
            for fd in (self._kick, *(() if self._socket is None else self._socket.fds)):
                poll.register(fd, select.POLLIN)
        return poll

    def _stop_pumping(self) -> None:
        """Whoever comes first goes on: one of those that sleep, or the background."""
        self._pumping = 0
        if self._socket is not None:
            self._background.resume(self._socket.fds[0])
        if self._sleepers:
            self._wake_sleepers()
        if self._has_more:
            self._leave_the_rest()

    def _leave_the_rest(self) -> None:
        """What has come and was not read yet is told by no descriptor: the background must look."""
        if self._has_more and not self._pumping:
            self.deadline = -math.inf
            self._background.wake()

    def _wake_sleepers(self) -> None:
        for sleeper in self._sleepers:
            sleeper.release()
        self._sleepers.clear()

    def _wake_others(self) -> None:
        """Something happened that others may wait for."""
        if self._sleepers:
            self._wake_sleepers()
        if self._pumping not in (0, threading.get_ident()):
            os.eventfd_write(self._kick, 1)
        if self._ready >= 0:
            os.eventfd_write(self._ready, 1)

    def ready_fd(self) -> int:
        """A descriptor that is readable when something has happened since ``dispatched``."""
        self.check_usable()
        with self.guard:
            if self._ready < 0:
                self._ready = self._eventfd(1)
            return self._ready

    def _eventfd(self, first: int) -> int:
        """Closed with this object and not before: a thread may still be waking up from it."""
        fd = os.eventfd(first, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, fd).atexit = False
        return fd

    def dispatched(self) -> None:
        """What has happened so far is about to be looked at."""
        if self._ready >= 0:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._ready)

    # --- One turn: send, receive, let time pass ---

    def _turn(self, fds: Collection[int] = (), *, looks: bool = True) -> None:
        """Under the guard; ``fds`` are known to be readable; if none is, and not ``looks``, it only sends."""
        machine, socket = self.machine, self._socket
        state = machine.state
        received = 0
        try:
            if machine.has_spoken:
                machine.say_what_gathers()
            if socket is None:
                machine.tick(clock.now())
            elif machine.outbox or fds or looks or self._has_more or socket.unsent or clock.now() >= self._due:
                # Asked before the last frames are read, and remembered: the descriptor tells it only once.
                if socket.fds[1] in fds and socket.is_over:
                    self._is_ending = True
                received = exchange(machine, socket)
                if machine.is_hung_up:
                    self._is_ending = True
                if self._is_ending and received < FRAMES_PER_TURN:
                    self._lost_connection()
        except PeerProtocolError as problem:
            _log.error("the daemon at %s sent what cannot be understood: %s", self.address, problem)
            machine.lose(str(problem))
        except Exception as problem:  # done by half: what is left of it cannot be trusted
            _log.exception("a session with %s broke", self.address)
            machine.lose(f"an error in the library: {problem!r}")
        if machine.state in IS_OVER and self._socket is not None:
            self._drop_socket()
        if machine.due:
            self._hand_out()
        self._has_more = received >= FRAMES_PER_TURN
        self._due = machine.deadline
        if socket is not None and socket.unsent:
            self._due = min(self._due, clock.now() + UNSENT_WAIT_S)
        self.deadline = self._due if self._gathers_until == math.inf else min(self._due, self._gathers_until)
        if received or machine.state is not state:
            self.turns += 1
            self._wake_others()

    def pump_from_background(self, fds: frozenset[int]) -> None:
        """Nobody waits: somebody must read all the same."""
        while not self._over.is_set():
            with self.guard:
                self._look_what_gathers()
                self._turn(fds, looks=bool(fds))
                if not self._has_more:
                    return

    # --- Connections break ---

    def _lost_connection(self) -> None:
        self.machine.disconnected(clock.now())
        self._drop_socket()
        if self.machine.state not in IS_OVER and self.machine.id:
            threading.Thread(target=self._reconnect, name="groupsvc reconnect", daemon=True).start()
        else:
            self.machine.lose("the daemon closed the connection or died")

    def _reconnect(self) -> None:
        """Until the daemon's patience ends; then the machine itself says that all is lost."""
        from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

        retrying = Retrying(
            stop=stop_after_delay(GRACE_S),
            wait=wait_random_exponential(multiplier=0.02, max=0.3),
            retry=retry_if_exception_type(Failed),
            sleep=self._sleep_unless_over,
            reraise=True,
        )
        try:
            connection = retrying(DaemonConnection, self.address, KNOCK_S, client=self._name or None, keys=self._keys)
        except GroupServiceError as problem:
            _log.warning("the daemon at %s could not be reached again: %s", self.address, problem)
            return
        with self.guard:
            if self._over.is_set() or self.machine.state in IS_OVER:
                connection.close()
                return
            self._take(connection.detach())
            self.machine.connected(clock.now())
            self._turn()
            self._leave_the_rest()
            self._wake_others()

    def _sleep_unless_over(self, seconds: float) -> None:
        self._over.wait(seconds)

    # --- Callbacks ---

    def _hand_out(self) -> None:
        due = self.machine.due
        while due:
            task = due.popleft()
            if isinstance(task, VoteDue):
                self._callbacks.put(lambda task=task: self._ask_for_vote(task))  # type: ignore[misc]
            elif isinstance(task, MachineDue):
                self._callbacks.put(lambda task=task: self._run_machine(task))  # type: ignore[misc]
            elif isinstance(task, DenialDue):
                self._callbacks.put(lambda task=task: report(task.error))  # type: ignore[misc]
            elif self.state_listeners:
                self._callbacks.put(lambda task=task: self._tell_state(task))  # type: ignore[misc]

    def _callback_runs(self, does: bool) -> None:
        self.machine.busy_since = clock.now() if does else None

    @property
    def is_callback(self) -> bool:
        """Whether the caller *is* a callback."""
        return threading.get_ident() == self._callbacks.thread_id

    def _run_machine(self, due: MachineDue) -> None:
        try:
            due.run()
            for error in due.unseen:
                report(error)
        finally:
            with self.guard:
                due.settle()
                self._turn()
                self._wake_others()
                self._leave_the_rest()

    def _tell_state(self, due: StateDue) -> None:
        for listener in list(self.state_listeners):
            try:
                listener(due.state)
            except BaseException as error:
                _log.exception("on_state(%s) raised an error", due.state.name)
                report(error)

    def _ask_for_vote(self, due: VoteDue) -> None:
        """Ask the application; an error of it is the default vote, and everybody sees why."""
        membership, proposal = due.membership, due.proposal
        if not membership.is_open(proposal):
            return
        assert callable(membership.on_proposal)
        answer: Answer | None = None
        self._in_proposal = True
        try:
            found = membership.on_proposal(proposal)
            if found is None:
                return  # it votes later
            answer = judged(found, proposal)
        except BaseException as error:
            _log.exception("on_proposal gave no vote; %s gets the default vote", proposal.in_words)
            report(error)
        finally:
            self._in_proposal = False
        with contextlib.suppress(GroupServiceError):  # too late, or it voted by itself
            self.do(lambda: membership.vote_as_returned(proposal, answer))

    def _cast(self, membership: Membership, proposal: Proposal, answer: Answer | None) -> None:
        self.do(lambda: membership.vote(proposal, answer))


def _wait_for_answer(socket: DaemonSocket, id: int, until: float) -> None:
    """Until the daemon has answered this request, with nobody else reading; other messages are not looked at."""
    poll = select.poll()
    for fd in socket.fds:
        poll.register(fd, select.POLLIN)
    while (left := until - clock.now()) > 0 and not socket.is_over:
        messages = socket.receive()
        if messages is None:
            poll.poll(math.ceil(left * 1000))
        elif any(getattr(message, "id", 0) == id for message in messages):
            return


def judged(found: object, proposal: Proposal) -> Answer:
    """What ``on_proposal`` returned, if it is a vote on this."""
    answer = Answer(found) if isinstance(found, Vote) else found
    if not isinstance(answer, Answer):
        raise TypeError(f"on_proposal returned {found!r}; it must return a Vote, an Answer, or None to vote later")
    problem = problem_with_answer(answer, proposal)
    if problem is not None:
        raise TypeError(f"on_proposal returned an Answer that is no vote: {problem}")
    return answer


def _weakly(method: Callable[..., None]) -> Callable[..., None]:
    """The same, for those whom the session has: they must not keep it, and its descriptors, when it is over."""
    found = weakref.WeakMethod(method)

    def call(*arguments: Any) -> None:
        alive = found()
        if alive is not None:
            alive(*arguments)

    return call
