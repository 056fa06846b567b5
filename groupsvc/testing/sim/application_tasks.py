"""Simulated tasks: so many of them work in rounds, each has a rank, and who dies is replaced.

Ranks 0, 1 and 2 meet at a barrier that waits for the dead (``on_failure="wait"``). Somebody, as Spark does, starts an
*attempt* of each on one of a few workers. When it is dead another one is started, sooner or later, and somewhere else;
sometimes while the first still lives, because nobody hears of it, or by chance: then there are two. A worker that stood
still goes on with an attempt that was replaced long ago.

An attempt does what ``groupsvc/spark/runs.py`` does in a run that has begun. It joins, gives way to a newer attempt of
its rank, or expels the older ones; asks how many rounds are over, and what came out of the last of them; then it comes
to one round after the other. Whatever fails is the end of it. What each line says beside: rank, attempt, and up to
which round it knows (``after``). Only when a round breaks do these do something else: all of them reset the barrier,
where those of Spark begin another run.

Chance comes from a source of its own, and the workers do nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

from groupsvc.errors import OutcomeUnknown
from groupsvc.sansio import asking
from groupsvc.sansio.asking import Start
from groupsvc.sansio.event_buffer import EventBuffer
from groupsvc.sansio.membership_machine import Membership
from groupsvc.sansio.rounds import BarrierTerms
from groupsvc.wire.client_messages import RoundIs

from .application import Application, Part, outcome_of

if TYPE_CHECKING:
    from .applications import Applications

GROUP = "apps-tasks"
"""Its name begins like those of the other groups of applications: who hunts them hunts this one, too."""

SPARE = 2
"""Workers beside one for each rank."""

THINK_S = 0.3
HURRY_S = 0.05
"""Mean pause between two steps of an attempt; and in the end, when all is well."""

JOIN_S = 3.0
EXPEL_S = 5.0
PROBE_S = 5.0
GOODBYE_S = 2.0
"""How long an attempt waits for each of its steps."""

ROUND_S = (2.0, 6.0, 9.0, 9.0)
"""And for the end of a round: often long enough for a replacement."""

BEGINS_AFTER = (0, 0, 0, 0, 1, 10)
"""Pauses before it joins; after the longest, one that was started later may be there."""

TWICE = 0.03
"""How often an idle worker is given an attempt of a rank that has one."""


class Stage:
    """All tasks of a world, their workers, and who starts them."""

    def __init__(self, applications: Applications) -> None:
        self.all = applications
        self.ranks = applications.habits.ranks
        self.terms = BarrierTerms("round", self.ranks, "wait")
        world = applications.world
        self.rng = random.Random(f"{world.seed}/tasks")
        self.zeal = self.rng.choice([0.1, 0.5, 1.0])  # how soon somebody is found who takes the place of a dead one
        self.is_last = False  # whether these are the rounds at the end of a run: nobody comes of itself, or dies
        self.is_to_go: Attempt | None = None  # then: whom another attempt is to replace, however often it is tried
        self.attempts: dict[str, Attempt] = {}  # by worker, the newest of each
        self._started = 0
        self._knew: dict[int, int] = {}  # by rank: up to which round the newest that has come knew
        self.workers = [
            Application(applications, f"task-{number}", world.nodes[self.rng.choice(world.names)])
            for number in range(1, self.ranks + SPARE + 1)
            if self.ranks
        ]

    # --- Workers ---

    def begin(self, app: Application) -> None:
        """Its process runs, and does what it is given."""
        self._think(app)

    def _think(self, app: Application) -> None:
        pause = self.rng.expovariate(1.0) * (HURRY_S if self.is_last else THINK_S)
        app.world.push(app.world.t + pause, self._next, app, app.life)

    def _next(self, app: Application, life: int) -> None:
        if app.life != life:
            return
        self._think(app)
        if app.is_stopped:
            return
        if app.machine is None:
            app.open_session()
            return
        if not app.may_act or (self.all.quiet and not self.is_last):
            return
        attempt = self.attempts.get(app.name)
        if attempt is not None and attempt.is_over:
            self._look_why(attempt)
            del self.attempts[app.name]
        elif attempt is None:
            self._start_one(app)
        elif not (self.is_last and attempt.is_seated):
            attempt.go_on()
        app.turn()

    # --- Who starts them ---

    def _start_one(self, app: Application) -> None:
        rng = self.rng
        living = [one for one in self.attempts.values() if not one.is_over and one is not self.is_to_go]
        heard_of = {one.rank for one in living if one.app.may_act or self.is_last}
        vacant = [rank for rank in range(self.ranks) if rank not in heard_of]
        if vacant and (self.is_last or rng.random() < self.zeal):
            self._start(app, rng.choice(vacant))
        elif not vacant and not self.is_last and rng.random() < TWICE:
            self._start(app, rng.randrange(self.ranks))

    def _start(self, app: Application, rank: int) -> None:
        self._started += 1
        self.attempts[app.name] = attempt = Attempt(self, app, rank, self._started)
        if any(one.rank == rank and one is not attempt and not one.is_over for one in self.attempts.values()):
            self.all.mark("task-twice")

    def _look_why(self, attempt: Attempt) -> None:
        is_out = attempt.part is not None and not attempt.part.is_open
        if is_out and any(one.rank == attempt.rank and one.number > attempt.number for one in self.attempts.values()):
            self.all.mark("task-fenced")

    def entered(self, attempt: Attempt) -> None:
        """It knows how far the others are."""
        if attempt.ended:
            self.all.mark("task-comes-back")
        if attempt.ended > self._knew.get(attempt.rank, 0) > 0:
            self.all.mark("task-counted-before-it-died")
        self.knows(attempt)

    def knows(self, attempt: Attempt) -> None:
        """It has been told of the end of a round."""
        self._knew[attempt.rank] = attempt.ended

    # --- The end of a run ---

    @property
    def seated(self) -> list[Attempt]:
        """Those who have come in, and have nothing to do but to wait for the next round; by rank."""
        found = [one for one in self.attempts.values() if not one.is_over and one.is_seated]
        return sorted(found, key=lambda one: one.rank)

    @property
    def is_complete(self) -> bool:
        """Whether there is one attempt of each rank, and no other."""
        living = [one for one in self.attempts.values() if not one.is_over]
        if self.is_to_go in living or len(living) != self.ranks:
            return False
        return [one.rank for one in self.seated] == list(range(self.ranks))


class Attempt:
    """One attempt of the task with this rank, on one worker; it ends with the worker's session."""

    def __init__(self, stage: Stage, app: Application, rank: int, number: int) -> None:
        self.stage, self.app, self.rank, self.number = stage, app, rank, number
        self.part: Part | None = None
        self.ended = 0  # the last round of which it knows
        self.is_broken = False
        self.is_in = self.is_seated = False
        self._life, self._session = app.life, app.session
        self._steps = self._work()
        self._waits = False  # for the end of a call
        self._verdict = ""
        self._has_ended = False

    @property
    def is_over(self) -> bool:
        """Whether nothing will come of it any more: it has ended, its process or session has, or it is out."""
        app, part = self.app, self.part
        is_another = (app.life, app.session) != (self._life, self._session) or app.machine is None
        return self._has_ended or is_another or (part is not None and not part.is_open)

    def go_on(self) -> None:
        """Its next step, if it does not wait for the end of the one before."""
        if self._waits:
            return
        if next(self._steps, self) is self:
            self._has_ended = True

    # --- What it does, step by step ---

    def _work(self) -> Iterator[None]:
        for _ in range(self.stage.rng.choice(BEGINS_AFTER)):
            yield
        yield from self._join()
        if self.part is None:
            return
        if (yield from self._replaces_others(self.part)) and (yield from self._looks_how_far(self.part)):
            yield from self._reads(self.part)
            self.stage.entered(self)
            self.is_in = True
            while self._verdict:
                self.is_seated = True
                yield
                self.is_seated = False
                yield from self._comes(self.part)
        yield from self._says_goodbye(self.part)

    def _join(self) -> Iterator[None]:
        app, applications = self.app, self.stage.all
        assert app.machine is not None
        app.values += 1
        name, data, buffer = f"{app.name}#{app.values}", f"{self.rank}/{self.number}", EventBuffer()

        def ends(verdict: str, result: Any) -> dict[str, Any]:
            self._done(verdict)
            if isinstance(result, OutcomeUnknown):
                applications.came_too_late.add(name)
            if verdict != "ok":
                return {}
            assert isinstance(result, Membership)
            self.part = app.enter(result, "itself", buffer)
            return app.began(self.part)

        start = asking.join(
            app.machine, GROUP, name=name, attributes=None, create=None, data=data.encode(), on_proposal=None,
            events=True,
        )  # fmt: skip
        args = {"name": GROUP, "as": name, "data": data, "votes": "itself", "create": None}
        yield from self._call("join_group", start, {**args, "rank": self.rank, "attempt": self.number}, JOIN_S, ends)
        while self.part is not None and not self.part.is_ready:
            yield

    def _replaces_others(self, part: Part) -> Generator[None, None, bool]:
        """Put out older attempts of this rank; False if there is a newer one, or they do not go."""
        app, me = self.app, part.membership.me
        others: dict[str, int] = {}
        for one in part.membership.view.providers:
            rank, number = one.data.decode().split("/")
            if int(rank) == self.rank and one != me:
                others[one.id] = int(number)
        if any(number > self.number for number in others.values()):
            self.stage.all.mark("task-gives-way")
            return False
        for id in others:
            if not _is_in(part, id):
                continue
            assert app.machine is not None
            how = {"phases": 1, "time_limit": None, "on_busy": "queue"}
            start = asking.expel(app.machine, part.membership, (id,), f"replaced by attempt {self.number}", **how)
            yield from self._call("expel", start, {"m": part.m, "targets": [id]}, EXPEL_S, outcome_of)
            until = app.clock() + EXPEL_S
            while _is_in(part, id):
                if app.clock() > until:
                    return False
                yield
            self.stage.all.mark("task-replaced")
        return True

    def _looks_how_far(self, part: Part) -> Generator[None, None, bool]:
        """A reset of what is not broken answers at once; of what is, when all have reset it."""
        yield from self._at_barrier(part, PROBE_S, resets=True)
        return bool(self._verdict)

    def _reads(self, part: Part) -> Iterator[None]:
        """What came out of the rounds since some number."""
        attendance = self.stage.all.attendance
        since = max(0, self.ended - self.stage.rng.choice([0, 1, 3, 6]))
        for number in range(since + 1, self.ended + 1):
            self._waits = True
            attendance.ask(self.app, part, self.stage.terms.name, number, lambda verdict, answer: self._done("read"))
            yield

    def _comes(self, part: Part) -> Iterator[None]:
        yield from self._at_barrier(part, self.stage.rng.choice(ROUND_S), resets=self.is_broken)

    def _at_barrier(self, part: Part, timeout: float, *, resets: bool) -> Iterator[None]:
        self._waits = True
        self.come(part, timeout, resets=resets)
        yield

    def come(self, part: Part, timeout: float, *, resets: bool = False, last: int = 0, ends: str = "") -> None:
        """Come to the next round, or reset what has broken; ``last`` and ``ends``: as for any other party."""
        stage = self.stage
        stage.all.attendance.come(
            self.app, part, stage.terms, timeout, resets=resets, last=last, ends=ends, then=self._told,
            says={"rank": self.rank, "attempt": self.number, "after": self.ended},
        )  # fmt: skip

    def _told(self, verdict: str, answer: RoundIs | None) -> None:
        """How a round ended; if nothing is known of that, it is the end of this attempt, too."""
        self._done("" if answer is None else verdict)
        if answer is not None:
            self.ended, self.is_broken = answer.round.number, answer.round.end == "broken"
            if self.is_in:
                self.stage.knows(self)

    def _says_goodbye(self, part: Part) -> Iterator[None]:
        app = self.app
        if app.machine is None or not part.is_open:
            return
        start = asking.goodbye(app.machine, part.membership)
        yield from self._call("say_goodbye", start, {"m": part.m}, GOODBYE_S, lambda verdict, result: {})

    # --- Calls ---

    def _call(self, op: str, start: Start, args: dict[str, Any], timeout: float, ends: Any) -> Iterator[None]:
        def ended(verdict: str, result: Any) -> dict[str, Any]:
            self._done(verdict)
            found: dict[str, Any] = ends(verdict, result)
            return found

        self._waits = True
        self.app.call(op, start, args, timeout, ended, group=0 if self.part is None else self.part.group)
        yield

    def _done(self, verdict: str) -> None:
        self._waits, self._verdict = False, verdict


def _is_in(part: Part, id: str) -> bool:
    return any(one.id == id for one in part.membership.view.providers)
