"""An engine that does only what a test tells it, and remembers everything it was told."""

from __future__ import annotations

import math
import random

from groupsvc.wire.client_messages import Status
from groupsvcd.core.effects import Effect
from groupsvcd.core.events import Event, Tick
from groupsvcd.core.parameters import Parameters
from groupsvcd.core.records import Stored


class RecordingEngine:
    """Answers every Tick with the effects in ``script``, once."""

    def __init__(self, parameters: Parameters, stored: Stored, incarnation: int, rng: random.Random) -> None:
        self.parameters = parameters
        self.stored = stored
        self.incarnation = incarnation
        self.domain = bytes(16)
        self.deadline = math.inf
        self.events: list[Event] = []
        self.times: list[float] = []
        self.script: list[Effect] = []

    def start(self, now: float) -> list[Effect]:
        """Do nothing yet."""
        return []

    def step(self, event: Event, now: float) -> list[Effect]:
        """Remember; on a Tick do what the script says."""
        self.events.append(event)
        self.times.append(now)
        if isinstance(event, Tick):
            self.deadline = math.inf
            script, self.script = self.script, []
            return script
        return []

    def status(self, request_id: int, now: float) -> Status:
        """A status that says nothing."""
        return Status(
            request_id, self.parameters.node, self.incarnation, "", "voter", "leader known", "", 0, 0, 0.0, False, "",
            (), 0, 0,
        )  # fmt: skip
