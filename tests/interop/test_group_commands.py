"""The commands about groups, as a user types them: processes of their own, real daemons, real groups."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from groupsvc import Answer, Failing, Group, GroupAttributes, Message, Phases, Proposal, ProposalKind, Session, Vote
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.testing import LocalDomain

from .typed_commands import command, environment, groupsvc

WAIT_S = 20.0
VOTED = GroupAttributes(state_phases=Phases.N, message_phases=Phases.N, time_limit=5.0)

MEMBER = """
import sys, groupsvc
with groupsvc.connect(sys.argv[1]) as session, session.join(sys.argv[2], name=sys.argv[3], events=True) as group:
    print("joined", flush=True)
    for event in group.events():
        pass
"""


def found(domain: LocalDomain, *arguments: str) -> Any:
    """The object that a command prints."""
    ended = groupsvc(domain, *arguments, "--json")
    assert ExitCode.OK == ended.returncode, ended.stderr
    return json.loads(ended.stdout)


class Watch:
    """``groupsvc watch`` in a process of its own."""

    def __init__(self, domain: LocalDomain, *arguments: str) -> None:
        self.process = subprocess.Popen(
            command("watch", *arguments), stdout=subprocess.PIPE, text=True, env=environment(domain, "n3")
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def found(self) -> dict[str, Any]:
        return json.loads(self.line())  # type: ignore[no-any-return]

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextlib.contextmanager
def member_process(domain: LocalDomain, node: str, group: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A member that can be killed."""
    arguments = [sys.executable, "-c", MEMBER, domain.address(node), group, name]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, env=environment(domain, node))
    try:
        assert process.stdout is not None
        assert b"joined\n" == process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def session(shared_domain: LocalDomain) -> Iterator[Session]:
    with shared_domain.connect("n1") as session:
        yield session


def join(session: Session, group: str, **options: Any) -> Group:
    return session.join(group, name=options.pop("name", "anna"), **options)


def test_groups_and_members_show_who_is_there(shared_domain: LocalDomain, session: Session) -> None:
    join(session, "cli/members", data=b"port 8080")
    assert "cli/members" in [group["name"] for group in found(shared_domain, "groups")["groups"]]
    view = found(shared_domain, "members", "cli/members")
    assert [("anna", "n1", "port 8080")] == [(one["name"], one["node"], one["data"]) for one in view["providers"]]
    table = groupsvc(shared_domain, "members", "cli/members").stdout.splitlines()
    assert "cli/members: 1 provider, state version 0, fence" in table[0]
    assert "anna" in table[2]


@pytest.mark.parametrize("arguments", [["members"], ["watch", "--for", "1"], ["state"], ["why"]])
def test_a_group_that_does_not_exist_is_exit_code_6(shared_domain: LocalDomain, arguments: list[str]) -> None:
    ended = groupsvc(shared_domain, arguments[0], "cli/nowhere", *arguments[1:])
    assert (ExitCode.NOT_FOUND, "") == (ended.returncode, ended.stdout)


@pytest.mark.parametrize("arguments", [["state", "cli/nowhere", "x"], ["send", "cli/nowhere", "x"]])
def test_a_change_does_not_form_a_group(shared_domain: LocalDomain, arguments: list[str]) -> None:
    assert ExitCode.NOT_FOUND == groupsvc(shared_domain, *arguments).returncode
    assert "cli/nowhere" not in [group["name"] for group in found(shared_domain, "groups")["groups"]]


def test_a_state_value_is_proposed_and_shown(shared_domain: LocalDomain, session: Session) -> None:
    group = join(session, "cli/state")
    ended = groupsvc(shared_domain, "state", "cli/state", "green")
    assert (ExitCode.OK, "cli/state: 'green', version 1\n") == (ended.returncode, ended.stdout)
    group.sync()
    assert b"green" == group.state
    assert ("green", 1) == tuple(
        found(shared_domain, "state", "cli/state")[name] for name in ("state", "state_version")
    )


def test_an_old_version_is_refused_with_exit_code_4(shared_domain: LocalDomain, session: Session) -> None:
    group = join(session, "cli/version")
    group.propose_state(b"green").require()
    ended = groupsvc(shared_domain, "state", "cli/version", "red", "--if-version", "0")
    assert ExitCode.FAILED == ended.returncode
    assert ended.stderr.startswith("groupsvc: ")
    assert b"green" == group.state
    told = groupsvc(shared_domain, "why", "cli/version").stdout
    assert "the leave of groupsvc-cli" in told
    assert "the failure of" not in told


def test_a_rejected_state_change_is_exit_code_9_and_why_says_who(shared_domain: LocalDomain, session: Session) -> None:
    def vote(proposal: Proposal) -> Vote | Answer:
        if proposal.kind is ProposalKind.STATE:
            return Answer(Vote.REJECT, message=b"not today")
        return Vote.APPROVE

    join(session, "cli/why", attributes=VOTED, on_proposal=vote)
    ended = groupsvc(shared_domain, "state", "cli/why", "red")
    assert ExitCode.REJECTED == ended.returncode
    assert "anna" in ended.stderr
    (ballot,) = [one for one in found(shared_domain, "why", "cli/why")["outcomes"] if one["kind"] == "STATE"]
    assert (False, "EXPLICIT_REJECT") == (ballot["approved"], ballot["reason"])
    votes = {one["provider"]["name"]: (one["vote"], one["default"]) for one in ballot["tally"]}
    assert {"anna": ("REJECT", None), "groupsvc-cli": ("APPROVE", None)} == votes
    text = groupsvc(shared_domain, "why", "cli/why").stdout
    expected = (
        "a change of the state value to 'red' (proposed by groupsvc-cli) was rejected in phase 1: somebody voted REJECT"
    )
    assert expected in text
    assert "'not today'" in text


def test_why_names_the_one_for_whom_a_default_vote_was_cast(shared_domain: LocalDomain, session: Session) -> None:
    group = join(session, "cli/default", attributes=GroupAttributes(state_phases=Phases.N, time_limit=0.5))
    join(session, "cli/default", name="sleepy", on_proposal=lambda proposal: None)
    assert group.propose_state(b"green")
    (ballot,) = [one for one in found(shared_domain, "why", "cli/default")["outcomes"] if one["kind"] == "STATE"]
    votes = {one["provider"]["name"]: (one["vote"], one["default"]) for one in ballot["tally"]}
    assert {"anna": ("APPROVE", None), "sleepy": ("APPROVE", "LATE")} == votes


def test_a_text_reaches_the_providers_with_its_sender(shared_domain: LocalDomain, session: Session) -> None:
    group = join(session, "cli/send", events=True)
    ended = groupsvc(shared_domain, "send", "cli/send", "good morning")
    assert (ExitCode.OK, "cli/send: sent, to 1 provider\n") == (ended.returncode, ended.stdout)
    message = next(event for event in group.events(timeout=WAIT_S) if isinstance(event, Message))
    assert message.sender is not None
    assert ("groupsvc-cli", b"good morning") == (message.sender.name, message.payload)


def test_watch_tells_of_joins_deaths_and_state_changes(shared_domain: LocalDomain, session: Session) -> None:
    group = join(session, "cli/watch", events=True)
    with Watch(shared_domain, "cli/watch", "--json") as watch:
        assert ("view", ["anna"]) == (lambda one: (one["event"], [p["name"] for p in one["providers"]]))(watch.found())
        with member_process(shared_domain, "n2", "cli/watch", "bert") as bert:
            assert ("Joined", "bert") == (lambda one: (one["event"], one["providers"][0]["name"]))(watch.found())
            bert.kill()
            event = watch.found()
            assert ("Left", "FAILURE", "bert") == (event["event"], event["cause"], event["providers"][0]["name"])
        assert any(isinstance(event, Failing) for event in group.events(timeout=1.0))
        group.propose_state(b"green")
        event = watch.found()
        assert ("StateChanged", "green", 1) == (event["event"], event["state"], event["state_version"])
        assert 1 == len(group.providers), "a watcher is no provider"


def test_watch_ends_with_ctrl_c_without_a_word(shared_domain: LocalDomain, session: Session) -> None:
    join(session, "cli/interrupted")
    with Watch(shared_domain, "cli/interrupted") as watch:
        assert "1 provider: anna at n1" in watch.line()
        watch.process.send_signal(signal.SIGINT)
        assert ExitCode.OK == watch.process.wait(timeout=WAIT_S)
        assert "" == watch.line()


def test_watch_waits_for_a_group_and_sees_it_end(shared_domain: LocalDomain, session: Session) -> None:
    with Watch(shared_domain, "cli/later", "--wait", "15") as watch:
        group = join(session, "cli/later")
        assert "anna" in watch.line()
        group.leave()
        lines = iter(watch.line, "")
        assert "dissolved" in list(lines)[-1]
        assert ExitCode.OK == watch.process.wait(timeout=WAIT_S)


def test_watch_of_the_hosts_tells_of_nodes(local_domain: LocalDomain) -> None:
    with Watch(local_domain, "_hosts", "--json") as watch:
        assert ["n1", "n2", "n3"] == sorted(one["name"] for one in watch.found()["providers"])
        local_domain.kill("n2")
        event = watch.found()
        assert ("Left", ["n2"]) == (event["event"], [one["name"] for one in event["providers"]])
        local_domain.restart("n2")
        event = watch.found()
        assert ("Joined", ["n2"]) == (event["event"], [one["name"] for one in event["providers"]])


def test_watch_of_a_daemon_that_dies_is_exit_code_3(local_domain: LocalDomain) -> None:
    with local_domain.connect("n1") as session:
        join(session, "cli/daemon")
        with Watch(local_domain, "cli/daemon") as watch:
            assert "anna" in watch.line()
            local_domain.kill("n3")
            assert ExitCode.UNREACHABLE == watch.process.wait(timeout=60)
