"""State that the messages of a group add up to, kept equal at all providers: what the application supplies.

    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def apply(self, entry: groupsvc.Message) -> None:
            self.count += int(entry.payload)

        def snapshot(self) -> Iterable[bytes]:
            yield str(self.count).encode()

        def restore(self, blocks: Sequence[bytes]) -> None:
            self.count = int(blocks[0]) if blocks else 0

    group = session.join("hits", machine=Counter())

``groupsvc.tables.Table`` is one that is ready to use. What ``apply`` makes of a message may depend on the message and
on the state, and on nothing else: no clock, no name of a host, no order of a set. Then the state after the same message
is the same everywhere.
"""

from __future__ import annotations

import contextlib
import enum
import weakref
from collections.abc import Iterable, Sequence
from typing import Protocol

from .errors import UsageError
from .events import Message
from .positions import NOT_KNOWN, NUMBER_END, Numbering, Numberings, Position
from .wire.client_messages import SINCE_CHECKPOINT, SINCE_NOW


class Since(enum.Enum):
    """With which messages a new provider begins; a position, or the number of an entry, is the third way to say it."""

    NOW = "now"
    CHECKPOINT = "checkpoint"


NOW = Since.NOW
CHECKPOINT = Since.CHECKPOINT


class StateMachine(Protocol):
    """Called on the session's callback thread (in asyncio on the loop), one call at a time, in the order of the stream.

    A message is applied before it is shown in ``events()``. An error in ``apply`` or ``restore`` ends the membership of
    this provider with ``Lost``: it must not go on with a state that the others do not have.
    """

    def apply(self, entry: Message) -> None:
        """The next message; each exactly once."""

    def snapshot(self) -> Iterable[bytes]:
        """The state after the last message, in blocks of at most ``limits.checkpoint_block_bytes_max``.

        An error here, or too much, means that no checkpoint is taken this time; another provider will. It is shown
        where those of callbacks are: in ``threading.excepthook``, in asyncio in the loop's exception handler.
        """

    def restore(self, blocks: Sequence[bytes]) -> None:
        """Become what these blocks stand for, whatever the state was; no blocks: the state before any message."""


class Part(Protocol):
    """A member that has a machine: ``groupsvc.sansio.membership_machine.Membership``."""

    group: str

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is told to it."""

    def applies_to(self, machine: StateMachine) -> bool:
        """Whether that is its machine."""


class Homes:
    """Which group the state of a machine is of, as long as the program has the machine.

    Entries are counted anew in every group. A machine that goes on after entry 5 of a group that has ended would be let
    into the next one of that name, if that has an entry 5, and with its checkpoint all others would have rows that
    nobody wrote there. So would one that has applied an entry 5 which was lost with a quorum, when there is another
    one. So the library remembers for the program what a number alone does not say. Of a machine that was in no group
    here, because its state comes from elsewhere, and of one that cannot be referred to weakly, nothing is known.
    """

    def __init__(self) -> None:
        self._homes: dict[int, tuple[weakref.ref[StateMachine], Numbering]] = {}  # by the identity of the machine
        self._parts: weakref.WeakValueDictionary[int, Part] = weakref.WeakValueDictionary()  # that it has part in

    def occupy(self, machine: StateMachine, part: Part) -> None:
        """It applies what is told to this member, and nobody else, until that has ended."""
        self._parts[id(machine)] = part

    def check_free(self, machine: StateMachine, group: str) -> None:
        """Raise if it is the machine of another member: everything would be applied to it twice, or of two groups."""
        part = self._parts.get(id(machine))
        if part is not None and not part.has_ended and part.applies_to(machine):
            text = f"this machine is in group {part.group!r} already; a machine is of one member: make another one"
            raise UsageError(text, group=group)

    def enter(self, machine: StateMachine, numbering: Numbering) -> None:
        """Its state is that of a group with these numbers."""
        key = id(machine)
        with contextlib.suppress(TypeError):  # it has __slots__
            self._homes[key] = (weakref.ref(machine, lambda _: self._homes.pop(key, None)), numbering)

    def leave(self, machine: StateMachine) -> None:
        """Its state is that of no group."""
        self._homes.pop(id(machine), None)

    def of(self, machine: StateMachine) -> Numbering:
        """What the numbers that it knows are of."""
        found = self._homes.get(id(machine))
        return NOT_KNOWN if found is None else found[1]


homes = Homes()


def tell_group(machine: StateMachine | None, group: object) -> None:
    """A machine with a method ``joined`` is told the group that it is in, once it has caught up."""
    joined = getattr(machine, "joined", None)
    if callable(joined):
        joined(group)


def since_number(since: Since | Position | int | None, *, has_machine: bool, group: str) -> int:
    """``since`` as it is said to the daemon; with a machine the default is the newest checkpoint."""
    if since is None:
        return SINCE_CHECKPOINT if has_machine else SINCE_NOW
    if since is Since.CHECKPOINT:
        return SINCE_CHECKPOINT
    if since is Since.NOW:
        if has_machine:
            text = (
                "a state machine cannot begin with what comes now; leave since out to begin with the newest checkpoint,"
                " or give the number of the message that it has applied last"
            )
            raise UsageError(text, group=group)
        return SINCE_NOW
    seq = since.seq if isinstance(since, Position) else since
    if isinstance(seq, bool) or not isinstance(seq, int) or not 0 <= seq < NUMBER_END:
        text = f"since is {since!r}; it must be NOW, CHECKPOINT, a position or the number of an entry"
        raise UsageError(text, group=group)
    return seq


def since_numbering(
    since: Since | Position | int | None, machine: StateMachine | None, known: Numberings, group: str
) -> Numbering:
    """What the number in ``since`` is of. ``known``: where this program was; of its state a machine knows it."""
    if since is None or isinstance(since, Since):
        return NOT_KNOWN
    home = NOT_KNOWN if machine is None else homes.of(machine)
    if isinstance(since, Position):
        if since.numbering[0] == 0:
            raise UsageError(f"position {since} is of no group that can be joined", group=group)
        if home not in (NOT_KNOWN, since.numbering):
            text = f"position {since} is of another group than the state of this machine; leave since out"
            raise UsageError(text, group=group)
        return since.numbering
    if machine is not None or since == 0:  # after 0 is everything, of whatever group
        return home
    return known.of_a_number(group, since)


def checked_machine(machine: object, group: str) -> StateMachine | None:
    """What was given as a machine, if it can be one."""
    if machine is None:
        return None
    missing = [name for name in ("apply", "snapshot", "restore") if not callable(getattr(machine, name, None))]
    if missing or isinstance(machine, type):
        what = f"it has no {missing[0]}()" if missing else "it is a class; make an object of it"
        raise UsageError(f"{machine!r:.60} cannot be a state machine: {what}", group=group)
    return machine  # type: ignore[return-value]  # it was looked at
