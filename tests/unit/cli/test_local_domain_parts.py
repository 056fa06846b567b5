"""The parts of LocalDomain that need no daemon."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from groupsvc.errors import UsageError
from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import to_toml
from groupsvc.testing.loopback_ports import PortBlock
from groupsvc.testing.undertaker import Undertaker


def test_the_file_written_is_the_file_read() -> None:
    settings = {
        "node": 'n"1\\ä',
        "voters": {"n1": "tcp://127.0.0.1:1", "a b": "x"},
        "durable": True,
        "form_without": ["n2", "n3"],
        "timers": {"lease": 2.5},
    }
    assert tomllib.loads(to_toml(settings)) == settings  # type: ignore[arg-type]


@pytest.mark.parametrize("nodes,expected", [(1, 1), (2, 2), (3, 3), (4, 3), (5, 5), (9, 5)])
def test_the_first_nodes_are_voters(nodes: int, expected: int, tmp_path: Path) -> None:
    domain = LocalDomain(nodes=nodes, directory=tmp_path)
    assert domain.voters == tuple(f"n{number}" for number in range(1, expected + 1))
    assert len(domain.names) == nodes


@pytest.mark.parametrize("nodes,voters", [(0, None), (3, 4), (3, 0)])
def test_impossible_numbers_are_refused(nodes: int, voters: int | None, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        LocalDomain(nodes=nodes, voters=voters, directory=tmp_path)


def test_two_blocks_of_ports_never_overlap() -> None:
    blocks = [PortBlock() for _ in range(50)]
    try:
        taken = [port for block in blocks for port in (block.port, block.port + 1)]
        assert len(set(taken)) == len(taken)
    finally:
        for block in blocks:
            block.close()


def test_the_undertaker_kills_who_is_left_and_spares_the_others(tmp_path: Path) -> None:
    owned = tmp_path / "owned"
    owned.mkdir()
    endless = [sys.executable, "-c", "input()"]
    left, spared = (subprocess.Popen(endless, stdin=subprocess.PIPE) for _ in range(2))
    undertaker = Undertaker(remove=owned)
    undertaker.born(left.pid)
    undertaker.born(spared.pid)
    undertaker.dead(spared.pid)
    undertaker.close()
    assert left.wait(timeout=10) == -9
    assert spared.poll() is None
    assert not owned.exists()
    spared.communicate(b"\n", timeout=10)
    assert left.stdin is not None
    left.stdin.close()
