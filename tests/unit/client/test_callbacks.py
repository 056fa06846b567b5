"""The application's code, run by the blocking driver: votes, states, and what its errors do."""

from __future__ import annotations

import sys
import threading

import pytest

import groupsvc
from groupsvc import Answer, SessionState, Vote
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_on_a_socket import PATIENCE_S, DaemonOnASocket


class TestCallbacks:
    """One at a time, on a thread of their own, and they may call the API."""

    def test_on_proposal_votes(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        asked: list[groupsvc.Proposal] = []

        def vote(proposal: groupsvc.Proposal) -> Answer:
            asked.append(proposal)
            return Answer(Vote.REJECT, message=b"no")

        session.join("db", on_proposal=vote)
        daemon.tell(daemon.memory.opened(1))
        (cast,) = daemon.wait_for(wire.CastVote)
        assert isinstance(cast, wire.CastVote)
        assert ("reject", b"no") == (cast.vote, cast.message)
        assert ("db", 1, b"new") == (asked[0].group, asked[0].phase, asked[0].state)

    def test_an_error_is_no_vote_and_is_logged_and_reported(
        self,
        daemon: DaemonOnASocket,
        session: groupsvc.Session,
        caplog: pytest.LogCaptureFixture,
        reported: list[BaseException | None],
    ) -> None:
        def vote(proposal: groupsvc.Proposal) -> Vote:
            raise ZeroDivisionError("broken code")

        session.join("db", on_proposal=vote)
        daemon.tell(daemon.memory.opened(1))
        (cast,) = daemon.wait_for(wire.CastVote)
        assert isinstance(cast, wire.CastVote)
        assert cast.vote is None
        assert "broken code" in caplog.text
        assert ["broken code"] == [str(error) for error in reported]

    def test_what_is_said_with_a_vote_and_denied_is_an_error_and_no_vote(
        self, daemon: DaemonOnASocket, session: groupsvc.Session, reported: list[BaseException | None]
    ) -> None:
        session.join("db", on_proposal=lambda proposal: Answer(Vote.APPROVE, state=b"mine"))
        daemon.tell(daemon.memory.opened(1))
        (cast,) = daemon.wait_for(wire.CastVote)
        assert isinstance(cast, wire.CastVote)
        daemon.tell(wire.Problem(cast.id, "failed", "permission denied", "no rule allows it"))
        again = daemon.wait_for(wire.CastVote, 2)[-1]
        assert isinstance(again, wire.CastVote)
        assert again.vote is None
        session.join("other", on_proposal=lambda proposal: Vote.REJECT)
        daemon.tell(daemon.memory.opened(2))
        daemon.wait_for(wire.CastVote, 3)  # what was due before has been run
        assert [groupsvc.PermissionDenied] == [type(error) for error in reported]

    def test_what_is_no_vote_is_an_error_that_names_it(
        self, daemon: DaemonOnASocket, session: groupsvc.Session, reported: list[BaseException | None]
    ) -> None:
        session.join("db", on_proposal=lambda proposal: "yes")  # type: ignore[arg-type,return-value]
        daemon.tell(daemon.memory.opened(1))
        (cast,) = daemon.wait_for(wire.CastVote)
        assert isinstance(cast, wire.CastVote)
        assert cast.vote is None
        (error,) = reported
        assert isinstance(error, TypeError)
        assert "on_proposal returned 'yes'; it must return a Vote" in str(error)

    def test_a_listener_that_raises_is_reported_and_the_next_is_told(
        self, daemon: DaemonOnASocket, session: groupsvc.Session, reported: list[BaseException | None]
    ) -> None:
        told = threading.Event()

        def raises(state: SessionState) -> None:
            if state is SessionState.SUSPENDED:
                raise ZeroDivisionError(state.name)

        session.on_state(raises)
        session.on_state(lambda state: told.set())
        daemon.tell(wire.SessionNews("suspended", "no lease"))
        assert told.wait(PATIENCE_S)
        assert ["SUSPENDED"] == [str(error) for error in reported]

    def test_code_that_exits_is_an_error_like_any_other_and_the_next_is_asked(
        self, daemon: DaemonOnASocket, session: groupsvc.Session, reported: list[BaseException | None]
    ) -> None:
        """``sys.exit()`` in a thread ends the thread alone: nobody would vote here any more, and nobody know why."""
        session.on_state(lambda state: sys.exit("on_state") if state is SessionState.SUSPENDED else None)
        answers = iter([lambda: sys.exit("on_proposal"), lambda: Vote.REJECT])
        session.join("db", on_proposal=lambda proposal: next(answers)())
        daemon.tell(wire.SessionNews("suspended", "no lease"))
        for count in (1, 2):
            daemon.tell(daemon.memory.opened(1))
            casts = daemon.wait_for(wire.CastVote, count)
        assert [None, "reject"] == [cast.vote for cast in casts if isinstance(cast, wire.CastVote)]
        assert ["on_state", "on_proposal"] == [str(error.__cause__) for error in reported if error is not None]
        assert all("tell the main thread" in str(error) for error in reported)

    def test_none_votes_later_from_any_thread(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        def vote(proposal: groupsvc.Proposal) -> None:
            threading.Thread(target=lambda: proposal.vote(Vote.CONTINUE)).start()

        session.join("db", on_proposal=vote)
        daemon.tell(daemon.memory.opened(1))
        (cast,) = daemon.wait_for(wire.CastVote)
        assert isinstance(cast, wire.CastVote)
        assert "continue" == cast.vote

    def test_a_callback_may_call_but_not_propose(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        found: list[object] = []

        def vote(proposal: groupsvc.Proposal) -> Vote:
            found.append(group.sync())
            found.append(group.multicast(b"hello"))
            group.flush()
            try:
                group.propose_state(b"x")
            except groupsvc.UsageError as error:
                found.append(error)
            return Vote.APPROVE

        group = session.join("db", on_proposal=vote)
        daemon.tell(daemon.memory.opened(1))
        daemon.wait_for(wire.CastVote)
        assert isinstance(found[2], groupsvc.UsageError)
        assert "another thread" in str(found[2])

    def test_states_are_told(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        states: list[SessionState] = []
        told = threading.Event()

        @session.on_state
        def changed(state: SessionState) -> None:
            states.append(state)
            told.set()

        daemon.tell(wire.SessionNews("lost", "declared down"))
        assert told.wait(PATIENCE_S)
        assert [SessionState.LOST] == states
