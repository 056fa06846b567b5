"""What goes wrong among tasks, in Spark's words. Both are ``Failed``: nobody was released."""

from __future__ import annotations

from ..errors import BarrierBroken, Failed


class NotStarted(Failed):
    """Not all partitions were there in time; ``missing`` are those that were not."""

    def __init__(self, message: str, *, missing: tuple[int, ...], group: str | None = None, advice: str = "") -> None:
        super().__init__(message, group=group, advice=advice)
        self.missing = missing


class Fenced(Failed):
    """Another attempt of the same partition has taken the place of this one, whose work counts no longer."""


class NotKept(Failed):
    """A round that was asked for is kept no longer."""


class TasksBroken(BarrierBroken):
    """A round released nobody; ``partitions`` are those that it broke by, or that were missing."""

    def __init__(
        self,
        message: str,
        *,
        partitions: tuple[int, ...] = (),
        group: str | None = None,
        round: int = 0,
        expected: int = 0,
        why: str = "",
    ) -> None:
        super().__init__(message, group=group, round=round, expected=expected, why=why)
        self.partitions = partitions
