"""One run: daemons and clients, a nemesis and a plan from a seed, the end of all harm, and what became of it.

    run = Run(nemesis="kill", workload="mix", seed=7, nodes=3, seconds=30)
    result = run.go()

When the time is over the nemesis heals, and the cluster must come to rest in a bounded time: every daemon is up in the
name server's list, every client has a session and no open call, those who are in a group see one another and nobody
else. Then each says one thing more, and hears it; barriers let everybody through once more; a group is formed. Whatever
of this does not come is a failure of the run (V7, B2, R4), like anything that a checker finds in its history.
"""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs

from groupsvc import clock
from groupsvc.errors import GroupServiceError, TimedOut
from groupsvc.testing.sim.checkers import LEASE_DEFAULT
from groupsvc.wire.history import HistoryEvent

from . import recording
from .clients import Clients, Dumb
from .cluster import Cluster, Outfit
from .endings import Endings
from .judging import Counts, Finding, counts, judge
from .locks import Contenders
from .nemeses import NEMESES
from .nemesis import Nemesis, Scene, plan_of
from .recording import Recording
from .traced_daemon import PLANT
from .wires import Wires
from .workloads import WORKLOADS

CONVERGES_S = 45.0
"""How long a cluster may take to come to rest on a busy machine: some leases, grace periods of sessions, elections."""

WARM_UP_S = 1.5
POLL_S = 0.1
REST_S = 0.7
"""At the end: what is on its way arrives."""


class NotAtRest(Exception):
    """It did not come in time; the text says what."""


@attrs.frozen(kw_only=True)
class Result:
    """What came out of a run."""

    run: Run
    findings: list[Finding]
    counts: Counts
    strikes: int
    bites: int | None  # how often its harm has reached a daemon, if the nemesis can tell
    took_s: float
    converged_s: float | None
    kept: Path | None  # the history, if it was kept

    @property
    def verdict(self) -> str:
        """In a word."""
        return "red" if self.findings else "green"


@attrs.define(kw_only=True)
class Run:
    """What is to be run."""

    nemesis: str = "kill"
    workload: str = "mix"
    seed: int = 1
    nodes: int = 3
    seconds: float = 25.0
    keep: bool = False  # the history, also of a good run
    plant: str = ""  # one of the simulator's bugs, in every daemon
    histories: Path = Path("histories")
    failures: list[str] = attrs.field(factory=list)
    strikes: int = 0
    _marks: dict[str, float] = attrs.field(factory=dict)
    _endings: Endings = attrs.field(init=False)

    @property
    def title(self) -> str:
        """Of files, and for people."""
        return f"{self.nemesis}-{self.workload}-{self.nodes}-{self.seed}"

    def look(self) -> Nemesis:
        """The nemesis; raises ``Missing`` where it cannot be."""
        nemesis = NEMESES[self.nemesis]()
        nemesis.look()
        self.nodes = max(self.nodes, nemesis.nodes_min)
        return nemesis

    def go(self) -> Result:
        """From beginning to end."""
        began, nemesis = time.monotonic(), self.look()
        with ExitStack() as stack:
            directory = Path(tempfile.mkdtemp(prefix="gsf-"))
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            names = tuple(f"n{number}" for number in range(1, self.nodes + 1))
            wires = stack.enter_context(Wires(names))
            voters = names[: 5 if self.nodes >= 5 else min(3, self.nodes)]
            scene = Scene(names, voters, directory, wires, {name: Outfit() for name in names})
            stack.callback(nemesis.close, scene)
            for outfit in scene.outfits.values() if self.plant else ():
                outfit.environment[PLANT] = self.plant
            nemesis.prepare(scene)
            history = self._with_daemons(scene, nemesis)
            findings = judge(history)
            kept = self._kept(history, scene) if findings or self.keep else None
        converged = self._marks.get("at_rest")
        return Result(
            run=self, findings=findings, counts=counts(history), strikes=self.strikes, kept=kept,
            bites=nemesis.bites(),
            took_s=round(time.monotonic() - began, 1),
            converged_s=None if converged is None else round(converged - self._marks["healed"], 2),
        )  # fmt: skip

    def _with_daemons(self, scene: Scene, nemesis: Nemesis) -> list[HistoryEvent]:
        with Cluster(scene.wires, scene.directory, outfits=scene.outfits) as cluster:
            scene.cluster, self._endings = cluster, Endings(cluster)
            clients = scene.clients = Clients(
                cluster, scene.directory / "clients", self.workload, self.seed, durable=nemesis.durable
            )
            contenders = self._contenders(scene)
            try:
                clients.start_all()
                self._work(scene, nemesis)
                self._come_to_rest(scene, nemesis)
                if contenders is not None:
                    since = time.monotonic()
                    _until(lambda: ", ".join(contenders.waiting(since)), CONVERGES_S, "the lock was not had by")
                    contenders.end()
                time.sleep(REST_S)
            except (NotAtRest, Dumb, TimedOut) as problem:
                self.failures.append(str(problem))
            finally:
                until = clock.now()
                clients.close()
                if contenders is not None:
                    self.failures += contenders.ended()
                    contenders.close()
            self.failures += [*clients_failures(scene), *nemesis.found()]
            self.failures += self._endings.look(nemesis)
        return self._history(scene, contenders, until)

    def _contenders(self, scene: Scene) -> Contenders | None:
        per_node = WORKLOADS[self.workload].contenders
        return Contenders(scene.cluster, scene.directory / "locks", per_node) if per_node else None

    # --- Harm ---

    def _work(self, scene: Scene, nemesis: Nemesis) -> None:
        self._wait_for_all(scene)
        self._marks["since"] = clock.now()
        time.sleep(WARM_UP_S)
        ends = clock.now() + self.seconds
        for strike in plan_of(nemesis, self.seed, self.seconds):
            if not _sleep_until(min(clock.now() + strike.gap_s, ends), ends):
                break
            rng = random.Random(strike.seed)
            self.failures += self._endings.look(nemesis)  # as long as the last strike is the last one
            done = nemesis.strike(scene, rng)
            if done is None:
                continue
            self.strikes += 1
            nemesis.has_struck(done)
            scene.cluster.note(nemesis.name, "", {"phase": "begin", **done}, who="sim")
            _sleep_until(min(clock.now() + strike.lasts_s, ends), ends)
            nemesis.heal(scene)
            scene.cluster.note(nemesis.name, "", {"phase": "end"}, who="sim")
        _sleep_until(ends, ends)
        self._marks["until"] = clock.now()

    def _wait_for_all(self, scene: Scene) -> None:
        """Until every client has a session, and somebody is in a group."""

        def problem() -> str:
            hows = scene.clients.ask(do="how")
            late = next((how["who"] for how in hows if how["state"] != "connected" or how["made"] < 2), "")
            if late:
                return f"{late} has not begun"
            return "" if any(how["parts"] for how in hows) else "nobody is in a group"

        _until(problem, CONVERGES_S, "at the beginning")

    # --- Rest ---

    def _come_to_rest(self, scene: Scene, nemesis: Nemesis) -> None:
        nemesis.heal(scene)
        scene.clients.go_on()
        scene.clients.replace_the_dead()
        self._marks["healed"] = clock.now()
        cluster, clients = scene.cluster, scene.clients
        for name in scene.names:
            if not cluster.is_running(name):
                cluster.restart(name, wait=False)
        cluster.wait_until_up(timeout=CONVERGES_S)
        clients.ask(do="quiet")
        _until(lambda: disagreement(clients.ask(do="how")), CONVERGES_S, "after everything was healed")
        before = {how["who"]: how["failed"] for how in clients.ask(do="how")}
        clients.ask(do="speak")
        _until(lambda: disagreement(clients.ask(do="how")), CONVERGES_S, "after the last messages")
        for how in clients.ask(do="how"):
            if how["failed"] != before[how["who"]]:
                raise NotAtRest(f"B2: {how['who']} could not speak, flush and catch up when all was well")
        self._last_rounds(clients)
        self._form_a_group(cluster)
        self._marks["at_rest"] = clock.now()

    def _last_rounds(self, clients: Clients) -> None:
        """At each barrier of each group: all reset it, and come once more; or as many as it takes."""
        habits = WORKLOADS[self.workload].habits
        numbers = itertools.count(1)
        for group in (f"apps-{number}" for number in range(habits.groups)):
            for barrier in (f"b{number}" for number in range(habits.barriers)):
                for resets in (True, False):
                    hows = clients.ask(do="how")
                    present = [part["me"] for how in hows for part in how["parts"] if part["name"] == group]
                    present = sorted(filter(None, present))
                    parties = max((how["barriers"][group][barrier] for how in hows), default=0)
                    if not present or len(present) < parties:
                        continue
                    clients.ask(do="last", last=[next(numbers), group, barrier, resets, present[: parties or None]])
                    _until(lambda: disagreement(clients.ask(do="how")), CONVERGES_S, "after the last rounds")

    def _form_a_group(self, cluster: Cluster) -> None:
        """A write of the directory goes through."""
        try:
            with cluster.connect(cluster.names[0], timeout=5.0) as session, session.join("the-last-one", timeout=15.0):
                pass
        except GroupServiceError as problem:
            raise NotAtRest(f"B2: no group can be formed when all is well: {problem}") from None

    # --- What is left ---

    def _history(self, scene: Scene, contenders: Contenders | None, until: float) -> list[HistoryEvent]:
        record = Recording()
        record.take_journals(scene.cluster.journals)
        record.take_clients(scene.directory / "clients", scene.clients.lines)
        record.take(scene.cluster.lines())
        record.take(() if contenders is None else contenders.lines())
        about: dict[str, Any] = {
            "nemesis": self.nemesis, "workload": self.workload, "seed": self.seed, "nodes": self.nodes,
            "seconds": self.seconds, "plant": self.plant, "voters": list(scene.voters), "lease": LEASE_DEFAULT,
            "converged": "at_rest" in self._marks and not self.failures, "failures": self.failures, **self._marks,
        }  # fmt: skip
        return record.history(about, until)

    def _kept(self, history: list[HistoryEvent], scene: Scene) -> Path:
        path = self.histories / f"{self.title}-{int(time.time())}.ndjson"
        recording.write(history, path)
        logs = path.with_suffix(".log")
        logs.write_text("\n".join(f"=== {name}\n{scene.cluster.logs(name)}" for name in scene.names))
        return path


def clients_failures(scene: Scene) -> list[str]:
    """What clients wrote to their standard error: they have nothing to say there."""
    found = []
    for path in sorted((scene.directory / "clients").glob("*.err")):
        words = path.read_text(errors="replace").strip()
        if words:
            found.append(f"{path.stem} broke: {words[-1500:]}")
    return found


def disagreement(hows: list[dict[str, Any]]) -> str:
    """What is not at rest, as a sentence; "" if all is well."""
    present: dict[int, list[str]] = {}
    for how in hows:
        if how["state"] != "connected" or not how["may_act"]:
            return f"{how['who']} is {how['state']}"
        if how["calls"]:
            return f"{how['who']} has {how['calls']} calls open: {', '.join(how['open'])}"
        for part in how["parts"]:
            if part["me"]:
                present.setdefault(part["group"], []).append(part["me"])
            if not part["is_caught_up"] or part["in_ballot"]:
                return f"{how['who']} still {'votes' if part['in_ballot'] else 'catches up'} in {part['name']}"
    for how in hows:
        for part in how["parts"]:
            if part["listed"] != sorted(present.get(part["group"], [])):
                listed, there = part["listed"], sorted(present.get(part["group"], []))
                return f"{how['who']} sees {listed} in {part['name']}, where {there} are"
    return ""


def _until(problem: Callable[[], str], within: float, when: str) -> None:
    """Until there is no problem; twice in a row, as answers of several processes are not of one moment."""
    until, calm = clock.now() + within, 0
    while True:
        found = problem()
        calm = 0 if found else calm + 1
        if calm == 2:
            return
        if found and clock.now() > until:
            raise NotAtRest(f"V7: {within:.0f} s {when} {found}")
        time.sleep(POLL_S)


def _sleep_until(t: float, ends: float) -> bool:
    """Whether there is time left."""
    time.sleep(max(0.0, t - clock.now()))
    return clock.now() < ends
