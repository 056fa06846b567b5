"""A multicast reaches those that listen to its sender and want its topic, and what is sent to whom is counted."""

from __future__ import annotations

from groupsvc.testing.sim import Weather, World
from groupsvc.testing.sim.network import DIRECT
from groupsvcd.core.effects import Connect, Disconnect, Effect, Multicast, SendToPeer, Subscribe, Unsubscribe
from groupsvcd.core.events import PeerFrame
from groupsvcd.core.peer_messages import DOMAIN_TOPIC, Ask, Beat, LeaderAlive, topic_of
from tests.sim.recording_engine import RecordingEngine

SEVEN, NINE = topic_of(7), topic_of(9)
VOTERS = ("n1", "n2", "n3")


def _world(nodes: int = 6, weather: Weather | None = None) -> World:
    world = World(3, nodes, voters=3, engine=RecordingEngine, start_within_s=None, weather=weather or Weather())
    for node in world.nodes.values():
        node.start()
    return world


def _engine(world: World, name: str) -> RecordingEngine:
    engine = world.nodes[name].engine
    assert isinstance(engine, RecordingEngine)
    return engine


def _do(world: World, name: str, *effects: Effect) -> None:
    """Have an engine want these effects now, and a second pass."""
    engine, node = _engine(world, name), world.nodes[name]
    engine.script = list(effects)
    engine.deadline = node.clock()
    node.plan_tick()
    world.run(until=world.t + 1.0)


def _follow(world: World, listener: str, sender: str, topic: bytes = SEVEN) -> None:
    _do(world, listener, Connect(sender, f"sim:{sender}", listen=True), Subscribe(topic))


def _beat(n: int, group: int = 7) -> Multicast:
    return Multicast(topic_of(group), Beat(group, 7, n, n, 0))


def _heard(world: World, name: str) -> list[int]:
    frames = [event for event in _engine(world, name).events if isinstance(event, PeerFrame)]
    return [message.last for frame in frames for message in frame.messages if isinstance(message, Beat)]


def test_a_groups_multicast_reaches_who_listens_to_the_sender_and_wants_the_topic() -> None:
    world = _world()
    _follow(world, "n5", "n4")
    _do(world, "n6", Connect("n4", "sim:n4"), Subscribe(SEVEN))  # connected, and does not listen
    _do(world, "n1", Connect("n4", "sim:n4", listen=True), Subscribe(NINE))  # listens, and wants another topic
    _do(world, "n4", _beat(1))
    assert [1] == _heard(world, "n5")
    assert all([] == _heard(world, name) for name in world.names if name != "n5")


def test_voters_are_heard_on_the_domains_topic_alone_unless_somebody_listens_to_them() -> None:
    world = _world()
    _do(world, "n5", Subscribe(SEVEN))
    _do(world, "n1", Multicast(DOMAIN_TOPIC, LeaderAlive(1, 1, 0, 0)), _beat(1))
    assert [] == _heard(world, "n5")
    _do(world, "n5", Connect("n1", "sim:n1", listen=True))
    _do(world, "n1", _beat(2))
    assert [2] == _heard(world, "n5")


def test_multicasts_of_one_step_leave_in_one_frame_per_topic() -> None:
    world = _world()
    _follow(world, "n5", "n4")
    _do(world, "n5", Subscribe(NINE))
    _do(world, "n4", _beat(1), _beat(2, group=9), _beat(3))
    assert [1, 3, 2] == _heard(world, "n5")
    assert {SEVEN: 1, NINE: 1} == {key[2]: sent.frames for key, sent in world.network.traffic().items()}


def test_a_subscription_works_once_the_sender_has_learnt_of_it() -> None:
    """What A multicasts in the moment B subscribes B does not hear."""
    world = _world(weather=Weather(delay_min=0.1, delay_spread=0.0))
    for name, effects in (("n5", [Connect("n4", "sim:n4", listen=True), Subscribe(SEVEN)]), ("n4", [_beat(1)])):
        engine = _engine(world, name)
        engine.script, engine.deadline = list(effects), world.nodes[name].clock()
        world.nodes[name].plan_tick()
    world.run(until=1.0)
    _do(world, "n4", _beat(2))
    assert [2] == _heard(world, "n5")


def test_wishes_end_with_a_word_or_with_the_process() -> None:
    world = _world()
    ends: tuple[tuple[Effect, ...], ...] = (
        (Unsubscribe(SEVEN),),
        (Disconnect("n4"),),
        (Connect("n4", "sim:n4", listen=False),),
    )
    for effects in ends:
        _follow(world, "n5", "n4")
        _do(world, "n5", *effects)
        _do(world, "n4", _beat(1))
        assert [] == _heard(world, "n5")
    _follow(world, "n5", "n4")
    world.nodes["n5"].crash("killed")
    world.nodes["n5"].start()
    _do(world, "n4", _beat(1))
    assert [] == _heard(world, "n5")


def test_a_node_without_a_connection_is_sent_nothing_and_not_told_of_its_death() -> None:
    world = _world()
    _do(world, "n5", Connect("n4", "sim:n4"))
    _do(world, "n5", Disconnect("n4"), SendToPeer("n4", Ask(1, "config", "k")))
    world.nodes["n4"].crash("killed")
    world.run(until=world.t + 1.0)
    assert 1 == world.unroutable
    assert 2 == len(_engine(world, "n5").events)  # its two ticks


def test_frames_and_bytes_are_counted_by_sender_receiver_and_topic() -> None:
    world = _world()
    _follow(world, "n5", "n4")
    _do(world, "n4", _beat(1), Connect("n6", "sim:n6"), SendToPeer("n6", Ask(1, "config", "k")))
    _do(world, "n4", _beat(2))
    sent = world.network.traffic()
    assert {("n4", "n5", SEVEN): 2, ("n4", "n6", DIRECT): 1} == {key: traffic.frames for key, traffic in sent.items()}
    assert all(traffic.bytes > 40 * traffic.frames for traffic in sent.values())


def test_nodes_keep_connections_to_voters_and_to_whom_they_connected() -> None:
    world = _world()
    before = world.connections()
    _follow(world, "n5", "n4")
    assert {("n4", "n5")} == world.connections() - before
    assert (*VOTERS, "n4") == world.nodes["n5"].connections
    assert VOTERS == world.nodes["n6"].connections


def test_a_multicast_and_a_direct_frame_may_overtake_each_other() -> None:
    """They travel over two connections, as between daemons; each of the two keeps its order."""
    world = _world(weather=Weather(delay_spread=0.5))
    _follow(world, "n5", "n4")
    engine, node = _engine(world, "n4"), world.nodes["n4"]
    _do(world, "n4", Connect("n5", "sim:n5"))
    for n in range(40):
        engine.script = [_beat(2 * n), SendToPeer("n5", Beat(7, 7, 2 * n + 1, 0, 0))]
        engine.deadline = node.clock()
        node.plan_tick()
        world.run(until=world.t + 0.01)
    world.run(until=world.t + 2.0)
    heard = _heard(world, "n5")
    assert list(range(80)) == sorted(heard) != heard
    assert list(range(0, 80, 2)) == [n for n in heard if n % 2 == 0]
    assert list(range(1, 80, 2)) == [n for n in heard if n % 2]
