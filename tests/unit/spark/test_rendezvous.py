"""Which address of its own a machine tells others, and when that leads nowhere."""

from __future__ import annotations

import socket
from pathlib import Path

import attrs
import pytest

from groupsvc import PeerProtocolError, UsageError
from groupsvc.addresses import is_loopback
from groupsvc.spark import Rendezvous, Via
from groupsvc.spark.driver_daemon import _host_beside
from groupsvc.spark.reaching import daemon_host
from groupsvc.spark.rendezvous import ELSEWHERE, Place, own_host, rendezvous_of


def has_a_way_out() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return probe.connect_ex((ELSEWHERE[0], 9)) == 0


needs_a_way_out = pytest.mark.skipif(not has_a_way_out(), reason="this machine has no route to any other")


@pytest.fixture
def debian(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stock Debian host: ``/etc/hosts`` has its name with 127.0.1.1."""
    known = socket.gethostbyname
    monkeypatch.setattr(
        socket, "gethostbyname", lambda name: "127.0.1.1" if name == socket.gethostname() else known(name)
    )


@needs_a_way_out
@pytest.mark.parametrize("peers", [(), (None,), ("127.0.0.1", "localhost"), ("no.such.host.invalid",)])
def test_a_machine_whose_name_means_loopback_tells_the_address_that_others_reach(
    debian: None, peers: tuple[str | None, ...]
) -> None:
    """SPK-02: and so it does if the daemon, or the driver, is on the same machine, or cannot be found."""
    own = own_host(*peers)
    assert not is_loopback(own)
    with socket.create_server((own, 0)) as listener:  # it is one of this machine
        socket.create_connection(listener.getsockname()[:2], timeout=5).close()


@needs_a_way_out
def test_towards_a_peer_at_an_own_address_it_is_that_address() -> None:
    assert own_host() == own_host(own_host())


def test_tasks_on_one_machine_may_tell_loopback() -> None:
    places = {0: Place("127.0.0.1", 7000, "a"), 1: Place("127.0.1.1", 7001, "a")}
    assert Rendezvous(1, {0: "127.0.0.1:7000", 1: "127.0.1.1:7001"}) == rendezvous_of(1, places)


def test_loopback_on_one_of_several_machines_is_an_error_that_names_it() -> None:
    """SPK-02: nobody would reach it, and each that tried would find itself, or nobody."""
    places = {rank: Place("10.0.0.1", 7000, "a") for rank in range(3)} | {3: Place("127.0.1.1", 7000, "b")}
    with pytest.raises(UsageError, match=r"on 2 machines.*: 3 on b \(127\.0\.1\.1\); say host=") as found:
        rendezvous_of(0, places)
    assert "0 on a" not in str(found.value)


def test_a_place_is_told_and_understood() -> None:
    for place in (Place("10.0.0.1", 7000, "a"), Place("2001:db8::7", 1, "machine-7")):
        assert place == Place.decoded(place.encoded())
    for bad in (b"", b"host", b"host:port a", b"\xff:1 a"):
        with pytest.raises(PeerProtocolError, match="rendezvous"):
            Place.decoded(bad)


def test_where_the_daemon_is_says_its_address(tmp_path: Path) -> None:
    assert "10.0.0.7" == daemon_host(Via("tcp://10.0.0.7:4711"))
    assert daemon_host(Via(f"ipc://{tmp_path}/client.sock")) is None


@attrs.frozen
class Session:
    """As much of a Spark session as is asked about where it runs."""

    conf: dict[str, str]
    client: object = None


@attrs.frozen
class Client:
    """Of a session of Connect."""

    host: str


@needs_a_way_out
def test_the_daemon_of_the_driver_listens_where_executors_reach_it(debian: None) -> None:
    """SPK-04: with a driver of Debian, whose name means loopback, and under Connect."""
    out, cluster, alone = own_host(), {"spark.master": "spark://127.0.0.1:7077"}, {"spark.master": "local[4]"}
    told = [
        ("127.0.0.1", False, Session(alone)),
        ("10.0.0.1", False, Session({**cluster, "spark.driver.host": "10.0.0.1"})),
        ("127.0.0.1", False, Session({**cluster, "spark.driver.host": "127.0.0.1"})),  # it was meant
        (out, False, Session({**cluster, "spark.driver.host": socket.gethostname()})),
        ("127.0.0.1", True, Session(alone, Client("localhost"))),
        (out, True, Session(alone, Client(out))),
        (out, True, Session({**cluster, "spark.driver.host": "127.0.0.1"}, Client("localhost"))),
    ]
    assert [host for host, _, _ in told] == [_host_beside(session, is_remote=remote) for _, remote, session in told]
