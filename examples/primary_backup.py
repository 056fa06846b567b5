"""A service that fails over: three processes, the oldest serves. One primary is killed, the next one hangs.

The list of providers is the same everywhere, oldest first, so nobody needs an election: who sees itself at the head of
the list is primary. A process that *dies* is off the list at once, and the next oldest takes over. A process that
*hangs* is not dead: it stays on the list, and primary, until somebody does something about it. The others are told that
it is ``Unresponsive``; here the next in line has it expelled, and takes over.

The *fence* is a number that grows with every change of the list. The primary shows it to whatever it writes to; the
disk below takes nothing with a lower fence than it has seen. So a former primary that was asleep and does not know yet
that it is not primary any more can do no harm. It learns it by its own clock: ``is_oldest`` is false as soon as nobody
vouches for it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import groupsvc
from groupsvc.testing import LocalDomain

GROUP = "database"
SPAWN = multiprocessing.get_context("spawn")
Processes = dict[str, multiprocessing.process.BaseProcess]


def main() -> None:
    """The story as an operator sees it, who only watches."""
    with LocalDomain(nodes=3) as domain, tempfile.TemporaryDirectory() as directory:
        disk = Disk(Path(directory) / "disk")
        processes = {}
        with domain.connect("n2") as session:
            for name, node in (("anna", "n1"), ("bert", "n2"), ("carl", "n3")):
                processes[name] = SPAWN.Process(target=serve, args=(name, domain.address(node), disk))
                processes[name].start()
                wait_for(session, name)  # one after the other, so that anna is the oldest

            with session.subscribe(GROUP) as watching:
                one_dies(watching, processes, disk)
                one_hangs(watching, processes, disk)
        for process in processes.values():
            process.kill()
            process.join()


def one_dies(watching: groupsvc.Subscription, processes: Processes, disk: Disk) -> None:
    """The others need no time-out, and nobody has to do anything."""
    first = watching.view.providers[0]
    old_fence = disk.wait_for_writer(first.name)
    say(f"operator: the primary is {first.name}; kill -9 its process")
    processes[first.name].kill()
    second = next_primary(watching, first)
    new_fence = disk.wait_for_writer(second.name)
    say(f"operator: {second.name} writes with a higher fence: {new_fence > old_fence}")


def one_hangs(watching: groupsvc.Subscription, processes: Processes, disk: Disk) -> None:
    """It might go on at any moment, so it is primary until it was expelled."""
    first = watching.view.providers[0]
    old_fence = disk.wait_for_writer(first.name)
    process = processes[first.name]
    assert process.pid is not None
    say(f"operator: the primary is {first.name}; kill -STOP its process")
    os.kill(process.pid, signal.SIGSTOP)
    second = next_primary(watching, first)
    disk.wait_for_writer(second.name)
    say(f"operator: kill -CONT the process of {first.name}, which does not know yet")
    os.kill(process.pid, signal.SIGCONT)
    process.join(timeout=10)
    say(f"disk: a write of {first.name} that comes now, with the old fence, is taken: "
        f"{disk.write(first.name, old_fence)}")  # fmt: skip


def next_primary(watching: groupsvc.Subscription, first: groupsvc.Provider) -> groupsvc.Provider:
    """Who comes after the first, as soon as that has left."""
    left = next(event for event in watching.events(timeout=20) if isinstance(event, groupsvc.Left))
    second = left.view.providers[0]
    say(f"operator: {first.name} left ({left.cause.name}); the next oldest is {second.name}")
    return second


def serve(name: str, address: str, disk: Disk) -> None:
    """One process of the service."""
    with groupsvc.connect(address) as session, session.join(GROUP, name=name, events=True) as group:
        was_primary = False
        for event in group.events():
            if isinstance(event, groupsvc.Unresponsive) and is_next_in_line(group, event.provider):
                say(f"{name}: {event.provider.name} does not answer, and is primary; I have it expelled")
                group.expel(event.provider, reason="does not answer")
            is_primary = group.is_oldest  # after every event: also ``Suspended`` and ``Resumed`` decide it
            if is_primary and not was_primary:
                say(f"{name}: I am the oldest, so I am primary now")
                disk.write(name, group.fence)
            elif was_primary and not is_primary:
                say(f"{name}: nobody vouches for it any more that I am primary, so I am not")
            was_primary = is_primary
            if isinstance(event, groupsvc.Left) and group.me in event.providers:
                say(f"{name}: I was expelled ({event.reason})")


def is_next_in_line(group: groupsvc.Group, hangs: groupsvc.Provider) -> bool:
    """Whether it is the primary that hangs, and I am the one to do something about it."""
    return [hangs.id, group.me.id] == [provider.id for provider in group.providers[:2]]


class Disk:
    """A disk that compares fences, as anything should that only one may write to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, writer: str, fence: int) -> bool:
        """Whether the write was taken."""
        if fence < self.read()[1]:
            return False
        temporary = self.path.with_suffix(f".{writer}")
        temporary.write_text(f"{writer} {fence}")
        temporary.rename(self.path)
        return True

    def read(self) -> tuple[str, int]:
        """The last writer and its fence."""
        if not self.path.exists():
            return "nobody", 0
        writer, fence = self.path.read_text().split()
        return writer, int(fence)

    def wait_for_writer(self, name: str) -> int:
        """The fence of ``name``, as soon as it has written."""
        until = time.monotonic() + 10
        while self.read()[0] != name:
            assert time.monotonic() < until, f"{name} has not written for ten seconds"
            time.sleep(0.02)
        return self.read()[1]


def wait_for(session: groupsvc.Session, name: str) -> None:
    """Until ``name`` is a provider."""
    with session.subscribe(GROUP, wait=10) as watching:
        while name not in {provider.name for provider in watching.view.providers}:
            assert watching.next_event(timeout=10) is not None, f"{name} has not come for ten seconds"


def say(text: str) -> None:
    """One line at a time, also from several processes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
