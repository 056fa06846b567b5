"""Real daemons: a domain forms, is joined, answers, hands over, and ends cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from groupsvc.cli import main
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.drivers.connection import DaemonConnection
from groupsvc.errors import Failed, GroupServiceError, OutcomeUnknown, StaleVersion
from groupsvc.testing import DaemonCrashed, DomainNotReady, LocalDomain


def test_three_daemons_form_a_domain_with_one_name_server(shared_domain: LocalDomain) -> None:
    """GS-01, DIST-01: all three see the same name server, epoch and nodes."""
    leader = shared_domain.wait_for_name_server()
    seen = {name: shared_domain.status(name) for name in shared_domain.names}
    for status in seen.values():
        assert status is not None
        assert status.name_server == leader
        assert not status.suspended
        assert [(node.name, node.status) for node in status.nodes if node.voter] == [
            (name, "up") for name in sorted(shared_domain.voters)
        ]
    assert len({status.epoch for status in seen.values() if status is not None}) == 1
    assert len({status.domain for status in seen.values() if status is not None}) == 1


def test_a_group_formed_at_one_node_is_found_at_every_node(shared_domain: LocalDomain) -> None:
    """K1: a look-up sees what was formed before it."""
    with DaemonConnection(shared_domain.address("n1")) as connection:
        formed = connection.look_up("seen-everywhere", form=True)
    assert formed.exists
    assert formed.formed
    assert formed.leader == "n1"
    for name in shared_domain.names:
        with DaemonConnection(shared_domain.address(name)) as connection:
            found = connection.look_up("seen-everywhere")
            assert (found.exists, found.formed, found.group, found.leader) == (True, False, formed.group, "n1")
            assert not connection.look_up("never-formed").exists


def test_of_two_who_form_the_same_group_one_leads(shared_domain: LocalDomain) -> None:
    """The second to ask gets the record of the first."""
    answers = []
    for name in ("n2", "n3"):
        with DaemonConnection(shared_domain.address(name)) as connection:
            answers.append(connection.look_up("formed-twice", form=True))
    assert [answer.formed for answer in answers] == [True, False]
    assert {answer.leader for answer in answers} == {"n2"}


def test_a_setting_is_changed_once_per_version(shared_domain: LocalDomain) -> None:
    """K1: compare-and-set over the whole domain."""
    with (
        DaemonConnection(shared_domain.address("n1")) as anna,
        DaemonConnection(shared_domain.address("n3")) as bert,
    ):
        before = anna.config_get("hour")
        written = anna.config_set("hour", "3", if_version=before.version)
        with pytest.raises(StaleVersion):
            bert.config_set("hour", "5", if_version=before.version)
        after = bert.config_get("hour")
        assert (after.value, after.version) == ("3", written.version)


def test_the_name_server_is_handed_over_on_request(shared_domain: LocalDomain) -> None:
    """The office goes to the voter named, without anybody being suspended or declared down."""
    old = shared_domain.wait_for_name_server()
    to = next(name for name in shared_domain.voters if name != old)
    before = {name: incarnation_of(shared_domain, name) for name in shared_domain.names}
    shared_domain.hand_over(to)
    shared_domain.wait_until_up()
    assert {name: incarnation_of(shared_domain, name) for name in shared_domain.names} == before


def test_a_hand_over_to_nobody_is_refused(shared_domain: LocalDomain) -> None:
    """It says who could be it. Whoever had to ask twice cannot know that it *failed*: one of them may have done it."""
    with DaemonConnection(shared_domain.address("n1")) as connection:
        with pytest.raises((Failed, OutcomeUnknown), match="nobody is no voter; the voters are n1, n2, n3"):
            connection.hand_over("nobody", timeout=5.0)
        assert connection.status().name_server != ""


def test_a_fourth_node_joins_and_is_served(shared_domain: LocalDomain) -> None:
    """GS-01: a node that is no voter joins by itself, asks, and is missed when it is killed."""
    shared_domain.add("n4")
    try:
        with DaemonConnection(shared_domain.address("n4")) as connection:
            status = connection.status()
            assert status.role == "node"
            assert {node.name for node in status.nodes if node.status == "up"} == {"n1", "n2", "n3", "n4"}
            assert connection.look_up("of-the-fourth", form=True).leader == "n4"
        shared_domain.kill("n4")
        _wait_for_line(shared_domain, "n4", "down")
        shared_domain.restart("n4")
    finally:
        shared_domain.remove("n4")
    _wait_for_line(shared_domain, "n4", "gone", "down")


def test_a_daemon_that_is_asked_to_end_says_goodbye(shared_domain: LocalDomain) -> None:
    """SIGTERM: exit code 0, and the others need no time-out to know."""
    other = next(name for name in shared_domain.names if name != shared_domain.wait_for_name_server())
    shared_domain.terminate(other)
    assert shared_domain.exit_code(other) == 0
    _wait_for_line(shared_domain, other, "gone", "down")


def test_one_node_is_a_domain_of_its_own() -> None:
    """The embedded default: no configuration of voters at all would do the same."""
    with LocalDomain(nodes=1) as domain, DaemonConnection(domain.address("n1")) as connection:
        assert connection.status().role == "name server"
        assert connection.look_up("alone", form=True).formed


def test_two_voters_without_each_other_suspend_and_say_what_they_need() -> None:
    """GS-43: the survivor of two does not go on alone."""
    with LocalDomain(nodes=2) as domain:
        domain.kill("n2")

        def suspended() -> bool:
            status = domain.status("n1")
            return status is not None and status.suspended and "n2" in status.trouble

        domain.wait_until(suspended, "n1 says that it needs n2")
        assert domain.name_server() is None
        with (
            DaemonConnection(domain.address("n1")) as connection,
            pytest.raises(GroupServiceError),
        ):
            connection.look_up("anything", form=True, timeout=0.5)
        domain.restart("n2")
        domain.wait_until_up()


def test_a_domain_over_ipc_sockets_works_too() -> None:
    with LocalDomain(nodes=3, transport="ipc") as domain:
        old = domain.wait_for_name_server()
        domain.kill(old)
        assert domain.wait_for_name_server() != old


def test_the_status_command_shows_a_real_domain(shared_domain: LocalDomain, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--address", shared_domain.address("n2")]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "name server" in out
    assert all(name in out for name in shared_domain.names)


def test_threads_of_a_test_may_ask_for_the_same_status_at_once(shared_domain: LocalDomain) -> None:
    """The connection behind it is kept, and is for one at a time."""
    name = shared_domain.names[0]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: shared_domain.status(name), range(200)))
    assert {name} == {None if status is None else status.node for status in found}


def test_a_domain_that_cannot_start_quotes_its_daemons() -> None:
    """Whoever reads the failed run needs no log files, which are gone by then."""
    domain = LocalDomain(nodes=2, settings={"nonsense": 1})
    with pytest.raises(DomainNotReady, match="nonsense: is no option"):
        domain.start()
    assert not domain.directory.exists()


def test_the_dev_command_runs_a_domain_until_it_is_interrupted() -> None:
    """It prints what to type next; Ctrl-C ends it with exit code 0 and no daemon is left."""
    command = [sys.executable, "-m", "groupsvc.cli", "dev", "--nodes", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment_of_a_user()) as dev:
        assert dev.stdout is not None
        lines: list[str] = []
        while not any("name server is n1" in line for line in lines):
            lines.append(dev.stdout.readline())
            assert lines[-1], "it ended early"
        text = "".join(lines)
        pid = int(text.partition("process ")[2].split()[0])
        address = text.partition("GROUPSVC_ADDRESS=")[2].split()[0]
        assert main(["status", "--address", address]) == ExitCode.OK
        dev.send_signal(signal.SIGINT)
        assert dev.wait(timeout=20) == ExitCode.OK
    assert not _is_alive(pid)


def test_no_daemon_outlives_a_program_that_was_killed(tmp_path: Path) -> None:
    """The daemons of a test run that gets SIGKILL end, and their files go."""
    program = (
        "import sys\n"
        "from groupsvc.testing import LocalDomain\n"
        "domain = LocalDomain(nodes=1)\n"
        "domain.start()\n"
        "print(domain.pid('n1'), domain.directory, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment_of_a_user()
    ) as parent:
        assert parent.stdout is not None
        pid, directory = parent.stdout.readline().decode().split()
        parent.kill()
    waiting = LocalDomain(nodes=1, directory=tmp_path)
    waiting.wait_until(lambda: not Path(directory).exists() and not _is_alive(int(pid)), "nothing is left")


def incarnation_of(domain: LocalDomain, name: str) -> int:
    status = domain.status(name)
    assert status is not None
    return status.incarnation


def environment_of_a_user() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _wait_for_line(domain: LocalDomain, name: str, *wanted: str) -> None:
    def listed() -> bool:
        leader = domain.name_server()
        status = domain.status(leader) if leader else None
        return status is not None and any(node.name == name and node.status in wanted for node in status.nodes)

    domain.wait_until(listed, f"{name} is listed as {' or '.join(wanted)}")


def test_a_daemon_that_crashed_is_told_also_if_it_was_started_again() -> None:
    """A library in C aborts it, a test restarts all that do not run, and nobody would ever know."""

    def story() -> None:
        with LocalDomain(nodes=1) as domain:
            os.kill(domain.pid("n1"), signal.SIGABRT)
            domain.wait_until(lambda: domain.exit_code("n1") is not None, "it has ended")
            domain.heal()

    with pytest.raises(DaemonCrashed, match="n1 was ended by SIGABRT"):
        story()


def test_who_is_killed_has_not_crashed() -> None:
    with LocalDomain(nodes=1) as domain:
        domain.kill("n1")
        domain.check_for_crashes()
        domain.heal()
