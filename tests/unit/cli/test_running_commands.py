"""``lock``, ``elect`` and ``barrier`` without a daemon: mistakes, and what they tell."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pytest

from groupsvc import BarrierBroken, Missing, Provider, Released, UsageError
from groupsvc.cli import barrier_command as barriers
from groupsvc.cli import main
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.cli.lock_commands import environment
from groupsvc.cli.main import cut

ANNA = Provider("n1/17/1", "n1", "anna", b"", 3)
BERT = Provider("n2/18/4", "n2", "bert", b"", 5)
CLEO = Provider("n3/19/2", "n3", "", b"", 6)


# --- What is typed ---


def test_the_command_stands_behind_the_first_dashes() -> None:
    typed = ["lock", "x", "--try", "--", "make", "--", "-j4"]
    assert (["lock", "x", "--try"], ["make", "--", "-j4"]) == cut(typed)
    assert (["lock", "x"], []) == cut(["lock", "x"])
    assert (["state", "db", "--", "-1"], []) == cut(["state", "db", "--", "-1"])
    assert ([], []) == cut([])


MISTAKES = {
    "lock x": "the command to run is missing",
    "lock x --": "the command to run is missing",
    "lock": "the following arguments are required: NAME\n",
    "lock x make -j4": "the command to run stands behind --, as in `groupsvc lock x -- make`",
    "lock x --nonsense -- true": "unrecognized arguments: --nonsense",
    "lock x --timeout soon -- true": "'soon' is no number of seconds",
    "lock x --grace -1 -- true": "'-1' is no number of seconds",
    "lock x --mode shared --slots 2 -- true": "not allowed with argument --mode",
    "elect x": "the command to run is missing",
    "elect x --on-lost warn -- true": "unrecognized arguments",
    "barrier x --expect a,b,a": "a name stands there twice",
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_is_a_sentence_and_exit_code_2(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed.split())
    assert ExitCode.USAGE == ended.value.code
    assert MISTAKES[typed] in capsys.readouterr().err


REFUSED = {
    "lock x*y -- true": (ExitCode.USAGE, "'x*y' cannot name a lock: "),
    "lock x --slots 0 -- true": (ExitCode.USAGE, "--slots is 0; it must be 1 to 10000"),
    "lock x --try --timeout 5 -- true": (ExitCode.USAGE, "--try is --timeout 0, and --timeout says 5"),
    "elect x*y -- true": (ExitCode.USAGE, "'x*y' cannot name a election: "),
    "barrier x*y --parties 2": (ExitCode.USAGE, "'x*y' cannot name a group"),
    "barrier _x --parties 2": (ExitCode.USAGE, "a leading _ is reserved"),
    "barrier x": (ExitCode.USAGE, "how many have to come is missing: --parties N, or --expect NAMES"),
    "barrier x --parties 0": (ExitCode.USAGE, "--parties is 0; it must be 1 to 10000"),
    "barrier x --parties 3 --expect a,b": (ExitCode.USAGE, "--expect names 2, and --parties says 3; give one of them"),
    "lock x -- no-such-command": (ExitCode.NO_COMMAND, "there is no command 'no-such-command'"),
    "elect x -- no-such-command": (ExitCode.NO_COMMAND, "there is no command 'no-such-command'"),
    "barrier x --parties 2 -- /": (ExitCode.NOT_EXECUTABLE, "'/' cannot be run"),
    "lock x --try --timeout 0 -- true": (ExitCode.UNREACHABLE, "no daemon at "),
    "lock x -- true": (ExitCode.UNREACHABLE, "no daemon at "),
    "elect x -- true": (ExitCode.UNREACHABLE, "no daemon at "),
    "barrier x --parties 2 -- true": (ExitCode.UNREACHABLE, "no daemon at "),
}


@pytest.mark.parametrize("typed", REFUSED)
def test_what_cannot_be_is_told_before_anybody_waits(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROUPSVC_ADDRESS", f"ipc://{tmp_path}/none")
    code, words = REFUSED[typed]
    assert code == main(typed.split())
    said = capfd.readouterr().err
    assert said.startswith("groupsvc: ")
    assert words in said


def test_the_command_asks_the_same_daemon_with_the_same_keys() -> None:
    options = argparse.Namespace(address="tcp://10.0.0.1:7500", keys="me.key")
    found = environment(options, lock="x", fence=17)
    expected = ("x", "17", "tcp://10.0.0.1:7500", os.path.abspath("me.key"))
    assert expected == tuple(found[f"GROUPSVC_{name}"] for name in ("LOCK", "FENCE", "ADDRESS", "KEYS"))
    assert os.environ["PATH"] == found["PATH"]
    assert dict(os.environ) == environment(argparse.Namespace(address=None, keys=None))


# --- What a barrier tells ---


def test_who_was_there_is_a_table_and_an_object() -> None:
    known = {one.id: one for one in (ANNA, BERT)}
    released = Released(3, {ANNA.id: b"mine", BERT.id: b"", CLEO.id: b"\xff"})
    met = barriers.met_of("load", released, known, BERT.id)
    expected = [
        "load: round 3, 3 parties, this one is 1",
        "RANK  NAME     NODE  PAYLOAD",
        "0     anna     n1    'mine'",
        "1     bert     n2    -",
        "2     n3/19/2  n3    b'\\xff'",
    ]
    assert expected == barriers.met_lines(met)
    found = barriers.met_object(met)
    assert ("load", True, 3, 1) == tuple(found[name] for name in ("barrier", "released", "round", "rank"))
    assert {"id": CLEO.id, "name": "", "node": "n3", "payload": None, "payload_base64": "/w=="} == found["parties"][2]  # type: ignore[index]


def test_the_missing_are_named_as_far_as_they_are_known() -> None:
    broken = BarrierBroken(
        expected=4, arrived=(ANNA,), missing=(Missing(BERT, True),), never_came=2, why="timeout", who=(ANNA,), round=1
    )
    assert ["bert"] == barriers.missing_of(broken, broken.arrived, None)
    assert ["bert", "cleo", "dora"] == barriers.missing_of(broken, (ANNA,), ("anna", "bert", "cleo", "dora"))
    head = "barrier 'load' is broken: the time of anna at n1 was up; 1 of 4 had come (anna at n1); missing: "
    assert f"{head}bert; 2 never came" == barriers.broken_line("load", broken, (ANNA,), (ANNA,), ["bert"])
    names = ["bert", "cleo", "dora"]
    assert f"{head}bert, cleo, dora" == barriers.broken_line("load", broken, (ANNA,), (ANNA,), names)


@pytest.mark.parametrize("why", ["timeout", "cancelled", "failure", "left", "mismatch", "too_large"])
def test_every_reason_has_words(why: str) -> None:
    broken = BarrierBroken(expected=2, why=why, who=(BERT,))
    said = barriers.broken_line("load", broken, (BERT,), (), [])
    assert said.endswith("; 0 of 2 had come; 2 never came")
    assert ("bert at n2" in said) is (why != "too_large")


def test_how_many_it_takes_is_said_once() -> None:
    assert 3 == barriers.parties_of(argparse.Namespace(parties=3, expect=None))
    assert 2 == barriers.parties_of(argparse.Namespace(parties=None, expect=("a", "b"), as_name="a"))
    assert 2 == barriers.parties_of(argparse.Namespace(parties=2, expect=("a", "b"), as_name="b"))
    with pytest.raises(UsageError):
        barriers.parties_of(argparse.Namespace(parties=10_001, expect=None))


@pytest.mark.parametrize(
    "name,words", [(None, "which of them this is says --as NAME"), ("c", "--as c is none of them")]
)
def test_who_expects_others_is_one_of_them(name: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        barriers.parties_of(argparse.Namespace(parties=None, expect=("a", "b"), as_name=name))


def test_an_interrupt_before_the_command_has_begun_is_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["groupsvc.cli.main"], "whole_parser", interrupted)
    assert ExitCode.INTERRUPTED == main(["status"])
