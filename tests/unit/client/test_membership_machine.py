"""One membership: its view is that of its entry, its events are in order, its votes are cast once."""

from __future__ import annotations

import copy

import attrs
import pytest

from groupsvc import events
from groupsvc.attributes import GroupAttributes, Phases, attributes_of, stated
from groupsvc.errors import Lost, OutcomeUnknown, PermissionDenied, Rejected, TimedOut, UsageError
from groupsvc.sansio import asking
from groupsvc.sansio.event_buffer import EventBuffer
from groupsvc.sansio.own_messages import GATHER_MAX
from groupsvc.sansio.session_machine import DenialDue, VoteDue
from groupsvc.voting import MANUAL, Answer
from groupsvc.voting_words import Cause, DefaultCast, Reason, Vote
from groupsvc.wire import client_messages as wire
from groupsvc.wire import notices
from groupsvc.wire.limits import OUTSTANDING_BYTES_MAX, OUTSTANDING_MAX
from tests.unit.client.daemon_in_memory import NODE, Line
from tests.unit.client.scenes import HOW, done, join, kinds, multicast, propose
from tests.unit.client.scenes import events as taken

OTHER = ("n2", 3, 1)


def told(line: Line, member: int, *told: notices.AnyNotice) -> None:
    line.tell(*(wire.Told(member, notice, more=notice is not told[-1]) for notice in told))


class TestViews:
    """Same number, same view, at every member."""

    def test_the_first_event_is_my_own_join_with_me_in_the_view(self, line: Line) -> None:
        membership = join(line, name="alpha")
        (joined,) = taken(membership)
        assert isinstance(joined, events.Joined)
        assert ("n1/7/1", "n1", "alpha") == (membership.me.id, membership.me.node, membership.me.name)  # type: ignore[union-attr]
        assert (membership.me,) == joined.providers == joined.view.providers
        assert membership.view == joined.view

    def test_who_comes_and_goes_is_kept_from_notices(self, line: Line) -> None:
        membership = join(line)
        other = notices.Provider(OTHER, "beta", b"here", 2)
        told(line, 1, notices.Joined(2, (other,), 102))
        assert ["n1/7/1", "n2/3/1"] == [one.id for one in membership.view.providers]
        told(line, 1, notices.Failing(3, OTHER, "node_failure"))
        assert 2 == len(membership.view.providers), "it is listed until it has left"
        told(line, 1, notices.Left(4, (OTHER,), "node_failure", 103))
        assert (4, 103, 1) == (membership.view.seq, membership.view.fence, len(membership.view.providers))
        _, joined, failing, left = taken(membership)
        assert isinstance(joined, events.Joined)
        assert isinstance(failing, events.Failing)
        assert isinstance(left, events.Left)
        assert "beta" == joined.providers[0].name == failing.provider.name == left.providers[0].name
        assert Cause.NODE_FAILURE is left.cause
        assert 2 == len(joined.view.providers)
        assert 1 == len(left.view.providers)

    def test_an_entry_is_taken_together_whoever_is_told_and_answered_in_between(self, line: Line) -> None:
        """And in however many frames it comes: a program that reads slowly is sent what it has room for."""
        one, two = join(line, name="a"), join(line, name="b")
        taken(one), taken(two)
        others = [notices.Provider(("n2", 3, number), str(number), b"", 9) for number in (1, 2)]
        came = [notices.Joined(9, (other,), 200 + number) for number, other in enumerate(others)]
        before = one.view
        line.tell(wire.Told(1, came[0], more=True), wire.Told(2, came[0], more=True), wire.Done(99))
        assert [] == [*taken(one), *taken(two)]
        assert before == one.view, "half an entry is none"
        line.tell(wire.Told(1, came[1]), wire.Told(2, came[1]))
        for membership in (one, two):
            assert [201, 201] == [event.view.fence for event in taken(membership)]  # type: ignore[union-attr]

    def test_all_events_of_one_entry_show_the_group_after_it(self, line: Line) -> None:
        """GS-24: a state change that comes with a join is one entry."""
        membership = join(line)
        taken(membership)
        other = notices.Provider(OTHER, "beta", b"", 2)
        told(line, 1, notices.Joined(2, (other,), 102), notices.StateChanged(2, b"s", 1))
        joined, changed = taken(membership)
        assert joined.view == changed.view == membership.view
        assert b"s" == joined.view.state  # type: ignore[union-attr]

    def test_who_leaves_sees_the_group_after_the_whole_entry(self, line: Line) -> None:
        """Its own ``Left`` is the last event, and what came behind it is in the view."""
        membership = join(line)
        other = notices.Provider(OTHER, "beta", b"", 2)
        told(line, 1, notices.Joined(2, (other,), 102))
        taken(membership)
        told(line, 1, notices.Left(3, ((*NODE, 1),), "leave", 103), notices.Left(3, (OTHER,), "leave", 104))
        (left,) = taken(membership)
        assert isinstance(left, events.Left)
        assert (104, ()) == (left.view.fence, left.view.providers)
        assert "leave" in str(membership.end_reason)

    def test_the_first_join_told_again_changes_nothing(self, line: Line) -> None:
        membership = join(line)
        assert 1 == len(membership.view.providers)

    def test_a_message_moves_only_the_number_on(self, line: Line) -> None:
        membership = join(line)
        taken(membership)
        line.tell(wire.MessagesCame(1, 2, OTHER, (b"a", b"b", b"c")))
        told(line, 1, notices.StateChanged(5, b"new", 1))
        first, _, third, changed = taken(membership)
        assert isinstance(first, events.Message)
        assert (2, 4) == (first.view.seq, third.view.seq)  # type: ignore[union-attr]
        assert b"" == third.view.state  # type: ignore[union-attr]
        assert (5, b"new") == (changed.view.seq, changed.view.state)  # type: ignore[union-attr]

    def test_a_message_from_outside_has_no_sender_and_an_origin(self, line: Line) -> None:
        membership = join(line)
        told(line, 1, notices.Message(2, ("n3", 1, 0), b"hello"))
        message = taken(membership)[1]
        assert isinstance(message, events.Message)
        assert (None, "n3/1/0") == (message.sender, message.origin)

    def test_fence_default_vote_and_attributes_follow(self, line: Line) -> None:
        membership = join(line)
        told(line, 1, notices.Fenced(2, 900), notices.AttributesChanged(2, (("state_phases", "n"),)))
        line.tell(line.daemon.closed(1, ballot=2, phase=1))
        assert (900, Vote.REJECT) == (membership.view.fence, membership.view.default_vote)
        assert Phases.N is membership.attributes.state_phases

    def test_that_the_quorum_was_lost_stays_in_view(self, line: Line) -> None:
        """The next view, which has lost nothing, does not hide it."""
        membership = join(line)
        assert 0 == membership.view.quorum_lost_seq
        told(line, 1, notices.Fenced(2, 900, True))
        told(line, 1, notices.Fenced(4, 901))
        assert (4, 901, 2) == (membership.view.seq, membership.view.fence, membership.view.quorum_lost_seq)

    def test_the_state_goes_with_the_last_provider(self, line: Line) -> None:
        membership = join(line)
        done(line, propose(line, membership, b"x"))
        told(line, 1, notices.Left(3, ((*NODE, 1),), "leave", 103))
        assert (b"", 2) == (membership.view.state, membership.view.state_version)

    def test_the_state_of_a_durable_group_whose_nodes_fail_stays(self, line: Line) -> None:
        """GS-31: disks have it."""
        attributes = GroupAttributes(durable=True)
        start = asking.join(
            line.machine, "db", name="a", attributes=attributes, create=None, data=b"", on_proposal=None, events=True
        )
        membership = done(line, start)
        done(line, propose(line, membership, b"x"))
        told(line, 1, notices.Left(3, ((*NODE, 1),), "node_failure", 103))
        assert (b"x", 1) == (membership.view.state, membership.view.state_version)

    def test_what_a_subscription_missed_is_counted_and_the_view_is_whole(self, line: Line) -> None:
        join(line)
        watcher = done(line, asking.subscribe(line.machine, "db", wait=0.0))
        view = notices.GroupView(50, 7, (), b"later", 9, "reject")
        line.tell(wire.NoticesMissed(watcher.number, 44, view))
        assert [events.Overrun(44, group="db")] == taken(watcher)
        assert (50, b"later", Vote.REJECT) == (watcher.view.seq, watcher.view.state, watcher.view.default_vote)


class TestEnds:
    """After its end a membership is told nothing."""

    def test_leaving_ends_with_my_own_left(self, line: Line) -> None:
        membership = join(line)
        assert done(line, asking.leave(line.machine, membership, 3)).approved
        left = taken(membership)[-1]
        assert isinstance(left, events.Left)
        assert (3, Cause.LEAVE) == (left.code, left.cause)
        assert membership.has_ended
        assert {} == line.machine.members

    @pytest.mark.parametrize("dissolved, kind", [(True, "Dissolved"), (False, "Lost")])
    def test_the_daemon_says_that_it_is_over(self, line: Line, dissolved: bool, kind: str) -> None:
        membership = join(line)
        line.tell(wire.MemberLost(1, dissolved, "because"))
        assert ["Joined", kind] == kinds(membership)
        assert "because" == membership.end_reason

    def test_what_has_not_come_back_is_not_known(self, line: Line) -> None:
        membership = join(line)
        multicast(line, membership, b"a", b"b")
        line.machine.outbox.clear()
        line.machine.lose("the node was declared down")
        assert isinstance(membership.own.error, OutcomeUnknown)
        assert ("n1/7/1/1", "n1/7/1/2") == membership.own.error.ids


def denied(line: Line) -> wire.Problem:
    """The daemon does not take the newest vote."""
    vote = next(one for one in reversed(line.daemon.requests) if isinstance(one, wire.CastVote))
    return wire.Problem(vote.id, "failed", "permission denied", "no rule allows it")


class TestVotes:
    """Once in a phase, by the program or for it."""

    def test_without_on_proposal_the_library_approves(self, line: Line) -> None:
        join(line)
        line.tell(line.daemon.opened(1))
        vote = line.daemon.requests[-1]
        assert isinstance(vote, wire.CastVote)
        assert ("approve", 1) == (vote.vote, vote.phase)

    def test_with_on_proposal_the_program_is_asked_in_every_phase(self, line: Line) -> None:
        membership = join(line, on_proposal=lambda proposal: None)
        line.tell(line.daemon.opened(1, ballot=9))
        line.tell(line.daemon.closed(1, ballot=9, phase=1), line.daemon.opened(1, ballot=9, phase=2))
        due = [one for one in line.machine.due if isinstance(one, VoteDue)]
        assert [(9, 1), (9, 2)] == [(one.proposal.ballot, one.proposal.phase) for one in due]
        assert ["Joined", "Proposed", "PhaseEnded", "Proposed"] == kinds(membership)

    def test_a_vote_says_what_the_answer_says(self, line: Line) -> None:
        membership = join(line, on_proposal=MANUAL)
        line.tell(line.daemon.opened(1))
        proposed = taken(membership)[-1]
        assert isinstance(proposed, events.Proposed)
        proposed.proposal.vote(Answer(Vote.CONTINUE, state=b"better", message=b"why", default_vote=Vote.REJECT))
        line.run()
        vote = line.daemon.requests[-1]
        assert isinstance(vote, wire.CastVote)
        assert ("continue", b"better", b"why", "reject") == (vote.vote, vote.state, vote.message, vote.default_vote)

    def test_a_vote_that_is_denied_does_not_count_and_the_program_can_vote_again(self, line: Line) -> None:
        membership = join(line, on_proposal=MANUAL)
        line.tell(line.daemon.opened(1))
        proposal = taken(membership)[-1].proposal  # type: ignore[union-attr]
        proposal.vote(Vote.APPROVE, state=b"mine")
        line.run()
        line.tell(denied(line))
        (due,) = (one for one in line.machine.due if isinstance(one, DenialDue))
        assert isinstance(due.error, PermissionDenied)
        assert ("db", "no rule allows it") == (due.error.group, str(due.error).partition(": ")[2])
        proposal.vote(Vote.REJECT)
        line.run()
        assert [b"mine", None] == [one.state for one in line.daemon.requests if isinstance(one, wire.CastVote)]
        with pytest.raises(UsageError, match="already in phase 1"):
            proposal.vote(Vote.REJECT)

    def test_one_that_on_proposal_returned_has_failed_when_it_is_denied(self, line: Line) -> None:
        """Nobody would ask it again, and a phase without a time limit would wait for ever."""
        membership = join(line, on_proposal=lambda proposal: None)
        line.tell(line.daemon.opened(1))
        (due,) = (one for one in line.machine.due if isinstance(one, VoteDue))
        membership.vote_as_returned(due.proposal, Answer(Vote.APPROVE, default_vote=Vote.REJECT))
        line.run()
        line.tell(denied(line))
        assert ["approve", None] == [one.vote for one in line.daemon.requests if isinstance(one, wire.CastVote)]

    def test_one_that_is_denied_when_its_phase_is_over_is_told_and_not_cast_again(self, line: Line) -> None:
        membership = join(line, on_proposal=lambda proposal: None)
        line.tell(line.daemon.opened(1, ballot=9))
        (due,) = (one for one in line.machine.due if isinstance(one, VoteDue))
        membership.vote_as_returned(due.proposal, Answer(Vote.APPROVE, state=b"mine"))
        line.run()
        line.tell(line.daemon.closed(1, ballot=9, phase=1), denied(line))
        assert ["approve"] == [one.vote for one in line.daemon.requests if isinstance(one, wire.CastVote)]
        assert any(isinstance(one, DenialDue) for one in line.machine.due)

    def test_twice_in_a_phase_is_a_mistake(self, line: Line) -> None:
        membership = join(line, on_proposal=MANUAL)
        line.tell(line.daemon.opened(1))
        proposal = taken(membership)[-1].proposal  # type: ignore[union-attr]
        proposal.vote(Vote.APPROVE)
        with pytest.raises(UsageError, match="already in phase 1"):
            proposal.vote(Vote.REJECT)

    def test_after_the_phase_it_is_too_late(self, line: Line) -> None:
        membership = join(line, on_proposal=MANUAL)
        opened = line.daemon.opened(1)
        line.tell(opened)
        proposal = taken(membership)[-1].proposal  # type: ignore[union-attr]
        line.tell(line.daemon.closed(1, ballot=opened.notice.seq, phase=1))
        with pytest.raises(TimedOut, match="phase 1 is over"):
            proposal.vote(Vote.REJECT)

    @pytest.mark.parametrize(
        "answer", ["approve", None, 1, Answer("approve"), Answer(Vote.APPROVE, default_vote=Vote.CONTINUE)]  # type: ignore[arg-type]
    )  # fmt: skip
    def test_what_is_no_vote_is_a_mistake(self, line: Line, answer: object) -> None:
        membership = join(line, on_proposal=MANUAL)
        line.tell(line.daemon.opened(1))
        with pytest.raises(UsageError):
            taken(membership)[-1].proposal.vote(answer)  # type: ignore[union-attr]

    def test_who_is_not_asked_has_no_vote(self, line: Line) -> None:
        membership = join(line, on_proposal=MANUAL)
        line.daemon.groups["db"].providers.clear()
        line.tell(line.daemon.opened(1))
        with pytest.raises(UsageError, match="not open for a vote of yours"):
            taken(membership)[-1].proposal.vote(Vote.APPROVE)  # type: ignore[union-attr]

    def test_an_outcome_tells_who_voted_what_and_why(self, line: Line) -> None:
        membership = join(line, name="alpha")
        taken(membership)
        votes = (notices.Cast((*NODE, 1), "approve"), notices.Cast(OTHER, "reject", "late"))
        subject = notices.Subject(kind="state", proposals=(("n2", 3, 8),), proposer=OTHER, state=b"s")
        outcome = notices.Outcome(
            ballot=2, subject=subject, approved=False, phases=2, reason="default_reject", votes=votes
        )
        told(line, 1, notices.Ended(3, outcome, "reject"))
        (rejected,) = taken(membership)
        assert isinstance(rejected, Rejected)
        found = rejected.outcome
        assert (Reason.DEFAULT_REJECT, "n2/3/8", 3) == (found.reason, found.proposal.id, rejected.seq)
        assert [("alpha", DefaultCast.NOT), ("", DefaultCast.LATE)] == [
            (one.provider.name, one.default) for one in found.tally
        ]
        assert not found
        with pytest.raises(Rejected, match=r"n2/3/1 REJECT .by default: it did not vote in time"):
            found.require()


class TestOwnMessages:
    """Counted as they come back; nothing else is the answer."""

    def test_all_come_back(self, line: Line) -> None:
        membership = join(line)
        multicast(line, membership, b"a", b"b")
        assert not membership.own.is_idle
        line.run()
        assert membership.own.is_idle

    def test_a_message_by_ballot_is_none_of_them(self, line: Line) -> None:
        membership = join(line)
        multicast(line, membership, b"a")
        line.machine.outbox.clear()  # it stays on its way
        line.machine._said.taken(1)
        done(line, asking.send(line.machine, membership, b"by ballot", **HOW))
        assert ("n1/7/1/1",) == membership.own.ids()

    def test_many_go_together_and_a_large_one_alone(self, line: Line) -> None:
        membership = join(line)
        multicast(line, membership, *[b"x" * 100_000] * 5, bytes(1 << 20))
        sizes = [len(one.payloads) for one in line.machine.outbox if isinstance(one, wire.Multicast)]
        assert [2, 2, 1, 1] == sizes

    def test_the_first_goes_at_once_and_after_a_burst_it_gathers(self, line: Line) -> None:
        membership = join(line)
        own = membership.own
        own.add(b"a")
        assert own.wants_out
        own.add(b"b")
        multicast(line, membership, b"c")
        line.run()
        for _ in range(GATHER_MAX - 1):
            own.add(b"d")
            assert not own.wants_out
        own.add(b"d")
        assert own.wants_out
        multicast(line, membership, b"e")
        line.run()
        multicast(line, membership, b"f")
        line.run()
        own.add(b"g")
        assert own.wants_out, "it was no burst the last time"

    def test_full_is_full(self, line: Line) -> None:
        membership = join(line)
        multicast(line, membership, *[b"x"] * (OUTSTANDING_MAX - 1))
        assert membership.own.has_room(1)
        multicast(line, membership, b"x")
        assert not membership.own.has_room(0)
        line.run()
        assert membership.own.has_room(1)

    def test_large_ones_are_counted_by_their_bytes_and_one_is_always_possible(self, line: Line) -> None:
        membership = join(line)
        assert membership.own.has_room(OUTSTANDING_BYTES_MAX + 1)
        multicast(line, membership, bytes(4 << 20), bytes(3 << 20))
        assert membership.own.has_room(1 << 20)
        assert not membership.own.has_room((1 << 20) + 1)
        line.run()
        assert membership.own.has_room(OUTSTANDING_BYTES_MAX)

    def test_a_refusal_names_the_messages_and_the_rest_still_counts(self, line: Line) -> None:
        membership = join(line)
        line.daemon.script = lambda request: (
            [wire.Problem(request.id, "unknown", "", "the node has lost the group")]
            if isinstance(request, wire.Multicast) and request.payloads == (b"bad",)
            else None
        )
        multicast(line, membership, b"bad")
        multicast(line, membership, b"good", b"better")
        line.run()
        assert isinstance(membership.own.error, OutcomeUnknown)
        assert ("n1/7/1/1",) == membership.own.error.ids
        assert membership.own.is_idle


class TestBuffers:
    """Bounded, and nobody misses anything silently."""

    def test_a_subscriber_is_told_how_much_it_missed_where_it_missed_it(self) -> None:
        buffer = EventBuffer(limit=2)
        stale = [events.Overrun(number, group="x") for number in range(5)]
        assert [True, True, False, False] == [buffer.append(event, group="db") for event in stale[:4]]
        assert stale[0] == buffer.take()
        assert buffer.append(stale[4], group="db")
        found = [buffer.take() for _ in range(4)]
        assert [stale[1], events.Overrun(2, group="db"), stale[4], None] == found

    def test_what_was_missed_at_the_end_is_told_when_all_is_read(self) -> None:
        buffer = EventBuffer(limit=1)
        buffer.append(events.Overrun(0, group="x"), group="db")
        buffer.append(events.Overrun(0, group="x"), group="db")
        assert not buffer.is_empty
        buffer.take()
        assert events.Overrun(1, group="db") == buffer.take()
        assert buffer.is_empty

    def test_a_provider_that_does_not_read_leaves_and_its_end_is_not_missed(self, line: Line) -> None:
        membership = join(line)
        membership.buffer = EventBuffer(limit=3)
        line.tell(wire.MessagesCame(1, 2, OTHER, (b"a", b"b", b"c")), wire.MessagesCame(1, 5, OTHER, (b"d",)))
        line.tell(wire.MessagesCame(1, 6, OTHER, (b"e",)))
        assert 1 == len([one for one in line.daemon.requests if isinstance(one, wire.Overrun)])
        assert ["Message", "Message", "Message", "Overrun", "Lost"] == kinds(membership)
        assert membership.has_ended
        assert {} == line.machine.members

    def test_nothing_is_kept_for_who_does_not_read(self, line: Line) -> None:
        membership = join(line, events=False)
        line.tell(wire.MessagesCame(1, 2, OTHER, (b"a",)))
        line.machine.start_reading(membership)
        line.tell(wire.MessagesCame(1, 3, OTHER, (b"b",)))
        assert [b"b"] == [event.payload for event in taken(membership)]  # type: ignore[union-attr]

    def test_all_groups_of_a_session_in_one_order(self, line: Line) -> None:
        join(line, "one")
        join(line, "two", events=False)
        merged = line.machine.start_reading_all()
        line.tell(wire.MessagesCame(2, 2, OTHER, (b"b",)), wire.MessagesCame(1, 2, OTHER, (b"a",)))
        join(line, "three", events=False)
        found = []
        while (event := merged.take()) is not None:
            found.append((event.group, type(event).__name__))
        assert [("one", "Joined"), ("two", "Message"), ("one", "Message"), ("three", "Joined")] == found


def test_lost_is_one_word_read_or_raised() -> None:
    assert Lost("why", group="db") == Lost("why", group="db") != Lost("why", group="other")
    match Lost("why", group="db"):
        case Lost(reason):
            assert "why" == reason


def test_attributes_that_were_said_are_stated_also_if_they_are_the_default() -> None:
    wanted = GroupAttributes(join_phases=Phases.N, default_vote=Vote.REJECT, time_limit=30.0)
    assert {"join_phases": "n", "default_vote": "reject", "time_limit": 30.0} == stated(wanted)
    assert {} == stated(GroupAttributes())
    assert GroupAttributes() == GroupAttributes(time_limit=30.0, exclusive=False, commit_k=None)
    said = GroupAttributes(time_limit=30.0, exclusive=False, commit_k=None)
    assert {"time_limit": 30.0, "exclusive": False} == stated(said)
    assert 5.0 == stated(attrs.evolve(wanted, time_limit=5.0))["time_limit"]
    assert stated(wanted) == stated(copy.deepcopy(wanted))
    with pytest.raises(TypeError, match="speed"):
        GroupAttributes(speed=3)  # type: ignore[call-arg]
    assert wanted == attributes_of({**stated(wanted), "of a later version": 1})
    with pytest.raises(UsageError, match="CONTINUE"):
        GroupAttributes(default_vote=Vote.CONTINUE)
