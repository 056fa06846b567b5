"""A group in the hands of a blocking program: ``Group`` for a provider, ``Subscription`` for who only watches.

Everything that can be asked is in ``asking.py``, everything that is known in the membership; what is here is how a
thread waits for it. Both are thread-safe, except that the events of one group have one reader at a time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from . import clock
from .attributes import Batch, GroupAttributes, Phases
from .barriers import Barrier
from .errors import Failed, GroupServiceError, OutcomeUnknown, WouldBlock
from .events import Event
from .holding import Held
from .known_group import JoinedGroup, KnownGroup, not_of_a_watcher
from .sansio import arguments as check
from .sansio import asking, rounds
from .sansio.event_buffer import EventBuffer
from .sansio.membership_machine import Membership
from .sansio.own_messages import MessageId
from .views import Provider, View
from .voting import Outcome
from .wire.limits import PAYLOAD_BYTES_MAX

if TYPE_CHECKING:
    from .drivers.pump import Pump

__all__ = ["Batch", "Group", "GroupAttributes", "Phases", "Provider", "Subscription", "View"]

LEAVE_S = 5.0
"""At the end of a ``with`` block a leave may take so long; then it is a goodbye."""


class Reader(KnownGroup):
    """What ``Group`` and ``Subscription`` have in common: a view and events."""

    def __init__(self, pump: Pump, membership: Membership, default_timeout: float) -> None:
        self._pump = pump
        self._membership = membership
        self._default_timeout = default_timeout

    @property
    def view(self) -> View:
        """The newest that is known here."""
        self._pump.check_usable()
        with self._pump.lock:
            return self._membership.view

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """Events in order, until the membership ends, or none has come for ``timeout`` seconds."""
        buffer, patience = self._buffer(), check.patience(timeout)
        return self._iterate(buffer, patience)

    def next_event(self, timeout: float | None = None) -> Event | None:
        """The next event; None if none comes in time, or ever: then ``ended`` is true."""
        patience = 0.0 if timeout == 0 else check.patience(timeout)
        buffer = self._membership.reads
        if buffer is not None and buffer.ready and not self._pump.is_foreign:  # the next of a run of messages
            return buffer.ready.popleft()
        return self._next(self._buffer(), patience)

    def _buffer(self) -> EventBuffer:
        self._pump.check_usable()
        buffer = self._membership.reads
        if buffer is None:
            buffer = cast(EventBuffer, self._pump.do(lambda: self._pump.machine.start_reading(self._membership)))
        return buffer

    def _iterate(self, buffer: EventBuffer, patience: float) -> Iterator[Event]:
        while (event := self._next(buffer, patience)) is not None:
            yield event

    def _next(self, buffer: EventBuffer, patience: float) -> Event | None:
        membership = self._membership
        if membership.applying is not None and patience:
            asking.check_may_wait_for_machine(membership, "read events", is_callback=self._pump.is_callback)
        return self._pump.next_event(buffer, lambda: membership.nothing_more, patience)

    def _finish(self, start: asking.Start, timeout: float | None) -> Any:
        return self._pump.finish(start, check.seconds(timeout, self._default_timeout))

    def _goodbye(self) -> None:
        if self._membership.has_ended or self._pump.is_foreign:
            return
        with contextlib.suppress(GroupServiceError):
            self._finish(asking.goodbye(self._pump.machine, self._membership), LEAVE_S)


class Subscription(Reader):
    """Somebody who watches a group and is not in it; a context manager."""

    def close(self) -> None:
        """Watch no longer; may be called again."""
        self._goodbye()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    if not TYPE_CHECKING:  # type checkers know what it has

        def __getattr__(self, name: str) -> None:
            raise not_of_a_watcher(self, name, Group)

    def __repr__(self) -> str:
        return f"<Subscription to {self.name!r}>"


class Group(Reader, JoinedGroup["Pump"]):
    """A provider of a group: me. A context manager that leaves, or on an exception says goodbye."""

    def __init__(self, pump: Pump, membership: Membership, default_timeout: float) -> None:
        super().__init__(pump, membership, default_timeout)
        self._lost = threading.Event()
        membership.on_end.append(self._lost.set)
        if membership.has_ended:
            self._lost.set()

    # --- Proposals ---

    def propose_state(
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
        return self._propose(start, timeout)

    def send(
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
        return self._propose(asking.send(self._pump.machine, self._membership, payload, **how), timeout)

    def expel(
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
        return self._propose(start, timeout)

    def change_attributes(
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
        return self._propose(start, timeout)

    def leave(self, *, code: int = 0, timeout: float | None = None) -> Outcome:
        """Propose that I leave."""
        return self._propose(asking.leave(self._pump.machine, self._membership, code), timeout)

    def goodbye(self) -> None:
        """Leave at once, without asking anybody."""
        self._finish(asking.goodbye(self._pump.machine, self._membership), None)

    def _propose(self, start: asking.Start, timeout: float | None) -> Outcome:
        self._pump.check_may_wait_for_votes(self._membership)
        return cast(Outcome, self._finish(start, timeout))

    # --- Messages ---

    def multicast(self, payload: bytes) -> MessageId:
        """A message to all, in one order with everything else; waits only if too many are on their way."""
        data = check.payload(payload, self.name)
        message = self._try(data)
        return self._multicast(data, clock.now() + self._default_timeout) if message is None else message

    def _multicast(self, data: bytes, until: float) -> MessageId:
        membership, own = self._membership, self._membership.own
        while (message := self._try(data)) is None:
            if not self._pump.wait_until(lambda: own.has_room(len(data)) or membership.has_ended, until):
                raise asking.no_room_in_time(self.name)
        return message

    def multicast_nowait(self, payload: bytes) -> MessageId:
        """The same, and ``WouldBlock`` instead of waiting."""
        is_checked = type(payload) is bytes and len(payload) <= PAYLOAD_BYTES_MAX
        message = self._try(payload if is_checked else check.payload(payload, self.name))
        if message is None:
            text = f"as many messages to group {self.name!r} as may be are on their way; wait, or call flush()"
            raise WouldBlock(text, group=self.name)
        return message

    def _try(self, payload: bytes) -> MessageId | None:
        pump, membership = self._pump, self._membership
        if pump.is_foreign:
            pump.check_usable()
        own = membership.own
        with pump.lock:
            if membership.end_reason is not None:
                asking.check_member(pump.machine, membership, "send a message")
            if not own.has_room(len(payload)):
                return None
            pump.machine.has_spoken.add(membership)
            if own.comes_in_bursts and own.is_idle:
                pump.gather()
            message = own.add(payload)
            wants_out = own.wants_out
        if wants_out:
            pump.do(_nothing)
        return message

    def flush(self, timeout: float | None = None) -> None:
        """Returns when all of my messages have been delivered here; ``OutcomeUnknown(ids)`` if that is not known."""
        wait = self._seconds_to_wait("flush", timeout)
        until = clock.now() + wait
        own = self._membership.own
        since = own.told
        done = self._pump.wait_until(lambda: own.is_idle or own.failures > since, until)
        with self._pump.lock:
            error, ids = own.take_error(since), own.ids()
        if error is not None:
            raise error
        if not done and ids:  # they may have come at this moment
            raise asking.not_flushed(self._membership, wait, ids)
        if not self._has_machine_caught_up(until):
            raise asking.not_flushed(self._membership, wait, ())

    def wait_for(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until ``ready()``, which is asked whenever something has happened here; False if it is not in time.

        For those who build on a machine: messages were applied, for example. It ends with the membership.
        """
        return self._wait_for(ready, clock.now() + self._seconds_to_wait("wait", timeout))

    def _wait_for(self, ready: Callable[[], bool], until: float) -> bool:
        membership = self._membership
        self._pump.wait_until(lambda: ready() or membership.nothing_more, until)
        return ready()

    def _seconds_to_wait(self, what: str, timeout: float | None) -> float:
        """Of a call that waits for the machine, too; refused where it would wait for itself."""
        self._pump.check_usable()
        asking.check_may_wait_for_machine(self._membership, what, is_callback=self._pump.is_callback)
        return check.seconds(timeout, self._default_timeout)

    def _has_machine_caught_up(self, until: float) -> bool:
        """Whether everything that was told so far has been applied and shown; waits for it."""
        applying = self._membership.applying
        if applying is None:
            return True
        upto = applying.queued
        return self._pump.wait_until(lambda: applying.done >= upto, until)

    # --- Barriers ---

    def barrier(
        self, name: str = "", *, parties: int | None = None, on_failure: Literal["break", "continue"] = "break"
    ) -> Barrier:
        """A barrier of this group; everybody who comes to it says the same about it.

        It takes so many parties, or all providers. If one of them dies the round breaks, or goes on without it.
        """
        return Barrier(self.name, rounds.terms(self.name, name, parties, on_failure), self._come)

    def _come(self, terms: rounds.BarrierTerms, payload: object, timeout: float | None, *, resets: bool = False) -> Any:
        pump = self._pump
        if pump.is_callback:
            asking.check_may_wait(f"at a barrier of group {self.name!r}", self.name, is_callback=True)
        wait = check.seconds(timeout, self._default_timeout)
        return pump.finish(rounds.come(pump.machine, self._membership, terms, payload, wait, resets=resets), wait)

    # --- Questions ---

    def outcome(self, proposal_id: str, *, timeout: float | None = None) -> Outcome:
        """How a proposal ended, asked afterwards; ``OutcomeUnknown`` if it has not ended, or too long ago."""
        start = asking.outcome(self._pump.machine, self._membership, proposal_id)
        return cast(Outcome, self._finish(start, timeout))

    def sync(self, timeout: float | None = None) -> int:
        """Returns once everything that was ordered before the call has been delivered here: the number of it."""
        until = clock.now() + self._seconds_to_wait("sync", timeout)
        seq = cast(int, self._finish(asking.sync(self._pump.machine, self._membership), timeout))
        if not self._has_machine_caught_up(until):
            raise asking.not_synced(self.name)
        return seq

    def held(self, fence: int) -> Held[threading.Event]:
        """A guard for what I hold under this fence."""
        self._pump.check_process()
        return Held(self._pump.machine, self._membership, fence, self._lost, self._pump.check_process)

    # --- Its life ---

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._membership.has_ended or self._pump.is_foreign:
            return
        if kind is None:
            with contextlib.suppress(Failed, OutcomeUnknown):
                self.leave(timeout=min(LEAVE_S, self._default_timeout))
        self._goodbye()

    def __repr__(self) -> str:
        return f"<Group {self.name!r} as {self.me}>"


def _nothing() -> None:
    return None
