"""Programs of a stream, by the public library alone: one that sends as fast as it may, one that receives.

    python -m tests.faults.stream_program send '{"address": …, "number": 1, "group": …, "directory": …, "rate": 0}'
    python -m tests.faults.stream_program receive '{…}'

A session that is lost is followed by another one. The sender has another life then, and counts from 1 again
(``stream_log.py``); what it knows to be delivered of each life it writes down when ``flush`` has said so. The receiver
writes every message, and each silence, from its last message to the next one, in whatever life (``silences.py``).

They end with their standard input; the sender flushes first, and says "flushed" or what kept it from it.
"""

from __future__ import annotations

import contextlib
import json
import math
import select
import sys
import time
from pathlib import Path
from typing import IO, Any

import groupsvc
from groupsvc import GroupAttributes, clock
from groupsvc.errors import GroupServiceError

from .silences import SilenceLog
from .stream_log import LIVES_PER_PROGRAM, OVER, RECORD, STAY, TOLD_TO_END, payload_of, read_payload

FLUSH_EVERY = 5_000
"""Messages after which a sender asks whether they are delivered; it sends on meanwhile only as the library lets it."""

AGAIN_S = 0.1
LAST_S = 60.0


def is_told_to_end() -> bool:
    """Whether standard input has ended."""
    return bool(select.select([0], [], [], 0)[0])


class Program:
    """One of both."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.directory = Path(told["directory"])
        self.attributes = GroupAttributes(**told.get("attributes", {}))
        self.lives = 0
        self.has_ended_well = False

    def group(self, session: groupsvc.Session, *, events: bool) -> groupsvc.Group:
        """A part in it."""
        return session.join(self.told["group"], attributes=self.attributes, events=events, timeout=10.0)

    def live(self) -> None:
        """One life after the other; when it is told to end, until one of them ends well, or the time is over."""
        until = math.inf
        while not self.has_ended_well and time.monotonic() < until:
            if is_told_to_end():
                until = min(until, time.monotonic() + LAST_S)
            try:
                session = groupsvc.connect(self.told["address"], timeout=2.0)
            except GroupServiceError:
                time.sleep(AGAIN_S)
                continue
            self.lives += 1
            try:
                self.one_life(session)
                self.has_ended_well = is_told_to_end()
            except GroupServiceError as problem:
                self._note(f"life {self.lives} ended: {type(problem).__name__}: {problem}")
            with contextlib.suppress(GroupServiceError):
                session.close()

    def _note(self, text: str) -> None:
        with (self.directory / f"{self.told['number']}-{type(self).__name__}.notes").open("a") as notes:
            notes.write(f"{clock.now():.3f} {text}\n")

    def one_life(self, session: groupsvc.Session) -> None:
        """With this session; a ``GroupServiceError`` ends it."""
        raise NotImplementedError


class Sender(Program):
    """Sends as fast as it may, or so many messages a second."""

    def one_life(self, session: groupsvc.Session) -> None:
        life = self.told["number"] * LIVES_PER_PROGRAM + self.lives
        rate, count, began = self.told["rate"], 0, time.monotonic()
        with (self.directory / f"{life}.known").open("wb", buffering=0) as known:
            group = self.group(session, events=False)
            while not is_told_to_end():
                for _ in range(min(FLUSH_EVERY, max(1, rate)) if rate else FLUSH_EVERY):
                    count += 1
                    group.multicast(payload_of(life, count))
                self._flush(group, known, count, 20.0)
                if rate:
                    time.sleep(max(0.0, began + count / rate - time.monotonic()))
            self._flush(group, known, count, LAST_S)
            print("flushed", flush=True)

    def _flush(self, group: groupsvc.Group, known: IO[bytes], count: int, timeout: float) -> None:
        group.flush(timeout=timeout)
        known.seek(0)
        known.write(b"%d\n" % count)


class Receiver(Program):
    """Writes down what it receives."""

    def live(self) -> None:
        """One log of silences for all lives: what ends one does not end the silence."""
        with (self.directory / f"r{self.told['number']}.silences").open("a") as file:
            self.silences = SilenceLog(file)
            super().live()
            self.silences.end(clock.now())

    def one_life(self, session: groupsvc.Session) -> None:
        group = self.group(session, events=True)
        numbering = "-".join(map(str, group.view.position.numbering))
        stay = self.directory / f"r{self.told['number']}-{self.lives}@{numbering}{STAY}"
        with stay.open("wb") as file:
            self.silences.joined(clock.now())
            try:
                self._receive(group, file)
            finally:
                file.flush()
                over = stay.with_suffix(".new")
                over.write_text(TOLD_TO_END if is_told_to_end() and not group.ended else "")
                over.rename(stay.with_suffix(OVER))  # whole, or not there

    def _receive(self, group: groupsvc.Group, file: IO[bytes]) -> None:
        flushed = clock.now()
        while True:
            event = group.next_event(timeout=0.25)
            now = clock.now()
            if isinstance(event, groupsvc.Message):
                life, count = read_payload(event.payload)
                file.write(RECORD.pack(event.seq, life, count))
                self.silences.got(now)
            elif isinstance(event, groupsvc.Lost | groupsvc.Overrun | groupsvc.Dissolved):
                self.silences.put_out(now, type(event).__name__)
                return
            elif event is None and (group.ended or is_told_to_end()):
                return
            if now - flushed > 1.0:
                file.flush()
                flushed = now


def main(argv: list[str]) -> int:
    """Until standard input ends."""
    kind = {"send": Sender, "receive": Receiver}[argv[0]]
    kind(json.loads(argv[1])).live()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
