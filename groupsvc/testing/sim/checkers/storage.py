"""S1: what a client was told is on the disks of a majority."""

from __future__ import annotations

from collections.abc import Iterator

from .eras import Era
from .invocations import call_key
from .lives import Lives, record_kind
from .outdated import words_of_replaced_disks
from .verdict import Violation


def s1(era: Era) -> Iterator[Violation]:
    """Every good answer rests on an entry that a majority of voters had on disk at some moment before it.

    Judged are config_set and config_get (the version) and look-ups that found or formed a group (its id): a
    read shows nothing that could still be lost. "At some moment": a disk may die while the answer is on its
    way. An ``open`` sets what a disk has, upwards or downwards; a new disk has nothing. A voter without a state
    directory promises no durability and is not counted against. Answers carried over from an earlier era
    speak of its disks and are left out. And nobody answers from a disk that was replaced.
    """
    yield from words_of_replaced_disks(era)
    lives = Lives()
    on_disk: dict[str, int] = {}
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
            if lives.see(line):
                on_disk[line.node] = 0
            if line.node in era.voters and not lives[line.node].durable:
                memory_only.add(line.node)
        elif line.op == "persisted":
            kind = record_kind(line)
            if kind == "open":
                on_disk[line.node] = line.seq
            elif kind in ("append", "checkpoint"):
                on_disk[line.node] = max(on_disk.get(line.node, 0), line.seq)
            else:
                continue
            safe = max(safe, era.covered_by_majority(on_disk))
