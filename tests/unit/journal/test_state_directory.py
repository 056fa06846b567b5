"""A state directory is used by its owner alone, and every refusal leaves it as it was."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from groupsvcd.io.state_directory import StateDirectory, StateRefused
from groupsvcd.io.store import Store


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def made(path: Path, node: str = "n1") -> str:
    """A state directory that was used once; its id."""
    directory = StateDirectory(path)
    store = Store(directory, node)
    store.close()
    directory.close()
    return store.stored.state_id


def test_the_first_use_makes_an_id_that_stays(tmp_path: Path) -> None:
    first = made(tmp_path / "a")
    assert 32 == len(first)
    assert first == made(tmp_path / "a")
    assert first != made(tmp_path / "b")


def test_only_the_owner_may_look_inside(tmp_path: Path) -> None:
    made(tmp_path / "deep" / "state")
    assert 0o700 == (tmp_path / "deep" / "state").stat().st_mode & 0o777


def test_a_directory_in_use_is_refused_with_the_pid_of_its_user(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path)
    with pytest.raises(StateRefused, match=f"state directory {tmp_path} is in use by pid {os.getpid()}"):
        StateDirectory(tmp_path)
    directory.close()
    StateDirectory(tmp_path).close()


def test_a_directory_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")
    before = contents(tmp_path)
    with pytest.raises(StateRefused, match=r"not empty \(diary.txt\) and holds no groupsvc state"):
        StateDirectory(tmp_path)
    assert before == contents(tmp_path)


def test_the_root_of_a_file_system_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    assert made(tmp_path)


def test_a_first_start_that_was_killed_leaves_nothing_that_counts(tmp_path: Path) -> None:
    (tmp_path / "state.db.new").write_bytes(b"half")
    (tmp_path / "state.db.new-journal").write_bytes(b"a")
    assert made(tmp_path)
    assert not (tmp_path / "state.db.new").exists()


def test_state_of_another_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    made(tmp_path)
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = (tmp_path / "state.db").read_bytes()
    with pytest.raises(StateRefused, match="has state format 99, this groupsvcd knows 3"):
        StateDirectory(tmp_path)
    assert before == (tmp_path / "state.db").read_bytes()


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StateRefused, match="of another program"):
        StateDirectory(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"\0" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.db").write_bytes(content)
    with pytest.raises(StateRefused, match="it is not an SQLite file"):
        StateDirectory(tmp_path)
    assert content == (tmp_path / "state.db").read_bytes()


def test_state_of_another_node_is_refused(tmp_path: Path) -> None:
    made(tmp_path, "n2")
    directory = StateDirectory(tmp_path)
    with pytest.raises(StateRefused, match="is the state of node n2, and this is n1"):
        Store(directory, "n1")
    directory.close()


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StateRefused, match="cannot be used"):
        StateDirectory(tmp_path / "file")
