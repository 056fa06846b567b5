"""The office of name server: what the leader of the domain stream does beyond ordering it.

It begins with a majority of promises (``recovery`` then makes the stream complete), opens when a majority
has the recovered log, and ends when a majority has not answered for a while, when somebody promised a higher
epoch, or when it yields. While it is open it

- calls the nodes and acknowledges their answers: leases (``roll_call``);
- lets nodes in, and declares them down and gone (``roster``);
- orders the commands that nodes submit and tells them what came out;
- answers questions about the directory (``questions``);
- hands over to another voter that is asked for or pinned.
"""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING, Any

from ..links import OFFICE
from ..parameters import Parameters
from ..peer_messages import (
    DOMAIN_STREAM,
    DOMAIN_TOPIC,
    Alive,
    AliveAck,
    Answered,
    Ask,
    Complaint,
    Held,
    LeaderAlive,
    NodeList,
    NodeListAsk,
    Opened,
    Orphan,
    PeerMessage,
    Promised,
    Register,
    Submit,
    SubmitRefused,
    Tell,
    Yield,
)
from ..stream.duplicates import DuplicateFilter, Verdict
from ..stream.entries import Entry
from ..stream.recovery import Phase, Recovery, counting_reports
from ..stream.sequencer import Sequencer
from ..turn import Turn
from ..views import NodeId
from .commands import (
    AnyCommand,
    NodeDown,
    NodeGone,
    NodeUp,
    ViewStarted,
    VoterReplaced,
    decode_command,
    encode_command,
)
from .grants import Grants
from .nodes import UP
from .questions import Questions, answer, needs_proof
from .roll_call import RollCall
from .roster import Roster
from .standing import Standing, priority_of

if TYPE_CHECKING:
    from .voter import Voter


class NameServer:
    """One term of office."""

    def __init__(self, turn: Turn, voter: Voter, recovery: Recovery, parameters: Parameters, rng: Random) -> None:
        self.turn = turn
        self.voter = voter
        self.epoch = recovery.epoch
        self.recovery = recovery
        self.sequencer: Sequencer | None = None
        self.roll = RollCall(parameters, recovery.claimed_at, turn.now)
        self._parameters = parameters
        self._timers = parameters.timers
        self.roster: Roster | None = None  # from opening on
        self.grants: Grants | None = None  # from opening on
        self._questions = Questions()
        self._under_way: set[bytes] = set()
        self._vouched = {turn.node: voter.identity.incarnation}  # voters whose disk is known to be the right one
        for name in counting_reports(turn.node, recovery.reports):
            self._vouched[name] = recovery.incarnations.get(name, voter.identity.incarnation)
        self._call_at = self._tried_at = turn.now
        self._watch_at = math.inf
        self._list_version_called = 0
        self._last_step = turn.now
        self._pinned_not_before = turn.now + parameters.timers.lease

    @property
    def is_open(self) -> bool:
        """Whether the directory here is complete and ordering goes on."""
        return self.sequencer is not None

    @property
    def may_acknowledge(self) -> bool:
        """Whether anything may be told in the name of this office.

        Not before a majority answered a call: promises alone do not keep the voters from electing another one. And
        not under an incarnation that others have declared down: it has to be let in again first.
        """
        me = (self.turn.node, self.voter.identity.incarnation)
        return self.is_open and self.roll.backed_n > 0 and self.voter.directory.nodes.is_up(me)

    def _has_its_state(self, name: str, state_id: str) -> bool:
        """Whether the disk behind a voter's word is the one our log names, be it stable or not."""
        return (name, state_id) in self.voter.voters_in_log()

    # --- Opening and closing ---

    def open(self) -> None:
        """A majority has the recovered log: all of it is stable, and ordering goes on after it."""
        voter, server, parameters = self.voter, self.voter.server, self._parameters
        duplicates = DuplicateFilter(
            {origin: (row.last_n, row.seq) for origin, row in voter.directory.origins.items()},
            parameters.logical_lifetime,
        )
        for seq in range(server.delivered + 1, server.log.last + 1):
            duplicates.note(seq, server.log.entry(seq))
        sequencer = Sequencer(server, self.epoch, parameters.majority, duplicates, self._timers)
        for name, last in self.recovery.opened_by.items():
            sequencer.holds(name, last)
        self.sequencer = sequencer
        directory, me = voter.directory, self.turn.node
        for node in directory.nodes.all():
            if node.status == UP:
                duplicates.welcome((node.name, node.incarnation))
        self.roster = Roster(self.turn, directory, self.roll, parameters, self.epoch, voter.links, self._order)
        self.grants = Grants(
            self.turn,
            directory,
            self._timers,
            lambda: (me, voter.identity.incarnation),
            order=self._order,
            tell=self._tell_node,
        )
        servers = tuple((name, directory.voters.get(name, "")) for name in parameters.all_voters)
        self._order(ViewStarted(self.epoch, me, servers, parameters.majority))
        mine = directory.nodes.get(me)
        if mine is None or mine.incarnation != voter.identity.incarnation or mine.status != UP:
            self.roster.let_in(me, voter.identity.incarnation, self._own_registration())
        self._watch_at = self.turn.now + self._timers.alive_interval
        self.call()

    def _own_registration(self) -> Register:
        parameters = self._parameters
        disk = self.voter.state_id if parameters.durable else ""
        return Register(
            disk, parameters.address, parameters.pinned, priority_of(parameters), parameters.essentials()
        )  # fmt: skip

    def close(self) -> None:
        """Nothing more is done in the name of this office."""
        self.recovery.abandon()
        self.sequencer = None
        self.roster = None
        self.grants = None
        self.voter.links.forget(OFFICE)

    def expire(self) -> None:
        """Leave office if a majority was silent for too long; first of all in every step."""
        now, timers = self.turn.now, self._timers
        gap = now - self._last_step
        self._last_step = now
        if gap > 2 * timers.alive_interval:
            self.roll.pass_over(gap)
        if now >= self.roll.office_until:
            self.turn.mark("leader-unanswered")
            self.voter.resign("no majority answered in time", failed=2)
        elif self.recovery.phase is not Phase.OPEN and now - self.recovery.progress_at > timers.leader_silent:
            self.turn.mark("recovery-stuck")
            self.voter.resign("the recovery of the directory makes no progress", failed=1)

    # --- Ordering ---

    def _order(self, command: AnyCommand) -> None:
        """Order something on our own account, once."""
        body = encode_command(command)
        if self.sequencer is not None and body not in self._under_way:
            self._under_way.add(body)
            self.sequencer.order("", 0, 0, body)
            if isinstance(command, VoterReplaced):
                self.forget(command.name)  # from here on the old disk counts for nothing, and the new one not yet

    def applied(self, seq: int, entry: Entry, outcome: dict[str, Any]) -> None:
        """An entry was applied to the directory here."""
        if not self.is_open:
            return
        if entry.origin:
            if self.may_acknowledge:
                answered = Answered(entry.incarnation, self.epoch, entry.n, outcome)
                self.turn.send(entry.origin, answered, valid_until=self.roll.office_until)
            return
        self._under_way.discard(entry.body)
        command = decode_command(entry.body)
        if isinstance(command, NodeUp):
            self.turn.journal("node_up", epoch=self.epoch, seq=seq, name=command.name, inc=command.incarnation)
            if self.sequencer is not None:
                self.sequencer.origins.welcome((command.name, command.incarnation))
        elif isinstance(command, NodeDown):
            self.turn.journal("node_down", epoch=self.epoch, seq=seq, name=command.name, inc=command.incarnation,
                              early=command.early)  # fmt: skip
        elif isinstance(command, VoterReplaced):
            self.turn.mark("voter-replaced")
            self.recovery.invite()
        elif isinstance(command, NodeGone):
            self.turn.journal("node_gone", epoch=self.epoch, seq=seq, name=command.name, inc=command.incarnation)
            if self.roster is not None:
                self.roster.forget((command.name, command.incarnation))

    def on_submit(self, sender: str, incarnation: int, submit: Submit) -> None:
        """A node submits commands; each is numbered once."""
        sequencer, directory = self.sequencer, self.voter.directory
        if sequencer is None:
            return
        node = directory.nodes.get(sender)
        if node is None or incarnation > node.incarnation:
            return  # it will be let in first and repeats its commands
        origin = (sender, incarnation)
        if node.status != UP or incarnation < node.incarnation:
            self._refuse(origin, submit.first_n, 0, Verdict.TOO_OLD.value)
            return
        for n, body in enumerate(submit.bodies, submit.first_n):
            if not isinstance(body, bytes):
                return  # a command never travels apart
            verdict = sequencer.origins.judge(origin, n, submit.known_seq, sequencer.next_seq)
            if verdict is Verdict.NEXT:
                sequencer.order(sender, incarnation, n, body)
            elif verdict is Verdict.DUPLICATE:
                self._answer_again(origin, n)
            else:
                self._refuse(origin, n, sequencer.origins.last_n(origin), verdict.value)
                return

    def _answer_again(self, origin: NodeId, n: int) -> None:
        """A repeated command: the same answer, if it was applied already."""
        directory = self.voter.directory
        outcome = directory.answer_for(origin, n)
        row = directory.origins.get(origin)
        if outcome is None and row is not None and n <= row.last_n:
            self._refuse(origin, n, row.last_n, "forgotten")
        elif outcome is not None and self.may_acknowledge:
            self.turn.mark("answered-again")
            answered = Answered(origin[1], self.epoch, n, outcome)
            self.turn.send(origin[0], answered, valid_until=self.roll.office_until)

    def _refuse(self, origin: NodeId, n: int, last_n: int, reason: str) -> None:
        if self.may_acknowledge:
            refusal = SubmitRefused(DOMAIN_STREAM, origin[1], n, last_n, reason)
            self.turn.send(origin[0], refusal, valid_until=self.roll.office_until)

    # --- Calls and answers ---

    def call(self) -> None:
        """Call the nodes, unless our own disk hangs: a leader that cannot write falls silent."""
        now = self.turn.now
        passed, self._tried_at = min(now - self._tried_at, self._timers.alive_interval), now
        self._call_at = now + self._timers.alive_interval
        if self.turn.oldest_write_age >= self._timers.leader_silent:
            self.turn.mark("leader-falls-silent")
            self.roll.pass_over(passed)  # nobody can answer a call that was not made; each moment is passed over once
            return
        version = self.voter.directory.list_version if self.is_open else 0
        stable = self.voter.server.stable
        self._list_version_called = version
        until = self.roll.office_until
        self.turn.multicast(DOMAIN_TOPIC, LeaderAlive(self.epoch, self.roll.call(now), version, stable), until)

    def on_alive(self, sender: str, incarnation: int, alive: Alive) -> None:
        """A node answers a call."""
        if alive.epoch != self.epoch:
            return
        node_id = (sender, incarnation)
        backs = (
            sender in self._parameters.all_voters
            and self.roll.proves(sender, alive.echo)
            and self._has_its_state(sender, alive.state_id)
        )
        if backs:
            self._vouched[sender] = incarnation
        counts = self.roll.answer(node_id, alive.echo, backs, self.turn.now)
        if not counts or not self.may_acknowledge or self.roster is None:
            return
        if self.voter.directory.nodes.is_up(node_id) and not self._is_declared_down(node_id):
            self.roster.on_sign_of_life(node_id)
            ack = AliveAck(incarnation, self.epoch, alive.count, self.roll.good_for(self.turn.now))
            self.turn.send(sender, ack, valid_until=self.roll.office_until)
            if alive.groups and self.grants is not None:
                self.grants.on_carried(node_id, alive.groups)

    def _is_declared_down(self, node_id: NodeId) -> bool:
        """Whether that is ordered, and not applied yet.

        Whoever is in office next may find the entry: then the node is down for all, and only the node, which was given
        a lease now, would not know it.
        """
        downs = (encode_command(NodeDown(*node_id, early)) for early in (False, True))
        return bool(self._under_way) and any(down in self._under_way for down in downs)

    def _tell_node(self, name: str, message: PeerMessage) -> None:
        """Say something in the name of this office."""
        if self.may_acknowledge:
            self.turn.send(name, message, valid_until=self.roll.office_until)

    def on_complaint(self, sender: str, incarnation: int, complaint: Complaint) -> None:
        """A server does not hear the leader of its group."""
        if self.grants is not None and self.may_acknowledge:
            self.grants.on_complaint((sender, incarnation), complaint.group, complaint.epoch, unable=complaint.unable)

    def on_orphan(self, sender: str, incarnation: int, orphan: Orphan) -> None:
        """A receiver has lost all its servers."""
        if self.grants is not None and self.may_acknowledge:
            self.grants.on_orphan((sender, incarnation), orphan.group, orphan.epoch, orphan.delivered)

    def on_node_list_ask(self, sender: str, ask: NodeListAsk) -> None:
        """A node wants to know what has changed."""
        if self.roster is not None:
            directory = self.voter.directory
            node = directory.nodes.get(sender)
            if node is not None:
                self.roster.reach(sender, node.address)  # it may have been down when this office opened
            entries = directory.node_entries(ask.have)
            options = directory.settings.options_since(ask.have)
            changes = NodeList(self.epoch, ask.have, directory.list_version, entries, options)
            self.turn.send(sender, changes, valid_until=self.roll.office_until)

    def forget(self, name: str) -> None:
        """A node shows a new incarnation: it has to say anew what it holds."""
        self._vouched.pop(name, None)
        self.roll.forget(name)
        self.recovery.forget(name)
        if self.sequencer is not None:
            self.sequencer.forget(name)

    # --- Questions ---

    def on_ask(self, sender: str, incarnation: int, ask: Ask) -> None:
        """A question; some have to wait for proof that nobody else is name server by now."""
        if not self.may_acknowledge:
            return
        asker = (sender, incarnation)
        if ask.what == "hand-over":
            self._hand_over(asker, ask)
        elif needs_proof(self.voter.directory, ask):
            self._questions.wait(asker, ask, after=self.roll.n + 1)
        else:
            self._tell(asker, ask, *answer(self.voter.directory, ask, self._holds_no_lease))

    def _tell(self, asker: NodeId, ask: Ask, content: dict[str, Any], problem: str) -> None:
        tell = Tell(asker[1], self.epoch, ask.number, content, problem)
        self.turn.send(asker[0], tell, valid_until=self.roll.office_until)

    def _holds_no_lease(self, node_id: NodeId) -> bool:
        return self.roll.overdue(node_id, self.turn.now)

    def _answer_questions(self) -> None:
        for asker, ask in self._questions.ready(self.roll.backed_n):
            self._tell(asker, ask, *answer(self.voter.directory, ask, self._holds_no_lease))
        if self._questions.newest_call_needed() > self.roll.n == self.roll.backed_n:
            self.call()  # one such call at a time: a flood of questions must not become a flood of calls

    # --- Handing over ---

    def _hand_over(self, asker: NodeId, ask: Ask) -> None:
        """Yield, if the successor may be one. While it only lags we say nothing: the question is repeated."""
        to = ask.key
        problem = "" if to == self.turn.node else self._problem_with_successor(to)
        if not problem and to != self.turn.node and not self._has_caught_up(to):
            return
        self._tell(asker, ask, {"yielded": not problem}, problem)
        if not problem and to != self.turn.node:
            self._yield_to(to)

    def hand_over(self) -> bool:
        """Yield to the best voter that has caught up; whether there is any that could follow, now or later."""
        heirs = self._heirs()
        ready = [heir for heir in heirs if self._has_caught_up(heir.name)]
        if ready:
            best = ready[0]
            for heir in ready:
                best = heir if heir.better_than(best) else best
            self._yield_to(best.name)
        return bool(heirs)

    @property
    def has_heirs(self) -> bool:
        """Whether another voter could follow us in office."""
        return bool(self._heirs())

    def _heirs(self) -> list[Standing]:
        others = [name for name in self._parameters.all_voters if name != self.turn.node]
        able = [self.voter.directory.nodes.get(name) for name in others if not self._problem_with_successor(name)]
        return [Standing(node.name, 0, node.pinned, node.priority) for node in able if node is not None]

    def _has_caught_up(self, name: str) -> bool:
        return self.sequencer is not None and self.sequencer.held_by(name) >= self.voter.server.log.last

    def _problem_with_successor(self, name: str) -> str:
        node = self.voter.directory.nodes.get(name)
        if name not in self._parameters.all_voters:
            return f"{name} is no voter; the voters are {', '.join(self._parameters.all_voters)}"
        if node is None or node.status != UP:
            return f"{name} is not up"
        if node.priority < 0:
            return f"{name} is configured never to be name server"
        return ""

    def _yield_to(self, name: str) -> None:
        for other in self._parameters.all_voters:
            if other != self.turn.node:
                self.turn.send(other, Yield(self.epoch, name))
        self.voter.yield_office(name)

    def _yield_to_pinned(self) -> None:
        if self._parameters.pinned or self.turn.now < self._pinned_not_before:
            return
        for node in self.voter.directory.nodes.all():
            if not node.pinned or self._problem_with_successor(node.name):
                continue
            if self._has_caught_up(node.name):
                self.turn.mark("yields-to-pinned")
                self._yield_to(node.name)
                return

    # --- Messages of the recovery, time ---

    def on_promised(self, sender: str, incarnation: int, report: Promised) -> None:
        """A voter that was away promises us its epoch."""
        if self._has_its_state(sender, report.state_id):
            self._vouched[sender] = incarnation  # it promised because our claim admits it, or because it holds a log
            self.recovery.on_promised(sender, incarnation, report)

    def on_opened(self, sender: str, incarnation: int, opened: Opened) -> None:
        """A voter has the log of our epoch."""
        self.recovery.on_opened(sender, incarnation, opened)
        if self.sequencer is not None and opened.epoch == self.epoch and self._vouched.get(sender) == incarnation:
            self.sequencer.holds(sender, opened.last)

    def on_held(self, sender: str, incarnation: int, held: Held) -> None:
        """A voter says what it has."""
        if self.sequencer is not None and self._vouched.get(sender) == incarnation:
            self.sequencer.on_held(sender, held)

    @property
    def deadline(self) -> float:
        """When something is to be done without a message."""
        at = min(self._call_at, self._watch_at, self.recovery.deadline, self.roll.office_until)
        if self.grants is not None:
            at = min(at, self.grants.deadline)
        return min(at, self.sequencer.deadline) if self.sequencer is not None else at

    def tick(self) -> None:
        """Time has passed."""
        now = self.turn.now
        self.recovery.tick()
        if now >= self._call_at:
            self.call()
        if self.sequencer is not None and self.roster is not None:
            self.sequencer.tick()
            if now >= self._watch_at:
                self.roster.watch()
                self._watch_at = min(now + self._timers.alive_interval, self.roster.next_overdue())
                if self.grants is not None and self.may_acknowledge:
                    self.grants.watch()
                self._yield_to_pinned()

    def flush(self) -> None:
        """The end of a step."""
        if self.sequencer is None:
            return
        self.sequencer.flush()
        self.sequencer.tell_stable()
        if self._questions.waiting:
            self._answer_questions()
        if self.grants is not None:
            self.grants.look()
        if self.voter.directory.list_version != self._list_version_called:
            self._call_at = min(self._call_at, self.turn.now + self._timers.alive_interval / 8)
