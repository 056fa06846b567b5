"""A subscriber: it watches a group, unseen by its members (GS-21, GS-36).

It is told what was approved, from the view in the answer on. A group that is not there is not formed for it; if it
wants to wait, this node looks again now and then until the group is there or the time is over.

A program that reads too slowly does not lose its session over a subscription. When too much is kept for it already,
what happens is left out, and counted; when there is room again it is told how much it has missed, and how the group is
now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupsvc.wire.client_messages import MemberLost, NoticesMissed, SubscribeAsk, Subscribed
from groupsvc.wire.notices import AnyNotice, ProviderId

from ..access import Verb
from ..groups.arrivals import Arrival
from ..groups.commands import FailureCause
from ..groups.local_group import DISSOLVED
from ..groups.process_group import ProcessGroup
from ..nodegroups.user import NO_SUCH_GROUP, Form
from .attributes import attributes_of

if TYPE_CHECKING:
    from ..groups.local_group import LocalGroup
    from .alarms import Alarm
    from .session import Session

LOOK_AGAIN_S = 0.25
"""How often a group that is waited for is looked up."""


class Subscription:
    """One subscription of a session."""

    needs: Verb = "subscribe"

    def __init__(self, session: Session, ask: SubscribeAsk) -> None:
        self.session = session
        self.member = session.desk.processes.next_number()
        self.group = ask.group
        self.is_over = False
        self.local: LocalGroup | None = None
        self._missed = 0
        self._wait_until = session.desk.turn.now + (ask.wait if ask.wait > 0 else 0.0)
        self._look_again: Alarm | None = None
        self._call = session.call(ask.id, ask.timeout, self._is_late)
        self._arrival = Arrival({}, Form.NEVER, self._admitted, self._turned_away)
        session.parts[self.member] = self

    def arrive(self) -> None:
        """Look for the group."""
        if not self.is_over:
            self.session.desk.processes.arrivals.come(self.group, self._arrival)

    def _admitted(self, local: LocalGroup) -> None:
        if local.group.has_ended:  # there are still nodes that carry what is left of it
            self._turned_away("no such group", NO_SUCH_GROUP)
            return
        self.local = local
        local.subscribe(self, self.member)
        attributes = attributes_of(local, self.session.desk.processes)
        self._call.answer(Subscribed(self._call.id, self.member, attributes, local.group.view, local.numbering))

    def _turned_away(self, code: str, reason: str) -> None:
        desk = self.session.desk
        left = self._wait_until - desk.turn.now
        if code == "no such group" and left > 0:  # and once more when the time is over
            self._look_again = desk.alarms.after(min(LOOK_AGAIN_S, left), self.arrive)
            return
        self._over()
        self._call.fail(code, reason)

    def _is_late(self) -> None:
        self.end("goodbye")
        trouble = self.session.desk.trouble
        self._call.fail("timed out", trouble.why_not_there("this node did not get to the group in time"))

    # --- What it is told ---

    def told(self, run: Sequence[AnyNotice], group: ProcessGroup) -> None:
        """Something was approved. Of an entry all is told, or all is missed: half of it is a group that never was."""
        if self.is_over:
            return
        if self._missed or self.session.is_crowded:
            self._missed += len(run)
            self.session.behind[self.member] = self.catch_up
        else:
            self.session.tell_run(self.member, run)

    def heard(self, seq: int, sender: ProviderId, payloads: Sequence[bytes]) -> None:
        """Messages are for providers."""

    def is_scribe(self, seq: int) -> None:
        """Only providers have machines."""

    def catch_up(self) -> None:
        """There is room again: say what was missed, and how the group is."""
        if self._missed and self.local is not None:
            missed, self._missed = self._missed, 0
            self.session.tell(NoticesMissed(self.member, missed, self.local.group.view))

    def responds(self, *, does: bool) -> None:
        """Nobody waits for a subscriber."""

    def lost(self, reason: str) -> None:
        """The group has ended, or this node has lost it."""
        if self.is_over:
            return
        self.catch_up()
        self._over()
        self.session.tell(MemberLost(self.member, dissolved=reason == DISSOLVED, reason=reason))

    # --- Its end ---

    def revoke(self, reason: str) -> None:
        """Its program may not watch any more."""
        was_in = self.local is not None
        self.end("goodbye")
        if was_in:
            self.session.tell(MemberLost(self.member, dissolved=False, reason=reason))
        else:
            self._call.fail("permission denied", reason)

    def _over(self) -> None:
        self.is_over = True
        self.session.parts.pop(self.member, None)
        self.session.behind.pop(self.member, None)

    def end(self, cause: FailureCause) -> None:
        """It watches no longer."""
        if self.is_over:
            return
        self._over()
        if self._look_again is not None:
            self._look_again.take_back()
        if self.local is None:
            self.session.desk.processes.arrivals.give_up(self.group, self._arrival)
        else:
            self.local.unsubscribe(self.member)
