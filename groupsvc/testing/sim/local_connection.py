"""A connection of a simulated process with the daemon of its node: frames in both directions, until it breaks.

What is sent together is one frame, and goes through the codec, so that nothing but bytes is shared. Frames keep their
order and take ``LOCAL_S``. When the connection breaks each side notices in its own time. What is on its way then is
lost; or, if the break is a *lingering* one, what the process has said still reaches the daemon, late: perhaps after the
session was resumed on another connection, and then it must do nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupsvc.wire.client_messages import REPLY_CODEC, REQUEST_CODEC, AnyClientReply, AnyClientRequest

from .clients import LOCAL_S

if TYPE_CHECKING:
    from .application import Application
    from .node import Node

LINGERS = 0.95
"""Part of the time until the daemon notices a break after which it reads what was still on its way."""


class LocalConnection:
    """One of them; ``number`` is what the daemon knows it by, and is never used again."""

    def __init__(self, application: Application, node: Node, number: int) -> None:
        self.application = application
        self.node = node
        self.number = number
        self.daemon = node.process
        self.is_broken = False
        self._lingers_until = -math.inf  # when what was said before the break, or after it, arrives; -inf: never
        self._is_gone = False  # the daemon has noticed that it is over
        self._waiting: list[AnyClientReply] = []  # one frame that is being put together
        self._waiting_at = -1.0

    # --- To the daemon ---

    def say(self, requests: Sequence[AnyClientRequest]) -> None:
        """One frame."""
        world = self.node.world
        world.push(world.t + LOCAL_S, self._arrive, REQUEST_CODEC.encode(list(requests)), None)

    def _arrive(self, frame: bytes, _: object) -> None:
        node = self.node
        if self.is_broken and node.world.t < self._lingers_until:
            node.world.push(self._lingers_until, self._arrive, frame, None)
            return
        if self._is_gone or node.process != self.daemon or (self.is_broken and self._lingers_until == -math.inf):
            return
        for request in REQUEST_CODEC.decode(frame):
            if node.process == self.daemon:
                self.application.arrives(self, request)
                node.client_says(self.number, request)
                self.application.all.has_arrived(self, request)

    # --- From the daemon ---

    def replied(self, message: AnyClientReply, at: float) -> None:
        """The daemon has said something; what it says at one moment is one frame."""
        if self.is_broken:
            return
        if self._waiting and self._waiting_at == at:
            self._waiting.append(message)
            return
        self._waiting, self._waiting_at = [message], at
        self.node.world.push(at + LOCAL_S, self._deliver, self._waiting, None)

    def _deliver(self, messages: list[AnyClientReply], _: object) -> None:
        if messages is self._waiting:
            self._waiting = []
        if not self.is_broken:
            self.application.receive(self, REPLY_CODEC.encode(messages))

    # --- Its end ---

    def break_off(self, *, process_after: float, daemon_after: float, lingers: bool) -> None:
        """It breaks; each side notices after so many seconds."""
        if self.is_broken:
            return
        world = self.node.world
        self.is_broken = True
        if lingers:
            self._lingers_until = world.t + LINGERS * daemon_after
        world.push(world.t + process_after, self._process_notices, None, None)
        world.push(world.t + daemon_after, self._daemon_notices, None, None)

    def hurry(self) -> None:
        """If it is broken, the daemon notices now."""
        if self.is_broken:
            self._daemon_notices(None, None)

    def daemon_died(self, process_after: float) -> None:
        """The daemon's process is gone."""
        self.is_broken = self._is_gone = True
        world = self.node.world
        world.push(world.t + process_after, self._process_notices, None, None)

    def process_ended(self, daemon_after: float) -> None:
        """Our own process is gone; what it has said already is read first."""
        world = self.node.world
        if not self.is_broken:
            self._lingers_until = world.t
        self.is_broken = True
        world.push(world.t + LOCAL_S + daemon_after, self._daemon_learns_of_the_end, None, None)

    def _process_notices(self, _: object, __: object) -> None:
        self.application.disconnected(self)

    def _daemon_notices(self, _: object, __: object) -> None:
        if not self._is_gone and self.node.process == self.daemon:
            self._is_gone = True
            self.node.client_gone(self.number)

    def _daemon_learns_of_the_end(self, _: object, __: object) -> None:
        if self.node.process == self.daemon:
            self._is_gone = True
            self.node.client_gone(self.number, process_ended=True)
