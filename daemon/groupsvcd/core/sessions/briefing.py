"""What a new provider is told between the answer to its join and its own ``Joined``: how it catches up.

A checkpoint and a hundred thousand messages are more than a session may be told at once. So they are told at the pace
at which its program counts them, and what happens in the group meanwhile waits behind them, in its order. Of that no
more waits than a session may leave uncounted anyway: beyond it the session is lost, like that of any program that is
too slow. The messages and blocks themselves cost nothing here: they belong to the group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from groupsvc.wire.client_messages import AnyClientReply, CheckpointBlock, CheckpointTold, MessagesCame
from groupsvc.wire.limits import UNCOUNTED_BYTES_MAX, UNCOUNTED_ITEMS_MAX

from ..groups.archive import Kept

if TYPE_CHECKING:
    from .session import Session

ITEM_BYTES = 16
"""About what a message costs beside its payload, where it is kept."""

RUN_BYTES = 128 * 1024
RUN_ITEMS = 1_000
"""Messages in a row are told together up to this size: half a frame of the usual one."""

Sized = tuple[AnyClientReply, int]


class Briefing:
    """What is still to be told to one new provider before anything else is."""

    def __init__(self, session: Session, member: int, first: Iterator[Sized], done: Callable[[], None]) -> None:
        self._session, self._member, self._done = session, member, done
        self._first = first
        self._behind: deque[Sized] = deque()
        self._behind_bytes = 0

    def put(self, telling: AnyClientReply, size: int) -> None:
        """This comes behind everything."""
        self._behind.append((telling, size))
        self._behind_bytes += size
        if len(self._behind) > UNCOUNTED_ITEMS_MAX or self._behind_bytes > UNCOUNTED_BYTES_MAX:
            session = self._session
            reason = "its program is too slow for what its state machine begins with (UNCOUNTED_BYTES_MAX)"
            session.desk.turn.round_trip.append(lambda: session.lose(reason, "overrun"))

    def go_on(self) -> None:
        """Tell as much as there is room for."""
        session = self._session
        for telling, size in self._first:
            session.put(telling, size)
            if session.is_crowded:
                break
        else:
            while self._behind and not session.is_crowded:
                telling, size = self._behind.popleft()
                self._behind_bytes -= size
                session.put(telling, size)
            if not self._behind:
                self._done()
                return
        session.behind[self._member] = self.go_on


def checkpoint(member: int, at: int, blocks: tuple[bytes, ...]) -> Iterator[Sized]:
    """The blocks that a machine begins with; none if there is no checkpoint yet, then it begins empty."""
    for index, block in enumerate(blocks):
        yield CheckpointBlock(member, index, block), len(block) + ITEM_BYTES
    yield CheckpointTold(member, at, len(blocks)), ITEM_BYTES


def messages(member: int, kept: Iterable[Kept]) -> Iterator[Sized]:
    """Messages, those in a row from one sender together."""
    run: list[bytes] = []
    first, size, sender = 0, 0, ("", 0, 0)
    for seq, who, payload in kept:
        fits = who == sender and seq == first + len(run) and size + len(payload) <= RUN_BYTES and len(run) < RUN_ITEMS
        if run and not fits:
            yield MessagesCame(member, first, sender, tuple(run)), size + ITEM_BYTES * (len(run) + 4)
            run, size = [], 0
        if not run:
            first, sender = seq, who
        run.append(payload)
        size += len(payload)
    if run:
        yield MessagesCame(member, first, sender, tuple(run)), size + ITEM_BYTES * (len(run) + 4)
