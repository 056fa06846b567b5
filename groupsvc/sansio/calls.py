"""A call of the application, from its request to its one end.

Done, a ``Failed``, or ``OutcomeUnknown``; exactly once, not later than the deadline. Four things can end a call, and
the first one counts: the daemon's answer, the deadline, the end of the session, and the caller itself, who may stop
waiting (an interrupt). An answer that comes after the end finds nobody and is handed to ``unwanted``: a join that was
approved too late must be left again, not forgotten.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

from ..errors import DaemonUnreachable, GroupServiceError, PeerProtocolError, TimedOut
from ..wire.client_messages import AnyAnswer, AnyClientRequest, Problem, RoundPart
from .problems import error_of, no_answer

REPLY_SLACK_S = 0.5
"""How much longer than the daemon's own limit we wait for it to say that the limit has passed."""

ENDED_KEPT = 100
"""Deadlines of calls that have ended and stand behind one that waits: beyond this they are cleared away."""

Convert = Callable[[Any], Any]


class Call:
    """One request that waits for its answer. ``what`` completes the sentence "could not …"."""

    __slots__ = (
        "_convert",
        "_expected",
        "_result",
        "error",
        "group",
        "harmless",
        "id",
        "ids",
        "is_done",
        "on_done",
        "parts",
        "take_back",
        "what",
    )

    def __init__(
        self,
        id: int,
        expected: type[Any] | tuple[type[Any], ...],
        what: str,
        *,
        harmless: bool,
        group: str | None,
        convert: Convert | None,
        ids: tuple[str, ...] = (),
    ) -> None:
        self.id = id
        self.ids = ids  # of what it proposes
        self.what = what
        self.group = group
        self.harmless = harmless
        self.is_done = False
        self.error: BaseException | None = None
        self.on_done: Callable[[], None] | None = None
        self.parts: list[RoundPart] = []  # of the answer, which came before it
        self.take_back: Callable[[int], AnyClientRequest] | None = None  # what is said if nobody waits for it any more
        self._expected = expected
        self._convert = convert
        self._result: Any = None

    @property
    def result(self) -> Any:
        """What it came to; raises if it failed."""
        assert self.is_done
        if self.error is not None:
            raise self.error
        return self._result

    def answered(self, answer: AnyAnswer) -> None:
        """The daemon's word."""
        if isinstance(answer, Problem):
            self.fail(error_of(answer, self.what, group=self.group, ids=self.ids))
        elif not isinstance(answer, self._expected):
            text = f"could not {self.what}: the daemon answered with {type(answer).__name__}"
            self.fail(PeerProtocolError(text, group=self.group))
        else:
            try:
                found = answer if self._convert is None else self._convert(answer)
            except GroupServiceError as error:
                self.fail(error)
            else:
                self._end(found, None)

    def fail(self, error: BaseException) -> None:
        """It ends with an error."""
        self._end(None, error)

    def _end(self, result: Any, error: BaseException | None) -> None:
        assert not self.is_done
        self._result, self.error, self.is_done = result, error, True
        if self.on_done is not None:
            self.on_done()


class Calls:
    """All calls of a session that have not ended."""

    def __init__(self, unwanted: Callable[[AnyAnswer], None]) -> None:
        self._waiting: dict[int, Call] = {}
        self._deadlines: list[tuple[float, int]] = []
        self.deadline = math.inf  # when the next one is late
        self._unwanted = unwanted

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, call: Call, until: float) -> None:
        """It waits from now on."""
        self._waiting[call.id] = call
        heapq.heappush(self._deadlines, (until, call.id))
        if len(self._deadlines) > 2 * len(self._waiting) + ENDED_KEPT:
            self._deadlines = [one for one in self._deadlines if one[1] in self._waiting]
            heapq.heapify(self._deadlines)
        if until < self.deadline:
            self.deadline = until

    def abandon(self, call: Call) -> None:
        """Nobody waits for it any more."""
        self._waiting.pop(call.id, None)
        self._look_who_is_next()

    def answer(self, answer: AnyAnswer) -> None:
        """The daemon's answer to one of them."""
        if isinstance(answer, RoundPart):
            if answer.id in self._waiting:
                self._waiting[answer.id].parts.append(answer)
            return
        call = self._waiting.pop(answer.id, None)
        if call is None:
            self._unwanted(answer)
        else:
            self._look_who_is_next()
            call.answered(answer)

    def _look_who_is_next(self) -> None:
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._waiting:
            heapq.heappop(deadlines)
        self.deadline = deadlines[0][0] if deadlines else math.inf

    def tick(self, now: float, silence: str) -> list[Call]:
        """End those that are late, which are given back; ``silence`` says why nobody answers."""
        late = []
        while self.deadline <= now:
            call = self._waiting.pop(self._deadlines[0][1])
            self._look_who_is_next()
            late.append(call)
            advice = "try again" if call.harmless else ""
            call.fail(
                no_answer(
                    TimedOut, call.what, silence, harmless=call.harmless, group=call.group, ids=call.ids, advice=advice
                )
            )
        return late

    def end_all(self, why: str) -> None:
        """The session is over."""
        waiting, self._waiting = self._waiting, {}
        self._deadlines.clear()
        self.deadline = math.inf
        for call in waiting.values():
            call.fail(
                no_answer(
                    DaemonUnreachable, call.what, why, harmless=call.harmless, group=call.group, ids=call.ids,
                    advice="connect again",
                )
            )  # fmt: skip
