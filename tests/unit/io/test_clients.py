"""Applications at their daemon's socket: hello, requests, refusals, and how each end is noticed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from groupsvc.wire import frames
from groupsvc.wire.client_messages import (
    REPLY_CODEC,
    REQUEST_CODEC,
    AnyClientReply,
    AnyClientRequest,
    Done,
    Hello,
    Problem,
    StatusAsk,
    Welcome,
)
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core.effects import ReplyToClient
from groupsvcd.io import clocks
from groupsvcd.io.clients import Clients, Gone, Received
from groupsvcd.io.sockets import CLIENT_RECEIVE_QUEUE_FRAMES, CannotBind, Context
from tests.unit.io.conftest import Loop

DOMAIN = bytes(range(16))


def request_frame(*requests: AnyClientRequest) -> bytes:
    return frames.pack(FrameKind.CLIENT_REQUEST, bytes(16), b"client", os.getpid(), REQUEST_CODEC.encode(requests))


class Bench:
    """The daemon's side, and applications that connect to it."""

    def __init__(self, context: Context, loop: Loop, address: str) -> None:
        self.context, self.loop, self.address = context, loop, address
        self.clients = self.made()
        self.got: list[Received] = []
        self.applications: list[zmq.Socket[bytes]] = []
        loop.poller.register(self.clients.router, zmq.POLLIN)

    def made(self) -> Clients:
        return Clients(
            self.context,
            address=self.address,
            watch=self.loop.watch,
            clock=clocks.now,
            complaints=self.loop.complaints,
            who_we_are=lambda: (DOMAIN, "n1", 77, "shop"),
            clients_max=3,
            queue_frames=8,
        )

    def receive(self) -> None:
        self.got += self.clients.receive(100)
        self.clients.flush()

    def application(self) -> zmq.Socket[bytes]:
        made: zmq.Socket[bytes] = self.context.socket(zmq.DEALER)
        made.connect(self.address)
        self.applications.append(made)
        return made

    def answer(self, application: zmq.Socket[bytes]) -> AnyClientReply:
        """The next message to ``application``."""
        while True:
            assert self.loop.until(lambda: application.poll(0), self.receive)
            frame = frames.unpack(application.recv())
            assert (FrameKind.CLIENT_REPLY, DOMAIN, "n1", 77) == (
                frame.kind,
                frame.domain,
                frame.sender,
                frame.incarnation,
            )
            replies = REPLY_CODEC.decode(frame.body)
            if replies:
                return replies[0]

    def greeted(self) -> zmq.Socket[bytes]:
        application = self.application()
        application.send(request_frame(Hello(1, 1, 1, "test")))
        assert Welcome(1, 1, "n1", 77, "shop") == self.answer(application)
        return application

    def close(self) -> None:
        for application in self.applications:
            application.close(linger=0)
        self.clients.close()


@pytest.fixture
def bench(context: Context, loop: Loop, short_path: Path) -> Iterator[Bench]:
    made = Bench(context, loop, f"ipc://{short_path}/client.sock")
    yield made
    made.close()


def test_hello_is_answered_and_the_next_request_has_a_number(bench: Bench) -> None:
    application = bench.greeted()
    application.send(request_frame(StatusAsk(2)))
    assert bench.loop.until(lambda: bench.got, bench.receive)
    assert [(1, StatusAsk(2))] == bench.got
    bench.clients.reply(ReplyToClient(1, Done(2)))
    assert Done(2) == bench.answer(application)


def test_hello_and_a_request_may_share_a_frame(bench: Bench) -> None:
    application = bench.application()
    application.send(request_frame(Hello(1, 3, 1, "test"), StatusAsk(2)))
    assert isinstance(bench.answer(application), Welcome)
    assert [(1, StatusAsk(2))] == bench.got


def test_numbers_are_never_used_again(bench: Bench) -> None:
    for _ in range(5):
        bench.greeted().close(linger=0)
        assert bench.loop.until(lambda: len(bench.clients) == 0, bench.receive)
    assert [(number, Gone.CONNECTION) for number in range(1, 6)] == bench.got


@pytest.mark.parametrize("version, version_min", [(9, 2), (0, 0)])
def test_a_version_we_do_not_speak_is_answered_with_both(bench: Bench, version: int, version_min: int) -> None:
    application = bench.application()
    application.send(request_frame(Hello(4, version, version_min, "old or new")))
    problem = bench.answer(application)
    assert isinstance(problem, Problem)
    assert (4, "usage", "version") == (problem.id, problem.family, problem.code)
    assert f"{version_min} to {version}, this daemon speaks 1" in problem.text


def test_a_frame_of_another_version_is_answered_as_such(bench: Bench) -> None:
    application = bench.application()
    frame = bytearray(request_frame(Hello(1, 1, 1, "test")))
    frame[4] = 2
    application.send(bytes(frame))
    problem = bench.answer(application)
    assert isinstance(problem, Problem)
    assert ("usage", "version") == (problem.family, problem.code)


@pytest.mark.parametrize(
    "parts",
    [
        [b""],
        [b"garbage"],
        [request_frame(Hello(1, 1, 1, "x"))[:-1]],
        [frames.pack(FrameKind.PEER, bytes(16), b"n2", 1, b"\x90")],
        [frames.pack(FrameKind.CLIENT_REQUEST, bytes(16), b"c", 1, b"\xff\xff")],
        [frames.pack(FrameKind.CLIENT_REQUEST, bytes(16), b"c", 1, b"\x91" * 5000)],
        [request_frame(Hello(1, 1, 1, "x")), b"another part"],
    ],
)
def test_garbage_is_answered_and_changes_nothing(bench: Bench, parts: list[bytes]) -> None:
    """X2: any bytes; the next proper frame is understood."""
    application = bench.application()
    application.send_multipart(parts)
    problem = bench.answer(application)
    assert isinstance(problem, Problem)
    assert "frame" == problem.code
    application.send(request_frame(Hello(1, 1, 1, "test")))
    assert isinstance(bench.answer(application), Welcome)


def test_a_request_before_hello_is_refused(bench: Bench) -> None:
    application = bench.application()
    application.send(request_frame(StatusAsk(5)))
    problem = bench.answer(application)
    assert isinstance(problem, Problem)
    assert (5, "usage", "hello") == (problem.id, problem.family, problem.code)
    assert [] == bench.got


def test_one_too_many_is_refused_and_let_in_when_another_has_left(bench: Bench) -> None:
    first = bench.greeted()
    bench.greeted()
    bench.greeted()
    fourth = bench.application()
    fourth.send(request_frame(Hello(1, 1, 1, "fourth")))
    problem = bench.answer(fourth)
    assert isinstance(problem, Problem)
    assert ("failed", "too many clients") == (problem.family, problem.code)
    first.close(linger=0)
    assert bench.loop.until(lambda: len(bench.clients) == 2, bench.receive)
    fourth.send(request_frame(Hello(2, 1, 1, "fourth")))
    assert isinstance(bench.answer(fourth), Welcome)


def _deaf(bench: Bench) -> None:
    """An application that says Hello and never reads more than fits into the smallest queue."""
    made: zmq.Socket[bytes] = bench.context.socket(zmq.DEALER)
    made.setsockopt(zmq.RCVHWM, 1)
    made.connect(bench.address)
    bench.applications.append(made)
    before = len(bench.clients)
    made.send(request_frame(Hello(1, 1, 1, "deaf")))
    assert bench.loop.until(lambda: len(bench.clients) > before, bench.receive)


def _waiting_for(bench: Bench, number: int) -> int:
    """How many frames that its machine did not take wait for a client before it is given up."""
    sent = 0
    while number not in bench.clients._given_up:
        bench.clients.reply(ReplyToClient(number, Problem(1, "failed", "long", "x" * 100_000)))
        bench.clients.flush()
        sent += 1
    return sent


def test_how_many_may_connect_and_how_much_may_wait_for_each_can_change(bench: Bench) -> None:
    """MSG-13: at once, also for those who are connected already."""
    _deaf(bench)
    _deaf(bench)
    bench.clients.admit(2)
    third = bench.application()
    third.send(request_frame(Hello(1, 1, 1, "third")))
    assert isinstance(bench.answer(third), Problem)
    short = _waiting_for(bench, 1)
    bench.clients.queue(200)
    assert _waiting_for(bench, 2) > short + 100


def _say_hello_and_many_things(address: str, count: int) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    application = context.socket(zmq.DEALER)
    application.connect(address)
    application.send(request_frame(Hello(1, 1, 1, "child")))
    application.recv()
    for n in range(count):
        application.send(request_frame(StatusAsk(n)))
    application.close(linger=5000)
    context.term()
    os.kill(os.getpid(), 9)


def _killed_after_saying(bench: Bench, count: int) -> None:
    """A process that is no more before anything is read that it said behind its Hello."""
    child = multiprocessing.get_context("spawn").Process(target=_say_hello_and_many_things, args=(bench.address, count))
    child.start()
    assert bench.loop.until(lambda: len(bench.clients), bench.receive)
    child.join()
    assert bench.loop.until(lambda: (1, Gone.PROCESS) in bench.got, bench.receive)


def test_a_killed_process_is_gone_after_everything_it_said(bench: Bench) -> None:
    """As long as it fits into our queue, however late we come to read it."""
    count = CLIENT_RECEIVE_QUEUE_FRAMES - 10
    _killed_after_saying(bench, count)
    assert [(1, StatusAsk(n)) for n in range(count)] == bench.got[:count]
    assert {(1, Gone.PROCESS)} <= set(bench.got[count:]) <= {(1, Gone.CONNECTION), (1, Gone.PROCESS)}
    assert 0 == len(bench.clients)


def test_of_a_killed_process_that_said_more_than_the_queue_holds_the_end_may_be_lost_and_nothing_else(
    bench: Bench,
) -> None:
    """libzmq forgets what lies in the kernel when a connection ends whose queue was full."""
    _killed_after_saying(bench, CLIENT_RECEIVE_QUEUE_FRAMES + 100)
    said = [what for _, what in bench.got if isinstance(what, StatusAsk)]
    assert len(said) > CLIENT_RECEIVE_QUEUE_FRAMES // 2
    assert [StatusAsk(n) for n in range(len(said))] == said
    assert 0 == len(bench.clients)


def _say_hello_and_hang_up(address: str) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.connect(address)
    dealer.send(request_frame(Hello(1, 1, 1, "fickle")))
    dealer.recv()
    dealer.close()
    context.term()
    signal.pause()


def test_a_process_that_lives_without_its_connection_is_watched_until_it_ends(bench: Bench) -> None:
    """GS-33: its session has grace; its end is told at once, and not when the grace is over."""
    child = multiprocessing.get_context("spawn").Process(target=_say_hello_and_hang_up, args=(bench.address,))
    child.start()
    assert bench.loop.until(lambda: bench.got, bench.receive)
    assert [(1, Gone.CONNECTION)] == bench.got
    assert child.is_alive()
    child.kill()
    assert bench.loop.until(lambda: len(bench.got) > 1, bench.receive)
    assert [(1, Gone.CONNECTION), (1, Gone.PROCESS)] == bench.got
    child.join()


def test_a_client_that_does_not_read_its_replies_is_given_up(bench: Bench) -> None:
    """X1: its queue is bounded, the daemon's memory too."""
    application = bench.application()
    application.setsockopt(zmq.RCVHWM, 1)
    application.disconnect(bench.address)
    application.connect(bench.address)
    application.send(request_frame(Hello(1, 1, 1, "sleeper")))
    big = "x" * 100_000

    def say_more() -> None:
        bench.clients.reply(ReplyToClient(1, Problem(0, "failed", "noise", big)))
        bench.receive()

    assert bench.loop.until(lambda: (1, Gone.CONNECTION) in bench.got, say_more)


def test_a_knock_without_a_word_disturbs_nobody(bench: Bench) -> None:
    application = bench.greeted()
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.connect(bench.address.removeprefix("ipc://"))
    application.send(request_frame(StatusAsk(2)))
    assert bench.loop.until(lambda: bench.got, bench.receive)
    assert [(1, StatusAsk(2))] == bench.got


def test_only_owner_and_group_may_write_to_the_socket(bench: Bench) -> None:
    assert 0o660 == os.stat(bench.address.removeprefix("ipc://")).st_mode & 0o777


def test_a_socket_somebody_listens_at_is_not_taken_over(bench: Bench) -> None:
    with pytest.raises(CannotBind, match="another process does already"):
        bench.made()
    bench.greeted()


def test_a_socket_left_behind_by_a_killed_daemon_is_taken_over(context: Context, loop: Loop, short_path: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(f"{short_path}/client.sock")
    dead.close()
    bench = Bench(context, loop, f"ipc://{short_path}/client.sock")
    bench.greeted()
    bench.close()


def test_a_file_that_is_no_socket_is_left_alone(context: Context, loop: Loop, short_path: Path) -> None:
    (short_path / "client.sock").write_text("precious")
    with pytest.raises(CannotBind, match="no socket"):
        Bench(context, loop, f"ipc://{short_path}/client.sock")
    assert "precious" == (short_path / "client.sock").read_text()
