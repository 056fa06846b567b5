"""What this node and its clients ask of the name server, and how every call ends exactly once.

A *question* is sent to whoever is name server and repeated until answered or late; late means *failed*: a
read that was not answered did not happen.

A *command* is submitted with the next number of this incarnation and repeated, to whoever is name server,
until its answer comes. Numbers leave no gaps, so a command that was sent once is repeated even after its
client was told "unknown" at its deadline. A command that was never sent is withdrawn at its deadline: it
certainly did not happen. When the node goes on under a new incarnation, what was sent before is unknown.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs

from groupsvc.wire.client_messages import (
    ClientReply,
    ConfigAsk,
    ConfigSet,
    ConfigValue,
    Done,
    GroupRecord,
    HandOverAsk,
    LookUpAsk,
    Problem,
)
from groupsvc.wire.enrolment_messages import NODE_KEY_PREFIX
from groupsvc.wire.limits import TIMEOUT_S_MAX
from groupsvc.wire.option_messages import OPTION_PREFIX

from ..identity import Identity
from ..parameters import Parameters
from ..peer_messages import DOMAIN_STREAM, Answered, Ask, Submit, SubmitRefused, Tell
from ..tally import add
from ..turn import Turn
from ..views import AttributeValue
from .commands import FormGroup, SetConfig, encode_command
from .member import Member
from .trouble import Trouble

FORMED_FOR_CLIENTS: dict[str, AttributeValue] = {"machine": True, "processes": True}
"""What a group is that a client has formed: the same as if a program had joined it that states nothing."""

WAITING_MAX = 10_000
"""Calls of one node's clients that may wait at a time; more are refused at once."""
WAITING_PER_PRINCIPAL_MAX = 2_500
"""Of these, of all programs of one user or key: so nobody keeps the others from asking."""
RECOUNT_S = 0.1
RECOUNT_SHARE = 1 / 16
"""They are counted again after so long, or when as many have come since as are so much of all that wait: it is sixteen
looks for each call at most, and who is refused had three quarters of what is allowed waiting a moment ago."""


@attrs.define
class Call:
    """One call, until it is answered."""

    client: int  # 0: this node itself
    deadline: float
    about: str
    answered: Callable[[dict[str, Any]], None]
    failed: Callable[[str, str, str], None]  # family, code, text
    command: Callable[[], bytes] | None = None  # made when it is sent: it may name our incarnation
    body: bytes = b""  # of a command that was sent
    ask: Ask | None = None  # of a question
    asked: int = 0  # how often
    n: int = 0  # number of a command once it was sent
    known_seq: int = 0
    told: bool = False
    happened: Callable[[dict[str, Any]], None] = lambda answer: None  # what the node does about it, whoever waits
    forms: bool = False  # a group
    who: str = ""  # has asked; "": this node itself


class Requests:
    """All calls that wait for the name server."""

    def __init__(
        self, turn: Turn, parameters: Parameters, identity: Identity, member: Member, trouble: Trouble
    ) -> None:
        self.turn = turn
        self._parameters = parameters
        self._timers = parameters.timers
        self._identity = identity
        self._member = member
        self._trouble = trouble
        self._questions: dict[int, Call] = {}
        self._unsent: list[Call] = []
        self._sent: dict[int, Call] = {}
        self._hand_overs: list[Call] = []
        self._deadlines: list[float] = []  # a heap; answered calls leave theirs behind, which does no harm
        self._taken: Counter[str] = Counter()  # of each principal since the last count, so never too few
        self._counted_at = -math.inf
        self._taken_since = 0
        self._number = 0
        self._last_n = 0
        self._repeat_at = math.inf
        self._wait = self._timers.repeat_first
        self._served_by = ("", 0)
        self.problem_with_option: Callable[[str, str], str] = lambda key, value: ""  # the driver knows what there is
        self.formed: Callable[[dict[str, Any], str], None] = lambda answer, who: None  # formed here for who
        self.identity_of: Callable[[int], str] = lambda client: ""  # as what a client was let in

    # --- Calls of clients ---

    def on_look_up(self, client: int, message: LookUpAsk) -> None:
        """Who leads this group, or make us its leader.

        A group that was formed is carried here also if nobody waits for the answer any more: nobody else has it.
        """
        me, who = self.turn.node, self.identity_of(client)

        def is_formed(answer: dict[str, Any]) -> bool:
            group = answer.get("group")
            return group is not None and bool(answer.get("formed", False)) and group["active"]["leader"] == me

        def happened(answer: dict[str, Any]) -> None:
            if is_formed(answer):
                self.formed(answer, who)

        def reply(answer: dict[str, Any]) -> ClientReply:
            group = answer.get("group")
            if group is None:
                if answer.get("ok") is False:
                    return Problem(message.id, "failed", "refused", str(answer.get("problem", "")))
                return GroupRecord(message.id, False, False, 0, message.group, 0, "", ())
            view = group["active"]
            servers = tuple(str(server[0]) for server in view["servers"])
            return GroupRecord(
                message.id, True, is_formed(answer), group["id"], group["name"], view["epoch"], view["leader"], servers
            )

        if message.form:
            answered, failed = self._to_client(client, message.id, reply)
            self._put_command_if_room(Call(
                client, self.deadline_of(message.timeout), f"forming group {message.group!r}", answered, failed,
                lambda: encode_command(FormGroup(message.group, me, self._identity.incarnation, FORMED_FOR_CLIENTS)),
                happened=happened, forms=True,
            ))  # fmt: skip
        else:
            self._question(client, message.id, message.timeout, "group", message.group, reply)

    def on_config_ask(self, client: int, message: ConfigAsk) -> None:
        """The value of a setting."""

        def reply(answer: dict[str, Any]) -> ClientReply:
            return ConfigValue(message.id, message.key, answer["value"], answer["version"])

        self._question(client, message.id, message.timeout, "config", message.key, reply)

    def on_config_set(self, client: int, message: ConfigSet) -> None:
        """Set a setting if nobody else did; an option of the daemons is judged here, before it is ordered."""
        if message.key.startswith(NODE_KEY_PREFIX):
            text = f"{message.key} is not set like this: keys of nodes are listed by tokens (groupsvc token)"
            self.turn.reply(client, Problem(message.id, "usage", "bad option", text))
            return
        if message.key.startswith(OPTION_PREFIX):
            problem = self.problem_with_option(message.key.removeprefix(OPTION_PREFIX), message.value)
            if problem:
                self.turn.reply(client, Problem(message.id, "usage", "bad option", problem))
                return

        def reply(answer: dict[str, Any]) -> ClientReply:
            if answer.get("ok"):
                return ConfigValue(message.id, message.key, message.value, answer["version"])
            text, version = str(answer.get("problem", "")), answer.get("version")
            if version == message.if_version:
                return Problem(message.id, "failed", "refused", text)
            return Problem(message.id, "failed", "stale", text, version=version)

        self._submit(
            client, message.id, message.timeout, f"setting {message.key!r}", reply,
            lambda: encode_command(SetConfig(message.key, message.value, message.if_version)),
        )  # fmt: skip

    def question(
        self, client: int, id: int, timeout: float, what: str, key: str, reply: Callable[[dict[str, Any]], ClientReply]
    ) -> None:
        """Something else that the name server knows."""
        self._question(client, id, timeout, what, key, reply)

    def on_hand_over(self, client: int, message: HandOverAsk) -> None:
        """Make another voter name server; done when it calls."""

        def reply(answer: dict[str, Any]) -> ClientReply:
            return Done(message.id)

        self._question(client, message.id, message.timeout, "hand-over", message.to, reply)

    def question_of(
        self, client: int, deadline: float, what: str, key: str, answered: Callable[[dict[str, Any]], None],
        failed: Callable[[str, str, str], None],
    ) -> None:  # fmt: skip
        """A question that is only a part of what a client has asked for."""
        call = Call(client, deadline, f"{what} {key!r}", answered, failed)
        if self._take(call):
            self._put_question(call, what, key)

    def command_of(
        self, client: int, deadline: float, about: str, body: Callable[[], bytes],
        answered: Callable[[dict[str, Any]], None], failed: Callable[[str, str, str], None],
    ) -> None:  # fmt: skip
        """The same with a command."""
        self._put_command_if_room(Call(client, deadline, about, answered, failed, command=body))

    def deadline_of(self, timeout: float) -> float:
        """Until when a call has to be answered that may take so long."""
        return self.turn.now + (min(max(timeout, 0.0), TIMEOUT_S_MAX) if math.isfinite(timeout) else TIMEOUT_S_MAX)

    def _question(
        self, client: int, id: int, timeout: float, what: str, key: str, reply: Callable[[dict[str, Any]], ClientReply]
    ) -> None:
        answered, failed = self._to_client(client, id, reply)
        call = Call(client, self.deadline_of(timeout), f"{what} {key!r}", answered, failed)
        if self._take(call):
            self._put_question(call, what, key)

    def _put_question(self, call: Call, what: str, key: str) -> None:
        self._number += 1
        call.ask = Ask(self._number, what, key)
        self._questions[self._number] = call
        self._send_question(call)
        self._plan_repeat()

    def _send_question(self, call: Call) -> None:
        if self._member.hears_leader and call.ask is not None:
            call.asked += 1
            self.turn.send(self._member.leader, call.ask)

    def _submit(
        self, client: int, id: int, timeout: float, about: str, reply: Callable[[dict[str, Any]], ClientReply],
        command: Callable[[], bytes],
    ) -> None:  # fmt: skip
        answered, failed = self._to_client(client, id, reply)
        self._put_command_if_room(Call(client, self.deadline_of(timeout), about, answered, failed, command=command))

    def _put_command_if_room(self, call: Call) -> None:
        if self._take(call):
            self._put_command(call)

    def _put_command(self, call: Call) -> None:
        self._unsent.append(call)
        self._send_more()
        self._plan_repeat()

    def _to_client(
        self, client: int, id: int, reply: Callable[[dict[str, Any]], ClientReply]
    ) -> tuple[Callable[[dict[str, Any]], None], Callable[[str, str, str], None]]:
        def answered(answer: dict[str, Any]) -> None:
            self.turn.reply(client, reply(answer))

        def failed(family: str, code: str, text: str) -> None:
            self.turn.reply(client, Problem(id, family, code, text))  # type: ignore[arg-type]

        return answered, failed

    # --- Errands of this node itself ---

    def ask(self, what: str, key: str, answered: Callable[[dict[str, Any]], None]) -> None:
        """A question of the node itself; repeated until it is answered, however long that takes."""
        self._put_question(Call(0, math.inf, f"{what} {key!r}", answered, _nobody), what, key)

    def command(
        self, about: str, body: Callable[[], bytes], answered: Callable[[dict[str, Any]], None],
        failed: Callable[[str, str, str], None],
    ) -> None:  # fmt: skip
        """A command of the node itself; it fails only with the node's incarnation, or if it was left lying too long."""
        self._put_command(Call(0, math.inf, about, answered, failed, command=body))

    def _take(self, call: Call) -> bool:
        if self._waiting >= WAITING_MAX:
            self._problem(call, "failed", "busy", f"{WAITING_MAX} calls are waiting on this node already")
            return False
        call.who = self.identity_of(call.client)
        if not self._has_share(call.who):
            most = f"programs of {call.who} have as many calls waiting on this node as they may"
            text = f"{most} ({WAITING_PER_PRINCIPAL_MAX}): ask again when some of them have ended"
            self._problem(call, "failed", "busy", text)
            return False
        self._taken[call.who] += 1
        self._taken_since += 1
        if len(self._deadlines) > 2 * WAITING_MAX:
            self._forget_deadlines_of_answered_calls()
        heapq.heappush(self._deadlines, call.deadline)
        return True

    def _has_share(self, who: str) -> bool:
        if not who or self._taken[who] < WAITING_PER_PRINCIPAL_MAX:
            return True
        if self.turn.now >= self._counted_at + RECOUNT_S or self._taken_since >= self._waiting * RECOUNT_SHARE:
            self._counted_at, self._taken_since = self.turn.now, 0
            self._taken = Counter(call.who for call in self._calls if call.who)
        return self._taken[who] < WAITING_PER_PRINCIPAL_MAX

    @property
    def _waiting(self) -> int:
        return len(self._questions) + len(self._unsent) + len(self._sent) + len(self._hand_overs)

    @property
    def _calls(self) -> tuple[Call, ...]:
        return (*self._questions.values(), *self._unsent, *self._sent.values(), *self._hand_overs)

    def _forget_deadlines_of_answered_calls(self) -> None:
        self._deadlines = [call.deadline for call in self._calls if not call.told]
        heapq.heapify(self._deadlines)

    # --- Sending ---

    def _send_more(self) -> None:
        """Give numbers to what was not sent yet, as far as the window allows, and send it."""
        member = self._member
        if not self._unsent or not member.is_listed or not member.hears_leader:
            return
        room = self._parameters.answers_kept - len(self._sent)
        now_sent, self._unsent = self._unsent[:room], self._unsent[room:] if room > 0 else self._unsent
        if room <= 0 or not now_sent:
            return
        first_n = self._last_n + 1
        for call in now_sent:
            self._last_n += 1
            call.n, call.known_seq = self._last_n, member.known_seq
            call.body = call.command() if call.command is not None else b""
            self._sent[call.n] = call
        bodies = tuple(call.body for call in now_sent)
        self.turn.send(member.leader, Submit(DOMAIN_STREAM, first_n, member.known_seq, bodies))

    def _plan_repeat(self) -> None:
        if self._repeat_at == math.inf:
            self._wait = self._timers.repeat_first
            self._repeat_at = self.turn.now + self._wait

    def _repeat(self) -> None:
        member = self._member
        if not (self._questions or self._unsent or self._sent):
            self._repeat_at = math.inf
            return
        self._wait = min(2 * self._wait, self._timers.repeat_max)
        self._repeat_at = self.turn.now + self._wait
        if not member.hears_leader:
            return
        add(self.turn.tally.retransmits, "request", len(self._questions) + len(self._sent))
        for call in self._questions.values():
            self._send_question(call)
        if member.is_listed:
            for call in self._sent.values():
                self.turn.send(member.leader, Submit(DOMAIN_STREAM, call.n, call.known_seq, (call.body,)))
            self._send_more()

    def on_leader(self) -> None:
        """A name server called: a new one has everything that waits sent to it at once."""
        member = self._member
        if (member.leader, member.leader_epoch) != self._served_by:
            self._served_by = (member.leader, member.leader_epoch)
            self._wait = self._timers.repeat_first / 2
            self._repeat()
            self._settle_hand_overs()
        elif self._unsent:
            self._send_more()

    # --- Answers ---

    def on_tell(self, tell: Tell) -> None:
        """The answer to a question."""
        if tell.to != self._identity.incarnation:
            return
        call = self._questions.pop(tell.number, None)
        if call is None:
            return
        if tell.problem:
            # Asked twice, a hand-over may have been done by the first name server and be refused by the next.
            repeated = call.ask is not None and call.ask.what == "hand-over" and call.asked > 1
            self._problem(call, "unknown" if repeated else "failed", "refused", tell.problem)
        elif tell.answer.get("yielded"):
            self._hand_overs.append(call)
            self._settle_hand_overs()
        else:
            call.answered(tell.answer)

    def _settle_hand_overs(self) -> None:
        """Whoever was named as successor calls: then it is done, whatever became of the answer to the question."""
        leader = self._member.leader if self._member.hears_leader else ""
        waiting: list[Call] = []
        for call in self._hand_overs:
            if call.ask is not None and call.ask.key == leader:
                call.answered({})
            else:
                waiting.append(call)
        self._hand_overs = waiting

    def on_answered(self, answered: Answered) -> None:
        """A command of ours was applied."""
        call = self._sent.pop(answered.n, None) if answered.to == self._identity.incarnation else None
        if call is None:
            return
        call.happened(answered.answer)
        if not call.told:
            call.answered(answered.answer)
        self._send_more()

    def on_submit_refused(self, refused: SubmitRefused) -> None:
        """A gap closes by itself when the numbers before are repeated; too old stays too old.

        The number itself must be used all the same, or everything after it would be a gap for ever: an empty
        command takes its place. A late copy of the old one carries the old ``known_seq`` and is refused again.
        """
        call = self._sent.get(refused.first_n) if refused.to == self._identity.incarnation else None
        if call is None or refused.reason == "gap":
            return
        self._problem(call, "unknown", refused.reason, f"whether {call.about} was done is no longer known")
        call.body, call.known_seq = b"", self._member.known_seq
        if refused.reason == "forgotten":
            del self._sent[refused.first_n]
            self._send_more()

    def _problem(self, call: Call, family: str, code: str, text: str) -> None:
        if not call.told:
            call.told = True
            call.failed(family, code, text)

    def on_client_gone(self, client: int) -> None:
        """Nobody is there to be told any more."""
        self._questions = {number: call for number, call in self._questions.items() if call.client != client}
        self._unsent = [call for call in self._unsent if call.client != client]
        self._hand_overs = [call for call in self._hand_overs if call.client != client]
        for call in self._sent.values():
            call.told = call.told or call.client == client

    @property
    def forming(self) -> tuple[str, ...]:
        """For whom groups are being formed, once for each; also if nobody waits for that any more."""
        return tuple(call.who for call in (*self._unsent, *self._sent.values()) if call.forms)

    @property
    def last_n(self) -> int:
        """The number of the newest command that was sent."""
        return self._last_n

    @property
    def oldest_n(self) -> int:
        """Of the commands that were sent and not answered the lowest number; all below were."""
        return next(iter(self._sent), self._last_n + 1)

    @property
    def is_quiet(self) -> bool:
        """Whether no client waits for the name server."""
        return not any(call.client and not call.told for call in self._calls)

    def start_again(self) -> None:
        """A new incarnation: nobody knows what became of what the old one sent."""
        for call in self._sent.values():
            self._problem(call, "unknown", "declared down", f"this node was declared down while {call.about}")
        self._sent.clear()
        self._last_n = 0
        self._unsent = [call for call in self._unsent if call.client]
        self._questions = {number: call for number, call in self._questions.items() if call.client}

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When something is to be repeated or is late."""
        return min(self._repeat_at, self._deadlines[0]) if self._deadlines else self._repeat_at

    def tick(self) -> None:
        """Time has passed."""
        now = self.turn.now
        if now >= self._repeat_at:
            self._repeat()
        if not self._deadlines or now < self._deadlines[0]:
            return
        while self._deadlines and now >= self._deadlines[0]:
            heapq.heappop(self._deadlines)
        self._end_late_calls(now)

    def _end_late_calls(self, now: float) -> None:
        for number in [number for number, call in self._questions.items() if now >= call.deadline]:
            call = self._questions.pop(number)
            may_be_done = call.ask is not None and call.ask.what == "hand-over" and call.asked > 0
            self._problem(call, "unknown" if may_be_done else "failed", "timed out", self._why_late())
        for call in [call for call in self._unsent if now >= call.deadline]:
            self._unsent.remove(call)
            self._problem(call, "failed", "timed out", self._why_late() + "; it was not sent")
        for call in self._sent.values():
            if now >= call.deadline and not call.told:
                self._problem(call, "unknown", "timed out", self._why_late() + "; it may still be done")
        for call in [call for call in self._hand_overs if now >= call.deadline]:
            self._hand_overs.remove(call)
            self._problem(call, "unknown", "timed out", self._why_late())

    def _why_late(self) -> str:
        """For whoever asked: it knows what, and is not told that again."""
        text = f"the name server {self._member.leader} did not answer in time"
        if not self._member.is_listed:
            text = f"{self.turn.node} has not been let into the domain yet"
        return self._trouble.why_unanswered(text)


def _nobody(family: str, code: str, text: str) -> None:
    """A question of the node itself failed with its incarnation, and so did what it was asked for."""
