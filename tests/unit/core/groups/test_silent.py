"""Who lives and does not answer its daemon is not waited for, unless it has voted before that (GS-27)."""

from __future__ import annotations

from groupsvc.wire.notices import Cast, Ended, PhaseClosed
from groupsvcd.core.groups import commands as cmd

from .assembly import Assembly, process


def _three(**attributes: str) -> Assembly:
    """A1, B1 and C1 are providers; changes of the state are voted on."""
    group = Assembly(state_phases="n", **attributes)
    group.join("A1", "B1", "C1")
    assert "A1 B1 C1" == group.names
    group.notices.clear()
    return group


def test_a_provider_that_does_not_answer_is_not_waited_for() -> None:
    """GS-27: when all others have voted it gets the default vote; the time limit is not waited for."""
    group = _three(default_vote="reject")
    group.propose_state("A1", b"red")
    group.vote(A1="approve", C1="approve")
    assert [] == group.told(Ended)
    group.entry("B", cmd.Responds(1, False))
    (ended,) = group.told(Ended)
    assert (False, "default_reject") == (ended.outcome.approved, ended.outcome.reason)
    expected = (
        Cast(process("A1"), "approve"), Cast(process("B1"), "reject", "unresponsive"), Cast(process("C1"), "approve"),
    )  # fmt: skip
    assert expected == ended.outcome.votes
    assert "A1 B1 C1" == group.names, "it stays a provider until somebody expels it"


def test_a_vote_of_a_provider_that_does_not_answer_counts_as_long_as_the_phase_runs() -> None:
    """GS-27: its voice may come through though its daemon has given it up."""
    group = _three()
    group.entry("B", cmd.Responds(1, False))
    group.propose_state("A1", b"red")
    group.vote(A1="approve", B1="reject")
    assert [] == group.told(Ended), "others are waited for as ever"
    group.vote(C1="approve")
    (ended,) = group.told(Ended)
    assert (False, "explicit_reject") == (ended.outcome.approved, ended.outcome.reason)


def test_who_does_not_answer_is_waited_for_until_its_daemon_says_that_it_has_not_voted() -> None:
    """G5, GS-27: what says that B1 hangs comes by another way than its vote, which may be lost."""
    group = _three()
    group.propose_state("A1", b"red")
    group.unheard = "B"
    group.vote(A1="approve", B1="reject", C1="approve")
    group.entry("B", cmd.Responds(1, False))
    group.wait(20.0)
    assert [] == group.told(Ended)
    group.unheard = ""
    group.vote(B1="reject")
    (ended,) = group.told(Ended)
    assert (False, "explicit_reject") == (ended.outcome.approved, ended.outcome.reason)


def test_what_a_daemon_said_before_somebody_answered_again_does_not_count_when_it_hangs_once_more() -> None:
    """G5: that word is a minute old, or came a second time; meanwhile B1 has voted, and that was lost."""
    group = _three()
    group.unheard = "B"
    group.propose_state("A1", b"red")
    group.entry("B", cmd.Responds(1, False))
    old = ((1, group.group.seq),)
    group.entry("B", cmd.Responds(1, True))
    group.entry("B", cmd.Responds(1, False))
    group.vote(A1="approve", C1="approve")
    group.word("B", silent=old)
    group.look()
    assert [] == group.told(Ended)
    group.word("B", silent=((1, group.group.seq),))
    group.word("B", silent=old)
    group.look()
    (ended,) = group.told(Ended)
    assert "unresponsive" == ended.outcome.votes[1].why


def test_a_word_about_one_phase_says_nothing_about_the_next() -> None:
    group = _three()
    group.propose_state("A1", b"red")
    group.entry("B", cmd.Responds(1, False))
    group.unheard = "B"
    group.vote(A1="continue", C1="approve")
    assert [1] == [closed.phase for closed in group.told(PhaseClosed)]
    group.vote(A1="approve", B1="reject", C1="approve")
    assert [] == group.told(Ended)


def test_neither_the_time_limit_nor_the_end_of_a_node_waits_for_the_word_of_a_daemon() -> None:
    """GS-26: there is progress, whatever is lost."""
    for is_dead in (False, True):
        group = _three()
        group.unheard = "B"
        group.propose_state("A1", b"red")
        group.entry("B", cmd.Responds(1, False))
        group.vote(A1="approve", C1="approve")
        assert [] == group.told(Ended)
        if is_dead:
            group.fail_nodes("B")
        else:
            group.wait(30.0)
        ended = group.told(Ended)[0]
        assert ("failed" if is_dead else "unresponsive") == ended.outcome.votes[1].why


def test_in_every_phase_the_default_is_cast_for_who_does_not_answer_until_it_answers_again() -> None:
    """GS-27."""
    group = _three()
    group.entry("B", cmd.Responds(1, False))
    group.propose_state("A1", b"red")
    group.vote(A1="continue", C1="approve")
    group.vote(A1="continue", C1="approve")
    assert [1, 2] == [closed.phase for closed in group.told(PhaseClosed)]
    assert {"unresponsive"} == {closed.votes[1].why for closed in group.told(PhaseClosed)}
    group.entry("B", cmd.Responds(1, True))
    group.vote(A1="approve", C1="approve")
    assert [] == group.told(Ended), "it is waited for again"
    group.vote(B1="approve")
    (ended,) = group.told(Ended)
    assert ((1, "unresponsive"), (2, "unresponsive")) == tuple((n, cast.why) for n, cast in ended.outcome.defaults)
