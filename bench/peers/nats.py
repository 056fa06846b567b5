"""NATS: three servers in a cluster, with JetStream.

Messages go into a stream in memory with three copies; each program has a consumer of its own that pushes it, through a
server of its own, what a majority holds, with its number. A barrier needs no store: every party says to party 0 that it
is there, and that one tells all to go. The client speaks NATS' text protocol on a plain socket; nats-py, which needs
asyncio, costs more. NATS has no list of members.
"""

from __future__ import annotations

import json
import select
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..beside import POLL_MS, Role
from ..load import Program
from .peer import SERVERS, Cluster, Peer, Wait, Write, connected, missing, said_by, until_done

READ_BYTES = 1 << 20
CALL_WAIT_S = 30.0
STREAM = "bench"


class Servers(Cluster):
    """A cluster of three."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.where = self.ports()
        routes = ", ".join(f"nats://127.0.0.1:{port + 1}" for port in self.where)
        for number, port in enumerate(self.where):
            (directory / f"n{number}.conf").write_text(
                f"server_name: n{number}\nhost: 127.0.0.1\nport: {port}\n"
                f"jetstream {{ store_dir: {directory}/n{number}, max_mem: 4G, max_file: 1G }}\n"
                f"cluster {{ name: bench, host: 127.0.0.1, port: {port + 1}, routes: [{routes}] }}\n"
            )

    def command(self, number: int) -> Sequence[str]:
        return ["nats-server", "-c", str(self.directory / f"n{number}.conf")]

    def leader(self) -> int:
        leads = Connection(self.where[0]).ask_json("$JS.API.STREAM.INFO.written")["cluster"]["leader"]
        return int(leads[1:])


class Nats(Peer):
    """Core for signals, JetStream for what must not be lost."""

    name = "nats"
    title = "NATS"
    client = "Python, the text protocol on a plain socket"
    setting = "the stream is in memory (default: on disk), of the newest 20 000 messages; all else is default"
    rows = frozenset(
        {"barrier-2", "barrier-8", "barrier-32", "single", "one", "three", "large", "leader", "start", "idle", "loaded"}
    )
    without = {
        "client": "has no members",
        "daemon": "has no members",
        "silent": "has no members",
        "cut": "has no members",
        "alarms": "does not say how often it elected",
    }
    promises = {
        "barrier": "counted by a party, over NATS without a store; nobody is noticed to die",
        "multicast": "JetStream, 3 copies: one order; in memory of 2 of 3 before anybody is told",
        "write": "JetStream, in memory of 2 of 3",
    }

    def why_not(self) -> str | None:
        return missing("nats-server", package="apt install nats-server")

    def version(self) -> str:
        return said_by("nats-server", "--version").replace("nats-server: v", "nats-server ")

    def new_cluster(self, directory: Path) -> Servers:
        return Servers(directory)

    def new_role(self, me: int, where: Sequence[int]) -> Role:
        return _Program(where[me])

    def new_party(self, me: int, parties: int, round_name: str, where: Sequence[int]) -> Wait:
        return _Party(where[me % SERVERS], me, parties, round_name).wait

    def new_writer(self, me: int, where: Sequence[int]) -> Write:
        return _Writer(where[me]).write


class Message(NamedTuple):
    """One that came."""

    subject: bytes
    reply: bytes
    payload: bytes


class Connection:
    """One socket; messages are taken apart as they come."""

    def __init__(self, port: int, timeout: float = CALL_WAIT_S) -> None:
        self._socket = connected(port, timeout=timeout)
        self._unread = b""
        self._inbox = f"_INBOX.{time.monotonic_ns()}"
        self._subscribed = self._asked = 0
        self._here: deque[Message] = deque()
        self.write(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\nPING\r\n')
        self.subscribe(f"{self._inbox}.*")

    def fileno(self) -> int:
        return self._socket.fileno()

    def write(self, data: bytes) -> None:
        """Whatever it is."""
        self._socket.sendall(data)

    def subscribe(self, subject: str) -> None:
        """To be told of all that is said there."""
        self._subscribed += 1
        self.write(b"SUB %s %d\r\n" % (subject.encode(), self._subscribed))

    def flush(self) -> None:
        """Until the server has seen all that was written before: an answer of its own account."""
        self.ask("_flush", b"", allow_none=True)

    def read(self, timeout: float) -> list[Message]:
        """What has come, after a wait for some."""
        if self._here:
            found = [*self._here]
            self._here.clear()
            return found
        if not select.select([self._socket], [], [], max(0.0, timeout))[0]:
            return []
        data = self._socket.recv(READ_BYTES)
        if not data:
            raise ConnectionError("the server has closed the connection")
        return self._taken_apart(self._unread + data)

    def _taken_apart(self, data: bytes) -> list[Message]:
        found = []
        at = 0
        while (end := data.find(b"\r\n", at)) >= 0:
            line = data[at:end]
            if line.startswith((b"MSG ", b"HMSG ")):
                words = line.split()
                size = int(words[-1])
                begin = end + 2
                if len(data) < begin + size + 2:
                    break
                has_headers = line[0:1] == b"H"
                skipped = int(words[-2]) if has_headers else 0
                reply = words[3] if len(words) == (6 if has_headers else 5) else b""
                found.append(Message(words[1], reply, data[begin + skipped : begin + size]))
                at = begin + size + 2
                continue
            if line == b"PING":
                self.write(b"PONG\r\n")
            elif line.startswith(b"-ERR"):
                raise ConnectionError(line.decode())
            at = end + 2
        self._unread = data[at:]
        return found

    def ask(
        self, subject: str, payload: bytes = b"", timeout: float = CALL_WAIT_S, *, allow_none: bool = False
    ) -> bytes:
        """The answer to a request; what else comes is kept."""
        self._asked += 1
        inbox = f"{self._inbox}.{self._asked}".encode()
        self.write(b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), inbox, len(payload), payload))
        until = time.monotonic() + timeout
        kept: list[Message] = []
        try:
            while time.monotonic() < until:
                for message in self.read(until - time.monotonic()):
                    if message.subject == inbox:
                        if not message.payload and not allow_none:
                            raise ConnectionError(f"nobody answers at {subject}")
                        return message.payload
                    if not message.subject.startswith(self._inbox.encode()):
                        kept.append(message)
        finally:
            self._here.extend(kept)
        raise TimeoutError(f"no answer from {subject}")

    def ask_json(self, subject: str, timeout: float = CALL_WAIT_S, **request: Any) -> Any:
        """The same for what is asked and answered in JSON; raises what is answered as an error."""
        answer = json.loads(self.ask(subject, json.dumps(request).encode() if request else b"", timeout))
        if "error" in answer:
            raise ConnectionError(f"{subject}: {answer['error']}")
        return answer


def _make_stream(connection: Connection, name: str, timeout: float) -> None:
    connection.ask_json(
        f"$JS.API.STREAM.CREATE.{name}", timeout=timeout, name=name, subjects=[name], retention="limits",
        storage="memory", num_replicas=SERVERS, max_msgs=20_000, discard="old",
    )  # fmt: skip


class _Program:
    """Publishes into the stream, and is pushed what is in it."""

    program: Program

    def __init__(self, port: int) -> None:
        self._connection = Connection(port)
        until_done(
            lambda timeout: _make_stream(self._connection, STREAM, min(timeout, 5.0)), CALL_WAIT_S,
            (ConnectionError, TimeoutError),
        )  # fmt: skip
        pushed = f"pushed.{time.monotonic_ns()}"
        self._connection.subscribe(pushed)
        self._connection.ask_json(
            f"$JS.API.CONSUMER.CREATE.{STREAM}", stream_name=STREAM,
            config={"deliver_subject": pushed, "deliver_policy": "new", "ack_policy": "none", "mem_storage": True,
                    "num_replicas": 1},
        )  # fmt: skip
        self._pushed = pushed.encode()
        self._acknowledged = b"acknowledged.%d" % time.monotonic_ns()
        self._connection.subscribe(self._acknowledged.decode())
        self._wanted: list[bytes] = []
        self._stored = self._seq = 0
        self.submit = self._wanted.append

    def turn(self) -> None:
        """Send what is wanted in one packet, read what has come."""
        wanted, subject = self._wanted, STREAM.encode()
        if wanted:
            head = b"PUB %s %s %d\r\n" % (subject, self._acknowledged, len(wanted[0]))
            self._connection.write(b"".join([head + payload + b"\r\n" for payload in wanted]))
            wanted.clear()
        for message in self._connection.read(POLL_MS / 1000):
            if message.reply.startswith(b"$JS.ACK."):
                stored = int(message.reply.split(b".")[5])
                if self._stored and stored != self._stored + 1:
                    raise AssertionError(f"number {stored} came after {self._stored}")
                self._stored = stored
                self._seq += 1
                self.program.deliver(self._seq, "nats", message.payload)
            elif b'"error"' in message.payload:
                raise RuntimeError(message.payload.decode())
        self.program.note()
        self.program.fill()


class _Party:
    """Says that it is there; party 0 counts, and says go. Words of a round are empty, those before it are not."""

    def __init__(self, port: int, me: int, parties: int, name: str) -> None:
        self._connection = Connection(port)
        self._me, self._others = me, parties - 1
        hears, says = (f"{name}.go", f"{name}.here") if me else (f"{name}.here", f"{name}.go")
        self._says = says.encode()
        self._connection.subscribe(hears)
        self._connection.flush()
        self._acquaint()

    def _say(self, word: bytes = b"") -> None:
        self._connection.write(b"PUB %s %d\r\n%s\r\n" % (self._says, len(word), word))

    def _acquaint(self) -> None:
        """Until every party was heard and hears: other servers know a subscription some time after one's own.

        Party 0 asks until all have answered, and then says so; that reaches everybody, as they heard the question.
        """
        until = time.monotonic() + CALL_WAIT_S
        answered: set[bytes] = set()
        while time.monotonic() < until:
            if not self._me:
                self._say(ASK)
            came = [message.payload for message in self._connection.read(ASK_AGAIN_S)]
            if self._me and ALL in came:
                return
            if self._me and ASK in came:
                self._say(b"%d" % self._me)
            answered.update(came)
            if not self._me and len(answered) == self._others:
                self._say(ALL)
                return
        raise TimeoutError("the parties do not hear each other")

    def wait(self) -> None:
        """One round."""
        expected = 1 if self._me else self._others
        if self._me:
            self._say()
        while expected > 0:
            came = self._connection.read(CALL_WAIT_S)
            if not came:
                raise TimeoutError("a round did not end")
            expected -= sum(not message.payload for message in came)
        if expected < 0:
            raise AssertionError("more came than there are parties")
        if not self._me:
            self._say()


ASK, ALL, ASK_AGAIN_S = b"who", b"all", 0.02


class _Writer:
    """Publishes into a stream with three copies, and waits for the acknowledgement."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: Connection | None = None
        self._is_made = False

    def write(self, timeout: float) -> None:
        until_done(self._attempt, timeout, (OSError, TimeoutError))

    def _attempt(self, timeout: float) -> None:
        if self._connection is None:
            self._connection = Connection(self._port, timeout)
        if not self._is_made:
            _make_stream(self._connection, "written", min(timeout, 1.0))
            self._is_made = True
        answer = json.loads(self._connection.ask("written", b"x" * 100, min(timeout, 0.25)))
        if "error" in answer:
            raise ConnectionError(str(answer["error"]))
