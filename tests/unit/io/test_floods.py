"""One program that floods its daemon: the others have their turn, and their ends are noticed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from groupsvc.wire import frames
from groupsvc.wire.client_messages import Problem, StatusAsk
from groupsvc.wire.kinds import FrameKind
from groupsvcd.io import backlog
from groupsvcd.io.backlog import REQUESTS_PER_FRAME_MAX, REQUESTS_PER_ROUND, Backlog, requests_in
from groupsvcd.io.clients import Gone
from groupsvcd.io.sockets import Context, has_more
from tests.unit.io.conftest import Loop
from tests.unit.io.test_clients import Bench, request_frame


@pytest.fixture
def bench(context: Context, loop: Loop, short_path: Path) -> Iterator[Bench]:
    made = Bench(context, loop, f"ipc://{short_path}/client.sock")
    yield made
    made.close()


def many(count: int) -> bytes:
    return request_frame(*(StatusAsk(number) for number in range(count)))


def test_a_frame_with_very_many_requests_is_handled_in_pieces_and_in_order(bench: Bench) -> None:
    flooding, other = bench.greeted(), bench.greeted()
    flooding.send(many(20_000))
    assert bench.loop.until(lambda: has_more(bench.clients.router))
    other.send(request_frame(StatusAsk(7)))
    rounds = 0
    while (2, StatusAsk(7)) not in bench.got:
        before = len(bench.got)
        bench.receive()
        assert len(bench.got) - before <= REQUESTS_PER_ROUND + 1
        assert not bench.clients.is_empty or (2, StatusAsk(7)) in bench.got
        rounds += 1
        bench.loop.poller.poll(1)
    assert rounds <= 10
    assert bench.loop.until(lambda: len(bench.got) == 20_001, bench.receive)
    assert [StatusAsk(number) for number in range(20_000)] == [what for client, what in bench.got if client == 1]
    assert bench.clients.is_empty


def test_the_end_of_another_is_noticed_during_a_flood(bench: Bench) -> None:
    flooding, other = bench.greeted(), bench.greeted()
    flooding.setsockopt(zmq.SNDHWM, 0)
    other.close(linger=0)
    frame = many(500)
    for _ in range(2_000):
        flooding.send(frame)
    assert bench.loop.until(lambda: (2, Gone.CONNECTION) in bench.got, bench.receive)
    assert len(bench.got) < 500_000, "long before the flood is over"


def test_who_sends_more_than_can_be_done_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "REQUESTS_WAITING_MAX", 5_000)
    flooding, other = bench.greeted(), bench.greeted()
    flooding.send(many(20_000))
    assert bench.loop.until(lambda: (1, Gone.CONNECTION) in bench.got, bench.receive)
    assert 1 == bench.loop.complaints.counts["flood"]
    other.send(request_frame(StatusAsk(7)))
    assert bench.loop.until(lambda: (2, StatusAsk(7)) in bench.got, bench.receive)


def test_a_frame_that_says_it_has_too_many_requests_is_not_even_read(bench: Bench) -> None:
    application = bench.greeted()
    body = b"\xdd" + (REQUESTS_PER_FRAME_MAX + 1).to_bytes(4, "big") + b"\x92\x65\x01" * (REQUESTS_PER_FRAME_MAX + 1)
    application.send(frames.pack(FrameKind.CLIENT_REQUEST, bytes(16), b"client", 1, body))
    problem = bench.answer(application)
    assert isinstance(problem, Problem)
    assert "more than 100000 requests" in problem.text
    assert [] == bench.got


def test_before_hello_one_answer_is_enough(bench: Bench) -> None:
    application = bench.application()
    application.send(many(1_000))
    assert isinstance(bench.answer(application), Problem)
    for _ in range(20):
        bench.receive()
        assert not application.poll(1)


@pytest.mark.parametrize("count", [0, 15, 16, 65_535, 65_536])
def test_how_many_there_are_is_read_from_the_first_bytes(count: int) -> None:
    body = frames.unpack(many(count)).body
    assert count == requests_in(body) or (count <= 15 and requests_in(body) == 15)


def test_every_queue_has_its_share_of_a_round() -> None:
    queues = Backlog()
    for client, count in ((1, 10_000), (2, 3), (3, 10_000)):
        queues.add(client, [StatusAsk(number) for number in range(count)])
    clients = [client for client, _ in queues.take()]
    assert 3 == clients.count(2)
    assert clients.count(1) == clients.count(3) == backlog.FROM_QUEUES_PER_ROUND // 3
    assert 2 not in queues
    queues.forget(1)
    queues.forget(3)
    assert not queues
    assert [] == queues.take()
