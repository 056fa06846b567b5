"""Where a new member begins: now, after a number that is still kept, or after the newest checkpoint (SAM-15)."""

from __future__ import annotations

import pytest

from groupsvcd.core.nodegroups.user import CHECKPOINT, NOW
from groupsvcd.core.peer_messages import Data, Inserted, Order, Repair

from .carriers import GROUP, Carriers, Witness


def _nodes(carriers: str = "DEF", *, large: bool = False) -> Carriers:
    """Twenty entries, the last of them number 20 or so; G is no member, and all is kept because F lags."""
    limits = {"inline_bytes_max": 3} if large else {}
    nodes = Carriers.with_group(carriers, checkpoint_every=10, **limits)
    nodes.lose(Order, "D>F")
    for number in range(20):
        nodes.submit("E", f"e-{number}")
    nodes.run(0.1)
    return nodes


def _join(nodes: Carriers, name: str, since: int) -> Witness:
    user = nodes.users[name, GROUP] = Witness()
    nodes.act(name, lambda groups: groups.join(GROUP, {}, user, since=since))
    return user


def _last(nodes: Carriers) -> int:
    return nodes.seat("D").replica.log.last


def test_without_a_wish_a_member_begins_now() -> None:
    nodes = _nodes()
    user = _join(nodes, "G", NOW)
    nodes.run(0.1)
    nodes.submit("E", "new")
    nodes.run(0.5)
    assert (["new"], True) == (user.texts, user.joined_at[0] > 20)


@pytest.mark.parametrize("large", [False, True])
def test_a_member_may_begin_after_a_number_that_is_kept(large: bool) -> None:
    """It gets exactly what comes after it, payloads too, and then what comes; nothing twice, nothing skipped."""
    nodes = _nodes(large=large)
    since = _last(nodes) - 5
    user = _join(nodes, "G", since)
    nodes.submit("E", "new")
    nodes.run(0.5)
    assert [since] == user.joined_at
    assert [*(f"e-{number}" for number in range(15, 20)), "new"] == user.texts


def test_a_member_may_begin_after_the_newest_checkpoint() -> None:
    nodes = _nodes()
    nodes.heal()
    nodes.run(0.1)
    for _ in range(8):
        nodes.submit("D", "x")
        nodes.run(0.1)
    advertised = nodes.seat("D").replica.checkpoints.advertised.seq
    user = _join(nodes, "G", CHECKPOINT)
    nodes.run(0.5)
    assert 0 < advertised <= user.joined_at[0]
    assert user.entries[0][0] == user.joined_at[0] + 1


def test_a_number_that_is_no_longer_kept_is_refused_and_the_oldest_is_named() -> None:
    nodes = Carriers.with_group("DEF")
    nodes.submit("E", *"abcdef")
    nodes.run(1.5)
    base = nodes.seat("D").replica.log.base
    user = _join(nodes, "G", base - 1)
    nodes.run(0.5)
    assert [f"entries after {base - 1} are no longer kept; the oldest number to begin after is {base}"] == user.losses
    assert ("DEF", "none") == (nodes.user("D").names, nodes.roles("G")[0])
    assert [] == nodes.messages(Inserted, "D", "G")


def test_a_number_that_is_not_there_yet_is_refused() -> None:
    nodes = Carriers.with_group("DEF")
    user = _join(nodes, "G", 900)
    nodes.run(0.5)
    assert ["the stream has come to entry"] == [reason[:28] for reason in user.losses]


def test_on_a_node_that_is_a_member_the_same_holds() -> None:
    """What its own copy has is enough."""
    nodes = _nodes()
    replica = nodes.seat("E").replica
    kept, gone = _join(nodes, "E", replica.delivered - 3), _join(nodes, "E", replica.log.base - 1)
    assert ["e-17", "e-18", "e-19"] == kept.texts
    assert ["are no longer kept" in reason for reason in gone.losses] == [True]
    nodes.submit("D", "new")
    nodes.run(0.2)
    assert ["e-17", "e-18", "e-19", "new"] == kept.texts


def test_what_is_delivered_while_the_rest_is_fetched_comes_after_it() -> None:
    nodes = _nodes()
    nodes.lose(Repair)
    user = _join(nodes, "G", _last(nodes) - 2)
    nodes.run(0.2)
    nodes.submit("E", "meanwhile")
    nodes.run(0.2)
    assert ([], []) == (user.joined_at, user.texts)
    nodes.heal()
    nodes.run(1.5)
    assert ["e-18", "e-19", "meanwhile"] == user.texts
    assert "DEFG" == user.names


def test_who_leaves_while_the_rest_is_fetched_is_told_nothing_more() -> None:
    nodes = _nodes()
    nodes.lose((Repair, Data))
    user = _join(nodes, "G", _last(nodes) - 2)
    nodes.run(0.2)
    nodes.leave("G")
    nodes.heal()
    nodes.run(1.5)
    assert ([], ["left"]) == (user.joined_at, user.losses)


def test_a_machine_begins_with_a_checkpoint_and_with_nothing_else() -> None:
    nodes = Carriers.with_group("DEF")
    user = Witness()
    with pytest.raises(ValueError, match="newest checkpoint"):
        nodes.engines["G"].groups.join(GROUP, {}, user, user, since=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="since must be"):
        nodes.engines["G"].groups.join(GROUP, {}, user, since=-7)
