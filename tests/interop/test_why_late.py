"""Real daemons: who waits in vain is told why. Not "not approved in time" where nobody could approve anything."""

from __future__ import annotations

import re

import pytest

import groupsvc
from groupsvc.cli import main
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.testing import LocalDomain

from .typed_commands import groupsvc as typed


def test_before_the_domain_is_formed_calls_say_so_and_whom_it_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Only one of three voters was started."""
    with LocalDomain(nodes=3) as domain:
        for name in domain.names:
            domain.kill(name)
            domain.lose_state(name)
        domain.restart("n1", wait=False)
        domain.wait_until(lambda: domain.status("n1") is not None, "n1 answers")
        waits = "the domain is not formed yet: waits for n2, n3"
        with domain.connect("n1") as session:
            assert session.state is groupsvc.SessionState.SUSPENDED
            with pytest.raises(groupsvc.TimedOut) as joining:
                session.join("db", timeout=0.5)
            assert f"could not join group 'db': {waits}; it was withdrawn" == str(joining.value)
            with pytest.raises(groupsvc.TimedOut) as listing:
                session.groups(timeout=0.5)
            assert f"could not list the groups: {waits}" == str(listing.value)
        options = ["--address", domain.address("n1"), "--timeout", "0.5"]
        assert ExitCode.FAILED == main(["groups", *options])
        advice = "try again, or wait longer with --timeout S"
        assert f"groupsvc: could not list the groups: {waits}; {advice}\n" == capsys.readouterr().err
        assert ExitCode.FAILED == main(["look-up", "orders", *options])
        assert f"groupsvc: could not look up group 'orders': {waits}; {advice}\n" == capsys.readouterr().err


def test_a_suspended_node_says_since_when_and_whom_it_needs() -> None:
    with LocalDomain(nodes=2) as domain, domain.connect("n1") as session, session.join("db") as group:
        domain.kill("n2")
        domain.wait_until(lambda: session.state is groupsvc.SessionState.SUSPENDED, "n1 is suspended")
        why = r"n1 has been suspended for \d+\.\d s: no majority of voters; needs n2, or a witness"
        # Its silence must be longer than that of a voter which is only slow, before it is said to be away.
        domain.wait_until(lambda: "n2" in session.status().trouble, "n1 says that it needs n2")
        with pytest.raises(groupsvc.TimedOut, match=f"^could not join group 'other': {why}; it was withdrawn$"):
            session.join("other", timeout=0.5)
        with pytest.raises(groupsvc.OutcomeUnknown, match=f"{why}; its outcome can be asked for later$"):
            group.propose_state(b"red", timeout=0.5)
        with pytest.raises(groupsvc.TimedOut, match=f"^could not catch up with group 'db': {why}$"):
            group.sync(timeout=0.5)
        tried = typed(domain, "lock", "door", "--try", "--", "echo", "mine", node="n1")
        assert (ExitCode.FAILED, "") == (tried.returncode, tried.stdout), "not LATE: nobody says that others have it"
        nobody = f"groupsvc: nobody said within 10 s whether lock 'door' is free: .*{why}.*\n"
        assert re.fullmatch(nobody, tried.stderr), tried.stderr
        domain.restart("n2")
        assert group.propose_state(b"blue").approved
