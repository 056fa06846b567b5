"""Addresses of peers: what follows from them and which are refused."""

from __future__ import annotations

import pytest

from groupsvcd.io.addresses import multicast_address, problem_with_peer_address, tcp_host_and_port


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
    assert problem_with_peer_address(address, insecure=False) is None
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
    assert problem_with_peer_address(address, insecure=True) is not None


def test_a_name_might_leave_the_machine() -> None:
    assert problem_with_peer_address("tcp://n1.example:7400", insecure=False) is not None
    assert problem_with_peer_address("tcp://n1.example:7400", insecure=True) is None


def test_the_parts_of_a_tcp_address() -> None:
    assert ("::1", 7400) == tcp_host_and_port("tcp://[::1]:7400")
