"""The table of nodes, and colours: for a terminal, and for nobody who reads by program."""

from __future__ import annotations

import io
import json

import pytest

from groupsvc.cli import colours, main, node_table
from groupsvc.cli.dev import _Log, _Objects
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.cli.tables import aligned, painted
from groupsvc.testing.scripted_daemon import ScriptedDaemon
from groupsvc.wire.client_messages import AnyClientRequest, Status
from groupsvc.wire.table_lines import NodeStatus

STARTED_US = 1_763_261_234_567_890
NODES = (
    NodeStatus("n1", STARTED_US, "up", "tcp://127.0.0.1:15000", True, True),
    NodeStatus("n2", 22, "down", "tcp://127.0.0.1:15003", True, False),
    NodeStatus("n4", 0, "gone", "", False, False),
)
HEALTHY = Status(
    0, "n1", STARTED_US, "ab" * 16, "name server", "leader is me", "n1", 5, 3, 1.75, False, "", NODES, 4, 4
)
SUSPENDED = Status(0, "n1", STARTED_US, "ab" * 16, "voter", "voting open", "", 5, 3, 0.0, True, "needs n2", NODES, 4, 4)


class Screen(io.StringIO):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        return True


def run(status: Status, *arguments: str) -> int:
    def script(request: AnyClientRequest) -> Status:
        return Status(request.id, *(getattr(status, name) for name in Status.__struct_fields__[1:]))

    with ScriptedDaemon(script) as daemon:
        return main([*arguments, "--address", daemon.address, "--timeout", "5"])


def test_nodes_are_listed_with_since_when_each_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run(HEALTHY, "nodes")
    head, first, second, third = capsys.readouterr().out.splitlines()
    assert ["NODE", "ROLE", "STATUS", "STARTED", "INCARNATION", "ADDRESS"] == head.split()
    assert f"* n1 name server up 2025-11-16 02:47:14Z {STARTED_US} tcp://127.0.0.1:15000" == " ".join(first.split())
    assert "n2 voter down - 22 tcp://127.0.0.1:15003" == " ".join(second.split())
    assert "n4 node gone - - -" == " ".join(third.split())


def test_nodes_of_a_suspended_node_may_be_old_and_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.NOT_SERVING == run(SUSPENDED, "nodes")
    out = capsys.readouterr().out
    assert out.startswith("the nodes as last known here, which may be old:\n")
    assert out.endswith("trouble: needs n2\n")


def test_nodes_as_objects_tell_role_and_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run(HEALTHY, "nodes", "--json")
    found = json.loads(capsys.readouterr().out)
    assert ("n1", True, "") == (found["asked"], found["serving"], found["trouble"])
    assert [("name server", "2025-11-16T02:47:14Z"), ("voter", None), ("node", None)] == [
        (node["role"], node["started"]) for node in found["nodes"]
    ]


def test_an_incarnation_that_was_counted_is_no_time() -> None:
    for number in (0, 1, 10**15 - 1, 10**16, 2**63 - 1):
        assert node_table.started_at(NodeStatus("n1", number, "up", "", True, False)) is None


# --- Colours -------------------------------------------------------------------------------------------------


def test_a_pipe_gets_no_colours_and_a_terminal_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert colours.plain is colours.paint_for("auto", io.StringIO())
    assert colours.plain is colours.paint_for("auto", None)
    assert colours.coloured is colours.paint_for("auto", Screen())


@pytest.mark.parametrize("name,value", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colours_is_heard(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)
    assert colours.plain is colours.paint_for("auto", Screen())
    assert colours.coloured is colours.paint_for("always", io.StringIO())
    assert colours.plain is colours.paint_for("never", Screen())


@pytest.mark.parametrize("command", ["status", "nodes"])
def test_what_is_coloured_says_the_same(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(SUSPENDED, command)
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    run(SUSPENDED, command, "--color", "always")
    coloured = capsys.readouterr().out
    assert "\x1b[31m" in coloured
    for code in ("\x1b[0m", *(f"\x1b[{code}m" for code in colours._CODES.values())):
        coloured = coloured.replace(code, "")
    assert plain == coloured


def test_colours_take_no_room_in_a_table() -> None:
    rows = [[("a", None), ("bb", None)], [("ccc", None), ("", None)]]
    assert ["a    bb", "ccc"] == painted(rows, colours.plain) == aligned([["a", "bb"], ["ccc", ""]])
    assert "\x1b[32ma\x1b[0m    bb" == painted([[("a", "good"), ("bb", None)], rows[1]], colours.coloured)[0]


def test_what_others_have_chosen_cannot_paint() -> None:
    evil = Status(0, "n1", 1, "", "voter", "", "", 5, 3, 0.0, True, "\x1b[2Jgone", NODES, 4, 4)
    lines = node_table.lines_of(evil, colours.coloured)
    assert not any("\x1b[2J" in line for line in lines)


# --- dev without a terminal ----------------------------------------------------------------------------------


def test_dev_does_not_say_up_of_nodes_that_nobody_hears() -> None:
    out = io.StringIO()
    log = _Log(out)
    log.show(HEALTHY)
    log.show(SUSPENDED)
    healthy, suspended = out.getvalue().splitlines()
    assert "asked n1 (name server): name server is n1, epoch 5: n1 up, n2 down, n4 gone" == healthy
    assert "no name server; nodes as last known there, which may be old: n1 up, n2 down" in suspended
    assert suspended.endswith("trouble: needs n2")


def test_dev_prints_an_object_for_every_change() -> None:
    out = io.StringIO()
    objects = _Objects(out)
    for status in (HEALTHY, HEALTHY, None, SUSPENDED):
        objects.show(status)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(True, True), (False, None), (True, False)] == [(one["answers"], one.get("serving")) for one in found]
