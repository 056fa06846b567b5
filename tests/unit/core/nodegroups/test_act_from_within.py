"""A program may leave, or take another one out, whatever it is just being told; who is out is told nothing more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from groupsvcd.core.nodegroups.node_groups import NodeGroups
from groupsvcd.core.peer_messages import Order, Repair
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import NodeId
from tests.unit.core.nodegroups.carriers import GROUP, Carriers, Witness
from tests.unit.core.nodegroups.test_catching_up import Sum, _join


class _Acts(Sum):
    """Does something when it is told that it has joined, or is given an entry with this text."""

    def __init__(self, action: Callable[[], None], upon: str) -> None:
        super().__init__()
        self._action, self._upon = action, upon

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """Perhaps this is the moment."""
        super().joined(group, seq, members)
        if self._upon == "joined":
            self._action()

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """Nothing comes after the loss."""
        assert [] == self.losses
        super().delivered(first_seq, entries)
        if self._upon in [entry.body.decode() for entry in entries if entry.origin]:
            self._action()

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Neither does this."""
        assert [] == self.losses
        super().changed(seq, members)

    def restore(self, seq: int, state: bytes) -> None:
        """Nor this."""
        assert [] == self.losses
        super().restore(seq, state)


def _leaving(nodes: Carriers, node: str, upon: str) -> _Acts:
    """A user that leaves as soon as it is told so."""
    user = _Acts(lambda: nodes.engines[node].groups.leave(GROUP, user), upon)
    return user


def _joins(nodes: Carriers, node: str, user: Witness, **how: Any) -> None:
    nodes.act(node, lambda groups: groups.join(GROUP, {}, user, **how))


def test_a_machine_whose_program_leaves_as_it_joins_is_nobodys_state() -> None:
    """SAM-07. E carries a durable group after a restart; no checkpoint is taken of a machine that applies nothing."""
    nodes = Carriers()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    for name in "DEF":
        _join(nodes, name, durable=True)
        nodes.run(0.5)
    nodes.submit("D", *"abc")
    nodes.run(1.0)
    nodes.kill("E")
    nodes.boot("E")
    nodes.run(5.0)
    user = _leaving(nodes, "E", "joined")
    _joins(nodes, "E", user, machine=user)
    assert nodes.part("E").participants.machine is None
    nodes.run(5.0)
    assert ["left"] == user.losses


def test_who_leaves_as_it_joins_gets_nothing_of_what_came_before() -> None:
    """SAM-15. From its node's own copy."""
    nodes = Carriers.with_group("DEF")
    nodes.submit("D", *"abc")
    nodes.run(0.01)
    user = _leaving(nodes, "E", "joined")
    _joins(nodes, "E", user, since=nodes.seat("E").replica.log.base)
    assert (["left"], []) == (user.losses, user.texts)


def _with_a_latecomer(upon: str) -> _Acts:
    """G begins with what was kept because F lags; while it is fetched, more comes."""
    nodes = Carriers.with_group("DEF", checkpoint_every=10)
    nodes.lose(Order, "D>F")
    nodes.submit("E", *"abc")
    nodes.run(0.1)
    nodes.lose(Repair)
    user = _leaving(nodes, "G", upon)
    _joins(nodes, "G", user, since=nodes.seat("D").replica.log.last - 2)
    nodes.run(0.2)
    nodes.submit("E", "d")
    nodes.run(0.2)
    nodes.heal()
    nodes.run(1.5)
    assert ["left"] == user.losses
    return user


def test_the_same_if_that_was_fetched() -> None:
    """SAM-15."""
    assert [] == _with_a_latecomer("joined").texts


def test_who_leaves_with_what_was_fetched_gets_nothing_of_what_came_meanwhile() -> None:
    """SAM-15."""
    assert ["b", "c"] == _with_a_latecomer("c").texts


def _two_users(act: Callable[[NodeGroups, Witness, Witness], None]) -> tuple[Witness, Witness]:
    """Two users on E; the first does something with the entry "a", which comes in one step with a change of members."""
    nodes = Carriers.with_group("DEF")
    second = _Acts(lambda: None, "")
    first = _Acts(lambda: act(nodes.engines["E"].groups, first, second), "a")
    for user in (first, second):
        _joins(nodes, "E", user)
    nodes.lose((Order, Repair), "D>E F>E")
    nodes.join("G")
    nodes.submit("D", "a")
    nodes.run(0.1)
    nodes.heal()
    nodes.run(1.0)
    assert "DEFG" == nodes.user("E").names
    return first, second


def test_who_leaves_with_an_entry_does_not_let_others_see_what_it_changed_before_they_have_it() -> None:
    first, second = _two_users(lambda groups, first, second: groups.leave(GROUP, first))
    assert (["left"], []) == (first.losses, second.losses)
    assert (["a"], "DEFG") == (second.texts, second.names)


def test_who_is_taken_out_by_another_with_an_entry_does_not_get_it() -> None:
    first, second = _two_users(lambda groups, first, second: groups.leave(GROUP, second))
    assert ([], ["left"]) == (first.losses, second.losses)
    assert (["a"], []) == (first.texts, second.texts)


def test_who_is_taken_out_by_another_that_is_told_of_its_own_is_told_nothing_of_its_own() -> None:
    """K1. Both wait for the same entry to be held."""
    nodes = Carriers.with_group("DEF")
    first, second = nodes.user("E"), Witness()
    _joins(nodes, "E", second)
    told: list[str] = []

    def submit(groups: NodeGroups) -> None:
        def told_first(seq: int) -> None:
            told.append("first")
            groups.leave(GROUP, second)

        n = groups.submit(GROUP, [b"a"])
        assert groups.when_held(GROUP, first, n, told_first)
        assert groups.when_held(GROUP, second, n, lambda seq: told.append("second"))

    nodes.act("E", submit)
    nodes.run(0.5)
    assert (["first"], ["left"]) == (told, second.losses)
