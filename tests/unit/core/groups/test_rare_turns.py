"""Rare turns of process groups: each was wrong once, and was found by reading or in a golden transcript."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from groupsvc.wire.notices import AttributesChanged, Emptied, Ended, Joined, Left, PhaseOpened, Refused
from groupsvcd.core.groups import ballots
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.commands import BY_DEFAULT
from groupsvcd.core.groups.papers import Paper
from groupsvcd.core.groups.process_group import ProcessGroup
from groupsvcd.core.groups.rules import CHANGEABLE
from groupsvcd.core.invariants import InvariantBroken
from groupsvcd.core.nodegroups.controls import AnyControl, NodeInserted, NodeRemoved, NodesFailed
from groupsvcd.core.sessions import checks
from groupsvcd.core.views import AttributeValue

from .assembly import Assembly, process


def _assembly(*names: str, **attributes: AttributeValue) -> Assembly:
    """These are providers; only what the attributes name is voted on."""
    group = Assembly(**attributes)
    for name in names:
        group.join(name)
        group.wait(1.0)
        if group.group.ballot is not None:
            group.vote(**dict.fromkeys(group.names.split(), "approve"))
    assert " ".join(names) == group.names
    group.notices.clear()
    return group


def test_a_joiner_that_dies_with_its_process_and_then_with_its_node_counts_once() -> None:
    """GS-29: the batch goes on for the one who is left."""
    group = _assembly("A1", batch="joins", join_phases="n")
    group.join("B1", "C1")
    group.wait(1.0)
    group.die("B1")
    group.fail_nodes("B")
    assert group.group.ballot is not None
    group.vote(A1="approve")
    assert "A1 C1" == group.names
    assert [(process("B1"),)] == [ended.outcome.left_out for ended in group.told(Ended)]


@pytest.mark.parametrize("leaving", ["D1", "B1 B1"])
@pytest.mark.parametrize("kind", ["leave", "expel", "failure"])
def test_nobody_is_shown_leaving_who_did_not_join_or_has_left(kind: str, leaving: str) -> None:
    """GS-30. No story leads there: a copy that comes to it has a wrong state, and must not tell it to anybody."""
    group = _assembly("A1", "B1", "C1", leave_phases="n", failure_phases="n")
    if kind == "leave":
        group.leave("B1")
    elif kind == "expel":
        group.expel("A1", "B1")
    else:
        group.die("B1")
    ballot = group.group.ballot
    assert ballot is not None
    ballot.subject = replace(ballot.subject, leaving=tuple(map(process, leaving.split())))
    group.group.failing[process("D1")] = ("failure", 1)
    with pytest.raises(InvariantBroken, match="leaves and is no provider"):
        group.vote(A1="approve", B1="approve", C1="approve")
    assert [] == group.told(Left)


@pytest.mark.parametrize("how", [NodeRemoved(("B", 1)), NodesFailed((("B", 1),))])
def test_nobody_joins_whose_node_does_not_carry_the_group(how: AnyControl) -> None:
    """GS-30, no ghosts: B has left, and a join of it comes late. Who goes on from a checkpoint has the same rule."""
    group = _assembly("A1", "B1")
    group.group.control(90, how)
    copy = ProcessGroup({})
    copy.restore(group.group.snapshot())
    late, again = (cmd.encode(cmd.Join(number, number, BY_DEFAULT, BY_DEFAULT, "", b"")) for number in (8, 9))
    for one in (group.group, copy):
        assert [Refused(91, ("B", 1, 8), "not_a_member")] == one.apply(91, ("B", 1), late)
        assert [process("A1")] == list(one.providers)
        one.control(92, NodeInserted(("B", 1), 2, 0))
        one.apply(93, ("B", 1), again)
        assert [process("A1"), process("B9")] == list(one.providers)


def test_a_default_vote_changed_with_the_attributes_is_the_one_that_is_cast() -> None:
    """GS-26."""
    group = _assembly("A1", "B1", default_vote="approve")
    changes = {"default_vote": "reject"}
    group.entry("A", cmd.ChangeAttributes(100, 1, BY_DEFAULT, BY_DEFAULT, changes))  # type: ignore[arg-type]
    assert 1 == len(group.told(AttributesChanged))
    assert ["reject"] == [ended.default_vote for ended in group.told(Ended)]
    group.propose_state("A1", b"red", phases=cmd.DYNAMIC)
    group.vote(A1="approve")
    group.die("B1")
    assert (False, "default_reject") == _last(group)
    assert "reject" == group.group.view.default_vote


def _last(group: Assembly) -> tuple[bool, str]:
    """How the last ballot about the state ended."""
    outcome = [ended.outcome for ended in group.told(Ended) if ended.outcome.subject.kind == "state"][-1]
    return outcome.approved, outcome.reason


def test_nobody_joins_while_the_failed_wait_for_their_batch() -> None:
    """GS-30: failures are all dealt with first, also those that are collected."""
    group = _assembly("A1", "B1", batch="leaves", batch_window=0.5)
    group.die("B1")
    group.join("C1")
    assert "A1 B1" == group.names
    group.wait(0.6)
    group.wait(0.6)
    assert "A1 C1" == group.names
    assert [Left, Joined] == [type(one) for one in group.notices if isinstance(one, Left | Joined)]


def test_everybody_of_a_batch_leaves_with_its_own_code() -> None:
    """GS-29: who leaves with code 2 is not shown with the code of another."""
    group = _assembly("A1", "B1", "C1", "D1", batch="leaves", batch_window=0.5, leave_phases="n")
    group.leave("B1", code=1)
    group.leave("C1", code=2)
    group.leave("D1", code=1)
    group.wait(0.6)
    assert [(process("B1"), process("C1"), process("D1"))] == [one.subject.leaving for one in group.told(PhaseOpened)]
    assert [((1, 2, 1), 0)] == [(one.subject.codes, one.subject.code) for one in group.told(PhaseOpened)]
    group.vote(A1="approve", B1="approve", C1="approve", D1="approve")
    left = [(one.providers, one.code) for one in group.told(Left)]
    assert [((process("B1"), process("D1")), 1), ((process("C1"),), 2)] == left
    assert 1 == len({one.fence for one in group.told(Left)})


def test_votes_of_a_node_that_come_in_the_wrong_order_are_all_counted() -> None:
    """GS-24: an older set of a node's votes, which says less, takes nothing back."""
    group = _assembly("A1", "B1", "B2", state_phases="n")
    group.propose_state("A1", b"red")
    ballot = group.group.ballot
    assert ballot is not None
    both = (Paper(1, "approve"), Paper(2, "approve"))
    group.chair.take(("B", 1), ballot.id, 1, both)
    group.chair.take(("B", 1), ballot.id, 1, both[:1])
    group.chair.take(("A", 1), ballot.id, 1, (Paper(1, "approve"),))
    group.look()
    assert (True, "explicit_approve") == _last(group)


def test_only_what_a_change_has_an_effect_on_can_be_changed() -> None:
    """GS-22: how often checkpoints are taken is settled with the stream, so nobody is told that it was changed."""
    rules = {"batch", "batch_window", "default_vote", "time_limit"}
    assert rules == {name for name in CHANGEABLE if not name.endswith("_phases")}


def test_the_state_of_a_durable_group_outlives_the_failure_of_all_its_nodes() -> None:
    """GS-31, SAM-11: who comes when they are back finds it; but it ends with the last process that leaves."""
    group = _assembly("A1", "B1", durable=True)
    group.propose_state("A1", b"red")
    group.fail_nodes("A", "B")
    assert ("", b"red", []) == (group.names, group.group.view.state, group.told(Emptied))
    group.join("C1")
    assert ("C1", b"red", 1) == (group.names, group.group.view.state, group.group.view.state_version)
    group.leave("C1")
    assert (b"", 1) == (group.group.view.state, len(group.told(Emptied)))


def test_who_joins_with_the_entry_that_removes_the_last_finds_the_group_as_it_was_formed() -> None:
    """GS-22: what those who are gone had changed is gone with them, also where a checkpoint was restored meanwhile."""
    group = _assembly("A1", state_phases="n", default_vote="approve", exclusive=True)
    group.gone = set()
    changes = {"default_vote": "reject", "state_phases": "one"}
    group.entry("A", cmd.ChangeAttributes(100, 1, cmd.ONE_PHASE, BY_DEFAULT, changes))  # type: ignore[arg-type]
    group.group.restore(group.group.snapshot())
    assert ("reject", "one") == (group.group.default_vote, group.group.rules.attributes["state_phases"])
    group.fail_nodes("A")
    group.join("B1")
    group.gone = {("A", 1)}
    group.wait(2.0)
    assert "B1" == group.names
    assert ("approve", "n") == (group.group.default_vote, group.group.rules.attributes["state_phases"])


def test_votes_for_a_phase_that_is_still_to_come_are_kept_whatever_comes_late() -> None:
    """GS-24: B's node has delivered the opening before the leader has; what is older comes after what is newer."""
    group = Assembly(state_phases="n")
    group.join("A1", "B1", "B2")
    first, coming = (3, 1), (4, 1)
    group.chair.take(("B", 1), *coming, (Paper(1, "approve"), Paper(2, "approve")))
    group.chair.take(("B", 1), *coming, (Paper(1, "approve"),))
    group.chair.take(("B", 1), *first, (Paper(1, "reject"),))
    group.propose_state("A1", b"red")
    group.vote(A1="approve")
    assert [True] == [ended.outcome.approved for ended in group.told(Ended)][3:]


@pytest.mark.parametrize("when", ["waits", "is voted on", "is in", "is failing"])
def test_a_process_that_joins_once_more_is_refused_and_ends_nobody(when: str) -> None:
    """GS-30. No node does so, but one that erred ended all that carry the group, and again after each restart."""
    group = _assembly("A1", join_phases="n", exclusive=True)
    group.join("C1", "B1")
    if when == "waits":
        group.join("B1")
    group.vote(A1="approve")
    if when == "is voted on":
        group.join("B1")
    group.vote(A1="approve", C1="approve")
    if when == "is failing":
        group.gone = set()
        group.fail_nodes("B")
        group.group.control(100, NodeInserted(("B", 1), 1, 5))
        group._seq = 100
    if when in ("is in", "is failing"):
        group.join("B1")
    assert ["busy"] == [refused.why for refused in group.told(Refused)]
    assert ("A1 C1 B1", None) == (group.names, group.group.ballot)


def test_a_ballot_of_phases_without_end_ends() -> None:
    """GS-24. Nobody can ask for so many; one that was ordered all the same went on for ever, as fast as it could."""
    assert ballots.PHASES_MAX == checks.PHASES_MAX
    group = _assembly("A1")
    group.entry("A", cmd.Responds(1, does=False))
    group.propose_state("A1", b"red", phases=2**40)
    assert [(ballots.PHASES_MAX, True)] == [(one.outcome.phases, one.outcome.approved) for one in group.told(Ended)]


def test_a_checkpoint_that_is_wanted_after_no_messages_at_all_is_wanted_as_by_default() -> None:
    """Nobody can ask for that; an entry that said so ended all that carry the group."""
    group = _assembly("A1", state_machine=True)
    group.entry("A", cmd.ChangeAttributes(100, 1, cmd.ONE_PHASE, BY_DEFAULT, {"checkpoint_every": 0}))
    group.say("A1", b"hello")
    assert 0 == group.group.scribe_turns
