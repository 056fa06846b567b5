"""SIGHUP: what can change does, what cannot is named, and a bad file changes nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from groupsvcd import config as configuration
from groupsvcd.changes import Changed, Changes
from groupsvcd.config import Config
from groupsvcd.reload import Reloaded, read_again


class File:
    """A configuration file that changes, and a daemon that reads it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "groupsvcd.toml"
        self.write("")
        self.changes = Changes(self.read())
        self.told: list[Config] = []
        self.changes.add("log_level", "limits.clients_max", apply=self.told.append)

    def write(self, text: str) -> None:
        self._path.write_text(f'node = "n1"\nruntime_directory = "run"\n{text}')

    def read(self) -> Config:
        return configuration.load(self._path, {})

    def reload(self) -> Reloaded:
        return read_again(self.read, self.changes.take)


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path)


def test_nothing_new_tells_nobody(file: File) -> None:
    assert Reloaded() == file.reload()
    assert [] == file.told


def test_what_can_change_does_and_is_told_once(file: File) -> None:
    file.write('log_level = "debug"\n[limits]\nclients_max = 7')
    assert Reloaded(Changed(applied=("log_level", "limits.clients_max"))) == file.reload()
    assert [("debug", 7)] == [(new.log_level, new.limits.clients_max) for new in file.told]
    assert ("debug", 7) == (file.changes.config.log_level, file.changes.config.limits.clients_max)
    assert Reloaded() == file.reload()


def test_what_needs_a_restart_is_named_each_time_and_stays_as_it_was(
    file: File, caplog: pytest.LogCaptureFixture
) -> None:
    file.write('log_level = "debug"\ndomain = "other"\n[timers]\nlease = 3.0')
    expected = Reloaded(Changed(applied=("log_level",), needs_restart=("domain", "timers.lease")))
    assert expected == file.reload()
    assert ("groupsvc", "debug") == (file.changes.config.domain, file.changes.config.log_level)
    assert "domain has changed in the configuration and needs a restart" in caplog.text
    assert ("domain", "timers.lease") == file.reload().changed.needs_restart
    file.write('log_level = "debug"')
    assert Reloaded() == file.reload()


def test_a_bad_file_changes_nothing_and_every_problem_is_logged(file: File, caplog: pytest.LogCaptureFixture) -> None:
    file.write('log_level = "debug"\ncolour = 1\n[limits]\nclients_max = "many"')
    problems = file.reload().problems
    assert 2 == len(problems) == len([one for one in caplog.records if one.levelno == logging.ERROR])
    assert "info" == file.changes.config.log_level
    assert [] == file.told


def test_a_file_that_is_gone_changes_nothing(file: File, tmp_path: Path) -> None:
    (tmp_path / "groupsvcd.toml").unlink()
    assert "cannot be read" in file.reload().problems[0]


def test_a_part_that_breaks_is_named_and_the_others_are_told(file: File, caplog: pytest.LogCaptureFixture) -> None:
    def breaks(new: Config) -> None:
        raise RuntimeError("a mistake of ours")

    file.changes.add("preference", apply=breaks)
    file.write('log_level = "debug"\npreference = 3')
    assert Reloaded(Changed(applied=("log_level",), needs_restart=("preference",))) == file.reload()
    assert "preference could not be changed in the running daemon" in caplog.text


def test_values_are_not_logged(file: File, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    file.write('domain = "nobodys-business"')
    file.reload()
    assert "nobodys-business" not in caplog.text


def test_a_part_cannot_wait_for_an_option_that_does_not_exist(file: File) -> None:
    with pytest.raises(ValueError, match="colour: no such option"):
        file.changes.add("colour", apply=lambda new: None)
