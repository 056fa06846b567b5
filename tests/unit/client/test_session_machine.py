"""A session: states by its own clock, counting, resuming, and the one end of every call."""

from __future__ import annotations

import itertools
import math

import pytest

from groupsvc.errors import (
    DaemonUnreachable,
    Failed,
    NotAMember,
    OutcomeUnknown,
    PeerProtocolError,
    StaleVersion,
    TimedOut,
    UsageError,
    WouldBlock,
)
from groupsvc.sansio import asking, rounds
from groupsvc.sansio.problems import error_of
from groupsvc.sansio.session_machine import UNTAKEN_MAX, StateDue
from groupsvc.session_states import LEGAL, SessionState
from groupsvc.wire import client_messages as wire
from groupsvc.wire.limits import COUNT_EVERY_ITEMS, GRACE_S, RESPONSIVE_S, SESSION_ALIVE_S
from tests.unit.client.daemon_in_memory import NODE, DaemonInMemory, Line
from tests.unit.client.scenes import begin, done, events, join, kinds, multicast, new_machine, propose

CONNECTED, SUSPENDED, LOST, CLOSED = SessionState


class TestStates:
    """CONNECTED means: true by my own clock."""

    def test_nothing_is_vouched_for_before_the_session_is_open(self) -> None:
        machine = new_machine()
        assert SUSPENDED is machine.state
        machine.connected(0.0)
        assert SUSPENDED is machine.state

    def test_good_for_counts_from_when_the_question_was_sent(self) -> None:
        line = Line(new_machine(), DaemonInMemory(good_for=2.0))
        line.machine.connected(10.0)
        line.now = 11.5  # the answer took long
        line.run()
        assert CONNECTED is line.machine.state
        assert 0.5 == line.machine.valid_for(11.5)
        line.machine.tick(12.0)
        assert SUSPENDED is line.machine.state

    def test_an_answer_that_comes_too_late_vouches_for_nothing(self) -> None:
        line = Line(new_machine(), DaemonInMemory(good_for=2.0))
        line.machine.connected(10.0)
        line.now = 12.5
        line.run()
        assert SUSPENDED is line.machine.state

    def test_while_it_says_that_it_is_alive_it_stays_connected(self, line: Line) -> None:
        for step in range(1, 40):
            line.at(step * SESSION_ALIVE_S)
        assert CONNECTED is line.machine.state
        assert 39 == len(line.daemon.alive)

    def test_a_daemon_that_falls_silent_suspends_and_one_that_speaks_again_resumes(self, line: Line) -> None:
        membership = join(line)
        line.machine.tick(1.9)
        line.machine.outbox.clear()  # carried nowhere
        line.machine.tick(2.0)
        assert SUSPENDED is line.machine.state
        line.machine.outbox.clear()
        line.at(2.5)
        assert CONNECTED is line.machine.state
        assert ["Joined", "Suspended", "Resumed"] == kinds(membership)
        assert [CONNECTED, SUSPENDED, CONNECTED] == [due.state for due in line.machine.due if isinstance(due, StateDue)]

    @pytest.mark.parametrize("silence_s_max, hangs_up", [(4.0, True), (math.inf, False)], ids=["tcp", "ipc"])
    def test_a_connection_without_answers_is_given_up_if_something_may_be_between(
        self, silence_s_max: float, hangs_up: bool
    ) -> None:
        line = Line(new_machine(silence_s_max), DaemonInMemory())
        line.connect()
        for step in range(1, 30):
            assert (hangs_up and step * SESSION_ALIVE_S > SESSION_ALIVE_S + 4.0) is line.machine.is_hung_up
            line.machine.tick(step * SESSION_ALIVE_S)
            line.machine.outbox.clear()  # carried nowhere

    def test_a_connection_over_which_anything_comes_is_not_given_up(self) -> None:
        """The answers stand behind many messages, and the network is slow."""
        line = Line(new_machine(4.0), DaemonInMemory())
        line.connect()
        for step in range(1, 40):
            line.machine.received([], step * SESSION_ALIVE_S - 0.1)
            line.machine.tick(step * SESSION_ALIVE_S)
            line.machine.outbox.clear()  # carried nowhere
        assert not line.machine.is_hung_up

    def test_who_was_stopped_for_a_while_does_not_take_that_for_silence_of_the_daemon(self) -> None:
        line = Line(new_machine(4.0), DaemonInMemory())
        line.connect()
        line.machine.tick(SESSION_ALIVE_S)
        line.machine.tick(100.0)
        assert not line.machine.is_hung_up

    def test_a_broken_connection_suspends_at_once_and_resuming_resumes(self, line: Line) -> None:
        """The daemon may be dead, and then the others do not wait for the end of our lease."""
        membership = join(line)
        line.machine.disconnected(0.1)
        assert (SUSPENDED, 0.0) == (line.machine.state, line.machine.valid_for(0.1))
        line.connect()
        assert (CONNECTED, True) == (line.machine.state, line.machine.valid_for(line.now) > 0)
        assert ["Joined", "Suspended", "Resumed"] == kinds(membership)

    def test_the_daemons_word_suspends_at_once_and_its_next_answer_resumes(self, line: Line) -> None:
        line.daemon.good_for = 0.0
        line.tell(wire.SessionNews("suspended", "the node has no lease"))
        assert SUSPENDED is line.machine.state
        line.at(0.6)
        assert SUSPENDED is line.machine.state
        line.daemon.good_for = 2.0
        line.tell(wire.SessionNews("resumed", ""))
        assert CONNECTED is line.machine.state

    def test_lost_is_for_ever(self, line: Line) -> None:
        membership = join(line)
        line.tell(wire.SessionNews("lost", "the node was declared down"))
        assert LOST is line.machine.state
        assert ["Joined", "Lost"] == kinds(membership)
        line.machine.received([wire.SessionAliveAck(99, 0, 2.0)], 0.1)
        line.machine.connected(0.2)
        line.machine.tick(99.0)
        assert LOST is line.machine.state
        assert [] == line.machine.outbox

    def test_closed_is_the_end_of_all(self, line: Line) -> None:
        line.machine.end()
        line.machine.lose("too late")
        line.machine.end()
        assert CLOSED is line.machine.state

    def test_the_table_of_transitions_is_what_the_words_mean(self) -> None:
        assert {CONNECTED, SUSPENDED, LOST, CLOSED} == set(LEGAL)
        assert all(CLOSED in to for state, to in LEGAL.items() if state is not CLOSED)
        assert not LEGAL[CLOSED]
        assert CONNECTED not in LEGAL[LOST]

    def test_a_refused_session_says_why(self) -> None:
        machine = new_machine()
        machine.connected(0.0)
        machine.received([wire.Problem(machine.outbox[0].id, "failed", "full", "too many sessions")], 0.0)
        assert LOST is machine.state
        assert machine.refused is not None
        assert "too many sessions" == machine.refused.text


class TestAlive:
    """The daemon is told that we live, how far we counted, and whether our code answers."""

    def test_much_that_was_told_is_counted_before_time(self, line: Line) -> None:
        membership = join(line)
        group = line.daemon.group_of(membership.number)
        for _ in range(COUNT_EVERY_ITEMS):
            group.seq += 1
            line.tell(wire.MessagesCame(membership.number, group.seq, ("n2", 1, 1), (b"x",)))
        assert 1 == len(line.daemon.alive)
        assert line.daemon.alive[0].seen >= COUNT_EVERY_ITEMS

    def test_large_messages_are_counted_by_their_bytes(self, line: Line) -> None:
        membership = join(line)
        told = line.daemon.tell(wire.MessagesCame(membership.number, 2, ("n2", 1, 1), (b"much",)))
        line.machine.received(told, line.now, 2 << 20)
        line.run()
        assert 3 == line.daemon.alive[0].seen

    def test_a_callback_that_hangs_makes_the_program_unresponsive_until_it_returns(self, line: Line) -> None:
        line.machine.busy_since = 0.0
        line.at(RESPONSIVE_S - 0.1)
        line.at(RESPONSIVE_S + 1.0)
        line.machine.busy_since = None
        line.at(RESPONSIVE_S + 2.0)
        assert [True, False, True] == [alive.is_responsive for alive in line.daemon.alive]


class TestCalls:
    """Each ends in exactly one of done, Failed, OutcomeUnknown."""

    def test_done(self, line: Line) -> None:
        membership = join(line)
        outcome = done(line, propose(line, membership, b"primary"))
        assert (True, b"primary", 1) == (outcome.approved, outcome.view.state, outcome.view.state_version)

    def test_a_problem_becomes_the_error_of_its_code_with_group_and_text(self, line: Line) -> None:
        membership = join(line)
        with pytest.raises(StaleVersion, match="could not change the state in group 'db': the version is 0") as caught:
            done(line, propose(line, membership, b"x", 3))
        assert ("db", 0) == (caught.value.group, caught.value.version)

    def test_the_outcome_of_a_proposal_that_has_not_ended_is_unknown(self, line: Line) -> None:
        """It may still be approved: nobody may take it for a failure."""
        membership = join(line)
        line.daemon.script = lambda request: [
            wire.Problem(request.id, "unknown", "not known", "it has not ended here yet", ("n1", 7, 55))
        ]
        with pytest.raises(OutcomeUnknown, match="could not ask how proposal n1/7/55 in group 'db' ended") as caught:
            done(line, asking.outcome(line.machine, membership, "n1/7/55"))
        assert ("n1/7/55",) == caught.value.ids

    def test_what_is_not_known_can_be_asked_for_by_its_id(self, line: Line) -> None:
        membership = join(line)
        line.daemon.script = lambda request: [
            wire.Problem(request.id, "unknown", "timed out", "not decided in time", ("n1", 7, 55))
        ]
        with pytest.raises(OutcomeUnknown) as caught:
            done(line, propose(line, membership, b"x"))
        assert ("n1/7/55",) == caught.value.ids
        line.daemon.script = None
        done_later = begin(line, asking.outcome(line.machine, membership, caught.value.ids[0]))
        ask = line.machine.outbox[-1]
        assert isinstance(ask, wire.OutcomeAsk)
        assert ("n1", 7, 55) == ask.proposal
        assert not done_later.is_done

    def test_a_proposal_whose_end_is_not_known_is_named(self) -> None:
        """``group.outcome`` can be asked for it."""
        problem = wire.Problem(1, "unknown", "timed out", "not decided in time", ("n1", 2, 7))
        error = error_of(problem, "change the state", group="db")
        assert isinstance(error, OutcomeUnknown)
        assert ("n1/2/7",) == error.ids

    def test_who_waits_without_a_connection_is_told_so(self, line: Line) -> None:
        """It is not the daemon that is slow."""
        answered = begin(line, asking.status(line.machine), 2.0)
        line.machine.disconnected(1.0)
        line.machine.tick(2.6)
        assert isinstance(answered.error, TimedOut)
        assert "the connection to the daemon broke, and it could not be reached again in time" in str(answered.error)

    def test_no_answer_to_a_change_may_have_happened_and_the_deadline_is_the_daemons_and_a_little(
        self, line: Line
    ) -> None:
        membership = join(line)
        call = begin(line, propose(line, membership, b"x"), 5.0)
        line.machine.tick(5.4)
        assert not call.is_done
        line.machine.tick(5.6)
        assert isinstance(call.error, OutcomeUnknown)
        assert (f"n1/7/{1000 + call.id}",) == call.error.ids, (
            "it can be asked for later, though the daemon said nothing"
        )

    def test_a_proposal_that_was_under_way_when_the_session_was_lost_is_named(self, line: Line) -> None:
        """K1: in the next session somebody can ask what became of it."""
        membership = join(line)
        call = begin(line, propose(line, membership, b"x"), 5.0)
        line.machine.lose("the daemon died")
        assert isinstance(call.error, OutcomeUnknown)
        assert (f"n1/7/{1000 + call.id}",) == call.error.ids

    def test_what_is_no_proposal_has_no_name(self, line: Line) -> None:
        call = begin(line, asking.submit(line.machine, "db", b"x"), 5.0)
        line.machine.tick(6.0)
        assert isinstance(call.error, OutcomeUnknown)
        assert () == call.error.ids

    def test_no_answer_to_a_question_changed_nothing(self, line: Line) -> None:
        call = begin(line, asking.groups(line.machine), 5.0)
        line.machine.tick(6.0)
        assert isinstance(call.error, TimedOut)

    @pytest.mark.parametrize("end", ["lost", "closed"])
    def test_the_end_of_the_session_ends_all_calls(self, line: Line, end: str) -> None:
        membership = join(line)
        change = begin(line, propose(line, membership, b"x"))
        question = begin(line, asking.groups(line.machine))
        if end == "lost":
            line.machine.lose("gone")
        else:
            line.machine.end()
        assert isinstance(change.error, OutcomeUnknown)
        assert isinstance(question.error, Failed)

    def test_a_late_answer_is_for_nobody(self, line: Line) -> None:
        membership = join(line)
        call = begin(line, propose(line, membership, b"x"), 1.0)
        requests, line.machine.outbox[:] = list(line.machine.outbox), []
        line.machine.tick(2.0)
        line.machine.outbox.clear()
        for request in requests:
            line.machine.received(line.daemon.handle(request), 2.1)
        assert isinstance(call.error, OutcomeUnknown)
        assert b"x" == membership.view.state

    @pytest.mark.parametrize("how", ["late", "interrupted", "interrupted when done"])
    def test_a_join_that_nobody_waits_for_any_more_is_left_again(self, line: Line, how: str) -> None:
        start = asking.join(
            line.machine, "db", name=None, attributes=None, create=None, data=b"", on_proposal=None, events=False
        )
        call = begin(line, start, 1.0)
        if how == "late":
            requests, line.machine.outbox[:] = list(line.machine.outbox), []
            line.machine.tick(2.0)
            line.machine.outbox[:] = [*requests, *line.machine.outbox]
        else:
            if how == "interrupted when done":
                line.run()
            line.machine.abandon(call)
        line.run()
        assert isinstance(line.daemon.requests[-1], wire.GoodbyeAsk)
        assert {} == line.machine.members

    def test_an_answer_of_the_wrong_kind_is_the_peers_fault(self, line: Line) -> None:
        line.daemon.script = lambda request: [wire.CaughtUp(request.id, 1)]
        with pytest.raises(PeerProtocolError, match="CaughtUp"):
            done(line, asking.groups(line.machine))

    def test_after_the_end_nothing_is_sent(self, line: Line) -> None:
        membership = join(line)
        line.machine.lose("gone")
        with pytest.raises(NotAMember, match="gone"):
            begin(line, propose(line, membership, b"x"))
        with pytest.raises(DaemonUnreachable, match=r"lost \(gone\); connect and join again"):
            begin(line, asking.groups(line.machine))
        line.machine.end()
        with pytest.raises(UsageError, match="closed"):
            begin(line, asking.groups(line.machine))
        assert [] == line.machine.outbox


class TestIllegalOrders:
    """What a daemon of this protocol never says is refused, not guessed at."""

    @pytest.mark.parametrize(
        "message",
        [
            wire.SessionIs(999, 5, b"", 0, 2.0, ("n1", 7, 0)),
            wire.SessionAliveAck(999, 0, 2.0),
            wire.Welcome(1, 1, "n1", 7, ""),
        ],
        ids=["session nobody asked for", "ack nobody asked for", "second greeting"],
    )
    def test_answers_without_a_question(self, line: Line, message: wire.AnyClientReply) -> None:
        with pytest.raises(PeerProtocolError):
            line.machine.received([message], 0.0)

    def test_telling_before_the_session_is_open(self) -> None:
        machine = new_machine()
        machine.connected(0.0)
        with pytest.raises(PeerProtocolError, match="before the session was open"):
            machine.received([wire.SessionNews("suspended", "")], 0.0)

    def test_counting_what_was_never_said(self, line: Line) -> None:
        line.machine.tick(SESSION_ALIVE_S)
        with pytest.raises(PeerProtocolError, match="counted 7 requests"):
            line.machine.received([wire.SessionAliveAck(line.machine.outbox[0].id, 7, 2.0)], 0.5)

    def test_forgetting_what_was_counted(self, line: Line) -> None:
        join(line)
        line.at(0.5)
        line.machine.tick(1.0)
        with pytest.raises(PeerProtocolError, match="counted 0 requests; it had 1"):
            line.machine.received([wire.SessionAliveAck(line.machine.outbox[0].id, 0, 2.0)], 1.0)

    def test_resuming_another_session(self, line: Line) -> None:
        line.machine.disconnected(0.1)
        line.machine.connected(0.2)
        with pytest.raises(PeerProtocolError, match="session 5 was to be resumed"):
            line.machine.received([wire.SessionIs(line.machine.outbox[0].id, 6, b"", 0, 2.0, ("n1", 7, 0))], 0.2)

    def test_the_refusal_of_a_whole_frame_ends_the_session_with_its_reason(self, line: Line) -> None:
        line.machine.received([wire.Problem(0, "usage", "frame", "checksum is wrong")], 0.0)
        assert LOST is line.machine.state
        assert "checksum is wrong" == line.machine.end_reason

    def test_a_connection_that_the_daemon_has_given_up_is_replaced(self, line: Line) -> None:
        line.machine.received([wire.Problem(0, "usage", "hello", "the first request must be Hello")], 0.0)
        assert line.machine.is_hung_up
        line.machine.disconnected(0.1)
        line.connect()
        assert (CONNECTED, False) == (line.machine.state, line.machine.is_hung_up)

    def test_what_is_told_to_a_member_that_left_is_no_concern_of_anybody(self, line: Line) -> None:
        membership = join(line)
        done(line, asking.goodbye(line.machine, membership))
        line.tell(wire.MessagesCame(membership.number, 2, (*NODE, 1), (b"x",)))
        assert CONNECTED is line.machine.state


class TestAdvice:
    """An error says what to do."""

    def test_who_got_no_answer_is_told_to_look_before_it_tries_again(self, line: Line) -> None:
        membership = join(line)
        line.daemon.script = lambda request: []
        calls = [
            begin(line, propose(line, membership, b"x"), timeout=1.0),
            begin(line, asking.sync(line.machine, membership), timeout=1.0),
        ]
        line.at(2.0)
        texts = [str(call.error) for call in calls]
        assert ["look whether it has happened", "try again"] == [
            advice
            for advice, text in zip(("look whether it has happened", "try again"), texts, strict=True)
            if advice in text
        ]

    def test_who_lost_its_session_is_told_to_connect_again(self, line: Line) -> None:
        call = begin(line, asking.groups(line.machine))
        line.machine.lose("the node was declared down")
        assert "the node was declared down; connect again" in str(call.error)


class TestBounds:
    """A daemon that is stopped and takes nothing costs its clients a bounded amount."""

    def test_requests_that_it_has_not_taken_are_kept_and_then_refused(self, line: Line) -> None:
        membership = join(line)
        while len(line.machine._said) < UNTAKEN_MAX:
            begin(line, propose(line, membership, b"x"), timeout=0.1)
            line.now += 1.0
            line.machine.tick(line.now)
            line.machine.outbox.clear()
        with pytest.raises(WouldBlock, match="has not taken"):
            begin(line, propose(line, membership, b"x"))

    def test_it_is_not_asked_again_for_ever(self, line: Line) -> None:
        asked = 0
        for _ in range(1000):
            line.now += SESSION_ALIVE_S
            line.machine.tick(line.now)
            asked += len(line.machine.outbox)
            line.machine.outbox.clear()
        assert asked < 200
        assert SUSPENDED is line.machine.state
        for id in [*line.machine.lease._asked]:
            line.machine.received([wire.SessionAliveAck(id, 0, 2.0)], line.now)
        line.at(line.now + SESSION_ALIVE_S)
        assert CONNECTED is line.machine.state

    def test_deadlines_of_calls_that_have_ended_are_not_kept_behind_one_that_waits(self, line: Line) -> None:
        membership = join(line)
        line.daemon.script = lambda request: [] if isinstance(request, wire.GroupsAsk) else None
        begin(line, asking.groups(line.machine), timeout=1000.0)
        for _ in range(2000):
            done(line, asking.sync(line.machine, membership), timeout=2000.0)
        assert len(line.machine._calls._deadlines) < 500
        assert line.machine._calls.deadline == 1000.5


class TestResuming:
    """A broken connection loses nothing and does nothing twice."""

    @pytest.mark.parametrize("up, down", list(itertools.product(range(6), range(12))))
    def test_broken_at_any_point_everything_happens_once(self, line: Line, up: int, down: int) -> None:
        """Five requests and their answers; so many got through each way before the connection broke."""
        membership = join(line)
        calls = [begin(line, propose(line, membership, value)) for value in (b"1", b"2")]
        multicast(line, membership, b"m1", b"m2")
        calls.append(begin(line, propose(line, membership, b"3")))
        calls.append(begin(line, asking.sync(line.machine, membership)))
        line.run(up=up, down=down)
        line.connect()
        assert all(call.is_done and call.error is None for call in calls)
        assert membership.own.is_idle
        changes = [one.value for one in line.daemon.requests if isinstance(one, wire.ChangeStateAsk)]
        assert [b"1", b"2", b"3"] == changes
        found = events(membership)
        assert [b"m1", b"m2"] == [event.payload for event in found if type(event).__name__ == "Message"]
        assert [b"1", b"2", b"3"] == [event.value for event in found if type(event).__name__ == "StateChanged"]
        assert line.daemon.group_of(membership.number).seq == membership.view.seq
        assert CONNECTED is line.machine.state

    def test_broken_again_while_resuming(self, line: Line) -> None:
        membership = join(line)
        call = begin(line, propose(line, membership, b"1"))
        line.run(up=1, down=0)
        for down in range(3):
            line.machine.connected(line.now)
            line.run(up=1, down=down)
        line.connect()
        assert call.result.approved
        assert 1 == len([one for one in line.daemon.requests if isinstance(one, wire.ChangeStateAsk)])

    def test_what_is_asked_without_a_connection_is_said_on_the_next(self, line: Line) -> None:
        membership = join(line)
        line.machine.disconnected(0.1)
        call = begin(line, propose(line, membership, b"1"))
        assert [] == line.machine.outbox
        line.connect()
        assert call.result.approved

    def test_what_was_counted_is_not_kept(self, line: Line) -> None:
        membership = join(line)
        for _ in range(10):
            done(line, propose(line, membership, b"x"))
        line.at(0.6)
        assert 11 == line.machine._said.counted
        assert 0 == len(line.machine._said)

    def test_a_daemon_that_does_not_know_us_any_more_has_lost_everything(self, line: Line) -> None:
        membership = join(line)
        line.machine.disconnected(0.1)
        line.daemon.knows_the_session = False
        line.connect()
        assert LOST is line.machine.state
        assert ["Joined", "Suspended", "Lost"] == kinds(membership)

    def test_without_a_connection_all_is_lost_when_the_daemons_patience_ends(self, line: Line) -> None:
        line.machine.disconnected(1.0)
        line.machine.tick(0.9 + GRACE_S)
        assert SUSPENDED is line.machine.state
        line.machine.tick(1.0 + GRACE_S)
        assert LOST is line.machine.state

    def test_nothing_is_vouched_for_before_what_was_missed_has_been_told(self, line: Line) -> None:
        """A was expelled while its connection was broken. It must not believe for a moment that it still holds."""
        membership = join(line)
        group = line.daemon.group_of(membership.number)
        line.machine.disconnected(0.1)
        line.daemon.tell(wire.MessagesCame(membership.number, group.seq + 1, ("n2", 1, 1), (b"while you were away",)))
        line.daemon.tell(wire.MemberLost(membership.number, False, "expelled"))
        line.machine.connected(0.2)
        is_now, *missed = line.daemon.handle(line.machine.outbox.pop())
        line.machine.received([is_now], 0.2)
        assert (SUSPENDED, 0.0) == (line.machine.state, line.machine.valid_for(0.2))
        line.machine.received(missed, 0.2)
        assert membership.has_ended
        line.run()
        assert CONNECTED is line.machine.state

    def test_what_was_missed_is_read_before_that_it_is_resumed(self, line: Line) -> None:
        membership = join(line)
        line.machine.disconnected(0.1)
        line.daemon.tell(wire.MessagesCame(membership.number, 2, ("n2", 1, 1), (b"while you were away",)))
        line.connect()
        assert ["Joined", "Suspended", "Message", "Resumed"] == kinds(membership)

    def test_the_lease_of_a_resumed_session_counts_from_the_resuming(self, line: Line) -> None:
        line.machine.disconnected(0.1)
        line.machine.tick(2.5)
        assert SUSPENDED is line.machine.state
        line.now = 2.6
        line.connect()
        assert CONNECTED is line.machine.state
        assert 4.6 == line.machine.lease.until


def test_a_call_at_a_barrier_that_is_late_is_taken_back(line: Line) -> None:
    """Its daemon was stopped, and would believe that it waits when its program comes again."""
    membership = join(line)
    start = rounds.come(line.machine, membership, rounds.BarrierTerms("b", 0, "break"), b"", 1.0)
    call = start(line.now, 1.0)
    line.machine.outbox.clear()  # carried nowhere
    line.machine.tick(line.now + 1.6)
    assert isinstance(call.error, OutcomeUnknown)
    assert ["b"] == [one.barrier for one in line.machine.outbox if isinstance(one, wire.BreakAsk)]
