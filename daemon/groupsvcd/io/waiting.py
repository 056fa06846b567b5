"""Saying in the log what a daemon waits for, as long as it is not in the domain.

A is started alone, or with a wrong address for B. It runs, it says that it is there, and then nothing: whoever looks at
the log of a daemon that does not get in would have to know that ``groupsvc status`` knows why. So A says it, when it
has not been in the domain for some seconds, and again whenever that is another reason, and once in a while.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from ..observe.log import event
from .notify import Condition

LOOK_EVERY_S = 1.0
PATIENCE_S = 3.0
"""A domain forms, and elects another name server, in less."""
AGAIN_S = 300.0
"""The same reason is said again after so long."""
CHANGED_S = 30.0
"""Another one after so long: with every second that passes the words may be others."""

log = logging.getLogger(__name__)


class Waiting:
    """Looks at the condition of a daemon once a second."""

    def __init__(self, condition: Callable[[], Condition], clock: Callable[[], float]) -> None:
        self.due = -math.inf
        self._condition = condition
        self._clock = clock
        self._since = math.inf  # when it was first seen not to serve
        self._said = ""
        self._said_at = -math.inf

    def attend(self) -> None:
        """A round has ended."""
        now = self._clock()
        self.due = now + LOOK_EVERY_S
        serves, words = self._condition()
        if serves:
            self._since, self._said, self._said_at = math.inf, "", -math.inf
            return
        self._since = min(self._since, now)
        pause = AGAIN_S if words == self._said else CHANGED_S
        if now >= self._since + PATIENCE_S and now >= self._said_at + pause:
            self._said, self._said_at = words, now
            log.warning("%s", words, extra=event("waiting"))
