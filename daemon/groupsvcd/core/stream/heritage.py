"""Whether one log has what was delivered from another.

An entry has no epoch of its own, and what was delivered need not be in the log of a later epoch: in a fast group any
view may do without what only the dead have delivered, in a safe one a forced view. But every view begins with an entry
of its own, ``ViewStarted``, which is numbered once, on a log that is the same at all who accept that epoch; and until
the next view begins only its leader gives numbers. So a beginning of a log is known by two numbers: the newest view in
it, and how long it is. X has delivered 50 entries, the newest view among them is 7. A log in which view 7 began with 40
and view 9 with 51 has all of them; one in which view 9 began with 48 goes on without three.

Views that can lose nothing need not be listed: what such a view begins with has everything that was delivered before.
So in a safe group the list is that of the forced ones, which is short, behind a view 0 that stands for all before them.
With each of them stands the newest view that its log had: if that is 5, and X has followed view 6 and then hears of the
forced view 8, the entries of 6 are not in it, however long it is.

The same holds of what X has and has not delivered: a checkpoint says which view was the newest after which entry, and
so how much of X's log it stands behind, though nobody has told X that this is stable.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

import msgspec

from ..views import NodeId, Views

Own = Callable[[int, int, bytes], list[bytes]]
"""Of our entries after a number, those that a checkpoint stands behind: the one after this entry, with these bytes."""


def none_of_ours(after: int, seq: int, state: bytes) -> list[bytes]:
    """For streams whose checkpoints name no views, as the domain's: nobody can tell."""
    return []


class Heritage(msgspec.Struct, frozen=True):
    """What is known of a log without its entries: its newest views that count, and who carries the group at its end."""

    views: Views
    members: tuple[NodeId, ...]


def has_beginning(views: Views, last: float, newest: Container[int], seq: int) -> bool:
    """Whether a log with these views, up to ``last``, has the ``seq`` entries whose ``newest`` views are these.

    A view that is not among them is one that the log lacks, or one that is too long ago for anybody to know.
    """
    if not seq:
        return True
    return any(epoch in newest and seq < end for (epoch, _), end in zip(views, _ends(views, last), strict=True))


def common_beginning(views: Views, last: int, newest: int, seq: int) -> int:
    """How much of a log with these views, up to ``last``, is in one whose newest view after ``seq`` entries is this.

    That is all it has of that view, and all before it. Nothing is known of a log that has never seen that view begin.
    """
    ends = zip(views, _ends(views, last), strict=True)
    return max((min(seq, int(end) - 1) for (epoch, _), end in ends if epoch == newest), default=0)


def _ends(views: Views, last: float) -> Iterable[float]:
    """The number behind the last entry of each view."""
    return [*(began for _, began in views[1:]), last + 1][: len(views)]
