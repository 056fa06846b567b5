"""A process group as a function of its stream: providers, state value, and the ballot that is running.

A, B and C carry the group and see the same entries. Each applies them to one of these, and so they agree, without a
word more, on who is a provider, whose turn it is, who votes and how it ended. What only the leader knows, the votes of
the running phase, becomes an entry when the phase ends; what it means is decided here, by everybody.

The order of things (GS-28): one ballot at a time. When none runs, it is the turn of failures, then of joins, then of
the rest as they came. A death is shown at once (``Failing``), whatever runs; the failure has its turn like the rest.
Plain messages wait for nothing.

Rules that hold here and are checked here (GS-30): nobody leaves who did not join, or twice; nobody joins while somebody
who failed waits to be dealt with, be it for its batch; who is failing neither votes nor proposes. Nobody joins whose
node does not carry the group: it has left meanwhile, and nobody would ever say that its process has gone, too.

In an *exclusive* group a provider may hold something alone, and a node that is down may not know it yet. So who failed
with its node is shown as failing at once, and is listed until the leader rules that the node is gone; a process whose
own node saw it end holds nothing, and has its turn at once.

With its last provider a group ends, unless somebody who waited to join has its turn with the same entry: nothing that
is ordered behind that entry means anything. Who comes too late is told so, and finds another group of that name.

Nothing here has a clock, and no dict is iterated in an order that depends on anything but the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from groupsvc.errors import PeerProtocolError
from groupsvc.wire.limits import PROVIDERS_MAX
from groupsvc.wire.notices import (
    AnyNotice,
    AttributesChanged,
    AttributeValue,
    Cast,
    Cause,
    DefaultVote,
    Emptied,
    Ended,
    Failing,
    Fenced,
    GroupView,
    Joined,
    Kind,
    Left,
    Message,
    Outcome,
    PhaseClosed,
    PhaseOpened,
    Provider,
    ProviderId,
    Reason,
    Refusal,
    Refused,
    Responsive,
    StateChanged,
    Subject,
)

from ..invariants import invariant
from ..nodegroups.controls import AnyControl, NodeInserted, NodeRemoved, NodesFailed, ViewStarted
from ..views import NodeId
from . import commands as cmd
from .archive import Archive
from .ballots import PHASES_MAX, Ballot, Verdict, reason_of, verdict_of
from .commands import BY_DEFAULT, ONE_PHASE, NodesGone, PhaseEnded, RoundEnded, WindowEnded
from .ledger import Ledger
from .pending import Pending, fitting
from .rounds import Rounds
from .rules import Rules
from .stored_group import StoredGroup, decode_group, encode_group

QUEUE_MAX = 10_000
"""Proposals that wait for their turn, joins apart; more are refused. Nobody should wait behind so many."""

QUEUE_BYTES_MAX = 16 * 1024 * 1024
"""What is proposed by them, in bytes: every member keeps it, and so does every checkpoint."""


class ProcessGroup:
    """The group after the entry that was applied last."""

    def __init__(self, attributes: Mapping[str, AttributeValue]) -> None:
        self.rules = Rules(attributes)
        self._founding = dict(attributes)  # as whoever formed the group settled them
        self.seq = 0
        self.nodes: dict[NodeId, None] = {}  # that carry the group
        self.providers: dict[ProviderId, Provider] = {}  # oldest first
        self.failing: dict[ProviderId, tuple[Cause, int]] = {}  # and the entry that said so
        self.held_back: dict[ProviderId, None] = {}  # failing, and not dealt with before their nodes are gone
        self.unresponsive: dict[ProviderId, int] = {}  # and the entry that said so
        self.state = b""
        self.state_version = 0
        self.default_vote: DefaultVote = self.rules.default_vote
        self.queue: list[Pending] = []
        self.ballot: Ballot | None = None
        self.fence = 0
        self.quorum_lost_seq = 0  # the newest view that may lack what was delivered
        self.ready: dict[Literal["joins", "leaves"], int] = {"joins": 0, "leaves": 0}  # what was batched until there
        self.ledger = Ledger()
        self.archive = Archive() if self.rules.has_machines else None
        self.rounds = Rounds()
        self._told: list[AnyNotice] = []
        self.has_ended = False  # its last provider has left, and nobody joined with the same entry
        self._had_ended = False  # before this entry

    @property
    def view(self) -> GroupView:
        """Everything a member sees, as of now."""
        return GroupView(
            self.seq, self.fence, tuple(self.providers.values()), self.state, self.state_version, self.default_vote,
            self.quorum_lost_seq,
        )  # fmt: skip

    @property
    def living(self) -> int:
        """How many providers are not known to be no more."""
        return len(self.providers) - len(self.failing)

    # --- Entries ---

    def apply(self, seq: int, origin: NodeId, body: bytes) -> list[AnyNotice]:
        """Entry ``seq`` was submitted by this node. One that cannot be read changes nothing, for all alike."""
        self._begin(seq)
        if cmd.is_message(body):
            number, payload = cmd.decode_message(body)
            if self._is_heard(sender := (*origin, number)):
                self._message(sender, payload)
            return self._end()
        try:
            command = cmd.decode_command(body)
        except PeerProtocolError:
            return self._end()
        if isinstance(command, cmd.ProvidersFailed):
            for number, cause in command.failures:
                self._is_no_more((*origin, number), cause)
        elif isinstance(command, cmd.Responds):
            self._responds((*origin, command.provider), does=command.does)
        elif isinstance(command, cmd.StoreBlock | cmd.SealCheckpoint):
            self._take_checkpoint((*origin, command.provider), command)
        elif isinstance(command, cmd.Bring):
            if self.has_a_say(provider := (*origin, command.provider)):
                self.rounds.bring(provider, command.barrier, command.number, command.payload)
        elif isinstance(command, cmd.Withdraw):
            self._refuse([one for one in self.queue if one.id == (*origin, command.number)], "withdrawn")
        else:
            self._propose(Pending((*origin, command.number), command, seq))
        return self._end()

    def hear(self, seq: int, count: int, sender: ProviderId) -> bool:
        """Entries from ``seq`` on are so many plain messages of one sender; whether they are told to the providers.

        The same as to ``apply`` them one by one, at less cost: they change nothing, and it is nobody's turn by them.
        """
        invariant(seq > self.seq, f"entry {seq} is applied after {self.seq}")
        self.seq = seq + count - 1
        return self._is_heard(sender)

    def keep(self, seq: int, sender: ProviderId, payloads: Sequence[bytes]) -> None:
        """The same messages once more, with what they say: who joins later begins with them."""
        if self.archive is not None:
            self.archive.keep(seq, sender, payloads, self.rules.checkpoint_every)

    def rule(self, seq: int, body: bytes) -> list[AnyNotice]:
        """Entry ``seq`` is a ruling of the leader; one that fits no longer changes nothing."""
        self._begin(seq)
        ruling = cmd.decode_ruling(body)
        if isinstance(ruling, WindowEnded):
            self.ready[ruling.what] = max(self.ready[ruling.what], ruling.upto)
        elif isinstance(ruling, NodesGone):
            self.held_back = {one: None for one in self.held_back if one[:2] not in ruling.nodes}
        elif isinstance(ruling, RoundEnded):
            living = {one: None for one in self.providers if one not in self.failing}
            self.rounds.apply(seq, ruling, living, self.unresponsive)
        else:
            self._phase_ended(ruling)
        return self._end()

    def control(self, seq: int, control: AnyControl) -> list[AnyNotice]:
        """Entry ``seq`` is about views and nodes."""
        self._begin(seq)
        if isinstance(control, ViewStarted):
            self.fence = max(control.fence, self.fence + 1)  # more may have come and gone than a view has numbers for
            self.quorum_lost_seq = seq if control.tail_may_be_lost else self.quorum_lost_seq
            self._told.append(Fenced(seq, self.fence, control.tail_may_be_lost))
            if control.tail_may_be_lost or self.rules.is_fast:
                self.rounds.go_on_from(self.fence)
        elif isinstance(control, NodeInserted):
            self.nodes[control.node] = None
        elif isinstance(control, NodesFailed):
            self._nodes_are_no_more(control.nodes, may_hold=self.rules.exclusive)
        elif isinstance(control, NodeRemoved):
            self._nodes_are_no_more((control.node,), may_hold=False)  # it left by itself, and knows
        return self._end()

    def _begin(self, seq: int) -> None:
        invariant(seq > self.seq, f"entry {seq} is applied after {self.seq}")
        self.seq = seq
        self._had_ended = self.has_ended

    def _end(self) -> list[AnyNotice]:
        self._take_turns()
        told, self._told = self._told, []
        return told

    # --- Checkpoints ---

    def snapshot(self) -> bytes:
        """Everything, as bytes: the same at all who have applied the same entries."""
        silent = sorted(self.unresponsive)
        stored = StoredGroup(
            self.rules.attributes, self.seq, tuple(self.providers.values()), tuple(self.failing.items()),
            tuple(silent), self.state, self.state_version, self.default_vote, tuple(self.queue),
            self.ballot, self.fence, self.ready["joins"], self.ready["leaves"], self.ledger.outcomes,
            self.has_ended, self._founding, tuple(self.held_back),
            None if self.archive is None else self.archive.stored(), tuple(self.nodes),
            tuple(self.unresponsive[one] for one in silent), self.rounds.stored(), self.quorum_lost_seq,
        )  # fmt: skip
        return encode_group(stored)

    def restore(self, state: bytes) -> None:
        """Become what a snapshot was taken of."""
        stored = decode_group(state)
        self.rules = Rules(stored.attributes)
        self.seq, self.fence, self.quorum_lost_seq = stored.seq, stored.fence, stored.quorum_lost_seq
        self.providers = {provider.id: provider for provider in stored.providers}
        self.failing = dict(stored.failing)
        self.unresponsive = {
            **dict.fromkeys(stored.unresponsive, 0),
            **dict(zip(stored.unresponsive, stored.unresponsive_since, strict=False)),
        }
        self.state, self.state_version, self.default_vote = stored.state, stored.state_version, stored.default_vote
        self.queue, self.ballot = list(stored.queue), stored.ballot
        self.ready = {"joins": stored.joins_ready, "leaves": stored.leaves_ready}
        self.ledger = Ledger(stored.outcomes)
        self.has_ended = stored.has_ended
        self._founding = stored.attributes if stored.founding is None else stored.founding
        self.held_back = dict.fromkeys(stored.held_back)
        self.archive = None if stored.archive is None else Archive.of(stored.archive)
        self.nodes = dict.fromkeys(stored.nodes)
        self.rounds = Rounds(stored.rounds)

    # --- Messages, and what machines make of them ---

    def _message(self, sender: ProviderId, payload: bytes) -> None:
        self._told.append(Message(self.seq, sender, payload))
        self.keep(self.seq, sender, (payload,))

    def _take_checkpoint(self, provider: ProviderId, command: cmd.StoreBlock | cmd.SealCheckpoint) -> None:
        if self.archive is None or not self.has_a_say(provider):
            return
        if isinstance(command, cmd.StoreBlock):
            self.archive.take_block(self.seq, provider, command.at, command.index, command.block)
        else:
            self.archive.seal(self.seq, provider, command.at, command.blocks)

    @property
    def scribe_turns(self) -> int:
        """How many providers should have been asked for a checkpoint of their machines since the newest."""
        return 0 if self.archive is None else self.archive.turns(self.rules.checkpoint_every)

    def scribe(self, turn: int) -> ProviderId | None:
        """Whose turn it is: the oldest living provider first, then the next one, and round again."""
        living = [one for one in self.providers if one not in self.failing and one not in self.unresponsive]
        return living[(turn - 1) % len(living)] if living else None

    # --- Deaths ---

    def _is_heard(self, sender: ProviderId) -> bool:
        return self.has_a_say(sender) or (sender[2] == 0 and not self.has_ended)  # 0: of somebody who is no member

    def has_a_say(self, provider: ProviderId) -> bool:
        """Whether this is a provider that is not known to be no more."""
        return provider in self.providers and provider not in self.failing

    def _is_no_more(self, process: ProviderId, cause: Cause) -> None:
        """A process has ended: provider, joiner, or somebody we do not know."""
        self._refuse([one for one in self.queue if one.proposer == process], "not_a_member")
        ballot = self.ballot
        if process in self.providers and process not in self.failing:
            self.failing[process] = (cause, self.seq)
            self.rounds.died(self.seq, process)
            if self.archive is not None:
                self.archive.forget(process)
            self._told.append(Failing(self.seq, process, cause))
        elif (
            ballot is not None
            and process not in ballot.gone  # its process may have ended before its node
            and any(one.id == process for one in ballot.subject.joining)
        ):
            ballot.gone = (*ballot.gone, process)
            joining = [one.id for one in ballot.subject.joining]
            proposal = ballot.subject.proposals[joining.index(process)]
            self._told.append(Refused(self.seq, proposal, "withdrawn"))  # whatever becomes of the rest of its batch
            if len(ballot.gone) == len(ballot.subject.joining):
                self._conclude(ballot, approved=False, reason="default_reject")

    def _nodes_are_no_more(self, nodes: tuple[NodeId, ...], *, may_hold: bool) -> None:
        self.nodes = {node: None for node in self.nodes if node not in nodes}
        for process in self.processes_of(nodes):
            if may_hold and self.has_a_say(process):
                self.held_back[process] = None
            self._is_no_more(process, "node_failure")

    def processes_of(self, nodes: tuple[NodeId, ...]) -> list[ProviderId]:
        """Who of these nodes is a provider, or wants to be."""
        joining = self.ballot.subject.joining if self.ballot is not None else ()
        waiting = (one.proposer for one in self.queue)
        known = dict.fromkeys((*self.providers, *(one.id for one in joining), *waiting))
        return [one for one in known if one[:2] in nodes]

    def _responds(self, provider: ProviderId, *, does: bool) -> None:
        if self.has_a_say(provider) and does == (provider in self.unresponsive):
            if does:
                del self.unresponsive[provider]
            else:
                self.unresponsive[provider] = self.seq
            self._told.append(Responsive(self.seq, provider, does))

    # --- The queue ---

    def _propose(self, pending: Pending) -> None:
        is_join = isinstance(pending.command, cmd.Join)
        joins = sum(isinstance(one.command, cmd.Join) for one in self.queue)
        listed = len(self.providers) + (len(self.ballot.subject.joining) if self.ballot is not None else 0)
        size = pending.size
        is_too_much = size > 0 and size + sum(one.size for one in self.queue) > QUEUE_BYTES_MAX
        if is_join and self.has_ended:
            self._told.append(Refused(self.seq, pending.id, "ended"))
        elif is_join and pending.id[:2] not in self.nodes:
            self._told.append(Refused(self.seq, pending.id, "not_a_member"))
        elif is_join and self._has_come(pending.proposer):
            self._told.append(Refused(self.seq, pending.id, "busy"))  # a node that errs must not end all the others
        elif is_too_much or (is_join and listed + joins >= PROVIDERS_MAX):
            self._told.append(Refused(self.seq, pending.id, "full"))
        elif is_join:
            self.queue.append(pending)
        elif not self.has_a_say(pending.proposer):
            self._told.append(Refused(self.seq, pending.id, "not_a_member"))
        elif pending.fails_if_busy and (self.ballot is not None or self._next_kind() is not None):
            self._told.append(Refused(self.seq, pending.id, "busy"))
        elif len(self.queue) - joins >= QUEUE_MAX:
            self._told.append(Refused(self.seq, pending.id, "full"))
        else:
            self.queue.append(pending)

    def _has_come(self, process: ProviderId) -> bool:
        """Whether it is a provider, or its join is waiting or being voted on."""
        joining = self.ballot.subject.joining if self.ballot is not None else ()
        waiting = (one.proposer for one in self.queue if isinstance(one.command, cmd.Join))
        return process in self.providers or any(one.id == process for one in joining) or process in waiting

    def _refuse(self, refused: list[Pending], why: Refusal) -> None:
        for pending in refused:
            self.queue.remove(pending)
            self._told.append(Refused(self.seq, pending.id, why))

    def _failures(self) -> list[ProviderId]:
        """Whose failure may have its turn: one, or if they are batched, all that came until the window ended."""
        held_back = self.held_back
        if self.rules.batches("leaves"):
            ready = self.ready["leaves"]
            return [one for one, (_, seq) in self.failing.items() if seq <= ready and one not in held_back]
        return next(([one] for one in self.failing if one not in held_back), [])

    def _joins(self) -> list[Pending]:
        """Who may join now: nobody, as long as somebody who failed is still listed (GS-30)."""
        if self.failing:
            return []
        joins = [one for one in self.queue if isinstance(one.command, cmd.Join)]
        if self.rules.batches("joins") and self.providers:
            return fitting(one for one in joins if one.seq <= self.ready["joins"])
        return joins[:1]

    def _rest(self) -> list[Pending]:
        """The oldest of the others; with it, if leaves are batched and it is one, all leaves of that window."""
        batches = self.rules.batches("leaves")
        for first in self.queue:
            if isinstance(first.command, cmd.Leave) and batches:
                if first.seq <= self.ready["leaves"]:
                    leaves = [one for one in self.queue if isinstance(one.command, cmd.Leave)]
                    return [one for one in leaves if one.seq <= self.ready["leaves"]]
            elif not isinstance(first.command, cmd.Join):
                return [first]
        return []

    def _next_kind(self) -> Kind | None:
        """What would have its turn now."""
        if self._failures():
            return "failure"
        if self._joins():
            return "join"
        rest = self._rest()
        return rest[0].kind if rest else None

    def _take_turns(self) -> None:
        """Open ballots, and decide what needs none, until one runs or nobody waits."""
        while self.ballot is None:
            if failures := self._failures():
                self._open_failure(failures)
            elif joins := self._joins():
                self._open_joins(joins)
            elif rest := self._rest():
                self._open_rest(rest)
            else:
                break
        if self.has_ended and not self._had_ended:
            self._told.append(Emptied(self.seq))

    # --- Opening ---

    def _open_failure(self, failures: list[ProviderId]) -> None:
        causes = {self.failing[one][0] for one in failures}
        cause = causes.pop() if len(causes) == 1 else "failure"
        subject = Subject(kind="failure", leaving=tuple(failures), cause=cause)
        self._open(subject, BY_DEFAULT, BY_DEFAULT)

    def _open_joins(self, joins: list[Pending]) -> None:
        invariant(not self.failing, "somebody joins while a failure waits for its turn")
        for pending in joins:
            self.queue.remove(pending)
        joining = []
        for pending in joins:
            assert isinstance(pending.command, cmd.Join)
            joining.append(Provider(pending.proposer, pending.command.name, pending.command.data, self.seq))
        proposals = tuple(pending.id for pending in joins)
        self._open(Subject(kind="join", proposals=proposals, joining=tuple(joining)), BY_DEFAULT, BY_DEFAULT)

    def _open_rest(self, rest: list[Pending]) -> None:
        first, command = rest[0], rest[0].command
        if isinstance(command, cmd.ChangeState) and command.if_version not in (BY_DEFAULT, self.state_version):
            self._refuse([first], "stale_version")
            return
        targets: tuple[ProviderId, ...] = ()
        if isinstance(command, cmd.Expel):
            targets = tuple(one for one in dict.fromkeys(command.targets) if one in self.providers)
            if not targets:
                self._refuse([first], "not_a_member")
                return
        for pending in rest:
            self.queue.remove(pending)
        subject = Subject(
            kind=first.kind, proposals=tuple(one.id for one in rest),
            proposer=first.proposer if len(rest) == 1 else None,
        )  # fmt: skip
        match command:
            case cmd.Leave():
                codes = {one.proposer: one.command.code for one in reversed(rest) if isinstance(one.command, cmd.Leave)}
                leaving = tuple(dict.fromkeys(one.proposer for one in rest))
                is_same = len(set(codes.values())) == 1
                subject = replace(
                    subject, leaving=leaving, cause="leave", code=command.code if is_same else 0,
                    codes=() if is_same else tuple(codes[one] for one in leaving),
                )  # fmt: skip
            case cmd.Expel():
                subject = replace(subject, leaving=targets, cause="expelled", reason=command.reason)
            case cmd.ChangeState():
                subject = replace(subject, state=command.value, if_version=command.if_version)
            case cmd.SendMessage():
                subject = replace(subject, payload=command.payload)
            case cmd.ChangeAttributes():
                subject = replace(subject, changes=tuple(sorted(command.changes.items())))
        self._open(subject, command.phases, command.time_limit)

    def _open(self, subject: Subject, phases: int, time_limit: float) -> None:
        ballot = Ballot(
            id=self.seq, subject=subject, state=subject.state, electorate=(),
            phases=self.rules.phases(subject.kind) if phases == BY_DEFAULT else min(phases, PHASES_MAX),
            time_limit=self.rules.time_limit if time_limit == BY_DEFAULT else time_limit,
        )  # fmt: skip
        self.ballot = ballot
        ballot.electorate = self._electorate(subject)
        if ballot.phases == ONE_PHASE or not ballot.electorate:
            self._conclude(ballot, approved=True, reason="one_phase")
        else:
            self._open_phase(ballot)

    def _electorate(self, subject: Subject) -> tuple[ProviderId, ...]:
        """Who votes: the leaver too, those who are to be expelled not."""
        without = subject.leaving if subject.kind == "expel" else ()
        return tuple(one for one in self.providers if one not in self.failing and one not in without)

    def _open_phase(self, ballot: Ballot) -> None:
        subject = replace(ballot.subject, state=ballot.state)
        opened = PhaseOpened(
            self.seq, ballot=ballot.id, phase=ballot.phase, subject=subject, electorate=ballot.electorate,
            time_limit=ballot.time_limit, messages=ballot.messages,
        )  # fmt: skip
        self._told.append(opened)

    # --- Deciding ---

    def _phase_ended(self, ruling: PhaseEnded) -> None:
        ballot = self.ballot
        if ballot is None or (ruling.ballot, ruling.phase) != (ballot.id, ballot.phase):
            return
        invariant(
            ballot.electorate == tuple(cast.provider for cast in ruling.votes),
            f"the votes in phase {ballot.phase} of ballot {ballot.id} are not those of its electorate",
        )
        ballot.heard(ruling.phase, ruling.messages)
        if ruling.state is not None:
            ballot.state = ruling.state[1]
        if ruling.default_vote is not None:
            self.default_vote = ruling.default_vote
        verdict = verdict_of((cast.vote for cast in ruling.votes), ballot.phase, ballot.phases)
        if verdict is not Verdict.CONTINUES:
            approved = verdict is Verdict.APPROVED
            reason = reason_of(ruling.votes, ballot.defaults, approved=approved)
            self._conclude(ballot, approved=approved, reason=reason, votes=ruling.votes)
            return
        closed = PhaseClosed(
            self.seq, ballot=ballot.id, phase=ballot.phase, votes=ruling.votes, default_vote=self.default_vote
        )
        self._told.append(closed)
        ballot.led_on(ruling.votes)
        ballot.electorate = self._electorate(ballot.subject)
        if ballot.electorate:
            self._open_phase(ballot)
        else:
            self._conclude(ballot, approved=True, reason="default_approve")  # nobody is left who could object

    def _conclude(self, ballot: Ballot, *, approved: bool, reason: Reason, votes: tuple[Cast, ...] = ()) -> None:
        self.ballot = None
        outcome = Outcome(
            ballot=ballot.id, subject=replace(ballot.subject, state=ballot.state), approved=approved,
            phases=ballot.phase, reason=reason, votes=votes, messages=ballot.messages, left_out=ballot.gone,
            defaults=ballot.defaults,
        )  # fmt: skip
        subject = ballot.subject
        if approved:
            self._take_effect(ballot)
        if subject.kind == "failure" or (approved and subject.kind in ("leave", "expel")):
            self._remove(subject)  # the dead stay removed, whatever the vote
        self.ledger.note(self.seq, outcome)
        self._told.append(Ended(self.seq, outcome, self.default_vote))

    def _take_effect(self, ballot: Ballot) -> None:
        subject = ballot.subject
        if subject.kind == "join":
            self._admit(tuple(one for one in subject.joining if one.id not in ballot.gone))
        elif subject.kind == "message":
            assert subject.proposer is not None
            self._message(subject.proposer, subject.payload)
        elif subject.kind == "attributes":
            self.rules.attributes.update(subject.changes)
            if any(name == "default_vote" for name, _ in subject.changes):
                self.default_vote = self.rules.default_vote
            self._told.append(AttributesChanged(self.seq, subject.changes))
        if ballot.state is not None:
            self.state = ballot.state
            self.state_version += 1
            self._told.append(StateChanged(self.seq, self.state, self.state_version))

    def _admit(self, joining: tuple[Provider, ...]) -> None:
        for provider in joining:
            invariant(provider.id not in self.providers, f"{provider.id} joins and is a provider already")
            self.providers[provider.id] = replace(provider, joined_seq=self.seq)
        self.has_ended = False
        self.fence += 1
        self._told.append(Joined(self.seq, tuple(self.providers[one.id] for one in joining), self.fence))

    def _remove(self, subject: Subject) -> None:
        leaving = subject.leaving
        codes = dict(zip(subject.leaving, subject.codes, strict=False))
        alike: dict[tuple[Cause, int], list[ProviderId]] = {}  # one notice for all who leave in the same way
        for provider in leaving:  # one ballot runs at a time, and only ballots remove anybody
            invariant(provider in self.providers, f"{provider} leaves and is no provider, or not any more")
            cause = self.failing[provider][0] if subject.kind == "failure" else subject.cause
            assert cause is not None
            alike.setdefault((cause, codes.get(provider, subject.code)), []).append(provider)
            del self.providers[provider]
            self.failing.pop(provider, None)
            self.held_back.pop(provider, None)
            self.unresponsive.pop(provider, None)
            self.rounds.is_out(provider)
            if self.archive is not None:
                self.archive.forget(provider)
        if leaving:
            self.fence += 1
        was_cut_off = all(cause == "node_failure" for cause, _ in alike)
        if not self.providers and not (self.rules.durable and was_cut_off):  # what is on disks waits for the nodes
            # All of it was kept as long as somebody was there, and so was what they had changed.
            self.rules = Rules(self._founding)
            self.default_vote = self.rules.default_vote
            self.archive = Archive(self.seq) if self.rules.has_machines else None
            self.rounds.start_again()
            self.has_ended = True
        for (cause, code), providers in alike.items():
            self._told.append(Left(self.seq, tuple(providers), cause, self.fence, code, subject.reason))
        if self.has_ended and not self.providers and self.state:
            # A version stands for one value for ever: who waited to join, and gets in now, goes on counting.
            self.state, self.state_version = b"", self.state_version + 1
            self._told.append(StateChanged(self.seq, self.state, self.state_version))
        self._refuse([one for one in self.queue if one.proposer in leaving], "not_a_member")
