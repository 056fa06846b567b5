"""An election: of all who want to lead, one does; when it no longer does, the next one in line follows.

    election = session.election("scheduler")
    election.run(schedule)                      # waits until I lead, and calls schedule(leadership)

It is a lock with other words. A candidate stands in line; the first leads, for as long as it likes or lives. The
function gets the guard of the lead (``HeldInTurn``): its fence, ``check()`` by its own clock, and two events:
``suspended`` while nobody vouches for the lead, and ``lost`` when it is gone. There is no moment at which two lead by
their own clocks (``contending.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..attributes import GroupAttributes
from ..errors import UsageError
from ..holding import HeldInTurn
from ..sansio import arguments as check
from ..sansio.contending import Line, is_first
from ..views import Provider
from .locks import Lock
from .looking import providers_of

if TYPE_CHECKING:
    from ..drivers.pump import Pump

T = TypeVar("T")


def election_line(name: object, data: object) -> Line:
    """Where the candidates of this name stand in line; the others see ``data``, an address for example."""
    called = check.recipe_name(name, "election")
    group = f"_election/{called}"
    attributes = GroupAttributes(exclusive=True, client_version="election")
    return Line(f"the lead of {called!r}", group, attributes, is_first, check.provider_data(data, group))


def check_function(function: object, line: Line) -> None:
    """Something that can be run."""
    if not callable(function):
        raise UsageError(f"{line.what} needs a function of one argument, the guard of the lead", group=line.group)


class Election:
    """An election in the hands of a blocking program; thread-safe."""

    def __init__(self, pump: Pump, default_timeout: float, line: Line) -> None:
        self._pump = pump
        self._default_timeout = default_timeout
        self._line = line

    def run(self, function: Callable[[HeldInTurn[threading.Event]], T], *, timeout: float | None = None) -> T:
        """Wait until I lead, run ``function(leadership)``, and step back; gives what the function returned.

        ``TimedOut`` if I do not lead in time, ``LockLost`` if the lead was lost before the function was done: it is not
        interrupted, and looks at ``leadership.lost`` or calls ``leadership.check()``.
        """
        check_function(function, self._line)
        wait = check.seconds(timeout, self._default_timeout)
        with Lock(self._pump, wait, self._line) as leadership:
            return function(leadership)

    def candidates(self, *, timeout: float | None = None) -> tuple[Provider, ...]:
        """All who lead or want to, the leader first; asked of the daemon, so true a moment ago."""
        return providers_of(self._pump, self._line.group, check.seconds(timeout, self._default_timeout))

    def leader(self, *, timeout: float | None = None) -> Provider | None:
        """Who leads, or is the next to lead; None if nobody wants to."""
        candidates = self.candidates(timeout=timeout)
        return candidates[0] if candidates else None

    def __repr__(self) -> str:
        return f"<Election for {self._line.what}>"
