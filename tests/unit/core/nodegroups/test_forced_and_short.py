"""A forced view goes on from a log that is shorter than what was said of the one before."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Block, Order, Repair
from tests.unit.core.nodegroups.carriers import Carriers


def test_what_all_had_of_a_lost_log_says_nothing_of_the_next_one() -> None:
    """GS-12. G lagged too far to be waited for, and heard so; then it is all that is left. H misses one Order of G."""
    nodes = Carriers.with_group("DG", others="DGH", replicas=1, history_entries_max=10)
    nodes.lose((Order, Repair, Block), "D>G")
    for number in range(40):
        nodes.submit("D", f"{number}")
        nodes.run(0.05)
    replica = nodes.seat("G").replica
    assert replica.log.last + 20 < replica.discard_said
    nodes.die("D")
    nodes.run_until(lambda: ["leader"] == nodes.roles("G"), 30.0)
    nodes.heal()
    assert [] == nodes.user("G").losses
    nodes.join("H")
    nodes.run(1.0)
    assert ["leader", "receiver"] == nodes.roles("GH")
    nodes.lose((Order, Repair), "G>H")
    nodes.submit("G", "a")
    nodes.run(1.5)
    nodes.heal()
    nodes.submit("G", "b")
    nodes.run(5.0)
    assert ([], ["a", "b"]) == (nodes.user("H").losses, nodes.texts("H"))
