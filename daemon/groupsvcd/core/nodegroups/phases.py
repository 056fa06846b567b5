"""How far a node is with a group."""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """Between finding a group and being done with it."""

    FINDING = "finding"
    FORMING = "forming"
    INSERTING = "inserting"
    RETURNING = "returning"
    CARRYING = "carrying"
    LEAVING = "leaving"
    OVER = "over"
