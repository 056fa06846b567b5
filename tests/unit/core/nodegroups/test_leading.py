"""What the leader of a group does: numbers each submission once, inserts, removes, and looks after its servers."""

from __future__ import annotations

from groupsvcd.core.nodegroups.beats import BEAT_ENTRIES
from groupsvcd.core.nodegroups.controls import (
    AnyControl,
    NodeInserted,
    NodeRemoved,
    NodesFailed,
    ViewStarted,
    decode_control,
)
from groupsvcd.core.peer_messages import (
    Accepted,
    Ask,
    Beat,
    Grant,
    Held,
    Insert,
    Inserted,
    Leave,
    Left,
    Order,
    Repair,
    RepairAsk,
    Seen,
    Submit,
    SubmitRefused,
)
from groupsvcd.core.stream.entries import decode_entry, length_of
from tests.unit.core.nodegroups.carriers import Carriers, Witness


def _controls(user: Witness) -> list[AnyControl]:
    return [decode_control(entry.body) for _, entry in user.entries if not entry.origin]


def _servers(nodes: Carriers) -> str:
    return "".join(nodes.record().active.names)


# --- Submissions ---


def test_a_submission_that_comes_twice_is_numbered_once() -> None:
    """B1. The origin repeats it, and the network does, too; also when part of it is new."""
    nodes = Carriers.with_group("DEF")
    id = nodes.id()
    nodes.frame("E", "D", Submit(id, 1, 0, (b"a", b"b")))
    nodes.frame("E", "D", Submit(id, 1, 0, (b"a", b"b")))
    nodes.frame("E", "D", Submit(id, 2, 0, (b"b", b"c")))
    nodes.run(0.1)
    assert ["a", "b", "c"] == nodes.texts("F")


def test_a_duplicate_is_known_also_to_the_next_leader() -> None:
    """B1, GS-09. The table of origins is a function of the entries."""
    nodes = Carriers.with_group("DEF")
    nodes.frame("E", "D", Submit(nodes.id(), 1, 0, (b"a",)))
    nodes.run(0.1)
    nodes.die("D")
    nodes.run(0.5)
    nodes.frame("F", "E", Submit(nodes.id(), 1, 0, (b"of F",)))
    nodes.frame("F", "E", Submit(nodes.id(), 1, 0, (b"of F",)))
    nodes.run(0.1)
    assert ["a", "of F"] == nodes.texts("F")


def test_who_overtakes_itself_is_told_where_to_go_on() -> None:
    """B5. Number 3 came before 2: nothing is numbered out of its sender's order."""
    nodes = Carriers.with_group("DEF")
    id = nodes.id()
    nodes.frame("E", "D", Submit(id, 1, 0, (b"a",)))
    nodes.forget_the_past()
    nodes.frame("E", "D", Submit(id, 3, 0, (b"c",)))
    assert [SubmitRefused(id, nodes.incarnation("E"), 3, 1, "gap")] == nodes.messages(SubmitRefused, "D", "E")
    nodes.run(0.1)
    assert ["a"] == nodes.texts("F")


def test_what_lay_too_long_is_never_numbered() -> None:
    """SAM-09. It may have been numbered an age ago, and forgotten."""
    nodes = Carriers.with_group("DEF", logical_lifetime=5)
    nodes.submit("E", *"abcdefgh")
    nodes.run(0.1)
    nodes.forget_the_past()
    nodes.frame("F", "D", Submit(nodes.id(), 1, 1, (b"from another age",)))
    assert ["too old"] == [refusal.reason for refusal in nodes.messages(SubmitRefused, "D", "F")]
    nodes.run(0.1)
    assert list("abcdefgh") == nodes.texts("F")


def test_nothing_is_numbered_of_an_incarnation_that_is_not_up() -> None:
    """GS-08. F/1 was declared down; a frame of its lay somewhere on its way. Of one that is unknown nothing is said."""
    nodes = Carriers.with_group("DEF")
    dead = nodes.incarnation("F")
    nodes.die("F")
    nodes.run(0.5)
    nodes.boot("F")
    nodes.run(0.5)
    nodes.forget_the_past()
    nodes.frame("F", "D", Submit(nodes.id(), 1, 0, (b"from the dead",)), incarnation=dead)
    nodes.frame("F", "D", Submit(nodes.id(), 1, 0, (b"from a stranger",)), incarnation=nodes.incarnation("F") + 7)
    nodes.run(0.1)
    assert ([], []) == (nodes.texts("E"), nodes.messages(SubmitRefused, "D"))


def test_everything_of_one_step_leaves_in_one_order() -> None:
    """Natural batching: who is busy sends few large frames."""
    nodes = Carriers.with_group("DEF")
    nodes.submit("E", *(f"{i}" for i in range(100)))
    nodes.run(0.1)
    orders = [order for order in nodes.messages(Order, "D", "E") if order.stream == nodes.id() and order.entries]
    assert [100] == [sum(map(length_of, order.entries)) for order in orders]
    assert [f"{i}" for i in range(100)] == nodes.texts("F")


def test_an_entry_is_delivered_when_k_servers_hold_it_and_not_before() -> None:
    """SAM-05. With commit_k=3 all three must; a server that stays silent stops it."""
    nodes = Carriers.with_group("DEF", commit_k=3)
    nodes.lose(Held, "F>D")
    nodes.submit("E", "a")
    nodes.run(0.2)
    assert ([], [], []) == (nodes.texts("D"), nodes.texts("E"), nodes.texts("F"))
    nodes.heal()
    nodes.run(0.5)
    assert (["a"], ["a"], ["a"]) == (nodes.texts("D"), nodes.texts("E"), nodes.texts("F"))


def test_the_slowest_member_is_not_waited_for() -> None:
    """SAM-05, SAM-12. A server and a receiver that hear nothing hold up nobody."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose((Order, Beat, Repair), "D>F D>G E>F E>G")
    nodes.submit("E", "a")
    nodes.run(0.01)
    assert (["a"], ["a"], [], []) == tuple(nodes.texts(name) for name in "DEFG")


# --- Members ---


def test_a_lost_welcome_is_given_again() -> None:
    """GS-06. The insertion is ordered once, however often it is asked for."""
    nodes = Carriers.with_group("DE")
    nodes.lose(Inserted, "D>F")
    user = nodes.join("F")
    nodes.run(0.25)
    assert [] == user.joined_at
    nodes.heal()
    nodes.run(1.0)
    inserted = [control.node for control in _controls(nodes.user("E")) if isinstance(control, NodeInserted)]
    assert 1 == inserted.count(nodes.node("F"))
    assert 1 == len(user.joined_at)


def test_a_new_member_is_given_everything_after_its_insertion_and_nothing_before() -> None:
    """GS-06, SAM-08. Also what was ordered while it was on its way in."""
    nodes = Carriers.with_group("DE")
    nodes.submit("E", "before")
    nodes.run(0.1)
    user = nodes.join("F")
    nodes.run_until(lambda: bool(nodes.messages(Inserted, "D", "F")))
    nodes.submit("E", "meanwhile")
    nodes.run(0.5)
    assert ["meanwhile"] == user.texts


def test_all_members_see_the_same_lists_at_the_same_entries() -> None:
    """GS-04, V3."""
    nodes = Carriers.with_group("DEFG")
    nodes.die("F")
    nodes.run(0.5)
    nodes.leave("D")
    nodes.run(1.0)
    lists: dict[int, set[str]] = {}
    for line in nodes.lines("members"):
        lists.setdefault(line.seq, set()).add(str(line.args["members"]))
    assert lists
    assert {1} == {len(found) for found in lists.values()}
    assert ("EG", "EG") == (nodes.user("E").names, nodes.user("G").names)


def test_a_failure_is_ordered_before_the_return_of_the_same_node() -> None:
    """GS-30. Nobody is shown joining again before its earlier failure was shown."""
    nodes = Carriers.with_group("DEF")
    old = nodes.node("F")
    nodes.kill("F")
    nodes.boot("F")
    nodes.run(1.0)
    nodes.join("F")
    nodes.run(1.0)
    story = [control for control in _controls(nodes.user("E")) if isinstance(control, NodeInserted | NodesFailed)]
    assert NodesFailed((old,)) in story
    assert story.index(NodesFailed((old,))) < story.index(NodeInserted(nodes.node("F"), 1, 0))
    assert "DEF" == nodes.user("E").names


def test_who_is_no_member_is_told_so_when_it_leaves() -> None:
    """GS-07. The removal may have been delivered everywhere but there."""
    nodes = Carriers.with_group("DE")
    nodes.frame("G", "D", Leave(nodes.id(), 5))
    assert [Left(nodes.id(), nodes.incarnation("G"), 5)] == nodes.messages(Left, "D", "G")


def test_an_old_leave_does_not_remove_who_came_back() -> None:
    """The node has left and was inserted again; a copy of its first Leave arrives now."""
    nodes = Carriers.with_group("DEFG")
    nodes.leave("G")
    nodes.run(0.5)
    old = nodes.messages(Leave, "G", "D")[0]
    nodes.join("G")
    nodes.run(0.5)
    nodes.frame("G", "D", old)
    nodes.run(0.5)
    assert "DEFG" == nodes.user("E").names
    assert [] == nodes.user("G").losses


def test_an_old_insert_of_a_member_inserts_nobody() -> None:
    """It is only told once more that it is one."""
    nodes = Carriers.with_group("DEF")
    nodes.frame("E", "D", Insert(nodes.id(), 1, 0))
    nodes.run(0.1)
    assert [] == [line for line in nodes.lines("members") if line.node == "D"]
    assert "DEF" == nodes.user("D").names


def test_who_had_left_and_comes_back_is_inserted_anew_though_its_leave_is_lost() -> None:
    """A forced view may lack the entry that removed it, and it asks with a newer term than the roll has."""
    nodes = Carriers.with_group("DEFG")
    for _ in range(2):  # first its removal is ordered; it asks again
        nodes.frame("G", "D", Insert(nodes.id(), 7, 0))
        nodes.run(0.2)
    story = [control for control in _controls(nodes.user("E")) if isinstance(control, NodeInserted | NodeRemoved)]
    assert [NodeRemoved(nodes.node("G")), NodeInserted(nodes.node("G"), 7, 0)] == story[-2:]


# --- Servers ---


def test_a_group_has_no_more_servers_than_it_wants() -> None:
    """SAM-01. The first in join order; the others receive."""
    nodes = Carriers.with_group("DEFG", replicas=2)
    assert "DE" == _servers(nodes)
    assert ["leader", "server", "receiver", "receiver"] == nodes.roles("DEFG")


def test_a_server_that_died_is_replaced_by_the_oldest_receiver() -> None:
    """SAM-05. Redundancy comes back by itself."""
    nodes = Carriers.with_group("DEFG", replicas=2)
    nodes.die("E")
    nodes.run(1.0)
    assert "DF" == _servers(nodes)
    assert ["leader", "server", "receiver"] == nodes.roles("DFG")


def test_a_receiver_that_has_never_told_how_far_it_is_becomes_no_server() -> None:
    """It might have to fetch for minutes, and nothing would be numbered meanwhile."""
    nodes = Carriers.with_group("DE")
    nodes.lose(Seen)
    nodes.join("F")
    nodes.run(1.5)
    assert "DE" == _servers(nodes)
    nodes.heal()
    nodes.run(1.0)
    assert "DEF" == _servers(nodes)


def test_each_view_begins_with_an_entry_that_tells_it() -> None:
    """GS-09. Epoch, leader, servers and fence, so that every member has them from the stream."""
    nodes = Carriers.with_group("DEF")
    nodes.die("D")
    nodes.run(0.5)
    view = nodes.record().active
    started = [control for control in _controls(nodes.user("F")) if isinstance(control, ViewStarted)]
    assert ViewStarted(view.epoch, "E", view.servers, view.k, view.fence) == started[-1]
    assert [view.fence for view in started] == sorted(view.fence for view in started)


# --- Leaving, and the end ---


def test_a_server_that_leaves_holds_the_stream_until_others_do() -> None:
    """GS-07. It is removed after a view without it is active."""
    nodes = Carriers.with_group("DEF")
    nodes.leave("F")
    nodes.run(0.02)
    assert "server" == nodes.roles("F")[0]
    nodes.run(1.0)
    assert ("DE", "DE", "none") == (_servers(nodes), nodes.user("D").names, nodes.roles("F")[0])


def test_who_is_to_serve_in_a_view_that_was_granted_is_not_let_go_before() -> None:
    """GS-07. D hands over to E, F and G; G leaves, and must be there when E asks it for its promise."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose(Grant)
    nodes.leave("D")
    nodes.run(0.3)
    pending = nodes.record().pending
    assert pending is not None
    assert ("E", "F", "G") == pending.names
    nodes.leave("G")
    nodes.run(0.5)
    assert "DEFG" == nodes.user("E").names
    nodes.heal()
    nodes.run(2.0)
    assert ("EF", "EF") == (_servers(nodes), nodes.user("E").names)


def test_a_leader_that_leaves_hands_over_and_loses_nothing() -> None:
    """GS-09. What was submitted meanwhile is in the stream once."""
    nodes = Carriers.with_group("DEF")
    nodes.leave("D")
    for i in range(20):
        nodes.submit("F", f"{i}")
        nodes.run(0.005)
    nodes.run(1.0)
    assert [f"{i}" for i in range(20)] == nodes.texts("E") == nodes.texts("F")
    assert ["none", "leader", "server"] == nodes.roles("DEF")


def test_a_leader_that_hands_over_is_not_made_a_server_again() -> None:
    """GS-07. Each of those views stops the stream for a moment."""
    nodes = Carriers.with_group("DE")
    nodes.leave("D")
    nodes.run(1.0)
    views = [line.args["servers"] for line in nodes.lines("view_active")]
    assert [["E"]] == [[name for name, _ in view] for view in views]


def test_the_only_server_first_takes_in_another_one() -> None:
    """Hand-over from {D} goes {D}, {D, E}, {E}: each view shares a server with the one before."""
    nodes = Carriers.with_group("DE", replicas=1)
    assert "D" == _servers(nodes)
    nodes.submit("E", "before")
    nodes.leave("D")
    nodes.run(1.5)
    nodes.submit("E", "after")
    nodes.run(0.2)
    assert (["before", "after"], "E") == (nodes.texts("E"), _servers(nodes))
    assert "none" == nodes.roles("D")[0]


def test_with_the_last_member_the_group_ends_and_its_name_is_free() -> None:
    """GS-07. What is formed under that name later is another group."""
    nodes = Carriers.with_group("D")
    id = nodes.id()
    nodes.leave("D")
    nodes.run(0.5)
    assert nodes.voter("A").directory.groups.named("jobs") is None
    nodes.join("E")
    nodes.run(0.5)
    assert nodes.id() > id
    assert "leader" == nodes.roles("E")[0]


def test_who_asks_to_be_inserted_into_a_group_that_ends_forms_it_anew() -> None:
    """E was told that D leads, and D was the last one."""
    nodes = Carriers.with_group("D")
    nodes.leave("D")
    user = nodes.join("E")
    nodes.run(3.0)
    assert ([], "E", "leader") == (user.losses, user.names, nodes.roles("E")[0])
    nodes.submit("E", "a")
    nodes.run(0.1)
    assert ["a"] == user.texts


def test_everybody_leaves_at_once_and_the_group_ends() -> None:
    """GS-07. Nobody is left that has to be asked."""
    nodes = Carriers.with_group("DEFG")
    for name in "DEFG":
        nodes.leave(name)
    nodes.run(5.0)
    assert ["none"] * 4 == nodes.roles("DEFG")
    assert nodes.voter("A").directory.groups.named("jobs") is None


# --- Discarding ---


def test_what_everybody_has_delivered_is_kept_no_longer() -> None:
    """GS-12. An idle group's servers need no history at all."""
    nodes = Carriers.with_group("DEFG")
    nodes.submit("E", *"abcdef")
    nodes.run(1.5)
    assert [0, 0, 0] == [len(nodes.seat(name).replica.log.entries) for name in "DEF"]


def test_what_somebody_lacks_is_kept() -> None:
    """GS-12. Until it has it, or lags too far."""
    nodes = Carriers.with_group("DEFG")
    nodes.run(1.0)
    nodes.loses = lambda sender, receiver, message: receiver == "G" and sender in "DEF"
    nodes.submit("E", *"abcdef")
    nodes.run(1.5)
    kept = [decode_entry(entry).body for entry in nodes.seat("E").replica.log.entries]
    assert [b"a", b"b", b"c", b"d", b"e", b"f"] == kept[-6:]
    nodes.heal()
    nodes.run(3.0)
    assert list("abcdef") == nodes.texts("G")


def test_who_lags_too_far_is_not_waited_for_and_has_lost_the_group() -> None:
    """GS-12. Nobody skips entries silently."""
    nodes = Carriers.with_group("DEFG", history_entries_max=10)
    nodes.run(1.0)
    nodes.loses = lambda sender, receiver, message: receiver == "G" and sender in "DEF"
    nodes.submit("E", *(f"{i}" for i in range(30)))
    nodes.run(1.5)
    assert 0 == len(nodes.seat("D").replica.log.entries)
    nodes.heal()
    nodes.run(3.0)
    assert [] == nodes.texts("G")
    assert ["lagged: entries that were not delivered here are no longer kept"] == nodes.user("G").losses
    assert "DEF" == nodes.user("D").names


# --- Strangers ---


def test_who_is_no_member_is_told_what_is_stable() -> None:
    """SAM-03. It does not see the stream; members are told nothing, for they do."""
    nodes = Carriers.with_group("DEF")
    nodes.submit("E", "of a member")
    nodes.send("G", "of a stranger")
    nodes.run(0.1)
    told = nodes.messages(Accepted)
    assert [0, 1] == [accepted.upto_n for accepted in told]  # first it asked where the stream stands
    assert {nodes.incarnation("G")} == {accepted.to for accepted in told}
    assert 1 == nodes.user("G").accepted_upto


def test_a_server_that_is_not_heard_for_a_lease_is_replaced() -> None:
    """It is up, says the name server; but D and it do not reach each other, and it holds nothing for D."""
    nodes = Carriers.with_group("DEFG")
    nodes.cut("D", "F")
    nodes.run(4.0)
    assert "DEG" == _servers(nodes)
    assert "DEFG" == nodes.user("D").names


def test_a_leader_submits_to_nobody_else() -> None:
    """It has numbered its own entries; that they are not stable yet is no reason to send them round."""
    nodes = Carriers.with_group("DEF")
    nodes.loses = lambda sender, receiver, message: sender in "EF" and receiver == "D"
    nodes.submit("D", "a")
    nodes.run(0.9)
    assert [] == [submit for submit in nodes.messages(Submit, "D") if submit.stream]


def test_receivers_of_an_idle_group_keep_no_history_either() -> None:
    """GS-12."""
    nodes = Carriers.with_group("DEFG")
    nodes.submit("E", *"abcdef")
    nodes.run(1.5)
    assert 0 == len(nodes.seat("G").replica.log.entries)


# --- Beats ---


def test_all_groups_that_a_node_leads_beat_at_the_same_moments() -> None:
    """GS-02: what D has for E goes in one frame, however many groups they share."""
    nodes = Carriers.in_service(others="DE")
    for group in ("red", "green", "blue"):
        for name in "DE":
            nodes.join(name, group)
            nodes.run(0.13)
    nodes.run(2.0)
    nodes.forget_the_past()
    nodes.run(2.0)
    beats = [line.at for line in nodes.sent if line.sender == "D" and isinstance(line.message, Beat)]
    assert 3 * 4 == len(beats)
    assert 4 == len(set(beats))


def test_a_group_in_which_nothing_happens_beats_more_slowly() -> None:
    """GS-13. Two beats within the patience of a server; as often as ever as soon as something was ordered."""
    nodes = Carriers.with_group("DEF")
    nodes.run(2.0)
    nodes.forget_the_past()
    nodes.run(3.0)
    assert 6 == len(nodes.messages(Beat, "D", "E"))
    nodes.forget_the_past()
    nodes.submit("E", "red")
    nodes.run(0.26)
    assert 1 <= len(nodes.messages(Beat, "D", "E"))


def test_an_idle_receiver_is_no_burden_to_the_name_server() -> None:
    """GS-02. G is a receiver, and hears nothing: it asks a server whether there is anything, and is answered."""
    nodes = Carriers.with_group("DEFG")
    assert "receiver" == nodes.roles("G")[0]
    nodes.run(1.0)
    nodes.forget_the_past()
    nodes.run(20.0)
    assert 8 <= len(nodes.messages(RepairAsk, "G")) == len(nodes.messages(Repair, "", "G"))
    assert [] == nodes.messages(Ask)


def test_under_load_a_beat_comes_early_so_that_what_all_have_is_dropped_soon() -> None:
    """GS-12. Not only four times a second: then a history would be as long as a quarter of a second is fast."""
    nodes = Carriers.with_group("DEF")
    nodes.run(1.0)
    nodes.forget_the_past()
    for _ in range(2 * BEAT_ENTRIES // 512):
        nodes.submit("E", *["x"] * 512)
        nodes.run(0.005)
    beats = [beat for beat in nodes.messages(Beat, "D", "F") if beat.stream == nodes.id()]
    assert BEAT_ENTRIES / 2 < beats[-1].discard
