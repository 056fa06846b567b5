"""Durable groups over real daemons: kill -9, damaged files, disks that fail or are full (SAM-11, S1 to S4).

The program in each daemon is a machine whose state is the whole order of the group, from its first entry on. It breaks
the daemon if an entry is missing, doubled or out of order; here the orders are compared before and after.
"""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.driven import DrivenDomain, DrivenNode
from bench.driver import FailSync, GroupLook, Join, Joined, Send, Tell, Told
from bench.load import Load
from groupsvcd.daemon import EXIT_STATE
from groupsvcd.io.reactor import EXIT_DISK

pytestmark = pytest.mark.faults

GROUP = "ledger"
LOAD = Load(senders=3, window=32, count=1_500)
LONG_LOAD = Load(senders=3, window=32, count=6_000)
"""Of a fast machine 1,500 take a tenth of a second: too short for something to happen in the middle."""

NODES = ("n1", "n2", "n3")
FULL = "the disk of the state directory is full; nothing is acknowledged until there is room"


class Book:
    """A durable group on three daemons, and what each of its machines has seen."""

    def __init__(self, domain: DrivenDomain, load: Load) -> None:
        self.domain = domain
        self._load = load
        self._programs = 0
        self._seen: list[array[int]] = []
        for name in NODES:
            self.join(name)
        domain.wait_until(lambda: self.is_whole(), "the group has its servers")

    def join(self, name: str) -> None:
        """A new machine takes part there, and sends when it is told to."""
        me, self._programs = self._programs, self._programs + 1
        driver = self.domain.driver(name)
        driver.tell(Join(GROUP, me, self._load, machine=True, attributes={"durable": True}))
        driver.answer(Joined)

    def send(self, *names: str) -> None:
        """Let these send all they have."""
        for name in names:
            self.domain.driver(name).tell(Send(GROUP))

    def look(self, name: str) -> GroupLook | None:
        """The group as a node sees it."""
        groups = self.domain.driver(name).look().groups
        return next((group for group in groups if group.name == GROUP), None)

    def looks(self) -> list[GroupLook]:
        """The group as all see it."""
        return [look for look in map(self.look, NODES) if look is not None]

    def is_whole(self) -> bool:
        """Whether all are members and servers, and one of them leads."""
        looks = self.looks()
        return len(looks) == len(NODES) and all(
            set(look.members) == set(look.servers) == set(NODES) and look.leader == looks[0].leader for look in looks
        )

    def leader(self, name: str) -> str:
        """Who leads, as this node sees it."""
        look = self.look(name)
        return look.leader if look is not None else ""

    def refusals(self) -> list[str]:
        """Why each node takes nothing new, if it does not."""
        return [look.refusal for look in self.looks()]

    def is_drained(self) -> bool:
        """Whether everything that was sent is delivered everywhere."""
        looks = self.looks()
        return len({look.delivered for look in looks}) == 1 and all(look.outstanding == 0 for look in looks)

    def order(self, name: str) -> array[int]:
        """Everything that this machine knows to have been delivered, by its file."""
        file = self.domain.directory / f"{name}.order"
        self.domain.driver(name).tell(Tell(GROUP, str(file)))
        self.domain.driver(name).answer(Told)
        found = array("Q")
        found.frombytes(file.read_bytes())
        return found

    def note(self) -> None:
        """What is delivered now must be there for ever."""
        self._seen += [self.order(name) for name in NODES]

    def delivered(self, name: str) -> int:
        """How many there are now."""
        look = self.look(name)
        return look.delivered if look is not None else 0

    def progress(self, name: str, entries: int, *, since: int) -> None:
        """Wait until so many more are delivered there than there were: before they were sent, or some of them come."""
        self.domain.wait_until(
            lambda: (now := self.look(name)) is not None and now.delivered >= since + entries,
            f"{name} goes on",
            timeout=30,
        )

    def close(self) -> None:
        """All is delivered, the same everywhere, and begins with everything that was noted."""
        self.domain.wait_until(lambda: self.is_whole() and self.is_drained(), "all is delivered", timeout=40)
        orders = [self.order(name) for name in NODES]
        assert orders[0] == orders[1] == orders[2]
        messages = [entry for entry in orders[0] if entry]
        assert len(set(messages)) == len(messages)
        for seen in self._seen:
            assert seen == orders[0][: len(seen)]


@contextmanager
def book(load: Load = LOAD, domain_class: type[DrivenDomain] = DrivenDomain) -> Iterator[Book]:
    with domain_class(nodes=3) as domain:
        yield Book(domain, load)


def kill(domain: DrivenDomain, names: Sequence[str]) -> None:
    """All at one moment."""
    processes = [domain.driver(name)._running() for name in names]
    for process in processes:
        process.send_signal(signal.SIGKILL)
    for name in names:
        domain.kill(name)


def test_whoever_is_killed_all_that_was_delivered_is_there_in_order() -> None:
    """S1, B1, B4, B6. One under load, then two at once, then all three; each time the group goes on."""
    with book(LONG_LOAD) as ledger:
        domain = ledger.domain
        before = ledger.delivered("n2")
        ledger.send(*NODES)
        for victims in (NODES[:1], NODES[1:], NODES):
            ledger.progress("n2", 300, since=before)
            ledger.note()
            kill(domain, victims)
            for name in victims:
                domain.restart(name, wait=False)
            domain.wait_until_up()
            for name in victims:
                ledger.join(name)
            before = ledger.delivered("n2")
            ledger.send(*victims)
        ledger.progress("n2", 3 * LONG_LOAD.count, since=before)
        ledger.close()


def test_a_server_that_was_killed_is_not_missed_while_it_is_away() -> None:
    """S1. What two of three disks have is delivered; the third gets it when it is back."""
    with book() as ledger:
        kill(ledger.domain, ["n3"])
        before = ledger.delivered("n1")
        ledger.send("n1", "n2")
        ledger.progress("n1", 2 * LOAD.count, since=before)
        ledger.domain.restart("n3")
        ledger.join("n3")
        ledger.note()
        ledger.close()


# --- Damage ---


def database(domain: DrivenDomain, name: str) -> Path:
    """The file of a daemon that does not run, with everything in it."""
    file = domain.driver(name).state_directory / "state.db"
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return file


def flip_in_an_entry(file: Path) -> None:
    """One bit in the middle of the newest entry of the group, found by the bytes it has."""
    connection = sqlite3.connect(file)
    (body,) = connection.execute("SELECT body FROM entry WHERE stream != 0 ORDER BY seq DESC LIMIT 1").fetchone()
    connection.close()
    content = bytearray(file.read_bytes())
    content[content.index(body) + len(body) // 2] ^= 0x40
    file.write_bytes(content)


def cut_off_the_end(file: Path) -> None:
    """A third of the file."""
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 2 // 3])


def test_a_flipped_bit_is_named_and_the_log_is_repaired_from_the_others() -> None:
    """S2. The daemon starts, serves nothing of the group until it has it anew, and says so; nothing is missing."""
    with book() as ledger:
        domain = ledger.domain
        ledger.send("n1")
        ledger.progress("n2", LOAD.count // 2, since=0)
        kill(domain, ["n2"])
        before = ledger.delivered("n1")
        ledger.send("n3")
        ledger.progress("n1", 100, since=before)
        flip_in_an_entry(database(domain, "n2"))
        domain.restart("n2")
        assert "is not as it was written; nothing of it is served here" in domain.logs("n2")
        ledger.join("n2")
        ledger.note()
        ledger.close()
        status = domain.status("n2")
        assert status is not None
        assert "" == status.trouble


def test_a_file_that_lost_its_end_is_refused_and_an_empty_one_is_filled_by_the_others() -> None:
    """S2. The daemon does not start on it and leaves it as it is; on a new disk it is another server."""
    with book() as ledger:
        domain = ledger.domain
        ledger.send("n1")
        ledger.progress("n2", LOAD.count // 2, since=0)
        kill(domain, ["n3"])
        file = database(domain, "n3")
        cut_off_the_end(file)
        left = file.read_bytes()
        domain.restart("n3", wait=False)
        domain.wait_until(lambda: domain.exit_code("n3") == EXIT_STATE, "n3 refuses its state", timeout=10)
        assert "If it is lost, move the directory away and start with an empty one" in domain.logs("n3")
        assert left == file.read_bytes()
        domain.lose_state("n3")
        domain.restart("n3")
        ledger.join("n3")
        ledger.note()
        ledger.close()


# --- Disks that fail, and disks that are full ---


def test_a_failed_sync_ends_the_daemon_at_once_and_nothing_is_lost() -> None:
    """S3. It tries nothing again; the next start reads what is really there."""
    with book(LONG_LOAD) as ledger:
        domain = ledger.domain
        ledger.send("n1", "n2")
        ledger.progress("n2", 200, since=0)
        domain.driver("n1").tell(FailSync())
        domain.wait_until(lambda: domain.exit_code("n1") == EXIT_DISK, "n1 stops", timeout=10)
        assert "writing to the state directory failed (OperationalError: disk I/O error); stopping" in domain.logs("n1")
        before = ledger.delivered("n2")
        ledger.send("n3")
        ledger.progress("n2", 100, since=before)
        domain.restart("n1")
        ledger.join("n1")
        ledger.note()
        ledger.close()


class SmallDisk(DrivenNode):
    """A daemon whose state directory is a file system of its own, with little room."""

    def _command(self) -> list[str]:
        mount = f'mount -t tmpfs -o size=6m none {self.state_directory} && exec "$@"'
        return ["unshare", "-rm", "sh", "-c", mount, "sh", *super()._command()]

    @property
    def inside(self) -> Path:
        """The state directory as the daemon sees it."""
        return Path(f"/proc/{self.pid}/root{self.state_directory}")

    def fill(self) -> None:
        """Leave no room."""
        with (self.inside / "lost+found").open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def make_room(self) -> None:
        """Give it back."""
        (self.inside / "lost+found").unlink()


class SmallDisks(DrivenDomain):
    """Every disk is small."""

    node_class = SmallDisk


def needs_mount(directory: Path) -> None:
    """Skip, by name of what is missing, where a small file system cannot be mounted."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(directory)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"unshare cannot mount a small file system here: {done.stderr.strip()}")


def test_with_full_disks_new_work_is_refused_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """S4. One full disk: the others go on without it. All full: refused with a reason, everybody stays up."""
    needs_mount(tmp_path)
    with book(domain_class=SmallDisks) as ledger:
        domain = ledger.domain
        disks = [driver for name in NODES if isinstance(driver := domain.driver(name), SmallDisk)]
        disks[0].fill()
        ledger.send("n2")
        domain.wait_until(lambda: ledger.leader("n2") in ("n2", "n3"), "another leads than n1", timeout=10)
        assert FULL in domain.logs("n1")
        before = ledger.delivered("n1")
        ledger.send("n3")
        ledger.progress("n1", LOAD.count, since=before)
        for disk in disks[1:]:
            disk.fill()
        ledger.send("n1")
        domain.wait_until(lambda: any(ledger.refusals()), "new work is refused", timeout=10)
        assert all("its disk is full or hangs" in refusal for refusal in ledger.refusals() if refusal)
        status = domain.status("n2")
        assert status is not None
        assert "is the disk full or hung?" in status.trouble
        for disk in disks:
            disk.make_room()
        domain.wait_until_up()
        domain.wait_until(lambda: not any(ledger.refusals()), "new work is taken", timeout=10)
        ledger.note()
        ledger.close()
        assert 3 * LOAD.count == sum(entry != 0 for entry in ledger.order("n1"))
        assert not any(
            "incarnation" in line for name in NODES for line in domain.logs(name).splitlines() if "down" in line
        )
