"""What ``groupsvc journal`` says and returns; what it finds is tested with real daemons and with the simulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from groupsvc.cli import main
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent, to_line


def journal(directory: Path, node: str, leader: str, *, first: int = 1, torn: bytes = b"") -> Path:
    """A node that says who leads a view; the same epoch everywhere."""
    file = directory / f"{node}.1.000001.ndjson"
    args = {"leader": leader, "members": ["n1", "n2"], "k": 2}
    lines = [
        HistoryEvent(v=SCHEMA_VERSION, i=first + place, t=1.0, boot="1", node=node, op=op, group=7, epoch=3, args=args)
        for place, op in enumerate(("promise", "view_installed"))
    ]
    file.write_bytes(b"".join(map(to_line, lines)) + torn)
    return file


def test_journals_that_fit_together_end_well_and_it_says_what_was_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal(tmp_path, "n1", "n1")
    journal(tmp_path, "n2", "n1", torn=b'{"v"')
    assert ExitCode.OK == main(["journal", "check", str(tmp_path)])
    captured = capsys.readouterr()
    assert "4 lines, 0 contradictions" in captured.out
    assert "the last line of n2.1, file 1, which is torn" in captured.out.partition("not checked:")[2]
    assert "reading n1.1.000001.ndjson" in captured.err


def test_a_contradiction_has_its_rule_its_places_and_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal(tmp_path, "n1", "n1")
    journal(tmp_path, "n2", "n2")
    assert ExitCode.CONTRADICTION == main(["journal", "check", "--quiet", "--json", str(tmp_path)])
    [told] = json.loads(capsys.readouterr().out)["contradictions"]
    assert ("V3", ["n1.1.000001.ndjson", "n2.1.000001.ndjson"]) == (
        told["rule"], [Path(file).name for file, _ in told["places"]],
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments, code", [(["check", "DIR"], ExitCode.CONTRADICTION), (["show", "FILE"], ExitCode.OK)]
)
def test_a_verdict_does_not_depend_on_who_reads_it(tmp_path: Path, arguments: list[str], code: ExitCode) -> None:
    """`| head`: what nobody reads any more is no reason to say that all is well; what is only shown ends there."""
    file = journal(tmp_path, "n1", "n1")
    journal(tmp_path, "n2", "n2")
    typed = [{"DIR": str(tmp_path), "FILE": str(file)}.get(word, word) for word in arguments]
    unread, out = os.pipe()
    os.close(unread)
    command = [sys.executable, "-m", "groupsvc.cli", "journal", *typed]
    common = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, env=common)
    os.close(out)
    assert code == ended.returncode
    assert "Traceback" not in ended.stderr
    assert "Broken pipe" not in ended.stderr


def test_lines_that_are_missing_are_no_contradiction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = journal(tmp_path, "n1", "n1")
    with file.open("ab") as stream:
        stream.write(to_line(HistoryEvent(v=SCHEMA_VERSION, i=9, t=3.0, boot="1", node="n1", op="lease")))
    assert ExitCode.OK == main(["journal", "check", "--quiet", str(tmp_path)])
    out = capsys.readouterr().out
    assert "what n1.1 wrote in the lines that are missing (6)" in out
    assert "agreement between nodes: there is a journal of one node only" in out


def test_show_prints_lines_for_people_or_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = journal(tmp_path, "n1", "n1", torn=b"{")
    assert ExitCode.OK == main(["journal", "show", str(file), "--kind", "view_installed"])
    captured = capsys.readouterr()
    assert "n1 view_installed group=7 epoch=3 k=2 leader=n1 members=[n1 n2]" in captured.out
    assert "the last 1 bytes are no whole line" in captured.err
    assert ExitCode.OK == main(["journal", "show", str(file), "--json"])
    assert [1, 2] == [json.loads(line)["i"] for line in capsys.readouterr().out.splitlines()]


def test_show_tells_the_time_of_the_wall_and_which_kinds_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "n1.1.000001.ndjson"
    when = 1_763_535_906_250_000_000
    file.write_bytes(to_line(HistoryEvent(v=SCHEMA_VERSION, i=1, t=3.0, wall_ns=when, node="n1", op="lease")))
    assert ExitCode.OK == main(["journal", "show", str(file), "--kind", "lease", "--kind", "leese"])
    captured = capsys.readouterr()
    assert "1 2025-11-19T07:05:06.250000Z n1 lease" == captured.out.strip()
    assert "groupsvc: no line is of kind 'leese'; there are lease\n" == captured.err


def test_an_argument_that_there_is_not_is_answered_with_those_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["journal", "check", "n1", "--fast"])
    said = capsys.readouterr().err
    assert said.startswith("usage: groupsvc journal check")
    assert "unrecognized arguments: --fast" in said


def test_groups_are_asked_for_by_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = journal(tmp_path, "n1", "n1")
    assert ExitCode.OK == main(["journal", "show", str(file), "--group", "99"])
    assert "groupsvc: no line is about group 99; there are 7\n" == capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["journal", "show", str(file), "--group", "db"])
    assert "'db' is no number; that of a group is told by `groupsvc look-up NAME`" in capsys.readouterr().err


def test_mistakes_are_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.txt").touch()
    for arguments in (["check", str(tmp_path)], ["check", str(tmp_path / "other.txt")], ["show", str(tmp_path / "no")]):
        assert ExitCode.USAGE == main(["journal", *arguments])
    assert ExitCode.USAGE == main(["journal"])
    assert "Traceback" not in capsys.readouterr().err
