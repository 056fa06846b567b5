"""Which part of what follows from an entry concerns whom.

A provider is told from its own ``Joined`` on. It is told all of the entry in which it leaves, also what comes behind
its ``Left``: else it would see a group in the end that nobody else sees under that number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from groupsvc.wire.notices import AnyNotice, Joined

from ..views import NodeId


def shares_of(
    happened: Sequence[AnyNotice], node: NodeId, numbers: Iterable[int], told_in: Set[int]
) -> Iterator[tuple[int, Sequence[AnyNotice]]]:
    """What these processes of a node are told, if anything; ``told_in`` are those who were in before.

    Those who are told the same are given the same object.
    """
    if not happened:
        return
    joined = {
        provider.id[2]: place
        for place, notice in enumerate(happened) if isinstance(notice, Joined)
        for provider in notice.providers if provider.node == node
    }  # fmt: skip
    shares = {0: happened}
    for number in numbers:
        first = 0 if number in told_in else joined.get(number)
        if first is not None:
            if first not in shares:
                shares[first] = happened[first:]
            yield number, shares[first]
