"""The same API for asyncio: the same names, with ``await``, ``async with`` and ``async for``.

    from groupsvc import aio

    async with aio.connect() as session:
        async with session.join("db", on_proposal=vote) as group:
            async for event in group.events():
                ...

``connect`` and ``join`` can also be awaited. A session belongs to the event loop it was made on. Cancelling a call
gives up waiting for it, not the session. What does not wait (``view``, ``multicast_nowait``, ``proposal.vote``) is a
plain call.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar, cast

from . import clock
from .attributes import GroupAttributes, Phases
from .barriers import KnownBarrier, Released
from .drivers.loop_pump import LoopPump
from .errors import Failed, GroupServiceError, OutcomeUnknown, UsageError, WouldBlock
from .events import Event
from .groups import LEAVE_S
from .holding import Held
from .keys import GivenKeys
from .known_group import JoinedGroup, KnownGroup, not_of_a_watcher
from .machines import Since, StateMachine, tell_group
from .positions import Position
from .recipes.aio_counters import Counter
from .recipes.aio_elections import Election
from .recipes.aio_latches import Latch
from .recipes.aio_locks import Lock
from .recipes.aio_made import Recipes
from .recipes.aio_parties import Party
from .recipes.aio_rwlocks import ReadWriteLock
from .recipes.aio_semaphores import Semaphore
from .sansio import arguments as check
from .sansio import asking, rounds
from .sansio.asking import DomainStatus, GroupInfo
from .sansio.event_buffer import EventBuffer
from .sansio.membership_machine import Membership
from .sansio.own_messages import MessageId
from .session import CLOSE_S, CONNECT_S, DEFAULT_TIMEOUT_S, connect_arguments
from .session_states import IS_OVER, SessionState
from .views import Provider
from .voting import Answer, Outcome, Proposal, _Manual
from .voting_words import Vote

__all__ = [
    "Barrier",
    "Counter",
    "Election",
    "Group",
    "Latch",
    "Lock",
    "Party",
    "ReadWriteLock",
    "Semaphore",
    "Session",
    "Subscription",
    "connect",
]

OnProposal = Callable[[Proposal], Vote | Answer | Awaitable[Vote | Answer | None] | None]
OnState = TypeVar("OnState", bound=Callable[[SessionState], object])
T = TypeVar("T", bound="Leavable")


class Leavable(Protocol):
    """What can be left as an async context."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave it."""


class Entering(Generic[T]):
    """Something that is awaited, or entered."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._entered: T | None = None

    def __repr__(self) -> str:
        return f"<{getattr(self._coroutine, '__name__', 'something')}, to be awaited or entered>"

    def __await__(self) -> Generator[Any, None, T]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> T:
        self._entered = await self._coroutine
        return self._entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._entered is not None
        await self._entered.__aexit__(kind, error, trace)


def connect(
    address: str | None = None,
    *,
    name: str | None = None,
    keys: GivenKeys = None,
    timeout: float = CONNECT_S,
    default_timeout: float = DEFAULT_TIMEOUT_S,
) -> Entering[Session]:
    """A session with the daemon of this node, or at ``address``; to be awaited or entered."""
    where, called, shown, wait = connect_arguments(address, name, keys, timeout)
    default = check.seconds(default_timeout, DEFAULT_TIMEOUT_S)

    async def connecting() -> Session:
        pump = LoopPump(where, called, shown)
        await pump.open(wait)
        return Session(pump, default)

    return Entering(connecting())


class Session(Recipes):
    """What a program has with its daemon; an async context manager that closes."""

    def __init__(self, pump: LoopPump, default_timeout: float) -> None:
        self._pump = pump
        self._default_timeout = default_timeout

    @property
    def state(self) -> SessionState:
        """CONNECTED: what is known here is true. By this process's own clock; in a forked child it is LOST."""
        machine = self._pump.machine
        if not self._pump.is_mine and machine.state not in IS_OVER:
            return SessionState.LOST
        if machine.state is SessionState.CONNECTED and machine.valid_for(clock.now()) <= 0:
            return SessionState.SUSPENDED  # the clock knows it before the loop had its turn
        return machine.state

    def on_state(self, callback: OnState) -> OnState:
        """Call or await this with every new state; usable as a decorator."""
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
    ) -> Entering[Group]:
        """Become a provider of ``group``; to be awaited or entered. With a ``machine``: when it has caught up."""
        start = asking.join(
            self._pump.machine, group, name=name, attributes=attributes, create=create, data=data,
            on_proposal=on_proposal, events=events, machine_of=machine, since=since,
        )  # fmt: skip
        wait = check.seconds(timeout, self._default_timeout)

        async def joining() -> Group:
            if machine is not None and self._pump.is_callback:
                raise UsageError("a join with a machine in a callback would wait for the machine, and so for itself")
            until = clock.now() + wait
            membership = cast(Membership, await self._pump.finish(start, wait))
            joined = Group(self._pump, membership, self._default_timeout)
            if not membership.is_caught_up:
                await self._let_catch_up(membership, wait, until)
            tell_group(machine, joined)
            return joined

        return Entering(joining())

    async def _let_catch_up(self, membership: Membership, wait: float, until: float) -> None:
        is_in = False
        try:
            await self._pump.wait_until(lambda: membership.is_caught_up or membership.has_ended, until)
            is_in = membership.is_caught_up and not membership.has_ended
            if not is_in:
                raise asking.not_caught_up(membership, wait)
        finally:
            if not is_in and not membership.has_ended:
                self._pump.machine.say(asking.goodbye_of(self._pump.machine, membership))
                self._pump.turn_soon()

    def subscribe(self, group: str, *, wait: float = 0.0, timeout: float | None = None) -> Entering[Subscription]:
        """Watch ``group``; if there is none, wait so many seconds for it to appear. To be awaited or entered."""
        start = asking.subscribe(self._pump.machine, group, wait=wait)
        limit = check.seconds(timeout, max(self._default_timeout, check.patience(wait)))

        async def subscribing() -> Subscription:
            membership = cast(Membership, await self._pump.finish(start, limit))
            return Subscription(self._pump, membership, self._default_timeout)

        return Entering(subscribing())

    async def multicast(self, group: str, payload: bytes, *, timeout: float | None = None) -> None:
        """A message to a group that this session is not in; returns when it is sure to be delivered."""
        await self._finish(asking.submit(self._pump.machine, group, payload), timeout)

    async def groups(self, *, timeout: float | None = None) -> tuple[GroupInfo, ...]:
        """All groups of the domain."""
        return cast(tuple[GroupInfo, ...], await self._finish(asking.groups(self._pump.machine), timeout))

    async def status(self, *, timeout: float | None = None) -> DomainStatus:
        """What the daemon knows of its domain."""
        return cast(DomainStatus, await self._finish(asking.status(self._pump.machine), timeout))

    async def why(self, group: str, *, timeout: float | None = None) -> tuple[Outcome, ...]:
        """How the newest proposals of ``group`` ended, the oldest first."""
        return cast(tuple[Outcome, ...], await self._finish(asking.why(self._pump.machine, group), timeout))

    def events(self, timeout: float | None = None) -> AsyncIterator[Event]:
        """The events of all groups and subscriptions, in the order they came; ends with the session."""
        self._pump.check_usable()
        machine = self._pump.machine
        buffer = machine.start_reading_all()
        has_ended = lambda: machine.state in IS_OVER and not machine.unapplied  # noqa: E731
        return _iterate(self._pump, buffer, has_ended, check.patience(timeout))

    async def close(self) -> None:
        """Leave everything and end; may be called again."""
        await self._pump.close(asking.close(self._pump.machine), min(CLOSE_S, self._default_timeout))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<aio.Session {self.id} {self.state.name}>"

    async def _finish(self, start: asking.Start, timeout: float | None) -> Any:
        return await self._pump.finish(start, check.seconds(timeout, self._default_timeout))


async def _next(pump: LoopPump, buffer: EventBuffer, has_ended: Callable[[], bool], patience: float) -> Event | None:
    event = buffer.take()
    if event is None:
        pump.check_usable()
        await pump.wait_until(lambda: not buffer.is_empty or has_ended(), clock.now() + patience)
        event = buffer.take()
    return event


async def _iterate(
    pump: LoopPump, buffer: EventBuffer, has_ended: Callable[[], bool], patience: float
) -> AsyncIterator[Event]:
    while (event := await _next(pump, buffer, has_ended, patience)) is not None:
        yield event


class Reader(KnownGroup):
    """What ``Group`` and ``Subscription`` have in common: a view and events."""

    def __init__(self, pump: LoopPump, membership: Membership, default_timeout: float) -> None:
        self._pump = pump
        self._membership = membership
        self._default_timeout = default_timeout

    def events(self, timeout: float | None = None) -> AsyncIterator[Event]:
        """Events in order, until the membership ends, or none has come for ``timeout`` seconds."""
        self._pump.check_usable()
        buffer = self._pump.machine.start_reading(self._membership)
        patience = self._patience(timeout)
        return _iterate(self._pump, buffer, lambda: self._membership.nothing_more, patience)

    async def next_event(self, timeout: float | None = None) -> Event | None:
        """The next event; None if none comes in time, or ever: then ``ended`` is true."""
        self._pump.check_usable()
        buffer = self._pump.machine.start_reading(self._membership)
        return await _next(self._pump, buffer, lambda: self._membership.nothing_more, self._patience(timeout))

    def _patience(self, timeout: float | None) -> float:
        patience = check.patience(timeout)
        if patience:
            callback = self._pump.is_callback
            asking.check_may_wait_for_machine(self._membership, "read events", is_callback=callback)
        return patience

    async def _finish(self, start: asking.Start, timeout: float | None) -> Any:
        return await self._pump.finish(start, check.seconds(timeout, self._default_timeout))

    async def _goodbye(self) -> None:
        if not self._membership.has_ended and self._pump.is_mine:
            with contextlib.suppress(GroupServiceError):
                await self._finish(asking.goodbye(self._pump.machine, self._membership), LEAVE_S)


class Subscription(Reader):
    """Somebody who watches a group and is not in it; an async context manager."""

    async def close(self) -> None:
        """Watch no longer; may be called again."""
        await self._goodbye()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    if not TYPE_CHECKING:  # type checkers know what it has

        def __getattr__(self, name: str) -> None:
            raise not_of_a_watcher(self, name, Group)

    def __repr__(self) -> str:
        return f"<aio.Subscription to {self.name!r}>"


class Barrier(KnownBarrier):
    """One barrier of one group."""

    async def wait(self, payload: bytes = b"", *, timeout: float | None = None) -> Released:
        """Come, and wait until everybody has; ``BarrierBroken`` if that cannot be, or not in time."""
        return cast(Released, await self._come(self._terms, payload, timeout))

    async def all_gather(self, payload: bytes, *, timeout: float | None = None) -> dict[str, bytes]:
        """What everybody brings, by the id of the provider, the oldest first."""
        return (await self.wait(payload, timeout=timeout)).payloads

    async def broadcast(
        self, payload: bytes = b"", *, root: Provider | str | None = None, timeout: float | None = None
    ) -> bytes:
        """What ``root`` brings, a provider or its id; None: the oldest of those who come. The others bring nothing."""
        return rounds.of_root(await self.wait(payload, timeout=timeout), root, self._group)

    async def reduce(
        self, payload: bytes, function: Callable[[bytes, bytes], bytes], *, timeout: float | None = None
    ) -> bytes:
        """What everybody brings, put together two by two in the order of the providers: everybody gets the same."""
        return functools.reduce(function, (await self.wait(payload, timeout=timeout)).payloads.values())

    async def vote(self, approve: bool, *, timeout: float | None = None) -> bool:
        """Whether everybody approves. Nobody is voted for: who does not come breaks the round."""
        return rounds.approved(await self.wait(rounds.YES if approve else rounds.NO, timeout=timeout))

    async def reset(self, *, timeout: float | None = None) -> None:
        """Make a broken barrier whole again: done when all parties have called this. If it is not broken: nothing."""
        await self._come(self._terms, b"", timeout, resets=True)


class Group(Reader, JoinedGroup[LoopPump]):
    """A provider of a group: me. An async context manager that leaves, or on an exception says goodbye."""

    def __init__(self, pump: LoopPump, membership: Membership, default_timeout: float) -> None:
        super().__init__(pump, membership, default_timeout)
        self._lost = asyncio.Event()
        membership.on_end.append(self._lost.set)
        if membership.has_ended:
            self._lost.set()

    async def propose_state(
        self,
        value: bytes,
        *,
        if_version: int | None = None,
        phases: Phases | int | None = None,
        time_limit: float | None = None,
        on_busy: Literal["queue", "fail"] = "queue",
        timeout: float | None = None,
    ) -> Outcome:
        """A new state value; with ``if_version`` only over that version, else ``StaleVersion``."""
        how = {"phases": phases, "time_limit": time_limit, "on_busy": on_busy}
        start = asking.propose_state(self._pump.machine, self._membership, value, if_version, **how)
        return await self._propose(start, timeout)

    async def send(
        self,
        payload: bytes,
        *,
        phases: Phases | int | None = None,
        time_limit: float | None = None,
        on_busy: Literal["queue", "fail"] = "queue",
        timeout: float | None = None,
    ) -> Outcome:
        """A message to all providers, voted on if the group or ``phases`` says so."""
        how = {"phases": phases, "time_limit": time_limit, "on_busy": on_busy}
        return await self._propose(asking.send(self._pump.machine, self._membership, payload, **how), timeout)

    async def expel(
        self,
        *providers: Provider | str,
        reason: str = "",
        phases: Phases | int | None = None,
        time_limit: float | None = None,
        on_busy: Literal["queue", "fail"] = "queue",
        timeout: float | None = None,
    ) -> Outcome:
        """These are to leave, whether they want or not."""
        how = {"phases": phases, "time_limit": time_limit, "on_busy": on_busy}
        start = asking.expel(self._pump.machine, self._membership, providers, reason, **how)
        return await self._propose(start, timeout)

    async def change_attributes(
        self,
        *,
        phases: Phases | int | None = None,
        ballot_time_limit: float | None = None,
        on_busy: Literal["queue", "fail"] = "queue",
        timeout: float | None = None,
        **changes: object,
    ) -> Outcome:
        """Other attributes of the group, as in ``change_attributes(time_limit=5.0)``.

        It is voted on as a change of the state is, unless ``phases`` says otherwise.

        ``time_limit`` is an attribute; that of the ballot about the change is ``ballot_time_limit``.
        """
        how = {"phases": phases, "time_limit": ballot_time_limit, "on_busy": on_busy}
        start = asking.change_attributes(self._pump.machine, self._membership, changes, **how)
        return await self._propose(start, timeout)

    async def leave(self, *, code: int = 0, timeout: float | None = None) -> Outcome:
        """Propose that I leave."""
        return await self._propose(asking.leave(self._pump.machine, self._membership, code), timeout)

    async def goodbye(self) -> None:
        """Leave at once, without asking anybody."""
        await self._finish(asking.goodbye(self._pump.machine, self._membership), None)

    async def _propose(self, start: asking.Start, timeout: float | None) -> Outcome:
        self._pump.check_may_wait_for_votes(self._membership)
        return cast(Outcome, await self._finish(start, timeout))

    async def multicast(self, payload: bytes) -> MessageId:
        """A message to all, in one order with everything else; waits only if too many are on their way."""
        return await self._multicast(check.payload(payload, self.name), clock.now() + self._default_timeout)

    async def _multicast(self, data: bytes, until: float) -> MessageId:
        membership, own = self._membership, self._membership.own
        while (message := self._try(data)) is None:
            if not await self._pump.wait_until(lambda: own.has_room(len(data)) or membership.has_ended, until):
                raise asking.no_room_in_time(self.name)
        return message

    def multicast_nowait(self, payload: bytes) -> MessageId:
        """The same, and ``WouldBlock`` instead of waiting."""
        message = self._try(check.payload(payload, self.name))
        if message is None:
            text = f"as many messages to group {self.name!r} as may be are on their way; wait, or await flush()"
            raise WouldBlock(text, group=self.name)
        return message

    def _try(self, payload: bytes) -> MessageId | None:
        self._pump.check_usable()
        asking.check_member(self._pump.machine, self._membership, "send a message")
        own = self._membership.own
        if not own.has_room(len(payload)):
            return None
        self._pump.machine.has_spoken.add(self._membership)
        message = own.add(payload)
        self._pump.turn_soon()
        return message

    async def flush(self, timeout: float | None = None) -> None:
        """Returns when all of my messages have been delivered here; ``OutcomeUnknown(ids)`` if that is not known."""
        wait = self._seconds_to_wait("flush", timeout)
        until = clock.now() + wait
        own = self._membership.own
        since = own.told
        done = await self._pump.wait_until(lambda: own.is_idle or own.failures > since, until)
        error = own.take_error(since)
        if error is not None:
            raise error
        if not done:
            raise asking.not_flushed(self._membership, wait, own.ids())
        if not await self._has_machine_caught_up(until):
            raise asking.not_flushed(self._membership, wait, ())

    async def wait_for(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until ``ready()``, which is asked whenever something has happened here; False if it is not in time."""
        return await self._wait_for(ready, clock.now() + self._seconds_to_wait("wait", timeout))

    async def _wait_for(self, ready: Callable[[], bool], until: float) -> bool:
        membership = self._membership
        await self._pump.wait_until(lambda: ready() or membership.nothing_more, until)
        return ready()

    def _seconds_to_wait(self, what: str, timeout: float | None) -> float:
        """Of a call that waits for the machine, too; refused where it would wait for itself."""
        self._pump.check_usable()
        asking.check_may_wait_for_machine(self._membership, what, is_callback=self._pump.is_callback)
        return check.seconds(timeout, self._default_timeout)

    async def _has_machine_caught_up(self, until: float) -> bool:
        """Whether everything that was told so far has been applied and shown; waits for it."""
        applying = self._membership.applying
        if applying is None:
            return True
        upto = applying.queued
        return await self._pump.wait_until(lambda: applying.done >= upto, until)

    def barrier(
        self, name: str = "", *, parties: int | None = None, on_failure: Literal["break", "continue"] = "break"
    ) -> Barrier:
        """A barrier of this group; everybody who comes to it says the same about it.

        It takes so many parties, or all providers. If one of them dies the round breaks, or goes on without it.
        """
        return Barrier(self.name, rounds.terms(self.name, name, parties, on_failure), self._come)

    async def _come(
        self, terms: rounds.BarrierTerms, payload: object, timeout: float | None, *, resets: bool = False
    ) -> Any:
        where = f"at a barrier of group {self.name!r}"
        asking.check_may_wait(where, self.name, is_callback=self._pump.is_callback)
        wait = check.seconds(timeout, self._default_timeout)
        start = rounds.come(self._pump.machine, self._membership, terms, payload, wait, resets=resets)
        return await self._pump.finish(start, wait)

    async def outcome(self, proposal_id: str, *, timeout: float | None = None) -> Outcome:
        """How a proposal ended, asked afterwards; ``OutcomeUnknown`` if it has not ended, or too long ago."""
        start = asking.outcome(self._pump.machine, self._membership, proposal_id)
        return cast(Outcome, await self._finish(start, timeout))

    async def sync(self, timeout: float | None = None) -> int:
        """Returns once everything that was ordered before the call has been delivered here: the number of it."""
        until = clock.now() + self._seconds_to_wait("sync", timeout)
        seq = cast(int, await self._finish(asking.sync(self._pump.machine, self._membership), timeout))
        if not await self._has_machine_caught_up(until):
            raise asking.not_synced(self.name)
        return seq

    def held(self, fence: int) -> Held[asyncio.Event]:
        """A guard for what I hold under this fence."""
        self._pump.check_process()
        return Held(self._pump.machine, self._membership, fence, self._lost, self._pump.check_process)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._membership.has_ended or not self._pump.is_mine:
            return
        if kind is None:
            with contextlib.suppress(Failed, OutcomeUnknown):
                await self.leave(timeout=min(LEAVE_S, self._default_timeout))
        await self._goodbye()

    def __repr__(self) -> str:
        return f"<aio.Group {self.name!r} as {self.me}>"
