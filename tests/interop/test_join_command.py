"""``groupsvc join``: a shell that is a provider, sees what happens, and votes by a word, a command, or by hand."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from groupsvc import Cause, DefaultCast, GroupAttributes, Left, Outcome, Phases, Session, Vote
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.testing import LocalDomain

from .typed_commands import Typed, groupsvc, wait_until

WAIT_S = 20.0
VOTED = GroupAttributes(state_phases=Phases.N, time_limit=5.0, default_vote=Vote.REJECT)


@pytest.fixture
def session(shared_domain: LocalDomain) -> Iterator[Session]:
    with shared_domain.connect("n1") as session:
        yield session


def told(shell: Typed, event: str) -> Any:
    """The next event of this name that the command prints."""
    while True:
        found = json.loads(shell.says())
        if event == found["event"]:
            return found


def vote_of(outcome: Outcome, name: str) -> tuple[Vote, DefaultCast]:
    (found,) = [(one.vote, one.default) for one in outcome.tally if name == one.provider.name]
    return found


def test_it_is_a_provider_sees_what_happens_and_leaves(shared_domain: LocalDomain, session: Session) -> None:
    with (
        session.join("join/seen", name="anna", events=True) as group,
        Typed(shared_domain, "join", "join/seen", "--name", "shell", "--json") as shell,
    ):
        assert {"anna", "shell"} == {one["name"] for one in told(shell, "view")["providers"]}
        group.send(b"hello")
        message = told(shell, "Message")
        assert ("anna", "hello") == (message["sender"]["name"], message["payload"])
        shell.process.terminate()
        assert ExitCode.OK == shell.ends()
        left = next(event for event in group.events(timeout=WAIT_S) if isinstance(event, Left))
        assert ("shell", Cause.LEAVE) == (left.providers[0].name, left.cause), "it was asked to end, it has not failed"


@pytest.mark.parametrize("word, approved", [("approve", True), ("reject", False)])
def test_it_votes_what_it_was_told(shared_domain: LocalDomain, session: Session, word: str, approved: bool) -> None:
    group = session.join(f"join/{word}", name="anna", attributes=VOTED)
    with Typed(shared_domain, "join", f"join/{word}", "--name", "shell", "--vote", word, "--json") as shell:
        told(shell, "view")
        outcome = group.propose_state(b"green")
        assert approved is outcome.approved
        assert (Vote[word.upper()], DefaultCast.NOT) == vote_of(outcome, "shell")
        verdict = {"kind": "JOIN"}
        while "JOIN" == verdict["kind"]:  # of those that had come before
            verdict = told(shell, "Approved" if approved else "Rejected")["outcome"]
        assert ("STATE", approved, "green") == (verdict["kind"], verdict["approved"], verdict["state"])


def test_a_command_decides(shared_domain: LocalDomain, session: Session) -> None:
    group = session.join("join/by", name="anna", attributes=VOTED)
    decides = """python3 -c '
import json, os, sys
proposal = json.load(sys.stdin)
assert os.environ["GROUPSVC_GROUP"] == "join/by" and os.environ["GROUPSVC_KIND"] == proposal["kind"] == "STATE"
sys.exit({"good": 0, "bad": 1}.get(proposal["state"], 2 if proposal["phase"] == 1 else 0))'"""
    with Typed(shared_domain, "join", "join/by", "--name", "shell", "--vote-by", decides) as shell:
        assert "2 providers" in shell.says()
        assert group.propose_state(b"good").approved
        assert not group.propose_state(b"bad").approved
        twice = group.propose_state(b"two phases")
        assert (True, 2) == (twice.approved, twice.phases)


@pytest.mark.parametrize("command, why", [("exit 7", "ended with 7"), ("sleep 60", "did not end in time")])
def test_a_command_that_finds_no_vote_makes_none_up(
    shared_domain: LocalDomain, session: Session, command: str, why: str
) -> None:
    name = f"join/none-{command.split()[0]}"
    brief = GroupAttributes(state_phases=Phases.N, time_limit=1.0, default_vote=Vote.REJECT)
    group = session.join(name, name="anna", attributes=brief)
    with Typed(shared_domain, "join", name, "--name", "shell", "--vote-by", command) as shell:
        assert "2 providers" in shell.says()
        outcome = group.propose_state(b"green")
        vote, default = vote_of(outcome, "shell")
        assert (False, Vote.REJECT) == (outcome.approved, vote)
        wait_until("it says so", lambda: why in shell.complains())
        assert DefaultCast.LATE is default
        shell.process.send_signal(signal.SIGINT)
        assert ExitCode.OK == shell.ends()


def test_what_is_typed_counts_for_the_question_that_was_shown(shared_domain: LocalDomain, session: Session) -> None:
    group = session.join("join/typed", name="anna", attributes=VOTED)
    with Typed(shared_domain, "join", "join/typed", "--name", "shell", "--vote", "ask") as shell:
        assert "2 providers" in shell.says()
        shell.tell("reject")
        wait_until("it was too early", lambda: "nothing is to be voted on" in shell.complains())
        with ThreadPoolExecutor(1) as aside:
            outcome = aside.submit(group.propose_state, b"green")
            wait_until("it asks", lambda: "phase 1" in shell.complains())
            shell.tell("perhaps")
            shell.tell("approve")
            assert (Vote.APPROVE, DefaultCast.NOT) == vote_of(outcome.result(WAIT_S), "shell")
        assert "'perhaps' is none of approve, reject, continue" in shell.complains()
        shell.tell("reject")
        wait_until("it was too late", lambda: "was cast already" in shell.complains())
        assert shell.process.stdin is not None
        shell.process.stdin.close()
        assert (Vote.REJECT, DefaultCast.LATE) == vote_of(group.propose_state(b"blue"), "shell"), "nobody can answer"


def test_who_is_sent_away_is_told(shared_domain: LocalDomain, session: Session) -> None:
    group = session.join("join/sent-away", name="anna")
    with Typed(shared_domain, "join", "join/sent-away", "--name", "shell") as shell:
        assert "2 providers" in shell.says()
        group.sync()
        group.expel(next(one for one in group.providers if "shell" == one.name), reason="no longer needed").require()
        assert ExitCode.LOST == shell.ends()
        assert "sent us away from group 'join/sent-away'" in shell.complains()


def test_it_ends_by_itself_and_forms_no_group_if_told(shared_domain: LocalDomain) -> None:
    assert ExitCode.OK == groupsvc(shared_domain, "join", "join/short", "--for", "0.2").returncode
    missing = groupsvc(shared_domain, "join", "join/not-there", "--no-create")
    assert ExitCode.NOT_FOUND == missing.returncode, missing.stderr
    wrong = groupsvc(shared_domain, "join", "_hosts")
    assert ExitCode.USAGE == wrong.returncode, wrong.stderr
