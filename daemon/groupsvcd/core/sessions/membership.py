"""A provider, from the wish to join to its last word.

    arriving  -- this node is in the group -->  proposed  -- Joined -->  a provider  -- Left -->  over

While it is *arriving* nothing was ordered for it, and it can be taken back without a trace. Once the join is *proposed*
it may be approved at any moment: if its program does not wait any longer, or is no more, the node says goodbye for it,
whatever came of it. So nobody is a provider who does not know it. Which of the two was ordered first, the approval or
the goodbye, decides what a program is told that was late: if nobody has seen it come, it *failed*; if the others have
seen it come and go, or if that is not known a moment later, nobody says so (K1).

What is told begins with its own ``Joined``; the answer to the join, with the whole view, stands before it. Between the
two stands what it catches up with (``briefing``), if it brings a state machine or asks for earlier messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from groupsvc.wire.client_messages import (
    SINCE_CHECKPOINT,
    SINCE_NOW,
    AnyClientReply,
    JoinAsk,
    JoinedAs,
    MemberLost,
    MessagesCame,
    OutcomeIs,
    Problem,
    SnapshotWanted,
)
from groupsvc.wire.limits import OUTSTANDING_BYTES_MAX, OUTSTANDING_MAX
from groupsvc.wire.notices import AnyNotice, Ended, Left, ProviderId, Refused

from ..access import Verb
from ..groups import commands as cmd
from ..groups.arrivals import Arrival
from ..groups.commands import FailureCause
from ..groups.process_group import ProcessGroup
from ..nodegroups.user import Form
from . import briefing
from .attributes import attributes_of
from .briefing import ITEM_BYTES, Briefing
from .briefing import RUN_BYTES as MESSAGES_BYTES
from .calls import LAST_WORD_S
from .refusals import WORDS

if TYPE_CHECKING:
    from ..groups.local_group import LocalGroup
    from .session import Session

FORMS = {None: Form.IF_NONE, True: Form.ONLY, False: Form.NEVER}


class Membership:
    """One provider of a session."""

    needs: Verb = "join"

    def __init__(self, session: Session, ask: JoinAsk) -> None:
        self.session = session
        self.member = session.desk.processes.next_number()
        self.group, self.name = ask.group, ask.name
        self.local: LocalGroup | None = None
        self.provider: ProviderId | None = None  # once it is one
        self.is_over = False
        self._data = ask.data
        self._has_machine, self._since, self._since_in = ask.has_machine, ask.since, ask.since_in
        self._briefing: Briefing | None = None  # while it catches up
        self._when_briefed: list[Callable[[], None]] = []
        self._proposal = session.proposal_of(ask.id)
        self._is_taken_back = False  # after it was proposed
        self._outstanding = 0  # messages that did not come back yet
        self._outstanding_bytes = 0
        self._call = session.call(ask.id, ask.timeout, self._is_late)
        self._call.proposal = (*session.desk.processes.me, self._proposal)
        attributes = {**ask.attributes, "state_machine": True} if ask.has_machine else ask.attributes
        self._may_create = session.may("create", ask.group)
        forms = FORMS[ask.create] if self._may_create else Form.NEVER
        self._arrival = Arrival(attributes, forms, self._admitted, self._turned_away)
        session.parts[self.member] = self
        session.names.add((self.group, self.name))

    def arrive(self) -> None:
        """Ask for the group."""
        self.session.desk.processes.arrivals.come(self.group, self._arrival)

    # --- Joining ---

    def _admitted(self, local: LocalGroup) -> None:
        self.local = local
        problem = self._problem_with(local)
        if problem is not None:
            self._over()
            self._call.fail(*problem)
            self.session.desk.turn.round_trip.append(local.leave_if_idle)
        elif local.is_full:
            self._over()
            self._call.fail("full", "too much waits for room in this group on this node; try later")
        else:
            self._call.may_have_happened = True  # it may be approved at any moment
            by_default = cmd.BY_DEFAULT
            join = cmd.Join(self._proposal, self.member, by_default, by_default, self.name, self._data)
            local.join(self, join, self._decided)

    def _problem_with(self, local: LocalGroup) -> tuple[str, str] | None:
        """Code and words of why it cannot take part in this group, or not with what it asks for."""
        archive, since = local.group.archive, self._since
        if archive is not None and not self._has_machine:
            text = "attribute state_machine is true in this group: only who brings a state machine can join"
            return "attributes mismatch", text
        if archive is not None and since == SINCE_CHECKPOINT and not archive.is_whole:
            text = (
                "there is no checkpoint to begin with: its providers have not taken one for too long, and the messages"
                f" before {archive.begins} are no longer kept; try again when they have"
            )
            return "not kept", text
        if since >= 0 and self._since_in not in ((0, 0), local.numbering):
            text = f"entry {since} may be another one by now: its group has ended, or has lost its quorum since then"
            return "not kept", f"{text}; leave since out, or begin with CHECKPOINT"
        if since >= 0 and not local.oldest_kept <= since <= local.group.seq:
            text = f"messages after {since} are not kept here; the oldest number to begin after is {local.oldest_kept}"
            return "not kept", f"{text}, the newest {local.group.seq}"
        return None

    def _turned_away(self, code: str, reason: str) -> None:
        self._over()
        if code == "no such group" and not self._may_create:
            session = self.session
            code, reason = "permission denied", session.desk.refusal(session.principal, "create", self.group)
        self._call.fail(code, reason)

    def _decided(self, how: Ended | Refused | None) -> None:
        """The join has ended; if it was approved we know already, unless nobody wants it any more."""
        if self.provider is not None or (self.is_over and not self._is_taken_back):
            return
        if isinstance(how, Refused) and how.why == "ended" and not self._is_taken_back:
            self.local, self._call.may_have_happened = None, False
            self.arrive()  # at the next group of that name
            return
        self._over()
        me = (*self.session.desk.processes.me, self.member)
        was_taken_back = isinstance(how, Refused) and how.why in ("withdrawn", "not_a_member", "ended")
        if was_taken_back and not self._is_taken_back:
            self._call.fail("refused", "this node was taken out of the group before it was approved; join again")
        elif was_taken_back or (isinstance(how, Ended) and me in how.outcome.left_out):
            self._call.fail("timed out", "not approved in time; it was withdrawn")
        elif isinstance(how, Ended) and how.outcome.approved:
            self._call.not_known("timed out", "approved too late: the others saw it come, and it has left again")
        elif isinstance(how, Ended):
            proposal = (*self.session.desk.processes.me, self._proposal)
            self._call.answer(OutcomeIs(self._call.id, proposal, how.seq, how.outcome))
        elif isinstance(how, Refused):
            self._call.fail(*WORDS[how.why])
        else:
            self._call.not_known("lost", "this node has lost the group; look whether you are in it")

    def _is_late(self) -> None:
        """Nobody waits for it any longer; if it was approved meanwhile, this is its goodbye."""
        if self.local is None:
            self.end("goodbye")
            why = self.session.desk.trouble.why_not_there("this node did not get into the group in time")
            self._call.fail("timed out", f"{why}; it was withdrawn")
        else:
            self._call.extend(LAST_WORD_S, self._is_too_late)
            self.end("goodbye")

    def _is_too_late(self) -> None:
        why = self.session.desk.trouble.why_undone("not known to be withdrawn in time")
        self._call.not_known("timed out", f"{why}; if it is approved, this node leaves the group for it")

    # --- What it is told ---

    def told(self, run: Sequence[AnyNotice], group: ProcessGroup) -> None:
        """What follows from the next entry; the first of all is our own ``Joined``."""
        if self.is_over:
            return
        if self.provider is None:
            me = (*self.session.desk.processes.me, self.member)
            problem = self._problem_with(self.local) if self.local is not None else None
            if problem is not None:  # while the join was voted on, what it wanted was dropped
                self.provider = me
                self._call.not_known(problem[0], f"{problem[1]}. The others saw it come, and it has left again")
                self.end("goodbye")
                return
            self._is_in(me, group)
        self.session.tell_run(self.member, run, self._tell)
        if any(isinstance(notice, Left) and self.provider in notice.providers for notice in run):
            self._over()

    def _is_in(self, me: ProviderId, group: ProcessGroup) -> None:
        self.provider = me
        assert self.local is not None
        attributes = attributes_of(self.local, self.session.desk.processes)
        self._call.answer(JoinedAs(self._call.id, self.member, me, attributes, group.view, self.local.numbering))
        if not self.session.is_responsive:
            self.responds(does=False)
        first = self._first()
        if first is not None:
            self._briefing = Briefing(self.session, self.member, first, self._is_briefed)
            self._briefing.go_on()

    def _first(self) -> Iterator[briefing.Sized] | None:
        """What it is to be told before its own ``Joined``."""
        local, since = self.local, self._since
        assert local is not None
        archive = local.group.archive
        if since == SINCE_NOW:
            return None
        if archive is not None and since == SINCE_CHECKPOINT:
            tail = tuple(archive.since(archive.at))  # as it is now: the group goes on meanwhile
            blocks = briefing.checkpoint(self.member, archive.at, archive.blocks)
            return chain(blocks, briefing.messages(self.member, tail))
        kept = tuple(local.messages_since(max(since, local.oldest_kept)))
        return briefing.messages(self.member, kept)

    def _is_briefed(self) -> None:
        self._briefing = None
        waiting, self._when_briefed = self._when_briefed, []
        for action in waiting:
            action()

    def when_briefed(self, action: Callable[[], None]) -> None:
        """Do this when it has been told what came before it, at once if it has."""
        if self._briefing is None:
            action()
        else:
            self._when_briefed.append(action)

    def _stop_briefing(self) -> None:
        if self._briefing is not None:
            self.session.behind.pop(self.member, None)
            self._is_briefed()

    def is_scribe(self, seq: int) -> None:
        """A checkpoint of its machine is wanted."""
        if self.provider is not None and not self.is_over:
            self._tell(SnapshotWanted(self.member, seq), ITEM_BYTES)

    def _tell(self, telling: AnyClientReply, size: int) -> None:
        if self._briefing is None:
            self.session.put(telling, size)
        else:
            self._briefing.put(telling, size)

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
        self._tell(messages, size + ITEM_BYTES * (len(payloads) + 4))

    def lost(self, reason: str) -> None:
        """This node has lost the group."""
        if self.is_over:
            return
        was_in = self.provider is not None
        self._over()
        self._stop_briefing()
        if was_in:
            self.session.tell(MemberLost(self.member, dissolved=False, reason=reason))
        else:
            self._call.not_known("lost", f"{reason}; look whether you are in it")

    @property
    def is_quiet(self) -> bool:
        """Whether all that it said has come back."""
        return self._outstanding == 0

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

    def revoke(self, reason: str) -> None:
        """Its program may not be here any more."""
        was_in, is_arriving = self.provider is not None, self.local is None
        holds = self.local is not None and self.local.group.rules.exclusive  # it may not know yet that it does no more
        self.end("overrun" if holds else "goodbye")
        if was_in:
            self.session.tell(MemberLost(self.member, dissolved=False, reason=reason))
        elif is_arriving:
            self._call.fail("permission denied", reason)

    def _over(self) -> None:
        if self.is_over:
            return  # its name may be another's by now
        self.is_over = True
        self.session.parts.pop(self.member, None)
        self.session.names.discard((self.group, self.name))

    def end(self, cause: FailureCause) -> None:
        """It is no more: what was proposed for it, or it itself, goes."""
        if self.is_over:
            return
        self._over()
        self._stop_briefing()
        if self.local is None:
            self.session.desk.processes.arrivals.give_up(self.group, self._arrival)
        else:
            if cause == "overrun":
                self.responds(does=False)  # that it does not read is said before it goes
            is_drained, rules = self.session.is_drained, self.local.group.rules
            if is_drained and rules.durable:
                # Its node being gone is what it leaves by. Were it to say goodbye as the last one, the group would end,
                # and with it what is to outlive them all.
                self.local.take_back(self.member, self._proposal, None)
            elif self.provider is None:
                self._is_taken_back = True
                self.local.take_back(self.member, self._proposal, cause)
            elif (is_drained or cause == "overrun") and rules.exclusive:
                local, wait = self.local, self.session.vouched_for  # until then it may hold something, and not know
                self.session.desk.alarms.after(wait, lambda: local.is_no_more(self.member, cause))
            else:
                self.local.is_no_more(self.member, cause)
