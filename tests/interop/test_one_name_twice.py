"""Real daemons: a second machine is started with the name of a node that is up. It is told, and harms nobody."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from groupsvc.drivers.connection import DaemonConnection
from groupsvc.errors import GroupServiceError
from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import environment

LONGER_THAN_A_LEASE_S = 3.0
SILENT_S = 1.2
"""After which a name server that was believed to be gone is missed."""


@pytest.mark.parametrize("leader", ["n1", "n3"])
def test_a_second_machine_with_the_name_of_a_voter_harms_nobody(leader: str, tmp_path: Path) -> None:
    """The first keeps its place and its lease, and who is name server stays so when the second one says goodbye.

    Under the name of the name server nobody can tell it anything: it takes itself for that address.
    """
    with LocalDomain(nodes=3) as domain:
        domain.hand_over(leader)
        epoch = epoch_of(domain, "n2")
        with Second(domain, "n3", tmp_path) as second:
            if leader != "n3":
                domain.wait_until(lambda: is_told(second), "the second one is told why")
            time.sleep(LONGER_THAN_A_LEASE_S)
        time.sleep(SILENT_S)
        for node in domain.names:
            status = domain.status(node)
            assert status is not None
            assert (False, leader, epoch) == (status.suspended, status.name_server, status.epoch), node


class Second:
    """A daemon with the name of another, an empty disk and an address of its own; a context manager."""

    def __init__(self, domain: LocalDomain, name: str, directory: Path) -> None:
        self.address = f"ipc://{directory}/client.sock"
        voters = {node: domain.peer_address(node) for node in domain.names} | {name: f"ipc://{directory}/peer.sock"}
        lines = [f'node = "{name}"', 'state_directory = "state"', f'client_address = "{self.address}"']
        lines += [f'domain = "{domain_name(domain)}"', "[voters]", *(f'{one} = "{at}"' for one, at in voters.items())]
        self._file = directory / "second.toml"
        self._file.write_text("\n".join(lines) + "\n")

    def __enter__(self) -> Second:
        command = [sys.executable, "-m", "groupsvcd", "--config", str(self._file)]
        self._process = subprocess.Popen(command, env=environment())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        assert 0 == self._process.wait(10)


def domain_name(domain: LocalDomain) -> str:
    """As it is written in the configuration of its nodes."""
    (line,) = [line for line in (domain.directory / "n1.toml").read_text().splitlines() if line.startswith("domain")]
    return line.partition("=")[2].strip().strip('"')


def epoch_of(domain: LocalDomain, node: str) -> int:
    status = domain.status(node)
    return status.epoch if status is not None else 0


def is_told(second: Second) -> bool:
    try:
        with DaemonConnection(second.address) as connection:
            return "a voter n3 is up with another state directory" in connection.status().trouble
    except GroupServiceError:
        return False
