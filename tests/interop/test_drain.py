"""Real daemons that are drained: by a signal, by the command, one after the other, and stopped in the middle of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

import groupsvc
from groupsvc import Cause, GroupAttributes, Left, Message, Phases, Proposed
from groupsvc.testing import LocalDomain

PATIENCE_S = 20.0
SLOW = GroupAttributes(state_phases=Phases.N, time_limit=3.0)


def command(domain: LocalDomain, node: str, *options: str) -> subprocess.CompletedProcess[str]:
    """``groupsvc drain`` for this node."""
    address = domain.address(node)
    arguments = [sys.executable, "-m", "groupsvc.cli", "drain", "--address", address, *options]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60)


def exit_code(domain: LocalDomain, node: str) -> int | None:
    """How its daemon has ended, when it has."""
    domain.wait_until(lambda: domain.exit_code(node) is not None, f"{node} ends", timeout=PATIENCE_S)
    return domain.exit_code(node)


def _propose(group: groupsvc.Group) -> None:
    """What came of it is not known to who proposed it, or it failed."""
    with contextlib.suppress(groupsvc.GroupServiceError):
        group.propose_state(b"x")


def _refusal(domain: LocalDomain, node: str) -> str:
    """Why somebody who comes now is not taken."""
    for _ in range(1_000):
        try:
            domain.connect(node).close()
        except groupsvc.Draining as draining:
            return str(draining)
    return ""


def test_every_node_in_turn_is_drained_and_started_and_nothing_is_lost(local_domain: LocalDomain) -> None:
    """A rolling restart under load: who stays in the group hears every message once, and nobody is thought dead."""
    domain = local_domain
    sent: list[bytes] = []
    with domain.connect("n2") as watching:
        watcher = watching.join("db", events=True)
        for node in ("n1", "n3"):
            with domain.connect(node) as session:
                member = session.join("db")
                sent += [f"{node} {number}".encode() for number in range(50)]
                for payload in sent[-50:]:
                    member.multicast(payload)
                member.flush()
                done = command(domain, node)
                assert (0, f"{node} is drained and has ended\n") == (done.returncode, done.stdout), done.stderr
                assert 0 == exit_code(domain, node)
            domain.restart(node)
        heard: list[bytes] = []
        causes: list[Cause] = []
        for event in watcher.events(timeout=PATIENCE_S):
            if isinstance(event, Message):
                heard.append(event.payload)
            elif isinstance(event, Left):
                causes.append(event.cause)
            if len(causes) == 2:
                break
        assert sent == heard
        assert [Cause.GOODBYE, Cause.GOODBYE] == causes


def test_the_name_server_is_drained_by_a_signal_and_another_takes_over(local_domain: LocalDomain) -> None:
    domain = local_domain
    node = domain.name_server()
    with domain.connect(node) as session:
        session.join("db")
        os.kill(domain.pid(node), signal.SIGUSR2)
        assert 0 == exit_code(domain, node)
    assert domain.wait_for_name_server() != node
    log = domain.logs(node)
    assert "draining on SIGUSR2" in log
    assert "no longer name server" in log
    assert "yields to" in log
    assert "drained: nothing is left to hand over" in log


def test_a_program_is_told_why_and_a_late_one_where_to_go(local_domain: LocalDomain) -> None:
    domain = local_domain
    with domain.connect("n1") as waiting, domain.connect("n2") as voting:
        first = waiting.join("slow", attributes=SLOW)
        second = voting.join("slow", attributes=SLOW, events=True)
        proposing = threading.Thread(target=_propose, args=(first,))
        proposing.start()
        assert any(isinstance(event, Proposed) for event in second.events(timeout=PATIENCE_S)), "it is being voted on"
        os.kill(domain.pid("n1"), signal.SIGUSR2)
        assert "n1 is being drained and begins nothing new: use the daemon of another node" in _refusal(domain, "n1")
        proposing.join(PATIENCE_S)
        assert 0 == exit_code(domain, "n1")


def test_a_stop_during_a_drain_is_a_stop(local_domain: LocalDomain) -> None:
    """There is no majority, so the drain waits."""
    domain = local_domain
    with domain.connect("n1") as session:
        session.join("db")
        domain.kill("n2")
        domain.kill("n3")
        os.kill(domain.pid("n1"), signal.SIGUSR2)
        os.kill(domain.pid("n1"), signal.SIGTERM)
        assert 0 == exit_code(domain, "n1")


def test_a_node_that_cannot_hand_over_ends_in_time_and_says_what_was_left(local_domain: LocalDomain) -> None:
    domain = local_domain
    with domain.connect("n1") as session:
        session.join("db")
        domain.kill("n2")
        domain.kill("n3")
        done = command(domain, "n1", "--timeout", "4")
        assert 124 == done.returncode, done
        assert "groups: 'db'" in done.stdout
        assert 0 == exit_code(domain, "n1")
