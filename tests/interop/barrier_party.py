"""A party at barriers, a process of its own, which writes down what it does and what it is told.

Its lines are those of the simulator's applications, so the simulator's checkers can judge them. All processes of a
machine have one monotonic clock: lines of several are put together by it.

    python -m tests.interop.barrier_party ADDRESS GROUP WHO FILE

It comes to two barriers of all providers, again and again: one that breaks when somebody dies, and is reset then, and
one that goes on without the dead. If its daemon dies it comes back, as somebody else. It ends with its standard input.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from typing import Any
from zlib import crc32

import groupsvc
from groupsvc.events import Event
from groupsvc.sansio import rounds
from groupsvc.sansio.rounds import BarrierTerms, Released
from groupsvc.testing.sim.application_barriers import _listening, in_full
from groupsvc.testing.sim.application_lines import in_full as told_in_full
from groupsvc.testing.sim.application_lines import view_in_full
from groupsvc.testing.sim.application_ops import COME, RESET, digest
from groupsvc.wire.client_messages import RoundIs
from groupsvc.wire.history import SCHEMA_VERSION, EventType, HistoryEvent, to_line

BREAKS, GOES_ON = BarrierTerms("breaks", 0, "break"), BarrierTerms("goes-on", 0, "continue")
TIMEOUT_S = {BREAKS.name: 3.0, GOES_ON.name: 20.0}
BETWEEN_S = 0.03
"""Work between two rounds."""


class Pen:
    """Writes lines at once and whole: whoever is killed has written what it did before."""

    def __init__(self, who: str, path: str) -> None:
        self.who = who
        self.node = ""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def write(
        self, op: str, type_: EventType, args: dict[str, Any], result: dict[str, Any] | None = None, **more: Any
    ) -> None:
        """With the time before it is written: what is invoked happens later, what has ended has happened."""
        with self._lock:
            now = time.monotonic()
            event = HistoryEvent(
                v=SCHEMA_VERSION, i=next(self._numbers), t=now, local=now, node=self.node, who=self.who, type=type_,
                op=op, args=args, result=result or {}, **more,
            )  # fmt: skip
            os.write(self._file, to_line(event))


class Party:
    """One life of it: from the join to its end."""

    def __init__(self, pen: Pen, calls: itertools.count[int], m: int, over: threading.Event) -> None:
        self._pen, self._calls, self._m, self._over = pen, calls, m, over

    def live(self, address: str, name: str) -> None:
        """Until it is over, or the session is lost."""
        with groupsvc.connect(address, timeout=2.0) as session:
            self._pen.node = session.node
            args = {"id": next(self._calls), "name": name}
            self._pen.write("join_group", "invoke", args)
            group = session.join(name, name=self._pen.who, events=True, timeout=10.0)
            self._group, self._id = group, group.view.position.numbering[0]
            result = {"m": self._m, "group": self._id, "provider": group.me.id, "view": view_in_full(group.view)}
            self._pen.write("join_group", "ok", args, result)
            threads = [threading.Thread(target=self._rounds, args=(terms,)) for terms in (BREAKS, GOES_ON)]
            for thread in threads:
                thread.start()
            for event in group.events():
                self._told(event)
            self._pen.write("member_ended", "event", {"m": self._m}, group=self._id)
            for thread in threads:
                thread.join()

    def _told(self, event: Event) -> None:
        found = told_in_full(event)
        if found is not None:
            kind, full = found
            args = {"m": self._m, "kind": kind, "full": full}
            seq = event.seq  # type: ignore[union-attr]
            self._pen.write("told", "event", args, group=self._id, seq=seq, crc=digest(kind, full))

    def _rounds(self, terms: BarrierTerms) -> None:
        is_broken = False
        while not self._group.ended:
            if self._over.is_set():
                self._group.goodbye()
                return
            is_broken = self._came(terms, resets=is_broken)
            time.sleep(BETWEEN_S)

    def _came(self, terms: BarrierTerms, *, resets: bool) -> bool:
        """Once; whether the barrier is broken now."""
        group, answers, timeout, number = self._group, list[RoundIs](), TIMEOUT_S[terms.name], next(self._calls)
        payload = b"" if resets else f"{self._pen.who} {number}".encode()
        args: dict[str, Any] = {
            "id": number, "m": self._m, "barrier": terms.name, "parties": terms.parties,
            "on_failure": terms.on_failure, "timeout": timeout, "payload": crc32(payload),
        }  # fmt: skip
        op = RESET if resets else COME
        start = rounds.come(group._pump.machine, group._membership, terms, payload, timeout, resets=resets)
        self._pen.write(op, "invoke", args, group=self._id)
        released: Released | None = None
        verdict: EventType = "fail"
        error = ""
        try:
            released = group._pump.finish(_listening(start, answers), timeout)
            verdict = "ok"
        except groupsvc.OutcomeUnknown as problem:
            verdict, error = "info", type(problem).__name__
        except groupsvc.GroupServiceError as problem:
            error = type(problem).__name__
        result = in_full(answers[0], {} if released is None else released.payloads) if answers else {"error": error}
        self._pen.write(op, verdict, args, result, group=self._id)
        return bool(answers) and answers[0].round.end == "broken"


def main(address: str, name: str, who: str, path: str) -> None:
    """Life after life."""
    pen, calls, over = Pen(who, path), itertools.count(1), threading.Event()

    def listen() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=listen, daemon=True).start()
    for m in itertools.count(1):
        try:
            Party(pen, calls, m, over).live(address, name)
        except groupsvc.GroupServiceError as problem:
            print(problem, file=sys.stderr, flush=True)
        if over.wait(0.1):
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
