"""Between what the daemon tells and what the program reads: the program's state machine.

What is told of a group with a machine is not shown at once. It stands in a line; the driver takes some of it, applies
the messages on the thread of the callbacks, without any lock, and then shows all that it took. So a message is applied
once, in order, never two at a time, and before anybody reads it; a vote that is asked for behind it finds it applied.

Applying them where they are read was rejected: a program that only looks at its table reads no events. Applying them on
the thread that reads the socket was, too: code of the program under our lock.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

import attrs

from ..errors import UsageError
from ..events import Event
from ..machines import StateMachine, homes
from ..positions import Numbering
from ..wire.limits import CHECKPOINT_BLOCK_BYTES_MAX, CHECKPOINT_BYTES_MAX, EVENTS_MAX
from .event_buffer import MessageRun

if TYPE_CHECKING:
    from .membership_machine import Membership

_log = logging.getLogger("groupsvc.client")


@attrs.frozen
class Restore:
    """Become the state after entry ``at``."""

    at: int
    blocks: tuple[bytes, ...]


@attrs.define
class Snapshot:
    """A checkpoint is wanted of the state after entry ``at``; None: it could not be taken."""

    at: int
    blocks: tuple[bytes, ...] | None = None


@attrs.frozen
class CaughtUp:
    """What came before this provider has been applied."""


@attrs.frozen
class Last:
    """The last event of the membership: it is shown whatever became of the machine."""

    event: Event


Item = MessageRun | Event | Restore | Snapshot | CaughtUp | Last


class Applying:
    """The line before one machine. Everything but ``apply`` is touched under the driver's lock alone."""

    def __init__(self, machine: StateMachine, numbering: Numbering) -> None:
        self.machine = machine
        self._numbering = numbering  # of its group
        self.queued = 0
        self.done = 0
        self.waiting = 0  # messages
        self.is_stopped = False  # it failed, or its provider has gone: nothing more is applied
        self.blocks: list[bytes] = []  # of a checkpoint that is on its way to us

    @property
    def is_idle(self) -> bool:
        """Whether all that was told has been applied and shown."""
        return self.done == self.queued

    def has_room(self, size: int) -> bool:
        """Whether so many messages more may wait."""
        return self.waiting + size <= EVENTS_MAX

    def apply(self, item: Item) -> None:
        """The program's part of it."""
        if isinstance(item, MessageRun):
            apply = self.machine.apply
            for message in item.messages():
                apply(message)
        elif isinstance(item, Restore):
            homes.leave(self.machine)  # it is neither the old state nor the new one if this fails
            self.machine.restore(item.blocks)
            homes.enter(self.machine, self._numbering)
        elif isinstance(item, Snapshot):
            item.blocks = self._snapshot()

    def _snapshot(self) -> tuple[bytes, ...]:
        blocks: list[bytes] = []
        size = 0
        for block in self.machine.snapshot():
            if not isinstance(block, bytes):
                raise UsageError(f"snapshot() gave a {type(block).__name__}; its blocks must be bytes")
            size += len(block)
            if len(block) > CHECKPOINT_BLOCK_BYTES_MAX or size > CHECKPOINT_BYTES_MAX:
                text = f"a block has at most {CHECKPOINT_BLOCK_BYTES_MAX} bytes, all together {CHECKPOINT_BYTES_MAX}"
                raise UsageError(f"snapshot() gave {len(block)} bytes after {size - len(block)}; {text}")
            blocks.append(block)
        return tuple(blocks)


class Shown(Protocol):
    """The session, as it counts what is not applied yet."""

    unapplied: int


class MachineDue:
    """Some of the line of one membership, in the hands of its driver: ``run`` without a lock, then ``settle`` with."""

    def __init__(self, session: Shown, membership: Membership, applying: Applying) -> None:
        self.membership = membership
        self.items: list[Item] = []
        self._session = session
        self._applying = applying
        self.unseen: list[Exception] = []  # errors that end nothing: the driver shows them, or nobody would know
        self._finished: list[Item] = []
        self._error: BaseException | None = None

    def add(self, item: Item) -> None:
        """One more."""
        self.items.append(item)
        self._session.unapplied += 1

    def run(self) -> None:
        """Apply them; nothing behind an error."""
        applying = self._applying
        for item in self.items:
            if isinstance(item, Last):
                self._finished.append(item)
            elif not applying.is_stopped and self._error is None:
                try:
                    applying.apply(item)
                except BaseException as error:
                    if not isinstance(error, Exception):
                        self._error = error
                        raise
                    self._failed(item, error)
                else:
                    self._finished.append(item)

    def _failed(self, item: Item, error: Exception) -> None:
        if isinstance(item, Snapshot):  # the state is what it was
            _log.exception("no checkpoint was taken after entry %d: snapshot() failed", item.at)
            self.unseen.append(error)
            self._finished.append(item)
        else:
            _log.exception("the state machine in group %r failed", self.membership.group)
            self._error = error

    def settle(self) -> None:
        """Show what was applied; an error ends the membership."""
        membership, applying = self.membership, self._applying
        for item in self._finished:
            membership.shown(item)
        if self._error is not None:
            membership.machine_failed(f"its state machine failed and cannot go on: {self._error!r}")
        applying.done += len(self.items)
        applying.waiting -= sum(len(item) for item in self.items if isinstance(item, MessageRun))
        self._session.unapplied -= len(self.items)
