"""Golden transcripts: every protocol run that matters, told like a play and reviewed like code.

``pytest tests/golden --rewrite`` writes what happens now into the scripts; the difference says what has changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.stage import BadScript, perform, scenes

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))
TOY = "tests.sim.toy_engine:ToyEngine"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_play_is_as_it_is_written(path: Path, rewrite: bool) -> None:
    """GS-01 to GS-12, GS-20 to GS-37, GS-40, SAM-02 to SAM-04, SAM-06 to SAM-08, SAM-10, DIST-01, DIST-02.

    One script, one run.
    """
    written = path.read_text()
    happened = perform(written)
    assert "FAILED" not in happened, happened[happened.index("FAILED") :]
    if rewrite:
        path.write_text(happened)
    if not rewrite:
        assert written == happened


def test_a_script_is_comments_commands_and_transcripts() -> None:
    first, second = scenes("# Why.\ndomain nodes=3\n----\n\nrun 1.0\nshow\n----\n  n1: down\n")
    assert ("# Why.",) == first.comments
    assert ("domain nodes=3",) == first.commands
    assert ("run 1.0", "show") == second.commands
    assert ("  n1: down",) == second.transcript


SCRIPT = """# A toy that beats.
domain nodes=2 voters=2
start n1 n2
run 0.5

cut n1>n2
call n1 set colour=red
call n2 get colour

crash n1
show
"""


def test_performing_twice_changes_nothing() -> None:
    once = perform(SCRIPT, engine=TOY)
    assert once == perform(once, engine=TOY)
    assert "n1 -> all: LeaderAlive" in once
    assert "client-1 hears ok from n1: config_set" in once
    assert "n1: down" in once


WRONG = [
    "run 1.0",
    "domain nodes=3\nfly n1",
    "domain nodes=3\nstart n1\nconfigure n2 x=1",
    "domain nodes=3\njoin n1 jobs",
    "domain nodes=3\nassemble db a@n1",
    "domain nodes=3 about=applications\na flies",
]


@pytest.mark.parametrize("script", WRONG)
def test_a_wrong_script_is_refused_with_a_reason(script: str) -> None:
    with pytest.raises(BadScript, match=r"domain|fly|flies|configure|about=groups|about=applications"):
        perform(script, engine=TOY)
