"""What a lock guards: a resource that notes every use, and takes none with a smaller fence than it has seen."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path

import attrs


@attrs.frozen
class Use:
    """Of the resource."""

    at: float
    what: str
    fence: int
    who: str
    is_taken: bool


class Resource:
    """What the lock guards: a socket of a thread. Who stops in the middle of a use is in nobody's way."""

    def __init__(self, path: Path) -> None:
        self.uses: list[Use] = []
        self._newest: Use | None = None  # of those that were taken
        self._lock = threading.Lock()
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listening.bind(str(path))
        self._listening.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                user, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(user,), daemon=True).start()

    def _serve(self, user: socket.socket) -> None:
        with user, contextlib.suppress(ConnectionError):  # it was killed, with an answer on its way
            while words := user.recv(200).decode():
                what, fence, who = words.split()
                user.send(b"taken" if self._use(what, int(fence), who) else b"refused")

    def _use(self, what: str, fence: int, who: str) -> bool:
        with self._lock:
            is_taken = self._newest is None or fence >= self._newest.fence
            use = Use(time.monotonic(), what, fence, who, is_taken)
            self.uses.append(use)
            if is_taken:
                self._newest = use
            return is_taken

    def inside(self) -> str:
        """Who has entered last, and not left."""
        newest = self._newest
        return newest.who if newest is not None and newest.what != "leave" else ""

    def close(self) -> None:
        """Nobody comes in any more."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
