"""The daemon in memory behind a real socket: what the drivers are tested with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from groupsvc.testing.scripted_daemon import ScriptedDaemon, reply_frame
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_in_memory import DaemonInMemory, Script

PATIENCE_S = 20.0
"""Nothing here takes long; a test that waits so long has failed."""


class DaemonOnASocket:
    """``memory`` decides what is answered; ``tell`` says something unasked."""

    def __init__(self, memory: DaemonInMemory) -> None:
        self.memory = memory
        self._lock = threading.Lock()
        self.server = ScriptedDaemon(self._answer, greets=False)
        self.address = self.server.address
        self._news = threading.Condition()

    def _answer(self, request: wire.AnyClientRequest) -> bytes | None:
        with self._lock:
            replies = self.memory.handle(request)
        with self._news:
            self._news.notify_all()
        return reply_frame(*replies) if replies else None

    def tell(self, *replies: wire.AnyClientReply) -> None:
        """Counted, and sent to the client."""
        with self._lock:
            self.server.say(*self.memory.tell(*replies))

    def wait_for(self, kind: type[wire.AnyClientRequest], count: int = 1) -> list[wire.AnyClientRequest]:
        """Until so many requests of this kind have come."""

        def found() -> list[wire.AnyClientRequest]:
            return [one for one in (*self.memory.requests, *self.memory.alive) if isinstance(one, kind)]

        with self._news:
            assert self._news.wait_for(lambda: len(found()) >= count, PATIENCE_S), f"no {kind.__name__} came"
        return found()


@contextmanager
def daemon_on_a_socket(script: Script | None = None, *, good_for: float = 10.0) -> Iterator[DaemonOnASocket]:
    """One that runs."""
    daemon = DaemonOnASocket(DaemonInMemory(script, good_for=good_for))
    with daemon.server:
        yield daemon
