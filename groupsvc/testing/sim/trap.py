"""Something bad that happens between two effects of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .node import Node


class Trap:
    """Something bad that happens after a number of effects."""

    __slots__ = ("effects_left", "spring")

    def __init__(self, effects_left: int, spring: Callable[[Node], None]) -> None:
        self.effects_left = effects_left
        self.spring = spring
