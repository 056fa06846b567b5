"""Fast groups: delivered on arrival, recovered from all who carry them, and nobody who lives is contradicted."""

from __future__ import annotations

from zlib import crc32

from groupsvcd.core.nodegroups.controls import NodeRemoved, encode_control
from groupsvcd.core.nodegroups.fast_seat import FastSeat
from groupsvcd.core.peer_messages import (
    Beat,
    Block,
    Claim,
    Data,
    GroupIs,
    Held,
    Inserted,
    Open,
    Order,
    Promised,
    Refused,
    Repair,
    Seen,
    Submit,
)
from groupsvcd.core.stream.checkpoints import Described
from groupsvcd.core.stream.entries import encode_entry
from groupsvcd.core.stream.fetch import Fetch
from groupsvcd.core.stream.server import Server
from groupsvcd.core.views import View
from tests.unit.core.nodegroups.carriers import GROUP, Carriers

STREAM = (Order, Beat, Repair)


def fast_group(carriers: str, others: str = "DEFG", **attributes: int | str) -> Carriers:
    """A fast group: the first of the carriers leads, and it has just beaten."""
    nodes = Carriers.with_group(carriers, others, delivery="fast", **attributes)
    nodes.run(0.05)
    nodes.forget_the_past()
    return nodes


def _only_g_hears(nodes: Carriers, text: str) -> None:
    """D, the leader, orders something, and of all others G alone hears of it."""
    nodes.lose(STREAM, "D>E D>F")
    nodes.submit("D", text)
    nodes.run(0.01)
    assert [["before"], ["before"], ["before", text]] == [nodes.texts(name) for name in "EFG"]


# --- Delivery ---


def test_an_entry_is_delivered_when_it_arrives_and_nobody_answers_at_once() -> None:
    """GS-14: the leader in the step that numbers it, everybody else one message later."""
    nodes = fast_group("DEFG")
    nodes.submit("D", "quick")
    assert ["quick"] == nodes.texts("D")
    nodes.run(0.0015)
    assert [["quick"]] * 3 == [nodes.texts(name) for name in "EFG"]
    assert [] == nodes.messages(Held) + nodes.messages(Seen)
    assert nodes.about("D").stable < nodes.about("D").delivered  # type: ignore[union-attr]


def test_what_overtakes_is_delivered_in_order_all_the_same() -> None:
    """B4: who misses an entry holds back what is behind it, and fetches it."""
    nodes = fast_group("DEFG")
    nodes.lose(Order, "D>G")
    nodes.submit("D", "one")
    nodes.run(0.002)
    nodes.heal()
    nodes.submit("D", "two")
    nodes.run(0.005)
    assert [] == nodes.texts("G")
    nodes.run(0.1)
    assert ["one", "two"] == nodes.texts("G")


def test_a_durable_group_is_not_fast() -> None:
    """What is delivered before it is on a disk is not what a durable group promises."""
    nodes = Carriers(others="D")
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    user = nodes.join("D", durable=True, delivery="fast")
    nodes.run(0.1)
    assert ["attribute delivery = 'fast' of a durable group must be safe"] == user.losses


# --- Recovery ---


def test_what_only_a_receiver_has_delivered_is_not_lost_with_the_leader() -> None:
    """B6, GS-11: G is no server, but it lives and has acted on the entry."""
    nodes = fast_group("DEFG")
    nodes.submit("D", "before")
    nodes.run(1.0)
    _only_g_hears(nodes, "tail")
    nodes.die("D")
    nodes.heal()
    nodes.run(0.3)
    assert [["before", "tail"]] * 3 == [nodes.texts(name) for name in "EFG"]
    assert [] == nodes.user("G").losses


def test_what_only_the_dead_have_seen_is_lost() -> None:
    """GS-14: that is the price. Nobody who is left knows of it, and its number is given again."""
    nodes = fast_group("DEFG")
    nodes.lose(STREAM, "D>E D>F D>G")
    nodes.submit("D", "to the grave")
    nodes.run(0.01)
    assert ["to the grave"] == nodes.texts("D")
    nodes.die("D")
    nodes.heal()
    nodes.run(0.5)
    nodes.submit("E", "life goes on")
    nodes.run(0.1)
    assert [["life goes on"]] * 3 == [nodes.texts(name) for name in "EFG"]
    assert [] == [loss for name in "EFG" for loss in nodes.user(name).losses]


def test_the_new_leader_waits_for_every_member_that_is_up() -> None:
    """Nothing is chosen while G may have delivered more than the others know of."""
    nodes = fast_group("DEFG")
    nodes.submit("D", "before")
    nodes.run(1.0)
    _only_g_hears(nodes, "tail")
    nodes.heal()
    nodes.lose(Promised, "G>E")
    nodes.die("D")
    nodes.run(1.0)
    assert [] == [line for line in nodes.lines("recovered") if line.group == nodes.id()]
    nodes.heal()
    nodes.run(1.2)
    assert ["before", "tail"] == nodes.texts("E")


def test_who_cannot_be_reached_is_left_out_in_the_end_and_told_that_it_has_lost_the_group() -> None:
    """B6: G is up, and its link to E is cut. The group does not wait for ever; G does not go on as if nothing was."""
    nodes = fast_group("DEFG")
    nodes.submit("D", "before")
    nodes.run(1.0)
    _only_g_hears(nodes, "tail")
    nodes.heal()
    nodes.cut("G", "E", "F")
    died_at = nodes.now
    nodes.die("D")
    nodes.run(4.0)
    recovered = [line for line in nodes.lines("recovered") if line.group == nodes.id()]
    assert [[["G", nodes.incarnation("G")]]] == [line.args["left_out"] for line in recovered]
    assert recovered[0].at - died_at >= 2.5
    nodes.submit("E", "without G")
    nodes.run(0.1)
    assert ["before", "without G"] == nodes.texts("F")
    nodes.heal()
    nodes.run(1.0)
    assert ["before", "tail"] == nodes.texts("G")
    assert ["the group goes on without entries that were delivered here"] == nodes.user("G").losses


def test_who_was_left_out_and_has_nothing_more_goes_on() -> None:
    """It has a beginning of the log that was chosen, and takes the rest."""
    nodes = fast_group("DEFG")
    nodes.submit("D", "before")
    nodes.run(1.0)
    nodes.cut("G", "E", "F")
    nodes.die("D")
    nodes.run(4.0)
    nodes.submit("E", "meanwhile")
    nodes.run(0.1)
    nodes.heal()
    nodes.run(1.0)
    assert ["before", "meanwhile"] == nodes.texts("G")
    assert [] == nodes.user("G").losses


def test_who_missed_a_whole_view_is_judged_by_the_view_it_was_in() -> None:
    """B6: G comes back in the third view, whose first entry lies far behind what G has delivered of the first."""
    nodes = fast_group("DEFG", replicas=3)
    nodes.submit("D", "before")
    nodes.run(1.0)
    _only_g_hears(nodes, "tail")
    nodes.heal()
    nodes.cut("G", "E", "F")
    nodes.die("D")
    nodes.run(4.0)
    for number in range(10):
        nodes.submit("E", f"second view {number}")
    nodes.run(0.5)
    nodes.die("E")
    nodes.run(4.0)
    began = nodes.seat("F").replica.began
    assert began > nodes.part("G").delivered
    nodes.heal()
    nodes.run(1.0)
    assert ["before", "tail"] == nodes.texts("G")
    assert ["the group goes on without entries that were delivered here"] == nodes.user("G").losses


def test_who_promised_delivers_nothing_more_of_the_view_before() -> None:
    """L3: what G reported stays all it has delivered, or the new leader would choose too little."""
    nodes = fast_group("DEFG")
    id, epoch = nodes.id(), nodes.record().active.epoch
    view = View(10_000, "E", (nodes.node("E"), nodes.node("F")), 2)
    nodes.frame("E", "G", Claim(id, 10_000, view=view, from_all=True))
    last, began = nodes.about("G").delivered, nodes.seat("G").replica.began  # type: ignore[union-attr]
    assert [(10_000, epoch, last)] == [(one.epoch, one.accepted, one.last) for one in nodes.messages(Promised, "G")]
    nodes.forget_the_past()
    entry = encode_entry("", 0, 0, encode_control(NodeRemoved(nodes.node("F"))))
    nodes.frame("D", "G", Order(id, epoch, last + 1, (entry,), last, 0, began))
    nodes.frame("D", "G", Repair(id, epoch, last + 1, last + 1, (entry,), began=began))
    assert last == nodes.part("G").delivered
    assert [Refused(id, 10_000)] == nodes.messages(Refused, "G", "D")


def test_an_order_of_a_view_that_nobody_told_of_is_not_heard() -> None:
    """B6: an order does not say which views came before; a beat does, and goes ahead of the first one."""
    nodes = fast_group("DEFG")
    nodes.submit("D", "before")
    nodes.run(1.0)
    part = nodes.part("G")
    before = part.delivered
    entry = encode_entry("", 0, 0, encode_control(NodeRemoved(nodes.node("F"))))
    nodes.frame("E", "G", Order(nodes.id(), 10_000, before + 1, (entry,), before, 0, before + 1))
    assert before == part.delivered
    assert not isinstance(nodes.seat("G").role, Server)


def test_who_carries_nothing_of_the_group_says_so() -> None:
    """A node that has left, or is about to be inserted, is counted as a member by some log: nobody waits for it."""
    nodes = fast_group("DEF")
    claim = Claim(nodes.id(), 10_000, view=View(10_000, "E", (nodes.node("E"),), 1), from_all=True)
    nodes.frame("E", "G", claim)
    assert [Promised(nodes.id(), 10_000, 0, 0, 0, 0)] == nodes.messages(Promised, "G", "E")


def test_a_node_that_promised_is_not_inserted_under_an_older_epoch() -> None:
    """L3: the promise of who has nothing binds it, too."""
    nodes = fast_group("DEF")
    nodes.lose(Inserted)
    nodes.join("G")
    nodes.run(0.2)
    late = nodes.messages(Inserted, "D", "G")[0]
    view = View(10_000, "E", (nodes.node("E"),), 1)
    nodes.frame("E", "G", Claim(nodes.id(), 10_000, view=view, from_all=True))
    nodes.frame("D", "G", late)
    assert [] == nodes.user("G").joined_at


def test_a_log_that_never_became_active_does_not_outrank_a_longer_one() -> None:
    """B6: E opened a view without G, which was out of reach. It was never active; in the next one G is heard."""
    nodes = fast_group("DEFG")
    nodes.submit("D", "before")
    nodes.run(1.0)
    _only_g_hears(nodes, "tail")
    nodes.heal()
    nodes.cut("G", "E", "F")
    nodes.lose(Open, "E>F")
    nodes.die("D")
    nodes.run_until(lambda: bool(nodes.lines("recovered")), within=4.0)
    nodes.die("F")
    nodes.heal()
    nodes.run(1.0)
    assert [["before", "tail"]] * 2 == [nodes.texts(name) for name in "EG"]
    assert [] == nodes.user("G").losses


# --- Members come and go ---


def test_nobody_is_inserted_by_an_entry_that_may_be_lost() -> None:
    """The new member is told once k servers hold its insertion: so whoever recovers the stream knows of it."""
    nodes = fast_group("DEF")
    nodes.lose(Held)
    user = nodes.join("G")
    nodes.run(0.2)
    assert [] == user.joined_at
    assert nodes.node("G") in nodes.part("D").roll.members
    nodes.heal()
    nodes.run(1.0)
    assert 1 == len(user.joined_at)


def test_who_left_by_an_entry_that_was_lost_can_come_back() -> None:
    """G has seen its removal, and nobody else has who is alive. It is still in the roll, by an older term."""
    nodes = fast_group("DEFG")
    nodes.lose(STREAM, "D>E D>F")
    nodes.leave("G")
    nodes.run(0.01)
    assert ["left"] == nodes.user("G").losses
    assert nodes.about("G") is None
    nodes.die("D")
    nodes.heal()
    user = nodes.join("G")
    nodes.run(3.0)
    assert 1 == len(user.joined_at)
    nodes.submit("G", "back")
    nodes.run(0.1)
    assert [["back"]] * 3 == [nodes.texts(name) for name in "EFG"]


def test_a_stranger_is_told_once_k_servers_hold_its_entry() -> None:
    """B2: it does not see the entry, and must not be told of what may be lost."""
    nodes = fast_group("DEF")
    nodes.lose(Held)
    nodes.send("G", "from outside")
    nodes.run(0.3)
    assert ["from outside"] == nodes.texts("D")
    assert 0 == nodes.user("G").accepted_upto
    nodes.heal()
    nodes.run(1.5)
    assert 1 == nodes.user("G").accepted_upto


def test_a_leader_that_k_servers_do_not_answer_numbers_nothing_more() -> None:
    """Others may lead by now, and what it delivers would be contradicted."""
    nodes = fast_group("DEF")
    nodes.lose(Held)
    nodes.submit("D", "first")
    nodes.run(1.2)
    nodes.submit("D", "second")
    nodes.run(0.2)
    assert ["first"] == nodes.texts("D")


# --- SYNC ---


def test_an_order_behind_a_window_of_others_asks_for_answers() -> None:
    """GS-13: a regular multicast is turned into one that all acknowledge; and then everybody has everything."""
    nodes = fast_group("DEFG", sync_window=3)
    nodes.lose((Held, Seen))
    for number in range(8):
        nodes.submit("D", str(number))
        nodes.run(0.002)
    assert [False, False, False, True, False, False, False, True] == [
        order.ack for order in nodes.messages(Order, "D", "G") if order.entries
    ]


def test_members_speak_up_before_the_window_is_used() -> None:
    """GS-13: so nobody has to be asked."""
    nodes = fast_group("DEFG", sync_window=3)
    for number in range(8):
        nodes.submit("D", str(number))
        nodes.run(0.005)
    assert {False} == {order.ack for order in nodes.messages(Order, "D", "G") if order.entries}
    assert 4 == len(nodes.messages(Held, "E")) == len(nodes.messages(Seen, "G"))


def test_members_speak_up_before_the_idle_time_is_over() -> None:
    """GS-13: the beat that follows finds that all have seen everything, announces it, and history is dropped."""
    nodes = fast_group("DEFG")
    nodes.submit("D", "and then silence")
    nodes.run(0.15)
    last = nodes.about("D").last  # type: ignore[union-attr]
    assert [last] == [held.upto for held in nodes.messages(Held, "E")]
    assert [last] == [seen.upto for seen in nodes.messages(Seen, "G")]
    nodes.run(0.6)
    for name in "DEFG":
        assert last == nodes.seat(name).replica.discard_said == nodes.seat(name).replica.log.base


def test_who_misses_what_it_shall_acknowledge_fetches_it_first() -> None:
    """GS-13: an acknowledgement says that everything up to there is here."""
    nodes = fast_group("DEFG")
    nodes.lose(Order, "D>E")
    nodes.submit("D", "missed")
    nodes.run(0.002)
    nodes.heal()
    nodes.forget_the_past()
    told: list[int] = []
    nodes.act(
        "D", lambda groups: groups.when_held(GROUP, nodes.user("D"), groups.submit(GROUP, [b"asks"]), told.append)
    )
    nodes.run(0.01)
    assert [] == nodes.messages(Held, "E")
    nodes.run(0.1)
    assert ["missed", "asks"] == nodes.texts("E")
    assert nodes.about("D").last in [held.upto for held in nodes.messages(Held, "E")]  # type: ignore[union-attr]


def test_a_checkpoint_is_taken_only_of_what_cannot_be_lost() -> None:
    """Who begins with it would be contradicted together with it."""
    nodes = Carriers.with_group("DEF", delivery="fast", parameters={"group_checkpoint_every": 5})
    nodes.lose(Held)
    for number in range(12):
        nodes.submit("D", str(number))
    nodes.run(0.01)
    replica = nodes.seat("D").replica
    assert replica.delivered > replica.stable >= replica.log.checkpoint_seq
    nodes.heal()
    nodes.run(0.6)
    assert replica.delivered == replica.log.checkpoint_seq


def test_servers_take_the_same_checkpoints_though_they_deliver_before_anything_is_stable() -> None:
    """SAM-05, SAM-07: so one of them can be advertised, and what is behind it dropped, as in any group."""
    parameters = {"retention_margin": 2}
    nodes = Carriers.with_group("DEFG", delivery="fast", parameters=parameters, checkpoint_every=10)
    for number in range(25):
        nodes.submit("E", f"{number}")
        nodes.run(0.01)
    nodes.run(1.5)
    replicas = [nodes.seat(name).replica for name in "DEFG"]
    last = replicas[0].log.last
    assert [(last, last)] * 4 == [(one.checkpoints.advertised.seq, one.log.base) for one in replicas]


def test_who_promised_skips_nothing_as_it_delivers_nothing() -> None:
    """B6: what it reported stays all it has, so a checkpoint that was on its way to it comes too late."""
    nodes = fast_group("DEFG", replicas=3)
    seat = nodes.seat("G")
    replica = seat.replica
    state, before = replica.log.checkpoint, replica.delivered
    whole = Described(before + 10, len(state), crc32(state))
    replica.fetch = Fetch(whole, ["E"], block_bytes=len(state), patience=1.0)
    block = Block(nodes.id(), replica.log.accepted, whole.seq, *whole, 0, state)
    assert isinstance(seat, FastSeat)
    seat._bound = seat.epoch + 1
    nodes.frame("E", "G", block)
    nodes.run(0.01)
    assert before == replica.delivered
    seat._bound = 0
    nodes.frame("E", "G", block)
    nodes.run(0.01)
    assert whole.seq == replica.delivered


def test_a_late_submission_that_somebody_waits_for_is_asked_about_again() -> None:
    """GS-14: the wish goes with every repetition, whoever leads."""
    nodes = fast_group("DEFG")
    nodes.lose(Submit, "G>D")
    told: list[int] = []
    nodes.act(
        "G", lambda groups: groups.when_held(GROUP, nodes.user("G"), groups.submit(GROUP, [b"late"]), told.append)
    )
    nodes.run(0.05)
    nodes.die("D")
    nodes.heal()
    nodes.run(1.0)
    assert {True} == {submit.ack for submit in nodes.messages(Submit, "G")}
    assert 1 == len(told)


def test_a_server_that_retires_delivers_nothing_of_the_view_it_promised_to_leave() -> None:
    """L3: F has promised, and the name server tells it that the view goes on without it. A payload comes late."""
    nodes = Carriers.with_group("DEF", delivery="fast", parameters={"inline_bytes_max": 10})
    nodes.lose(Data, "D>F E>F")
    nodes.submit("D", "a payload that travels apart")
    nodes.run(0.01)
    assert [1, 0] == [len(nodes.texts(name)) for name in "EF"]
    id, data = nodes.id(), nodes.messages(Data, "D", "F")[0]
    view = View(10_000, "E", (nodes.node("E"),), 1)
    nodes.frame("E", "F", Claim(id, 10_000, view=view, from_all=True))
    nodes.frame(nodes.leaders[0], "F", GroupIs(id, view))
    assert ["receiver"] == nodes.roles("F")
    nodes.frame("D", "F", data)
    assert [] == nodes.texts("F")
