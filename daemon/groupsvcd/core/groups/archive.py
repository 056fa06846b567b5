"""What a new provider of a group with state machines begins with: the newest checkpoint, and the messages since.

The providers of "routes" each keep a table that the messages add up to. A's table stands after message 5000; C wants to
join and needs the same one. Nobody is asked for it: every member of the stream has it here, because the checkpoint is
itself in the stream. A provider takes one, in *blocks*, and submits them like anything else; when the last one and its
seal are applied, everybody drops the checkpoint before it and the messages up to it. What C is told comes from C's own
node. So no donor can die meanwhile, a node that was restarted has it from its disk, and all have the same.

Who takes one: nobody is appointed. When so many messages have gathered as the group's ``checkpoint_every`` says (or
``TAIL_BYTES_WANTED``), the oldest living provider is asked; if half as many more have come and nothing was sealed, the
second oldest, and so on, round and round. So nobody waits for a process that hangs. Blocks are a *draft* of their
provider until they are sealed; with the provider the draft goes.

A checkpoint costs the stream its size. That of a large state is worth it only when about as much has been said since
the one before: so the tail may grow to the size of the checkpoint first, and the stream carries at most about twice
what the providers say.

Nothing here grows without end. If nobody seals a checkpoint in ``TAIL_TIMES_MAX`` times that, and at least
``TAIL_MESSAGES_MIN`` messages, they are dropped, and nobody can join until somebody does; whoever is in misses nothing.

It is part of the process group: a function of the stream, the same at all members, in every checkpoint of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import attrs
import msgspec

from groupsvc.wire.limits import CHECKPOINT_BYTES_MAX, TAIL_BYTES_WANTED, TAIL_MESSAGES_MIN, TAIL_TIMES_MAX
from groupsvc.wire.notices import ProviderId

MESSAGE_BYTES = 100
"""About what a small message costs to tell again, beside what it says."""

Kept = tuple[int, ProviderId, bytes]
"""A message: its entry, who sent it, what it says."""


@attrs.frozen
class Draft:
    """Blocks of a checkpoint that stands after entry ``at``, as far as they have come."""

    at: int
    blocks: tuple[bytes, ...] = ()
    size: int = 0


class StoredArchive(msgspec.Struct, frozen=True, array_like=True):
    """An archive in a checkpoint of the stream."""

    at: int
    blocks: tuple[bytes, ...]
    begins: int
    tail: tuple[Kept, ...]
    drafts: tuple[tuple[ProviderId, int, tuple[bytes, ...]], ...]


class Archive:
    """The newest checkpoint of the providers' machines, and the tail behind it."""

    def __init__(self, seq: int = 0) -> None:
        """After entry ``seq`` all machines are empty: nothing was said before, or it went with the last provider."""
        self.at = seq  # the entry that the checkpoint stands after; without one a machine begins empty
        self.blocks: tuple[bytes, ...] = ()
        self._size = 0  # of the blocks
        self.begins = seq  # all messages after this entry are in the tail
        self._tail: deque[Kept] = deque()
        self._bytes = 0
        self._drafts: dict[ProviderId, Draft] = {}

    # --- Messages ---

    def keep(self, seq: int, sender: ProviderId, payloads: Iterable[bytes], every: int) -> None:
        """Messages of one sender, entries from ``seq`` on; a checkpoint is wanted after ``every`` of them."""
        tail, most_bytes = self._tail, TAIL_TIMES_MAX * self._bytes_wanted
        most_messages = max(TAIL_MESSAGES_MIN, TAIL_TIMES_MAX * self._messages_wanted(every))
        for number, payload in enumerate(payloads, seq):
            tail.append((number, sender, payload))
            self._bytes += len(payload)
            if len(tail) > most_messages or self._bytes > most_bytes:
                tail.clear()
                self._bytes, self.begins = 0, number

    def turns(self, every: int) -> int:
        """How many providers should have been asked for a checkpoint since the one that we have."""
        halves = max(2 * len(self._tail) // self._messages_wanted(every), 2 * self._bytes // self._bytes_wanted)
        if not self.is_whole:
            return max(1, halves - 1)
        return max(0, halves - 1)

    def _messages_wanted(self, every: int) -> int:
        return max(every, self._size // MESSAGE_BYTES)

    @property
    def _bytes_wanted(self) -> int:
        return max(TAIL_BYTES_WANTED, self._size)

    @property
    def is_whole(self) -> bool:
        """Whether somebody can begin with it: nothing is missing between checkpoint and tail."""
        return self.begins <= self.at

    def since(self, seq: int) -> Iterator[Kept]:
        """The messages after entry ``seq``."""
        return (one for one in self._tail if one[0] > seq)

    def __len__(self) -> int:
        return len(self._tail)

    # --- Checkpoints ---

    def take_block(self, seq: int, provider: ProviderId, at: int, index: int, block: bytes) -> None:
        """A provider has submitted the next block of a checkpoint; one that does not continue its draft is left out."""
        draft = Draft(at) if index == 0 else self._drafts.get(provider)
        if draft is None or not self.at < at < seq or draft.at != at or len(draft.blocks) != index:
            return
        size = draft.size + len(block)
        if size > CHECKPOINT_BYTES_MAX:
            self._drafts.pop(provider, None)
        else:
            self._drafts[provider] = Draft(at, (*draft.blocks, block), size)

    def seal(self, seq: int, provider: ProviderId, at: int, count: int) -> bool:
        """It was the last one, and they are so many; whether that is the newest checkpoint from now on."""
        draft = self._drafts.pop(provider, Draft(at) if count == 0 else None)
        is_fitting = draft is not None and draft.at == at and len(draft.blocks) == count
        if draft is None or not is_fitting or not max(self.at, self.begins - 1) < at < seq:
            return False
        self.at, self.blocks, self.begins, self._size = at, draft.blocks, at, draft.size
        while self._tail and self._tail[0][0] <= at:
            self._bytes -= len(self._tail.popleft()[2])
        self._drafts = {one: other for one, other in self._drafts.items() if other.at > at}
        return True

    def forget(self, provider: ProviderId) -> None:
        """It is no more, and neither is what it has not sealed."""
        self._drafts.pop(provider, None)

    # --- Checkpoints of the stream ---

    def stored(self) -> StoredArchive:
        """Everything, as a value."""
        drafts = tuple((provider, draft.at, draft.blocks) for provider, draft in self._drafts.items())
        return StoredArchive(self.at, self.blocks, self.begins, tuple(self._tail), drafts)

    @classmethod
    def of(cls, stored: StoredArchive) -> Archive:
        """The archive that this was made of."""
        archive = cls()
        archive.at, archive.blocks, archive.begins = stored.at, stored.blocks, stored.begins
        archive._size = sum(map(len, stored.blocks))
        archive._tail = deque(stored.tail)
        archive._bytes = sum(len(payload) for _, _, payload in stored.tail)
        archive._drafts = {provider: Draft(at, blocks, sum(map(len, blocks))) for provider, at, blocks in stored.drafts}
        return archive
