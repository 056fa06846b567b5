"""Messages that were delivered before somebody came, told to him all the same (SAM-15).

A group without state machines keeps no messages of its own. But this node's copy of the stream has a checkpoint and all
entries behind it; a second copy of the process group, begun there, sees the same messages again, and only those
that were for the providers then. What lies before the checkpoint is not kept, as far as applications are concerned,
even if some entries of it are: who had a say at the time is no longer known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groupsvc.wire.notices import Message

from ..nodegroups.controls import Ruled, decode_control
from ..stream.entries import Entry
from . import commands as cmd
from .archive import Kept
from .process_group import ProcessGroup


def messages_in(group: ProcessGroup, first_seq: int, entries: Sequence[Entry]) -> Iterator[Kept]:
    """The messages among ``entries``, the first of which is the one behind what ``group`` has applied."""
    for seq, entry in enumerate(entries, first_seq):
        body, origin = entry.body, (entry.origin, entry.incarnation)
        if entry.origin and cmd.is_message(body):
            sender = (*origin, cmd.sender_of(body))
            if group.hear(seq, 1, sender):
                yield seq, sender, body[cmd.MESSAGE_HEAD_BYTES :]
            continue
        if entry.origin:
            notices = group.apply(seq, origin, body)
        else:
            control = decode_control(body)
            is_ruling = isinstance(control, Ruled)
            notices = group.rule(seq, control.body) if is_ruling else group.control(seq, control)  # type: ignore[union-attr]
        for notice in notices:
            if isinstance(notice, Message):
                yield notice.seq, notice.sender, notice.payload
