"""Ceilings: what a process may use after hours, measured against what it used when it was warm.

Memory that grows by a page for each session that ends is found in no test of a minute. So every process, daemon or
program, is looked at whenever all is at rest: its resident memory, open files, threads. What it has when it is
``WARM_S`` old is what it needs; what it has later may be more by a *stated* allowance, for buffers that are as large as
the largest burst was, and not more however long it runs. A process that is started again begins anew.
"""

from __future__ import annotations

from pathlib import Path

import attrs

from groupsvc import clock

WARM_S = 60.0

RSS_ALLOWANCE_MIB = 64.0
"""Over the warm value. A daemon keeps up to 24 MiB of a group's history, of which there are two, and the queues of its
clients; a program the events that it has not read."""

FILES_ALLOWANCE = 40
"""Over the warm value: five for each peer that comes back, some for each program, and those that are being closed."""

THREADS_ALLOWANCE = 4


@attrs.frozen
class Use:
    """Of one process, at one moment."""

    rss_mib: float
    files: int
    threads: int


@attrs.define
class Watched:
    """One process."""

    name: str
    since: float
    warm: Use | None = None
    most: Use = Use(0.0, 0, 0)
    looks: int = 0

    def grown(self) -> Use:
        """By how much it was over its warm value, at most."""
        if self.warm is None:
            return Use(0.0, 0, 0)
        return Use(
            self.most.rss_mib - self.warm.rss_mib, self.most.files - self.warm.files,
            self.most.threads - self.warm.threads,
        )  # fmt: skip


@attrs.define
class Ceilings:
    """All processes of a soak, by process id."""

    watched: dict[int, Watched] = attrs.field(factory=dict)
    problems: list[str] = attrs.field(factory=list)

    def look(self, pids: dict[str, int]) -> None:
        """At all of them, now; what is over its ceiling is a problem."""
        for name, pid in pids.items():
            use = used_by(pid)
            if use is None:
                continue
            one = self.watched.setdefault(pid, Watched(name, clock.now()))
            one.looks += 1
            if one.warm is None:
                if clock.now() - one.since >= WARM_S:
                    one.warm = one.most = use
                continue
            one.most = Use(*map(max, attrs.astuple(one.most), attrs.astuple(use)))
            self._judge(one, use)

    def _judge(self, one: Watched, use: Use) -> None:
        assert one.warm is not None
        for what, now, warm, allowance in (
            ("MiB of memory", use.rss_mib, one.warm.rss_mib, RSS_ALLOWANCE_MIB),
            ("open files", use.files, one.warm.files, FILES_ALLOWANCE),
            ("threads", use.threads, one.warm.threads, THREADS_ALLOWANCE),
        ):
            if now > warm + allowance:
                age_s = clock.now() - one.since
                self.problems.append(f"X1: {one.name} has {now:.0f} {what} after {age_s:.0f} s; warm it had {warm:.0f}")

    def most(self, kind: str) -> dict[str, float]:
        """Of all whose name contains this: the most that any used, and by how much one has grown at most."""
        found = [one for one in self.watched.values() if kind in one.name and one.warm is not None]
        most, grown = [one.most for one in found], [one.grown() for one in found]
        return {
            "processes": len(found),
            "rss_mib": round(max((use.rss_mib for use in most), default=0.0), 1),
            "rss_grown_mib": round(max((use.rss_mib for use in grown), default=0.0), 1),
            "files": max((use.files for use in most), default=0),
            "files_grown": max((use.files for use in grown), default=0),
            "threads": max((use.threads for use in most), default=0),
            "threads_grown": max((use.threads for use in grown), default=0),
        }


def used_by(pid: int) -> Use | None:
    """Now; None if there is no such process."""
    place = Path(f"/proc/{pid}")
    try:
        lines = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines() if ":" in line)
        files = sum(1 for _ in (place / "fd").iterdir())
        return Use(int(lines["VmRSS"].split()[0]) / 1024, files, int(lines["Threads"]))
    except (OSError, KeyError):
        return None
