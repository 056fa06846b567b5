"""Rules of access on real daemons: keys and users of the machine, refused and let in, with a record of it."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import groupsvc
from groupsvc import PermissionDenied
from groupsvc.drivers.connection import DaemonConnection
from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import environment

NOBODY = 65534

RULES = (
    {"who": ["key:client"], "groups": ["db-*", "_lock/db-*"], "may": ["create", "join", "send"]},
    {"who": [f"user:{NOBODY}"], "groups": ["public"], "may": ["subscribe"]},
)


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalDomain]:
    journal = tmp_path_factory.mktemp("journal")
    with LocalDomain(nodes=1, keys=True, settings={"access": RULES, "journal_directory": str(journal)}) as made:
        yield made


@pytest.fixture
def far(ruled: LocalDomain) -> Iterator[groupsvc.Session]:
    with groupsvc.connect(ruled.remote_address("n1"), keys=ruled.keys) as session:
        yield session


def test_a_key_may_do_what_its_rule_says_and_nothing_else(far: groupsvc.Session) -> None:
    with far.join("db-1") as group, far.lock("db-1"):
        group.send(b"x")
        group.multicast(b"y")
        group.flush()
        with pytest.raises(
            PermissionDenied, match=r"key:client to propose in group 'db-1'; one that would: \[\[access"
        ):
            group.propose_state(b"x")
    for denied in (lambda: far.join("other"), lambda: far.subscribe("db-1"), lambda: far.lock("other").acquire()):
        with pytest.raises(PermissionDenied):
            denied()


def test_what_is_said_with_a_vote_needs_its_right_and_a_bare_vote_none(
    ruled: LocalDomain, far: groupsvc.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vote on one's own leave is no way to another state."""
    reported: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.put(args.exc_value))
    attributes = groupsvc.GroupAttributes(leave_phases=groupsvc.Phases.N, time_limit=20.0)
    with ruled.connect("n1") as session, session.join("db-vote", attributes=attributes) as group:
        voter = far.join("db-vote", on_proposal=groupsvc.MANUAL, events=True)

        def vote() -> None:
            event = next(event for event in voter.events() if isinstance(event, groupsvc.Proposed))
            event.proposal.vote(groupsvc.Vote.APPROVE, state=b"taken")
            denied.append(reported.get(timeout=10.0))
            event.proposal.vote(groupsvc.Vote.APPROVE)

        denied: list[BaseException | None] = []
        thread = threading.Thread(target=vote)
        thread.start()
        assert voter.leave().approved
        thread.join()
        (error,) = denied
        assert isinstance(error, PermissionDenied)
        assert "key:client to propose in group 'db-vote'; one that would: [[access]]" in str(error)
        assert b"" == group.view.state


def test_a_key_administers_nothing_unless_that_is_said(ruled: LocalDomain) -> None:
    with DaemonConnection(ruled.remote_address("n1"), keys=ruled.keys) as connection:
        with pytest.raises(PermissionDenied, match="administer the domain"):
            connection.hand_over("n1")
        with pytest.raises(PermissionDenied, match="administer the domain"):
            connection.config_get("daemon/keys/n1")
        assert 0 == connection.config_get("daemon/log_level").version
        assert "n1" == connection.status().node


def test_the_user_of_the_daemon_may_do_everything(ruled: LocalDomain) -> None:
    with ruled.connect("n1") as session, session.join("whatever") as group:
        assert group.propose_state(b"x").approved


WATCH = """
import os, sys, groupsvc
address, user = sys.argv[1], int(sys.argv[2])
with groupsvc.connect(address) as session:
    session.subscribe("public").close()  # all that is needed is imported: the other user may not read it
os.setgroups([])
os.setgid(user)
os.setuid(user)
with groupsvc.connect(address) as session:
    session.subscribe("public").close()
    try:
        session.join("public")
    except groupsvc.PermissionDenied as problem:
        print(problem)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_user_of_the_machine_is_known_by_the_kernel(ruled: LocalDomain) -> None:
    """Whoever may open the socket is let in, and judged by its user."""
    path = Path(ruled.address("n1").removeprefix("ipc://"))
    before = {place: place.stat().st_mode for place in (path, *path.parents[:3])}
    try:
        for place in before:
            place.chmod(0o777)
        with ruled.connect("n1") as session, session.join("public"):
            run = subprocess.run(
                [sys.executable, "-c", WATCH, ruled.address("n1"), str(NOBODY)],
                capture_output=True, text=True, timeout=60, env=environment(),
            )  # fmt: skip
    finally:
        for place, mode in before.items():
            place.chmod(mode & 0o7777)
    assert f"no rule of this node allows user:{NOBODY} to join in group 'public'" in run.stdout, run.stderr


def test_who_came_and_who_was_refused_is_on_record(ruled: LocalDomain, far: groupsvc.Session) -> None:
    with pytest.raises(PermissionDenied):
        far.join("secret")
    ruled.wait_until(lambda: "audit access_denied who='key:client'" in ruled.logs("n1"), "it is in the log")
    journal = Path(str(ruled._node("n1").settings["journal_directory"]))

    def lines() -> str:
        return "".join(file.read_text() for file in journal.glob("*.ndjson"))

    ruled.wait_until(lambda: '"name":"secret"' in lines(), "it is in the journal")
    for op in ("client_admitted", "key_admitted", "access_denied"):
        assert f'"op":"{op}"' in lines()
    assert ruled.keys.secret not in lines() + ruled.logs("n1")


def test_rules_are_read_again_while_it_runs(ruled: LocalDomain, far: groupsvc.Session) -> None:
    node = ruled._node("n1")
    before = dict(node.settings)
    with far.join("db-2", events=True) as group:
        node.write_config({**before, "access": RULES[1:]})
        os.kill(ruled.pid("n1"), signal.SIGHUP)
        lost = next(event for event in group.events() if isinstance(event, groupsvc.Lost))
        assert "no rule of this node allows key:client to join in group 'db-2'" in lost.reason
        with pytest.raises(PermissionDenied):
            far.join("db-3")
    node.write_config(before)
    os.kill(ruled.pid("n1"), signal.SIGHUP)
    ruled.wait_until(lambda: may_join(far, "db-3"), "the old rules are in force again")


def may_join(session: groupsvc.Session, group: str) -> bool:
    try:
        session.join(group).goodbye()
    except PermissionDenied:
        return False
    return True
