"""Standing in line: what locks, semaphores and elections have in common.

A, B and C want the same lock. Each joins the group of the lock, and the group's list of providers *is* the line: the
oldest holds the lock, the others wait in the order in which they came. Who is done, or does not want to wait any
longer, says goodbye; who dies is taken off the list by its daemon. So nobody ever has to clean up after anybody, and
there is no lock that a dead program has left behind.

The groups are *exclusive*: a provider that fails with its whole node stays on the list, in its place, until no lease of
that node can run any more. Before the next one is told that it is his turn, the old one's own clock has told him that
it is not his.

The fence of a turn is that of the view in which its holder first saw that it has it. It leaves with an entry that makes
the fence larger, and nobody who comes after it has seen a view before that entry: fences grow from holder to holder.

Each attempt is a ``Contender`` of its own, also two of one session, and is known by its call: whoever is interrupted at
any point withdraws it, and it is gone, whether it waited to be let in or had a place already.

The line of a lock would end with its last contender, as every group does, and be formed anew for the next one, which
takes longer than a turn: and whoever is nearer to where that happens would get the lock again and again. So a session
that stands in such a line also keeps it: a ``Keeper`` is one more provider, for whom it is never the turn. It leaves
when nobody of this session has stood in line for a while.

What was rejected: joining once and passing the lock on with messages. It saves an entry for each turn, and needs a rule
for every way in which the one who should pass it on does not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import attrs

from ..attributes import GroupAttributes
from ..errors import AttributesMismatch, GroupServiceError, LockLost, UsageError, WouldBlock
from ..views import Provider
from ..wire.limits import PROVIDER_NAME_CHARS_MAX
from . import asking
from .calls import Call
from .membership_machine import Membership
from .session_machine import SessionMachine

Rule = Callable[[Sequence[Provider], Provider], bool]
"""Whether it is the turn of this one, in a line whose first has waited longest."""

KEEPS = "~"
"""The last of a keeper's name; those of contenders end with a digit."""

KEEP_S = 5.0
"""For so long nobody has stood in line."""

_numbers = itertools.count(1)


def is_first(line: Sequence[Provider], me: Provider) -> bool:
    """One at a time."""
    return bool(line) and line[0].id == me.id


def without_keepers(providers: Sequence[Provider]) -> tuple[Provider, ...]:
    """Those who stand in line."""
    return tuple(provider for provider in providers if not provider.name.endswith(KEEPS))


@attrs.frozen
class Line:
    """What is waited for: ``what`` in words, the group that is the line, and whose turn it is."""

    what: str
    group: str
    attributes: GroupAttributes
    rule: Rule = is_first
    data: bytes = b""
    is_kept: bool = False  # it is used again and again


def join_as(machine: SessionMachine, line: Line, mark: str = "") -> asking.Start:
    """Join the group of the line under a name that nobody of this session has there."""
    name = f"{machine.name}#{next(_numbers)}{mark}"[-PROVIDER_NAME_CHARS_MAX:]
    return asking.join(
        machine, line.group, name=name, attributes=line.attributes, create=None, data=line.data, on_proposal=None,
        events=False, may_be_reserved=True,
    )  # fmt: skip


class Contender:
    """One attempt to have a turn, from the request to be let in until it is over."""

    def __init__(self, machine: SessionMachine, line: Line) -> None:
        self.line = line
        self.fence = 0
        self.has_had_turn = False
        self.was_withdrawn = False
        self._machine = machine
        self._call: Call | None = None
        self._join = join_as(machine, line)

    def start(self, now: float, timeout: float) -> Call:
        """Ask to be let in; the call is remembered, so that nobody who is interrupted leaves it behind."""
        self._call = self._join(now, timeout)
        if self.line.is_kept:
            _keeper_of(self._machine, self.line).look(now, self)
        return self._call

    @property
    def is_over(self) -> bool:
        """Whether it neither has a place nor waits to be let in."""
        call = self._call
        if call is None or self.was_withdrawn:
            return True
        return call.is_done and (call.error is not None or self.membership.has_ended)

    @property
    def membership(self) -> Membership:
        """Its place in the line."""
        assert self._call is not None
        membership = self._call.result
        assert isinstance(membership, Membership)
        return membership

    def has_turn(self, now: float) -> bool:
        """Whether it is its turn, and somebody vouches for that."""
        membership = self.membership
        if membership.has_ended or self._machine.valid_for(now) <= 0:
            return False
        view = membership.view
        assert membership.me is not None
        if self.line.rule(without_keepers(view.providers), membership.me):
            self.fence = view.fence
            self.has_had_turn = True
            return True
        return False

    def knows_its_turn(self, now: float) -> bool:
        """Whether somebody vouches for the line, so that it is known whether it is its turn."""
        return self.has_turn(now) or (not self.membership.has_ended and self._machine.valid_for(now) > 0)

    def why_late(self, now: float) -> str:
        """Why it has no turn yet though it stands in line, in words; "" if it was not even let in."""
        if self._call is None or not self._call.is_done or self._call.error is not None:
            return ""
        if self._machine.valid_for(now) <= 0:
            return "nobody could say whose turn it is: this session is suspended, its daemon has no majority or is away"
        return "others hold it, or wait for it in front of you"

    @property
    def has_lost(self) -> bool:
        """Whether its place is gone, and it did not want that."""
        return self.membership.has_ended and not self.was_withdrawn

    def withdraw(self) -> None:
        """Give up the place, or the wish to have one; may be called again."""
        self.was_withdrawn = True
        if self._call is not None:
            self._machine.abandon(self._call)

    # --- Why not ---

    def not_had(self) -> GroupServiceError:
        """The place in the line was lost before its turn."""
        try:
            self._machine.check_open(f"wait for {self.line.what}", self.line.group)
        except GroupServiceError as error:
            return error
        text = f"lost the place in the line for {self.line.what}: {self.membership.end_reason}; try again"
        return LockLost(text, group=self.line.group)

    def lost(self) -> LockLost:
        """It had its turn, and lost it before it was done."""
        text = f"{self.line.what} was lost while it was held ({self.membership.end_reason}); somebody else may have it"
        text += " since; what was done meanwhile counts only if its fence was checked"
        return LockLost(text, group=self.line.group)


class Keeper:
    """Has the line go on while contenders of this session come and go; one of the session's ``chores``."""

    def __init__(self, machine: SessionMachine, line: Line) -> None:
        self.group = line.group
        self.deadline = math.inf
        self._machine = machine
        self._line = line
        self._call: Call | None = None
        self._contenders: list[Contender] = []

    def look(self, now: float, contender: Contender) -> None:
        """Somebody stands in line."""
        self._contenders = [*self._still_there, contender]
        self.deadline = now + KEEP_S
        if not self._is_in:
            try:
                self._call = join_as(self._machine, self._line, KEEPS)(now, KEEP_S)
            except WouldBlock:  # then the line goes on without it, only slower
                self._call = None

    @property
    def _still_there(self) -> list[Contender]:
        return [one for one in self._contenders if not one.is_over]

    @property
    def _is_in(self) -> bool:
        """Or on its way in."""
        call = self._call
        if call is None or (call.is_done and call.error is not None):
            return False
        return not call.is_done or (isinstance(call.result, Membership) and not call.result.has_ended)

    def tick(self, now: float) -> None:
        """Leave, if nobody stood in line for so long."""
        self._contenders = self._still_there
        self.deadline = now + KEEP_S if self._contenders else math.inf
        if not self._contenders:
            self._machine.chores.remove(self)
            if self._call is not None:
                self._machine.abandon(self._call)


def _keeper_of(machine: SessionMachine, line: Line) -> Keeper:
    for chore in machine.chores:
        if isinstance(chore, Keeper) and chore.group == line.group:
            return chore
    keeper = Keeper(machine, line)
    machine.chores.append(keeper)
    return keeper


def disagrees(line: Line, problem: AttributesMismatch) -> UsageError:
    """Others have said something else about it."""
    text = f"{line.what} is in use, and others say something else about it: {problem}"
    return UsageError(text, group=line.group)
