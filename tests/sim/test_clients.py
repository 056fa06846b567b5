"""Every call of a simulated client has one invoke and one end, and the end says no more than is known."""

from __future__ import annotations

from collections import Counter

import pytest

from groupsvc.testing.sim import Habits, World, converge
from groupsvc.testing.sim.clients import Client

TOY = "tests.sim.toy_engine:ToyEngine"


def _world(**options: object) -> World:
    return World(5, 3, engine=TOY, **options)  # type: ignore[arg-type]


def _client(world: World, node: str = "n2") -> Client:
    return world.clients.client_at(world.nodes[node], "tester")


def test_every_invoke_has_exactly_one_end() -> None:
    """K1."""
    world = _world(habits=Habits(count=5, think_s=0.1), faults=("kill", "pause", "flap"))
    world.run(until=30.0)
    assert converge(world)
    calls = [event for event in world.history.events() if event.type != "event"]
    begun = Counter((event.who, event.args["id"]) for event in calls if event.type == "invoke")
    ended = Counter((event.who, event.args["id"]) for event in calls if event.type != "invoke")
    assert begun == ended
    assert {1} == set(begun.values())
    assert {"invoke", "ok", "fail", "info"} == {event.type for event in calls}


def test_no_two_writes_have_the_same_value() -> None:
    world = _world(habits=Habits(count=5, think_s=0.1))
    world.run(until=10.0)
    invokes = [event for event in world.history.events() if (event.type, event.op) == ("invoke", "config_set")]
    assert len(invokes) == len({event.args["value"] for event in invokes}) > 20


@pytest.mark.parametrize(
    "op, args, end",
    [
        ("config_set", {"key": "k", "value": "v", "if_version": 0}, "info"),
        ("form", {"group": "g"}, "info"),
        ("config_get", {"key": "k"}, "fail"),
        ("look_up", {"group": "g"}, "fail"),
    ],
)
def test_a_daemon_that_dies_leaves_writes_unknown_and_reads_failed(op: str, args: dict[str, object], end: str) -> None:
    world = _world()
    world.run(until=1.0)
    client = _client(world)
    client.ask(op, dict(args), 3.0)
    world.nodes["n2"].crash("killed")
    assert (end, {"code": "daemon died"}) == client.last


def test_a_paused_daemon_is_no_broken_promise_but_its_client_gives_up() -> None:
    world = _world()
    world.run(until=1.0)
    client = _client(world)
    client.ask("config_get", {"key": "k"}, 1.0)
    world.nodes["n2"].pause()
    world.run(until=10.0)
    assert ("fail", {"code": "no reply"}) == client.last
    world.nodes["n2"].resume()
    world.run(until=11.0)
    assert [] == world.failures


def test_connections_are_never_reused() -> None:
    world = _world()
    world.run(until=1.0)
    client = _client(world)
    client.connect()
    first = client.connection
    client.hang_up()
    client.connect()
    assert client.connection > first
