"""A receiver promised nothing to anybody and must still never deliver what a later epoch replaced."""

from __future__ import annotations

from zlib import crc32

import attrs
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from groupsvcd.core.effects import SendToPeer
from groupsvcd.core.peer_messages import Beat, Block, BlockAsk, Order, Repair, RepairAsk
from groupsvcd.core.records import StoredStream
from groupsvcd.core.stream.receiver import Receiver
from groupsvcd.core.turn import Turn
from tests.unit.core.stream.list_host import ListHost, drain, entries, entry, replica_of, state_after


def _receiver() -> tuple[Receiver, ListHost, Turn]:
    turn, host = Turn("D"), ListHost()
    turn.now = 1.0
    return Receiver(replica_of(turn, host, StoredStream(), "ABC")), host, turn


@attrs.frozen
class Epoch:
    """What the log of one epoch was in the end, and how much of it became stable in it."""

    log: tuple[bytes, ...]
    stable: int
    began: int  # the first entry of its view


@st.composite
def histories(draw: st.DrawFn) -> list[Epoch]:
    """Logs of epochs 1, 2, …: each keeps at least what was stable before, drops some of the rest, and goes on."""
    found: list[Epoch] = []
    log: tuple[bytes, ...] = ()
    stable = 0
    for number in range(1, draw(st.integers(1, 5)) + 1):
        log = log[: draw(st.integers(stable, len(log)))]
        began = len(log) + 1
        log += tuple(entry(f"{number}.{i}") for i in range(draw(st.integers(0, 6))))
        stable = draw(st.integers(stable, len(log)))
        found.append(Epoch(log, stable, began))
    return found


@st.composite
def honest_messages(draw: st.DrawFn, history: list[Epoch]) -> list[Order | Beat | Repair]:
    """What honest leaders and servers of these epochs may say, in any order."""
    found: list[Order | Beat | Repair] = []
    for _ in range(draw(st.integers(0, 40))):
        number = draw(st.integers(1, len(history)))
        epoch = history[number - 1]
        stable = draw(st.integers(0, epoch.stable))
        first = draw(st.integers(1, len(epoch.log) + 1))
        upto = draw(st.integers(first - 1, len(epoch.log)))
        kind = draw(st.sampled_from(["order", "beat", "repair", "checkpoint"]))
        piece = epoch.log[first - 1 : upto]
        if kind == "order" and piece:
            found.append(Order(0, number, first, piece, stable, 0, epoch.began))
        elif kind == "beat":
            found.append(Beat(0, number, upto, min(stable, upto), 0, 0, epoch.began))
        elif kind == "repair" and piece:
            found.append(Repair(0, number, stable, first, piece))
        elif kind == "checkpoint" and stable:
            state = state_after(epoch.log[:stable])
            rest = epoch.log[stable:upto]
            found.append(Repair(0, number, stable, stable + 1, rest, stable, 0, len(state), state))
    return found


@given(data=st.data())
def test_nothing_is_delivered_that_a_later_epoch_replaced(data: st.DataObject) -> None:
    """Leaders and servers are honest; the network repeats, loses and reorders across epochs as it likes."""
    history = data.draw(histories())
    receiver, host, _ = _receiver()
    final = history[-1].log
    for message in data.draw(honest_messages(history)):
        if isinstance(message, Order):
            receiver.on_order("A", message)
        elif isinstance(message, Beat):
            receiver.on_beat("A", message)
        else:
            receiver.on_repair("B", message)
        assert final[: len(host.delivered)] == tuple(host.delivered)
    newest = len(history)
    receiver.on_order("A", Order(0, newest, 1, final, history[-1].stable))
    assert final[: history[-1].stable] == tuple(host.delivered[: history[-1].stable])
    assert final[: len(host.delivered)] == tuple(host.delivered)


def test_only_what_is_stable_is_delivered() -> None:
    """The rest may still be replaced."""
    receiver, host, _ = _receiver()
    receiver.on_order("A", Order(0, 7, 1, entries("abc"), 1))
    assert list(entries("a")) == host.delivered
    receiver.on_beat("A", Beat(0, 7, 3, 3, 0))
    assert list(entries("abc")) == host.delivered


def test_a_new_epoch_drops_what_was_not_known_to_be_stable() -> None:
    """B leads epoch 8 and its log has another entry under number 2."""
    receiver, host, _ = _receiver()
    receiver.on_order("A", Order(0, 7, 1, entries("abc"), 1))
    receiver.on_beat("B", Beat(0, 8, 1, 1, 0))
    assert 1 == receiver.replica.log.last
    receiver.on_order("B", Order(0, 8, 2, entries("xy"), 3))
    assert list(entries("axy")) == host.delivered


def test_an_old_leader_is_not_listened_to() -> None:
    """A has not heard yet that B leads."""
    receiver, host, _ = _receiver()
    receiver.on_beat("B", Beat(0, 8, 0, 0, 0))
    receiver.on_order("A", Order(0, 7, 1, entries("abc"), 3))
    assert ([], 0, "B") == (host.delivered, receiver.replica.log.last, receiver.replica.leader)


def test_of_a_repair_from_an_older_epoch_only_the_stable_part_is_taken() -> None:
    """C has not opened epoch 8 yet; beyond what is stable its log may differ."""
    receiver, host, _ = _receiver()
    receiver.on_beat("B", Beat(0, 8, 3, 0, 0, began=3))
    receiver.on_repair("C", Repair(0, 7, 2, 1, entries("abc")))
    assert list(entries("ab")) == host.delivered
    assert 2 == receiver.replica.log.last


def test_of_a_repair_from_an_older_epoch_nothing_is_taken_from_where_the_view_began() -> None:
    """B4. View 8 was forced and lacks "b", which was stable in epoch 7; the answer of one who had it comes late."""
    receiver, host, _ = _receiver()
    receiver.on_beat("B", Beat(0, 8, 3, 0, 0, began=2))
    receiver.on_repair("C", Repair(0, 7, 2, 1, entries("ab")))
    assert list(entries("a")) == host.delivered
    receiver.on_repair("C", Repair(0, 7, 3, 4, (), 3, 0, 3, b"abc"))
    assert (list(entries("a")), 1) == (host.delivered, receiver.replica.log.last)


def test_a_lost_tail_is_noticed_and_asked_for() -> None:
    """Of the servers in turn, the leader after all of them (SAM-06)."""
    receiver, _, turn = _receiver()
    receiver.on_beat("A", Beat(0, 7, 3, 3, 0))
    asked = []
    for _ in range(3):
        turn.now = receiver.deadline
        receiver.tick()
        asked += [effect for effect in drain(turn) if isinstance(effect, SendToPeer)]
    assert ["B", "C", "A"] == [effect.node for effect in asked]
    assert RepairAsk(0, 1, 3) == asked[0].message


def test_a_checkpoint_in_blocks_is_asked_for_block_by_block() -> None:
    """What the receiver misses is kept nowhere any more; the entries behind the checkpoint are asked for after it."""
    receiver, host, turn = _receiver()
    receiver.on_beat("A", Beat(0, 7, 3, 3, 2))
    state = state_after(entries("ab"))
    half = (len(state) + 1) // 2
    whole = (2, len(state), crc32(state))
    receiver.on_repair("B", Repair(0, 7, 3, 3, (), 2, 0, len(state), state[:half], checkpoint_crc=crc32(state)))
    asked = [effect.message for effect in drain(turn) if isinstance(effect, SendToPeer)]
    assert [BlockAsk(0, 2, half, len(state) - half)] == asked
    receiver.on_block("B", Block(0, 7, 3, *whole, half, state[half:]))
    assert list(entries("ab")) == host.delivered
    receiver.tick()
    asked = [effect.message for effect in drain(turn) if isinstance(effect, SendToPeer)]
    assert [RepairAsk(0, 3, 3)] == asked


def test_a_checkpoint_is_not_taken_if_what_is_missing_now_is_still_kept() -> None:
    """GS-12. A late copy of an old ask is answered with a checkpoint. "c" is on its way, and B has it."""
    receiver, _, turn = _receiver()
    receiver.on_order("A", Order(0, 7, 1, entries("ab"), 2))
    receiver.on_beat("A", Beat(0, 7, 3, 3, 3))
    state = state_after(entries("abc"))
    late = Repair(0, 7, 3, 4, (), 3, 0, len(state), state, checkpoint_crc=crc32(state), kept_from=2)
    receiver.on_repair("B", late)
    assert (2, None) == (receiver.delivered, receiver.replica.fetch)
    turn.now = receiver.deadline
    receiver.tick()
    asked = [effect.message for effect in drain(turn) if isinstance(effect, SendToPeer)]
    assert RepairAsk(0, 3, 3) == asked[-1]
    receiver.on_repair("B", replace(late, kept_from=4))
    assert 3 == receiver.delivered


def test_a_checkpoint_that_is_no_longer_needed_when_its_last_block_comes_is_not_installed() -> None:
    """B4. What it was fetched for came another way, and more has been delivered since."""
    receiver, _, _ = _receiver()
    receiver.on_beat("A", Beat(0, 7, 3, 3, 2))
    state = state_after(entries("ab"))
    half = (len(state) + 1) // 2
    receiver.on_repair("B", Repair(0, 7, 3, 3, (), 2, 0, len(state), state[:half], checkpoint_crc=crc32(state)))
    receiver.on_order("A", Order(0, 7, 1, entries("abc"), 3))
    assert 3 == receiver.delivered
    receiver.on_block("B", Block(0, 7, 3, 2, len(state), crc32(state), half, state[half:]))
    assert 3 == receiver.delivered
    assert receiver.replica.fetch is None
