"""A voter: holds the directory, takes part in elections, and may be the name server.

A voter wears several hats, each an object of its own: the *server* that holds the domain stream, the
*directory* that its entries add up to, the *election*, and, while it leads, the *office* of name server. A
voter whose state directory is new is *blank*: it has forgotten what it once promised and held, so it must
neither promise nor hold. It follows the stream as a *receiver* until the entry arrives that admits its new
state directory (``VoterReplaced``); then it becomes a server.

The exception is the very first formation, when all listed voters are blank and answer: then nothing was
promised to anybody. Their state ids are written into the first entry, and a claim shows them, so that a
voter that missed the opening still knows that it belongs.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ..identity import Identity
from ..invariants import invariant
from ..parameters import Parameters
from ..peer_messages import (
    DOMAIN_STREAM,
    Beat,
    Canvass,
    Claim,
    Held,
    LeaderAlive,
    NodeEntry,
    Open,
    Opened,
    Order,
    PeerMessage,
    Promised,
    Refused,
    Repair,
    RepairAsk,
    Support,
    Yield,
)
from ..records import NO_DOMAIN, CheckpointRecord, NodeRecord, Record, Stored, StoredStream
from ..stream.entries import decode_entry, encode_entry
from ..stream.receiver import Receiver
from ..stream.recovery import Recovery
from ..stream.server import Server
from ..turn import Turn
from .commands import FormDomain, VoterReplaced, decode_command, encode_command
from .directory import Directory
from .election import Election, State
from .name_server import NameServer
from .standing import NEVER, Standing


class Voter:
    """This node's hats as a voter."""

    def __init__(self, turn: Turn, parameters: Parameters, stored: Stored, rng: Random, identity: Identity) -> None:
        self.turn = turn
        self.parameters = parameters
        self.state_id = stored.state_id
        self.identity = identity
        self._rng = rng
        log = stored.streams.get(DOMAIN_STREAM)
        if log is None:
            start = 0 if parameters.durable else parameters.started_ms
            log = StoredStream(base=start, checkpoint_seq=start)
        self.directory = self._fresh_directory(log.checkpoint)
        self.server = Server(turn, DOMAIN_STREAM, log, parameters.all_voters, parameters, rng, self)
        self.receiver: Receiver | None = None
        self.office: NameServer | None = None
        self.election = Election(turn, self, parameters, rng)
        self.nodes: Callable[[], dict[str, NodeEntry]] = dict
        self._offered_domain = NO_DOMAIN

    def _fresh_directory(self, state: bytes) -> Directory:
        kept = self.parameters.answers_kept
        return Directory.restore(state, answers_kept=kept) if state else Directory(answers_kept=kept)

    def start(self) -> None:
        """The first step. Without a disk, numbers begin at the start time: none is ever used again."""
        log = self.server.log
        if log.base and not log.accepted:
            self.turn.persist(CheckpointRecord(DOMAIN_STREAM, log.base, b"", log.base))
        self.election.start()

    # --- What this voter is ---

    @property
    def formed(self) -> bool:
        """Whether this voter has a log of the domain stream; if not, it is blank."""
        return self.server.log.accepted > 0

    @property
    def backing_id(self) -> str:
        """Our state id, if what we hold is on disk, so that our answers may back a name server; else ""."""
        return self.state_id if self.server.accepted_persisted > 0 else ""

    def may_promise(self, claimed_voters: tuple[tuple[str, str], ...]) -> bool:
        """Whether our word counts: the claimant's log names our state directory as this voter's.

        It names another one if ours was lost and is new, or was replaced and put back.
        """
        return (self.turn.node, self.state_id) in claimed_voters

    def holders(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Our state id, and the voters as our log has them: goes with every promise."""
        return (self.state_id, self.voters_in_log())

    def voters_in_log(self) -> tuple[tuple[str, str], ...]:
        """The voters and their state ids as of the end of our log, stable or not."""
        table = dict(self.directory.voters)
        for seq in range(self.server.delivered + 1, self.server.log.last + 1):
            command = decode_command(decode_entry(self.server.log.entry(seq)).body)
            if isinstance(command, FormDomain) and not table:
                table = dict(command.voters)
            elif isinstance(command, VoterReplaced) and self.directory.may_replace(table, command):
                table[command.name] = command.state_id
        return tuple((name, table[name]) for name in sorted(table))

    def rivals(self, without: str) -> tuple[Standing, ...]:
        """The other voters as candidates, as far as the node list tells; ``without`` is known to be away."""
        known = self.nodes()
        found: list[Standing] = []
        for name in self.parameters.all_voters:
            entry = known.get(name)
            if name in (self.turn.node, without):
                continue
            pinned, priority = (entry.pinned, entry.priority) if entry is not None else (False, 0)
            if priority > NEVER and (entry is None or entry.status == "up"):
                found.append(Standing(name, 0, pinned, priority))
        return tuple(found)

    # --- The stream's host ---

    def deliver(self, seq: int, entry: bytes) -> None:
        """An entry of the domain stream is stable."""
        parts = decode_entry(entry)
        if parts.origin:
            answer = self.directory.apply_entry(seq, (parts.origin, parts.incarnation), parts.n, parts.body)
        else:
            command = decode_command(parts.body)
            invariant(command is not None, f"entry {seq} of the name server is no command")
            assert command is not None
            answer = self.directory.apply(seq, command)
        if self.office is not None:
            self.office.applied(seq, parts, answer)

    def restore(self, seq: int, state: bytes) -> None:
        """Continue from a checkpoint."""
        self.directory = self._fresh_directory(state)

    def snapshot(self) -> bytes:
        """The directory as bytes."""
        return self.directory.snapshot()

    def switching(self, epoch: int) -> tuple[Record, ...]:
        """The log becomes that of ``epoch``; with its first one a voter joins the domain."""
        if self.receiver is not None and self.receiver.log is not self.server.log:
            # What was followed so far is delivered again from the log that is opened now.
            self.directory = self._fresh_directory(self.server.log.checkpoint)
            self.turn.journal("restored", epoch=epoch, seq=self.server.delivered)
        self.receiver = None
        if self.identity.domain == NO_DOMAIN:
            self.identity.domain = self._offered_domain
        return (NodeRecord(self.identity.incarnation, self.identity.domain),)

    # --- Office ---

    def genesis(self, table: tuple[tuple[str, str], ...]) -> tuple[bytes, ...]:
        """The first entry of a new domain."""
        self._offered_domain = self._rng.randbytes(16)
        command = FormDomain(self._offered_domain, table, self.parameters.essentials())
        self.turn.mark("domain-formed")
        return (encode_entry("", 0, 0, encode_command(command)),)

    def take_office(self, recovery: Recovery) -> None:
        """A majority has promised us its epoch."""
        self.turn.journal("office", epoch=recovery.epoch, phase="won")
        self.office = NameServer(self.turn, self, recovery, self.parameters, self._rng)
        self.office.call()

    def opened(self) -> None:
        """A majority has opened the recovered log."""
        invariant(self.office is not None, "opened without office")
        assert self.office is not None
        self.turn.journal("office", epoch=self.office.epoch, phase="open")
        self.office.open()

    def resign(self, reason: str, failed: int) -> None:
        """Leave office; nothing is acknowledged from here on."""
        if self.office is not None:
            self.turn.journal("office", epoch=self.office.epoch, phase="left", reason=reason)
            self.office.close()
            self.office = None
            self.election.resigned(failed)

    def yield_office(self, to: str) -> None:
        """Leave office in favour of ``to`` and keep out of its way."""
        self.resign(f"yields to {to}", failed=0)
        self.election.stand_back_for(to)

    # --- Messages ---

    def on_message(self, sender: str, incarnation: int, domain: bytes, message: PeerMessage) -> None:
        """A message for one of the hats."""
        election, server, office = self.election, self.server, self.office
        if isinstance(message, Order):
            if message.epoch == server.log.accepted or self.formed:
                server.on_order(sender, message)
            else:
                self._follow().on_order(sender, message)
                self._join_if_admitted()
        elif isinstance(message, Held):
            if office is not None:
                office.on_held(sender, incarnation, message)
        elif isinstance(message, Beat):
            if message.epoch == server.log.accepted or self.formed:
                server.on_beat(sender, message)
            else:
                self._follow().on_beat(sender, message)
                self._join_if_admitted()
        elif isinstance(message, Repair):
            if election.candidacy is not None and election.candidacy.recovery is not None:
                election.candidacy.recovery.on_repair(sender, message)
            elif office is not None:
                office.recovery.on_repair(sender, message)
            if self.formed or server.builder is not None:
                server.on_repair(sender, message)
            elif self.receiver is not None:
                self.receiver.on_repair(sender, message)
                self._join_if_admitted()
        elif isinstance(message, RepairAsk):
            server.on_repair_ask(sender, message)
        elif isinstance(message, Promised):
            if office is not None:
                office.on_promised(sender, incarnation, message)
            elif election.candidacy is not None and election.candidacy.recovery is not None:
                election.candidacy.recovery.on_promised(sender, incarnation, message)
        elif isinstance(message, Open):
            if self.formed or server.promised == message.epoch:
                if self.identity.domain == NO_DOMAIN:
                    self._offered_domain = domain
                server.on_open(sender, message)
        elif isinstance(message, Opened):
            if office is not None:
                office.on_opened(sender, incarnation, message)
        elif isinstance(message, Refused):
            election.on_refused(message)
        elif sender not in self.parameters.all_voters:
            return
        elif isinstance(message, Canvass):
            election.on_canvass(sender, message)
        elif isinstance(message, Support):
            election.on_support(sender, message)
        elif isinstance(message, Claim):
            election.on_claim(sender, message)
        elif isinstance(message, Yield):
            election.on_yield(sender, message)

    def on_leader_alive(self, sender: str, message: LeaderAlive) -> bool:
        """The name server calls; returns whether it is to be answered."""
        return sender in self.parameters.all_voters and self.election.on_leader_alive(sender, message)

    def on_goodbye(self, sender: str, incarnation: int) -> None:
        """A node stops on purpose."""
        if sender == self.election.leader and self.election.state is State.LEADER_KNOWN:
            self.election.lose_leader()
        if self.office is not None:
            self.office.on_goodbye(sender, incarnation)

    def on_port_refused(self, node: str) -> None:
        """Nothing listens at the node's address."""
        self.election.on_port_refused(node)
        if self.office is not None:
            self.office.on_port_refused(node)

    def on_new_incarnation(self, name: str) -> None:
        """The node was restarted: what its predecessor held or promised it has to say anew."""
        if self.office is not None:
            self.office.forget(name)
        elif self.election.candidacy is not None and self.election.candidacy.recovery is not None:
            self.election.candidacy.recovery.forget(name)

    # --- Blank voters ---

    def _follow(self) -> Receiver:
        if self.receiver is None:
            self.turn.mark("blank-voter-follows")
            parameters = self.parameters
            self.receiver = Receiver(
                self.turn, DOMAIN_STREAM, parameters.all_voters, parameters.timers, self._rng, self
            )
        return self.receiver

    def _join_if_admitted(self) -> None:
        receiver = self.receiver
        if receiver is None or not receiver.leader or self.directory.voters.get(self.turn.node) != self.state_id:
            return
        if self.server.promised > receiver.epoch:
            self.turn.send(receiver.leader, Refused(DOMAIN_STREAM, self.server.promised))
            return
        self.turn.mark("blank-voter-admitted")
        self._offered_domain = self.directory.domain
        self.server.take_over(receiver.log, receiver.epoch, receiver.leader, receiver.delivered)

    # --- Time ---

    def expire(self) -> None:
        """First of all in every step: an office whose time is up ends before anything is done in its name."""
        if self.office is not None:
            self.office.expire()

    @property
    def deadline(self) -> float:
        """When something is to be done without a message."""
        at = min(self.election.deadline, self.server.deadline)
        if self.receiver is not None:
            at = min(at, self.receiver.deadline)
        return min(at, self.office.deadline) if self.office is not None else at

    def tick(self) -> None:
        """Time has passed."""
        self.election.tick()
        self.server.tick()
        if self.receiver is not None and self.turn.now >= self.receiver.deadline:
            self.receiver.tick()
        if self.office is not None:
            self.office.tick()

    def flush(self) -> None:
        """The end of a step: send what was numbered in it."""
        if self.office is not None:
            self.office.flush()
