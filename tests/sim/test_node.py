"""The simulated driver keeps the reactor's promises and can be hurt between any two effects."""

from __future__ import annotations

import math

import pytest

from groupsvc.testing.sim import Node, World
from groupsvc.testing.sim.node import Trap
from groupsvc.wire.history import HistoryEvent
from groupsvcd.core.effects import Connect, Effect, Halt, Journal, Multicast, Persist, SendToPeer
from groupsvcd.core.events import LocalCall, PeerFrame, PeerRefused, Persisted, Tick
from groupsvcd.core.peer_messages import DOMAIN_TOPIC, AliveAck, Ask, LeaderAlive, PeerMessage
from groupsvcd.core.records import PromiseRecord
from tests.sim.recording_engine import RecordingEngine


def _world(nodes: int = 3, voters: int = 3) -> World:
    world = World(3, nodes, voters=voters, engine=RecordingEngine, start_within_s=None)
    for node in world.nodes.values():
        node.start()
    return world


def _engine(world: World, name: str) -> RecordingEngine:
    engine = world.nodes[name].engine
    assert isinstance(engine, RecordingEngine)
    return engine


def _do(world: World, name: str, *effects: Effect, after: float = 0.0) -> None:
    """Have an engine want these effects, at its next Tick."""
    node, engine = world.nodes[name], _engine(world, name)
    engine.script = list(effects)
    engine.deadline = node.clock() + after
    node.plan_tick()


def _frames(world: World, name: str) -> list[tuple[PeerMessage, ...]]:
    return [event.messages for event in _engine(world, name).events if isinstance(event, PeerFrame)]


def _lines(world: World, op: str) -> list[HistoryEvent]:
    return [event for event in world.history.events() if event.op == op]


def test_messages_of_one_step_for_one_peer_leave_in_one_frame() -> None:
    world = _world()
    asks = [Ask(n, "config", "k") for n in range(3)]
    _do(world, "n1", SendToPeer("n2", asks[0]), SendToPeer("n3", asks[1]), SendToPeer("n2", asks[2]))
    world.run(until=1.0)
    assert [(asks[0], asks[2])] == _frames(world, "n2")
    assert [(asks[1],)] == _frames(world, "n3")


def test_a_voters_multicast_reaches_all_but_itself_and_another_nodes_nobody() -> None:
    world = _world(nodes=4)
    _do(world, "n1", Multicast(DOMAIN_TOPIC, LeaderAlive(1, 1, 0, 0)))
    _do(world, "n4", Multicast(DOMAIN_TOPIC, LeaderAlive(1, 2, 0, 0)))
    world.run(until=1.0)
    assert [0, 1, 1, 1] == [len(_frames(world, name)) for name in world.names]


def test_a_program_inside_the_daemon_acts_within_a_step_and_waits_while_the_process_stands_still() -> None:
    world = _world()
    node, said = world.nodes["n1"], []
    node.call(lambda: said.append("awake"))
    node.pause()
    node.call(lambda: said.append("queued"))
    for event in _engine(world, "n1").events:
        assert isinstance(event, LocalCall)
        event.action()
    assert ["awake"] == said
    node.resume()
    assert [LocalCall, LocalCall, Tick] == [type(event) for event in _engine(world, "n1").events]


def test_a_node_is_reached_only_once_its_address_is_known() -> None:
    world = _world(nodes=4)
    ask = Ask(1, "config", "k")
    _do(world, "n1", SendToPeer("n4", ask))
    world.run(until=1.0)
    assert [] == _frames(world, "n4")
    _do(world, "n1", Connect("n4", "sim:n4"), SendToPeer("n4", ask))
    world.run(until=2.0)
    assert [(ask,)] == _frames(world, "n4")


def test_a_write_is_safe_before_its_words_leave_and_the_engine_is_told_last() -> None:
    """L2, S1: persisted, then spoken of."""
    world = _world()
    then = SendToPeer("n2", AliveAck(1, 5, 1, 2.0))
    _do(world, "n1", Persist(1, (PromiseRecord(0, 5),), (then,)))
    world.run(until=1.0)
    (persisted,), (acknowledged,) = _lines(world, "persisted"), _lines(world, "acknowledged")
    assert ("promise", 5) == (persisted.args["kind"], persisted.epoch)
    assert ("AliveAck", "n2", 5) == (acknowledged.args["kind"], acknowledged.args["to"], acknowledged.epoch)
    assert persisted.i < acknowledged.i
    assert isinstance(_engine(world, "n1").events[-1], Persisted)


def test_a_kill_between_persist_and_send_leaves_the_write_and_not_the_words() -> None:
    world = _world()
    node = world.nodes["n1"]
    node.on_persisted = lambda victim: victim.crash("between")
    _do(world, "n1", Persist(1, (PromiseRecord(0, 5),), (SendToPeer("n2", Ask(1, "config", "k")),)))
    world.run(until=1.0)
    assert 5 == node.disk.logs[0].promised
    assert [] == _frames(world, "n2")


@pytest.mark.parametrize("effects_done", range(4))
def test_a_process_can_die_between_any_two_effects(effects_done: int) -> None:
    world = _world()
    node = world.nodes["n1"]
    node.trap = Trap(effects_done, lambda victim: victim.crash("trap"))
    _do(world, "n1", *(SendToPeer("n2", Ask(n, "config", "k")) for n in range(3)), Journal("last"))
    world.run(until=1.0)
    asks = [message for frame in _frames(world, "n2") for message in frame]
    assert list(range(min(effects_done, 3))) == [ask.number for ask in asks if isinstance(ask, Ask)]
    assert [] == _lines(world, "last")
    assert not node.running


def test_what_a_paused_process_was_about_to_say_is_dropped_when_its_lease_has_ended() -> None:
    """L5: the driver looks at the clock right before the bytes leave."""
    world = _world()
    node = world.nodes["n1"]
    node.trap = Trap(1, Node.pause)
    until = node.clock() + 1.0
    late, timeless = SendToPeer("n2", AliveAck(1, 1, 2, 2.0), until), SendToPeer("n3", Ask(9, "config", "k"))
    _do(world, "n1", SendToPeer("n2", AliveAck(1, 1, 1, 2.0), until), late, timeless)
    world.run(until=2.0)
    assert node.paused
    node.resume()
    world.run(until=3.0)
    assert [(AliveAck(1, 1, 1, 2.0),)] == _frames(world, "n2")
    assert [(timeless.message,)] == _frames(world, "n3")
    assert 1 == world.dropped_stale


def test_what_was_not_said_in_time_is_not_told_either() -> None:
    """L5: a word that hangs on a slow write does not leave any more, and history has no line of it."""
    world = _world()
    node = world.nodes["n1"]
    node.trap = Trap(0, Node.pause)
    until = node.clock() + 1.0
    _do(world, "n1", Journal("held", seq=1, valid_until=until), Journal("promise", epoch=3))
    world.run(until=2.0)
    node.resume()
    world.run(until=3.0)
    assert [3] == [line.epoch for line in _lines(world, "promise")]
    assert [] == _lines(world, "held")
    _do(world, "n1", Journal("held", seq=2, valid_until=node.clock() + 1.0))
    world.run(until=4.0)
    assert [2] == [line.seq for line in _lines(world, "held")]


def test_a_paused_process_drains_its_queue_and_then_gets_a_tick() -> None:
    world = _world()
    world.nodes["n2"].pause()
    _do(world, "n1", SendToPeer("n2", Ask(1, "config", "k")))
    _do(world, "n2", after=0.5)
    world.run(until=5.0)
    assert [] == _engine(world, "n2").events
    world.nodes["n2"].resume()
    frame, tick = _engine(world, "n2").events
    assert isinstance(frame, PeerFrame)
    assert isinstance(tick, Tick)


def test_peers_of_a_dead_process_are_refused_soon_and_again() -> None:
    world = _world()
    world.run(until=1.0)
    world.network.cut([("n1", "n3")])
    world.nodes["n1"].crash("killed")
    world.run(until=1.05)
    assert [PeerRefused("n1")] == _engine(world, "n2").events
    assert [] == _engine(world, "n3").events
    world.run(until=1.35)
    assert 4 == len(_engine(world, "n2").events)
    world.nodes["n1"].start()
    world.run(until=2.0)
    assert 4 == len(_engine(world, "n2").events)


def test_a_machine_without_power_refuses_nobody() -> None:
    world = _world()
    world.nodes["n1"].crash("power loss", power=True)
    world.run(until=2.0)
    assert [] == _engine(world, "n2").events


def test_ticks_come_when_asked_for_on_the_nodes_own_clock() -> None:
    world = _world()
    node = world.nodes["n1"]
    _do(world, "n1", after=1.5)
    wanted = _engine(world, "n1").deadline
    world.run(until=2.0)
    assert 1 == len(_engine(world, "n1").times)
    assert 0.0 <= _engine(world, "n1").times[0] - wanted < 1e-3
    assert math.isinf(node.tick_deadline)


def test_clocks_differ_within_what_the_protocol_allows() -> None:
    rates = [node.rate for node in _world(nodes=40).nodes.values()]
    assert max(rates) / min(rates) < 1.01
    assert len(set(rates)) > 30


def test_incarnations_only_grow_even_when_the_wall_clock_is_set_back() -> None:
    """MSG-14."""
    world = _world()
    node = world.nodes["n1"]
    seen = [_engine(world, "n1").incarnation]
    for jump in (-86_400.0, 0.0, 86_400.0, -86_400.0):
        node.crash("killed")
        node.wall_offset += jump
        node.start()
        seen.append(_engine(world, "n1").incarnation)
    assert sorted(set(seen)) == seen


def test_a_halt_stops_the_node_and_is_found() -> None:
    world = _world()
    _do(world, "n1", Halt("essential parameter differs"))
    world.run(until=1.0)
    assert not world.nodes["n1"].running
    assert ["halt"] == [failure.invariant for failure in world.failures]


def test_the_first_word_of_an_epoch_is_a_line_and_the_second_is_not() -> None:
    world = _world()
    for n in (1, 2):
        _do(world, "n1", Multicast(DOMAIN_TOPIC, LeaderAlive(7, n, 0, 0)))
        world.run(until=world.t + 1.0)
    (spoke,) = _lines(world, "spoke")
    assert ("n1", 7, "LeaderAlive") == (spoke.node, spoke.epoch, spoke.args["kind"])


def test_marks_are_counted_and_not_written() -> None:
    world = _world()
    _do(world, "n1", Journal("mark", args={"name": "rare"}), Journal("promise", epoch=3))
    world.run(until=1.0)
    assert (1, 1) == (world.marks["rare"], world.marks["promise"])
    assert [] == _lines(world, "mark")
