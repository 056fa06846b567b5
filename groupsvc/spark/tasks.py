"""A Spark task at a barrier: what a function that runs for a partition has in its hands.

    def work(rows):
        with barrier_task("load", parties=8) as task:
            data = prepare(rows)
            released = task.wait(b"...")                # returns when all eight have come
            yield finish(data, released.payloads)       # by rank

    rdd.mapPartitions(work)

The block is entered when all tasks are there, and left however the function ends: by its last row, by an exception, or
by Spark that wants no more rows and closes the generator. A worker that is killed leaves nothing to do: its daemon sees
that the process is gone.

Every task has a session of its own and closes it, because Spark uses worker processes again: what is left open would
stay in its groups until Spark sweeps its idle workers.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

import attrs

from ..errors import BarrierBroken, DaemonUnreachable, Failed, NotAMember, TimedOut, UsageError
from ..sansio.rounds import NO, YES, disagreement
from ..session import Session
from .attempts import Attempt, current_attempt, driver_host_of
from .errors import NotKept, TasksBroken
from .members import Member, members_of, parts_of, ranges, with_header
from .reaching import Via, daemon_host, session_of, via_of
from .rendezvous import Place, Rendezvous, own_host, rendezvous_of
from .runs import OnFailure, Run, Scope, Terms, enter, fenced

START_S = 120.0
"""Until then all tasks of the stage should have got their slots."""

ROUND_S = 600.0
"""A task that dies is seen at once, so this is only for one that hangs; partitions of uneven size take their time."""

T = TypeVar("T")

_used: set[tuple[int, str]] = set()
"""Task attempts of this worker process and their barriers; workers do thousands of tasks, so only the newest stay."""


@attrs.frozen
class TaskReleased:
    """Everybody has come: ``round`` rounds are over with this one. ``payloads``: what each brought, by rank."""

    round: int
    payloads: dict[int, bytes] = attrs.field(repr=False)


class BarrierTask:
    """One task at one barrier; a context manager. Made by ``barrier_task``."""

    def __init__(
        self, attempt: Attempt, name: str, terms: Terms, via: Via, rank: int | None, start_timeout: float,
        timeout: float,
    ) -> None:  # fmt: skip
        self._scope = Scope(attempt.application, name)
        self._terms = terms
        self._via = via
        self._start_timeout = start_timeout
        self._timeout = timeout
        number = attempt.partition if rank is None else _rank(rank, terms)
        self._me = Member(number, attempt.id, attempt.host, attempt.stage)
        self._session: Session | None = None
        self._run: Run | None = None
        self._ended = 0

    # --- Who ---

    @property
    def rank(self) -> int:
        """Mine: the number of the partition, if nothing else was said."""
        return self._me.rank

    @property
    def world(self) -> int:
        """How many tasks there are: those that were asked for, else those that are in the run at this moment."""
        return self._terms.parties or len(members_of(self._entered().group.providers))

    @property
    def round(self) -> int:
        """How many rounds are over: the task that takes the place of a dead one begins with what the others did."""
        return self._ended

    # --- Rounds ---

    def results(self, since: int = 0) -> tuple[TaskReleased, ...]:
        """What came out of the rounds after ``since``, as far as this task is: for who takes a dead one's place.

        With ``on_failure="wait"``. The newest rounds are kept, up to 1 000 and 32 MiB; ``NotKept`` if one is not.
        """
        run = self._entered()
        if self._terms.on_failure != "wait":
            raise UsageError(f"{self._scope}: results are kept with on_failure='wait'", group=run.group.name)
        if isinstance(since, bool) or not isinstance(since, int) or since < 0:
            raise UsageError(f"since is {since!r}; it must be a number of rounds", group=run.group.name)
        return tuple(self._past(run, number) for number in range(since + 1, self._ended + 1))

    def _past(self, run: Run, number: int) -> TaskReleased:
        try:
            found = run.past(number, self._timeout)
        except NotAMember:
            raise fenced(self._scope, self._me, None) from None
        except (TimedOut, DaemonUnreachable):
            raise
        except Failed as problem:
            text = f"{self._scope}: round {number} is not kept any more, and {self._ended} are over"
            advice = "ask for newer ones (since=), or let each round carry all that a replacement needs"
            raise NotKept(text, group=run.group.name, advice=advice) from problem
        return _by_rank(number, [parts_of(one) for one in found.payloads.values()])

    def wait(self, payload: bytes = b"", *, timeout: float | None = None) -> TaskReleased:
        """Come, and wait until everybody has; ``TasksBroken`` if that cannot be, or not in time."""
        run = self._entered()
        if not isinstance(payload, bytes | bytearray | memoryview):
            raise UsageError(f"a payload is bytes, not {type(payload).__name__}", group=run.group.name)
        brought = with_header(self.rank, self._ended, bytes(payload))
        try:
            released = run.barrier.wait(brought, timeout=self._timeout if timeout is None else timeout)
        except BarrierBroken as broken:
            run.abandon()
            raise self._broken(run, broken) from broken
        except NotAMember:
            raise fenced(self._scope, self._me, None) from None
        parts = [parts_of(one) for one in released.payloads.values()]
        self._check(run, parts)
        self._ended += 1
        return _by_rank(self._ended, parts)

    def all_gather(self, payload: bytes, *, timeout: float | None = None) -> dict[int, bytes]:
        """What everybody brings, by rank."""
        return self.wait(payload, timeout=timeout).payloads

    def broadcast(self, payload: bytes = b"", *, root: int = 0, timeout: float | None = None) -> bytes:
        """What the task with the rank ``root`` brings; the others bring nothing."""
        payloads = self.wait(payload if self.rank == root else b"", timeout=timeout).payloads
        if root not in payloads:
            raise self._failure(
                self._entered(), f"{ranges([root])} was to broadcast, and is not there", (root,), "left"
            )
        return payloads[root]

    def reduce(
        self, payload: bytes, function: Callable[[bytes, bytes], bytes], *, timeout: float | None = None
    ) -> bytes:
        """What everybody brings, put together two by two in the order of the ranks: everybody gets the same."""
        return functools.reduce(function, self.wait(payload, timeout=timeout).payloads.values())

    def vote(self, approve: bool, *, timeout: float | None = None) -> bool:
        """Whether everybody approves. Nobody is voted for."""
        return all(said == YES for said in self.wait(YES if approve else NO, timeout=timeout).payloads.values())

    def rendezvous(self, port: int, *, host: str | None = None, timeout: float | None = None) -> Rendezvous:
        """Tell everybody where I listen, and learn where they do: one all-gather.

        Bind the port first, so that nobody else takes it; ``host`` is my address as the others see it. Without it that
        is the one from which this machine reaches the daemon, the driver, or whatever is outside. ``UsageError`` if
        the tasks are on several machines and one of them tells a loopback address.
        """
        own = host or own_host(daemon_host(self._via), driver_host_of(os.getpid()))
        told = self.all_gather(Place(own, port, self._me.host).encoded(), timeout=timeout)
        return rendezvous_of(self.rank, {rank: Place.decoded(place) for rank, place in told.items()})

    def _check(self, run: Run, parts: list[tuple[int, int, bytes]]) -> None:
        """Whether those who were released are those who should be, at the same step; all tasks find the same."""
        steps = {ended for _, ended, _ in parts}
        if len(steps) > 1:
            run.abandon()
            told = "; ".join(f"{ranges(r for r, e, _ in parts if e == step)} after {step}" for step in sorted(steps))
            raise self._failure(run, f"the tasks are not at the same round: {told}", (), "mismatch")
        parties = self._terms.parties
        missing = set() if parties is None else set(range(parties)) - {rank for rank, _, _ in parts}
        if missing and self._terms.on_failure != "continue":
            run.abandon()
            text = f"{ranges(missing)} failed or ended before this round"
            raise self._failure(run, text, tuple(sorted(missing)), "left")

    def _broken(self, run: Run, broken: BarrierBroken) -> TasksBroken:
        known = members_of([*broken.who, *broken.arrived, *(one.provider for one in broken.missing)])
        who = [str(known.get(one.id, one)) for one in broken.who]
        did = {
            "timeout": f"the time of {', '.join(who)} was up", "cancelled": f"{', '.join(who)} was interrupted",
            "failure": f"{', '.join(who)} died", "left": f"{', '.join(who)} left",
            "mismatch": f"{', '.join(who)} said something else about parties or on_failure than the others",
            "too_large": "all payloads together are more than one round carries",
        }.get(broken.why, broken.why)  # fmt: skip
        if broken.said:
            did = disagreement(broken.said, lambda one: str(known.get(one.id, one)))
        here = {known[one.id].rank for one in broken.arrived if one.id in known}
        expected = range(self._terms.parties) if self._terms.parties else [one.rank for one in known.values()]
        missing = tuple(sorted(set(expected) - here))
        text = f"{did}; {len(here)} of {len(expected)} had come" + (f", {ranges(missing)} had not" if missing else "")
        silent = [str(known.get(one.provider.id, one.provider)) for one in broken.missing if not one.responds]
        text += f"; {', '.join(silent)} {'does' if len(silent) == 1 else 'do'} not respond" if silent else ""
        partitions = tuple(sorted({known[one.id].rank for one in broken.who if one.id in known})) or missing
        return self._failure(run, text, partitions, broken.why)

    def _failure(self, run: Run, text: str, partitions: tuple[int, ...], why: str) -> TasksBroken:
        return TasksBroken(
            f"{self._scope}, round {self._ended + 1}: {text}", partitions=partitions, group=run.group.name,
            round=self._ended + 1, expected=self._terms.parties or 0, why=why,
        )  # fmt: skip

    # --- Its life ---

    def _entered(self) -> Run:
        if self._run is None:
            raise UsageError(f"{self._scope} is used inside its block: with barrier_task(...) as task:")
        return self._run

    def __enter__(self) -> Self:
        key = self._me.attempt, self._scope.lobby
        if key in _used:
            text = f"{self._scope} was used by this task before; a task uses a name once"
            raise UsageError(text, advice="take another name for what comes after it")
        _used.difference_update([one for one in _used if one[0] < self._me.attempt])
        _used.add(key)
        self._session = session_of(self._via, str(self._me), self._timeout)
        try:
            self._run = enter(self._session, self._scope, self._me, self._terms, self._start_timeout)
            self._ended = self._run.ended
        except BaseException:
            self._session.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.group.__exit__(kind, error, trace)
        if self._session is not None:
            self._session.close()

    def __repr__(self) -> str:
        return f"<BarrierTask {self._me} at {self._scope}, {self._ended} rounds>"


def _by_rank(number: int, parts: list[tuple[int, int, bytes]]) -> TaskReleased:
    return TaskReleased(number, {rank: payload for rank, _, payload in sorted(parts)})


def _rank(rank: object, terms: Terms) -> int:
    most = terms.parties
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 0 or (most is not None and rank >= most):
        raise UsageError(f"rank is {rank!r}; it must be 0 to {'…' if most is None else most - 1}")
    return rank


def barrier_task(
    name: str,
    *,
    parties: int | None,
    via: object = None,
    rank: int | None = None,
    on_failure: OnFailure = "break",
    start_timeout: float = START_S,
    timeout: float = ROUND_S,
) -> BarrierTask:
    """A barrier for the tasks of the stage that this task is of; used with ``with``, in the function of a partition.

    They meet by application and ``name``. A later job under the same name takes it over, and the tasks of the earlier
    one are ``Fenced``: jobs that run at the same time need different names.

    The block is entered when all ``parties`` are there, or ``NotStarted`` is raised after ``start_timeout``. If one of
    them fails, the others fail, too (``"break"``), go on without it (``"continue"``), or wait for the task that Spark
    starts in its place (``"wait"``). ``parties=None``: no beginning together, whoever is there.
    ``via``: what ``embedded(spark)`` gave, or a ``Via``; None is the daemon of the node.
    """
    way = via_of(via)
    attempt = current_attempt(way.application)
    terms = Terms(parties, on_failure)
    if rank is None and parties is not None and attempt.partition >= parties:
        text = f"there are {parties} parties, and this is partition {attempt.partition}"
        raise UsageError(f"{text}: parties= is the number of partitions, or rank= says who this is")
    return BarrierTask(attempt, name, terms, way, rank, start_timeout, timeout)
