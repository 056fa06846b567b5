"""The leader's pen: numbers without gaps, and stable is what k servers hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.effects import Persist, SendToPeer
from groupsvcd.core.parameters import Timers
from groupsvcd.core.peer_messages import Beat, Held, Order, PeerMessage
from groupsvcd.core.records import StoredStream
from groupsvcd.core.stream.duplicates import DuplicateFilter
from groupsvcd.core.stream.entries import decode_entry
from groupsvcd.core.stream.sequencer import Sequencer
from groupsvcd.core.stream.server import Server
from groupsvcd.core.turn import Turn
from tests.unit.core.stream.list_host import ListHost, drain, entries, replica_of


class Stage:
    """A leads epoch 7 with B and C (and more, if wanted)."""

    def __init__(self, names: str = "ABC", k: int = 2) -> None:
        self.turn = Turn("A")
        self.turn.now = 10.0
        self.host = ListHost()
        servers = tuple(names)
        stored = StoredStream(promised=7, accepted=7, entries=entries("ab"))
        self.server = Server(replica_of(self.turn, self.host, stored, servers), stored.promised, k)
        self.server.replica.leader = "A"
        self.origins = DuplicateFilter({}, 1000)
        self.sequencer = Sequencer(self.server, 7, k, self.origins, Timers())
        self.writes: list[Persist] = []

    def said(self) -> list[tuple[str, PeerMessage]]:
        """What left for others since the last look."""
        effects = drain(self.turn)
        self.writes += [effect for effect in effects if isinstance(effect, Persist)]
        return [(effect.node, effect.message) for effect in effects if isinstance(effect, SendToPeer)]

    def sync(self) -> None:
        """A's own writes complete."""
        self.said()
        for write in self.writes:
            self.turn.persisted(write.number)
        self.writes.clear()
        while self.turn.round_trip:
            held = self.turn.round_trip.popleft()
            assert isinstance(held, Held)
            self.sequencer.on_held("A", held)

    def held(self, name: str, upto: int, epoch: int = 7) -> None:
        """A server says what it has."""
        self.sequencer.on_held(name, Held(0, epoch, upto, 0))


def test_what_comes_in_one_step_leaves_in_one_order() -> None:
    """Numbers follow the log without a gap."""
    stage = Stage()
    assert [3, 4, 5] == [stage.sequencer.order("D", 4, n, b"body") for n in (1, 2, 3)]
    assert [] == stage.said()
    stage.sequencer.flush()
    said = stage.said()
    assert ["B", "C"] == [node for node, _ in said]
    order = said[0][1]
    assert isinstance(order, Order)
    assert (3, 7, 0) == (order.first_seq, order.epoch, order.stable)
    assert [("D", 4, 1), ("D", 4, 2), ("D", 4, 3)] == [
        (parts.origin, parts.incarnation, parts.n) for parts in map(decode_entry, order.entries)
    ]
    assert 3 == stage.origins.last_n(("D", 4))
    assert 6 == stage.sequencer.next_seq


def test_nothing_to_order_sends_nothing() -> None:
    stage = Stage()
    stage.sequencer.flush()
    assert [] == stage.said()


@given(
    k=st.integers(1, 5),
    said=st.lists(st.tuples(st.sampled_from("ABCDE"), st.integers(1, 6)), max_size=30),
)
def test_stable_is_what_k_servers_hold(k: int, said: list[tuple[str, int]]) -> None:
    """The k-th largest of what each has said at most; never less than before."""
    stage = Stage("ABCDE", k)
    for n in range(1, 5):
        stage.sequencer.order("D", 4, n, b"body")
    stage.sequencer.flush()
    reached = dict.fromkeys("ABCDE", 0)
    for name, upto in said:
        stage.held(name, upto)
        reached[name] = max(reached[name], upto)
        assert sorted(reached.values(), reverse=True)[k - 1] == stage.server.stable
        assert stage.server.stable == len(stage.host.delivered)


def test_the_leaders_own_copy_counts_only_when_it_is_on_disk() -> None:
    """A is one of the k, like any other."""
    stage = Stage()
    stage.sequencer.order("", 0, 0, b"body")
    stage.sequencer.flush()
    stage.held("B", 3)
    assert 0 == stage.server.stable
    stage.sync()
    assert 3 == stage.server.stable


@pytest.mark.parametrize("name, epoch", [("B", 6), ("B", 8), ("X", 7)])
def test_held_of_another_epoch_or_of_no_server_counts_for_nothing(name: str, epoch: int) -> None:
    """Entry 2 of epoch 6 may be another entry."""
    stage = Stage()
    stage.sequencer.holds("A", 2)
    stage.held(name, 2, epoch)
    assert 0 == stage.server.stable


def test_what_becomes_stable_is_told_at_once() -> None:
    """With a Beat, if no Order takes it along."""
    stage = Stage()
    stage.sequencer.holds("A", 2)
    stage.held("B", 2)
    stage.sequencer.tell_stable()
    assert [("B", Beat(0, 7, 2, 2, 0)), ("C", Beat(0, 7, 2, 2, 0))] == stage.said()
    stage.sequencer.tell_stable()
    assert [] == stage.said()


def test_beats_go_on_to_whoever_lags_and_end_with_the_last_of_them() -> None:
    """A lost tail is noticed; a quiet stream is quiet."""
    stage = Stage()
    stage.sequencer.order("", 0, 0, b"body")
    stage.sequencer.flush()
    stage.sync()
    stage.sequencer.on_held("B", Held(0, 7, 3, 3))
    stage.said()
    stage.turn.now = stage.sequencer.deadline
    stage.sequencer.tick()
    assert ["C"] == [node for node, _ in stage.said()]
    stage.sequencer.on_held("C", Held(0, 7, 3, 3))
    stage.turn.now = stage.sequencer.deadline
    stage.sequencer.tick()
    assert [] == stage.said()
    assert math.inf == stage.sequencer.deadline


def test_a_restarted_server_says_anew_what_it_holds() -> None:
    """Its predecessor's words are not its own; it is reminded to speak."""
    stage = Stage()
    stage.held("B", 2)
    assert 2 == stage.sequencer.held_by("B")
    stage.sequencer.forget("B")
    assert 0 == stage.sequencer.held_by("B")
    assert stage.sequencer.deadline < math.inf
    stage.sequencer.holds("A", 2)
    assert 0 == stage.server.stable


def test_nothing_becomes_stable_in_an_epoch_after_a_higher_one_was_promised() -> None:
    """L5. The last word of k servers may come in the very step in which the leader promises to another one."""
    stage = Stage()
    stage.sequencer.order("x", 1, 1, b"c")
    stage.sequencer.flush()
    stage.sync()
    stage.server.promise(8)
    stage.held("B", 3)
    assert stage.server.stable < 3
