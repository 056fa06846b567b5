"""Sessions of blocking programs: ``connect()`` and what it gives.

``with groupsvc.connect() as session:`` finds the daemon of this node. A session is thread-safe; it survives a broken
connection, notices by its own clock when it must stop believing what it knows, and ends every call in one of three
ways: done, ``Failed``, ``OutcomeUnknown``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from . import clock
from .addresses import checked_address, default_address
from .attributes import GroupAttributes
from .errors import GroupServiceError, UsageError
from .events import Event
from .groups import Group, Subscription
from .keys import GivenKeys, Keys, keys_for
from .machines import Since, StateMachine, tell_group
from .positions import Position
from .program import program_name
from .recipes.made import Recipes
from .sansio import arguments as check
from .sansio import asking
from .sansio.asking import DomainStatus, GroupInfo
from .sansio.membership_machine import Membership
from .session_states import IS_OVER, SessionState
from .voting import Answer, Outcome, Proposal, _Manual
from .voting_words import Vote
from .wire.limits import SESSION_NAME_CHARS_MAX, TIMEOUT_S_MAX

CONNECT_S = 10.0
"""How long connecting may take if nobody says otherwise."""

DEFAULT_TIMEOUT_S = 30.0
"""The same for calls: a ballot that takes its whole time limit fits into it."""

CLOSE_S = 5.0
"""What closing may take: the daemon only has to be told."""

if TYPE_CHECKING:
    from .drivers.pump import Pump

OnProposal = Callable[[Proposal], Vote | Answer | None]
OnState = TypeVar("OnState", bound=Callable[[SessionState], object])


def connect(
    address: str | None = None,
    *,
    name: str | None = None,
    keys: GivenKeys = None,
    timeout: float = CONNECT_S,
    default_timeout: float = DEFAULT_TIMEOUT_S,
) -> Session:
    """A session with the daemon of this node, or at ``address``; ``DaemonUnreachable`` says how to start one.

    At ``tcp://HOST:PORT`` it is with the daemon of another machine, which asks for ``keys``: the path of the key file
    that ``groupsvc keygen`` made (default: ``GROUPSVC_KEYS``), or ``groupsvc.Keys``. ``keys=False`` does without, and
    without encryption, if that daemon is ``insecure``.

    ``name`` is what people see of it, in lists of who waits for a lock (default: the program and its process).
    """
    from .drivers.pump import Pump  # ZeroMQ is loaded when it is needed: importing groupsvc is to be cheap

    where, called, shown, wait = connect_arguments(address, name, keys, timeout)
    return Session(Pump(where, called, wait, shown), check.seconds(default_timeout, DEFAULT_TIMEOUT_S))


def connect_arguments(
    address: str | None, name: str | None, keys: GivenKeys, timeout: float
) -> tuple[str, str, Keys | None, float]:
    """What ``connect`` was given, checked."""
    if name is not None:
        check.text(name, "the name of a session", SESSION_NAME_CHARS_MAX)
    if not (address is None or isinstance(address, str)):
        raise UsageError(f"address is {address!r}; it must be a string")
    where = checked_address(default_address() if address is None else address)
    return where, name or program_name(), keys_for(where, keys), min(check.seconds(timeout, CONNECT_S), TIMEOUT_S_MAX)


class Session(Recipes):
    """What a program has with its daemon; a context manager that closes."""

    def __init__(self, pump: Pump, default_timeout: float) -> None:
        self._pump = pump
        self._default_timeout = default_timeout
        self._dispatched = 0

    # --- Who and how ---

    @property
    def state(self) -> SessionState:
        """CONNECTED: what is known here is true. By this process's own clock; in a forked child it is LOST."""
        machine = self._pump.machine
        if not self._pump.is_mine and machine.state not in IS_OVER:
            return SessionState.LOST
        if machine.state is SessionState.CONNECTED and machine.valid_for(clock.now()) <= 0:
            return SessionState.SUSPENDED  # the clock knows it before any thread had its turn
        return machine.state

    def on_state(self, callback: OnState) -> OnState:
        """Call this with every new state, on the session's callback thread; usable as a decorator."""
        if not callable(callback):
            raise UsageError("on_state needs a function of one argument, the SessionState")
        self._pump.state_listeners.append(callback)
        return callback

    @property
    def node(self) -> str:
        """The node of the daemon."""
        return self._pump.welcome.node

    @property
    def id(self) -> str:
        """Unique: "node/incarnation/number"."""
        welcome = self._pump.welcome
        return f"{welcome.node}/{welcome.incarnation}/{self._pump.machine.id}"

    # --- Groups ---

    def join(
        self,
        group: str,
        *,
        name: str | None = None,
        attributes: GroupAttributes | None = None,
        create: bool | None = None,
        data: bytes = b"",
        on_proposal: OnProposal | _Manual | None = None,
        events: bool = False,
        machine: StateMachine | None = None,
        since: Since | Position | int | None = None,
        timeout: float | None = None,
    ) -> Group:
        """Become a provider of ``group``.

        With a ``machine`` it returns when the machine has caught up: it is what the messages before the join add up to.
        ``since``: ``NOW``, ``CHECKPOINT``, or the position after which messages are wanted; with a machine CHECKPOINT.
        """
        start = asking.join(
            self._pump.machine, group, name=name, attributes=attributes, create=create, data=data,
            on_proposal=on_proposal, events=events, machine_of=machine, since=since,
        )  # fmt: skip
        if machine is not None and self._pump.is_callback:
            raise UsageError("a join with a machine inside a callback would wait for the machine, and so for itself")
        wait = check.seconds(timeout, self._default_timeout)
        until = clock.now() + wait
        membership = cast(Membership, self._pump.finish(start, wait))
        joined = Group(self._pump, membership, self._default_timeout)
        if not membership.is_caught_up:
            self._let_catch_up(membership, wait, until)
        tell_group(machine, joined)
        return joined

    def _let_catch_up(self, membership: Membership, wait: float, until: float) -> None:
        is_in = False
        try:
            self._pump.wait_until(lambda: membership.is_caught_up or membership.has_ended, until)
            is_in = membership.is_caught_up and not membership.has_ended
            if not is_in:
                raise asking.not_caught_up(membership, wait)
        finally:
            if not is_in and not membership.has_ended:
                with contextlib.suppress(GroupServiceError):
                    self._pump.finish(asking.goodbye(self._pump.machine, membership), CLOSE_S)

    def subscribe(self, group: str, *, wait: float = 0.0, timeout: float | None = None) -> Subscription:
        """Watch ``group``; if there is none, wait so many seconds for it to appear."""
        start = asking.subscribe(self._pump.machine, group, wait=wait)
        limit = check.seconds(timeout, max(self._default_timeout, check.patience(wait)))
        membership = cast(Membership, self._pump.finish(start, limit))
        return Subscription(self._pump, membership, self._default_timeout)

    def multicast(self, group: str, payload: bytes, *, timeout: float | None = None) -> None:
        """A message to a group that this session is not in; returns when it is sure to be delivered."""
        self._finish(asking.submit(self._pump.machine, group, payload), timeout)

    def groups(self, *, timeout: float | None = None) -> tuple[GroupInfo, ...]:
        """All groups of the domain."""
        return cast(tuple[GroupInfo, ...], self._finish(asking.groups(self._pump.machine), timeout))

    def status(self, *, timeout: float | None = None) -> DomainStatus:
        """What the daemon knows of its domain."""
        return cast(DomainStatus, self._finish(asking.status(self._pump.machine), timeout))

    def why(self, group: str, *, timeout: float | None = None) -> tuple[Outcome, ...]:
        """How the newest proposals of ``group`` ended, the oldest first."""
        return cast(tuple[Outcome, ...], self._finish(asking.why(self._pump.machine, group), timeout))

    # --- Events of all ---

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """The events of all groups and subscriptions, in the order they came; ends with the session."""
        patience = check.patience(timeout)
        buffer = self._pump.do(self._pump.machine.start_reading_all)

        def iterate() -> Iterator[Event]:
            machine = self._pump.machine
            has_ended = lambda: machine.state in IS_OVER and not machine.unapplied  # noqa: E731
            while (event := self._pump.next_event(buffer, has_ended, patience)) is not None:
                yield event

        return iterate()

    # --- Programs with a loop of their own ---

    def fileno(self) -> int:
        """A descriptor that is readable when something has happened: call ``dispatch``, then look at events."""
        return self._pump.ready_fd()

    def dispatch(self, timeout: float = 0) -> bool:
        """Take in what has come, waiting up to ``timeout`` seconds; whether anything has since the last time."""
        patience = check.patience(timeout)
        pump = self._pump
        pump.check_usable()
        pump.dispatched()
        before = self._dispatched
        pump.wait_until(lambda: pump.turns > before or pump.machine.state in IS_OVER, clock.now() + patience)
        self._dispatched = pump.turns
        return pump.turns > before

    # --- Its life ---

    def close(self) -> None:
        """Leave everything and end; may be called again."""
        self._pump.close(asking.close(self._pump.machine), min(CLOSE_S, self._default_timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session {self.id} {self.state.name}>"

    def _finish(self, start: asking.Start, timeout: float | None) -> Any:
        return self._pump.finish(start, check.seconds(timeout, self._default_timeout))
