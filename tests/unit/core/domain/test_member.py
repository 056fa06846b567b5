"""A node's place in the domain: when it may act, and what it does when it was given up."""

from __future__ import annotations

import math
from random import Random

import pytest

from groupsvcd.core.domain.member import Member
from groupsvcd.core.effects import Halt, SendToPeer
from groupsvcd.core.identity import Identity
from groupsvcd.core.parameters import Parameters
from groupsvcd.core.peer_messages import (
    Alive,
    AliveAck,
    LeaderAlive,
    NodeEntry,
    NodeList,
    NodeListAsk,
    PeerMessage,
    Register,
    Unwelcome,
)
from groupsvcd.core.turn import Turn


class Stage:
    """Node D, incarnation 4000, in the domain of name server A."""

    def __init__(self) -> None:
        self.turn = Turn("D")
        self.turn.now = 10.0
        self.identity = Identity(4000, bytes(16))
        self.given_up: list[int] = []
        parameters = Parameters(node="D", address="tcp://d:1", voters=("A", "B", "C"), durable=True)
        self.member = Member(self.turn, parameters, "disk-D", self.identity, Random(1), self.given_up.append)

    def call(self, n: int = 1, *, epoch: int = 7, version: int = 5, sender: str = "A") -> None:
        """The name server calls."""
        self.member.on_leader_alive(sender, LeaderAlive(epoch, n, version, 50), "")

    def told(self, version: int, incarnation: int, status: str) -> None:
        """The list has one line about D."""
        line = NodeEntry("D", incarnation, status, "tcp://d:1", "disk-D", False, version)
        self.member.on_node_list(NodeList(7, 0, version, (line,)))

    def ack(self, count: int, *, to: int = 4000, epoch: int = 7, good_for: float = 2.0, sender: str = "A") -> None:
        """The name server acknowledges."""
        self.member.on_alive_ack(sender, AliveAck(to, epoch, count, good_for))

    def said(self) -> list[PeerMessage]:
        """What left since the last look."""
        effects, self.turn.effects = self.turn.effects, []
        return [effect.message for effect in effects if isinstance(effect, SendToPeer)]


def test_a_call_is_answered_and_the_list_asked_for() -> None:
    stage = Stage()
    stage.call(3)
    assert [Alive(7, 3, 1, ""), NodeListAsk(0)] == stage.said()
    assert stage.member.hears_leader
    assert 50 == stage.member.known_seq


def test_a_lease_counts_from_when_the_answer_was_sent() -> None:
    """So the node's own clock ends it before anybody else's does."""
    stage = Stage()
    stage.call()
    stage.turn.now = 10.7
    stage.ack(1)
    assert (12.0, False) == (stage.member.lease_until, stage.member.isolated)
    stage.turn.now = 11.999
    stage.member.expire()
    assert not stage.member.isolated
    stage.turn.now = 12.0
    stage.member.expire()
    assert stage.member.isolated


@pytest.mark.parametrize("good_for, until", [(0.5, 10.5), (99.0, 12.0)])
def test_a_lease_is_never_longer_than_agreed(good_for: float, until: float) -> None:
    """What the name server says, and at most the lease of the configuration."""
    stage = Stage()
    stage.call()
    stage.ack(1, good_for=good_for)
    assert until == stage.member.lease_until


@pytest.mark.parametrize(
    "wrong",
    [{"to": 3999}, {"epoch": 6}, {"epoch": 8}, {"sender": "B"}, {"count": 2}, {"good_for": math.nan},
     {"good_for": -1.0}],
)  # fmt: skip
def test_what_is_no_acknowledgement_of_our_own_answer_is_no_lease(wrong: dict[str, object]) -> None:
    """Another incarnation's, another term's, somebody else's, one we never sent, nonsense, too late."""
    stage = Stage()
    stage.call()
    stage.ack(**{"count": 1, **wrong})  # type: ignore[arg-type]
    assert stage.member.isolated


def test_an_old_name_server_is_not_answered() -> None:
    stage = Stage()
    stage.call(epoch=7)
    stage.said()
    stage.call(epoch=6, sender="B")
    assert [] == stage.said()
    assert "A" == stage.member.leader


def test_a_node_that_is_not_listed_registers_and_repeats_it_ever_more_slowly() -> None:
    stage = Stage()
    stage.call()
    stage.said()
    waits: list[float] = []
    for _ in range(6):
        stage.turn.now = stage.member.deadline
        stage.member.tick()
        (register,) = stage.said()
        assert isinstance(register, Register)
        assert ("disk-D", "tcp://d:1") == (register.state_id, register.address)
        waits.append(stage.member.deadline - stage.turn.now)
    assert pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0]) == waits
    stage.told(6, 4000, "up")
    assert math.inf == stage.member.deadline


def test_a_node_declared_down_is_told_and_starts_again() -> None:
    """Its incarnation is given up; the older one's fate is none of its business."""
    stage = Stage()
    stage.call()
    stage.told(5, 3999, "down")
    assert [] == stage.given_up
    stage.told(6, 4000, "down")
    assert [4000] == stage.given_up


def test_giving_up_the_lease_works_at_once_and_late_acknowledgements_do_not_bring_it_back() -> None:
    stage = Stage()
    stage.call()
    stage.ack(1)
    assert not stage.member.isolated
    stage.member.give_up_lease()
    stage.ack(1)
    assert stage.member.isolated


def test_an_older_list_changes_nothing() -> None:
    stage = Stage()
    stage.told(6, 4000, "up")
    stage.told(5, 4000, "down")
    assert stage.member.is_listed
    assert [] == stage.given_up


def test_a_list_that_leaves_something_out_is_not_taken() -> None:
    """It tells only what changed after version 9, and we have version 6."""
    stage = Stage()
    stage.told(6, 4000, "up")
    stage.member.on_node_list(NodeList(7, 9, 12, ()))
    assert 6 == stage.member.list_version


def test_a_differing_parameter_stops_a_node_that_was_never_in() -> None:
    stage = Stage()
    stage.call()
    stage.member.on_unwelcome(Unwelcome("parameter x is 1 on D and 2 on A", "x", "2", "1"))
    (halt,) = [effect for effect in stage.turn.effects if isinstance(effect, Halt)]
    assert "parameter x is 1 on D and 2 on A" in halt.reason


def test_a_node_that_is_in_is_not_stopped_by_a_late_refusal() -> None:
    stage = Stage()
    stage.call()
    stage.ack(1)
    stage.member.on_unwelcome(Unwelcome("parameter x is 1 on D and 2 on A", "x", "2", "1"))
    assert [] == [effect for effect in stage.turn.effects if isinstance(effect, Halt)]


def test_an_incarnation_that_is_too_low_goes_on_above_the_known_one() -> None:
    """The clock was set back while the node was down and had no memory."""
    stage = Stage()
    stage.call()
    stage.member.on_unwelcome(Unwelcome("older", "incarnation", "9000", "4000"))
    assert [9000] == stage.given_up
    stage.member.on_unwelcome(Unwelcome("of a late frame", "incarnation", "3000", "2000"))
    assert [9000] == stage.given_up


def test_a_refusal_without_a_parameter_is_only_noted() -> None:
    stage = Stage()
    stage.call()
    stage.member.on_unwelcome(Unwelcome("10000 nodes are in the list already"))
    assert "10000 nodes are in the list already" == stage.member.trouble
    stage.ack(1)
    assert "" == stage.member.trouble


def test_a_leader_whose_port_refuses_is_not_waited_for() -> None:
    stage = Stage()
    stage.call()
    stage.member.lose_leader("B")
    assert stage.member.hears_leader
    stage.member.lose_leader("A")
    assert not stage.member.hears_leader
