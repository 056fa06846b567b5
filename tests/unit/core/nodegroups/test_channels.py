"""Whatever carries what a group multicasts, the group gets the same out of it (SAM-13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest

from groupsvcd.core.effects import Effect, Multicast
from groupsvcd.core.events import PeerFrame
from groupsvcd.core.peer_messages import DOMAIN_TOPIC, DataAsk, RepairAsk
from tests.unit.core.nodegroups.carriers import Carriers

MEMBERS = "DEFG"
LARGE = "x" * 100
DELAY_S = 0.001

Channel = Callable[[int], list[float]]
"""When a multicast arrives at the so-many-th of those that are to hear it: once, several times or never."""


def _at_once(place: int) -> list[float]:
    return [DELAY_S]


def _one_after_the_other(place: int) -> list[float]:
    return [DELAY_S * (1 + 4 * place)]


def _badly(seed: int) -> Channel:
    """A third is lost, a third comes twice, and much comes late: later than what was sent after it."""
    rng = Random(seed)

    def arrivals(place: int) -> list[float]:
        return [DELAY_S * rng.choice((1, 1, 3, 30)) for _ in range(rng.choice((0, 1, 2)))]

    return arrivals


class Channelled(Carriers):
    """What groups multicast goes through a channel of its own."""

    channel: Channel = staticmethod(_at_once)

    def _execute(self, name: str, effects: Iterable[Effect]) -> None:
        engine = self.engines[name]
        direct: list[Effect] = []
        multicasts: list[Multicast] = []
        for effect in effects:
            if isinstance(effect, Multicast) and effect.topic != DOMAIN_TOPIC:
                multicasts.append(effect)
            else:
                direct.append(effect)
        super()._execute(name, direct)
        for multicast in multicasts:
            frame = PeerFrame(name, engine.incarnation, engine.domain, (multicast.message,))
            for place, other in enumerate(self._audience(name, multicast.topic)):
                for after in self.channel(place):
                    self._at(self.now + after, lambda to=other, frame=frame: self.step(to, frame))  # type: ignore[misc]


def _played_over(channel: Channel) -> Carriers:
    """All members send, small and large; one leaves, the leader dies. All who were there were given the same."""
    nodes = Channelled(inline_bytes_max=64)
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.assemble(MEMBERS)
    nodes.channel = channel
    for number in range(3):
        for name in MEMBERS:
            nodes.submit(name, f"{name} {number}", f"{name} {number} {LARGE}", f"{name} {number} again")
            nodes.run(2.0)
    nodes.leave("G")
    nodes.run(2.0)
    nodes.submit("E", "without G")
    nodes.run(2.0)
    nodes.die("D")
    nodes.run(3.0)
    nodes.submit("F", "without D")
    nodes.run(3.0)
    assert [[], []] == [nodes.user(name).losses for name in "EF"]
    assert nodes.user("E").entries[-1] == nodes.user("F").entries[-1]
    entries = dict(nodes.user("E").entries)
    for name in "DFG":
        assert all(entries[seq] == entry for seq, entry in nodes.user(name).entries if seq in entries)
    assert nodes.texts("E") == nodes.texts("F")
    assert nodes.texts("E") == nodes.texts("G") + nodes.texts("E")[len(nodes.texts("G")) :]
    return nodes


@pytest.fixture(scope="module")
def expected() -> list[str]:
    """What comes of it over a channel that reaches everybody at once."""
    return _played_over(_at_once).texts("E")


def test_a_series_of_unicasts_gives_the_same_as_a_multicast(expected: list[str]) -> None:
    """SAM-13. Each member gets everything later than the one before it."""
    assert 38 == len(expected)
    assert expected == _played_over(_one_after_the_other).texts("E")


@pytest.mark.parametrize("seed", range(2))
def test_so_does_a_channel_that_loses_repeats_and_reorders(expected: list[str], seed: int) -> None:
    """SAM-13, B1 to B5."""
    nodes = _played_over(_badly(seed))
    assert expected == nodes.texts("E")
    assert len(nodes.messages(RepairAsk)) > 5 < len(nodes.messages(DataAsk)), "the channel lost something"
