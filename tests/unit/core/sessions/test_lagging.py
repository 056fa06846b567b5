"""A node misses entries that nobody keeps any more, because it was slow or cut off: what its programs are told (GS-12).

D, E and F serve, G only follows. What D, E and F say does not reach G for a while; the name server hears it all the
time, so it is up. Nobody waits for it past the history of the group. When it is reached again its copy goes on from a
checkpoint; but its programs were not told what lies between, and so all of them have lost the group, whatever they are.
"""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import (
    CheckpointBlock,
    JoinedAs,
    MemberLost,
    MessagesCame,
    SealCheckpoint,
    SnapshotWanted,
    StoreBlock,
    Subscribed,
)
from groupsvc.wire.notices import Left
from groupsvcd.core.groups.process_groups import LAGGED

from .applications import Application, Applications


def _assembled(*, has_machine: bool) -> tuple[Applications, list[Application], Application, Application]:
    """A provider on each of D, E and F; on G a provider, and somebody who watches."""
    domain = Applications(retention_margin=5)
    others = [domain.opened(node) for node in "DEF"]
    for application in others:
        application.join(has_machine=has_machine, history_entries_max=10, checkpoint_every=10)
    provider, watcher = domain.opened("G"), domain.opened("G")
    provider.join(has_machine=has_machine)
    watcher.subscribe()
    domain.run(1.0)
    return domain, others, provider, watcher


def _take_checkpoints(applications: list[Application], seen: set[tuple[int, int]]) -> None:
    """Whoever is asked for one says how many messages it has applied."""
    for application in applications:
        for wanted in application.kinds(SnapshotWanted):
            if (wanted.member, wanted.seq) not in seen:
                seen.add((wanted.member, wanted.seq))
                applied = sum(len(one.payloads) for one in application.kinds(MessagesCame) if one.seq <= wanted.seq)
                application.ask(StoreBlock, wanted.member, wanted.seq, 0, b"%d" % applied)
                application.ask(SealCheckpoint, wanted.member, wanted.seq, 1)


def _lag(domain: Applications, others: list[Application], messages: int) -> None:
    """So many messages are ordered, one after the other, while G hears nothing of them; then it is reached again."""
    domain.loses = lambda sender, receiver, message: receiver == "G" and sender in "DEF"
    seen: set[tuple[int, int]] = set()
    for number in range(messages):
        others[1].multicast(b"%d" % number)
        domain.run(0.02)
        _take_checkpoints(others, seen)
    domain.run(1.5)
    domain.heal()
    domain.run(3.0)


@pytest.mark.parametrize("has_machine", [False, True])
def test_a_short_lag_costs_nobody_anything(has_machine: bool) -> None:
    domain, others, provider, watcher = _assembled(has_machine=has_machine)
    _lag(domain, others, 5)
    assert [b"0", b"1", b"2", b"3", b"4"] == provider.payloads
    assert [] == provider.kinds(MemberLost) == watcher.kinds(MemberLost)


@pytest.mark.parametrize("has_machine", [False, True])
def test_with_a_machine_or_not_a_provider_and_a_subscriber_are_told_that_they_have_lost_the_group(
    has_machine: bool,
) -> None:
    """Nobody skips anything silently; and nobody is left in the list for whom nobody is there."""
    domain, others, provider, watcher = _assembled(has_machine=has_machine)
    _lag(domain, others, 40)
    assert [] == provider.payloads
    for application in (provider, watcher):
        assert [(application.member, False, LAGGED)] == [
            (lost.member, lost.dissolved, lost.reason) for lost in application.kinds(MemberLost)
        ]
    gone = [one for left in others[0].notices(Left) for one in left.providers]
    assert [provider.kinds(JoinedAs)[0].provider] == gone
    assert ["none"] == domain.roles("G", "db")


def test_a_machine_that_joins_again_has_the_whole_state() -> None:
    """SAM-08: the newest checkpoint, and what was said since; all forty, however they are divided."""
    domain, others, provider, watcher = _assembled(has_machine=True)
    _lag(domain, others, 40)
    before = len(provider.told)
    assert isinstance(provider.answer(provider.join(has_machine=True, wait=1.0)), JoinedAs)
    again = provider.told[before:]
    (block,) = [one.block for one in again if isinstance(one, CheckpointBlock)]
    tail = [payload for one in again if isinstance(one, MessagesCame) for payload in one.payloads]
    assert [b"%d" % number for number in range(int(block), 40)] == tail
    assert isinstance(watcher.answer(watcher.subscribe()), Subscribed)
    assert 4 == len(watcher.kinds(Subscribed)[-1].view.providers)
