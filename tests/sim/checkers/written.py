"""Lines that applications wrote, for tests of the checkers that read them."""

from __future__ import annotations

from typing import Any

from groupsvc.wire.history import HistoryEvent

GROUP = 7


class Written:
    """All of one group, in order."""

    def __init__(self) -> None:
        self.lines: list[HistoryEvent] = []

    def _line(
        self, who: str, op: str, type_: Any, args: dict[str, Any], result: dict[str, Any] | None = None, **more: Any
    ) -> None:
        self.lines.append(
            HistoryEvent(
                v=1, i=len(self.lines), t=float(len(self.lines)), who=who, node="", type=type_, op=op, group=GROUP,
                args=args, result=result or {}, **more,
            )
        )  # fmt: skip
