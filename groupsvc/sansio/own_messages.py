"""The multicasts of one provider: from the program's hand until they come back in the stream.

They are pipelined: the program does not wait for one before it sends the next. The first goes out at once; while it is
on its way the next ones gather and go together, when the program waits for something, or when one comes back. So a slow
program has the least delay. A fast one sends in bursts, and there the first alone would cost as much as all that follow
it: after a request with several messages the first of the next burst gathers, too, for a moment (``Pump.gather``).

There is no answer if all is well: one's own message, when it is delivered here, *is* the answer, and the stream keeps a
sender's order, so counting them is enough.

The numbers in a ``MessageId`` count this provider's messages from 1. ``add`` must be cheap and survive an interrupt
between any two steps: what counts is the queue itself, and the sum of bytes is right again when nothing is on its way.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from typing import NewType

import attrs

from ..errors import GroupServiceError, OutcomeUnknown
from ..wire.client_messages import Multicast, Problem
from ..wire.limits import FRAME_BYTES_USUAL, OUTSTANDING_BYTES_MAX, OUTSTANDING_MAX
from .problems import error_of

MessageId = NewType("MessageId", str)

GATHER_MAX = 128
"""So many gathered messages go out without waiting for the ones before them."""

IDS_SHOWN_MAX = 10_000
"""No error names more messages than this."""


@attrs.define
class _OnTheWay:
    """One request: ``count`` messages from number ``first`` on that have not come back."""

    id: int
    first: int
    count: int
    payloads: tuple[bytes, ...]  # the last ``count`` of them


class OwnMessages:
    """What one provider has sent and not seen come back."""

    def __init__(self, provider: str) -> None:
        self._prefix = f"{provider}/"
        self._queue: deque[bytes] = deque()
        self._numbered = 0
        self._on_the_way: deque[_OnTheWay] = deque()
        self._count = 0
        self._bytes = 0
        self.comes_in_bursts = False  # several went with the last request
        self.error: GroupServiceError | None = None  # what ``flush`` has to say
        self.failures = 0
        self.told = 0  # of them, how many somebody was told of
        self._is_over = False

    # --- The program's side ---

    def has_room(self, size: int) -> bool:
        """Whether one of so many bytes can go now; the only one can, however large."""
        return self._count + len(self._queue) < OUTSTANDING_MAX and (
            self._bytes + size <= OUTSTANDING_BYTES_MAX or self.is_idle
        )

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way, or gathers."""
        return not self._queue and not self._on_the_way

    @property
    def wants_out(self) -> bool:
        """Whether what gathers should go now, rather than with the next that comes back."""
        return (not self._on_the_way and not self.comes_in_bursts) or len(self._queue) >= GATHER_MAX

    def add(self, payload: bytes) -> MessageId:
        """One more; it goes out with the next request."""
        self._bytes += len(payload)
        self._queue.append(payload)
        return f"{self._prefix}{self._numbered + len(self._queue)}"  # type: ignore[return-value]  # calling it costs

    # --- The session's side ---

    def requests(self, member: int, next_id: Callable[[], int]) -> list[Multicast]:
        """What gathered, as requests, each fit for a frame."""
        made: list[Multicast] = []
        while self._queue:
            payloads = self._taken_from_queue()
            request = Multicast(next_id(), member, payloads)
            self._on_the_way.append(_OnTheWay(request.id, self._numbered + 1, len(payloads), payloads))
            self._numbered += len(payloads)
            self._count += len(payloads)
            self.comes_in_bursts = len(payloads) > 1
            made.append(request)
        return made

    def _taken_from_queue(self) -> tuple[bytes, ...]:
        queue = self._queue
        if sum(map(len, queue)) <= FRAME_BYTES_USUAL:
            payloads = tuple(queue)
            queue.clear()
            return payloads
        size = len(queue[0])
        some = [queue.popleft()]
        while queue and size + len(queue[0]) <= FRAME_BYTES_USUAL:
            size += len(queue[0])
            some.append(queue.popleft())
        return tuple(some)

    def came_back(self, count: int) -> None:
        """So many of them were delivered here, in the order they were sent."""
        while count and self._on_the_way:
            front = self._on_the_way[0]
            done = min(count, front.count)
            start = len(front.payloads) - front.count
            self._bytes -= sum(map(len, front.payloads[start : start + done]))
            front.count -= done
            front.first += done
            self._count -= done
            count -= done
            if not front.count:
                self._on_the_way.popleft()
        if self.is_idle:
            self._bytes = 0

    def refused(self, problem: Problem, group: str) -> None:
        """The request was not taken, or what became of it is not known; ``flush`` says so."""
        for request in self._on_the_way:
            if request.id == problem.id:
                self._on_the_way.remove(request)
                self._count -= request.count
                self._bytes -= sum(map(len, request.payloads[-request.count :]))
                what, ids = f"send messages to group {group!r}", self._ids(request.first, request.count)
                self._fail(error_of(problem, what, group=group, ids=ids))
                return

    def is_waiting_for(self, id: int) -> bool:
        """Whether this request is one of ours."""
        return any(request.id == id for request in self._on_the_way)

    def give_up(self, why: str, group: str) -> None:
        """Nothing more comes back: what became of them is not known."""
        if self.is_idle:
            return
        ids = self.ids()
        self._on_the_way.clear()
        self._queue.clear()
        self._count = self._bytes = 0
        text = f"it is not known whether {len(ids)} messages to group {group!r} were delivered: {why}"
        self._fail(OutcomeUnknown(text, ids, group=group))
        self._is_over = True

    def _fail(self, error: GroupServiceError) -> None:
        """Failures that nobody was told of yet are told as one; what is not known outweighs what did not happen."""
        untold = self.error if self.told < self.failures else None
        self.failures += 1
        if isinstance(untold, OutcomeUnknown):
            more = error.ids if isinstance(error, OutcomeUnknown) else ()
            self.error = OutcomeUnknown(str(untold), (*untold.ids, *more)[:IDS_SHOWN_MAX], group=untold.group)
        elif untold is None or isinstance(error, OutcomeUnknown):
            self.error = error

    def take_error(self, since: int) -> GroupServiceError | None:
        """What has failed after the first ``since`` failures. All who wait are told, each with an error of its own.

        Who comes later is not told again, unless nothing can be sent any more: then there is nothing else to say.
        """
        if self.failures <= since:
            return None
        if not self._is_over:
            self.told = self.failures
        return copy.copy(self.error)

    def ids(self) -> tuple[str, ...]:
        """Those that have not come back."""
        found: list[str] = []
        for request in self._on_the_way:
            found.extend(self._ids(request.first, request.count))
        found.extend(self._ids(self._numbered + 1, len(self._queue)))
        return tuple(found[:IDS_SHOWN_MAX])

    def _ids(self, first: int, count: int) -> tuple[str, ...]:
        return tuple(f"{self._prefix}{number}" for number in range(first, first + count))
