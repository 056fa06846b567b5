"""*Replace a voter* of docs/OPERATIONS.md, as it is written, with real daemons and under load; and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from groupsvc.drivers.connection import DaemonConnection
from groupsvc.errors import Failed, OutcomeUnknown
from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import LocalNode
from tests.interop.load import PATIENCE_S, Load

EXIT_HALTED = 3


class Machines(LocalDomain):
    """A domain whose nodes can get another machine."""

    def move(self, name: str) -> None:
        """``name`` has another address from its next start on, and so it stands in everybody's table of voters."""
        self._peer_addresses[name] = address = self._new_peer_address(name)
        for node in self._nodes.values():
            voters = node.settings["voters"]
            assert isinstance(voters, dict)
            own = {"address": address} if node.name == name else {}
            node.write_config({**node.settings, **own, "voters": {**voters, name: address}})

    def another(self, name: str) -> LocalNode:
        """A second machine with this name, an address of its own and an empty disk; not started."""
        assert self._undertaker is not None
        place = self.directory / f"another-{name}"
        place.mkdir()
        address = self._new_peer_address(name)
        settings = dict(self._node(name).settings)
        for own in ("node", "client_address", "state_directory", "runtime_directory"):
            del settings[own]
        voters = settings["voters"]
        assert isinstance(voters, dict)
        return LocalNode(
            name, place, self._undertaker, {**settings, "address": address, "voters": {**voters, name: address}}
        )

    def set_aside(self, name: str) -> Path:
        """Take the disk out of a node that does not run; where it is now."""
        state = self._node(name).state_directory
        kept = state.with_suffix(f".{len(list(self.directory.iterdir()))}")
        state.rename(kept)
        return kept

    def put_back(self, name: str, kept: Path) -> None:
        """Put a disk into a node instead of the one that it has."""
        self.lose_state(name)
        kept.rename(self._node(name).state_directory)


@pytest.fixture
def domain() -> Iterator[Machines]:
    with Machines(nodes=3, ready_timeout=PATIENCE_S) as made:
        made.hand_over("n1")
        yield made


def test_a_dead_voter_is_replaced_under_its_name_and_address_and_then_counts(domain: Machines) -> None:
    """An empty disk in the same place. That it counts shows when another one dies: two of three are needed."""
    load = Load.on(domain, "n1", "n2")
    version = setting(domain, "n1", "before")
    domain.kill("n3")
    load.wait_for_more(domain)
    domain.lose_state("n3")
    domain.restart("n3")
    load.wait_for_more(domain)
    load.end()
    domain.kill("n1")
    assert ("before", version) == read_setting(domain, "n3")
    setting(domain, "n3", "after")


def test_a_dead_voter_is_replaced_at_another_address_before_the_others_know_it(domain: Machines) -> None:
    """The new machine first, then the others one after the other: at no time is there less than a majority."""
    load = Load.on(domain, "n1", "n2")
    version = setting(domain, "n1", "before")
    domain.kill("n3")
    domain.lose_state("n3")
    domain.move("n3")
    domain.restart("n3")
    load.wait_for_more(domain)
    for name in ("n1", "n2"):
        domain.restart(name)
        load.wait_for_more(domain)
    load.end()
    assert not any(" suspended" in domain.logs(name) for name in ("n1", "n2"))
    domain.kill("n1")
    assert ("before", version) == read_setting(domain, "n3")
    setting(domain, "n3", "after")


def test_the_old_disk_is_refused_for_ever_once_it_was_replaced(domain: Machines) -> None:
    """Also when it is back after all others were away: it must not count beside the new one."""
    domain.kill("n3")
    kept = domain.set_aside("n3")
    domain.restart("n3")
    setting(domain, "n1", "without the old disk")
    domain.kill("n3")
    fresh = domain.set_aside("n3")
    domain.put_back("n3", kept)
    domain.restart("n3", wait=False)
    domain.wait_until(lambda: domain.exit_code("n3") == EXIT_HALTED, "n3 refuses its old disk")
    assert "the state directory of n3 was replaced by another one; start it with an empty one" in domain.logs("n3")
    domain.wait_until_up("n1", "n2")
    domain.put_back("n3", fresh)
    domain.restart("n3")


def test_the_new_machine_waits_while_the_old_one_is_up(domain: Machines) -> None:
    """Step 1 was forgotten. The old one keeps its place; when it is off the new one is let in."""
    new = domain.another("n3")
    new.start()
    domain.wait_until(
        lambda: "a voter n3 is up with another state directory" in domain.logs("n1"), "the name server says so"
    )
    domain.wait_until_up("n1", "n2", "n3")
    domain.kill("n3")
    domain.wait_until(lambda: role(new) == "voter", "the new one is a voter")
    new.stop()


def test_under_a_new_name_it_is_no_voter_and_who_lists_it_as_one_is_refused(domain: Machines) -> None:
    """The list of voters is settled when the domain is formed."""
    domain.kill("n3")
    voters = {name: domain.peer_address(name) for name in ("n1", "n2")}
    domain.add("n4")
    status = domain.status("n4")
    assert status is not None
    assert "node" == status.role
    domain.remove("n4")
    new = domain.peer_address("n3")
    domain.add("n5", wait=False, settings={"address": new, "voters": {**voters, "n5": new}})
    domain.wait_until(lambda: domain.exit_code("n5") == EXIT_HALTED, "n5 is refused")
    assert "parameter voters is n1,n2,n5 on n5 and n1,n2,n3 on n" in domain.logs("n5")
    domain.wait_until_up("n1", "n2")


def test_two_of_three_replaced_at_once_form_nothing_new_and_one_old_disk_brings_all_back(domain: Machines) -> None:
    """A majority of blank voters would be a domain that has forgotten everything: it waits instead."""
    version = setting(domain, "n1", "kept")
    for name in ("n2", "n3"):
        domain.kill(name)
    kept = domain.set_aside("n2")
    domain.set_aside("n3")
    for name in ("n2", "n3"):
        domain.restart(name, wait=False)
    domain.wait_until(lambda: all(is_blank_and_waits(domain, name) for name in ("n2", "n3")), "both wait")
    domain.wait_until(lambda: domain.name_server() is None, "n1 has noticed that nobody answers")
    domain.kill("n2")
    domain.put_back("n2", kept)
    domain.restart("n2")
    domain.wait_until_up("n1", "n2", "n3")
    assert ("kept", version) == read_setting(domain, "n3")


def role(node: LocalNode) -> str:
    status = node.status()
    return "" if status is None or status.suspended else status.role


def is_blank_and_waits(domain: LocalDomain, name: str) -> bool:
    status = domain.status(name)
    return status is not None and status.role == "blank voter" and status.suspended


def setting(domain: LocalDomain, name: str, value: str) -> int:
    """Make the domain say ``value``; under which version it does."""
    with DaemonConnection(domain.address(name)) as connection:
        while True:
            try:
                return connection.config_set("k", value, if_version=connection.config_get("k").version).version
            except (Failed, OutcomeUnknown):
                domain.wait_until_up(name)


def read_setting(domain: LocalDomain, name: str) -> tuple[str, int]:
    """What the domain says, as of now."""
    domain.wait_until_up(name)
    with DaemonConnection(domain.address(name)) as connection:
        found = connection.config_get("k")
        return found.value, found.version
