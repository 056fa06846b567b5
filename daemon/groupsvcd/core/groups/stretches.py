"""Entries that are dealt with at once: plain messages are the most frequent by far, and come many in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, repeat
from operator import itemgetter

from . import commands as cmd

_head = itemgetter(slice(cmd.MESSAGE_HEAD_BYTES))

payload_of = itemgetter(slice(cmd.MESSAGE_HEAD_BYTES, None))
"""Of a plain message, what its sender said."""


def is_plain(body: bytes) -> bool:
    """Whether this is a plain message."""
    return cmd.is_message(body) and len(body) >= cmd.MESSAGE_HEAD_BYTES


def stretches(bodies: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """What is dealt with at once: plain messages of one sender in a row, or something else alone."""
    head = _head(bodies[0])
    if len(bodies) == 1 or (is_plain(head) and all(map(bytes.startswith, bodies, repeat(head)))):
        yield bodies  # as nearly always
        return
    for head, some in groupby(bodies, _head):
        if is_plain(head):
            yield tuple(some)
        else:
            yield from ((body,) for body in some)
