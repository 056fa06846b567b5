"""What a second look found behind mends: each story was wrong once, though the one before it was right."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import LookUpAsk
from groupsvcd.core.nodegroups.node_groups import NodeGroups
from groupsvcd.core.peer_messages import (
    Answered,
    Beat,
    Claim,
    Data,
    Left,
    Open,
    Opened,
    Order,
    PeerMessage,
    Promised,
    Relay,
    Repair,
    Seen,
    Submit,
)
from groupsvcd.core.stream import payloads
from tests.unit.core.nodegroups.carriers import GROUP, Carriers, Witness
from tests.unit.core.nodegroups.linked import Linked
from tests.unit.core.nodegroups.test_catching_up import _join
from tests.unit.core.nodegroups.test_confirmations import _submit_and_wait

# --- The wish to leave ---


def test_who_took_part_again_after_a_restart_has_not_left() -> None:
    """Q8. D left and restarted, and a program joined before D was in again: the next restart drops nothing."""
    nodes = Carriers.with_group("D", durable=True)
    nodes.submit("D", "a")
    nodes.run(0.3)
    id = nodes.id()
    nodes.cut("D", "A", "B", "C")
    nodes.leave("D")
    nodes.run(0.0015)
    nodes.kill("D")
    nodes.heal()
    nodes.boot("D")
    nodes.join("D", durable=True)
    nodes.run(5.0)
    assert [] == nodes.user("D").losses
    nodes.submit("D", "b")
    nodes.run(0.3)
    assert "b" in nodes.texts("D")
    nodes.kill("D")
    nodes.boot("D")
    nodes.run(10.0)
    assert id == nodes.id()
    assert ["leader"] == nodes.roles("D")


def test_who_left_while_it_was_coming_back_is_out_after_another_restart() -> None:
    """GS-07."""
    nodes = Carriers.with_group("DEF", durable=True)
    nodes.kill("E")
    nodes.run(0.2)
    nodes.boot("E")
    nodes.cut("E", "D", "F")
    user = nodes.join("E", durable=True)
    nodes.run(1.0)
    nodes.leave("E")
    nodes.run(0.5)
    assert ["left"] == user.losses
    nodes.kill("E")
    nodes.heal()
    nodes.boot("E")
    nodes.run(15.0)
    assert ["none"] == nodes.roles("E")


def test_who_goes_on_after_it_was_about_to_leave_says_how_far_it_is() -> None:
    """E leaves a durable group, is declared down before it is out, and a program joins: all have seen what E has."""
    nodes = Carriers.with_group("DEFG", durable=True)
    nodes.leave("E")
    nodes.lose(Left)
    nodes.run_until(lambda: nodes.seat("E").is_following)
    nodes.cut("E", *"ABCDFG")
    nodes.run(6.0)
    nodes.heal()
    nodes.run_until(lambda: nodes.about("E") is not None and nodes.part("E").phase.name == "RETURNING", 20)
    nodes.join("E", durable=True)
    nodes.run(10)
    assert 1 == len(nodes.user("E").joined_at)
    held, seen = _submit_and_wait(nodes, "D", "for all")
    nodes.run(30)
    assert "for all" in nodes.texts("E")
    assert 1 == len(held) == len(seen)


# --- What is said of submissions ---


def test_what_was_given_up_as_too_old_is_not_told_to_be_held() -> None:
    """S1, K1. It is settled, and was never numbered."""
    nodes = Carriers.with_group("DEFG", logical_lifetime=20)
    nodes.lose((Submit, Relay), "G>D G>E G>F")
    told: list[int] = []

    def submit(groups: NodeGroups) -> None:
        n = groups.submit(GROUP, [b"mine"])
        assert groups.when_held(GROUP, nodes.user("G"), n, told.append)

    nodes.act("G", submit)
    nodes.run(0.05)
    nodes.submit("D", *(f"d-{number}" for number in range(40)))
    nodes.run(0.3)
    nodes.loses = lambda sender, receiver, message: False
    nodes.run(5.0)
    assert 1 == len(nodes.user("G").losses)
    assert "mine" not in nodes.texts("D")
    assert [] == told


def test_a_stranger_is_told_what_became_of_it_though_its_node_became_a_member() -> None:
    """K1. The refusal goes to the member, which shares the numbers."""
    nodes = Carriers.with_group("DEF", logical_lifetime=20)
    nodes.send("G", "first")
    nodes.run_until(lambda: 1 == nodes.user("G").accepted_upto)
    stranger = nodes.user("G")
    nodes.lose((Submit, Relay), "G>D G>E G>F")
    nodes.run(0.01)
    nodes.send("G", "second")
    nodes.run(0.05)
    nodes.join("G")
    nodes.run(0.1)
    nodes.submit("D", *(f"d-{number}" for number in range(40)))
    nodes.run(0.3)
    nodes.loses = lambda sender, receiver, message: False
    nodes.run(60.0)
    assert stranger.accepted_upto == 2 or stranger.failures


def test_seen_is_told_to_receivers_when_the_last_one_has_caught_up() -> None:
    """G waits for it; H had lagged too far to be waited for, and comes back by a checkpoint."""
    nodes = Carriers(others="DEFGH", retention_margin=2)
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    for name in "DEFGH":
        _join(nodes, name, checkpoint_every=10, history_entries_max=5)
        nodes.run(0.3)
    nodes.run(1.0)
    assert ["receiver", "receiver"] == nodes.roles("GH")
    nodes.lose((Order, Beat, Repair), "D>H E>H F>H")
    held, seen = _submit_and_wait(nodes, "G", "for all")
    nodes.run(0.5)
    for number in range(20):
        nodes.submit("E", f"{number}")
        nodes.run(0.05)
    nodes.run(2.0)
    assert [] == seen
    nodes.heal()
    nodes.run(30.0)
    assert 1 == len(held) == len(seen)


def test_what_comes_first_has_room_also_behind_numbers_that_were_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """B2. Servers full of 4, 5 and 6 of three strangers take their 3, though 2 never came."""
    monkeypatch.setattr(payloads, "UNORDERED_BYTES_MAX", 8_000)
    nodes = Carriers.with_group("DEF", "DEFGHI", parameters={"inline_bytes_max": 64}, logical_lifetime=20)
    for name in "GHI":
        nodes.send(name, "first")
        nodes.run_until(lambda name=name: 1 == nodes.user(name).accepted_upto)  # type: ignore[misc]
    nodes.lose((Submit, Relay), " ".join(f"{a}>{b}" for a in "GHI" for b in "DEF"))
    for name in "GHI":
        nodes.send(name, "old")
    nodes.run(0.05)
    nodes.submit("D", *(f"d-{number}" for number in range(30)))
    nodes.run(0.3)
    nodes.loses = lambda sender, receiver, message: False
    nodes.run_until(lambda: all(nodes.user(name).failures for name in "GHI"))
    for name in "GHI":
        nodes.users.pop((name, GROUP))
    nodes.loses = lambda sender, receiver, message: isinstance(message, Data) and message.n == 3 and receiver in "EF"
    for name in "GHI":
        nodes.send(name, *(f"{name}{number}".ljust(1_000, ".") for number in range(4)))
    nodes.run(0.15)
    nodes.heal()
    nodes.run(60.0)
    assert 12 == len([text for text in nodes.texts("D") if text[0] in "GHI"])


def test_since_zero_is_served_while_all_is_kept() -> None:
    """SAM-15. That there is a checkpoint is no reason to begin with it."""
    nodes = Carriers()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.lose(Seen)
    nodes.join("D", checkpoint_every=10, replicas=1)
    nodes.run(0.05)
    nodes.join("E")
    nodes.run(0.05)
    for number in range(20):
        nodes.submit("D", f"e-{number}")
    nodes.run(0.5)
    log = nodes.seat("D").replica.log
    assert 0 == log.base < log.checkpoint_seq
    user = nodes.users["G", GROUP] = Witness()
    nodes.act("G", lambda groups: groups.join(GROUP, {}, user, since=0))
    nodes.run(0.5)
    assert [] == user.losses
    assert [f"e-{number}" for number in range(20)] == user.texts


# --- Views that cannot be opened ---


def test_a_leader_that_was_handed_the_group_goes_back_too() -> None:
    """V7. E and F cannot reach each other, which nobody notices while D leads. D leaves: E is to lead with F."""
    nodes = Carriers.with_group("DEF")
    nodes.cut("E", "F")
    nodes.run(3.0)
    nodes.leave("D")
    nodes.run(60.0)
    nodes.submit("E", "after")
    nodes.run(10.0)
    assert "after" in nodes.texts("E")


def test_who_is_out_of_reach_while_a_leader_goes_back_again_and_again_has_lost_nothing() -> None:
    """B6, the other way round: no view was forced, so nobody's tail is lost."""
    nodes = Carriers.with_group("DFG", others="DEFGH", replicas=2)
    nodes.submit("D", "a")
    nodes.run(1.0)
    assert ["a"] == nodes.texts("G")
    nodes.cut("G", "D", "E", "F", "H")
    nodes.leave("F")
    for _ in range(17):
        nodes.loses = lambda sender, receiver, message: False
        if nodes.about("E") is None:
            nodes.join("E")
        nodes.run_until(lambda: (p := nodes.record().pending) is not None and "E" in p.names, 30.0)
        pending = nodes.record().pending
        assert pending is not None
        nodes.lose((Claim, Open, Opened, Promised), "D>E E>D")
        nodes.run_until(lambda epoch=pending.epoch: nodes.record().active.epoch > epoch, 30.0)  # type: ignore[misc]
        nodes.run(0.3)
    nodes.heal()
    nodes.run(10.0)
    assert [] == nodes.user("G").losses


@pytest.mark.parametrize("late", [-0.004, -0.001, 0.0, 0.001, 0.004])
@pytest.mark.parametrize("attributes", [{}, {"delivery": "fast"}, {"durable": True}], ids=["safe", "fast", "durable"])
def test_a_server_that_opens_just_as_its_leader_goes_back_does_no_harm(
    attributes: dict[str, str | bool], late: float
) -> None:
    """V7. Whichever comes first, both lead and serve in the end."""
    nodes = Linked.with_group("D", **attributes)
    nodes.join("E", **attributes)
    nodes.run_until(lambda: nodes.record().pending is not None)
    nodes.lose(Opened, "E>D")
    nodes.run_until(lambda: (found := nodes.seat("D").recovery) is not None and found.phase.name == "OPENING", 5.0)
    recovery = nodes.seat("D").recovery
    assert recovery is not None
    nodes.run(recovery.progress_at + nodes.engines["D"].parameters.timers.lease - nodes.now + late)
    nodes.loses = lambda sender, receiver, message: False
    nodes.run(0.002)
    nodes.submit("E", "a")
    nodes.submit("D", "b")
    nodes.run(20.0)
    assert {} == nodes.halted
    assert ["a", "b"] == sorted(nodes.texts("D")) == sorted(nodes.texts("E"))
    assert ["leader", "server"] == nodes.roles("DE")


# --- Formed anew ---


@pytest.mark.parametrize("lost", [1, 2])
def test_a_client_forms_what_a_program_of_the_node_is_just_leaving(lost: int) -> None:
    """V7, K1. That the group before has ended is answered, and the answer lost; then the name is formed anew."""
    nodes = Carriers.with_group("D")
    nodes.leave("D")
    answers: list[PeerMessage] = []

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        if isinstance(message, Answered) and receiver == "D":
            answers.append(message)
            return len(answers) <= lost
        return False

    nodes.loses = loses
    nodes.run(0.003)
    nodes.call("D", lambda number: LookUpAsk(number, GROUP, True, 5.0))
    nodes.run(10.0)
    user = nodes.join("E")
    nodes.run(10.0)
    assert user.joined_at or user.losses
