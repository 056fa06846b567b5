"""Who is connected to whom: as few as possible, as long as anybody needs it (GS-02)."""

from __future__ import annotations

from groupsvcd.core.effects import Connect, Disconnect, Effect
from groupsvcd.core.links import LINGER_S, Links
from groupsvcd.core.turn import Turn


class Stage:
    """The links of A."""

    def __init__(self) -> None:
        self.turn = Turn("A")
        self.turn.now = 10.0
        self.links = Links(self.turn)

    def effects(self) -> list[Effect]:
        """What the links wanted done since the last look."""
        effects, self.turn.effects = self.turn.effects, []
        return effects

    def pass_time(self, seconds: float) -> list[Effect]:
        """A tick that much later."""
        self.turn.now += seconds
        self.links.tick()
        return self.effects()


def test_nobody_connects_to_itself_or_to_nowhere() -> None:
    stage = Stage()
    stage.links.need(7, {"A": "tcp://a:1", "B": "", "C": "tcp://c:1"}, listen=True)
    assert [Connect("C", "tcp://c:1", True)] == stage.effects()


def test_a_link_stays_as_long_as_anybody_needs_it() -> None:
    """B is in two groups with A. When both are left the link goes, after a while."""
    stage = Stage()
    stage.links.need(7, {"B": "tcp://b:1"}, listen=True)
    stage.links.need(8, {"B": "tcp://b:1"}, listen=True)
    assert [Connect("B", "tcp://b:1", True)] == stage.effects()
    stage.links.forget(7)
    assert [] == stage.pass_time(2 * LINGER_S)
    stage.links.forget(8)
    assert [] == stage.pass_time(LINGER_S / 2)
    assert stage.turn.now + LINGER_S / 2 == stage.links.deadline
    assert [Disconnect("B")] == stage.pass_time(LINGER_S / 2)


def test_who_comes_back_soon_finds_the_link_as_it_was() -> None:
    stage = Stage()
    stage.links.need(7, {"B": "tcp://b:1"}, listen=True)
    stage.effects()
    stage.links.forget(7)
    stage.links.need(8, {"B": "tcp://b:1"}, listen=True)
    assert [] == stage.pass_time(2 * LINGER_S)


def test_multicasts_are_heard_if_any_owner_listens() -> None:
    stage = Stage()
    stage.links.need(7, {"B": "tcp://b:1"}, listen=False)
    stage.links.need(8, {"B": "tcp://b:1"}, listen=True)
    assert [Connect("B", "tcp://b:1", False), Connect("B", "tcp://b:1", True)] == stage.effects()
    stage.links.forget(8)
    assert [Connect("B", "tcp://b:1", False)] == stage.effects()


def test_a_node_that_moved_is_found_at_its_new_address() -> None:
    stage = Stage()
    stage.links.need(7, {"B": "tcp://b:1"}, listen=False)
    stage.links.need_too(7, "B", "tcp://b:2")
    assert [Connect("B", "tcp://b:1"), Connect("B", "tcp://b:2")] == stage.effects()
