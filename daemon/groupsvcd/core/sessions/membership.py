"""A provider, from the wish to join to its last word.

    arriving  -- this node is in the group -->  proposed  -- Joined -->  a provider  -- Left -->  over

While it is *arriving* nothing was ordered for it, and it can be taken back without a trace. Once the join is *proposed*
it may be approved at any moment: if its program does not wait any longer, or is no more, the node says goodbye for it,
whatever came of it. So nobody is a provider who does not know it.

What is told begins with its own ``Joined``; the answer to the join, with the whole view, stands right before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupsvc.wire.client_messages import JoinAsk, JoinedAs, MemberLost, MessagesCame, OutcomeIs, Problem
from groupsvc.wire.limits import OUTSTANDING_BYTES_MAX, OUTSTANDING_MAX
from groupsvc.wire.notices import AnyNotice, Ended, Joined, Left, ProviderId, Refused

from ..groups.arrivals import Arrival
from ..groups.commands import FailureCause
from ..groups.process_group import ProcessGroup
from ..nodegroups.user import Form
from .attributes import attributes_of
from .refusals import WORDS

if TYPE_CHECKING:
    from ..groups.local_group import LocalGroup
    from .session import Session

MESSAGES_BYTES = 128 * 1024
"""Messages in a row are told together up to this size: half a frame of the usual one."""

ITEM_BYTES = 16
"""About what a message costs beside its payload, where it is kept."""

FORMS = {None: Form.IF_NONE, True: Form.ONLY, False: Form.NEVER}


class Membership:
    """One provider of a session."""

    def __init__(self, session: Session, ask: JoinAsk) -> None:
        self.session = session
        self.member = session.desk.processes.next_number()
        self.group, self.name = ask.group, ask.name
        self.local: LocalGroup | None = None
        self.provider: ProviderId | None = None  # once it is one
        self.is_over = False
        self._data = ask.data
        self._proposal = 0
        self._outstanding = 0  # messages that did not come back yet
        self._outstanding_bytes = 0
        self._call = session.call(ask.id, ask.timeout, self._is_late)
        self._arrival = Arrival(ask.attributes, FORMS[ask.create], self._admitted, self._turned_away)
        session.parts[self.member] = self
        session.names.add((self.group, self.name))

    def arrive(self) -> None:
        """Ask for the group."""
        self.session.desk.processes.arrivals.come(self.group, self._arrival)

    # --- Joining ---

    def _admitted(self, local: LocalGroup) -> None:
        self.local = local
        if local.is_full:
            self._over()
            self._call.fail("full", "too much waits for room in this group on this node; try later")
        else:
            self._call.may_have_happened = True  # it may be approved at any moment
            self._proposal = local.join(self, self.member, self.name, self._data, self._decided)

    def _turned_away(self, code: str, reason: str) -> None:
        self._over()
        self._call.fail(code, reason)

    def _decided(self, how: Ended | Refused | None) -> None:
        """The join has ended; if it was approved we know already."""
        if self.provider is not None or self.is_over:
            return
        self._over()
        if isinstance(how, Ended):
            proposal = (*self.session.desk.processes.me, self._proposal)
            self._call.answer(OutcomeIs(self._call.id, proposal, how.seq, how.outcome))
        elif isinstance(how, Refused):
            self._call.fail(*WORDS[how.why])
        else:
            self._call.not_known("lost", "this node has lost the group; look whether you are in it")

    def _is_late(self) -> None:
        """Nobody waits for it any longer; if it was approved meanwhile, this is its goodbye."""
        self.end("goodbye")
        self._call.fail("timed out", "not approved in time; it was withdrawn")

    # --- What it is told ---

    def told(self, notice: AnyNotice, group: ProcessGroup) -> None:
        """The next thing that happened in the group."""
        if self.is_over:
            return
        if self.provider is None:
            me = (*self.session.desk.processes.me, self.member)
            if not isinstance(notice, Joined) or all(provider.id != me for provider in notice.providers):
                return  # of the same entry, and before we were in
            self._is_in(me, group)
        self.session.tell_notice(self.member, notice)
        if isinstance(notice, Left) and self.provider in notice.providers:
            self._over()

    def _is_in(self, me: ProviderId, group: ProcessGroup) -> None:
        self.provider = me
        assert self.local is not None
        attributes = attributes_of(self.local, self.session.desk.processes)
        self._call.answer(JoinedAs(self._call.id, self.member, me, attributes, group.view))
        if not self.session.is_responsive:
            self.responds(does=False)

    def heard(self, seq: int, sender: ProviderId, payloads: Sequence[bytes]) -> None:
        """Plain messages, in a row."""
        if self.provider is None or self.is_over:
            return
        size = sum(map(len, payloads))
        if sender == self.provider:
            self._outstanding -= len(payloads)
            self._outstanding_bytes -= size
        if size <= MESSAGES_BYTES or len(payloads) == 1:
            self._tell_messages(seq, sender, tuple(payloads), size)
            return
        start, size = 0, 0
        for position, payload in enumerate(payloads):
            if position > start and size + len(payload) > MESSAGES_BYTES:
                self._tell_messages(seq + start, sender, tuple(payloads[start:position]), size)
                start, size = position, 0
            size += len(payload)
        self._tell_messages(seq + start, sender, tuple(payloads[start:]), size)

    def _tell_messages(self, seq: int, sender: ProviderId, payloads: tuple[bytes, ...], size: int) -> None:
        messages = MessagesCame(self.member, seq, sender, payloads)
        self.session.tell_messages(messages, size + ITEM_BYTES * (len(payloads) + 4))

    def lost(self, reason: str) -> None:
        """This node has lost the group."""
        if self.is_over:
            return
        was_in = self.provider is not None
        self._over()
        if was_in:
            self.session.tell(MemberLost(self.member, dissolved=False, reason=reason))
        else:
            self._call.not_known("lost", f"{reason}; look whether you are in it")

    # --- What it does ---

    def say(self, request_id: int, payloads: tuple[bytes, ...]) -> None:
        """Ordered messages; they come back."""
        size = sum(map(len, payloads))
        over = self._outstanding_bytes > 0 and self._outstanding_bytes + size > OUTSTANDING_BYTES_MAX
        assert self.local is not None
        if self._outstanding + len(payloads) > OUTSTANDING_MAX or over or self.local.is_full:
            text = (
                f"{self._outstanding} messages of this provider, {self._outstanding_bytes} bytes, are on their way;"
                f" at most {OUTSTANDING_MAX} and {OUTSTANDING_BYTES_MAX} may be"
                " (OUTSTANDING_MAX, OUTSTANDING_BYTES_MAX); wait until some have come back"
            )
            self.session.tell(Problem(request_id, "failed", "full", text))
            return
        self._outstanding += len(payloads)
        self._outstanding_bytes += size
        self.local.say(self.member, payloads)

    def responds(self, *, does: bool) -> None:
        """The program answers, or does not."""
        if self.local is not None and self.provider is not None:
            self.local.responds(self.member, does=does)

    # --- Its end ---

    def _over(self) -> None:
        self.is_over = True
        self.session.parts.pop(self.member, None)
        self.session.names.discard((self.group, self.name))

    def end(self, cause: FailureCause) -> None:
        """It is no more: what was proposed for it, or it itself, goes."""
        if self.is_over:
            return
        self._over()
        if self.local is None:
            self.session.desk.processes.arrivals.give_up(self.group, self._arrival)
        else:
            if cause == "overrun":
                self.responds(does=False)  # that it does not read is said before it goes
            self.local.is_no_more(self.member, cause)
