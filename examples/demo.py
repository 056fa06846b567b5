"""A service that stays up, and somebody who watches it, side by side: its daemon is killed, then its process.

Run it with ``make demo``. It takes a few seconds, asks nothing and leaves nothing behind.

Three daemons, and a process of the service at each. The oldest of the processes is primary, and writes its name and its
fence, a number that is higher for each primary (``primary_backup.py`` has a disk that compares them). First the daemon
of the primary is killed; it is name server, and leads the group of the service, too. Then the process of the next
primary. What is printed on the left the processes say themselves, each by its own clock; on the right is what a watcher
at n3 is told, as ``groupsvc watch`` prints it.
"""

from __future__ import annotations

import multiprocessing
import shutil
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import groupsvc
from groupsvc.cli.event_lines import line_of
from groupsvc.testing import LocalDomain

GROUP = "service"
WATCHER = ""
PATIENCE_S = 20.0
SPAWN = multiprocessing.get_context("spawn")
BEGAN = time.monotonic()


def main() -> None:
    """Two failures, and how long each of them took."""
    page = Page()
    page.title("the service", "who watches, at n3")
    page.middle("three daemons are started")
    with LocalDomain(nodes=3) as domain:
        domain.hand_over("n1")
        page.middle(f"the domain is formed: {', '.join(domain.names)}; n1 is name server")
        with watched(domain, page), running(domain, page) as processes:
            page.until("anna", "is primary")
            found = []

            killed = page.middle(f"kill -9 {domain.pid('n1')}: the daemon of n1, name server, leader of the group")
            domain.kill("n1")
            found.append(("the daemon that led everything is killed", page.until("bert", "is primary") - killed))
            page.until("anna", "is not primary any more")
            page.until(WATCHER, "left: anna")

            killed = page.middle(f"kill -9 {processes['bert'].pid}: the process of bert, the primary")
            processes["bert"].kill()
            found.append(("the process of the primary is killed", page.until("carl", "is primary") - killed))
            page.until(WATCHER, "left: bert")

            started = page.middle("the daemon of n1 is started again; anna finds it by herself")
            domain.restart("n1")
            found.append(("a daemon is started, and its program is in again", page.until("anna", "joined") - started))
            page.until(WATCHER, "joined: anna")
    page.middle("all have ended")
    print("\nHow long it took until the next primary wrote, and until anna was back:")
    for what, took in found:
        print(f"  {took * 1000:7.1f} ms  {what}")
    print("\nNext: groupsvc dev, and docs/tutorial.md")


# --- The service ----------------------------------------------------------------------------------------------


def serve(name: str, address: str, disk: Path, said: Connection) -> None:
    """One process of the service: primary while it is the oldest and somebody vouches for it."""

    def say(text: str) -> None:
        said.send((time.monotonic(), text))

    while True:
        try:
            with groupsvc.connect(address) as session, session.join(GROUP, name=name, events=True) as group:
                say(f"has joined, with fence {group.fence}")
                was_primary = False
                for _ in group.events():
                    is_primary = group.is_oldest  # after every event: ``Suspended`` decides it, too
                    if is_primary and not was_primary:
                        disk.write_text(f"{name} {group.fence}")
                        say(f"is primary, and has written with fence {group.fence}")
                    elif was_primary and not is_primary:
                        say("is not primary any more: nobody vouches for it")
                    was_primary = is_primary
        except groupsvc.GroupServiceError:
            time.sleep(0.1)  # its daemon is gone: it comes again with the next one


@contextmanager
def running(domain: LocalDomain, page: Page) -> Iterator[dict[str, BaseProcess]]:
    """A process at each node, one after the other, so that anna is the oldest."""
    processes: dict[str, BaseProcess] = {}
    try:
        for name, node in (("anna", "n1"), ("bert", "n2"), ("carl", "n3")):
            page.hears[name], says = SPAWN.Pipe(duplex=False)
            arguments = (name, domain.address(node), domain.directory / "disk", says)
            processes[name] = SPAWN.Process(target=serve, args=arguments, daemon=True)
            processes[name].start()
            says.close()
            page.until(name, "has joined")
        yield processes
    finally:
        for process in processes.values():
            process.kill()
            process.join()


# --- Who watches ----------------------------------------------------------------------------------------------


@contextmanager
def watched(domain: LocalDomain, page: Page) -> Iterator[None]:
    """What is told to somebody who is not in the group."""
    page.hears[WATCHER], says = SPAWN.Pipe(duplex=False)
    with domain.connect("n3") as session:

        def watch() -> None:
            try:
                with session.subscribe(GROUP, wait=PATIENCE_S) as watching:
                    for event in watching.events():
                        says.send((time.monotonic(), line_of(event)))
            except groupsvc.GroupServiceError:
                pass  # the end

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        yield
    thread.join(PATIENCE_S)


# --- The page -------------------------------------------------------------------------------------------------


class Page:
    """What everybody says, in the order of its time, in two columns."""

    def __init__(self) -> None:
        self.hears: dict[str, Connection] = {}
        self._said: list[tuple[str, float, str]] = []  # and not waited for yet
        columns = min(max(shutil.get_terminal_size((110, 24)).columns, 80), 140)
        self._width = (columns - 10) // 2 - 2

    def title(self, left: str, right: str) -> None:
        """The head of the page."""
        print(f"    time  {left:{self._width}}  {right}")
        print("-" * (12 + 2 * self._width))

    def middle(self, text: str) -> float:
        """Something that is done to them; when."""
        now = time.monotonic()
        print(f"{now - BEGAN:6.2f} s  === {text}", flush=True)
        return now

    def until(self, who: str, what: str) -> float:
        """Print what is said until ``who`` has said ``what``; when that was."""
        late = time.monotonic() + PATIENCE_S
        while True:
            for one in self._said:
                if one[0] == who and what in one[2]:
                    self._said.remove(one)
                    return one[1]
            if time.monotonic() > late:
                raise SystemExit(f"{who} has not said for {PATIENCE_S:g} s: {what}")
            self._hear()

    def _hear(self) -> None:
        heard = []
        ready = wait(list(self.hears.values()), timeout=0.1)
        for who, connection in [one for one in self.hears.items() if one[1] in ready]:
            try:
                while connection.poll():
                    heard.append((*connection.recv(), who))
            except EOFError:
                del self.hears[who]  # it was killed
        for when, text, who in sorted(heard):
            self._said.append((who, when, text))
            if who == WATCHER:
                self._print(when, "", text)
            else:
                self._print(when, f"{who} {text}", "")

    def _print(self, when: float, left: str, right: str) -> None:
        lines = [textwrap.wrap(text, self._width) for text in (left, right)]
        for number in range(max(map(len, lines))):
            of_left, of_right = (column[number] if number < len(column) else "" for column in lines)
            time_of = f"{when - BEGAN:6.2f} s" if number == 0 else ""
            print(f"{time_of:8}  {of_left:{self._width}}  {of_right}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
