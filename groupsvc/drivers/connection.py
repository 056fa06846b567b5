"""One blocking connection to a daemon: ask, wait for the one answer, never longer than said.

A program at node A asks the daemon of A. Whatever goes wrong (no daemon, a paused one, one that dies half-way,
one that speaks nonsense), the call ends within its time, in exactly one of three ways: the answer, a
``Failed`` (it certainly did not happen), or ``OutcomeUnknown``. ``daemon_socket.py`` knocks first and never reconnects;
two more rules make that true:

- Every request has a number. An answer with another number belongs to a call that was given up earlier
  and is thrown away.
- The daemon is told the caller's time and answers within it. This side waits ``REPLY_SLACK_S`` longer, so
  that the daemon's own explanation wins over "no answer".

A connection belongs to one thread at a time and to the process that made it. Sessions, which are shared
between threads and survive a broken connection, are in ``session.py``.
"""

from __future__ import annotations

import math
import os
import select
import time
from types import TracebackType
from typing import Self, TypeVar

from ..addresses import checked_address, default_address
from ..errors import DaemonUnreachable, PeerProtocolError, TimedOut, UsageError
from ..keys import GivenKeys, keys_for
from ..sansio.calls import REPLY_SLACK_S
from ..sansio.problems import error_of, no_answer
from ..wire.client_messages import (
    AnyClientReply,
    AnyClientRequest,
    AnyTelling,
    ConfigAsk,
    ConfigSet,
    ConfigValue,
    Done,
    DrainAsk,
    DrainIs,
    GroupRecord,
    HandOverAsk,
    LookUpAsk,
    OptionsAre,
    OptionsAsk,
    Problem,
    Statistics,
    StatisticsAsk,
    Status,
    StatusAsk,
    SurveyAsk,
    SurveyIs,
    Welcome,
)
from ..wire.enrolment_messages import (
    EnrolAsk,
    Enrolled,
    NodeKeysAre,
    NodeKeysAsk,
    RevokeAsk,
    Revoked,
    TokenAsk,
    TokenIs,
)
from ..wire.limits import TIMEOUT_S_MAX
from . import curve
from .daemon_socket import HOW_TO_START, DaemonSocket, NotItsKey, does_not_answer, hello, knock

TIMEOUT_S = 10.0
"""How long a call waits if the caller says nothing: several elections fit into it."""

R = TypeVar("R", bound=AnyClientReply)


class DaemonConnection:
    """A connection to the daemon at ``address`` (default: the one of this node)."""

    def __init__(
        self,
        address: str | None = None,
        timeout: float = TIMEOUT_S,
        *,
        client: str | None = None,
        keys: GivenKeys = None,
    ) -> None:
        self.address = default_address() if address is None else address
        self._timeout = _checked(timeout)
        checked_address(self.address)
        shown = keys_for(self.address, keys)
        problem = None if shown is None else curve.problem_with_pair(shown)
        if problem is not None:
            raise UsageError(f"these keys cannot be used: {problem}")
        self._pid = os.getpid()
        self._last_id = 0
        self._ended = ""
        until = time.monotonic() + self._timeout
        opened = knock(self.address, self._timeout)
        wrong = NotItsKey()
        for server in (None,) if shown is None else shown.servers:
            try:
                self._open(DaemonSocket(self.address, opened, shown, server), client, until)
                return
            except NotItsKey as found:  # one of its other keys may be, or of the other daemons
                wrong = found
        raise wrong

    def _open(self, socket: DaemonSocket, client: str | None, until: float) -> None:
        self._socket = socket
        self._poll = select.poll()
        for fd in self._socket.fds:
            self._poll.register(fd, select.POLLIN)
        try:
            self.welcome = self._greet(client, until)
        except BaseException:
            self._socket.close()
            raise

    # --- What can be asked ------------------------------------------------------------------------------

    def status(self, *, timeout: float | None = None) -> Status:
        """What this daemon knows of its domain; answered from its memory, also while it is suspended."""
        return self._call(StatusAsk(self._next_id()), Status, "ask for the status", timeout, harmless=True)

    def statistics(self, *, timeout: float | None = None) -> Statistics:
        """What this daemon has counted, by part; answered from its memory, also while it is suspended."""
        ask = StatisticsAsk(self._next_id())
        return self._call(ask, Statistics, "ask for the statistics", timeout, harmless=True)

    def look_up(self, name: str, *, form: bool = False, timeout: float | None = None) -> GroupRecord:
        """Who leads group ``name``. With ``form`` this node becomes its leader if there is no such group."""
        wait = self._wait(timeout)
        ask = LookUpAsk(self._next_id(), name, form, wait)
        return self._call(ask, GroupRecord, f"look up group {name!r}", wait, harmless=not form)

    def config_get(self, key: str, *, timeout: float | None = None) -> ConfigValue:
        """The domain-wide value of ``key`` as of now; version 0 if it was never set."""
        wait = self._wait(timeout)
        ask = ConfigAsk(self._next_id(), key, wait)
        return self._call(ask, ConfigValue, f"read setting {key!r}", wait, harmless=True)

    def config_set(self, key: str, value: str, *, if_version: int, timeout: float | None = None) -> ConfigValue:
        """Set ``key`` if its version is ``if_version`` (0: not set yet), else ``StaleVersion``."""
        wait = self._wait(timeout)
        ask = ConfigSet(self._next_id(), key, value, if_version, wait)
        return self._call(ask, ConfigValue, f"set {key!r}", wait, harmless=False)

    def options(self, *, timeout: float | None = None) -> OptionsAre:
        """The options of this daemon, and where each value comes from; answered from its memory."""
        return self._call(OptionsAsk(self._next_id()), OptionsAre, "ask for the options", timeout, harmless=True)

    def survey(self, *, timeout: float | None = None) -> SurveyIs:
        """How all nodes are, as each says of itself: versions, clocks, connections. Changes nothing."""
        wait = self._wait(timeout)
        return self._call(SurveyAsk(self._next_id(), wait), SurveyIs, "ask all nodes", wait, harmless=True)

    def hand_over(self, to: str, *, timeout: float | None = None) -> None:
        """Make the voter ``to`` name server; returns when it has happened."""
        wait = self._wait(timeout)
        self._call(HandOverAsk(self._next_id(), to, wait), Done, f"make {to!r} name server", wait, harmless=False)

    def drain(self, within: float) -> DrainIs:
        """Have the daemon hand over what it leads and end within so many seconds; asked again, how far it is."""
        return self._call(DrainAsk(self._next_id(), within), DrainIs, "drain this node", None, harmless=False)

    # --- Keys of nodes ---

    def token(self, node: str, public: str, valid_s: float, *, timeout: float | None = None) -> TokenIs:
        """Have whoever shows the key ``public`` enrol ``node``, within so many seconds."""
        wait = self._wait(timeout)
        ask = TokenAsk(self._next_id(), node, public, valid_s, wait)
        return self._call(ask, TokenIs, f"make a token for {node!r}", wait, harmless=False)

    def enrol(self, node: str, public: str, *, timeout: float | None = None) -> Enrolled:
        """Have ``node`` listed with this key, over a connection that has shown a token. May be repeated."""
        wait = self._wait(timeout)
        return self._call(EnrolAsk(self._next_id(), node, public, wait), Enrolled, f"enrol {node!r}", wait,
                          harmless=False)  # fmt: skip

    def revoke(self, node: str, *, timeout: float | None = None) -> Revoked:
        """Have neither a token nor an enrolled key of ``node`` listed any more."""
        wait = self._wait(timeout)
        ask = RevokeAsk(self._next_id(), node, wait)
        return self._call(ask, Revoked, f"revoke what is listed for {node!r}", wait, harmless=False)

    def node_keys(self, *, timeout: float | None = None) -> NodeKeysAre:
        """Tokens and keys of nodes as this daemon has them; answered from its memory."""
        return self._call(NodeKeysAsk(self._next_id()), NodeKeysAre, "ask for the keys", timeout, harmless=True)

    # --- Its life ---------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the connection; may be called again."""
        self._ended = self._ended or "it was closed"
        self._socket.close()

    def detach(self) -> DaemonSocket:
        """The socket, greeted and unused, for somebody else; this connection is over."""
        self._ended = "its socket was taken over"
        return self._socket

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- One request, one reply -------------------------------------------------------------------------

    def _greet(self, client: str | None, until: float) -> Welcome:
        greeting = hello(self._next_id(), client)
        self._send(greeting)
        try:
            return self._receive(greeting.id, Welcome, "say hello", until, harmless=True)
        except TimedOut:
            raise does_not_answer(self.address, self._timeout) from None
        except DaemonUnreachable:
            self._ended = ""  # the next socket is another one
            self._socket.raise_if_not_let_in()
            raise

    def _call(
        self, request: AnyClientRequest, expected: type[R], what: str, timeout: float | None, *, harmless: bool
    ) -> R:
        """``harmless``: no answer means that nothing happened, because the request changes nothing."""
        if os.getpid() != self._pid:
            raise UsageError(f"this connection belongs to process {self._pid}; a forked child makes its own")
        if self._ended:
            raise UsageError(f"could not {what}: this connection is over ({self._ended}); make a new one")
        until = time.monotonic() + self._wait(timeout) + REPLY_SLACK_S
        self._send(request)
        return self._receive(request.id, expected, what, until, harmless=harmless)

    def _send(self, request: AnyClientRequest) -> None:
        self._socket.send([request])
        if not self._socket.flush():
            self._ended = "the daemon takes no more requests"
            raise DaemonUnreachable(f"the daemon at {self.address} takes no requests; {HOW_TO_START}")

    def _receive(self, number: int, expected: type[R], what: str, until: float, *, harmless: bool) -> R:
        while True:
            is_over = self._socket.is_over  # asked first: what it sent before it ended still counts
            reply = self._answer_to(number)
            if reply is not None:
                return _judged(reply, expected, what)
            if is_over:
                self._ended = "the daemon closed it or died"
                text = f"the daemon at {self.address} closed the connection or died before it answered"
                raise no_answer(DaemonUnreachable, what, f"{text}; {HOW_TO_START}", harmless=harmless)
            left = until - time.monotonic()
            if left <= 0:
                text = f"the daemon at {self.address} did not answer in time"
                raise no_answer(TimedOut, what, text, harmless=harmless)
            self._poll.poll(math.ceil(left * 1000))

    def _answer_to(self, number: int) -> AnyClientReply | None:
        while (replies := self._socket.receive()) is not None:
            for reply in replies:
                if isinstance(reply, AnyTelling):
                    continue  # a connection without a session is told nothing
                if reply.id == number or (reply.id == 0 and isinstance(reply, Problem)):  # 0: a frame was refused whole
                    return reply
        return None

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _wait(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else _checked(timeout)


def _judged(reply: AnyClientReply, expected: type[R], what: str) -> R:
    """``reply`` if it is what was asked for, else the error it stands for."""
    if isinstance(reply, expected):
        return reply
    if isinstance(reply, Problem):
        raise error_of(reply, what)
    raise PeerProtocolError(f"could not {what}: the daemon answered with {type(reply).__name__}")


def _checked(timeout: float) -> float:
    if not 0 < timeout <= TIMEOUT_S_MAX:
        raise UsageError(f"timeout is {timeout!r}; it must be above 0 and at most {TIMEOUT_S_MAX:g} s")
    return timeout
