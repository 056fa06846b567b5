"""One frame per receiver, nothing after its time, nothing too large."""

from __future__ import annotations

from groupsvcd.core.peer_messages import PEER_CODEC, AnyPeerMessage, Goodbye, Order, Suspect
from groupsvcd.io.outbox import BODY_BYTES_MAX, BODY_BYTES_USUAL, Outbox


class Bench:
    """An outbox with a clock to turn, and what left it."""

    def __init__(self) -> None:
        self.now = 10.0
        self.sent: list[tuple[str, tuple[AnyPeerMessage, ...]]] = []
        self.too_large: list[str] = []
        self.outbox: Outbox[str, AnyPeerMessage] = Outbox(PEER_CODEC, lambda: self.now, self.too_large.append)

    def flush(self) -> None:
        self.outbox.flush(lambda receiver, body: self.sent.append((receiver, PEER_CODEC.decode(body))))


def test_all_messages_for_one_receiver_leave_together_in_their_order() -> None:
    bench = Bench()
    bench.outbox.put("b", Suspect("x", 1))
    bench.outbox.put("c", Goodbye())
    bench.outbox.put("b", Suspect("x", 2))
    bench.flush()
    assert [("b", (Suspect("x", 1), Suspect("x", 2))), ("c", (Goodbye(),))] == bench.sent
    bench.flush()
    assert 2 == len(bench.sent)


def test_what_is_late_when_it_would_leave_is_dropped() -> None:
    """L5: a truth that hangs on a lease is not said after the lease."""
    bench = Bench()
    bench.outbox.put("b", Suspect("x", 1), 10.5)
    bench.outbox.put("b", Suspect("x", 2), 12.0)
    bench.outbox.put("c", Suspect("x", 3), 10.5)
    bench.now = 11.0
    bench.flush()
    assert [("b", (Suspect("x", 2),))] == bench.sent


def test_more_than_a_usual_frame_holds_leaves_in_several_in_order() -> None:
    bench = Bench()
    parts = [Order(0, 1, n, (b"x" * (BODY_BYTES_USUAL // 3),), 0) for n in range(7)]
    for part in parts:
        bench.outbox.put("b", part)
    bench.flush()
    assert [2, 2, 2, 1] == [len(messages) for _, messages in bench.sent]
    assert parts == [message for _, messages in bench.sent for message in messages]


def test_a_message_larger_than_a_usual_frame_leaves_alone_and_whole() -> None:
    bench = Bench()
    large = Order(0, 1, 1, (b"x" * (2 * BODY_BYTES_USUAL),), 0)
    for message in (Suspect("x", 1), large, Suspect("x", 2), Suspect("x", 3)):
        bench.outbox.put("b", message)
    bench.flush()
    parts = [(Suspect("x", 1),), (large,), (Suspect("x", 2), Suspect("x", 3))]
    assert [("b", part) for part in parts] == bench.sent


def test_a_message_that_fits_no_frame_is_dropped_and_reported() -> None:
    bench = Bench()
    bench.outbox.put("b", Order(0, 1, 1, (b"x" * BODY_BYTES_MAX,), 0))
    bench.outbox.put("b", Suspect("x", 1))
    bench.outbox.put("c", Goodbye())
    bench.flush()
    assert [("b", (Suspect("x", 1),)), ("c", (Goodbye(),))] == bench.sent
    assert "Order for 'b'" in bench.too_large[0]
