"""When a name server may speak: to whom, since when, and for how long.

B was elected with C's promise. That promise keeps C from helping anybody with a lower epoch, but not from helping
A with a higher one as long as C has heard no call of B. So B says nothing in the name of the domain before a
majority has answered a call of its own.
"""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import ClientRequest, ConfigValue, LookUpAsk
from groupsvcd.core.peer_messages import (
    Alive,
    AliveAck,
    Answered,
    LeaderAlive,
    NodeList,
    PeerMessage,
    SubmitRefused,
    Tell,
)
from tests.unit.core.trio import Trio

ACKNOWLEDGING = (AliveAck, Answered, NodeList, SubmitRefused, Tell)


def _acknowledged(trio: Trio, node: str) -> list[float]:
    return [line.at for line in trio.sent if line.sender == node and isinstance(line.message, ACKNOWLEDGING)]


def _elect_another(trio: Trio) -> tuple[str, str]:
    """A is cut off and another one wins whose calls no voter hears; who that is, and who helped it."""

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        return "A" in (sender, receiver) or (isinstance(message, LeaderAlive) and receiver in trio.voters)

    trio.loses = loses
    trio.forget_the_past()
    trio.run_until(lambda: any(line.args["phase"] == "open" for line in trio.lines("office")))
    (winner,) = {line.node for line in trio.lines("office") if line.args["phase"] == "open"}
    (helper,) = set("BC") - {winner}
    return winner, helper


def test_nothing_is_acknowledged_before_a_majority_answered_a_call() -> None:
    """S3. B is elected and open, and no voter has answered it yet: D gets no lease, no list and no answer."""
    trio = Trio.in_service(others="D")
    winner, _ = _elect_another(trio)
    trio.get("D", "color")
    trio.set("D", "color", "red")
    trio.run(0.9)
    assert trio.messages(Alive, "D", winner), "D does answer its calls"
    assert [] == _acknowledged(trio, winner)
    assert {} == trio.replies


def test_two_name_servers_never_acknowledge_at_the_same_time() -> None:
    """S3. B wins with C's promise, C never hears it and elects another with A; D listens to both."""
    trio = Trio.in_service(others="DE")
    winner, helper = _elect_another(trio)

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        ends = {sender, receiver}
        return ends in ({winner, helper}, {winner, "A"}, {helper, "E"}, {"A", "E"})

    trio.loses = loses
    trio.run(4.0)
    (other,) = [name for name in trio.leaders if name != winner]
    assert [] == _acknowledged(trio, winner)
    assert _acknowledged(trio, other)


def test_answers_for_an_older_incarnation_are_ignored() -> None:
    """S2. D asks, dies, and its successor asks something else; then the answers for the dead one arrive.

    Both count their calls from 1. Taken for its own, the value of another setting would be told as the answer.
    """
    trio = Trio.in_service(others="D")
    kept: list[PeerMessage] = []

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        if receiver == "D" and isinstance(message, Tell | Answered):
            kept.append(message)
            return True
        return False

    first = trio.set("A", "color", "red")
    trio.run(0.3)
    assert "red" == trio.value(first)
    trio.loses = loses
    trio.get("D", "color")
    trio.set("D", "size", "by the old D")
    trio.run(0.1)
    assert {Tell, Answered} == {type(message) for message in kept}
    trio.kill("D")
    trio.heal()
    trio.boot("D")
    trio.run(3.0)
    trio.replies.clear()
    asked = trio.get("D", "shape")
    set_ = trio.set("D", "weight", "by the new D")
    trio.frame("A", "D", *kept)
    assert {} == trio.replies
    trio.run(0.5)
    assert "" == trio.value(asked)
    assert "by the new D" == trio.value(set_)


def test_a_lease_for_an_older_incarnation_is_no_lease() -> None:
    """S2. D is restarted at once; a late acknowledgement of the dead one does not let the new one act."""
    trio = Trio.in_service(others="D")
    old = trio.engines["D"].incarnation
    trio.kill("D")
    trio.loses = lambda sender, receiver, message: isinstance(message, AliveAck) and receiver == "D"
    trio.boot("D")
    trio.run(1.0)
    epoch = trio.office("A").epoch
    for count in range(1, 8):
        trio.frame("A", "D", AliveAck(old, epoch, count, 2.0))
    assert trio.status("D").suspended
    trio.frame("A", "D", *(AliveAck(trio.engines["D"].incarnation, epoch, count, 2.0) for count in range(1, 8)))
    assert not trio.status("D").suspended


def test_refusals_for_an_older_incarnation_are_ignored() -> None:
    """S2. A refusal of number 1 of the dead D must not end number 1 of the new one."""
    trio = Trio.in_service(others="D")
    old = trio.engines["D"].incarnation
    trio.kill("D")
    trio.boot("D")
    trio.run(2.0)
    number = trio.set("D", "color", "red")
    trio.frame("A", "D", SubmitRefused(0, old, 1, 0, "too old"))
    assert number not in trio.replies
    trio.run(0.3)
    assert "red" == trio.value(number)


@pytest.mark.parametrize("round_trip, per_second", [(0.1, 1000), (0.1, 300), (0.02, 2000)])
def test_a_flood_of_questions_deposes_nobody_and_all_are_answered(round_trip: float, per_second: int) -> None:
    """L2. Every question needs a call that was sent after it.

    Were every question to cause a call of its own, each call would be answered only after the next ones had gone
    out, and with enough of them none would count in time.
    """
    trio = Trio.in_service(others="D", delay=round_trip / 2)
    asked: list[int] = []
    for _ in range(per_second * 2):
        asked.append(trio.get("A", "color"))
        trio.run(1 / per_second)
    calls = len(trio.messages(LeaderAlive, "A", "B"))
    trio.run(1.0)
    assert [] == trio.lines("office")
    assert ["A"] == trio.leaders
    assert all(isinstance(trio.replies[number], ConfigValue) for number in asked)
    assert calls < 2 / round_trip * 2 + 2 * 2 / 0.2
    assert [] == trio.lines("isolated")


def test_that_there_is_no_such_group_is_said_only_with_a_majority_behind_it() -> None:
    """A deposed name server would not know of the newest groups."""
    trio = Trio.in_service()
    trio.cut("A", "B", "C")

    def look_up(number: int) -> ClientRequest:
        return LookUpAsk(number, "orders", False, 0.8)

    number = trio.call("A", look_up)
    trio.run(0.7)
    assert number not in trio.replies
