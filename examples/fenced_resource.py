"""A lock, a program that falls asleep while it holds it, and a resource that knows the difference.

Run it: ``python examples/fenced_resource.py``. It starts a domain of three nodes. anna has the lock and is about to
write; in that moment her program is stopped, and her node is cut off. bert gets the lock and writes. Then anna wakes up
and does what she was about to do. The resource has seen bert's fence, which is higher, and refuses hers.

``unfenced_resource.py`` is the same story with a resource that does not look.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Event
from pathlib import Path

import groupsvc
from groupsvc.testing import LocalDomain

LOCK = "report"
SPAWN = multiprocessing.get_context("spawn")


class Resource:
    """A file that takes no write whose fence is smaller than one it has seen."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, text: str, fence: int) -> bool:
        """Whether it was taken."""
        if self.is_old(fence):
            return False
        self.path.write_text(f"{fence} {text}")
        return True

    def is_old(self, fence: int) -> bool:
        """Whether somebody has written who had the lock later."""
        return self.path.exists() and fence < int(self.path.read_text().split()[0])

    def read(self) -> str:
        """What was written last."""
        return self.path.read_text().partition(" ")[2]


def main(kind: type[Resource]) -> None:
    """The story, as an operator sees it."""
    with LocalDomain(nodes=3) as domain, tempfile.TemporaryDirectory() as directory:
        resource = kind(Path(directory) / "report")
        domain.hand_over("n1")
        is_about_to, goes_on = SPAWN.Event(), SPAWN.Event()
        anna = SPAWN.Process(target=write_slowly, args=(domain.address("n3"), resource, is_about_to, goes_on))
        anna.start()
        assert is_about_to.wait(10)
        with domain.connect("n1") as session, ThreadPoolExecutor(1) as pool:
            lock = session.lock(LOCK)
            waiting = pool.submit(lock.acquire)
            wait_for_line(lock, 2)
            say("operator: bert waits; anna's program falls asleep, and her node is cut off")
            os.kill(anna.pid or 0, signal.SIGSTOP)
            domain.kill("n3")
            assert waiting.result(), "bert did not get the lock"
            say(f"bert: I have the lock; my write is taken: {resource.write('bert', lock.fence)}")
            os.kill(anna.pid or 0, signal.SIGCONT)
            goes_on.set()
            anna.join(10)
            say(f"operator: bert has the lock, and the report is by {resource.read()}")
            lock.release()


def wait_for_line(lock: groupsvc.Lock, length: int) -> None:
    """Until so many stand in line, the holder first."""
    until = time.monotonic() + 10
    while len(lock.in_line()) < length:
        assert time.monotonic() < until, "nobody comes"
        time.sleep(0.02)


def write_slowly(address: str, resource: Resource, is_about_to: Event, goes_on: Event) -> None:
    """anna: looks whether the lock is hers, and writes. Between the two there can be any length of time."""
    lock = groupsvc.connect(address).lock(LOCK)
    lock.acquire()
    lock.check()
    is_about_to.set()
    goes_on.wait()
    say(f"anna: I had the lock a moment ago; my write is taken: {resource.write('anna', lock.fence)}")
    try:
        lock.check()
    except (groupsvc.Suspended, groupsvc.Lost) as error:
        say(f"anna: I should have asked before: {type(error).__name__}")


def say(text: str) -> None:
    """One line at a time, also from several processes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Resource)
