"""A client has a group formed on a node while a program of the same node joins it."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import LookUpAsk
from groupsvcd.core.peer_messages import Answered, PeerMessage
from tests.unit.core.nodegroups.carriers import GROUP, Carriers


def _both(join_after: float) -> Carriers:
    nodes = Carriers()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.call("D", lambda number: LookUpAsk(number, GROUP, True, 5.0))
    nodes.run(join_after)
    nodes.join("D")
    nodes.run(20.0)
    return nodes


@pytest.mark.parametrize("join_after", [0.0, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006])
def test_a_group_that_a_client_had_formed_while_a_program_joined_is_led(join_after: float) -> None:
    nodes = _both(join_after)
    assert ["leader"] == nodes.roles("D")
    assert 1 == len(nodes.user("D").joined_at)


def test_a_late_answer_does_not_bring_back_a_group_that_has_ended() -> None:
    """V4, L1: two clients have it formed, and the answer to the second one comes when the group is over."""
    nodes = Carriers()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    formed: list[int] = []
    is_late = True

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        if isinstance(message, Answered) and receiver == "D" and message.answer.get("formed"):
            if message.n not in formed:
                formed.append(message.n)
            return is_late and message.n != formed[0]
        return False

    nodes.loses = loses
    for _ in range(2):
        nodes.call("D", lambda number: LookUpAsk(number, GROUP, True, 60.0))
    nodes.run(1.0)
    assert 2 == len(formed)
    assert ["leader"] == nodes.roles("D")
    processes = nodes.engines["D"].processes
    carried = processes.get(GROUP)
    assert carried is not None
    nodes.act("D", lambda groups: processes.leave(carried))
    nodes.run(5.0)
    assert ["none"] == nodes.roles("D")
    is_late = False
    nodes.run(5.0)
    assert ["none"] == nodes.roles("D")
    assert 1 == len(nodes.lines("view_active"))
    user = nodes.join("E")
    nodes.run(5.0)
    assert user.joined_at, "the name is free"


def test_what_was_carried_is_forgotten_when_nothing_of_that_time_can_be_answered_any_more() -> None:
    """X1: locks are groups, and a node carries and ends a million of them."""
    nodes = Carriers()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    for number in range(20):
        user = nodes.join("D", f"lock-{number}")
        nodes.run(0.5)
        assert user.joined_at
        nodes.leave("D", f"lock-{number}")
        nodes.run(0.5)
    assert ["none"] == nodes.roles("D", "lock-19")
    assert 1 == len(nodes.engines["D"].groups._carried_once)
