"""Addresses of peers: what follows from them and which are refused."""

from __future__ import annotations

import pytest

from groupsvc.addresses import problem_with_address, stays_here, tcp_host_and_port
from groupsvcd.io.addresses import multicast_address, problem_with_listening, problem_with_peer_address


@pytest.mark.parametrize(
    "address, multicasts",
    [
        ("tcp://127.0.0.1:7400", "tcp://127.0.0.1:7401"),
        ("tcp://[::1]:99", "tcp://[::1]:100"),
        ("ipc:///run/n1.peer", "ipc:///run/n1.peer.pub"),
        ("ipc://@abstract", "ipc://@abstract.pub"),
    ],
)
def test_multicasts_come_from_the_place_beside(address: str, multicasts: str) -> None:
    assert problem_with_peer_address(address, may_leave=False) is None
    assert multicasts == multicast_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:99999", "tcp://127.0.0.1:*", "ipc://",
        "ipc://relative", "ipc:///" + "x" * 110, "udp://127.0.0.1:1", "tcp://*:7400", "tcp://[::]:7400",
        "tcp://127.0.0.1:7400\n", "tcp://a b:7400",
    ],
)  # fmt: skip
def test_nonsense_is_refused_even_on_a_trusted_network(address: str) -> None:
    assert problem_with_peer_address(address, may_leave=True) is not None


def test_a_name_might_leave_the_machine() -> None:
    assert problem_with_peer_address("tcp://n1.example:7400", may_leave=False) is not None
    assert problem_with_peer_address("tcp://n1.example:7400", may_leave=True) is None


def test_the_parts_of_a_tcp_address() -> None:
    assert ("::1", 7400) == tcp_host_and_port("tcp://[::1]:7400")


# --- Clients of other machines ------------------------------------------------------------------------


def test_clients_are_awaited_at_every_address_only_with_keys_or_by_leave() -> None:
    assert problem_with_listening("tcp://0.0.0.0:7500", may_leave=True) is None
    problem = problem_with_listening("tcp://0.0.0.0:7500", may_leave=False)
    assert problem is not None
    assert "groupsvc keygen" in problem
    assert "insecure = true" in problem
    assert problem_with_listening("tcp://127.0.0.1:7500", may_leave=False) is None


@pytest.mark.parametrize("address", ["ipc:///run/x.sock", "tcp://host", "tcp://host:0", "tcp://host:65536", ""])
def test_nothing_but_a_host_and_a_port_can_be_listened_at_for_them(address: str) -> None:
    assert problem_with_listening(address, may_leave=True) is not None


@pytest.mark.parametrize(
    "address", ["tcp://0.0.0.0:7500", "tcp://[::]:7500", "tcp://host:0", "tcp://host", "udp://h:1"]
)
def test_a_client_is_told_what_is_no_address(address: str) -> None:
    assert problem_with_address(address) is not None


def test_what_stays_on_the_machine() -> None:
    expected = {"ipc:///run/x.sock": True, "tcp://127.0.0.1:1": True, "tcp://localhost:1": True, "tcp://[::1]:1": True}
    expected |= {"tcp://10.0.0.1:1": False, "tcp://n1.example:1": False}
    assert expected == {address: stays_here(address) for address in expected}
