"""Redis: a primary with two replicas, all in memory.

Messages are entries of a stream. A sender appends at the primary with XADD and, in the same packet, WAIT 2: the answer
says that both replicas have it. Each program reads the stream at a server of its own, which may show an entry before
the others have it. A barrier is a counter in a script of four lines that publishes when the last one has come; all are
at the primary. The client is hiredis, the parser in C, on a plain socket: redis-py on top of it costs more.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..beside import POLL_MS, Role
from ..load import Program
from .peer import Cluster, Peer, Wait, Write, connected, missing, said_by, until_done

STREAM = b"bench"
KEPT = b"20000"
READ_BYTES = 1 << 20

COUNT = b"""
local n = redis.call('INCR', KEYS[1])
if n % tonumber(ARGV[1]) == 0 then redis.call('PUBLISH', KEYS[1], n) end
return n
"""


class Servers(Cluster):
    """Server 0 is the primary."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.where = self.ports()
        for number in range(len(self.where)):
            (directory / str(number)).mkdir()

    def command(self, number: int) -> Sequence[str]:
        made = [
            "redis-server", "--port", str(self.where[number]), "--bind", "127.0.0.1", "--dir",
            str(self.directory / str(number)), "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
        ]  # fmt: skip
        return made if number == 0 else [*made, "--replicaof", "127.0.0.1", str(self.where[0])]

    def leader(self) -> int:
        return 0


class Redis(Peer):
    """No fail-over without Sentinel or Cluster, and no members."""

    name = "redis"
    title = "Redis"
    client = "Python, hiredis on a plain socket"
    setting = (
        "repl-diskless-sync-delay 0 (default 5 s), so that replicas are there at once; save and appendonly off: "
        "nothing on disk"
    )
    rows = frozenset(
        {"barrier-2", "barrier-8", "barrier-32", "single", "one", "three", "large", "start", "idle", "loaded"}
    )
    without = {
        "client": "has no members; keys with an expiry can stand for them, and take as long as that",
        "daemon": "has no members",
        "silent": "has no members",
        "cut": "has no members",
        "alarms": "elects nobody",
        "leader": "no fail-over without Sentinel or Cluster",
    }
    promises = {
        "barrier": "counted in the memory of one server; nobody is noticed to die",
        "multicast": "ordered by one server; memory; the sender waits for both replicas (WAIT 2), a reader does not; "
        "a fail-over may lose what was confirmed",
        "write": "in memory of 3 of 3 (WAIT 2)",
    }

    def why_not(self) -> str | None:
        return missing("redis-server", modules=["hiredis"], package="apt install redis-server; pip install hiredis")

    def version(self) -> str:
        import hiredis

        return f"redis {said_by('redis-server', '--version').split('v=')[1].split()[0]}, hiredis {hiredis.__version__}"

    def new_cluster(self, directory: Path) -> Servers:
        return Servers(directory)

    def new_role(self, me: int, where: Sequence[int]) -> Role:
        return _Program(where[me], where[0])

    def new_party(self, me: int, parties: int, round_name: str, where: Sequence[int]) -> Wait:
        return _party(parties, round_name.encode(), where[0])

    def new_writer(self, me: int, where: Sequence[int]) -> Write:
        def attempt(timeout: float) -> None:
            primary = Connection(where[0])
            if (
                primary.ask([b"XADD", b"first", b"*", b"", b"x" * 100], [b"WAIT", b"2", b"%d" % (1000 * timeout)])[1]
                < 2
            ):
                raise ConnectionError("the replicas are not there yet")

        return lambda timeout: until_done(attempt, timeout, (OSError, RuntimeError))


class Connection:
    """Commands out, answers in."""

    def __init__(self, port: int) -> None:
        import hiredis

        self._socket = connected(port)
        self._reader = hiredis.Reader(replyError=RuntimeError)
        self._pack = hiredis.pack_command

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, *commands: Sequence[bytes]) -> None:
        """All in one packet."""
        self._socket.sendall(b"".join(self._pack(tuple(command)) for command in commands))

    def answers(self) -> list[Any]:
        """What there is, after a wait for some."""
        found = self._socket.recv(READ_BYTES)
        if not found:
            raise ConnectionError("redis has closed the connection")
        self._reader.feed(found)
        answers = []
        while (answer := self._reader.gets()) is not False:
            answers.append(answer)
        return answers

    def ask(self, *commands: Sequence[bytes]) -> list[Any]:
        """These commands, and all their answers."""
        self.send(*commands)
        found: list[Any] = []
        while len(found) < len(commands):
            found += self.answers()
        for answer in found:
            if isinstance(answer, Exception):
                raise answer
        return found


class _Program:
    """Appends at the primary, reads at its own server."""

    program: Program

    def __init__(self, own: int, primary: int) -> None:
        self._primary, self._own = Connection(primary), Connection(own)
        newest = self._own.ask([b"XREVRANGE", STREAM, b"+", b"-", b"COUNT", b"1"])[0]
        self._last: bytes = newest[0][0] if newest else b"0-0"
        self._seq = 0
        self._wanted: list[bytes] = []
        self._owed = 0
        self.submit = self._wanted.append
        self._ask_for_more()

    def _ask_for_more(self) -> None:
        self._own.send((b"XREAD", b"COUNT", b"256", b"BLOCK", b"0", b"STREAMS", STREAM, self._last))

    def turn(self) -> None:
        """Send what is wanted in one packet, read what has come."""
        wanted = self._wanted
        if wanted:
            commands = [(b"XADD", STREAM, b"MAXLEN", b"~", KEPT, b"*", b"", payload) for payload in wanted]
            wanted.clear()
            self._primary.send(*commands, (b"WAIT", b"2", b"1000"))
            self._owed += len(commands) + 1
        waits = [self._own, self._primary] if self._owed else [self._own]
        for readable in select.select(waits, [], [], POLL_MS / 1000)[0]:
            if readable is self._primary:
                self._confirmed()
            else:
                self._read()
        self.program.fill()

    def _confirmed(self) -> None:
        for answer in self._primary.answers():
            if isinstance(answer, Exception) or (isinstance(answer, int) and answer < 2):
                raise RuntimeError(f"redis says {answer!r}")
            self._owed -= 1

    def _read(self) -> None:
        deliver, seq = self.program.deliver, self._seq
        for answer in self._own.answers():
            entries = answer[0][1]
            for _, (_, payload) in entries:
                seq += 1
                deliver(seq, "redis", payload)
            self._last = entries[-1][0]
            self._ask_for_more()
        self._seq = seq
        self.program.note()


def _party(parties: int, name: bytes, primary: int) -> Wait:
    counts, listens = Connection(primary), Connection(primary)
    listens.ask([b"SUBSCRIBE", name])
    (digest,) = counts.ask([b"SCRIPT", b"LOAD", COUNT])
    command = (b"EVALSHA", digest, b"1", name, b"%d" % parties)
    count = 0

    def wait() -> None:
        nonlocal count
        counts.send(command)
        count += parties
        told = listens.answers()
        counts.answers()
        if [int(each[2]) for each in told] != [count]:
            raise AssertionError(f"round {count} was expected, {told} came")

    return wait
