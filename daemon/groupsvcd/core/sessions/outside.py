"""Ordered messages of programs that are no members: the open group (SAM-03).

D's daemon does not carry "jobs", but a program on D has something for it. The node submits from outside, one batch at
a time: what comes meanwhile waits for the next one, so it costs no more when there is much of it. A batch is done when
all of it is held. If D carries the group, because another program there is a member, its own copy is the way.

What waits is bounded; what was not sent when its time was over certainly did not happen.
"""

from __future__ import annotations

from collections import deque

import attrs

from groupsvc.wire.client_messages import Done, SubmitOutside
from groupsvc.wire.limits import OUTSTANDING_BYTES_MAX, OUTSTANDING_MAX

from ..groups.commands import message_prefix
from ..nodegroups.outsider import NO_SUCH_GROUP
from .calls import Call
from .desk import Desk
from .session import Session

WAITING_MAX = 1_000
"""Requests of this node's programs that wait for one group."""

WAITING_BYTES_MAX = 64 * 1024 * 1024
"""What they have for all groups, on its way or not; one request alone may always wait."""

AGAIN_S = 0.1
"""After so long what this node could not take is tried again."""


@attrs.frozen(eq=False)
class Submission:
    """One request that waits."""

    call: Call
    payloads: tuple[bytes, ...]
    size: int


class Way:
    """What this node submits to one group for programs that are no members."""

    def __init__(self, outside: Outside, desk: Desk, name: str) -> None:
        self._outside, self._desk, self.name = outside, desk, name
        self._waiting: deque[Submission] = deque()
        self._batch: list[Submission] = []
        self._is_planned = False

    @property
    def is_full(self) -> bool:
        """Whether nothing more should wait."""
        return len(self._waiting) >= WAITING_MAX

    def add(self, submission: Submission) -> None:
        """One more."""
        self._outside.waiting_bytes += submission.size
        self._waiting.append(submission)
        self.go_on()

    def go_on(self) -> None:
        """The next batch, if none is on its way; if nothing waits this way is given up."""
        if self._batch or self._is_planned:
            return
        batch = self._next_batch()
        if not batch:
            self._outside.forget(self)
            return
        payloads = [payload for submission in batch for payload in submission.payloads]
        local = self._desk.processes.get(self.name)
        if local is not None and local.is_in:
            self._is_sent(batch)
            local.say_from_outside(payloads, self._all_held, self.failed)
            return
        prefix = message_prefix(0)
        self._batch = batch  # it may fail at once
        if self._desk.node_groups.send(self.name, [prefix + payload for payload in payloads], self):
            self._is_sent(batch)
        else:
            self._batch = []
            self._waiting.extendleft(reversed(batch))
            self._is_planned = True
            self._desk.alarms.after(AGAIN_S, self._again)

    def _next_batch(self) -> list[Submission]:
        batch: list[Submission] = []
        count = size = 0
        while self._waiting:
            one = self._waiting[0]
            if batch and (count + len(one.payloads) > OUTSTANDING_MAX or size + one.size > OUTSTANDING_BYTES_MAX):
                break
            self._waiting.popleft()
            if one.call.is_open:
                batch.append(one)
                count += len(one.payloads)
                size += one.size
            else:  # its time is over, or its program is no more
                self._outside.waiting_bytes -= one.size
        return batch

    def _is_sent(self, batch: list[Submission]) -> None:
        self._batch = batch
        for submission in batch:
            submission.call.may_have_happened = True

    def _again(self) -> None:
        self._is_planned = False
        self.go_on()

    # --- What came of it ---

    def accepted(self, upto_n: int) -> None:
        """Everything up to this number is stable."""
        if upto_n >= self._desk.node_groups.sent_upto(self.name):
            self._all_held()

    def _batch_is_over(self) -> list[Submission]:
        batch, self._batch = self._batch, []
        self._outside.waiting_bytes -= sum(submission.size for submission in batch)
        return batch

    def _all_held(self) -> None:
        for submission in self._batch_is_over():
            submission.call.answer(Done(submission.call.id))
        self._plan()

    def failed(self, reason: str) -> None:
        """Nothing more is heard of what is on its way."""
        for submission in self._batch_is_over():
            call = submission.call
            if reason == NO_SUCH_GROUP:
                call.fail("no such group", reason)
            else:
                call.not_known("lost", reason)
        self._plan()

    def _plan(self) -> None:
        """Go on when whoever called us is done."""
        if not self._is_planned:
            self._is_planned = True
            self._desk.turn.round_trip.append(self._again)


class Outside:
    """All groups that programs of this node submit to from outside."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._ways: dict[str, Way] = {}
        self.waiting_bytes = 0  # of all ways

    def submit(self, session: Session, ask: SubmitOutside) -> None:
        """Some messages."""
        way = self._ways.setdefault(ask.group, Way(self, self._desk, ask.group))

        def late() -> None:
            text = self._desk.trouble.why_not_there("not known to be held in time")
            if call.may_have_happened:
                call.not_known("timed out", text)
            else:
                call.fail("timed out", f"{text}; it was not sent")

        call = session.call(ask.id, ask.timeout, late)
        size = sum(map(len, ask.payloads))
        if way.is_full:
            call.fail("full", f"{WAITING_MAX} requests of this node wait for this group; try later")
        elif self.waiting_bytes and self.waiting_bytes + size > WAITING_BYTES_MAX:
            call.fail("full", f"{self.waiting_bytes} bytes of this node's programs wait for groups; try later")
            way.go_on()  # it may be a new one, for which nothing waits
        else:
            way.add(Submission(call, ask.payloads, size))

    def forget(self, way: Way) -> None:
        """Nothing waits there any more."""
        if self._ways.get(way.name) is way:
            del self._ways[way.name]
