"""The loop around an engine: order of effects, time, and every way to end."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs
import msgspec
import pytest
import zmq

from groupsvc.drivers.connection import DaemonConnection
from groupsvc.wire import frames
from groupsvc.wire.client_messages import Status, StatusAsk
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core.effects import (
    Connect,
    Disconnect,
    Effect,
    Halt,
    Journal,
    Multicast,
    Persist,
    ReplyToClient,
    SendToPeer,
    Subscribe,
    Unsubscribe,
)
from groupsvcd.core.events import ClientFrame, ClientGone, Event, LocalCall, PeerFrame, PeerRefused, Persisted, Tick
from groupsvcd.core.peer_messages import DOMAIN_TOPIC, PEER_CODEC, Goodbye, Suspect, topic_of
from groupsvcd.core.records import PromiseRecord, Record
from groupsvcd.io import clocks
from groupsvcd.io.clients import Clients
from groupsvcd.io.complaints import Complaints
from groupsvcd.io.journal import Journal as DiskJournal
from groupsvcd.io.peers import Peers
from groupsvcd.io.reactor import EXIT_DISK, EXIT_HALTED, EXIT_OK, Reactor
from groupsvcd.io.sockets import Context
from groupsvcd.io.state_directory import StateDirectory
from groupsvcd.io.store import Store
from groupsvcd.io.watch import Watch

STATUS = Status(0, "n1", 1, "", "node", "leader unknown", "", 0, 0, 0.0, False, "", (), 0, 0)


@attrs.define
class Script:
    """An engine that does what a test wants and remembers what happened to it."""

    answer: Callable[[Event, float], list[Effect]]
    first: list[Effect] = attrs.field(factory=list)
    deadline: float = math.inf
    incarnation: int = 1
    domain: bytes = bytes(16)
    seen: list[Event] = attrs.field(factory=list)

    def start(self, now: float) -> list[Effect]:
        return self.first

    def step(self, event: Event, now: float) -> list[Effect]:
        self.seen.append(event)
        return self.answer(event, now)


class Lines:
    """An event journal in memory."""

    def __init__(self) -> None:
        self.ops: list[str] = []

    def write(self, effect: Journal, incarnation: int) -> None:
        self.ops.append(effect.op)

    def flush(self) -> None:
        pass


@pytest.fixture
def watch() -> Iterator[Watch]:
    made = Watch()
    yield made
    made.close()


def run(engine: Script, watch: Watch, journal: DiskJournal | None = None) -> tuple[int, list[str]]:
    """Run without sockets; the exit code and the journal lines."""
    lines = Lines()
    reactor = Reactor(engine, "n1", watch=watch, complaints=Complaints(clocks.now), journal=journal, events=lines)
    code = reactor.run()
    reactor.close(code)
    return code, lines.ops


def test_a_halt_ends_with_its_exit_code_and_nothing_after_it_is_done(watch: Watch) -> None:
    engine = Script(lambda event, now: [], [Journal("before"), Halt("told to"), Journal("after")])
    assert (EXIT_HALTED, ["before"]) == run(engine, watch)


def test_a_line_about_a_word_that_is_late_is_not_written(watch: Watch) -> None:
    """What was not said is not told either."""
    now = clocks.now()
    lines: list[Effect] = [Journal("late", valid_until=now - 1), Journal("in time", valid_until=now + 60)]
    assert ["in time"] == run(Script(lambda event, now: [], [*lines, Halt("enough")]), watch)[1]


def test_a_broken_engine_ends_the_daemon_with_its_exit_code(watch: Watch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event, now: float) -> list[Effect]:
        raise AssertionError("an invariant")

    assert EXIT_HALTED == run(Script(broken, deadline=0.0), watch)[0]
    assert "an invariant" in caplog.text


def test_what_was_due_long_ago_is_done_at_once(watch: Watch) -> None:
    """A client that was given up in the middle of a flush is due since ever."""
    assert EXIT_HALTED == run(Script(lambda event, now: [Halt("enough")], deadline=-math.inf), watch)[0]


def test_what_a_program_inside_wants_is_done_in_steps_of_its_own_in_order(watch: Watch) -> None:
    done: list[str] = []

    def answer(event: Event, now: float) -> list[Effect]:
        match event:
            case LocalCall(action=action):
                action()
                return [Journal(f"after {len(done)}")]
            case _:
                return [Halt("enough")]

    engine = Script(answer)
    lines = Lines()
    reactor = Reactor(engine, "n1", watch=watch, complaints=Complaints(clocks.now), events=lines)

    def first() -> None:
        done.append("first")
        reactor.call(lambda: done.append("called from within a step"))

    reactor.call(first)
    reactor.call(lambda: done.append("second"))
    reactor.call(lambda: setattr(engine, "deadline", 0.0))
    reactor.close(reactor.run())
    assert ["first", "second", "called from within a step"] == done
    assert ["after 1", "after 2", "after 2", "after 3"] == lines.ops


def test_the_tick_comes_at_the_deadline_and_not_before(watch: Watch) -> None:
    deadline = clocks.now() + 0.05
    times: list[float] = []

    def answer(event: Event, now: float) -> list[Effect]:
        times.append(now)
        return [Halt("enough")]

    engine = Script(answer, deadline=deadline)
    run(engine, watch)
    assert [Tick()] == engine.seen
    assert times[0] >= deadline


def test_without_a_disk_a_write_is_finished_after_the_step_that_asked_for_it(watch: Watch) -> None:
    def answer(event: Event, now: float) -> list[Effect]:
        match event:
            case Persisted(number=1):
                return [Journal("told 1")]
            case _:
                return [Journal("told 2"), Halt("enough")]

    writes: list[Effect] = [
        Persist(1, (), (Journal("then 1"),)),
        Journal("beside"),
        Persist(2, (), (Journal("then 2"),)),
    ]
    assert ["beside", "then 1", "told 1", "then 2", "told 2"] == run(Script(answer, writes), watch)[1]


def test_with_a_disk_then_happens_when_it_is_safe(watch: Watch, tmp_path: Path) -> None:
    """L2, S1: what hangs on a write is not done before it is on disk."""
    directory = StateDirectory(tmp_path)
    store = Store(directory, "n1")
    journal = DiskJournal(store, clocks.now)

    def answer(event: Event, now: float) -> list[Effect]:
        return [Halt("enough")]

    first: list[Effect] = [Persist(1, (PromiseRecord(0, 5),), (Journal("then"),)), Journal("beside")]
    engine = Script(answer, first)
    assert ["beside", "then"] == run(engine, watch, journal)[1]
    assert [Persisted(1)] == engine.seen
    journal.close()
    again = Store(directory, "n1")
    assert 5 == again.stored.streams[0].promised
    again.close()
    directory.close()


class SlowStore(Store):
    """A disk that finishes nothing before it is allowed to."""

    may_finish: threading.Event

    def write(self, records: Iterable[Record]) -> None:
        self.may_finish.wait()
        super().write(records)


def test_nobody_waits_for_a_disk_that_hangs(watch: Watch, tmp_path: Path) -> None:
    """The engine goes on in the meantime: a hundred ticks, each with a write of its own, which then share a sync."""
    directory = StateDirectory(tmp_path)
    store = SlowStore(directory, "n1")
    store.may_finish = threading.Event()
    before = store._node.transactions
    journal = DiskJournal(store, clocks.now)

    def answer(event: Event, now: float) -> list[Effect]:
        number = len(engine.seen) + 1
        if isinstance(event, Tick) and number <= 100:
            return [Persist(number, (PromiseRecord(0, number),), (Journal("then"),)), Journal("tick")]
        engine.deadline = math.inf
        store.may_finish.set()
        return [Halt("enough")] if event == Persisted(100) else []

    engine = Script(answer, [Persist(1, (PromiseRecord(0, 1),), (Journal("then"),))], deadline=0.0)
    assert ["tick"] * 99 + ["then"] * 100 == run(engine, watch, journal)[1]
    assert 2 >= store._node.transactions - before
    journal.close()
    directory.close()


def test_a_disk_error_ends_the_daemon_and_then_never_happens(watch: Watch, tmp_path: Path) -> None:
    """S3."""
    directory = StateDirectory(tmp_path)
    store = Store(directory, "n1")
    store.connection.execute("DROP TABLE stream")
    journal = DiskJournal(store, clocks.now)
    first: list[Effect] = [Persist(1, (PromiseRecord(0, 5),), (Journal("then"),))]
    engine = Script(lambda event, now: [], first)
    assert (EXIT_DISK, []) == run(engine, watch, journal)
    assert [] == engine.seen
    journal.close()
    directory.close()


# --- With sockets -----------------------------------------------------------------------------------


class Bench:
    """A reactor with sockets, and a peer and stranger to talk to it; turned by hand."""

    def __init__(self, context: Context, watch: Watch, directory: Path) -> None:
        self.engine = Script(lambda event, now: [])
        self.complaints = Complaints(clocks.now)
        self.jumped = 0.0
        self.reactor = Reactor(
            self.engine, "a", watch=watch, complaints=self.complaints, clock=lambda: clocks.now() + self.jumped
        )
        self.addresses = {name: f"ipc://{directory}/{name}" for name in "abc"}
        self.voters = {name: self.addresses[name] for name in "ab"}
        self.client_address = f"ipc://{directory}/client.sock"
        self.watch, self.context = watch, context
        self.peers = self.made_peers("a", watch)
        self.other_watch = Watch()
        self.b = self.made_peers("b", self.other_watch)
        self.clients = Clients(
            context,
            address=self.client_address,
            watch=watch,
            clock=clocks.now,
            complaints=self.complaints,
            who_we_are=lambda: (bytes(16), "a", 1, "d"),
            clients_max=5,
            queue_frames=8,
        )
        self.reactor.attach(self.peers, self.clients)
        self.got: list[memoryview] = []

    def made_peers(self, node: str, watch: Watch) -> Peers:
        return Peers(
            self.context,
            node=node,
            address=self.addresses[node],
            voters=self.voters,
            watch=watch,
            clock=clocks.now,
            refused=self.reactor.refused,
            complaints=self.complaints,
            queue_frames=100,
            insecure=False,
        )

    def run_until(self, condition: Callable[[], object], *also: Callable[[], object]) -> int:
        """Run the reactor with a Tick every 5 ms until ``condition`` holds; the exit code."""
        end = clocks.now() + 60

        def tick(event: Event, now: float) -> list[Effect]:
            effects = answer(event, now)
            if isinstance(event, Tick):
                self.engine.deadline = now + 0.005
                for action in also:
                    action()
                if condition():
                    self.reactor.stop()
                elif now > end:
                    effects.append(Halt("the condition never held"))
            return effects

        answer = self.engine.answer
        self.engine.answer, self.engine.deadline = tick, 0.0
        return self.reactor.run()

    def read_b(self) -> None:
        self.got += self.b.receive(100)

    def received_by_b(self) -> list[object]:
        return [message for raw in self.got for message in PEER_CODEC.decode(frames.unpack(raw).body)]

    def close(self) -> None:
        self.reactor.close(EXIT_HALTED)
        self.b.close()
        self.other_watch.close()


@pytest.fixture
def bench(context: Context, watch: Watch, short_path: Path) -> Iterator[Bench]:
    made = Bench(context, watch, short_path)
    yield made
    made.close()


def frame_of_b(*messages: Suspect | Goodbye) -> bytes:
    return frames.pack(FrameKind.PEER, bytes(16), b"b", 9, PEER_CODEC.encode(messages))


def test_a_frame_is_one_step_with_all_its_messages(bench: Bench) -> None:
    messages = (Suspect("x", 2), Goodbye())
    sent = PeerFrame("b", 9, bytes(16), messages)
    assert EXIT_OK == bench.run_until(
        lambda: sent in bench.engine.seen, lambda: bench.b.send("a", frame_of_b(*messages))
    )


def test_messages_and_multicasts_arrive_and_late_ones_do_not(bench: Bench) -> None:
    def answer(event: Event, now: float) -> list[Effect]:
        return [
            SendToPeer("b", Suspect("x", 1), valid_until=now - 1),
            SendToPeer("b", Suspect("x", 2)),
            SendToPeer("b", Suspect("x", 3), valid_until=now + 60),
            Multicast(DOMAIN_TOPIC, Suspect("x", 4)),
        ]

    bench.engine.answer = answer
    wanted = {Suspect("x", 2), Suspect("x", 3), Suspect("x", 4)}
    assert EXIT_OK == bench.run_until(lambda: wanted <= set(bench.received_by_b()), bench.read_b)
    assert wanted == set(bench.received_by_b())


def test_any_bytes_from_a_peer_are_no_step(bench: Bench) -> None:
    """X2: refused with a reason, counted, and the next good frame is heard."""
    good = frame_of_b(Goodbye())
    own = frames.pack(FrameKind.PEER, bytes(16), b"a", 9, PEER_CODEC.encode([Goodbye()]))
    bad = [b"", b"nonsense", good[:-1], own, frames.pack(FrameKind.PEER, bytes(16), b"b", 9, b"\x91" * 9000)]
    bad += [good[:n] + bytes([good[n] ^ 1]) + good[n + 1 :] for n in range(0, len(good), 5)]

    def send_all() -> None:
        if bench.b.send("a", bad[0]):  # else they are not connected yet
            for frame in [*bad[1:], good]:
                bench.b.send("a", frame)

    assert EXIT_OK == bench.run_until(
        lambda: any(isinstance(event, PeerFrame) for event in bench.engine.seen), send_all
    )
    assert {PeerFrame("b", 9, bytes(16), (Goodbye(),))} == {
        event for event in bench.engine.seen if isinstance(event, PeerFrame)
    }
    assert bench.complaints.counts["bad frame"] >= len(bad) - 1


def test_after_a_pause_what_the_others_said_is_heard_before_time_passes(bench: Bench) -> None:
    """A process stopped anywhere must not take its own sleep for the silence of others."""
    first, second = (PeerFrame("b", 9, bytes(16), (Suspect("x", n),)) for n in (1, 2))
    sent: list[PeerFrame] = []

    def send(event: PeerFrame) -> None:
        message = event.messages[0]
        assert isinstance(message, Suspect)
        if event not in sent and bench.b.send("a", frame_of_b(message)):
            sent.append(event)
            assert bench.peers.router.poll(20_000)

    def send_first() -> None:
        if first not in sent:
            send(first)
            bench.engine.deadline = 0.0  # a Tick is due, and the frame is there

    def answer(event: Event, now: float) -> list[Effect]:
        if event == first:  # here we are stopped for ten seconds, in which b goes on
            send(second)
            bench.jumped += 10
        return []

    bench.engine.answer = answer
    assert EXIT_OK == bench.run_until(lambda: second in bench.engine.seen, send_first)
    heard = bench.engine.seen.index(second)
    assert bench.engine.seen.index(first) == heard - 1


def frame_of(sender: bytes, *messages: Suspect) -> bytes:
    return frames.pack(FrameKind.PEER, bytes(16), sender, 9, PEER_CODEC.encode(messages))


def test_a_node_outside_the_voters_is_heard_as_the_engine_wants(bench: Bench) -> None:
    c = bench.made_peers("c", bench.other_watch)
    bench.engine.first = [Connect("c", bench.addresses["c"], listen=True), Subscribe(topic_of(7))]
    heard = PeerFrame("c", 9, bytes(16), (Suspect("x", 1),))
    assert EXIT_OK == bench.run_until(
        lambda: heard in bench.engine.seen, lambda: c.multicast(topic_of(7) + frame_of(b"c", Suspect("x", 1)))
    )
    assert ["b", "c"] == bench.peers.names
    c.close()


def test_what_the_engine_gives_up_is_no_longer_heard(bench: Bench) -> None:
    c = bench.made_peers("c", bench.other_watch)
    bench.engine.first = [
        *(Connect("c", bench.addresses["c"], listen=True), Subscribe(topic_of(7)), Subscribe(topic_of(8))),
        *(Disconnect("c"), Unsubscribe(topic_of(8))),
    ]
    heard = PeerFrame("b", 9, bytes(16), (Suspect("x", 7),))
    assert EXIT_OK == bench.run_until(
        lambda: heard in bench.engine.seen,
        lambda: c.multicast(topic_of(7) + frame_of(b"c", Suspect("x", 1))),
        lambda: bench.b.multicast(topic_of(8) + frame_of(b"b", Suspect("x", 8))),
        lambda: bench.b.multicast(topic_of(7) + frame_of(b"b", Suspect("x", 7))),
    )
    assert {heard} == {event for event in bench.engine.seen if isinstance(event, PeerFrame)}
    assert ["b"] == bench.peers.names
    c.close()


def test_a_refusing_peer_is_an_event(bench: Bench) -> None:
    closed = False

    def close_b() -> None:
        nonlocal closed
        if not closed and bench.b.send("a", frame_of_b(Goodbye())):
            bench.b.close()
            closed = True

    assert EXIT_OK == bench.run_until(lambda: PeerRefused("b") in bench.engine.seen, close_b)


def test_a_clean_end_says_goodbye_to_everybody(bench: Bench) -> None:
    connected: list[memoryview] = []

    def answer(event: Event, now: float) -> list[Effect]:
        return [SendToPeer("b", Suspect("x", 1))]

    bench.engine.answer = answer
    bench.run_until(lambda: connected, lambda: connected.extend(bench.b.receive(100)))
    bench.reactor.say_goodbye()
    end = clocks.now() + 20
    while Goodbye() not in bench.received_by_b() and clocks.now() < end:
        zmq.select([bench.b.router, bench.b.subscriber], [], [], 0.05)
        bench.read_b()
    assert Goodbye() in bench.received_by_b()


def test_a_real_client_gets_its_answer_and_its_end_is_told(bench: Bench) -> None:
    def answer(event: Event, now: float) -> list[Effect]:
        match event:
            case ClientFrame(client=client, message=StatusAsk(id=number)):
                return [ReplyToClient(client, msgspec.structs.replace(STATUS, id=number))]
            case _:
                return []

    bench.engine.answer = answer
    results: list[Status] = []

    def ask() -> None:
        with DaemonConnection(bench.client_address) as connection:
            results.append(connection.status())

    thread = threading.Thread(target=ask)
    thread.start()
    assert EXIT_OK == bench.run_until(lambda: ClientGone(1) in bench.engine.seen)
    thread.join()
    assert "leader unknown" == results[0].election
