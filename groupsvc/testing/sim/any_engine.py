"""What the simulator needs of an engine; ``groupsvcd.core.engine.Engine`` is the one that matters."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from groupsvc.wire.client_messages import Status
from groupsvcd.core.effects import Effect
from groupsvcd.core.events import Event
from groupsvcd.core.parameters import Parameters
from groupsvcd.core.records import Stored


class AnyEngine(Protocol):
    """Events in, effects out."""

    def start(self, now: float) -> list[Effect]: ...
    def step(self, event: Event, now: float) -> list[Effect]: ...
    def status(self, request_id: int, now: float) -> Status: ...
    @property
    def deadline(self) -> float: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def domain(self) -> bytes: ...


EngineMaker = Callable[[Parameters, Stored, int, random.Random], AnyEngine]
