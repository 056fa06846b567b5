"""One request of a session, until it has its one answer (K1).

Whoever works on it answers it: as asked, as a problem, or, when its time is over, as late. Whatever comes second
changes nothing, so that nobody has to know who was first. *Failed* is said only of what certainly did not happen, and
will not; what may have happened is *unknown*. The text says why, and what to do; what was asked for, the asker knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from groupsvc.wire.client_messages import AnyClientReply, Problem
from groupsvc.wire.notices import ProposalId

from .alarms import Alarm

if TYPE_CHECKING:
    from .session import Session

LAST_WORD_S = 0.3
"""How long after its deadline a proposal waits to hear that it was withdrawn, or had its turn."""


class Call:
    """A request that waits."""

    __slots__ = ("_alarm", "_late", "id", "is_open", "may_have_happened", "proposal", "session")

    def __init__(self, session: Session, id: int, timeout: float, late: Callable[[], None]) -> None:
        self.session = session
        self.id = id
        self.is_open = True
        self.may_have_happened = False  # once it has left for where it is done
        self.proposal: ProposalId | None = None  # what to ask about later, if it is one
        self._late = late
        self._alarm: Alarm = session.desk.alarms.after(timeout, late)

    def answer(self, reply: AnyClientReply, size: int = 0) -> None:
        """This is what came of it, if nothing else has before; it has so many bytes, if that is known."""
        if self.is_open:
            self.is_open = False
            self._alarm.take_back()
            self.session.calls.discard(self)
            self.session.tell(reply, size)

    def tell_first(self, telling: AnyClientReply) -> None:
        """A part of the answer, which follows."""
        if self.is_open:
            self.session.tell(telling)

    def stop(self) -> None:
        """Nobody is there any more to be answered."""
        self.is_open = False
        self._alarm.take_back()

    def fail(self, code: str, text: str, version: int | None = None) -> None:
        """It certainly did not happen; ``version`` is the one there is, if another was expected."""
        self.answer(Problem(self.id, "failed", code, text, version=version))

    def not_known(self, code: str, text: str) -> None:
        """It may have happened."""
        self.answer(Problem(self.id, "unknown", code, text, self.proposal))

    def give_up(self, reason: str) -> None:
        """What it waits for does not come any more."""
        (self.not_known if self.may_have_happened else self.fail)("lost", reason)

    def extend(self, seconds: float, late: Callable[[], None]) -> None:
        """Its time is over, but it waits so much longer for the last word."""
        self._alarm.take_back()
        self._alarm = self.session.desk.alarms.after(seconds, late)
