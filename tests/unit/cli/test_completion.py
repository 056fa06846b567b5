"""Completion, by the shells themselves: commands, options, values, and the names that a daemon knows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from groupsvc.cli import completion, main
from groupsvc.cli.command_tree import Command, tree_of
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.cli.main import whole_parser
from groupsvc.testing.scripted_daemon import ScriptedDaemon, reply_frame
from groupsvc.wire import client_messages as wire
from groupsvc.wire.table_lines import GroupLine, NodeStatus

BASH = r"""
source "$1"
COMP_LINE="$2" COMP_POINT=${#2}
_groupsvc
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def program() -> Command:
    return tree_of(whole_parser())


def script(shell: str, directory: Path) -> Path:
    path = directory / f"groupsvc.{shell}"
    path.write_text(completion.SCRIPTS[shell](tree_of(whole_parser())))
    return path


def completed(line: str, directory: Path, **environment: str) -> list[str]:
    """What a real bash proposes for this line."""
    command = directory / "groupsvc"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m groupsvc.cli "$@"\n')
    command.chmod(0o755)
    common = {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = ["bash", "--norc", "-c", BASH, "bash", str(script("bash", directory)), line]
    ended = subprocess.run(
        arguments, capture_output=True, text=True, timeout=60, env={**common, **environment}, cwd=directory
    )
    assert "" == ended.stderr
    return ended.stdout.split()


def answer(request: wire.AnyClientRequest) -> bytes:
    match request:
        case wire.OpenSession():
            return reply_frame(wire.SessionIs(request.id, 5, b"secret", 0, 3.0, ("n1", 7, 0)))
        case wire.SessionAlive():
            return reply_frame(wire.SessionAliveAck(request.id, 99, 3.0))
        case wire.GroupsAsk():
            lines = tuple(GroupLine(name, 7, 9, "n1", ("n1",), {}) for name in ("web/front", "db", "dbs"))
            return reply_frame(wire.GroupsAre(request.id, lines))
        case wire.StatusAsk():
            nodes = tuple(NodeStatus(name, 1, "up", "", True, False) for name in ("n2", "n1"))
            status = wire.Status(request.id, "n1", 1, "", "voter", "", "n1", 5, 3, 1.7, False, "", nodes, 4, 4)
            return reply_frame(status)
        case _:
            return reply_frame(wire.Done(request.id))


# --- bash ----------------------------------------------------------------------------------------------------


def test_commands_and_their_beginnings_are_completed(tmp_path: Path, program: Command) -> None:
    assert [command.words[0] for command in program.commands] == completed("groupsvc ", tmp_path)
    assert ["status", "statistics", "state"] == completed("groupsvc sta", tmp_path)
    assert [] == completed("groupsvc nonsense", tmp_path)


def test_options_of_the_command_are_completed_and_no_others(tmp_path: Path) -> None:
    assert ["--json"] == completed("groupsvc status --j", tmp_path)
    assert ["--for"] == completed("groupsvc watch db --f", tmp_path)
    assert [] == completed("groupsvc groups --for", tmp_path)


@pytest.mark.parametrize("line", ["groupsvc status --color a", "groupsvc status --color=a"])
def test_values_of_which_there_are_only_some_are_completed(line: str, tmp_path: Path) -> None:
    assert ["auto", "always"] == completed(line, tmp_path)


def test_files_are_proposed_where_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "n1.key").write_text("")
    assert ["n1.key"] == completed("groupsvc status --keys n1", tmp_path)
    (tmp_path / "keys").mkdir()
    assert ["keys"] == completed("groupsvc keygen --out ke", tmp_path)


def test_a_command_that_is_run_is_completed_as_a_command(tmp_path: Path) -> None:
    assert "bash" in completed("groupsvc lock x --try -- bas", tmp_path)
    (tmp_path / "groupsvc.data").write_text("")
    assert "groupsvc.data" in completed("groupsvc lock x -- cat groupsvc.d", tmp_path)


def test_groups_and_nodes_are_asked_of_the_daemon(tmp_path: Path) -> None:
    with ScriptedDaemon(answer) as daemon:
        assert ["db", "dbs"] == completed("groupsvc members d", tmp_path, GROUPSVC_ADDRESS=daemon.address)
        assert ["n1", "n2"] == completed("groupsvc hand-over ", tmp_path, GROUPSVC_ADDRESS=daemon.address)
        line = f"groupsvc members --address {daemon.address} we"
        assert ["web/front"] == completed(line, tmp_path, GROUPSVC_ADDRESS="ipc:///nowhere")


def test_without_a_daemon_nothing_is_proposed_and_nothing_said(tmp_path: Path) -> None:
    assert [] == completed("groupsvc members d", tmp_path, GROUPSVC_ADDRESS=f"ipc://{tmp_path}/none")


# --- The others ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_itself_can_read_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    ended = subprocess.run([shell, "-n", str(script(shell, tmp_path))], capture_output=True, text=True, timeout=30)
    assert (0, "") == (ended.returncode, ended.stderr)


def test_zsh_proposes_the_same_commands(tmp_path: Path, program: Command) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("there is no zsh on this machine")
    text = 'compdef() { :; }; source "$1"; command= before= place=0 behind=0; _groupsvc_next ""'
    ended = subprocess.run(
        ["zsh", "-f", "-c", text, "zsh", str(script("zsh", tmp_path))], capture_output=True, text=True, timeout=30
    )
    assert [command.words[0] for command in program.commands] == ended.stdout.split()


def test_fish_proposes_the_same_commands(tmp_path: Path, program: Command) -> None:
    if shutil.which("fish") is None:
        pytest.skip("there is no fish on this machine")
    text = f"source {script('fish', tmp_path)}; complete -C 'groupsvc '"
    ended = subprocess.run(["fish", "--no-config", "-c", text], capture_output=True, text=True, timeout=30)
    proposed = {line.split("\t")[0] for line in ended.stdout.splitlines()}
    assert {command.words[0] for command in program.commands} <= proposed


def test_the_rules_for_fish_name_every_command_and_option(program: Command) -> None:
    rules = completion.fish(program)
    for command in program.commands:
        assert f"-a {command.words[0]} -d " in rules
        for option in command.options:
            assert all(f"-l {flag[2:]}" in rules for flag in option.flags if flag.startswith("--"))


# --- The command ---------------------------------------------------------------------------------------------


def test_a_script_is_printed_for_each_shell(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in completion.SCRIPTS:
        assert ExitCode.OK == main(["completion", shell])
        assert f"Completion of groupsvc for {shell}" in capsys.readouterr().out
    for wrong in (["completion"], ["completion", "csh"]):
        with pytest.raises(SystemExit) as ended:
            main(wrong)
        assert ExitCode.USAGE == ended.value.code


def test_every_option_is_explained(program: Command) -> None:
    unexplained = [
        f"{command.name} {option.flags}" for command in program.all() for option in command.options if not option.help
    ]
    assert [] == unexplained
