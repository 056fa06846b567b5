"""A piece of network between a program and a daemon, which a test can cut or let fall silent."""

from __future__ import annotations

import contextlib
import math
import select
import socket
import threading
import time
from types import TracebackType
from typing import Self

from groupsvc.addresses import tcp_host_and_port

CHUNK_BYTES = 65_536


class Forwarder:
    """Listens at ``address`` and passes on what comes, both ways, to the daemon at ``target``."""

    def __init__(self, target: str) -> None:
        self._target = tcp_host_and_port(target)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"
        self.connections = 0
        self._other_end: dict[socket.socket, socket.socket] = {}
        self._silent: set[socket.socket] = set()
        self._is_open = True
        self._bytes_per_s = math.inf
        self._lock = threading.Lock()
        self._wake, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """End all connections; new ones are possible."""
        with self._lock:
            for end in list(self._other_end):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def break_off(self) -> None:
        """End all connections; new ones are ended at once, too, until it is mended."""
        self._is_open = False
        self.cut()

    def mend(self) -> None:
        """New ones are possible again."""
        self._is_open = True

    def fall_silent(self) -> None:
        """From now on nothing gets through the connections there are, and nobody is told; new ones are possible."""
        with self._lock:
            self._silent.update(self._other_end)
        self._waker.send(b"x")

    def slow_down(self, bytes_per_s: float) -> None:
        """From now on no more gets through, both ways together."""
        self._bytes_per_s = bytes_per_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waker.close()
        self._thread.join()
        for one in (self._listening, self._wake, *self._other_end):
            one.close()

    def _run(self) -> None:
        while True:
            with self._lock:
                heard = [end for end in self._other_end if end not in self._silent]
            for ready in select.select([self._wake, self._listening, *heard], [], [])[0]:
                if ready is self._wake:
                    if not self._wake.recv(1):
                        return
                elif ready is self._listening:
                    self._accept()
                elif ready in self._other_end:
                    self._pass_on(ready)

    def _accept(self) -> None:
        near, _ = self._listening.accept()
        if not self._is_open:
            near.close()
            return
        far = socket.create_connection(self._target)
        with self._lock:
            self._other_end |= {near: far, far: near}
            self.connections += 1

    def _pass_on(self, ready: socket.socket) -> None:
        try:
            data = ready.recv(CHUNK_BYTES)
            if data:
                time.sleep(len(data) / self._bytes_per_s)
                self._other_end[ready].sendall(data)
                return
        except OSError:
            pass
        with self._lock:
            other = self._other_end.pop(ready)
            del self._other_end[other]
        ready.close()
        other.close()
