"""The group ``_groups``: which groups there are, for whoever wants to watch that.

It is no group with a stream, and no node but the voters has the directory. So while somebody on this node watches, the
node asks the name server now and then, with the question that ``GroupsAsk`` asks: a majority stands behind every
answer. The groups are its providers, each named as the group is, and its number is that of the group in the directory;
the number of an answer is that of the newest entry in the directory, so two nodes that show the same number show the
same groups. A group that was formed and ended between two questions is not seen.

Who subscribes is answered with what is true after he asked, never with what was heard before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from groupsvc.wire.client_messages import MemberLost, SubscribeAsk, Subscribed
from groupsvc.wire.notices import AnyNotice, GroupView, Joined, Left, Provider

from ..access import Verb
from ..groups.commands import FailureCause

if TYPE_CHECKING:
    from .alarms import Alarm
    from .calls import Call
    from .desk import Desk
    from .session import Session

NAME = "_groups"

LOOK_EVERY_S = 1.0
"""How often the directory is asked while somebody watches: one question of each node that has a watcher."""


class GroupsWatch:
    """One subscription to the groups; it is answered with the first answer to a question that was asked after it."""

    needs: Verb = "subscribe"

    def __init__(self, names: GroupNames, session: Session, ask: SubscribeAsk) -> None:
        self._names, self.session, self.group = names, session, NAME
        self.member = session.desk.processes.next_number()
        self.asked_for = names.questions + 1  # the first question that comes after us
        self.call: Call | None = session.call(ask.id, ask.timeout, self._is_late)
        session.parts[self.member] = self

    def _is_late(self) -> None:
        call = self.call
        self.end("goodbye")
        self.session.parts.pop(self.member, None)
        if call is not None:
            trouble = self.session.desk.trouble
            call.fail("timed out", trouble.why_unanswered("the name server did not answer in time"))

    def end(self, cause: FailureCause) -> None:
        """It watches no longer."""
        self._names.forget(self)

    def revoke(self, reason: str) -> None:
        """Its program may not watch any more."""
        self.end("goodbye")
        self.session.parts.pop(self.member, None)
        if self.call is None:
            self.session.tell(MemberLost(self.member, dissolved=False, reason=reason))
        else:
            self.call.fail("permission denied", reason)

    def responds(self, *, does: bool) -> None:
        """Nobody waits for a subscriber."""


class GroupNames:
    """The groups of the domain, as this node heard of them last."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._seq = 0
        self._groups: dict[int, Provider] = {}  # by their number in the directory
        self._watches: dict[int, GroupsWatch] = {}
        self.questions = 0  # that were asked
        self._is_asking = False
        self._next: Alarm | None = None

    def subscribe(self, session: Session, ask: SubscribeAsk) -> None:
        """Somebody wants to watch."""
        watch = GroupsWatch(self, session, ask)
        self._watches[watch.member] = watch
        if not self._is_asking:
            self._ask()

    def forget(self, watch: GroupsWatch) -> None:
        """It watches no longer; when nobody does, nobody is asked."""
        self._watches.pop(watch.member, None)
        if not self._watches and self._next is not None:
            self._next.take_back()
            self._next = None

    def start_again(self) -> None:
        """The node goes on under a new incarnation: what the old one asked is never answered."""
        self._is_asking = False

    def _ask(self) -> None:
        if self._next is not None:
            self._next.take_back()
            self._next = None
        self._is_asking = True
        self.questions += 1
        number = self.questions
        self._desk.requests.ask("groups", "", lambda answer: self._answered(number, answer))

    def _answered(self, number: int, answer: dict[str, Any]) -> None:
        if number != self.questions or not self._is_asking:
            return
        self._is_asking = False
        notices = self._changes(answer)
        for watch in list(self._watches.values()):
            if watch.call is None:
                watch.session.tell_run(watch.member, notices)
            elif watch.asked_for <= number:
                call, watch.call = watch.call, None
                call.answer(Subscribed(call.id, watch.member, {}, self.view))
        if any(watch.call is not None for watch in self._watches.values()):
            self._ask()
        elif self._watches:
            self._next = self._desk.alarms.after(LOOK_EVERY_S, self._ask)

    def _changes(self, answer: dict[str, Any]) -> list[AnyNotice]:
        """What has come and gone since the answer before."""
        seq = max(self._seq, answer["seq"])
        found = {
            record["id"]: Provider((NAME, record["id"], 0), record["name"], b"", record["id"])
            for record in sorted(answer["groups"], key=lambda record: record["id"])
        }
        left = tuple(provider.id for number, provider in self._groups.items() if number not in found)
        new = tuple(provider for number, provider in found.items() if number not in self._groups)
        self._seq, self._groups = seq, found
        notices: list[AnyNotice] = []
        if left:
            notices.append(Left(seq, left, "leave", seq))
        if new:
            notices.append(Joined(seq, new, seq))
        return notices

    @property
    def view(self) -> GroupView:
        """All groups, the oldest first."""
        return GroupView(self._seq, self._seq, tuple(self._groups.values()), b"", 0, "approve")
