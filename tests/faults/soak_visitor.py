"""A program that comes and goes, for hours, and counts together with others: each visit raises the state by one.

    python -m tests.faults.soak_visitor '{"address": …, "number": 1, "group": …, "directory": …}'

The group is durable, so what was approved once is there for ever: a state that is lower than one that this program has
seen, or that was raised twice by one approval, is written down as a broken promise (G9). Its process lives as long as
the soak, so whatever its library keeps of a visit that is over shows in its memory.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time

import groupsvc
from groupsvc.errors import GroupServiceError

from .stream_program import Program, is_told_to_end

VISIT_S = 0.3
"""How long it is away between two visits."""


class Visitor(Program):
    """Joins, raises the state by one, leaves."""

    seen = 0
    visits = 0

    def one_life(self, session: groupsvc.Session) -> None:
        while not is_told_to_end():
            self._visit(session)
            time.sleep(VISIT_S)
        print("flushed", flush=True)

    def _visit(self, session: groupsvc.Session) -> None:
        group = self.group(session, events=False)
        group.sync(timeout=10.0)
        view = group.view
        value = int(view.state or b"0")
        if value < self.seen:
            self._broken(f"G9: the state is {value}, and was {self.seen} before")
        raised = value + 1
        with contextlib.suppress(groupsvc.StaleVersion):  # somebody else was faster
            if group.propose_state(b"%d" % raised, if_version=view.state_version, timeout=10.0):
                self.seen = raised
                if int(group.view.state or b"0") < raised:
                    self._broken(f"G9: {raised} was approved, and the state is {group.view.state!r}")
        self.seen = max(self.seen, value)
        self.visits += 1
        (self.directory / f"{self.told['number']}.visits").write_text(str(self.visits))
        with contextlib.suppress(GroupServiceError):
            group.leave(timeout=10.0)

    def _broken(self, text: str) -> None:
        with (self.directory / f"v{self.told['number']}.broken").open("a") as broken:
            broken.write(f"{text}\n")


if __name__ == "__main__":
    Visitor(json.loads(sys.argv[1])).live()
