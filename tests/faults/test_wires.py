"""What is done to wires does what it says, and no more; and a nemesis of wires sees whether it does.

Five networks and no daemon in them, some seconds in all. What probes hear is looked at before, while, and after.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from .nemeses import NEMESES
from .nemeses.wire_base import WireNemesis
from .nemesis import Scene
from .wires import Missing, Wires

pytestmark = pytest.mark.alone

NAMES = ("n1", "n2", "n3", "n4", "n5")
BETWEEN = {("n1", "n2"), ("n2", "n1")}

ON_WIRES = sorted(name for name, kind in NEMESES.items() if issubclass(kind, WireNemesis))


class Paintable(Wires):
    """Wires whose rules and links may be painted on: then they can be cut, and everything passes."""

    is_painted = False

    def rules(self, name: str, text: str) -> None:
        if not self.is_painted:
            super().rules(name, text)

    def link(self, name: str, state: str) -> None:
        if not self.is_painted:
            super().link(name, state)


@pytest.fixture(scope="module")
def five() -> Iterator[Paintable]:
    """Skipped, by name, where something is missing."""
    wires = Paintable(NAMES)
    try:
        wires.__enter__()
    except Missing as missing:
        pytest.skip(str(missing))
    try:
        yield wires
    finally:
        wires.__exit__(None, None, None)


@pytest.fixture
def wires(five: Paintable) -> Iterator[Wires]:
    """All that a test has done to them is undone, and it is looked whether it is."""
    assert "" == five.problem()
    yield five
    five.heal()
    assert frozenset() == five.silent
    assert "" == five.problem()


@pytest.fixture
def painted(five: Paintable) -> Iterator[Wires]:
    """The same, on which nothing has any effect."""
    five.is_painted = True
    yield five
    five.is_painted = False
    five.heal()


# --- Each kind of fault ---


def test_one_direction_is_cut_and_the_other_is_not(wires: Wires) -> None:
    wires.cut({"n1": ["n2"]})
    assert {("n2", "n1")} == wires.probes.pairs - wires.probes.heard()


def test_sides_do_not_hear_one_another_and_each_hears_itself(wires: Wires) -> None:
    wires.part(["n1", "n2"], ["n3", "n4", "n5"])
    expected = {pair for pair in wires.probes.pairs if len(BETWEEN_SIDES.intersection(pair)) == 1}
    assert expected == wires.probes.pairs - wires.probes.heard() == wires.silent


BETWEEN_SIDES = frozenset({"n1", "n2"})


def test_who_is_unplugged_hears_nobody_and_is_heard_by_nobody_until_it_is_plugged_in(wires: Wires) -> None:
    wires.unplug("n3")
    assert {pair for pair in wires.probes.pairs if "n3" in pair} == wires.probes.pairs - wires.probes.heard()
    wires.plug_in("n3")
    assert "" == wires.problem()


def test_a_connection_over_a_cut_wire_stands_still_and_goes_on_when_it_is_healed(wires: Wires) -> None:
    calling, called = wires.probes.connection("n1", "n2")
    with calling, called:
        wires.cut({"n2": ["n1"]})
        calling.sendall(b"late")
        called.settimeout(0.3)
        with pytest.raises(TimeoutError):
            called.recv(4)
        with pytest.raises(TimeoutError):
            wires.probes.connection("n1", "n2", within_s=0.3)
        wires.heal()
        called.settimeout(5.0)
        assert b"late" == called.recv(4)


@pytest.mark.parametrize("percent", [2, 20, 50])
def test_so_much_is_lost_of_what_comes_to_a_node_and_nothing_of_what_it_says(wires: Wires, percent: int) -> None:
    wires.lose("n1", percent)
    lost = wires.probes.lost("n2", "n1", 2000) / 20
    assert percent / 2 < lost < percent * 1.5
    assert 0 == wires.probes.lost("n1", "n2", 500)


def test_connections_are_reset_and_new_ones_refused_on_both_sides_and_nothing_else_is(wires: Wires) -> None:
    """Where both refuse, a reset has to come through: once it was dropped, and all was a cut."""
    calling, called = wires.probes.connection("n1", "n2")
    with calling, called:
        wires.refuse({"n1": ["n2"], "n2": ["n1"]})
        assert wires.probes.is_refused("n1", "n2")
        assert wires.probes.is_refused("n2", "n1")
        assert not wires.probes.is_refused("n1", "n3")
        calling.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            calling.recv(1)
    assert BETWEEN == wires.probes.heard(BETWEEN)


# --- Nemeses ---


class Stage(Scene):
    """A scene without daemons, in which n1 leads."""

    def leader(self) -> str | None:
        return self.names[0]

    def running(self) -> list[str]:
        return list(self.names)


def stage(wires: Wires, directory: Path) -> Scene:
    found = Stage(NAMES, NAMES, directory, wires, {})
    place: Any = SimpleNamespace(root=Path(__file__).parents[2])
    found.cluster = place
    return found


def struck(nemesis: WireNemesis, scene: Scene) -> dict[str, Any]:
    """What it has done; healed. One that is unsteady gets the time to pull a wire."""
    done = nemesis.strike(scene, random.Random(7))
    assert done is not None
    until = time.monotonic() + 3.0
    while not nemesis.bitten and not nemesis.failures and time.monotonic() < until:
        time.sleep(0.02)
    nemesis.heal(scene)
    return done


def made(name: str) -> WireNemesis:
    """Skipped, by name, where something is missing."""
    nemesis = NEMESES[name]()
    assert isinstance(nemesis, WireNemesis)
    try:
        nemesis.look()
    except Missing as missing:
        pytest.skip(str(missing))
    return nemesis


@pytest.mark.parametrize("name", ON_WIRES)
def test_a_nemesis_of_wires_sees_that_its_harm_is_there(wires: Wires, tmp_path: Path, name: str) -> None:
    nemesis = made(name)
    struck(nemesis, stage(wires, tmp_path))
    assert [] == nemesis.found()
    assert nemesis.bites()


@pytest.mark.parametrize("name", [name for name in ON_WIRES if name != "delay"])
def test_a_nemesis_whose_harm_does_nothing_turns_its_run_red(painted: Wires, tmp_path: Path, name: str) -> None:
    nemesis = made(name)
    struck(nemesis, stage(painted, tmp_path))
    assert all(f"{name} is not there" in text for text in nemesis.found())
    assert nemesis.found()
    assert 0 == nemesis.bites()


def test_a_delay_that_does_nothing_is_seen(painted: Wires, tmp_path: Path) -> None:
    nemesis: Any = NEMESES["delay"]()
    assert "took" in nemesis._problem(stage(painted, tmp_path), "n1", 0.02, 0.02)
    assert "took" in nemesis._problem(stage(painted, tmp_path), "n1", 0.0, 0.3)
    assert "" == nemesis._problem(stage(painted, tmp_path), "n1", 0.0, 0.0)
