"""Events that the program has not read yet: bounded, in order, and nothing is dropped silently.

The thread that reads the socket appends; the thread that reads events takes; both without a lock, since a deque's ends
are independent of each other. A run of messages of one sender is kept as it came and taken apart by the reader, when it
comes to it: to the other thread it costs the same as one message. What the reader has taken apart is ``ready``.

What is left out beyond the limit is counted, and the count is in the place of what is missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count, repeat

from ..events import Event, Message, Overrun
from ..views import Provider, View
from ..wire.limits import EVENTS_MAX


class MessageRun:
    """Messages of one sender in a row, entries from ``seq`` on."""

    __slots__ = ("group", "origin", "payloads", "sender", "seq", "view_before")

    def __init__(
        self, group: str, seq: int, sender: Provider | None, origin: str, payloads: tuple[bytes, ...], view: View
    ) -> None:
        self.group = group
        self.seq = seq
        self.sender = sender
        self.origin = origin
        self.payloads = payloads
        self.view_before = view

    def __len__(self) -> int:
        return len(self.payloads)

    def messages(self) -> Iterator[Message]:
        """Each of them."""
        sender, group, origin, view = map(repeat, (self.sender, self.group, self.origin, self.view_before))
        return map(Message, sender, self.payloads, count(self.seq), group, origin, view)


class EventBuffer:
    """What was appended and not taken, at most ``limit`` events and what must be told all the same."""

    def __init__(self, limit: int = EVENTS_MAX) -> None:
        self._limit = limit
        self._kept: deque[Event | MessageRun] = deque()
        self._appended = 0  # by the one thread,
        self._taken = 0  # and by the other
        self._missed: dict[str, int] = {}
        self.ready: deque[Message] = deque()  # the first of all; with ``popleft`` it is taken, and nothing else is due
        self.reader = 0  # the thread that takes, one at a time; a lock would stay locked after an interrupt

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self.ready and not self._kept and not self._missed

    def append(self, event: Event | MessageRun, *, group: str) -> bool:
        """One more event, or a run; False if there is no room, and it is only counted."""
        size = len(event) if isinstance(event, MessageRun) else 1
        if self._appended - self._taken + len(self.ready) + size > self._limit:
            self._missed[group] = self._missed.get(group, 0) + size
            return False
        self._say_what_is_missing(group)
        self._put(event, size)
        return True

    def append_anyway(self, event: Event, *, group: str) -> None:
        """An event that nobody may miss, full or not: it is the last one of its group."""
        self._say_what_is_missing(group)
        self._put(event, 1)

    def _say_what_is_missing(self, group: str) -> None:
        missed = self._missed.pop(group, 0)
        if missed:
            self._put(Overrun(missed, group=group), 1)

    def _put(self, event: Event | MessageRun, size: int) -> None:
        self._kept.append(event)
        self._appended += size

    def take(self) -> Event | None:
        """The next event; None if there is none."""
        if self.ready:
            return self.ready.popleft()
        try:
            found = self._kept.popleft()
        except IndexError:
            return self._take_missing()
        if isinstance(found, MessageRun):
            self.ready.extend(found.messages())
            self._taken += len(found)
            return self.ready.popleft()
        self._taken += 1
        return found

    def _take_missing(self) -> Event | None:
        """Everything was read, and something was left out after it."""
        try:
            group, missed = self._missed.popitem()
        except KeyError:
            return None
        return Overrun(missed, group=group)

    def take_all_from(self, other: EventBuffer) -> None:
        """What another one holds, before anything else comes."""
        while (event := other.take()) is not None:
            self._put(event, 1)
