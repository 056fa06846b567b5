"""The history tells what a recovered log has, as far as its leader's deliveries do not tell it."""

from __future__ import annotations

import msgspec

from tests.unit.core.nodegroups.carriers import Carriers


def test_what_was_announced_and_not_delivered_is_told_with_the_recovered_log() -> None:
    """L4. D announces an entry, stands still before it hands it up, and goes on when its lease is over, by a grant."""
    nodes = Carriers.with_group("D")
    active = nodes.record().active
    nodes.submit("D", "a")
    announced = nodes.lines("stable")[-1].seq
    nodes.now += 3.0
    view = msgspec.structs.replace(active, epoch=active.epoch + 1, base=active.epoch)
    nodes.act("D", lambda groups: nodes.seat("D").take_grant(view, active))  # the answer to what it had proposed
    assert [] == nodes.texts("D")
    assert [announced] == [seq for seq, _ in nodes.lines("recovered")[0].args["tail"]]
