"""S1: what a client was told is on the disks of a majority."""

from __future__ import annotations

from collections.abc import Iterator

from groupsvc.wire.history import HistoryEvent

from .eras import Era
from .invocations import call_key
from .lives import Lives, record_kind
from .outdated import words_of_replaced_disks
from .verdict import Violation


def s1(era: Era) -> Iterator[Violation]:
    """Every good answer rests on an entry that a majority of voters had on disk at some moment before it.

    Judged are config_set and config_get (the version) and look-ups that found or formed a group (its id): a
    read shows nothing that could still be lost. "At some moment": a disk may die while the answer is on its
    way. A voter without a state directory promises no durability and is not counted against. Answers carried over
    from an earlier era speak of its disks and are left out. And nobody answers from a disk that was replaced.
    """
    yield from words_of_replaced_disks(era)
    copies = _Copies()
    safe = 0
    calls = era.calls
    memory_only: set[str] = set()
    for line in era.events:
        if line.type == "ok":
            call = calls.get(call_key(line))
            if call is None or call.end is not line or call.carried or len(memory_only) >= era.majority:
                continue
            if call.shown_seq > safe:
                text = (
                    f"{line.op} of {line.who} was answered on the strength of entry {call.shown_seq};"
                    f" a majority of disks has only {safe}"
                )
                yield Violation("S1", text, line.i)
        elif line.type != "event" or line.group != 0:
            continue
        elif line.op == "boot":
            copies.booted(line)
            if line.node in era.voters and not copies.lives[line.node].durable:
                memory_only.add(line.node)
        elif line.op == "held":
            copies.said[line.node] = (line.epoch, line.seq)
        elif line.op == "persisted":
            copies.persisted(line)
            safe = max(safe, era.covered_by_majority(copies.on_disk))


class _Copies:
    """How much of the stream each voter has on its disk.

    An ``open`` sets that, upwards or downwards. A new disk has nothing. But B says that it holds an entry, loses its
    disk, and C writes the entry a moment later: A, which leads, adds them up, and cannot know better before B's new
    process is heard. Nothing is lost by it, as C has the entry and no leader is elected without C while B has no
    state. So what a lost disk had *said* to hold counts in its epoch, until the new one has some of the stream.

    The invariant asks less: that a majority has persisted the entry before the answer, at whatever time. What a disk
    had written and not said when it was lost is not counted here, nor anything of it in a later epoch.
    """

    def __init__(self) -> None:
        self.lives = Lives()
        self.on_disk: dict[str, int] = {}
        self.said: dict[str, tuple[int, int]] = {}  # (epoch, number): that everything up to there is held
        self._lost: set[str] = set()  # whose numbers are those of a disk that is no more
        self._epoch = 0  # the newest that any disk has opened

    def booted(self, line: HistoryEvent) -> None:
        """A process has begun, perhaps on a new disk."""
        if self.lives.see(line):
            epoch, seq = self.said.pop(line.node, (0, 0))
            self.on_disk[line.node] = min(seq, self.on_disk.get(line.node, 0)) if epoch == self._epoch else 0
            self._lost.add(line.node)

    def persisted(self, line: HistoryEvent) -> None:
        """Something was written, perhaps of the stream."""
        kind, node = record_kind(line), line.node
        if kind not in ("open", "append", "checkpoint"):
            return
        if node in self._lost:
            self._have_nothing(node)
        if kind == "open":
            if line.epoch > self._epoch:
                self._epoch = line.epoch
                self._have_nothing(*self._lost)
            self.on_disk[node] = line.seq
            self.said[node] = (line.epoch, line.seq)
        else:
            self.on_disk[node] = max(self.on_disk.get(node, 0), line.seq)

    def _have_nothing(self, *nodes: str) -> None:
        self._lost.difference_update(nodes)
        for node in nodes:
            self.on_disk[node] = 0
