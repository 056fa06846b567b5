"""What the domain says about options, over what the node's own configuration says (MSG-13)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from groupsvcd import config
from groupsvcd.changes import Changed, Changes
from groupsvcd.config import Config
from groupsvcd.config.acquired import Acquired, OptionLines, value_of, with_value
from groupsvcd.config.options import ACQUIRABLE, ESSENTIAL, OPTIONS

FILE = 'log_level = "warning"\n[limits]\nclients_max = 5\n'


def written(tmp_path: Path, text: str = FILE, **environment: str) -> Config:
    path = tmp_path / "groupsvcd.toml"
    path.write_text(text)
    return config.load(path, environment)


def said(**options: str) -> OptionLines:
    """What the domain says, each under a version of its own."""
    return tuple(
        (f"daemon/{key.replace('__', '.')}", value, 40 + number) for number, (key, value) in enumerate(options.items())
    )


def test_the_environment_is_stronger_than_the_domain_the_domain_than_the_file_the_file_than_the_default(
    tmp_path: Path,
) -> None:
    own = written(tmp_path, GROUPSVC_LIMITS_JOURNAL_FILES_MAX="9")
    told = said(log_level="debug", limits__journal_files_max="2", limits__client_queue_frames_max="77")
    made = Acquired(own, told).in_force()
    assert ("debug", 5, 9, 77) == (
        made.log_level,
        made.limits.clients_max,
        made.limits.journal_files_max,
        made.limits.client_queue_frames_max,
    )
    sources = {line.key: line.source for line in Acquired(own, told).lines()}
    assert "domain" == sources["log_level"]
    assert f"{tmp_path}/groupsvcd.toml:3" == sources["limits.clients_max"]
    assert "environment GROUPSVC_LIMITS_JOURNAL_FILES_MAX" == sources["limits.journal_files_max"]
    assert "default" == sources["limits.journal_file_bytes_max"]


def test_what_the_domain_withdraws_is_left_to_the_file_again(tmp_path: Path) -> None:
    acquired = Acquired(written(tmp_path), said(log_level="debug"))
    acquired.tell(said(log_level=""))
    assert "warning" == acquired.in_force().log_level


@pytest.mark.parametrize(
    "key, value, words",
    [
        ("log_level", "loud", "'loud' is none of debug, info"),
        ("limits.clients_max", "many", "must be a whole number, not 'many'"),
        ("limits.clients_max", "0", "must be 1 to"),
        ("limits.client_queue_frames_max", str(2**31), "must be 1 to 1000000"),
        ("limits.client_max", "3", "is no option; did you mean limits.clients_max?"),
        ("timers.lease", "9", "is compared when nodes meet"),
        ("voters", "n1=tcp://127.0.0.1:1", "is compared when nodes meet"),
        ("state_directory", "/elsewhere", "is each node's own"),
    ],
)
def test_the_judge_of_the_file_judges_what_the_domain_is_to_say(
    tmp_path: Path, key: str, value: str, words: str
) -> None:
    assert words in Acquired(written(tmp_path)).problem_with(key, value)


@pytest.mark.parametrize("key", ACQUIRABLE)
def test_whatever_may_be_acquired_may_be_set_and_withdrawn(tmp_path: Path, key: str) -> None:
    value = "error" if key == "log_level" else "12"
    acquired = Acquired(written(tmp_path, ""), ((f"daemon/{key}", value, 4),))
    assert "" == acquired.problem_with(key, value) == acquired.problem_with(key, "")
    assert value == str(value_of(acquired.in_force(), key))


def test_a_daemon_keeps_what_it_does_not_understand_does_as_it_was_written_and_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A node of another version: it neither forgets the option nor stops."""
    acquired = Acquired(written(tmp_path), said(limits__colours_max="3", log_level="silent"))
    assert acquired.written == acquired.in_force()
    lines = {line.key: line for line in acquired.lines()}
    assert ("3", 40) == (lines["limits.colours_max"].domain_value, lines["limits.colours_max"].version)
    assert "silent" == lines["log_level"].domain_value
    assert 2 == len([record for record in caplog.records if record.levelno == logging.WARNING])


def test_what_is_overruled_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    acquired = Acquired(written(tmp_path, GROUPSVC_LOG_LEVEL="error"), said(log_level="debug"))
    acquired.tell(said(log_level="debug"))
    warnings = [record.getMessage() for record in caplog.records]
    expected = "the domain says log_level = debug (version 40), and is overruled here by environment GROUPSVC_LOG_LEVEL"
    assert [expected] == warnings


def test_every_option_has_a_line_that_says_whose_it_is(tmp_path: Path) -> None:
    lines = {line.key: line for line in Acquired(written(tmp_path)).lines()}
    assert {*OPTIONS, "voters"} == set(lines)
    assert set(ACQUIRABLE) == {key for key, line in lines.items() if line.kind == "domain"}
    assert set(ESSENTIAL) == {key for key, line in lines.items() if line.kind == "essential"}


def test_a_file_that_is_read_again_does_not_overrule_the_domain(tmp_path: Path) -> None:
    acquired = Acquired(written(tmp_path), said(log_level="debug"))
    acquired.written = written(tmp_path, 'log_level = "error"\n[limits]\nclients_max = 6\n')
    made = acquired.in_force()
    assert ("debug", 6) == (made.log_level, made.limits.clients_max)


def test_a_change_is_applied_where_somebody_can_and_named_where_nobody_can(tmp_path: Path) -> None:
    own = written(tmp_path)
    changes, heard = Changes(own), []
    changes.add("log_level", "limits.clients_max", apply=lambda new: heard.append((new.log_level, new.limits)))
    new = with_value(with_value(own, "log_level", "debug"), "preference", 7)
    assert Changed(("log_level",), ("preference",)) == changes.take(new)
    assert [("debug", own.limits)] == heard
    assert Changed((), ("preference",)) == changes.take(new)
    assert 0 == changes.config.preference


def test_who_breaks_while_it_takes_a_change_keeps_what_was(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    own = written(tmp_path)
    changes = Changes(own)
    changes.add("log_level", apply=lambda new: 1 / 0)
    assert Changed((), ("log_level",)) == changes.take(with_value(own, "log_level", "debug"))
    assert "warning" == changes.config.log_level
    assert "could not be changed" in caplog.text


def test_an_option_that_does_not_exist_cannot_be_listened_for(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"limits\.client_max: no such option"):
        Changes(written(tmp_path)).add("limits.client_max", apply=lambda new: None)
