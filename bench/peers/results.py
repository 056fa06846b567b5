"""The file of results: every single figure, with the round in which it was measured, and what it was measured with."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from .peer import Peer
from .rows import ROWS

ROOT = Path(__file__).resolve().parents[2]
CALM_S, CALM_LOOKS, CALM_WAIT_S = 0.3, 3, 300.0
FILE = ROOT / "docs" / "ledger" / "peers.json"


class Sample(msgspec.Struct, frozen=True):
    """One figure."""

    run: str  # when the run began
    round: int
    peer: str
    row: str
    value: float


class Part(msgspec.Struct, frozen=True):
    """One run of the command: some rows, five rounds of each."""

    run: str
    commit: str
    command: str
    failures: list[str] = []
    others: list[float] = []  # which part of the machine others used before each visit


class Machine(msgspec.Struct, frozen=True):
    """What it was measured on."""

    cores: int
    processor: str
    kernel: str
    system: str
    python: str


class Results(msgspec.Struct):
    """All that was measured on one day, in one part or several."""

    run: str  # when the newest part began
    machine: Machine
    versions: dict[str, str]
    missing: dict[str, str]
    parts: list[Part]
    samples: list[Sample] = []

    @property
    def failures(self) -> list[str]:
        """What is missing, and why."""
        return [each for part in self.parts for each in part.failures]


class Figure(msgspec.Struct, frozen=True):
    """A median of some, and how far they spread."""

    median: float
    low: float
    high: float
    count: int


def new(peers: Sequence[Peer], missing: Mapping[str, str], options: Sequence[str] = ()) -> Results:
    """For a run that begins now, with these options of the command."""
    given = f" PEERS_OPTIONS='{' '.join(options)}'" if options else ""
    run = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    commit = _git("rev-parse", "--short=7", "HEAD") or "unknown"
    return Results(
        run=run,
        parts=[Part(run, commit, f"make bench-peers{given}")],
        machine=_machine(),
        versions={peer.name: peer.version() for peer in peers},
        missing=dict(missing),
    )


def used_by_others() -> float:
    """Which part of the processor time is used while nothing of the bench runs."""

    def looked() -> tuple[int, int]:
        user, nice, system, idle, waiting, *more = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
        return idle + waiting, user + nice + system + idle + waiting + sum(more[:3])

    idle, whole = looked()
    time.sleep(CALM_S)
    idle_after, whole_after = looked()
    return 1 - (idle_after - idle) / max(1, whole_after - whole)


def wait_until_calm(most: float) -> float:
    """Until others use at most this part of the machine, some looks in a row; which part they used then."""
    calm: list[float] = []
    until = time.monotonic() + CALM_WAIT_S
    while len(calm) < CALM_LOOKS and time.monotonic() < until:
        used = used_by_others()
        calm = [*calm, used] if used <= most else []
    return max(calm) if len(calm) == CALM_LOOKS else used_by_others()


def _git(*words: str) -> str:
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _machine() -> Machine:
    processor = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    return Machine(
        cores=os.cpu_count() or 0,
        processor=processor,
        kernel=platform.release().partition("-")[0],
        system=platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        python=platform.python_version(),
    )


def read(path: Path) -> Results:
    """What is in the file."""
    return msgspec.json.decode(path.read_bytes(), type=Results)


def write(path: Path, found: Results) -> None:
    """Keep it, one figure on a line."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


def merged(path: Path, found: Results) -> Results:
    """With what is in the file, if that is of the same day. Rows that were measured again at another commit go."""
    if not path.exists():
        return found
    before = read(path)
    if before.run[:10] != found.run[:10]:
        return found
    again = {sample.row for sample in found.samples}
    same = {part.run for part in before.parts if part.commit == found.parts[0].commit}
    samples = [each for each in before.samples if each.row not in again or each.run in same]
    kept = {sample.run for sample in samples}
    versions = {**before.versions, **found.versions}
    missing = {name: why for name, why in {**before.missing, **found.missing}.items() if name not in versions}
    parts = [*(part for part in before.parts if part.run in kept), *found.parts]
    return Results(found.run, found.machine, versions, missing, parts, [*samples, *found.samples])


def commits(found: Results) -> list[str]:
    """Those that were measured, each once."""
    return [*dict.fromkeys(part.commit for part in found.parts)]


def figure(found: Results, row: str, peer: str) -> Figure | None:
    """All rounds of one row at one peer."""
    return _of([each.value for each in found.samples if (each.row, each.peer) == (row, peer)])


def ratio(found: Results, row: str, peer: str, to: str) -> Figure | None:
    """This peer's divided by ``to``'s, round by round."""
    values = {(each.run, each.round, each.peer): each.value for each in found.samples if each.row == row}
    return _of(
        [value / under for (run, number, who), value in values.items()
         if who == peer and (under := values.get((run, number, to)))]
    )  # fmt: skip


def _of(values: Sequence[float]) -> Figure | None:
    return Figure(statistics.median(values), min(values), max(values), len(values)) if values else None


def text(found: Results) -> str:
    """The table for a terminal: median, spread, and how ours stands to it."""
    lines = [f"{'ROW':<48} {'PEER':<10} {'MEDIAN':>10} {'SPREAD':>19} {'UNIT':<6} {'X OURS':>8} {'SPREAD':>15}"]
    for row in ROWS.values():
        for peer in found.versions:
            here = figure(found, row.name, peer)
            if here is not None:
                by = ratio(found, row.name, peer, "ours")
                ours = f"{by.median:>8.3g} {f'{by.low:.3g} to {by.high:.3g}':>15}" if by is not None else ""
                spread = f"{here.low:,.4g} to {here.high:,.4g}"
                lines.append(f"{row.title:<48} {peer:<10} {here.median:>10,.4g} {spread:>19} {row.unit:<6} {ours}")
    return "\n".join([*lines, *found.failures])
