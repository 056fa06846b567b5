"""A fair sample of seeds of the real thing; ``make sim`` runs as many as there is time for."""

from __future__ import annotations

import io
import re
from pathlib import Path

import attrs
import pytest

import groupsvcd.core
from groupsvc.testing.sim import World, converge
from groupsvc.testing.sim.marks import APPLICATION_MARKS, BARRIER_MARKS, ENGINE_MARKS, GROUP_MARKS, RARE_MARKS
from groupsvc.testing.sim.plan import ALL_WITH_NEWCOMERS, Plan, draw
from groupsvc.testing.sim.planted.bug import Stage
from groupsvc.testing.sim.planted.group_recovery import CUT_OFF
from groupsvc.testing.sim.runner import Order, run
from groupsvc.testing.sim.trial import run_plan

SAMPLE = 300
FIRST = ALL_WITH_NEWCOMERS
"""From here on seeds draw everything that there is: drains, and machines that enrol, too."""


@pytest.mark.timeout(900)  # a minute on two free cores; a shared machine may need far longer
def test_a_sample_of_seeds_breaks_no_promise_and_goes_everywhere() -> None:
    """V1-V7, B1-B6, L1-L7, G1-G11, R1-R6, K1, K2, S1, C1, C2, X1; every mark and every nemesis is hit."""
    told = io.StringIO()
    assert 0 == run(Order(seeds=SAMPLE, first=FIRST, jobs=2, marks_required=True), told), told.getvalue()


@pytest.mark.parametrize(
    "seed",
    [
        373,
        1545,
        1636,
        517,
        530,
        557,
        1124,
        1237,
        1537,
        1741,
        5168,
        5461,
        4670,
        20098,
        6380,
        6417,
        7333,
        7338,
        71441,
        80072,
        100101,
        100695,
        101853,
        33,
        215,
        3012,
        294,
        44,
        300910,
        300053,
        300446,
        300725,
        300780,
        300830,
        300903,
        300981,
        930016,
        305150,
    ],
)
def test_seeds_that_found_something_stay_green(seed: int) -> None:
    """V2, L3: a grant of long ago. S1: a leader counts itself by what was written while it had no lease.

    B2: nobody told a retired server how to reach the new ones. X1: payloads whose entries were skipped, or given up.
    B3: who comes again begins anew. B4: a fetched checkpoint was installed after what it was for had come another way.
    S4: the only voter could not write, so it called nobody, and declared down whoever did not answer. B2: the leader of
    a fast group believed that nobody answered, though everything was stable. B3: a new leader did not wait for who had
    not spoken yet. L5: a payload came from the disk when the lease was over. B2: a stranger on a
    ghost was not told. B2: who had led before, and could not write then, refused what another had long ordered.
    S1, the checker: a voter said that it held an entry, and lost its disk before the second one had it. L4,
    the history: of a recovered log nobody wrote down what its leader had announced and not delivered. V7, the client: a
    provider that did not read never learnt that it was out. K1: a join under way when its session ended had failed, and
    was approved. The engine: a proposal was taken back, and its alarm rang for ever.
    G10, X1, the checkers: the only disk of a durable group was lost, so it waits for ever, with its dead and its calls.
    B2, the check: everybody was to speak in a group that had lost its quorum, and had not ended yet.
    G7, the checker: attributes were changed while failures were collected, and was told that they had not been.
    B3, the checker: a disk that came back was to keep what its own dead process lacked. X1, the check: who asked to
    join a group that waits for its disks still waits. B2, the check: who had not noticed that its connection was broken
    was to speak. V7: the only node with a disk led on without presiding.
    """
    assert () == run_plan(_as_it_was(seed))[1].failures


def _as_it_was(seed: int) -> Plan:
    """The plan of a seed before applications had tables, and asked for earlier messages: so it takes the same path."""
    plan = _before_barriers(seed)
    return attrs.evolve(plan, application_habits=attrs.evolve(plan.application_habits, tables=0.0, earlier=0.0))


def _before_barriers(seed: int) -> Plan:
    """And this is the plan of one before they came to barriers."""
    plan = _without_stuck(seed)
    return attrs.evolve(plan, application_habits=attrs.evolve(plan.application_habits, barriers=0))


def _without_stuck(seed: int) -> Plan:
    """The same before their code could be stuck."""
    plan = _before_kinds(seed)
    return attrs.evolve(plan, application_habits=attrs.evolve(plan.application_habits, stuck_s=0.0))


def _before_kinds(seed: int) -> Plan:
    """The same before groups were exclusive, fast, went on or waited without a quorum; when nobody hunted those."""
    plan = _before_tasks(seed)
    as_before = attrs.evolve(
        plan.application_habits, exclusive=0.0, fast=0.0, continues=0.0, breaks_again=0.0, hunted=False
    )
    return attrs.evolve(plan, application_habits=as_before, group_habits=attrs.evolve(plan.group_habits, waits=0.0))


def _before_tasks(seed: int) -> Plan:
    """The same before there were tasks, and barriers whose rounds are kept."""
    plan = _before_options(seed)
    return attrs.evolve(plan, application_habits=attrs.evolve(plan.application_habits, keeps=0.0, ranks=0))


def _before_options(seed: int) -> Plan:
    """The same before clients set options of the daemons."""
    plan = draw(seed)
    return attrs.evolve(plan, habits=attrs.evolve(plan.habits, options=0.0))


def test_a_ballot_ends_although_no_process_of_the_leader_takes_part() -> None:
    """G10. n1, the only server, comes back from its disk and leads; its processes do not come back, and it presides."""
    assert () == run_plan(_as_it_was(3121))[1].failures


def test_a_ballot_ends_although_the_last_process_of_the_leader_has_left() -> None:
    """G10. n1 has the only disk, so it leads on when its last process has left; it presides, too."""
    assert () == run_plan(_as_it_was(300121))[1].failures


@pytest.mark.parametrize(
    "seed",
    [
        7032,
        7035,
        7077,
        7114,
        7129,
        7146,
        303462,
        303596,
        303702,
        303939,
        304797,
        304906,
        305160,
        306681,
        310019,
        310486,
        312136,
        312284,
    ],
)
def test_seeds_with_tables_that_found_something_stay_green(seed: int) -> None:
    """G11: a table that was kept while the group was empty went on with rows that the others did not have.

    G1: a message of the same entry as one's own join was applied, and not shown. K1: a join was called failed though it
    had come and gone, as what it wanted to begin with was dropped meanwhile. The checkers: an entry may have several
    messages, somebody may leave with the entry by which the next one comes, and an empty table may be kept.
    The simulator: what a table still had to apply ended the flush that waited for it. B2: who was to lead alone had
    left, found that in the log before it led, and went: nobody was there to be asked.
    G11: a table went on in the next group of its name, after a number that meant something else there, and became
    the checkpoint for all.
    G1, the checker: a daemon was stopped for good between two things that it told of one entry.
    G11, the checker: somebody joined with the entry by which the last one left, and went before it was told of that.
    V7: a join was ordered when its node had left the group, and nobody was there to say that its process had gone, too.
    B3: a disk that came back opened the log of one that had joined later, and threw away what it alone had.
    K2, the history: a vote was written down when it arrived, and its session had been suspended since it was cast.
    """
    assert () == run_plan(_before_barriers(seed))[1].failures


@pytest.mark.parametrize("seed", [980007, 980020, 980125])
def test_seeds_with_barriers_that_found_something_stay_green(seed: int) -> None:
    """K1: who had given up and came again was told that it waits already, though its daemon alone believed that.

    K2: who was about to be declared down was given a lease.
    """
    assert () == run_plan(_without_stuck(seed))[1].failures


def test_a_life_that_nobody_saw_may_have_ended_the_table() -> None:
    """G11, the checker: a late join was approved and taken back between two lives of a durable group (316305)."""
    assert () == run_plan(_before_kinds(316305))[1].failures


@pytest.mark.parametrize("seed", [336043, 336548, 338164])
def test_a_daemon_that_is_back_at_once_does_not_free_what_its_programs_hold(seed: int) -> None:
    """L6: a program was stopped, its daemon killed, and another one there with the same disk within its lease."""
    assert () == run_plan(_before_tasks(seed))[1].failures


def test_two_damaged_disks_do_not_take_turns_for_ever() -> None:
    """V7: the third one had everything, and was always granted a view with one of the two (336580)."""
    assert () == run_plan(_before_tasks(336580))[1].failures


def test_what_one_view_had_lost_and_a_forced_one_found_again_was_not_there_in_between() -> None:
    """K2, the checker: n4 had everything of a fast group; n1, cut off, had more, and was all that was left."""
    assert () == run_plan(_before_tasks(338301))[1].failures


def test_a_leader_that_lacks_a_payload_may_have_to_wait_for_who_had_it() -> None:
    """B2, the check: one server was to hold a payload, it was not the leader, and is no more (340782)."""
    assert () == run_plan(_before_tasks(340782))[1].failures


def test_questions_to_a_name_server_that_cannot_write_do_not_keep_the_dead_alive() -> None:
    """V7: each of 356 questions excused the absent for one more interval, so a lost disk was never gone (343493)."""
    assert () == run_plan(_before_tasks(343493))[1].failures


def test_who_gave_up_for_another_reason_is_not_named() -> None:
    """R4. Two had cancelled, one came too late: all three were said to have cancelled."""
    assert () == run_plan(draw(400161))[1].failures


def test_a_late_answer_does_not_bring_back_a_group_that_has_ended() -> None:
    """V4, L1, B4: two had it formed on one node, which ended it, and then was told that the second had (500149)."""
    assert () == run_plan(draw(500149))[1].failures


def test_nobody_is_killed_when_everything_is_healed() -> None:
    """V7. It was the simulator: a kill that waited for the end of a write came when its nemesis had ended (345228)."""
    assert () == run_plan(draw(345228))[1].failures


@pytest.mark.parametrize("seed", [520519, 522193, 522506])
def test_nobody_is_drained_when_everything_is_healed(seed: int) -> None:
    """B2, V7. It was the simulator: a node stood still when it was to be drained, and began when all was healed."""
    assert () == run_plan(draw(seed))[1].failures


def test_who_joins_is_not_told_who_was_failing_already() -> None:
    """R1, the checker: app-1 had lost its session, did not know that yet, and nobody else was there (601564)."""
    assert () == run_plan(draw(601564))[1].failures


def test_a_session_in_its_grace_is_waited_for() -> None:
    """X1, the check: n3 stood still, its program gave its session up, and was the only one in its group (317457)."""
    assert () == run_plan(_before_kinds(317457))[1].failures


def test_who_was_removed_lacks_nothing() -> None:
    """B3, the checker: n1 dropped what the leader said, and did not know yet that n2 was no member (317916)."""
    assert () == run_plan(_before_kinds(317916))[1].failures


def test_the_history_says_in_which_group_somebody_was_who_came_and_went_at_once() -> None:
    """B1, the history: n2 caught up, and app-2 had joined and was expelled within one step of it (319471)."""
    assert () == run_plan(_before_kinds(319471))[1].failures


def test_nobody_is_asked_to_speak_whom_somebody_may_still_expel() -> None:
    """B2, the check: app-1 did not know what had come of its wish; that was ordered at the end (9006)."""
    assert () == run_plan(_before_kinds(9006))[1].failures


def test_what_a_stranger_submits_to_a_group_that_nobody_carries_any_more_is_given_up_with_it() -> None:
    """X1, the check: the directory gives a lost quorum two leases, and the run ended within them (320635)."""
    assert () == run_plan(_before_kinds(320635))[1].failures


def test_nobody_throws_away_what_it_never_had() -> None:
    """B3, the checker: n1 lagged behind what was kept for the members, and went on behind a checkpoint (323684)."""
    assert () == run_plan(_before_kinds(323684))[1].failures


@pytest.mark.parametrize("seed", [329029, 331668])
def test_nobody_votes_between_two_states_that_came_in_one_frame(seed: int) -> None:
    """K2, the simulator: a daemon stood still, and then answered two questions at once, the first too late for it."""
    assert () == run_plan(_before_kinds(seed))[1].failures


def test_a_run_may_be_cut_off_where_a_daemon_stands_still_in_the_middle_of_an_entry() -> None:
    """G1, the checker: there the shortest prefix ended of a run that was red for another reason (331668)."""
    assert () == run_plan(_before_kinds(331668), until=40.0)[1].failures


def test_who_comes_again_to_a_barrier_waits_since_the_end_before() -> None:
    """R4. n1 heard at once of the end of a round and of a death after it; app-1 had given up and come back (330429)."""
    assert () == run_plan(_before_kinds(330429))[1].failures


def test_what_is_taken_back_is_not_what_was_brought_since() -> None:
    """X1. app-2 was late with much, and brought much again: that was taken back, so it waited for ever (333392)."""
    assert () == run_plan(_before_kinds(333392))[1].failures


def test_who_failed_with_an_old_incarnation_of_its_node_is_let_go_when_that_is_gone() -> None:
    """G10. An exclusive group: n4 was back, so no list said of its life before that it was gone; nobody asked again."""
    assert () == run_plan(_before_tasks(188))[1].failures


def test_who_is_to_be_replaced_is_replaced_however_often_it_is_tried() -> None:
    """K1, the check: the first to come did not know whether it had joined, and who was to go was asked to come again.

    Its node was new in the group, and what it lacked was not kept any more (942070).
    """
    assert () == run_plan(_before_options(942070))[1].failures


CUT_OFF_FAULTS = ("kill-group-servers", "isolate-one", "cut-group-leader")


@pytest.mark.parametrize("stage, faults, seed", [(CUT_OFF, CUT_OFF_FAULTS, seed) for seed in (33, 58, 59, 64)])
def test_staged_seeds_that_found_something_stay_green(stage: Stage, faults: tuple[str, ...], seed: int) -> None:
    """V3, B6: who was cut off during a whole forced view went on, though its tail was lost.

    B2: who had lost its tail said that it could lead when all others were gone, and then that it could not; who was to
    lead found its own removal in the log, and ended without a word.
    """
    assert () == run_plan(stage.plan(seed, faults))[1].failures


def test_every_mark_of_the_core_must_be_hit() -> None:
    """A place that is worth a mark is worth a seed that goes there."""
    core = "".join(path.read_text() for path in Path(next(iter(groupsvcd.core.__path__))).rglob("*.py"))
    written = set(re.findall(r"mark\(\s*\"([a-z-]+)\"", core))
    assert written
    assert set() == written - set(ENGINE_MARKS + GROUP_MARKS + APPLICATION_MARKS + BARRIER_MARKS + RARE_MARKS)


def test_three_hundred_nodes_outlive_their_name_server() -> None:
    """GS-01, GS-08, GS-09: voters are few, nodes may be many."""
    world = World(1, 303, voters=3)
    assert world.run_until(lambda: world.name_server() is not None, within=10.0)
    world.run(until=world.t + 3.0)
    name_server = world.name_server()
    assert name_server is not None
    world.nodes[name_server].crash("killed")
    assert world.run_until(lambda: world.name_server() not in (None, name_server), within=5.0)
    world.run(until=world.t + 3.0)
    assert converge(world), world.failures
    assert [] == world.failures
