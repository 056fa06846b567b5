"""``groupsvc doctor``: what is wrong is found, called by its name, and comes with what to do about it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groupsvc.cli import main
from groupsvc.cli.checks import configuration, domain, files, owners
from groupsvc.cli.checks.configuration import Judged
from groupsvc.cli.checks.findings import Finding, Level
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.testing.scripted_daemon import ScriptedDaemon
from groupsvc.wire.client_messages import (
    AnyClientReply,
    AnyClientRequest,
    OptionsAre,
    OptionsAsk,
    Status,
    StatusAsk,
    SurveyAsk,
    SurveyIs,
)
from groupsvc.wire.survey_messages import LinkFinding, LinkState, NodeFindings
from groupsvc.wire.table_lines import NodeStatus, OptionLine

GOOD: dict[str, Any] = {
    "good": True, "node": "n1", "voter": True, "voters": {}, "insecure": False, "key_file": None, "node_keys": {},
    "state_directory": None, "state_file": "state.db", "state_lock": "lock", "state_format": 3, "clients_max": 10,
    "leader_silent_s": 1.0,
}  # fmt: skip


def judged(**content: Any) -> Judged:
    return Judged("n1.toml", {**GOOD, **content})


def levels(found: list[Finding]) -> list[tuple[str, str]]:
    return [(one.check, one.level.value) for one in found]


def only(found: list[Finding]) -> Finding:
    (one,) = found
    return one


def answers(
    name: str, version: str = "1.0", skew_s: float = 0.0, suspended: bool = False, **links: LinkState
) -> NodeFindings:
    found = tuple(LinkFinding(node, state, 0.1) for node, state in links.items())
    return NodeFindings(name, True, version, skew_s, 0.002, suspended, found)


# --- The configuration and its keys --------------------------------------------------------------------------


def test_the_configuration_is_judged_as_the_daemon_judges_it(tmp_path: Path) -> None:
    file = tmp_path / "n1.toml"
    file.write_text('node = "n1"\n')
    good, found = configuration.judge(str(file))
    assert "n1" == good.text("node")
    assert [("configuration", "OK")] == levels(found)
    file.write_text("node = 1\nlog_level = 'loud'\n")
    bad, found = configuration.judge(str(file))
    assert bad.content is None
    assert [("configuration", "FAIL")] * 2 == levels(found)
    assert f"{file}:1: node: must be text" in found[0].text
    assert "--check-config" in found[0].advice


def test_a_node_whose_own_key_stands_in_no_file_is_not_told_to_write_it_there(tmp_path: Path) -> None:
    """It was enrolled; what stands in files nobody can revoke."""
    file = tmp_path / "n1.key"
    file.write_text("")
    file.chmod(0o600)
    found = configuration.look_at_keys(judged(key_file=str(file), node_keys={"n2": ["a", "b"]}, voter=False))
    assert [("keys", "OK"), ("keys", "OK"), ("keys", "WARN")] == levels(found)
    assert "mode 0600" in found[0].text
    assert "n1 itself stands in no file here" in found[1].text
    assert "two keys are accepted for n2" in found[2].text
    found = configuration.look_at_keys(judged(key_file=str(file), node_keys={"n2": ["a"]}, voter=True))
    assert ("keys", "WARN") == levels(found)[1], "keys of voters stand in all files"


def test_no_keys_are_well_on_one_machine_and_worth_a_look_beyond() -> None:
    assert Level.OK is only(configuration.look_at_keys(judged())).level
    assert Level.WARN is only(configuration.look_at_keys(judged(insecure=True))).level


def test_without_a_file_the_one_that_the_daemon_has_read_is_found(tmp_path: Path) -> None:
    lines = (
        OptionLine("domain", "x", "environment GROUPSVC_DOMAIN", "essential"),
        OptionLine("node", "n1", f"{tmp_path}/n1.toml:3", "node"),
    )
    assert f"{tmp_path}/n1.toml" == configuration.file_read_by(lines)
    assert "" == configuration.file_read_by([OptionLine("node", "n1", "n1.toml:3", "node")])  # below which directory?


def test_without_a_file_nothing_is_said_that_the_daemon_has_not_said() -> None:
    unknown = only(configuration.not_looked_at(()))
    assert (Level.WARN, True) == (unknown.level, unknown.text.startswith("not looked at"))
    keyed = [OptionLine("key_file", "/k/n1.key", "n1.toml:3", "node"), OptionLine("state_directory", "/s", "x", "node")]
    found = configuration.not_looked_at(keyed)
    assert [("configuration", "WARN"), ("keys", "OK")] == levels(found)
    assert "keeps its state in /s" in found[0].text
    assert "/k/n1.key" in found[1].text
    assert configuration.NO_KEYS == configuration.not_looked_at([OptionLine("node", "n1", "default", "node")])[1].text


def test_who_may_not_read_the_configuration_is_told_who_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "n1.toml"
    file.write_text("")
    file.chmod(0o640)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != file)  # root may read everything
    judgement, found = configuration.judge(str(file))
    assert judgement.content is None
    seen = file.stat()
    may = f"user {owners.user_name(seen.st_uid)} and group {owners.group_name(seen.st_gid)}"
    assert f"not looked at: {file} may be read by {may}, and not by this user" == only(found).text
    assert "sudo" in only(found).advice


# --- The socket ----------------------------------------------------------------------------------------------


def test_a_socket_says_who_may_open_it(tmp_path: Path) -> None:
    path = tmp_path / "client.sock"
    missing = only(files.look_at_socket(f"ipc://{path}"))
    assert (Level.FAIL, True) == (missing.level, bool(missing.advice))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        path.chmod(0o660)
        closed = only(files.look_at_socket(f"ipc://{path}"))
        assert (Level.OK, True) == (closed.level, "mode 0660" in closed.text and "and group" in closed.text)
        path.chmod(0o666)
        assert Level.WARN is only(files.look_at_socket(f"ipc://{path}")).level
    path.unlink()
    path.write_text("")
    assert "is no socket" in only(files.look_at_socket(f"ipc://{path}")).text
    assert [] == files.look_at_socket("tcp://10.0.0.1:7402")


# --- The state directory, the disk, descriptors --------------------------------------------------------------


def state_of(path: Path, version: int = 3) -> None:
    database = sqlite3.connect(path / "state.db")
    database.execute(f"PRAGMA user_version = {version}")
    database.execute("CREATE TABLE t (x)")
    database.commit()
    database.close()


def test_a_state_directory_is_looked_at_and_not_touched(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    state_of(tmp_path)
    before = sorted(os.listdir(tmp_path))
    found = files.look_at_state(judged(state_directory=str(tmp_path)), runs=False)
    assert {("state directory", "OK")} == set(levels(found))
    assert "is not in use" in found[-1].text
    assert before == sorted(os.listdir(tmp_path))


def test_state_of_another_version_and_what_is_no_state_fails(tmp_path: Path) -> None:
    state_of(tmp_path, version=2)
    texts = [one.text for one in files.look_at_state(judged(state_directory=str(tmp_path)), runs=False)]
    assert any("has format 2, and this groupsvcd knows 3" in text for text in texts)
    (tmp_path / "state.db").write_bytes(b"nonsense")
    found = files.look_at_state(judged(state_directory=str(tmp_path)), runs=False)
    assert [Level.FAIL] == [one.level for one in found if "is damaged" in one.text]


def test_who_has_locked_the_state_directory_is_named(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert files.holder_of(tmp_path / "lock") in (os.getpid(), 0)
        found = files.look_at_state(judged(state_directory=str(tmp_path)), runs=False)
        assert (Level.WARN, True) == (found[-1].level, "in use by" in found[-1].text)
        assert Level.OK is files.look_at_state(judged(state_directory=str(tmp_path)), runs=True)[-1].level
    assert files.holder_of(tmp_path / "lock") is None
    assert Level.WARN is files.look_at_state(judged(state_directory=str(tmp_path)), runs=True)[-1].level


def test_a_directory_that_others_may_change_is_worth_a_look(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    found = files.look_at_state(judged(state_directory=str(tmp_path)), runs=False)
    assert [f"chmod 700 {tmp_path}"] == [one.advice for one in found if one.level is Level.WARN]
    tmp_path.chmod(0o700)


def test_a_state_directory_that_is_not_there_yet_is_no_failure(tmp_path: Path) -> None:
    found = only(files.look_at_state(judged(state_directory=str(tmp_path / "a/b")), runs=False))
    assert (Level.WARN, True) == (found.level, "makes it at its first start" in found.text)
    (tmp_path / "file").write_text("")
    assert Level.FAIL is only(files.look_at_state(judged(state_directory=str(tmp_path / "file")), runs=False)).level


@pytest.mark.parametrize("slowest,expected", [(0.001, Level.OK), (0.06, Level.WARN), (1.5, Level.FAIL)])
def test_a_disk_is_judged_by_how_long_a_write_takes(
    slowest: float, expected: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "sync_times", lambda directory: [slowest] * 3)
    assert expected is only(files.look_at_disk(judged(state_directory=str(tmp_path)))).level


def test_measuring_the_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    try:
        times = files.sync_times(str(tmp_path))
    except OSError:
        pytest.skip("this file system has no files without a name (O_TMPFILE)")
    assert files.SYNCS == len(times)
    assert [] == os.listdir(tmp_path)


def test_too_few_descriptors_are_noticed() -> None:
    assert Level.WARN is only(files.look_at_descriptors(judged(clients_max=10**9), nodes=2)).level
    assert Level.OK is only(files.look_at_descriptors(judged(clients_max=1), nodes=2)).level


# --- The domain ----------------------------------------------------------------------------------------------


def test_nodes_that_reach_one_another_at_the_same_time_and_version_are_well() -> None:
    found = domain.look_at_survey([answers("n1", n2="connected"), answers("n2", n1="connected")], ["n1", "n2"])
    assert [("reachability", "OK"), ("clocks", "OK"), ("versions", "OK")] == levels(found)


@pytest.mark.parametrize(
    "state,word",
    [
        ("refused", "start its daemon"),
        ("not let in", "[node_keys]"),
        ("not listed", "enrol"),
        ("connecting", "firewall"),
        ("broken", "logs"),
    ],
)
def test_a_way_that_is_open_in_one_direction_is_found(state: LinkState, word: str) -> None:
    found = domain.look_at_survey([answers("n1", n2=state), answers("n2", n1="connected")], ["n1", "n2"])
    bad = only([one for one in found if one.level is Level.FAIL])
    assert f"n1 does not reach n2 ({state}), though n2 reaches n1" == bad.text
    assert word in bad.advice


def test_ways_to_nodes_that_are_known_to_be_away_are_no_finding() -> None:
    found = domain.look_at_survey([answers("n1", n3="refused"), NodeFindings("n3", False)], ["n1"])
    assert not [one for one in found if one.level is Level.FAIL]


def test_who_is_up_and_does_not_answer_is_named() -> None:
    found = domain.look_at_survey([answers("n1"), NodeFindings("n2", False)], ["n1", "n2"])
    assert "n2 is up, and did not answer" == found[0].text


@pytest.mark.parametrize(
    "skew_s,expected,words",
    [
        (0.1, Level.OK, "at most 0.101 s"),
        (-2.5, Level.WARN, "n2 is 2.5 s behind"),
        (90.0, Level.FAIL, "n2 is 90.0 s ahead"),
    ],
)
def test_clocks_that_differ_by_much_are_found(skew_s: float, expected: Level, words: str) -> None:
    found = domain.look_at_survey([answers("n1"), answers("n2", skew_s=skew_s)], [])
    clocks = only([one for one in found if one.check == "clocks"])
    assert expected is clocks.level
    assert words in clocks.text


def test_a_difference_that_may_be_the_way_of_the_answer_is_none() -> None:
    slow = NodeFindings("n2", True, "1.0", 0.9, 1.0)
    found = domain.look_at_survey([answers("n1"), slow], [])
    assert Level.OK is only([one for one in found if one.check == "clocks"]).level


def test_different_versions_are_named() -> None:
    found = domain.look_at_survey([answers("n1", "1.0"), answers("n2", "1.1"), answers("n3", "1.0")], [])
    assert "1.0: n1, n3; 1.1: n2" == only([one for one in found if one.check == "versions"]).text


def test_both_ports_of_a_node_are_tried(tmp_path: Path) -> None:
    assert ["tcp://10.0.0.1:7400", "tcp://10.0.0.1:7401"] == domain.endpoints_of("tcp://10.0.0.1:7400")
    path = tmp_path / "n2"
    with socket.socket(socket.AF_UNIX) as frames:
        frames.bind(str(path))
        frames.listen()
        half = only(domain.look_at_ports({"n2": f"ipc://{path}"}))
        assert (Level.WARN, True, False) == (half.level, f"{path}.pub" in half.text, f"{path}: " in half.text)


# --- The command ---------------------------------------------------------------------------------------------


def healthy(request: AnyClientRequest) -> AnyClientReply:
    if isinstance(request, OptionsAsk):
        return OptionsAre(request.id, "n1", ())
    if isinstance(request, SurveyAsk):
        return SurveyIs(request.id, (answers("n1"),))
    assert isinstance(request, StatusAsk)
    nodes = (NodeStatus("n1", 1, "up", "", True, True),)
    return Status(request.id, "n1", 1, "", "name server", "", "n1", 5, 3, 1.7, False, "", nodes, 4, 4)


def test_of_an_old_list_nobody_is_expected_to_answer() -> None:
    """Two of three were killed, and who is left has not been told: no name server tells it anything."""
    status = healthy(StatusAsk(1))
    assert isinstance(status, Status)
    assert ["n1"] == domain.who_should_answer(status)
    assert [] == domain.who_should_answer(msgspec.structs.replace(status, suspended=True))
    assert [] == domain.who_should_answer(msgspec.structs.replace(status, name_server=""))


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("GROUPSVC_"):
            monkeypatch.delenv(name)
    path = tmp_path / "n1.toml"
    path.write_text('node = "n1"\n')
    return path


def test_a_domain_that_is_well_is_told_so(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedDaemon(healthy) as daemon:
        Path(daemon.address.removeprefix("ipc://")).chmod(0o660)
        assert ExitCode.OK == main(["doctor", "--config", str(config), "--address", daemon.address])
        lines = capsys.readouterr().out.splitlines()
        assert lines[-1].endswith("0 WARN, 0 FAIL")
        assert ExitCode.OK == main(["doctor", "--config", str(config), "--address", daemon.address, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"]
    assert {"check", "level", "text", "advice"} == set(found["findings"][0])


def test_with_a_daemon_that_is_down_the_files_are_told_of(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text(f'node = "n1"\nclient_address = "ipc://{config.parent}/none.sock"\n')
    assert ExitCode.UNHEALTHY == main(["doctor", "--config", str(config)])
    out = capsys.readouterr().out
    assert f"OK    configuration    {config} is good" in out
    assert "FAIL  socket" in out
    assert f"FAIL  daemon           no daemon at ipc://{config.parent}/none.sock" in out


def test_an_older_daemon_that_does_not_know_the_question_is_no_stack_trace(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def older(request: AnyClientRequest) -> AnyClientReply | bytes:
        return b"nonsense" if isinstance(request, SurveyAsk) else healthy(request)

    with ScriptedDaemon(older) as daemon:
        assert ExitCode.UNHEALTHY == main(["doctor", "--config", str(config), "--address", daemon.address])
    captured = capsys.readouterr()
    assert "it may be of another version" in captured.out
    assert "Traceback" not in captured.err


def test_a_bad_address_is_refused_before_anything_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.USAGE == main(["doctor", "--address", "nonsense"])
    assert "is no address of a daemon" in capsys.readouterr().err
