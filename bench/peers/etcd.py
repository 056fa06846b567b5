"""etcd: three servers, every write on the disks of two before it is confirmed.

A message is a key; programs watch all of them, each at a server of its own, and see all revisions in order. Puts that
are under way together come in any order, so a sender has one transaction under way, and what is submitted meanwhile
goes into the next one, up to as many as etcd takes: that is much faster than one after the other. In a barrier each
party puts its key and counts those of the round in one transaction; the last one puts another key, which all watch. A
member is a key with a lease, of the shortest time that etcd grants. The client is grpcio, with etcd's messages written
by hand (``protobuf``), as the Python libraries for etcd need an old protobuf.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..beside import POLL_MS, Role
from ..load import Program
from .peer import SERVERS, Cluster, Member, Peer, Wait, Write, missing, said_by, until_done
from .protobuf import fields, message

LEASE_S = 1
"""etcd grants at least one and a half election timeouts, so 2 s, whatever is asked for."""

KEEP_ALIVE_S = 0.3
CALL_WAIT_S = 30.0

PUTS_MAX = 128
TRANSACTION_BYTES_MAX = 1_000_000
"""etcd takes 128 operations and 1.5 MiB in one request by default."""


class Servers(Cluster):
    """With data directories of their own."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        ports = self.ports()
        self.where = [f"127.0.0.1:{port}" for port in ports]
        self._peers = [f"http://127.0.0.1:{port + 1}" for port in ports]

    def command(self, number: int) -> Sequence[str]:
        client, peer = f"http://{self.where[number]}", self._peers[number]
        return [
            "etcd", "--name", f"n{number}", "--data-dir", str(self.directory / f"n{number}"),
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", ",".join(f"n{each}={url}" for each, url in enumerate(self._peers)),
            "--initial-cluster-state", "new", "--log-level", "error",
        ]  # fmt: skip

    def settle(self) -> None:
        for address in self.where:
            until_done(Client(address).put_once, CALL_WAIT_S, _errors())

    def leader(self) -> int:
        for number, address in enumerate(self.where):
            status = dict(fields(Client(address).call("Maintenance", "Status", b"")))
            if status[4] == dict(fields(status[1]))[2]:  # the leader is this member
                return number
        raise RuntimeError("etcd has no leader")

    def formations(self) -> int:
        header = dict(fields(dict(fields(Client(self.where[0]).call("Maintenance", "Status", b"")))[1]))
        return int(header[4])  # the term of Raft


class Etcd(Peer):
    """What many take instead."""

    name = "etcd"
    title = "etcd"
    client = "Python, grpcio"
    setting = "none: all defaults"
    rows = frozenset(
        {"barrier-2", "barrier-8", "barrier-32", "single", "one", "three", "large", "client", "leader"}
        | {"start", "idle", "loaded", "alarms"}
    )
    without = {
        "daemon": "members are clients with leases; with another server they go on",
        "silent": "the same",
        "cut": "the same",
    }
    promises = {
        "barrier": "keys on the disks of 2 of 3; a dead party is noticed if its key has a lease",
        "multicast": "one order; synced to the disks of 2 of 3 before anybody is told",
        "write": "synced to the disks of 2 of 3",
        "client": "its lease of 2 s runs out: the shortest that is granted",
    }
    barrier_rounds = {2: 60, 8: 30, 32: 12}

    def why_not(self) -> str | None:
        return missing("etcd", modules=["grpc"], package="apt install etcd-server; pip install grpcio")

    def version(self) -> str:
        import grpc

        return f"etcd {said_by('etcd', '--version').split(':')[1].strip()}, grpcio {grpc.__version__}"

    def new_cluster(self, directory: Path) -> Servers:
        return Servers(directory)

    def new_role(self, me: int, where: Sequence[str]) -> Role:
        return _Program(me, where[me])

    def new_party(self, me: int, parties: int, round_name: str, where: Sequence[str]) -> Wait:
        return _Party(where[me % SERVERS], me, parties, round_name).wait

    def new_member(self, me: int, where: Sequence[str]) -> Member:
        return _Member(where[me], me)

    def new_writer(self, me: int, where: Sequence[str]) -> Write:
        client = Client(where[me])
        return lambda timeout: until_done(client.put_once, timeout, _errors())


def _errors() -> tuple[type[Exception], ...]:
    import grpc

    return (grpc.RpcError,)


class Client:
    """The calls that are used here."""

    def __init__(self, address: str) -> None:
        import grpc

        options = [
            ("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 20),
            ("grpc.min_reconnect_backoff_ms", 5000), ("grpc.max_reconnect_backoff_ms", 100),
        ]  # fmt: skip
        # What is called the least back-off is how long an attempt may take: short, 32 programs never come through.
        self._channel = grpc.insecure_channel(address, options)
        self.transact_async = self._method("KV", "Txn").future

    def _method(self, service: str, name: str) -> Any:
        return self._channel.unary_unary(f"/etcdserverpb.{service}/{name}")

    def call(self, service: str, name: str, request: bytes, timeout: float = CALL_WAIT_S) -> bytes:
        """One answer."""
        answer: bytes = self._method(service, name)(request, timeout=timeout, wait_for_ready=True)
        return answer

    def put_once(self, timeout: float) -> None:
        """A write; tried for a second at most, as one that a dying leader had is never answered."""
        request = message((1, b"written"), (2, b"x" * 100))
        self._method("KV", "Put")(request, timeout=min(timeout, 1.0))

    def watch(self, key: bytes, end: bytes = b"") -> queue.SimpleQueue[list[tuple[int, int, bytes, bytes]]]:
        """What happens to the key, or to all up to ``end``: lists of (revision, 1 if deleted, key, value)."""
        found: queue.SimpleQueue[list[tuple[int, int, bytes, bytes]]] = queue.SimpleQueue()
        wanted: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        wanted.put(message((1, message((1, key), *([(2, end)] if end else [])))))
        answers = self._channel.stream_stream("/etcdserverpb.Watch/Watch")(iter(wanted.get, None), wait_for_ready=True)
        created = threading.Event()

        def listen() -> None:
            for answer in answers:
                created.set()
                events = [_event(value) for number, value in fields(answer) if number == 11]
                if events:
                    found.put(events)

        threading.Thread(target=listen, daemon=True).start()
        if not created.wait(CALL_WAIT_S):
            raise TimeoutError("etcd does not watch")
        return found

    def lease(self) -> int:
        """A lease that this process keeps alive."""
        granted = dict(fields(self.call("Lease", "LeaseGrant", message((1, LEASE_S)))))
        lease = granted[2]

        def beats() -> Iterator[bytes]:
            while True:
                yield message((1, lease))
                time.sleep(KEEP_ALIVE_S)

        answers = self._channel.stream_stream("/etcdserverpb.Lease/LeaseKeepAlive")(beats())
        threading.Thread(target=lambda: all(True for _ in answers), daemon=True).start()
        return lease


def _event(data: bytes) -> tuple[int, int, bytes, bytes]:
    event = dict(fields(data))
    pair = dict(fields(event[2]))
    return pair.get(3, 0), event.get(1, 0), pair[1], pair.get(5, b"")


class _Program:
    """Puts keys, and watches them."""

    program: Program

    def __init__(self, me: int, address: str) -> None:
        self._client = Client(address)
        self._events = self._client.watch(b"bench/", b"bench0")
        self._key = b"bench/%d/%d/%%d" % (me, time.monotonic_ns())
        self._revision = self._seq = self._number = 0
        self._wanted: deque[bytes] = deque()
        self._under_way: Any = None
        self.submit = self._wanted.append

    def _send(self) -> None:
        """The next transaction, if the one before is done."""
        if self._under_way is not None:
            if not self._under_way.done():
                return
            self._under_way.result()
            self._under_way = None
        puts, size = [], 0
        while self._wanted and len(puts) < PUTS_MAX and size < TRANSACTION_BYTES_MAX:
            payload = self._wanted.popleft()
            self._number += 1
            size += len(payload)
            puts.append((2, message((2, message((1, self._key % self._number), (2, payload))))))
        if puts:
            self._under_way = self._client.transact_async(message(*puts))
            self._under_way.add_done_callback(lambda done: self._events.put([]))

    def turn(self) -> None:
        """Deliver what was seen, and send what can be sent."""
        self._send()
        try:
            batch = self._events.get(timeout=POLL_MS / 1000)
            while True:
                for revision, _, _, payload in batch:
                    if revision < self._revision:
                        raise AssertionError(f"revision {revision} came after {self._revision}")
                    self._revision = revision
                    self._seq += 1
                    self.program.deliver(self._seq, "etcd", payload)
                batch = self._events.get_nowait()
        except queue.Empty:
            pass
        self.program.note()
        self.program.fill()


class _Party:
    """Puts its key and counts in one transaction."""

    def __init__(self, address: str, me: int, parties: int, name: str) -> None:
        self._client = Client(address)
        self._me, self._parties, self._name = me, parties, name.encode()
        self._gate = self._name + b"/gate"
        self._opened = self._client.watch(self._gate)
        self._number = 0

    def wait(self) -> None:
        """One round."""
        self._number += 1
        prefix = b"%s/%d/" % (self._name, self._number)
        put = message((2, message((1, prefix + b"%d" % self._me))))
        count = message((1, message((1, prefix), (2, prefix[:-1] + b"0"), (9, 1))))
        answer = self._client.call("KV", "Txn", message((2, put), (2, count)))
        *_, counted = (value for number, value in fields(answer) if number == 3)
        if dict(fields(dict(fields(counted))[1])).get(4, 0) == self._parties:
            self._client.call("KV", "Put", message((1, self._gate), (2, b"%d" % self._number)))
        events = self._opened.get(timeout=CALL_WAIT_S)
        if [event[3] for event in events] != [b"%d" % self._number]:
            raise AssertionError(f"round {self._number} was expected, {events} came")


class _Member:
    """A key that goes with a lease, and a watch on those of all."""

    def __init__(self, address: str, me: int) -> None:
        self._client = Client(address)
        self._events = self._client.watch(b"members/", b"members0")
        key = b"members/%d" % me
        self._client.call("KV", "Put", message((1, key), (2, b"here"), (3, self._client.lease())))

    def wait_for(self, members: int, timeout: float) -> None:
        until = time.monotonic() + timeout
        request = message((1, b"members/"), (2, b"members0"), (9, 1))
        while dict(fields(self._client.call("KV", "Range", request))).get(4, 0) < members:
            if time.monotonic() > until:
                raise TimeoutError(f"{members} members are not there")
            time.sleep(0.01)

    def wait_gone(self, timeout: float) -> float:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if any(is_deleted for _, is_deleted, _, _ in self._events.get(timeout=timeout)):
                return time.monotonic()
        raise TimeoutError("nobody is gone")
