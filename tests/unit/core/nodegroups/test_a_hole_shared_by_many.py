"""A message that twenty receivers miss: who is asked for it, when, and how often (SAM-06)."""

from __future__ import annotations

from collections import Counter
from statistics import median

from groupsvcd.core.parameters import Timers
from groupsvcd.core.peer_messages import Beat, Data, DataAsk, Order, PeerMessage, Repair, RepairAsk
from tests.unit.core.nodegroups.carriers import Carriers
from tests.unit.core.trio import Sent

SERVERS = "DEFG"
RECEIVERS = "HIJKLMNOPQRSTUVWXYZC"
LARGE = "x" * 1_000
DELAY = Timers().repair_delay


def _nodes() -> Carriers:
    parameters = {"inline_bytes_max": 64}
    return Carriers.with_group(SERVERS + RECEIVERS, others=SERVERS + RECEIVERS[:-1], parameters=parameters, replicas=4)


def _miss(nodes: Carriers, *others: str) -> float:
    """D sends, and all receivers and these others miss it; when they see the gap."""
    nodes.lose((Order, Beat), " ".join(f"D>{name}" for name in (*RECEIVERS, *others)))
    nodes.submit("D", "missed")
    nodes.run(0.005)
    nodes.heal()
    nodes.forget_the_past()
    nodes.submit("D", "shows the gap")
    return nodes.now + nodes.delay


def _asks(nodes: Carriers, kind: type[PeerMessage]) -> list[Sent]:
    return [line for line in nodes.sent if isinstance(line.message, kind)]


def _assert_each_asked_once_and_evenly(nodes: Carriers, kind: type[PeerMessage], after: float) -> None:
    asks = _asks(nodes, kind)
    assert sorted(RECEIVERS) == sorted(line.sender for line in asks)
    asked = Counter(line.receiver for line in asks)
    assert set("EFG") == set(asked)
    assert max(asked.values()) == 7
    waits = [line.at - after for line in asks]
    assert 20 == len(set(waits))
    assert 0.7 * DELAY < min(waits) <= max(waits) < 1.3 * DELAY + 0.001
    assert abs(median(waits) - DELAY) < 0.15 * DELAY


def test_entries_are_asked_from_all_servers_but_the_leader_and_not_at_one_moment() -> None:
    """SAM-06. Twenty ask three servers; none is asked more than seven times."""
    nodes = _nodes()
    began = _miss(nodes)
    nodes.run(0.1)
    assert {("missed", "shows the gap")} == {tuple(nodes.texts(name)) for name in RECEIVERS}
    _assert_each_asked_once_and_evenly(nodes, RepairAsk, began)


def test_so_are_payloads() -> None:
    """SAM-06. The entry came, so it is known at once what is lacking."""
    nodes = _nodes()
    nodes.lose(Data, " ".join(f"D>{name}" for name in RECEIVERS))
    nodes.submit("D", LARGE)
    nodes.run(0.1)
    began = next(line.at for line in nodes.sent if isinstance(line.message, Order) and line.message.entries)
    assert {(LARGE,)} == {tuple(nodes.texts(name)) for name in RECEIVERS}
    _assert_each_asked_once_and_evenly(nodes, DataAsk, began + nodes.delay)


def test_the_leader_is_asked_only_when_it_is_the_last_one_left() -> None:
    """SAM-06. No other server answers: everybody has asked all of them before."""
    nodes = _nodes()
    _miss(nodes)
    nodes.lose(Repair, " ".join(f"{server}>{name}" for server in "EFG" for name in RECEIVERS))
    nodes.run(1.0)
    for name in RECEIVERS:
        asked = [line.receiver for line in _asks(nodes, RepairAsk) if line.sender == name]
        assert ["D", "E", "F", "G"] == sorted(asked)
        assert "D" == asked[-1]
    assert {("missed", "shows the gap")} == {tuple(nodes.texts(name)) for name in RECEIVERS}


def test_who_asked_a_server_that_misses_it_too_asks_the_next_one_at_once() -> None:
    """SAM-06. The spread makes nobody wait for a second turn; and the leader is not asked for that."""
    nodes = _nodes()
    began = _miss(nodes, "E")
    nodes.run_until(lambda: all(nodes.texts(name) for name in RECEIVERS), within=1.5 * DELAY)
    assert nodes.now - began < 1.25 * DELAY + 6 * nodes.delay
    assert "D" not in {line.receiver for line in _asks(nodes, RepairAsk)}


def test_what_the_leader_alone_has_is_fetched_by_the_servers_and_nobody_hurries_to_it() -> None:
    """SAM-06. The others have nothing: most find it there when their next turn comes."""
    nodes = _nodes()
    began = _miss(nodes, *"EFG")
    nodes.run(1.0)
    assert {("missed", "shows the gap")} == {tuple(nodes.texts(name)) for name in (*"EFG", *RECEIVERS)}
    to_leader = [line for line in _asks(nodes, RepairAsk) if line.receiver == "D"]
    assert to_leader[0].sender in "EFG"
    assert to_leader[0].at - began > 5 * DELAY
    assert len(to_leader) <= 3 + len(RECEIVERS) / 4
