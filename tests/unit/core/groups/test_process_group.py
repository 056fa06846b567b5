"""Who is a provider, whose turn it is, who votes and how it ends: the rules of process groups, entry by entry."""

from __future__ import annotations

import msgspec
import pytest

from groupsvc.wire.notices import (
    AnyNotice,
    Emptied,
    Ended,
    Failing,
    Fenced,
    Joined,
    Left,
    Message,
    PhaseClosed,
    PhaseOpened,
    Refused,
    Responsive,
    StateChanged,
)
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.ballots import DEFAULTS_KEPT
from groupsvcd.core.groups.chair import RULE_AGAIN_S
from groupsvcd.core.groups.commands import BY_DEFAULT, Cast
from groupsvcd.core.groups.papers import Paper
from groupsvcd.core.groups.process_group import ProcessGroup
from groupsvcd.core.nodegroups.controls import NodeRemoved, ViewStarted

from .assembly import Assembly, process

ALL_VOTE = {
    "join_phases": "n", "leave_phases": "n", "failure_phases": "n", "state_phases": "n", "message_phases": "n"
}  # fmt: skip


def _three(**attributes: str) -> Assembly:
    """A1, B1 and C1 are providers; everything is voted on, joins only if the attributes say so."""
    group = Assembly(**{**ALL_VOTE, "join_phases": "one", **attributes})
    for name in ("A1", "B1", "C1"):
        group.join(name)
        group.wait(0.1)
        if group.group.ballot is not None:
            group.vote(**dict.fromkeys(group.names.split(), "approve"))
    assert "A1 B1 C1" == group.names
    group.notices.clear()
    return group


# --- Joining and leaving ---


def test_the_first_join_forms_the_group_without_a_vote() -> None:
    """GS-20."""
    group = Assembly(**ALL_VOTE)
    group.join("A1")
    assert "A1" == group.names
    assert ["one_phase"] == [ended.outcome.reason for ended in group.told(Ended)]


def test_a_later_join_is_voted_on_by_those_who_are_in() -> None:
    """GS-23: not by the joiner."""
    group = Assembly(**ALL_VOTE)
    group.join("A1", "B1")
    assert [(process("A1"),)] == [opened.electorate for opened in group.told(PhaseOpened)]
    assert "A1" == group.names
    group.vote(A1="approve")
    assert "A1 B1" == group.names


def test_who_is_rejected_does_not_get_in() -> None:
    """GS-20: and everybody is told why."""
    group = Assembly(**ALL_VOTE)
    group.join("A1", "B1")
    group.vote(A1="reject")
    assert "A1" == group.names
    assert [(True, "one_phase"), (False, "explicit_reject")] == [
        (ended.outcome.approved, ended.outcome.reason) for ended in group.told(Ended)
    ]


def test_the_leaver_votes_too_and_stays_if_it_is_rejected() -> None:
    """GS-20, GS-23."""
    group = _three()
    group.leave("B1", code=7)
    assert [tuple(map(process, ("A1", "B1", "C1")))] == [opened.electorate for opened in group.told(PhaseOpened)]
    group.vote(A1="approve", B1="approve", C1="reject")
    assert "A1 B1 C1" == group.names
    group.leave("B1", code=7)
    group.vote(A1="approve", B1="approve", C1="approve")
    assert "A1 C1" == group.names
    assert [(("B", 1, 1),), ("leave", 7)] == [group.told(Left)[0].providers, (group.told(Left)[0].cause, 7)]


def test_with_the_last_provider_the_group_is_empty_and_its_state_gone() -> None:
    """GS-31: the value is kept while at least one provider remains."""
    group = Assembly()
    group.join("A1")
    group.propose_state("A1", b"red")
    group.leave("A1")
    assert 1 == len(group.told(Emptied))
    assert (b"", 2) == (group.group.state, group.group.state_version), "a version stands for one value for ever"


def test_a_durable_group_keeps_value_and_version_when_all_providers_have_failed() -> None:
    """GS-31: disks have the value, and so has who comes after a restart of all nodes."""
    group = Assembly(durable=True)
    group.join("A1", "B1")
    group.propose_state("A1", b"red")
    group.fail_nodes("A", "B")
    assert "" == group.names
    assert (b"red", 1) == (group.group.state, group.group.state_version)


# --- Exclusive groups ---


def test_in_an_exclusive_group_who_fails_with_its_node_is_listed_until_the_node_is_gone() -> None:
    """The node may be cut off and not know yet: it holds what it holds until its lease has ended by its own clock."""
    group = Assembly(exclusive=True)
    group.gone = set()
    group.join("A1", "B1", "C1")
    group.fail_nodes("A")
    assert [("A", 1, 1)] == [failing.provider for failing in group.told(Failing)]
    assert "A1 B1 C1" == group.names
    group.wait(5.0)
    assert "A1 B1 C1" == group.names
    group.gone = {("A", 1)}
    group.wait(0.1)
    assert "B1 C1" == group.names
    assert ["node_failure"] == [left.cause for left in group.told(Left)]


def test_who_waits_for_one_node_when_another_is_gone_looks_again_now_and_then() -> None:
    """A is gone, B is only down. Of an old incarnation no list tells that it is gone: the leader asks again."""
    group = Assembly(exclusive=True)
    group.gone = set()
    group.join("A1", "B1", "C1")
    group.fail_nodes("A")
    group.fail_nodes("B")
    group.gone = {("A", 1)}
    group.wait(1.0)
    assert "B1 C1" == group.names
    assert 0.0 < group.chair.deadline - group.now <= RULE_AGAIN_S
    group.gone = {("A", 1), ("B", 1)}
    group.wait(0.001)
    assert "C1" == group.names


def test_in_an_exclusive_group_a_process_that_its_own_node_saw_end_is_dealt_with_at_once() -> None:
    group = Assembly(exclusive=True)
    group.gone = set()
    group.join("A1", "A2", "B1")
    group.die("A1")
    assert "A2 B1" == group.names
    group.fail_nodes("A")
    assert "A2 B1" == group.names
    group.die("B1")
    assert "A2" == group.names


def test_who_is_held_back_is_in_a_checkpoint_and_who_wants_to_join_waits_for_it() -> None:
    """GS-30: nobody joins while somebody who failed waits to be dealt with."""
    group = Assembly(exclusive=True)
    group.gone = set()
    group.join("A1", "B1")
    group.fail_nodes("A")
    copy = ProcessGroup({})
    copy.restore(group.group.snapshot())
    assert [("A", 1, 1)] == list(copy.held_back)
    group.join("C1")
    assert "A1 B1" == group.names
    group.gone = {("A", 1)}
    group.wait(0.1)
    assert "B1 C1" == group.names


# --- Votes ---


def test_any_reject_ends_it_whatever_the_others_vote() -> None:
    """GS-23."""
    group = _three()
    group.propose_state("A1", b"red")
    group.vote(A1="approve", B1="continue", C1="reject")
    assert b"" == group.group.state
    (ended,) = group.told(Ended)
    assert (False, 1, "explicit_reject") == (ended.outcome.approved, ended.outcome.phases, ended.outcome.reason)


def test_continue_leads_to_another_phase_as_often_as_anybody_wants() -> None:
    """GS-23: the number of phases is dynamic and unbounded."""
    group = _three()
    group.propose_state("A1", b"red")
    for _ in range(10):
        group.vote(A1="approve", B1="continue", C1="approve")
    group.vote(A1="approve", B1="approve", C1="approve")
    (ended,) = group.told(Ended)
    assert (True, 11) == (ended.outcome.approved, ended.outcome.phases)
    assert list(range(1, 11)) == [closed.phase for closed in group.told(PhaseClosed)]
    assert b"red" == group.group.state


def test_a_fixed_number_of_phases_is_kept_to() -> None:
    """GS-23: fixed by the proposer at the start; each is a barrier, and the last one decides."""
    group = _three()
    group.propose_state("A1", b"red", phases=3)
    for _ in range(2):
        group.vote(A1="approve", B1="approve", C1="approve")
        assert [] == group.told(Ended)
    group.vote(A1="approve", B1="continue", C1="approve")
    assert [(True, 3)] == [(ended.outcome.approved, ended.outcome.phases) for ended in group.told(Ended)]


def test_of_several_proposed_states_the_oldest_providers_is_taken_by_all() -> None:
    """GS-25."""
    group = _three()
    group.propose_state("C1", b"red")
    group.answer(A1=Paper(1, "continue"), B1=Paper(1, "approve", state=b"green"), C1=Paper(1, "approve", state=b"blue"))
    assert [b"red", b"green"] == [opened.subject.state for opened in group.told(PhaseOpened)]
    group.vote(A1="approve", B1="approve", C1="approve")
    assert [(b"green", 1)] == [(changed.value, changed.version) for changed in group.told(StateChanged)]


def test_what_is_said_with_a_vote_is_shown_in_the_next_phase() -> None:
    """GS-25."""
    group = _three()
    group.propose_state("A1", b"red")
    group.answer(A1=Paper(1, "continue", message=b"not yet"), B1=Paper(1, "approve"), C1=Paper(1, "approve"))
    assert [(), ((process("A1"), 1, b"not yet"),)] == [
        tuple((said.provider, said.phase, said.payload) for said in opened.messages)
        for opened in group.told(PhaseOpened)
    ]


def test_a_default_vote_changed_with_a_vote_holds_until_it_is_changed_again_and_reject_wins() -> None:
    """GS-26."""
    group = _three()
    group.propose_state("A1", b"red")
    group.answer(
        A1=Paper(1, "approve", default_vote="approve"), B1=Paper(1, "approve", default_vote="reject"),
        C1=Paper(1, "approve"),
    )  # fmt: skip
    assert "reject" == group.group.default_vote == group.group.view.default_vote


def test_who_is_late_gets_the_default_vote_and_that_is_said() -> None:
    """GS-26, GS-40."""
    group = _three(default_vote="reject")
    group.propose_state("A1", b"red")
    group.vote(A1="approve", C1="approve")
    group.wait(29.0)
    assert [] == group.told(Ended)
    group.wait(1.5)
    (ended,) = group.told(Ended)
    assert (False, "time_limit") == (ended.outcome.approved, ended.outcome.reason)
    assert [Cast(process("A1"), "approve"), Cast(process("B1"), "reject", "late"), Cast(process("C1"), "approve")] == (
        list(ended.outcome.votes)
    )


def test_default_votes_of_earlier_phases_are_in_the_outcome_and_decide_its_reason() -> None:
    """GS-26: whoever asks why is not told that all have voted."""
    group = _three()
    group.propose_state("A1", b"red")
    group.answer(A1=Paper(1, "continue"), B1=Paper(1, None), C1=Paper(1, "approve"))
    group.vote(A1="approve", B1="approve", C1="approve")
    (ended,) = group.told(Ended)
    assert (True, "default_approve") == (ended.outcome.approved, ended.outcome.reason)
    assert ((1, Cast(process("B1"), "approve", "raised")),) == ended.outcome.defaults
    assert not any(cast.why for cast in ended.outcome.votes)


def test_of_very_many_default_votes_the_outcome_has_the_newest() -> None:
    group = _three()
    group.propose_state("A1", b"red")
    for _ in range(DEFAULTS_KEPT + 1):
        group.answer(A1=Paper(1, "continue"), B1=Paper(1, None), C1=Paper(1, "approve"))
    group.vote(A1="approve", B1="approve", C1="approve")
    (ended,) = group.told(Ended)
    assert list(range(2, DEFAULTS_KEPT + 2)) == [phase for phase, _ in ended.outcome.defaults]


def test_a_callback_that_raises_counts_as_the_default_vote() -> None:
    """And is shown in the tally."""
    group = _three()
    group.propose_state("A1", b"red")
    group.answer(A1=Paper(1, None), B1=Paper(1, "approve"), C1=Paper(1, "approve"))
    (ended,) = group.told(Ended)
    assert (True, "default_approve") == (ended.outcome.approved, ended.outcome.reason)
    assert "raised" == ended.outcome.votes[0].why


def test_votes_for_another_phase_or_of_somebody_who_has_none_change_nothing() -> None:
    """G4."""
    group = _three()
    group.propose_state("A1", b"red")
    ballot = group.group.ballot
    assert ballot is not None
    for at in ((ballot.id, 2), (ballot.id + 1, 1), (0, 0)):
        group.chair.take(("B", 1), *at, (Paper(1, "reject"),))
    group.chair.take(("D", 1), ballot.id, 1, (Paper(1, "reject"),))
    group.vote(A1="approve", B1="approve", C1="approve")
    assert [True] == [ended.outcome.approved for ended in group.told(Ended)]


def test_votes_that_come_before_the_leader_has_delivered_their_phase_count_when_it_has() -> None:
    """The second server to hold an entry delivers it first, and its providers vote at once."""
    group = _three()
    opens = group.group.seq + 1
    for node in ("B", "C"):
        group.chair.take((node, 1), opens, 1, (Paper(1, "approve"),))
    group.propose_state("A1", b"red")
    assert [] == group.told(Ended)
    group.vote(A1="approve")
    assert [True] == [ended.outcome.approved for ended in group.told(Ended)]
    assert ["", "", ""] == [cast.why for cast in group.told(Ended)[0].outcome.votes]


def test_the_newest_votes_of_a_node_replace_the_older_ones_until_the_phase_ends() -> None:
    """G4: the set is cumulative, so a doubled message counts once."""
    group = _three()
    group.propose_state("A1", b"red")
    group.vote(A1="reject")
    group.vote(A1="approve")
    group.vote(B1="approve", C1="approve")
    assert [True] == [ended.outcome.approved for ended in group.told(Ended)]


# --- Deaths ---


def test_a_death_is_shown_at_once_and_has_its_turn_after_the_running_ballot() -> None:
    """GS-33: default vote now, its own failure protocol next."""
    group = _three()
    group.propose_state("A1", b"red")
    group.die("B1")
    assert [(process("B1"), "failure")] == [(failing.provider, failing.cause) for failing in group.told(Failing)]
    assert "A1 B1 C1" == group.names
    group.vote(A1="approve", C1="approve")
    kinds = [ended.outcome.subject.kind for ended in group.told(Ended)]
    assert ["state"] == kinds
    assert Cast(process("B1"), "approve", "failed") in group.told(Ended)[0].outcome.votes
    group.vote(A1="approve", C1="approve")
    assert "A1 C1" == group.names
    assert [((process("B1"),), "failure")] == [(left.providers, left.cause) for left in group.told(Left)]


def test_the_dead_stay_removed_also_if_their_failure_is_rejected() -> None:
    """GS-33: only the state that came with the votes is dropped."""
    group = _three()
    group.die("B1")
    group.answer(A1=Paper(1, "continue", state=b"without B"), C1=Paper(1, "approve"))
    group.vote(A1="approve", C1="reject")
    assert "A1 C1" == group.names
    assert b"" == group.group.state


def test_failures_come_before_joins_and_joins_before_the_rest() -> None:
    """GS-28, GS-30."""
    group = _three(join_phases="n")
    group.propose_state("A1", b"red")
    group.propose_state("A1", b"green")
    group.join("D1")
    group.die("C1")
    for _ in range(4):
        group.vote(A1="approve", B1="approve", **({"D1": "approve"} if "D1" in group.names else {}))
    assert ["state", "failure", "join", "state"] == [ended.outcome.subject.kind for ended in group.told(Ended)]


def test_a_node_that_fails_takes_its_providers_joiners_and_proposals_with_it() -> None:
    """GS-33, no ghosts."""
    group = _three(join_phases="n")
    group.propose_state("A1", b"red")
    group.join("B2")
    group.propose_state("B1", b"green")
    group.fail_nodes("B")
    assert [(process("B1"), "node_failure")] == [(failing.provider, failing.cause) for failing in group.told(Failing)]
    assert [] == group.group.queue
    group.vote(A1="approve", C1="approve")
    group.vote(A1="approve", C1="approve")
    assert "A1 C1" == group.names
    assert ["node_failure"] == [left.cause for left in group.told(Left)]


def test_a_node_that_has_left_has_no_providers_any_more() -> None:
    """It lost the group with its processes in it: nobody else would ever say so."""
    group = Assembly()
    group.join("A1", "B1")
    group.group.control(99, NodeRemoved(("B", 1)))
    assert "A1" == group.names


def test_a_joiner_that_dies_in_its_batch_is_left_out_and_named() -> None:
    """No ghosts: the others of the batch get in."""
    group = _three(join_phases="n", batch="joins")
    group.join("D1", "E1")
    group.wait(0.1)
    group.die("D1")
    group.vote(A1="approve", B1="approve", C1="approve")
    assert "A1 B1 C1 E1" == group.names
    assert (process("D1"),) == group.told(Ended)[-1].outcome.left_out


def test_a_ballot_whose_joiners_are_all_dead_is_rejected() -> None:
    """No ghosts."""
    group = _three(join_phases="n")
    group.join("D1")
    group.die("D1")
    assert group.group.ballot is None
    assert [False] == [ended.outcome.approved for ended in group.told(Ended)]


def test_who_is_failing_neither_proposes_nor_speaks_nor_votes() -> None:
    """From Failing on."""
    group = _three()
    group.propose_state("A1", b"red")
    group.die("B1")
    group.propose_state("B1", b"of a dead man")
    group.say("B1", b"boo")
    assert ["not_a_member"] == [refused.why for refused in group.told(Refused)]
    assert [] == group.told(Message)


def test_when_all_voters_die_the_dead_are_removed_and_the_group_is_empty() -> None:
    """Nobody is left to vote on the last failure, so it needs no vote."""
    group = _three()
    for name in ("A1", "B1", "C1"):
        group.die(name)
    assert "" == group.names
    assert 1 == len(group.told(Emptied))


# --- Turns ---


def test_who_does_not_want_to_wait_is_told_busy() -> None:
    """GS-28: by choice of the proposer."""
    group = _three()
    group.propose_state("A1", b"red")
    group.propose_state("B1", b"green", fail_if_busy=True)
    assert ["busy"] == [refused.why for refused in group.told(Refused)]
    group.vote(A1="approve", B1="approve", C1="approve")
    group.propose_state("B1", b"green", fail_if_busy=True)
    assert 1 == len(group.told(Refused))
    assert group.group.ballot is not None


def test_a_state_proposed_for_another_version_is_refused_in_its_turn() -> None:
    """G9: compare and set."""
    group = Assembly()
    group.join("A1", "B1")
    group.propose_state("A1", b"red", if_version=0)
    group.propose_state("B1", b"green", if_version=0)
    assert b"red" == group.group.state
    assert ["stale_version"] == [refused.why for refused in group.told(Refused)]


def test_a_proposal_that_is_withdrawn_in_time_never_has_its_turn() -> None:
    """Afterwards it certainly did not happen."""
    group = _three()
    group.propose_state("A1", b"red")
    group.propose_state("B1", b"green")
    group.entry("B", cmd.Withdraw(group.group.queue[0].id[2]))
    group.vote(A1="approve", B1="approve", C1="approve")
    assert b"red" == group.group.state
    assert ["withdrawn"] == [refused.why for refused in group.told(Refused)]


def test_plain_messages_wait_for_no_ballot() -> None:
    """And one of somebody who is no provider is marked so."""
    group = _three()
    group.propose_state("A1", b"red")
    group.say("B1", b"meanwhile")
    group.raw("Z", cmd.message_prefix(0) + b"from outside")
    assert [(process("B1"), b"meanwhile"), (("Z", 1, 0), b"from outside")] == [
        (message.sender, message.payload) for message in group.told(Message)
    ]


def test_a_message_by_ballot_is_seen_when_it_is_approved() -> None:
    """GS-20, G6."""
    group = _three()
    group.send("A1", b"hello")
    assert [] == group.told(Message)
    group.vote(A1="approve", B1="approve", C1="approve")
    assert [b"hello"] == [message.payload for message in group.told(Message)]


def test_expel_is_decided_by_the_others() -> None:
    """GS-23, GS-34: the target has no vote; the reason is shown."""
    group = _three()
    group.expel("A1", "B1", reason="too slow")
    assert [tuple(map(process, ("A1", "C1")))] == [opened.electorate for opened in group.told(PhaseOpened)]
    group.vote(A1="approve", C1="approve")
    assert [("expelled", "too slow")] == [(left.cause, left.reason) for left in group.told(Left)]
    assert "A1 C1" == group.names


def test_joins_are_collected_for_a_while_and_voted_on_as_one() -> None:
    """GS-29: approved, continued, rejected as a whole."""
    group = _three(join_phases="n", batch="both")
    group.join("D1", "E1")
    assert group.group.ballot is None
    group.wait(0.051)
    group.join("F1")
    group.vote(A1="approve", B1="approve", C1="approve")
    assert "A1 B1 C1 D1 E1" == group.names
    assert [("D1", "E1")] == [tuple(one.name for one in joined.providers) for joined in group.told(Joined)]
    group.wait(0.051)
    group.vote(**dict.fromkeys(group.names.split(), "reject"))
    assert "A1 B1 C1 D1 E1" == group.names


def test_failures_are_collected_too_if_the_group_wants_it() -> None:
    """GS-29."""
    group = _three(batch="leaves")
    group.die("B1")
    group.die("C1")
    assert 2 == len(group.told(Failing))
    group.wait(0.051)
    group.vote(A1="approve")
    assert [tuple(map(process, ("B1", "C1")))] == [left.providers for left in group.told(Left)]


def test_a_provider_that_hangs_is_announced_once_and_again_when_it_answers() -> None:
    """GS-27, GS-40."""
    group = _three()
    for does in (False, False, True, True):
        group.entry("B", cmd.Responds(1, does))
    assert [(process("B1"), False), (process("B1"), True)] == [
        (notice.provider, notice.does) for notice in group.told(Responsive)
    ]


def test_the_fence_grows_also_after_more_changes_in_one_view_than_a_view_has_numbers() -> None:
    """L6: half a million come and go under one leader; the next view begins below what they were given."""
    group = ProcessGroup({})
    group.control(1, ViewStarted(5, "A", (), 1, 5 << 20))
    group.fence += 3 << 20
    before = group.fence
    (fenced,) = group.control(2, ViewStarted(6, "A", (), 1, 6 << 20))
    assert isinstance(fenced, Fenced)
    assert before < group.fence == fenced.fence


def test_a_view_that_may_have_lost_entries_is_told_and_remembered() -> None:
    """GS-11, on_quorum_lost="continue": also to who begins with a checkpoint. Older forms can be read."""
    group = ProcessGroup({})
    first = group.control(1, ViewStarted(5, "A", (), 1, 5 << 20))
    forced = group.control(2, ViewStarted(6, "A", (), 1, 6 << 20, True))
    after = group.control(3, ViewStarted(7, "A", (), 1, 7 << 20))
    assert [False, True, False] == [
        one.tail_may_be_lost for one in (*first, *forced, *after) if isinstance(one, Fenced)
    ]
    copy = ProcessGroup({})
    copy.restore(group.snapshot())
    assert 2 == group.view.quorum_lost_seq == copy.view.quorum_lost_seq
    assert Fenced(3, 900) == msgspec.msgpack.decode(msgspec.msgpack.encode([13, 3, 900]), type=AnyNotice)
    older = msgspec.msgpack.encode(msgspec.msgpack.decode(group.snapshot())[:-1])
    copy.restore(older)
    assert 0 == copy.view.quorum_lost_seq


def test_the_fence_grows_with_every_change_of_the_list_and_with_every_view() -> None:
    """L6."""
    group = Assembly().group
    fences = []
    for seq, step in enumerate(
        (ViewStarted(5, "A", (), 1, 5 << 20), "A1", "B1", ViewStarted(9, "A", (), 1, 9 << 20), "C1"), 1
    ):
        if isinstance(step, str):
            group.apply(seq, (step[0], 1), cmd.encode(cmd.Join(seq, 1, BY_DEFAULT, BY_DEFAULT, step, b"")))
        else:
            group.control(seq, step)
        fences.append(group.fence)
    assert [5 << 20, (5 << 20) + 1, (5 << 20) + 2, 9 << 20, (9 << 20) + 1] == fences


@pytest.mark.parametrize("kind", ["one", "n"])
def test_who_is_no_provider_cannot_propose(kind: str) -> None:
    """A clear word, and nothing happens."""
    group = Assembly(state_phases=kind)
    group.join("A1")
    group.propose_state("B1", b"red")
    assert ["not_a_member"] == [refused.why for refused in group.told(Refused)]
    assert b"" == group.group.state
