"""A soak: for hours one nemesis after the other against one domain and its programs, and nothing may grow.

    python -m tests.faults soak --hours 24

Three daemons as in production. On each node a sender and a receiver of a group in memory, the same of a durable group,
and a program that comes and goes (``soak_visitor.py``), all by the public library. Nemeses take turns from a bag that
is shuffled when it is empty; those that end daemons come in the last part only, so that daemons get old before. After
each everything heals and must be at rest in bounded time: all daemons up in the list of the name server, every receiver
gets messages. Then what the programs wrote since is judged and forgotten (``stream_log.py``), so it is all the same
how long a soak is, and the use of every process is looked at (``ceilings.py``).

Left out are enemies that need a state directory of their own kind (the state is on disks that can lose their power, so
none that is full, nor damage, which moves directories), the programs of the other harness (kill-client, pause-client),
or more nodes.
"""

from __future__ import annotations

import datetime
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs

from groupsvc import clock
from groupsvc.testing.local_node import environment
from groupsvc.testing.sim.ledger import commit

from .ceilings import Ceilings
from .cluster import Cluster, Outfit
from .endings import Endings
from .kills import Production
from .nemeses import NEMESES
from .nemesis import Nemesis, Scene, plan_of
from .stream_log import STAY
from .streams import Streams
from .wires import Missing, Wires

NAMES = ("n1", "n2", "n3")
SEGMENT_S = 30.0
"""How long one nemesis has its turn."""

REST_S = 8.0
"""After all is at rest, before it is looked at: buffers empty, and the next nemesis meets a domain that works."""

CONVERGES_S = 90.0
ENDING_FROM = 0.6
"""Of the whole time: from then on daemons are killed, too."""

LEFT_OUT = frozenset(
    {"none", "kill-client", "pause-client", "disk-full", "bit-flip", "truncate", "power-loss-one", "majorities-ring"}
)
ENDS = frozenset({"kill", "kill-all", "clock-jump", "memory-limit", "power-loss-all", "fsync-eio"})
"""Those by whom daemons end."""

DURABLE = {"durable": True}


class NoClients:
    """Of the other harness there are none here."""

    names: tuple[str, ...] = ()

    def at(self, node: str) -> list[str]:
        """None."""
        return []

    def replace_the_dead(self) -> None:
        """There are none."""

    def go_on(self) -> None:
        """There are none."""


@attrs.define(kw_only=True)
class Soak:
    """So many hours."""

    hours: float = 1.0
    seed: int = 1
    problems: list[str] = attrs.field(factory=list)
    turns: dict[str, int] = attrs.field(factory=dict)  # by nemesis
    strikes: int = 0
    rests: list[float] = attrs.field(factory=list)  # seconds until all was at rest
    ceilings: Ceilings = attrs.field(factory=Ceilings)
    _bag: list[str] = attrs.field(factory=list)
    _said: float = 0.0

    def go(self) -> dict[str, Any]:
        """Run it; the line of the ledger."""
        rng = random.Random(self.seed)
        with ExitStack() as stack:
            directory = Path(tempfile.mkdtemp(prefix="gsf-"))
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            wires = stack.enter_context(Wires(NAMES))
            scene = Scene(NAMES, NAMES, directory, wires, {name: Outfit() for name in NAMES})
            nemeses = self._prepared(scene, stack)
            cluster = stack.enter_context(Production(wires, directory, outfits=scene.outfits, journal_level=""))
            scene.cluster, scene.clients = cluster, NoClients()  # type: ignore[assignment]
            programs = Programs(cluster, directory)
            stack.callback(programs.close)
            programs.start()
            began = clock.now()
            ends = began + self.hours * 3600.0
            self._rest(cluster, programs, "at the beginning")
            endings = Endings(cluster)
            while clock.now() + SEGMENT_S / 2 < ends:
                self._turn(scene, programs, nemeses, endings, rng, began, ends)
            self._rest(cluster, programs, "at the end")
            self.problems += [*programs.end(), *self.ceilings.problems]
            return self._line(programs, clock.now() - began)

    def _prepared(self, scene: Scene, stack: ExitStack) -> dict[str, Nemesis]:
        found = {}
        for name, kind in NEMESES.items():
            nemesis = kind()
            if name in LEFT_OUT:
                continue
            try:
                nemesis.look()
            except Missing as missing:
                print(f"{name} is left out: {missing}", flush=True)
                continue
            stack.callback(nemesis.close, scene)
            nemesis.prepare(scene)
            found[name] = nemesis
        return found

    # --- One turn ---

    def _turn(
        self, scene: Scene, programs: Programs, nemeses: dict[str, Nemesis], endings: Endings, rng: random.Random,
        began: float, ends: float,
    ) -> None:  # fmt: skip
        name = self._next(nemeses, rng, is_late=clock.now() - began > ENDING_FROM * (ends - began))
        nemesis, number = nemeses[name], sum(self.turns.values())
        self.turns[name] = self.turns.get(name, 0) + 1
        over = min(clock.now() + SEGMENT_S, ends)
        for strike in plan_of(nemesis, self.seed * 100_000 + number, SEGMENT_S):
            self._sleep(min(strike.gap_s, over - clock.now()), programs, began)
            if clock.now() >= over:
                break
            self.problems += [f"{one} under {name}" for one in endings.look(nemesis)]
            done = nemesis.strike(scene, random.Random(strike.seed))
            if done is not None:
                self.strikes += 1
                nemesis.has_struck(done)
                self._sleep(min(strike.lasts_s, over - clock.now()), programs, began)
                nemesis.heal(scene)
        nemesis.heal(scene)
        for node in scene.names:
            if not scene.cluster.is_running(node):
                scene.cluster.restart(node, wait=False)
        self._rest(scene.cluster, programs, f"after {name}")
        self._sleep(REST_S, programs, began)
        programs.judge()
        self.ceilings.look(programs.pids() | {f"{node}-daemon": scene.cluster.pid(node) for node in scene.names})
        self.problems += nemesis.found()
        self.problems += [f"{one} under {name}" for one in endings.look(nemesis)]

    def _next(self, nemeses: dict[str, Nemesis], rng: random.Random, *, is_late: bool) -> str:
        while True:
            if not self._bag:
                self._bag = sorted(nemeses)
                rng.shuffle(self._bag)
            name = self._bag.pop()
            if is_late or name not in ENDS:
                return name

    def _rest(self, cluster: Cluster, programs: Programs, when: str) -> None:
        since = clock.now()
        for what, is_so in (
            ("not all daemons are up", lambda: cluster._are_up(cluster.names)),
            ("not every receiver gets messages", programs.flow()),
        ):
            if not _until(is_so, since + CONVERGES_S):
                self.problems.append(f"V7: {CONVERGES_S:.0f} s {when} {what}: {programs.how()}")
        self.rests.append(round(clock.now() - since, 2))

    def _sleep(self, seconds: float, programs: Programs, began: float) -> None:
        time.sleep(max(0.0, seconds))
        if clock.now() - self._said > 60.0:
            self._said = clock.now()
            daemons, others = self.ceilings.most("daemon"), self.ceilings.most("-")
            print(
                f"{(clock.now() - began) / 60:6.1f} min: {sum(self.turns.values())} turns, {self.strikes} strikes,"
                f" {programs.delivered} messages, {programs.visits} visits, {len(self.problems)} problems,"
                f" daemons up to {daemons['rss_mib']} MiB (+{daemons['rss_grown_mib']}), any {others['files']} files,"
                f" {others['threads']} threads",
                flush=True,
            )

    def _line(self, programs: Programs, seconds: float) -> dict[str, Any]:
        return {
            "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "commit": commit(),
            "kind": "soak", "hours": round(seconds / 3600, 3), "turns": dict(sorted(self.turns.items())),
            "strikes": self.strikes, "messages": programs.delivered, "visits": programs.visits,
            "converged_s": max(self.rests), "daemons": self.ceilings.most("-daemon"),
            "senders": self.ceilings.most("-send"), "receivers": self.ceilings.most("-receive"),
            "visitors": self.ceilings.most("-visitor"), "load": round(os.getloadavg()[0], 1),
            "verdict": "red" if self.problems else "green", "problems": self.problems[:10],
        }  # fmt: skip


class Programs:
    """All programs of a soak."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self._cluster, self._directory = cluster, directory / "visits"
        self._streams = {
            "memory": Streams(
                cluster, directory / "memory", "soak/memory", rate=200, attributes={"on_quorum_lost": "dissolve"}
            ),
            "durable": Streams(cluster, directory / "durable", "soak/durable", rate=40, attributes=DURABLE),
        }
        self._visitors: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """All."""
        self._directory.mkdir()
        for streams in self._streams.values():
            streams.start()
        for number, node in enumerate(self._cluster.names, start=1):
            told = {
                "address": self._cluster.address(node), "number": number, "group": "soak/durable",
                "directory": str(self._directory), "attributes": DURABLE,
            }  # fmt: skip
            with (self._directory / f"{node}.err").open("wb") as errors:
                self._visitors[f"{node}-visitor"] = subprocess.Popen(
                    [
                        *self._cluster.wires.inside(node), sys.executable, "-m", "tests.faults.soak_visitor",
                        json.dumps(told),
                    ],
                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, env=environment(),
                    cwd=self._cluster.root, start_new_session=True,
                )  # fmt: skip

    def pids(self) -> dict[str, int]:
        """Of all."""
        found = {name: visitor.pid for name, visitor in self._visitors.items()}
        for kind, streams in self._streams.items():
            found |= {f"{kind}-{name}": pid for name, pid in streams.pids().items()}
        return found

    @property
    def delivered(self) -> int:
        """Messages that were judged."""
        return sum(streams.order.delivered for streams in self._streams.values())

    @property
    def visits(self) -> int:
        """As far as visitors have said."""
        return sum(int(path.read_text() or 0) for path in self._directory.glob("*.visits"))

    def flow(self) -> Callable[[], bool]:
        """Whether all receivers have got something since this was called."""
        before = self._sizes()
        return lambda: all(size > before.get(who, 0) for who, size in self._sizes().items())

    def _sizes(self) -> dict[str, int]:
        """Of each receiver: bytes in all its stays."""
        found = {}
        for kind, streams in self._streams.items():
            for number in range(1, len(self._cluster.names) + 1):
                stays = streams.directory.glob(f"r{number}-*{STAY}")
                found[f"{kind}-r{number}"] = sum(_size(path) for path in stays) + streams.order.forgotten(f"r{number}")
        return found

    def how(self) -> str:
        """For people: why lives have ended lately."""
        return "; ".join(note for streams in self._streams.values() for note in streams.notes()[-3:])

    def judge(self) -> None:
        """What was written since."""
        for streams in self._streams.values():
            streams.order.judge()

    def end(self) -> list[str]:
        """All end; what is wrong."""
        problems = []
        for name, visitor in self._visitors.items():
            assert visitor.stdin is not None
            visitor.stdin.close()
            try:
                code = visitor.wait(timeout=CONVERGES_S)
            except subprocess.TimeoutExpired:
                code = -1
            words = (self._directory / f"{name.partition('-')[0]}.err").read_text(errors="replace").strip()
            if code or words:
                problems.append(f"{name} ended with {code}: {words[-1000:]}")
        for path in sorted(self._directory.glob("*.broken")):
            problems += path.read_text().splitlines()[:5]
        for streams in self._streams.values():
            problems += streams.end()
        return problems

    def close(self) -> None:
        """End what still runs."""
        for streams in self._streams.values():
            streams.close()
        for visitor in self._visitors.values():
            visitor.kill()
            visitor.wait()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # judged and forgotten at this moment
        return 0


def _until(is_so: Callable[[], bool], until: float) -> bool:
    while not is_so():
        if clock.now() > until:
            return False
        time.sleep(0.2)
    return True


def in_words(soak: Soak, line: dict[str, Any]) -> str:
    """For people."""
    rows = [
        f"  {kind}: up to {use['rss_mib']} MiB (+{use['rss_grown_mib']} since warm), {use['files']} files"
        f" (+{use['files_grown']}), {use['threads']} threads (+{use['threads_grown']}), {use['processes']} processes"
        for kind in ("daemons", "senders", "receivers", "visitors")
        for use in (line[kind],)
    ]
    total = (
        f"{line['verdict']}: {line['hours']} hours, {sum(line['turns'].values())} turns of {len(line['turns'])}"
        f" nemeses, {line['strikes']} strikes, {line['messages']} messages, {line['visits']} visits, at rest after"
        f" {line['converged_s']} s at most"
    )
    return "\n".join([*rows, total, *(f"    {problem}" for problem in soak.problems[:20])])
