"""Which part of what follows from an entry concerns whom."""

from __future__ import annotations

from collections.abc import Sequence

from groupsvc.wire.notices import AnyNotice, Joined, Left, ProviderId


def share_of(provider: ProviderId, happened: Sequence[AnyNotice], *, is_in: bool) -> Sequence[AnyNotice]:
    """What a provider is told of an entry: from its own ``Joined`` on, and up to its ``Left``."""
    if is_in and not any(_leaves(notice, provider) for notice in happened):
        return happened  # as most of the time, and then all are told the same
    share: list[AnyNotice] = []
    for notice in happened:
        is_in = is_in or (isinstance(notice, Joined) and any(one.id == provider for one in notice.providers))
        if is_in:
            share.append(notice)
            if _leaves(notice, provider):
                break
    return share


def _leaves(notice: AnyNotice, provider: ProviderId) -> bool:
    return isinstance(notice, Left) and provider in notice.providers
