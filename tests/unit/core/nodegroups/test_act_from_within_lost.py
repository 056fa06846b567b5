"""A program with two users in a group gives up the second one when it is told that the first is lost."""

from __future__ import annotations

from groupsvcd.core.nodegroups.node_groups import NodeGroups
from tests.unit.core.nodegroups.carriers import GROUP, Carriers, Witness


class _GivesUp(Witness):
    def __init__(self, groups: NodeGroups, other: Witness) -> None:
        super().__init__()
        self._groups, self._other = groups, other

    def lost(self, reason: str) -> None:
        super().lost(reason)
        self._groups.leave(GROUP, self._other)


def test_a_user_that_is_refused_may_give_up_another_one() -> None:
    nodes = Carriers.with_group("DEF")
    groups = nodes.engines["G"].groups
    second = Witness()
    first = _GivesUp(groups, second)
    nodes.act("G", lambda groups: groups.join(GROUP, {}, first, since=1_000_000))
    nodes.act("G", lambda groups: groups.join(GROUP, {}, second, since=1_000_000))
    nodes.run(2.0)
    assert (1, 1) == (len(first.losses), len(second.losses))


def test_a_user_that_does_not_fit_may_give_up_another_one() -> None:
    nodes = Carriers.with_group("DEF")
    groups = nodes.engines["G"].groups
    second = Witness()
    first = _GivesUp(groups, second)
    nodes.act("G", lambda groups: groups.join(GROUP, {"replicas": 5}, first))
    nodes.act("G", lambda groups: groups.join(GROUP, {"replicas": 5}, second))
    nodes.run(2.0)
    assert (1, 1) == (len(first.losses), len(second.losses))
