"""How the tasks of a stage find each other, and begin together: lobby and run.

Eight partitions want to work in steps. Each joins the *lobby*, a group named by application and barrier. Its
state value names the *run* they are in: a second group, where the rounds are. Whoever finds no run names one after
itself, by compare-and-set, and all others find that.

A run begins when all eight are there: they wait for each other at its barrier "start", where a task that dies is
simply missing until it is replaced. From then on it depends on what was asked for:

- *break*: the rounds are a barrier of all who are in the run. Partition 3 dies, and whichever way it is seen (the round
  that is open breaks; the next one is released without it) all others fail, too. Spark runs them again. Attempt 3' then
  finds a run that has begun already: that one is lost for it. It names another one, where the eight meet again. So what
  an old attempt still says never gets to the new ones.
- *continue*: the same barrier, and who is missing is missing. 3' comes back into the run that is going on.
- *wait*: a barrier for eight. When 3 has died seven wait for 3', which comes into the run, knows by its rounds how far
  they are, and reads what came out of them: the group keeps them.

*Fencing.* Whoever joins a run looks whether an older attempt of its partition is there, and expels it before it does
anything else; whoever finds a newer one gives up. So there is one of each partition: a round for eight takes eight
different ones. And from the expulsion on no round ends without 3', so the number of rounds that it reads is final.

*Whether a run has begun* is asked in the run itself, after the expulsion: then "start" cannot end without us, and what
is read is what stays. That the lobby still names this run is asked after joining it, so that nobody waits in a run
which the others have left for another one.

*Jobs.* A job that was cancelled has tasks that live for seconds, and may all be in their round, ready to commit what
nobody wants any more. So a run is that of one stage, and the next job under the same name, which is another stage, does
not come into it: its first task puts everybody out of that run, and then names one of its own. Which job is the later
one the attempts say: Spark starts none for a job that is over. So whoever finds a newer attempt of another stage gives
up. A stage that Spark runs again has the same number, and newer attempts than whatever ran in between.

Rejected: the stage as a part of the name. Two jobs of one name could then run at the same time; but the tasks of the
cancelled one would end their round beside those of the next, and nothing would ever fence them.
"""

from __future__ import annotations

import contextlib
import re
from typing import Literal, cast

import attrs

from .. import clock
from ..barriers import Barrier, Released
from ..errors import (
    BarrierBroken,
    Failed,
    GroupServiceError,
    NotAMember,
    OutcomeUnknown,
    StaleVersion,
    TimedOut,
    UsageError,
)
from ..groups import Group
from ..sansio import asking, rounds
from ..sansio.membership_machine import Membership
from ..sansio.rounds import BarrierTerms
from ..session import Session
from .errors import Fenced, NotStarted
from .members import Member, encoded, members_of, ranges, with_header

OnFailure = Literal["break", "continue", "wait"]

NAME_CHARS_MAX = 80
"""Of a barrier: application and token of the run have room beside it in the name of a group."""

TRIES_MAX = 100
"""Each failed try means that another task got further; so many only if something is very wrong."""

PROBE_S = 5.0
"""To be told how many rounds are over takes one question to the daemon of this node."""

ABANDON_S = 5.0
"""To say that a run is over is for the next ones; who fails should not be kept long."""

_name = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")


@attrs.frozen
class Scope:
    """Who synchronises with whom: the tasks of one application that give the same name."""

    application: str
    name: str

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not _name.fullmatch(self.name) or len(self.name) > NAME_CHARS_MAX:
            text = (
                f"{self.name!r:.100} cannot name a barrier of tasks: 1 to {NAME_CHARS_MAX} letters, digits, and . _ / -"
            )
            raise UsageError(text)

    @property
    def lobby(self) -> str:
        """The name of the group where all attempts are."""
        return f"_spark/lobby/{self.application}/{self.name}"

    def run(self, token: str) -> str:
        """The name of the group where the rounds are."""
        return f"_spark/run/{self.application}/{token}/{self.name}"

    def __str__(self) -> str:
        return f"barrier {self.name!r}"


@attrs.frozen
class Terms:
    """What all tasks say alike about their barrier; ``parties`` None: as many as are there."""

    parties: int | None
    on_failure: OnFailure

    def __attrs_post_init__(self) -> None:
        if self.on_failure not in ("break", "continue", "wait"):
            raise UsageError(f"on_failure is {self.on_failure!r}; it must be 'break', 'continue' or 'wait'")
        if self.parties is None and self.on_failure == "wait":
            raise UsageError("on_failure='wait' needs parties=, to know for how many to wait")
        number = self.parties
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise UsageError(f"parties is {number!r}; it must be the number of tasks, or None")


@attrs.define
class Run:
    """One task's part in a run that has begun: the group of the rounds, and how many were over when it came."""

    lobby: Group
    group: Group
    barrier: Barrier
    ended: int
    token: str

    def abandon(self) -> None:
        """It is broken: whoever comes from now on begins another one. Who says so first says it for all."""
        view = self.lobby.view
        if view.state == self.token.encode():
            with contextlib.suppress(Failed, OutcomeUnknown):
                self.lobby.propose_state(b"", if_version=view.state_version, timeout=ABANDON_S)

    def past(self, number: int, timeout: float) -> Released:
        """How a round ended that is over; ``Failed`` if the group does not keep it."""
        pump, membership = self.group._pump, self.group._membership
        return cast(Released, pump.finish(rounds.past(pump.machine, membership, self.barrier.name, number), timeout))


def enter(session: Session, scope: Scope, me: Member, terms: Terms, start_timeout: float) -> Run:
    """Be in a run with all others; ``NotStarted`` if they are not there in time, ``Fenced`` by a newer attempt."""
    entering = _Entering(session, scope, me, terms, start_timeout)
    for _ in range(TRIES_MAX):
        try:
            run = entering.try_once()
        except NotAMember:
            raise fenced(scope, me, None) from None
        if run is not None:
            return run
    raise NotStarted(f"{scope}: {me} found {TRIES_MAX} runs that were over again", missing=(), group=scope.lobby)


class _Entering:
    """One task on its way into a run."""

    def __init__(self, session: Session, scope: Scope, me: Member, terms: Terms, start_timeout: float) -> None:
        self._session, self._scope, self._me, self._terms = session, scope, me, terms
        self._start_timeout = start_timeout
        self._until = clock.now() + start_timeout
        self._lobby = self._join(scope.lobby)

    @property
    def _left(self) -> float:
        return max(0.001, self._until - clock.now())

    def _join(self, group: str) -> Group:
        pump = self._session._pump
        start = asking.join(
            pump.machine, group, name=str(self._me), attributes=None, create=None, data=encoded(self._me),
            on_proposal=None, events=False, may_be_reserved=True,
        )  # fmt: skip
        return Group(pump, cast(Membership, pump.finish(start, self._left)), self._session._default_timeout)

    def try_once(self) -> Run | None:
        """The run that the lobby names, if it is one to stay in; None if there will be another one."""
        token = self._named()
        group = self._join(self._scope.run(token))
        self._fence(group)
        self._lobby.sync(timeout=self._left)
        if self._lobby.view.state != token.encode():
            group.goodbye()  # meanwhile the others have named another one
            return None
        run = Run(self._lobby, group, _rounds_of(group, self._terms), 0, token)
        if self._may_stay(run):
            return run
        run.abandon()
        group.goodbye()
        return None

    def _named(self) -> str:
        """The run that all are in, or are to be in."""
        lobby, me = self._lobby, self._me
        while True:
            view = lobby.view
            if view.state and _stage_of(view.state) == me.stage:
                return view.state.decode()
            self._give_up_to_a_later_job()
            if view.state:
                self._end(view.state.decode())
            token = f"{me.stage}.{me.attempt}.{view.state_version}"  # no attempt says the same twice
            try:
                lobby.propose_state(token.encode(), if_version=view.state_version, timeout=self._left).require()
                return token
            except StaleVersion:
                lobby.wait_for(lambda seen=view: lobby.view.state_version != seen.state_version, self._left)  # type: ignore[misc]

    def _give_up_to_a_later_job(self) -> None:
        others = [one for one in members_of(self._lobby.providers).values() if one.stage != self._me.stage]
        newest = max(others, key=lambda one: one.attempt, default=None)
        if newest is not None and newest.attempt > self._me.attempt:
            raise fenced(self._scope, self._me, newest)

    def _end(self, token: str) -> None:
        """Put everybody out of the run of an earlier job, before another is named; the others of mine do the same."""
        run = self._join(self._scope.run(token))
        for id, one in members_of(run.providers).items():
            if one.stage != self._me.stage:
                self._put_out(run, id)
        run.goodbye()

    def _put_out(self, run: Group, id: str) -> bool:
        with contextlib.suppress(NotAMember):
            run.expel(id, reason=f"replaced by task attempt {self._me.attempt}", phases=1, timeout=self._left)
        return run.wait_for(lambda: id not in members_of(run.providers), self._left)

    def _fence(self, group: Group) -> None:
        """Put out older attempts of my partition; or give up, if there is a newer one."""
        me, scope = self._me, self._scope
        others = {id: one for id, one in members_of(group.providers).items() if one.rank == me.rank}
        others.pop(group.me.id, None)
        newer = [one for one in others.values() if one.attempt > me.attempt]
        if newer:
            raise fenced(scope, me, newer[0])
        if any(one.attempt == me.attempt for one in others.values()):
            text = f"{scope}: {me} is there already; every task has a rank of its own, and uses a name once"
            raise UsageError(text, group=group.name)
        for id, one in others.items():
            if not self._put_out(group, id):
                raise NotStarted(f"{scope}: {me} could not replace {one}", missing=(me.rank,), group=group.name)

    def _may_stay(self, run: Run) -> bool:
        """Begin the run together with the others, or come into one that has begun, if that is wanted."""
        parties = self._terms.parties
        try:
            if parties is not None:
                start = run.group.barrier("start", parties=parties, on_failure="continue")
                if _rounds_ended(start) == 0:
                    self._start(run, start, parties)
                    return True
                if self._terms.on_failure == "break":
                    return False
            run.ended = _rounds_ended(run.barrier)
            return True
        except (BarrierBroken, TimedOut):  # whoever broke it has not got round to say so in the lobby
            return False

    def _start(self, run: Run, start: Barrier, parties: int) -> None:
        try:
            start.wait(with_header(self._me.rank, 0, b""), timeout=self._left)
        except NotAMember:
            raise fenced(self._scope, self._me, None) from None
        except GroupServiceError as problem:
            run.abandon()
            raise self._not_started(run, parties, problem) from problem

    def _not_started(self, run: Run, parties: int, problem: GroupServiceError) -> NotStarted:
        """Which partitions are missing, and what that usually means."""
        lobby, scope = run.lobby, self._scope
        there = [*run.group.providers]
        if isinstance(problem, BarrierBroken):  # who gave up first may have left by now, and was there all the same
            there += [*problem.who, *problem.arrived]
        here = {one.rank for one in members_of(there).values()}
        elsewhere = {one.rank for one in members_of(lobby.providers).values()} - here
        missing = set(range(parties)) - here
        if not missing:
            return NotStarted(f"{scope} could not begin: {problem}", missing=(), group=lobby.name)
        never = missing - elsewhere
        said = [f"{ranges(never)} never started"] if never else []
        if missing != never:
            said.append(f"{ranges(missing - never)} worked on in an earlier run")
        text = (
            f"{scope}: within {self._start_timeout:g} s {' and '.join(said)}: {len(here)} of {parties} tasks were there"
        )
        advice = (
            f"are there slots for {parties} tasks at once (cores of all executors / spark.task.cpus), and is parties="
        )
        advice += " the number of partitions?"
        if not never:
            advice = "start_timeout= must be longer than the tasks work between two rounds"
        return NotStarted(text, missing=tuple(sorted(missing)), group=lobby.name, advice=advice)


def _rounds_of(group: Group, terms: Terms) -> Barrier:
    if terms.on_failure == "wait" and terms.parties is not None:
        return Barrier(group.name, BarrierTerms("round", terms.parties, "wait"), group._come)
    assert terms.on_failure != "wait"
    return group.barrier("round", on_failure=terms.on_failure)


def _rounds_ended(barrier: Barrier) -> int:
    """How many rounds of this barrier are over. A reset of what is not broken answers with that, at once."""
    return cast(Released, barrier._come(barrier._terms, b"", PROBE_S, resets=True)).round


def _stage_of(token: bytes) -> int:
    """Whose run it is."""
    return int(token.split(b".")[0])


def fenced(scope: Scope, me: Member, by: Member | None) -> Fenced:
    """Why this attempt does not count any more."""
    who, advice = "a newer attempt of it", ""
    if by is not None:
        who = f"task attempt {by.attempt} on {by.host}"
    if by is not None and by.stage != me.stage:
        who = f"a later job (stage {by.stage}, {who})"
        advice = "jobs that run at the same time need different names"
    text = f"{scope}: {me} was replaced by {who}; what this attempt does counts no longer"
    return Fenced(text, group=scope.lobby, advice=advice)
