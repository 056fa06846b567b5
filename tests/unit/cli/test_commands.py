"""The ``groupsvc`` command: tables for people, objects for programs, documented exit codes, no stack traces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from groupsvc.cli import main
from groupsvc.cli.dev import _introduction
from groupsvc.cli.exit_codes import EXIT_CODES_TEXT, ExitCode
from groupsvc.testing.scripted_daemon import Script, ScriptedDaemon
from groupsvc.wire.client_messages import AnyClientRequest, Done, GroupRecord, HandOverAsk, Problem, Statistics, Status
from groupsvc.wire.enrolment_messages import NodeKeyLine, NodeKeysAre, RevokeAsk, Revoked
from groupsvc.wire.table_lines import NodeStatus

NODES = (
    NodeStatus("n1", 11, "up", "tcp://127.0.0.1:15000", True, True),
    NodeStatus("n2", 22, "down", "tcp://127.0.0.1:15003", True, False),
    NodeStatus("n4", 0, "up", "", False, False),
)


def healthy(request: AnyClientRequest) -> Status:
    return Status(
        request.id, "n1", 11, "ab" * 16, "name server", "leader is me", "n1", 5, 3, 1.75, False, "", NODES, 4, 4
    )


def suspended(request: AnyClientRequest) -> Status:
    trouble = "needs n2, or a witness"
    return Status(request.id, "n1", 11, "ab" * 16, "voter", "voting open", "", 5, 3, 0.0, True, trouble, NODES, 4, 4)


def run(script: Script, *arguments: str) -> int:
    with ScriptedDaemon(script) as daemon:
        return main([*arguments, "--address", daemon.address, "--timeout", "5"])


def test_status_shows_nodes_roles_and_lease(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(healthy, "status") == ExitCode.OK
    head, columns, first, second, third = capsys.readouterr().out.splitlines()
    assert head == "asked n1 (name server): name server is n1, epoch 5, lease 1.8 s"
    assert columns.split() == ["NODE", "ROLE", "STATUS", "INCARNATION", "ADDRESS"]
    assert first.split() == ["n1", "name", "server", "up", "11", "tcp://127.0.0.1:15000"]
    assert second.split() == ["n2", "voter", "down", "22", "tcp://127.0.0.1:15003"]
    assert third.split() == ["n4", "node", "up", "-", "-"]


def test_status_of_a_suspended_node_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(suspended, "status") == ExitCode.NOT_SERVING
    out = capsys.readouterr().out
    assert "suspended" in out
    assert "the nodes as last known here, which may be old:" in out
    assert "trouble: needs n2, or a witness" in out


PARTS = {
    "domain": {"has_leader": True, "lease_left": 1.8125, "nodes": {"up": 3, "down": 0}},
    "counted": {
        "ordered_entries": 120_455,
        "protocols": {"join": {"count": 4, "sum": 0.02, "up_to": {"0.005": 4}}, "state": {"count": 0, "sum": 0.0}},
        "marks": {},
    },
    "peers": {"links": [{"node": f"p{n}\n", "frames_sent": n} for n in range(30)]},
}


def counted(request: AnyClientRequest) -> Statistics:
    return Statistics(request.id, PARTS)


def test_statistics_are_a_line_for_each_number(capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-05. What a program called itself begins no line of its own."""
    assert run(counted, "statistics") == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert ["domain", "  has_leader yes", "  lease_left 1.812", "  nodes up 3, down 0", "counted"] == [
        line if not line.startswith(" ") else "  " + " ".join(line.split()) for line in lines[:5]
    ]
    assert "protocols.join 4, on average 0.005" == " ".join(lines[6].split())
    assert "protocols.state 0" == " ".join(lines[7].split())
    assert "marks none" == " ".join(lines[8].split())
    assert "    node p0\\n, frames_sent 0" == lines[11]
    assert "    and 10 more" == lines[-1]


def test_statistics_as_object_are_what_the_daemon_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(counted, "statistics", "--json") == ExitCode.OK
    assert PARTS == json.loads(capsys.readouterr().out)


def test_status_as_object_has_every_field_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(healthy, "status", "--json") == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert found["name_server"] == "n1"
    assert found["nodes"][1] == {
        "name": "n2",
        "incarnation": 22,
        "status": "down",
        "address": "tcp://127.0.0.1:15003",
        "voter": True,
        "name_server": False,
    }


class Daemons:
    """What ``dev`` tells of a domain."""

    def __init__(self, nodes: int) -> None:
        self.names = self.voters = [f"n{number}" for number in range(1, nodes + 1)]

    def pid(self, name: str) -> int:
        return 1000 + int(name[1:])

    def address(self, name: str) -> str:
        return f"ipc:///tmp/{name}.sock"


def test_dev_proposes_to_kill_a_daemon_that_nobody_was_told_to_ask() -> None:
    lines = _introduction(Daemons(3), 0.5).splitlines()  # type: ignore[arg-type]
    assert "a domain of 3 daemons, ready after 0.5 s; Ctrl-C ends it" == lines[0]
    assert ["  export GROUPSVC_ADDRESS=ipc:///tmp/n1.sock", "  groupsvc status"] == lines[-4:-2]
    assert ["  groupsvc hand-over n3", "  kill -9 1003"] == lines[-2:]


def test_a_domain_of_one_has_nobody_to_hand_over_to() -> None:
    lines = _introduction(Daemons(1), 0.5).splitlines()  # type: ignore[arg-type]
    assert "a domain of 1 daemon, ready after 0.5 s; Ctrl-C ends it" == lines[0]
    assert "  groupsvc status" == lines[-1]


def test_dev_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["dev", "--help"])
    assert "Start a domain of several daemons here" in capsys.readouterr().out


def test_look_up_names_leader_and_servers(capsys: pytest.CaptureFixture[str]) -> None:
    def found(request: AnyClientRequest) -> GroupRecord:
        return GroupRecord(request.id, True, False, 7, "db", 9, "n1", ("n1", "n2"))

    assert run(found, "look-up", "db") == ExitCode.OK
    assert capsys.readouterr().out == "db: id 7, epoch 9, led by n1, held by n1, n2\n"


def test_look_up_of_nothing_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    def missing(request: AnyClientRequest) -> GroupRecord:
        return GroupRecord(request.id, False, False, 0, "db", 0, "", ())

    assert run(missing, "look-up", "db") == ExitCode.NOT_FOUND
    said = capsys.readouterr().err
    assert said.startswith("groupsvc: there is no group 'db'; ")
    assert "`groupsvc groups`" in said


def test_hand_over_names_the_voter(capsys: pytest.CaptureFixture[str]) -> None:
    def done(request: AnyClientRequest) -> Done:
        assert isinstance(request, HandOverAsk)
        assert request.to == "n2"
        return Done(request.id)

    assert run(done, "hand-over", "n2") == ExitCode.OK
    assert "n2 is name server\n" == capsys.readouterr().out
    assert run(done, "hand-over", "n2", "--json") == ExitCode.OK
    assert {"name_server": "n2"} == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "family,expected", [("failed", ExitCode.FAILED), ("unknown", ExitCode.UNKNOWN), ("usage", ExitCode.USAGE)]
)
def test_a_refusal_is_a_sentence_and_an_exit_code(
    family: str, expected: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(request: AnyClientRequest) -> Problem:
        return Problem(request.id, family, "", "n9 is no voter")  # type: ignore[arg-type]

    assert run(refuse, "hand-over", "n9") == expected
    written = capsys.readouterr().err
    assert written.startswith("groupsvc: ")
    assert "n9 is no voter" in written
    assert "Traceback" not in written


def test_no_daemon_says_how_to_start_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--address", f"ipc://{tmp_path}/none"]) == ExitCode.UNREACHABLE
    assert "groupsvc dev" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["status", "--nonsense"], ["dev", "--nodes", "0"], ["dev", "--nodes", "x"], ["look-up"],
                  ["look-up", "\udcff\udcfe"], ["look-up", "x" * 201], ["hand-over", "n\0"],
                  ["hand-over", ""]]
)  # fmt: skip
def test_a_wrong_command_line_is_refused_by_argparse(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == ExitCode.USAGE


def test_an_answer_that_cannot_be_written_has_an_exit_code_of_its_own() -> None:
    with ScriptedDaemon(healthy) as daemon, open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "groupsvc.cli", "status", "--address", daemon.address]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=20, check=False)
    assert ended.returncode == ExitCode.OUTPUT
    assert "groupsvc: the answer could not be written: No space left on device\n" == ended.stderr


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ExitCode.USAGE
    assert "hand-over" in capsys.readouterr().err


def test_every_exit_code_is_documented() -> None:
    described = [line.split()[0] for line in EXIT_CODES_TEXT.splitlines()[1:]]
    assert [str(int(code)) for code in ExitCode] == described


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == ExitCode.OK
    assert capsys.readouterr().out.startswith("groupsvc ")


@pytest.mark.parametrize(
    "kind,words",
    [("key", "the other nodes do not hear it any more"), ("file", "is heard until that line is taken out")],
)
def test_what_is_revoked_and_stands_in_a_file_is_still_heard(
    kind: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(request: AnyClientRequest) -> Revoked | NodeKeysAre:
        if isinstance(request, RevokeAsk):
            return Revoked(request.id, request.node, "key", 7)
        other = "n4" if kind == "file" else "n5"
        return NodeKeysAre(request.id, 0, (NodeKeyLine(other, "file", "x" * 40),))

    assert run(answer, "token", "--revoke", "n4") == ExitCode.OK
    assert words in capsys.readouterr().out
