"""One turn: words to ourselves go round, words that hang on a write wait for it, slow writes are noticed."""

from __future__ import annotations

from groupsvcd.core.effects import Journal, Multicast, Persist, SendToPeer
from groupsvcd.core.peer_messages import Goodbye, Held, Refused
from groupsvcd.core.records import PromiseRecord
from groupsvcd.core.turn import Turn


def test_a_message_to_our_own_node_is_no_effect() -> None:
    """The engine handles it at the end of the same step."""
    turn = Turn("A")
    turn.send("A", Refused(0, 7))
    turn.send("B", Refused(0, 8))
    assert [SendToPeer("B", Refused(0, 8))] == turn.effects
    assert [Refused(0, 7)] == list(turn.round_trip)


def test_a_multicast_reaches_ourselves_too() -> None:
    """The name server's node answers its own calls like any other."""
    turn = Turn("A")
    turn.multicast(b"domain", Goodbye(), valid_until=5.0)
    assert [Multicast(b"domain", Goodbye(), 5.0)] == turn.effects
    assert [Goodbye()] == list(turn.round_trip)


def test_what_hangs_on_a_write_comes_only_when_it_is_safe() -> None:
    """To others as ``then``; to ourselves, and as a call, when the driver says so."""
    turn = Turn("A")
    done: list[str] = []
    mine, theirs = SendToPeer("A", Held(0, 7, 3, 0)), SendToPeer("B", Held(0, 7, 3, 0))
    line = Journal("held")
    turn.persist(PromiseRecord(0, 7), then=(mine, theirs, line), done=lambda: done.append("safe"))
    assert [Persist(1, (PromiseRecord(0, 7),), (theirs, line))] == turn.effects
    assert ([], []) == (done, list(turn.round_trip))
    turn.persisted(1)
    assert (["safe"], [Held(0, 7, 3, 0)]) == (done, list(turn.round_trip))


def test_writes_are_numbered_one_by_one() -> None:
    """Completions come in the order of the numbers."""
    turn = Turn("A")
    for epoch in (1, 2, 3):
        turn.persist(PromiseRecord(0, epoch))
    assert [1, 2, 3] == [effect.number for effect in turn.effects if isinstance(effect, Persist)]


def test_the_oldest_unfinished_write_tells_whether_the_disk_hangs() -> None:
    """Its age, not that of the newest; nothing is old once all is written."""
    turn = Turn("A")
    turn.now = 10.0
    assert 0.0 == turn.oldest_write_age
    turn.persist(PromiseRecord(0, 1))
    turn.now = 11.0
    turn.persist(PromiseRecord(0, 2))
    turn.now = 12.0
    assert 2.0 == turn.oldest_write_age
    turn.persisted(1)
    assert 1.0 == turn.oldest_write_age
    turn.persisted(2)
    assert 0.0 == turn.oldest_write_age
