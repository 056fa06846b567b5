"""Handing stable entries up: in order, each once, many at a time where the host allows it."""

from __future__ import annotations

from zlib import crc32

from groupsvcd.core.effects import Journal
from groupsvcd.core.peer_messages import Data, Order
from groupsvcd.core.records import StoredStream
from groupsvcd.core.stream.carrier import Carrier
from groupsvcd.core.stream.entries import Run, encode_entry, encode_reference
from groupsvcd.core.stream.receiver import Receiver
from groupsvcd.core.turn import Turn
from tests.unit.core.stream.list_host import ListHost, drain, entries, replica_of, state_after


class BatchHost(ListHost):
    """Remembers which entries were handed up together."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[int, list[bytes]]] = []

    def deliver(self, first_seq: int, runs: list[Run]) -> None:
        """The next ones, as they were handed up."""
        super().deliver(first_seq, runs)
        self.batches.append((first_seq, [body for run in runs for body in run.bodies]))


class GroupLike(Carrier):
    """As for a group: entries go up in batches, and one line of history tells of many."""

    delivers_batches = True
    journals_entries = False


def _receiver(carrier: type[Carrier] = GroupLike) -> tuple[Receiver, BatchHost, Turn]:
    turn, host = Turn("D"), BatchHost()
    turn.now = 1.0
    return Receiver(replica_of(turn, host, StoredStream(), "ABC", carrier=carrier)), host, turn


def _of(origin: str, *numbers: int) -> tuple[bytes, ...]:
    return tuple(encode_entry(origin, 1, n, f"{origin}{n}".encode()) for n in numbers)


def test_what_became_stable_together_is_handed_up_together() -> None:
    """One call for a hundred entries, not a hundred calls."""
    receiver, host, _ = _receiver()
    receiver.on_order("A", Order(0, 7, 1, _of("E", *range(1, 101)), 100))
    assert [(1, 100)] == [(first, len(batch)) for first, batch in host.batches]


def test_an_entry_of_the_leaders_own_ends_its_batch() -> None:
    """It may change the host: what comes after it is handed up to a host that knows."""
    receiver, host, _ = _receiver()
    receiver.on_order("A", Order(0, 7, 1, (*_of("E", 1, 2), *entries("v"), *_of("F", 1), *entries("w")), 5))
    assert [(1, [b"E1", b"E2", b"v"]), (4, [b"F1", b"w"])] == host.batches


def test_only_what_is_new_is_handed_up() -> None:
    """Numbers go on where the last batch ended, whatever is said twice."""
    receiver, host, _ = _receiver()
    receiver.on_order("A", Order(0, 7, 1, _of("E", 1, 2, 3), 2))
    receiver.on_order("A", Order(0, 7, 2, _of("E", 2, 3, 4), 4))
    receiver.on_order("A", Order(0, 7, 1, _of("E", 1, 2, 3, 4), 4))
    assert [(1, [b"E1", b"E2"]), (3, [b"E3", b"E4"])] == host.batches


def test_the_domains_host_is_given_one_entry_at_a_time() -> None:
    """A command of the directory may depend on the one before it."""
    receiver, host, _ = _receiver(Carrier)
    receiver.on_order("A", Order(0, 7, 1, _of("E", 1, 2, 3), 3))
    assert [1, 2, 3] == [first for first, _ in host.batches]


def test_history_has_a_line_per_entry_or_one_per_batch() -> None:
    """The simulator reads every entry; a daemon cannot write a line for each."""
    for carrier, lines in {Carrier: [1, 2, 3], GroupLike: [3]}.items():
        receiver, _, turn = _receiver(carrier)
        receiver.on_order("A", Order(0, 7, 1, _of("E", 1, 2, 3), 3))
        told = [effect for effect in drain(turn) if isinstance(effect, Journal) and effect.op == "delivered"]
        assert lines == [line.seq for line in told]
        assert all(line.epoch == 7 for line in told)


def test_after_a_checkpoint_delivery_goes_on_behind_it() -> None:
    """Nothing before it is handed up any more."""
    receiver, host, _ = _receiver()
    receiver.replica.skip_to(3, state_after(entries("abc")), 7)
    receiver.on_order("A", Order(0, 7, 2, _of("E", 1, 2, 3), 4))
    assert [(4, [b"E3"])] == host.batches


def test_an_entry_waits_for_its_payload_and_everything_behind_it_waits_too() -> None:
    """SAM-04, SAM-02. Order is order: what came complete does not overtake."""
    receiver, host, _ = _receiver()
    payload = b"large" * 1_000
    reference = encode_reference("E", 1, 2, len(payload), crc32(payload))
    receiver.on_order("A", Order(0, 7, 1, (*_of("E", 1), reference, *_of("E", 3)), 3))
    assert [(1, [b"E1"])] == host.batches
    receiver.on_data(Data(0, "E", 1, 2, b"other" * 1_000))
    assert 1 == len(host.batches)
    receiver.on_data(Data(0, "E", 1, 2, payload))
    assert (2, [payload, b"E3"]) == host.batches[-1]


def test_a_payload_that_came_first_waits_for_its_number() -> None:
    """SAM-04. Dissemination and ordering are apart; whichever is first."""
    receiver, host, _ = _receiver()
    payload = b"large" * 1_000
    receiver.on_data(Data(0, "E", 1, 1, payload))
    assert [] == host.batches
    receiver.on_order("A", Order(0, 7, 1, (encode_reference("E", 1, 1, len(payload), crc32(payload)),), 1))
    assert [(1, [payload])] == host.batches
