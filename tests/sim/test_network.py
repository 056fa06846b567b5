"""The simulated network does to frames what networks do, and nothing else."""

from __future__ import annotations

from groupsvc.testing.sim import Weather, World
from groupsvc.testing.sim.network import Packet
from groupsvc.wire import frames
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core.events import PeerFrame
from groupsvcd.core.peer_messages import PEER_CODEC, Ask, Tell
from tests.sim.recording_engine import RecordingEngine


def _world(weather: Weather | None = None) -> World:
    world = World(3, 2, engine=RecordingEngine, start_within_s=None, weather=weather or Weather())
    for node in world.nodes.values():
        node.start()
    return world


def _send(world: World, count: int) -> None:
    for number in range(count):
        body = PEER_CODEC.encode([Ask(number, "config", "key")])
        packet = Packet(frames.pack(FrameKind.PEER, bytes(16), b"n1", 1, body))
        world.network.send("n1", "n2", packet, world.t)


def _arrived(world: World) -> list[int]:
    engine = world.nodes["n2"].engine
    assert isinstance(engine, RecordingEngine)
    asks = [m for e in engine.events if isinstance(e, PeerFrame) for m in e.messages if isinstance(m, Ask)]
    return [ask.number for ask in asks]


def test_a_calm_link_keeps_everything_in_order() -> None:
    world = _world(Weather(delay_spread=0.5))
    _send(world, 50)
    world.run(until=5.0)
    assert list(range(50)) == _arrived(world)


def test_a_cut_link_drops_and_the_other_direction_works() -> None:
    world = _world()
    world.network.cut([("n1", "n2")])
    _send(world, 3)
    world.network.heal([("n1", "n2")])
    _send(world, 1)
    world.run(until=1.0)
    assert [0] == _arrived(world)
    assert world.network.works_both_ways("n1", "n2")


def test_a_held_link_delivers_everything_once_it_heals() -> None:
    world = _world()
    world.network.cut([("n1", "n2")], hold=True)
    _send(world, 3)
    world.run(until=1.0)
    assert [] == _arrived(world)
    world.network.heal([("n1", "n2")], hold=True)
    world.run(until=2.0)
    assert [0, 1, 2] == _arrived(world)


def test_cuts_are_counted() -> None:
    world = _world()
    world.network.cut([("n1", "n2")])
    world.network.cut([("n1", "n2")])
    world.network.heal([("n1", "n2")])
    _send(world, 1)
    world.run(until=1.0)
    assert [] == _arrived(world)
    world.network.heal_all()
    _send(world, 1)
    world.run(until=2.0)
    assert [0] == _arrived(world)


def test_bad_weather_loses_repeats_and_overtakes() -> None:
    lossy, repeating, overtaking = _world(Weather(loss=0.5)), _world(Weather(repeat=0.5)), _world(Weather(overtake=0.5))
    for world in (lossy, repeating, overtaking):
        _send(world, 100)
        world.run(until=5.0)
    assert 20 < len(_arrived(lossy)) < 80
    assert len(_arrived(repeating)) > 120
    assert set(range(100)) == set(_arrived(overtaking))
    assert list(range(100)) != _arrived(overtaking)


def test_a_late_frame_comes_after_all() -> None:
    world = _world(Weather(late=1.0, late_s_max=20.0))
    _send(world, 20)
    world.run(until=0.5)
    assert len(_arrived(world)) < 20
    world.run(until=30.0)
    assert set(range(20)) == set(_arrived(world))


def test_every_garbled_frame_is_refused() -> None:
    """MSG-14: a flipped bit is a refusal, never a message."""
    world = _world(Weather(garble=1.0))
    _send(world, 200)
    world.run(until=5.0)
    assert [] == _arrived(world)
    assert 200 == world.network.frames_refused


def test_receivers_share_nothing_that_can_be_changed() -> None:
    plain, with_dict = ([Ask(1, "config", "k")], [Tell(1, 1, 1, {"a": 1})])
    for messages, shared in ((plain, True), (with_dict, False)):
        packet = Packet(frames.pack(FrameKind.PEER, bytes(16), b"n1", 1, PEER_CODEC.encode(messages)))
        assert shared == (packet.open() is packet.open())


def test_a_packet_is_read_as_the_wire_reads_it() -> None:
    body = PEER_CODEC.encode([Ask(1, "config", "k")])
    frame = frames.pack(FrameKind.PEER, bytes(range(16)), "nöde".encode(), 2**60 + 1, body)
    read, event = frames.unpack(frame), Packet(frame).open()
    assert PeerFrame(read.sender, read.incarnation, read.domain, PEER_CODEC.decode(read.body)) == event
