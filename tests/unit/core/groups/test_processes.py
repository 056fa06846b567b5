"""Processes on several nodes: one sequence for all of them, whoever leads, dies or comes late."""

from __future__ import annotations

from groupsvc.wire.client_messages import GroupRecord, LookUpAsk
from groupsvc.wire.notices import Ended, Failing, Joined, Left, Message, PhaseOpened, StateChanged
from groupsvcd.core.peer_messages import Submit, Votes

from .processes import Process, Processes


def _three(**attributes: str) -> tuple[Processes, list[Process]]:
    nodes = Processes()
    return nodes, [nodes.start(node, **attributes) for node in "DEF"]


def test_who_joins_sees_itself_join_and_all_see_the_same_list() -> None:
    """GS-04, GS-32: oldest first; the first event is one's own."""
    nodes, processes = _three()
    nodes.run(0.5)
    assert {3} == {len(process.view.providers) for process in processes}
    assert 1 == len({process.names for process in processes})
    for process in processes:
        joined = process.kinds(Joined)[0]
        assert (process.node, nodes.incarnation(process.node), process.number) == joined.providers[0].id
        assert isinstance(process.decided[0], Ended)
        assert process.decided[0].outcome.approved


def test_a_state_change_that_all_approve_is_seen_by_all_at_the_same_entry() -> None:
    """GS-24, GS-31."""
    nodes, processes = _three(state_phases="n")
    processes[1].propose_state(b"red")
    nodes.run(0.1)
    assert [1, 1, 1] == [len(process.kinds(PhaseOpened)) for process in processes]
    for process in processes:
        process.vote("approve")
    nodes.run(0.1)
    changed = [process.kinds(StateChanged) for process in processes]
    assert 1 == len({tuple((one.seq, one.value, one.version) for one in each) for each in changed})
    assert b"red" == processes[2].view.state
    decided = processes[1].decided[-1]
    assert isinstance(decided, Ended)
    assert 3 == len(decided.outcome.votes)


def test_a_phase_costs_one_entry_whatever_the_number_of_voters() -> None:
    """GS-24: nodes add the votes of their processes together."""
    nodes = Processes()
    processes = [nodes.start(node, state_phases="n") for node in "DEFDEFDEF"]
    nodes.run(0.5)
    before = nodes.seat("D", "db").replica.log.last
    processes[0].propose_state(b"red")
    nodes.run(0.1)
    for process in processes:
        process.vote("approve")
    nodes.run(0.1)
    assert b"red" == processes[8].view.state
    assert 2 == nodes.seat("D", "db").replica.log.last - before


def test_lost_and_doubled_votes_change_nothing() -> None:
    """G4. They are sent again until the phase has ended."""
    nodes, processes = _three(state_phases="n")
    processes[0].propose_state(b"red")
    nodes.run(0.1)
    nodes.lose(Votes)
    for process in processes:
        process.vote("approve")
    nodes.run(0.3)
    assert [] == processes[0].kinds(StateChanged)
    late = nodes.messages(Votes, "E")[0]
    nodes.heal()
    nodes.run(2.0)
    nodes.frame("E", "D", late)
    nodes.run(0.5)
    assert [b"red"] == [changed.value for changed in processes[2].kinds(StateChanged)]


def test_a_ballot_outlives_the_leader_in_the_middle_of_a_phase() -> None:
    """D leads and dies with two votes in its hands: the votes are sent again, nothing is counted or run twice."""
    nodes, processes = _three(state_phases="n")
    processes[1].propose_state(b"red")
    nodes.run(0.1)
    processes[0].vote("approve")
    processes[1].vote("approve")
    nodes.run(0.05)
    nodes.die("D")
    nodes.run(3.0)
    processes[2].vote("approve")
    nodes.run(1.0)
    for process in processes[1:]:
        assert [b"red"] == [changed.value for changed in process.kinds(StateChanged)]
        assert ["node_failure"] == [failing.cause for failing in process.kinds(Failing)]
        assert ["node_failure"] == [left.cause for left in process.kinds(Left)]
        assert process.names == processes[1].names
        assert 2 == len(process.view.providers)
    outcomes = [ended.outcome.subject.kind for ended in processes[1].kinds(Ended)]
    assert 1 == outcomes.count("state")


def test_a_proposal_that_was_waiting_when_the_leader_died_has_its_turn() -> None:
    """The queue is in the stream."""
    nodes, processes = _three(state_phases="n")
    processes[0].propose_state(b"red")
    processes[1].propose_state(b"green")
    nodes.run(0.1)
    nodes.die("D")
    for _ in range(4):
        nodes.run(2.0)
        for process in processes[1:]:
            process.vote("approve")
    nodes.run(1.0)
    assert b"green" == processes[2].view.state


def test_the_death_of_a_process_is_seen_by_all_in_one_round() -> None:
    """GS-33."""
    nodes, processes = _three()
    processes[1].die()
    nodes.run(0.05)
    for process in (processes[0], processes[2]):
        assert ["failure"] == [failing.cause for failing in process.kinds(Failing)]
        assert ["failure"] == [left.cause for left in process.kinds(Left)]


def test_a_node_without_processes_in_the_group_leaves_it() -> None:
    """GS-07."""
    nodes, processes = _three()
    processes[1].leave()
    nodes.run(3.0)
    assert ["none"] == nodes.roles("E", "db")
    assert isinstance(processes[1].notices[-1], Left | Ended)
    assert 2 == len(processes[0].view.providers)


def test_subscribers_see_what_was_approved_and_are_unseen() -> None:
    """GS-21, GS-36."""
    nodes, processes = _three(state_phases="n")
    watcher = nodes.watch("G")
    processes[0].propose_state(b"red")
    nodes.run(0.1)
    for process in processes:
        process.vote("approve")
    nodes.run(0.3)
    processes[0].propose_state(b"green")
    nodes.run(0.1)
    processes[1].vote("reject")
    for process in (processes[0], processes[2]):
        process.vote("approve")
    nodes.run(0.3)
    assert [b"red"] == [changed.value for changed in watcher.kinds(StateChanged)]
    assert [] == watcher.kinds(PhaseOpened)
    assert 3 == len(processes[0].view.providers)


def test_messages_of_all_come_in_one_order_everywhere() -> None:
    """B4, from process to process."""
    nodes, processes = _three()
    for number in range(5):
        for process in processes:
            process.say(b"%d of %s" % (number, process.node.encode()))
        nodes.run(0.02)
    nodes.run(0.5)
    orders = {tuple((one.seq, one.payload) for one in process.kinds(Message)) for process in processes}
    assert 1 == len(orders)
    assert 15 == len(next(iter(orders)))


def test_who_comes_late_has_the_state_and_the_list_of_the_others() -> None:
    """SAM-08, GS-31: the group is its own state machine."""
    nodes, processes = _three()
    processes[0].propose_state(b"red")
    nodes.run(0.1)
    late = nodes.start("G")
    nodes.run(1.0)
    assert b"red" == late.view.state
    assert 4 == len(late.view.providers)
    assert late.view == processes[0].view


def test_the_last_to_leave_ends_the_group_and_its_name_is_free() -> None:
    """The end of a group."""
    nodes, processes = _three()
    for process in processes:
        process.leave()
        nodes.run(1.0)
    nodes.run(5.0)
    assert ["none"] * 3 == nodes.roles("DEF", "db")
    again = nodes.start("E")
    nodes.run(1.0)
    assert 1 == len(again.view.providers)
    assert b"" == again.view.state


def test_a_group_that_a_client_had_formed_is_joined_like_any_other_and_ends_with_its_providers() -> None:
    """GS-05: who formed it took no part, so it waits for processes, on whatever node; then it lives as long as they."""
    nodes = Processes()
    number = nodes.call("D", lambda n: LookUpAsk(n, "db", True, 5.0))
    nodes.run(0.5)
    record = nodes.replies[number]
    assert isinstance(record, GroupRecord)
    assert (True, "D", ["leader"]) == (record.formed, record.leader, nodes.roles("D", "db"))
    process = nodes.start("E")
    assert "E1" == process.names
    nodes.run(5.0)
    assert ["none", "leader"] == nodes.roles("DE", "db")
    process.leave()
    nodes.run(5.0)
    assert ["none", "none"] == nodes.roles("DE", "db")


def test_in_an_exclusive_group_nobody_takes_over_before_the_node_of_the_holder_is_gone() -> None:
    """Its port refuses, so it is down at once; it is gone only when its lease must have ended."""
    nodes = Processes()
    processes = [nodes.start(node, exclusive=True) for node in "DEF"]
    nodes.run(1.0)
    holder = (*nodes.node("D"), processes[0].number)
    nodes.die("D")
    nodes.run(1.0)
    assert [holder] == [failing.provider for failing in processes[1].kinds(Failing)]
    assert "D1 E1 F1" == processes[1].names
    nodes.run(4.0)
    assert "E1 F1" == processes[1].names


def test_in_an_exclusive_group_a_node_that_comes_back_does_not_hide_that_its_former_life_may_hold_something() -> None:
    nodes = Processes()
    processes = [nodes.start(node, exclusive=True) for node in "DEF"]
    nodes.run(1.0)
    nodes.die("F")
    nodes.run(0.3)
    nodes.boot("F")
    nodes.run(6.0)
    assert "D1 E1" == processes[0].names


def test_in_an_exclusive_group_a_daemon_that_is_back_at_once_does_not_hide_that_programs_of_its_node_go_on() -> None:
    """L6: with its disk it shows that the one before has ended, and acts no more. Its programs rely on its lease."""
    nodes = Processes()
    processes = [nodes.start(node, exclusive=True) for node in "DEC"]
    nodes.run(1.0)
    former = nodes.node("C")
    nodes.die("C")
    nodes.run(0.2)
    nodes.boot("C")
    nodes.run(1.3)
    assert nodes.voter("A").directory.nodes.is_gone(former)
    assert "D1 E1 C1" == processes[0].names
    nodes.run(5.0)
    assert "D1 E1" == processes[0].names
    nodes.die("F")
    nodes.run(4.0)
    assert not nodes.engines["D"].processes._gone, "nobody needs to know it any more"


def test_a_leader_that_was_cut_off_for_a_moment_presides_again() -> None:
    """Nothing was ordered meanwhile, and it has no vote of its own to repeat: the votes of the others are enough."""
    nodes = Processes()
    processes = [nodes.start(node, state_phases="n", time_limit=2.15) for node in "DEF"]
    processes[0].die()  # D leads the stream, and has no process in it any more
    watcher = nodes.watch("D")
    nodes.run(0.2)
    processes[1].propose_state(b"red")
    nodes.run(0.05)
    nodes.cut("D", *[name for name in nodes.names if name != "D"])
    nodes.run(2.2)  # the time of the phase is over while D may not say so
    assert nodes.engines["D"].member.isolated
    for process in processes[1:]:
        process.vote("approve")
    nodes.heal()
    nodes.run(1.5)
    assert "up" == nodes.engines["A"].member.nodes["D"].status
    assert [b"red"] == [changed.value for changed in watcher.kinds(StateChanged)]


def test_an_entry_that_cannot_be_read_changes_nothing_for_all_alike() -> None:
    """X2: F carries nothing of the group, and what it submits is no command. It ended every daemon that had it."""
    nodes = Processes()
    processes = [nodes.start(node) for node in "DE"]
    local = nodes.engines["D"].processes.get("db")
    assert local is not None
    before = [process.view.providers for process in processes]
    for n, body in enumerate((b"\xc1", b"\x91\xff", b""), start=1):
        nodes.frame("F", "D", Submit(local.id, n, 0, (body,)))
        nodes.run(0.3)
    processes[0].say(b"all is well")
    nodes.run(0.3)
    assert before == [process.view.providers for process in processes]
    assert [[b"all is well"]] * 2 == [[one.payload for one in process.kinds(Message)] for process in processes]
