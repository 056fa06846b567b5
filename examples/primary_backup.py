"""A service that fails over: three processes, the oldest serves. It is killed, and the next oldest takes over.

The list of providers is the same everywhere, oldest first, so nobody needs an election: who sees itself at the head of
the list is primary. The *fence* is a number that grows with every change of the list. The primary shows it to whatever
it writes to; the disk below takes nothing with a lower fence than it has seen. So a former primary that was asleep and
does not know yet that it is not primary any more can do no harm.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

import groupsvc
from groupsvc.testing import LocalDomain

GROUP = "database"
SPAWN = multiprocessing.get_context("spawn")


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
                first = watching.view.providers[0]
                old_fence = disk.wait_for_writer(first.name)
                say(f"operator: the primary is {first.name}; kill -9 its process")
                processes[first.name].kill()

                left = next(event for event in watching.events(timeout=10) if isinstance(event, groupsvc.Left))
                second = left.view.providers[0]
                say(f"operator: {first.name} left ({left.cause.name}); the next oldest is {second.name}")
                new_fence = disk.wait_for_writer(second.name)
                say(f"operator: {second.name} writes with a higher fence: {new_fence > old_fence}")
                say(f"disk: a write of {first.name} that comes now, with the old fence, is taken: "
                    f"{disk.write(first.name, old_fence)}")  # fmt: skip
        for process in processes.values():
            process.kill()
            process.join()


def serve(name: str, address: str, disk: Disk) -> None:
    """One process of the service."""
    with groupsvc.connect(address) as session, session.join(GROUP, name=name, events=True) as group:
        is_primary = False
        for event in group.events():
            if isinstance(event, groupsvc.Joined | groupsvc.Left) and group.is_oldest and not is_primary:
                is_primary = True
                say(f"{name}: I am the oldest, so I am primary now")
                group.held(group.fence).check()  # raises if, by my own clock, that may not be true any more
                disk.write(name, group.fence)


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
