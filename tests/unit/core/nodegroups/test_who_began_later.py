"""A server that joined late has not what came before it: that is no reason to do without what others still keep."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Repair, RepairAsk, Seen
from tests.unit.core.nodegroups.carriers import GROUP, Carriers, Witness


def _with_a_late_server(since: int) -> tuple[Carriers, Witness]:
    """D has everything, because F, which follows, lags; E serves with it since entry 24. G joins."""
    nodes = Carriers.with_group("D", replicas=2)
    nodes.lose(Seen)
    nodes.submit("D", *(f"e-{number}" for number in range(20)))
    nodes.join("F")
    nodes.run(0.02)
    nodes.loses = lambda sender, receiver, message: isinstance(message, Seen) and sender == "F"
    nodes.join("E")
    nodes.run(1.0)
    bases = [nodes.seat(name).replica.log.base for name in "DE"]
    assert (["leader", "server"], True) == (nodes.roles("DE"), bases[0] <= since < bases[1])
    user = nodes.users["G", GROUP] = Witness()
    nodes.act("G", lambda groups: groups.join(GROUP, {}, user, since=since))
    return nodes, user


def test_a_member_may_begin_before_one_of_the_servers_did() -> None:
    """SAM-15. The leader said yes, and keeps it; G asks E first."""
    nodes, user = _with_a_late_server(since=4)
    nodes.run(1.0)
    assert ([], [4]) == (user.losses, user.joined_at)
    assert "e-19" == user.texts[-1]


def test_a_beginning_that_is_kept_nowhere_any_more_is_refused_all_the_same() -> None:
    """The leader has dropped it before it was fetched."""
    nodes, user = _with_a_late_server(since=4)
    nodes.lose(Repair)
    nodes.run_until(lambda: ["receiver"] == nodes.roles("G"))
    nodes.loses = lambda sender, receiver, message: sender == "D" and isinstance(message, Repair)
    nodes.run(10.0)
    assert ["are no longer kept" in reason for reason in user.losses] == [True]
    assert [] == user.joined_at


def test_who_was_cut_off_gets_what_others_keep_for_it() -> None:
    """GS-12. F served, and D went on with H and with E, which joined while F heard nothing. H's answer is lost once."""
    nodes = Carriers.with_group("DHF", others="DEFGH")
    nodes.cut("D", "F")
    nodes.submit("D", *"abc")
    nodes.run(0.1)
    nodes.join("E")
    nodes.run_until(lambda: ["leader", "server", "receiver"] == nodes.roles("DEF"), 20.0)
    assert nodes.seat("F").replica.log.last < nodes.seat("E").replica.log.base
    nodes.lose(Repair, "H>F")
    nodes.run_until(lambda: bool(nodes.messages(Repair, "E", "F")))
    nodes.run(0.01)
    nodes.heal()
    nodes.submit("D", "d")
    nodes.run(5.0)
    assert ([], [*"abcd"]) == (nodes.user("F").losses, nodes.texts("F"))


def test_a_late_word_of_a_checkpoint_ends_no_beginning() -> None:
    """SAM-15. It comes as soon as G is a member, and before G has asked anybody."""
    nodes, user = _with_a_late_server(since=4)
    late = nodes.seat("E").replica.answer_to(RepairAsk(nodes.id(), 5, 20))
    assert late is not None
    assert late.checkpoint_seq > 5
    nodes.run_until(lambda: ["receiver"] == nodes.roles("G"))
    nodes.frame("E", "G", late)
    nodes.run(1.0)
    assert ([], [4]) == (user.losses, user.joined_at)
