"""A ghost: who is taken for a member of a group that it does not carry says so, and that ends nothing else."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Leave, Order
from tests.unit.core.nodegroups.linked import Linked


def test_a_leave_of_a_ghost_ends_no_later_membership() -> None:
    """G has left, and joins again. A late Order of the first time makes it say Leave; that comes twice, once late."""
    nodes = Linked()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.assemble("DEFG")
    nodes.submit("D", "a")
    nodes.run(0.1)
    order = nodes.messages(Order, "D", "G")[-1]
    nodes.leave("G")
    nodes.run(1.0)
    assert nodes.about("G") is None
    nodes.forget_the_past()
    user = nodes.join("G")
    nodes.frame("D", "G", order)  # a multicast that was on its way
    nodes.run(0.001)
    [leave] = nodes.messages(Leave, "G", "D")
    nodes.run(1.0)
    assert 1 == len(user.joined_at)
    assert [] == user.losses
    nodes.frame("G", "D", leave)  # the same, late
    nodes.run(1.0)
    assert [] == user.losses
