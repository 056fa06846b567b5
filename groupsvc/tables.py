"""A table that is the same at all providers of a group: keys and values, written through the stream, read locally.

    table = Table()
    with session.join("routes", machine=table) as group:
        table.put("10.0.0.0/8", b"gateway-2")
        table.compare_and_set("leader", None, b"anna")
        for network, gateway in table.items():
            ...

Every write is a message of the group. It is applied by all in the same order, so all have the same table after the same
message; who joins later gets it whole. A write returns when it was applied *here*: who writes reads what it wrote. A
read costs nothing and may be a moment old; after ``sync()`` it is not older than the call.

Keys are strings, values bytes. The row of a key has a *version*: the number of the message that wrote it.

``Table(on_change=…)`` tells of every change. Its errors change nothing in the table; they are shown where those of
other callbacks are: in ``threading.excepthook``, in asyncio in the loop's exception handler.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, ClassVar, Literal

import attrs
import msgspec

from . import clock
from .drivers.callbacks import report
from .errors import OutcomeUnknown, PeerProtocolError, UsageError
from .events import Message
from .sansio import arguments as check
from .wire.codec import Reader
from .wire.limits import CHECKPOINT_BLOCK_BYTES_MAX, PAYLOAD_BYTES_MAX

if TYPE_CHECKING:
    from . import aio
    from .groups import Group
    from .known_group import KnownGroup
    from .sansio.membership_machine import Membership

_log = logging.getLogger("groupsvc.client")

OnChange = Callable[[str, bytes | None], object]
"""Called with a key and its new value, None if it was deleted."""

BLOCK_BYTES = 256 * 1024
"""Rows are put together up to about this size in a checkpoint; a larger row has a block of its own, or several."""

KEY_CHARS_MAX = 1000
VALUE_BYTES_MAX = CHECKPOINT_BLOCK_BYTES_MAX - 16 * 1024
"""A row fits into one block of a checkpoint."""


class Write(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One write, as the message says it. ``number`` counts those of one table; ``expected`` is for compare-and-set."""

    number: int
    kind: Literal["put", "delete", "cas"]
    key: str
    value: bytes | None = None
    expected: bytes | None = None


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A key, its value, and the message that wrote it."""

    key: str
    value: bytes
    version: int


_encoder = msgspec.msgpack.Encoder()
_write_reader: Reader[Write] = Reader(Write, "write to a table")
_rows_reader: Reader[list[Row]] = Reader(list[Row], "block of a table")


@attrs.define
class _Waiting:
    """Somebody waits for his own write to be applied; there were so many ``failures`` before."""

    failures: int
    is_done: bool = False
    result: bool = False


class Rows(Mapping[str, bytes]):
    """The table itself: what both kinds have in common, and all that can be done without waiting."""

    def __init__(self, on_change: OnChange | None = None) -> None:
        if on_change is not None and not callable(on_change):
            raise UsageError("on_change is a function of two arguments, the key and its new value")
        self._on_change = on_change
        self._rows: dict[str, Row] = {}
        self._lock = threading.RLock()  # between the thread that applies and those that copy
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._me = ""

    # --- Reading ---

    def __getitem__(self, key: str) -> bytes:
        return self._rows[key].value

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self.copy())

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def version(self, key: str) -> int:
        """The number of the message that wrote this row; 0 if there is none."""
        row = self._rows.get(key)
        return 0 if row is None else row.version

    def copy(self) -> dict[str, bytes]:
        """All of it as of one message, in the order in which the keys were first written."""
        with self._lock:
            return {key: row.value for key, row in self._rows.items()}

    def keys(self) -> KeysView[str]:
        """As of now; writes that come meanwhile are not seen."""
        return self.copy().keys()

    def values(self) -> ValuesView[bytes]:
        """The same for the values."""
        return self.copy().values()

    def items(self) -> ItemsView[str, bytes]:
        """The same for both."""
        return self.copy().items()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} rows>"

    # --- As a state machine ---

    def apply(self, entry: Message) -> None:
        """A write; a message that is none is left out, by everybody alike."""
        try:
            write = _write_reader.read(entry.payload)
        except PeerProtocolError:
            _log.warning("message %d in group %r is no write to its table", entry.seq, entry.group)
            return
        before = self._rows.get(write.key)
        is_fitting = write.kind != "cas" or write.expected == (None if before is None else before.value)
        result = is_fitting if write.kind != "delete" else before is not None
        if is_fitting:
            with self._lock:
                if write.value is None:
                    self._rows.pop(write.key, None)
                else:
                    self._rows[write.key] = Row(write.key, write.value, entry.seq)
            if write.value is not None or before is not None:
                self._changed(write.key, write.value)
        waiting = self._waiting.get(write.number) if entry.origin == self._me else None
        if waiting is not None:
            waiting.result, waiting.is_done = result, True

    def snapshot(self) -> Iterable[bytes]:
        """The rows, sorted: the same bytes at all who have applied the same messages."""
        rows: list[Row] = []
        size = 0
        for key in sorted(self._rows):
            row = self._rows[key]
            row_bytes = len(_encoder.encode(row))
            if rows and size + row_bytes > BLOCK_BYTES:
                yield _encoder.encode(rows)
                rows, size = [], 0
            rows.append(row)
            size += row_bytes
        if rows:
            yield _encoder.encode(rows)

    def restore(self, blocks: Sequence[bytes]) -> None:
        """Become the table of these blocks; if they are none, ``PeerProtocolError``, and it stays what it is."""
        rows = {row.key: row for block in blocks for row in _rows_reader.read(block)}
        with self._lock:
            before, self._rows = self._rows, rows
        for key in before.keys() - rows.keys():
            self._changed(key, None)
        for key, row in rows.items():
            self._changed(key, row.value)

    def _changed(self, key: str, value: bytes | None) -> None:
        if self._on_change is not None:
            try:
                self._on_change(key, value)
            except self._caught as error:  # what the program makes of the table is no part of the table
                _log.exception("on_change(%r) raised an error", key)
                self._report(f"on_change({key!r}) raised an error", error)

    _caught: ClassVar[type[BaseException]] = BaseException
    """On the thread of the callbacks ``sys.exit()`` is an error like any other; see ``drivers.callbacks``."""

    def _report(self, what: str, error: BaseException) -> None:
        report(error)

    # --- Writing ---

    def _write(
        self, kind: Literal["put", "delete", "cas"], key: str, value: bytes | None, expected: bytes | None = None
    ) -> tuple[Write, bytes]:
        if not check.text(key, "a key", KEY_CHARS_MAX):
            raise UsageError("a key has at least one character")
        for name, given in (("value", value), ("expected", expected)):
            if given is not None and (not isinstance(given, bytes) or len(given) > VALUE_BYTES_MAX):
                raise UsageError(f"{name} is {given!r:.60}; it must be at most {VALUE_BYTES_MAX} bytes")
        write = Write(next(self._numbers), kind, key, value, expected)
        payload = _encoder.encode(write)
        assert len(payload) <= PAYLOAD_BYTES_MAX
        return write, payload

    def _is_over(self, waiting: _Waiting, membership: Membership) -> bool:
        """Whether a write was applied, or never will be: something was refused, and nothing is on its way any more."""
        if waiting.is_done:
            return True
        own, applying = membership.own, membership.applying
        return own.failures > waiting.failures and own.is_idle and applying is not None and applying.is_idle

    def _not_known(self, group: KnownGroup, write: Write) -> OutcomeUnknown:
        """A write has not come back. Whether it was the one that was refused, nobody can tell from here."""
        text = f"whether key {write.key!r} of the table in group {group.name!r} was written is not known"
        return OutcomeUnknown(text, group=group.name, advice="look at it after sync(), or join again")


def _no_group() -> UsageError:
    return UsageError("this table is in no group; give it to join as its machine, and write after that")


class Table(Rows):
    """A table in the hands of a blocking program; thread-safe."""

    def __init__(self, on_change: OnChange | None = None) -> None:
        super().__init__(on_change)
        self._group: Group | None = None

    def joined(self, group: Group) -> None:
        """The group that it is in: called by ``join``."""
        self._group, self._me = group, group.me.id

    @property
    def group(self) -> Group:
        """That group."""
        if self._group is None:
            raise _no_group()
        return self._group

    def put(self, key: str, value: bytes, *, timeout: float | None = None) -> None:
        """Write; returns when it was applied here."""
        self._finish(*self._write("put", key, _bytes(value)), timeout)

    def put_nowait(self, key: str, value: bytes) -> None:
        """Write without waiting until it is applied; ``table.group.flush()`` waits for all of them."""
        self.group.multicast(self._write("put", key, _bytes(value))[1])

    def delete(self, key: str, *, timeout: float | None = None) -> bool:
        """Remove the row of this key; whether there was one."""
        return self._finish(*self._write("delete", key, None), timeout)

    def compare_and_set(
        self, key: str, expected: bytes | None, value: bytes | None, *, timeout: float | None = None
    ) -> bool:
        """Write if the value is still ``expected``; whether it was. None stands for no row, in both places."""
        return self._finish(*self._write("cas", key, value, expected), timeout)

    def sync(self, timeout: float | None = None) -> int:
        """Returns when everything that was written before the call is in the table here."""
        return self.group.sync(timeout)

    def _finish(self, write: Write, payload: bytes, timeout: float | None) -> bool:
        group, membership = self.group, self.group._membership
        until = clock.now() + group._seconds_to_wait("write to the table", timeout)  # before anything is sent
        waiting = self._waiting[write.number] = _Waiting(membership.own.failures)
        try:
            group._multicast(payload, until)
            group._wait_for(lambda: self._is_over(waiting, membership), until)
            if not waiting.is_done:
                raise self._not_known(group, write)
            return waiting.result
        finally:
            del self._waiting[write.number]


class AioTable(Rows):
    """The same table for asyncio: writes and ``sync`` are awaited."""

    _caught = Exception

    def __init__(self, on_change: OnChange | None = None) -> None:
        super().__init__(on_change)
        self._group: aio.Group | None = None

    def _report(self, what: str, error: BaseException) -> None:
        loop = asyncio.get_running_loop()  # on which it is applied
        loop.call_exception_handler({"message": f"groupsvc: {what}", "exception": error})

    def joined(self, group: aio.Group) -> None:
        """The group that it is in: called by ``join``."""
        self._group, self._me = group, group.me.id

    @property
    def group(self) -> aio.Group:
        """That group."""
        if self._group is None:
            raise _no_group()
        return self._group

    async def put(self, key: str, value: bytes, *, timeout: float | None = None) -> None:
        """Write; returns when it was applied here."""
        await self._finish(*self._write("put", key, _bytes(value)), timeout)

    def put_nowait(self, key: str, value: bytes) -> None:
        """Write without waiting; ``WouldBlock`` if too many are on their way."""
        self.group.multicast_nowait(self._write("put", key, _bytes(value))[1])

    async def delete(self, key: str, *, timeout: float | None = None) -> bool:
        """Remove the row of this key; whether there was one."""
        return await self._finish(*self._write("delete", key, None), timeout)

    async def compare_and_set(
        self, key: str, expected: bytes | None, value: bytes | None, *, timeout: float | None = None
    ) -> bool:
        """Write if the value is still ``expected``; whether it was. None stands for no row, in both places."""
        return await self._finish(*self._write("cas", key, value, expected), timeout)

    async def sync(self, timeout: float | None = None) -> int:
        """Returns when everything that was written before the call is in the table here."""
        return await self.group.sync(timeout)

    async def _finish(self, write: Write, payload: bytes, timeout: float | None) -> bool:
        group, membership = self.group, self.group._membership
        until = clock.now() + group._seconds_to_wait("write to the table", timeout)  # before anything is sent
        waiting = self._waiting[write.number] = _Waiting(membership.own.failures)
        try:
            await group._multicast(payload, until)
            await group._wait_for(lambda: self._is_over(waiting, membership), until)
            if not waiting.is_done:
                raise self._not_known(group, write)
            return waiting.result
        finally:
            del self._waiting[write.number]


def _bytes(value: bytes) -> bytes:
    """A value that is put: None would be a delete."""
    limit, advice = "tables.VALUE_BYTES_MAX", check.ELSEWHERE
    return check.payload(value, None, what="a value of a table", most=VALUE_BYTES_MAX, limit=limit, advice=advice)
