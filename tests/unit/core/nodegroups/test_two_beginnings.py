"""Two programs of one node join before it is inserted, and want different beginnings that are both kept."""

from __future__ import annotations

from tests.unit.core.nodegroups.carriers import GROUP, Carriers, Witness


def test_both_of_two_users_begin_where_they_asked_to() -> None:
    nodes = Carriers.with_group("DEF", checkpoint_every=100_000)
    for number in range(20):
        nodes.submit("D", f"m{number}")
        nodes.run(0.02)
    first, second = Witness(), Witness()
    last = nodes.seat("D").replica.delivered
    assert nodes.seat("D").replica.log.base < last - 8
    nodes.act("G", lambda groups: groups.join(GROUP, {}, first, since=last - 5))
    nodes.act("G", lambda groups: groups.join(GROUP, {}, second, since=last - 3))
    nodes.run(2.0)
    assert [last - 5] == first.joined_at
    assert ([last - 3], []) == (second.joined_at, second.losses)
