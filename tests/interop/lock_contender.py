"""A contender for a lock, a process of its own, which uses what the lock guards again and again.

    python -m tests.interop.lock_contender ADDRESS LOCK WHO RESOURCE FILE

It is honest and rude: it looks at its guard before each use and writes down what that said, and then uses the resource
whatever it said. So the resource sees who would do harm if it did not compare fences, and whoever reads the lines
afterwards sees whether two were told at the same time that the lock is theirs. It stays inside as long as there is a
file FILE.stay, and ends with its standard input.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time

import groupsvc

USES = 8
PAUSE_S = 0.01


class Contender:
    """From turn to turn."""

    def __init__(self, who: str, resource: str, path: str) -> None:
        self._who = who
        self._stay = f"{path}.stay"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._resource = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._resource.connect(resource)
        self.over = threading.Event()

    def _write(self, what: str, at: float, fence: int, **more: object) -> None:
        line = json.dumps({"who": self._who, "what": what, "at": at, "fence": fence, **more})
        os.write(self._file, f"{line}\n".encode())

    def _use(self, what: str, fence: int) -> None:
        self._resource.send(f"{what} {fence} {self._who}".encode())
        self._resource.recv(16)

    def contend(self, session: groupsvc.Session, name: str) -> None:
        """Until it is over, or the session is lost."""
        lock = session.lock(name)
        while not self.over.is_set():
            asked = time.monotonic()
            if lock.acquire(timeout=2.0):
                self._write("has", time.monotonic(), lock.fence, asked=asked)
                self._turn(lock)

    def _turn(self, lock: groupsvc.Lock) -> None:
        fence = lock.fence
        self._use("enter", fence)
        uses = 0
        while uses < USES or os.path.exists(self._stay):
            uses += 1
            at = time.monotonic()  # before it is looked: what the guard says is true later than this
            try:
                lock.check()
                self._write("held", at, fence)
            except groupsvc.Suspended:
                self._write("suspended", at, fence)
            except groupsvc.Lost:
                self._write("lost", at, fence)
            self._use("use", fence)
            time.sleep(PAUSE_S)
        self._use("leave", fence)
        lock.release()


def main(address: str, name: str, who: str, resource: str, path: str) -> None:
    """Session after session."""
    contender = Contender(who, resource, path)

    def listen() -> None:
        sys.stdin.read()
        contender.over.set()

    threading.Thread(target=listen, daemon=True).start()
    while not contender.over.wait(0.05):
        try:
            with groupsvc.connect(address, timeout=1.0, default_timeout=1.0) as session:
                contender.contend(session, name)
        except groupsvc.GroupServiceError as problem:
            print(problem, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
