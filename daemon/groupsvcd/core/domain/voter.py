"""A voter: holds the directory, takes part in elections, and may be the name server.

A voter wears several hats, each an object of its own: the *server* that holds the domain stream, the
*directory* that its entries add up to, the *election*, and, while it leads, the *office* of name server. A
voter whose state directory is new is *blank*: it has forgotten what it once promised and held, so it must
neither promise nor hold. It waits until the entry that admits its new state directory (``VoterReplaced``) is
stable at the name server; then it is asked for its promise and gets the log like any voter that was away. Until that
entry is stable the old disk may still count with those who do not have it, and from its ordering on the old
disk does not count with those who have: at no time can both.

The exception is the very first formation, when all listed voters are blank and answer: then nothing was
promised to anybody. Their state ids are written into the first entry, and a claim shows them, so that a
voter that missed the opening still knows that it belongs.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ..identity import Handler, Identity, Sender
from ..invariants import invariant
from ..links import Links
from ..parameters import Parameters
from ..peer_messages import (
    DOMAIN_STREAM,
    Alive,
    Ask,
    Beat,
    Block,
    BlockAsk,
    Canvass,
    Claim,
    Complaint,
    Held,
    LeaderAlive,
    NodeEntry,
    NodeListAsk,
    Open,
    Opened,
    Order,
    Orphan,
    Promised,
    Refused,
    Register,
    Repair,
    RepairAsk,
    Submit,
    Support,
    Suspect,
    Yield,
)
from ..records import NO_DOMAIN, CheckpointRecord, NodeRecord, Record, Stored, StoredStream
from ..stream.carrier import Carrier
from ..stream.delivery import Holders
from ..stream.entries import Entry, Run, decode_entry, encode_entry
from ..stream.recovery import Recovery
from ..stream.replica import Replica, Retention
from ..stream.server import Server
from ..turn import Turn
from .commands import FormDomain, VoterReplaced, decode_command, encode_command
from .directory import Directory
from .election import Election, State
from .name_server import NameServer
from .roster import Roster
from .standing import NEVER, Standing
from .trouble import SUSPENDED


class Voter:
    """This node's hats as a voter."""

    def __init__(
        self, turn: Turn, parameters: Parameters, stored: Stored, rng: Random, identity: Identity,
        nodes: dict[str, NodeEntry], links: Links, agrees: Callable[[str, dict[str, str]], bool],
    ) -> None:  # fmt: skip
        self.turn = turn
        self.parameters = parameters
        self.state_id = stored.state_id
        self.identity = identity
        self._nodes = nodes  # this node's copy of the list
        self.links = links
        self._agrees = agrees  # whether another node's essential parameters are ours
        self._rng = rng
        log = stored.streams.get(DOMAIN_STREAM)
        if log is None:
            start = 0 if parameters.durable else parameters.started_ms
            log = StoredStream(base=start, checkpoint_seq=start)
        self.directory = self._fresh_directory(log.checkpoint)
        voters = parameters.all_voters
        retention = Retention(
            checkpoint_every=parameters.checkpoint_every, margin=parameters.retention_margin,
            block_bytes=parameters.checkpoint_block_bytes, until_discarded=False,
        )  # fmt: skip
        carrier = Carrier(turn, DOMAIN_STREAM, voters)
        replica = Replica(carrier, log, voters, retention, parameters.timers, rng, self)
        self.server = Server(replica, log.promised, parameters.majority)
        self.office: NameServer | None = None
        self.election = Election(turn, self, parameters, rng)
        self._offered_domain = NO_DOMAIN
        self._has_log: dict[str, bool] = {}  # what the other voters said of themselves, if it may still be so

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

    def may_promise(self, claim: Claim) -> bool:
        """Whether our word counts: the claimant's log names our state directory as this voter's.

        It names another one if ours was lost and is new, or was replaced and put back. While ours holds nothing yet,
        it must be admitted for certain: the entry that admits it may still be lost, and then the old disk counts.
        """
        mine = (self.turn.node, self.state_id)
        return mine in claim.voters and (self.formed or mine in claim.admitted)

    @property
    def can_snapshot(self) -> bool:
        """The directory is always here."""
        return True

    @property
    def snapshots_cheaply(self) -> bool:
        """The directory may be large."""
        return False

    def holders(self) -> Holders:
        """Our state id, and the voters as our log has them: goes with every claim and promise."""
        voters = self.voters_in_log()
        certain = self.directory.voters or self._founders_in_log()
        return Holders(self.state_id, voters, tuple(line for line in voters if certain.get(line[0]) == line[1]))

    def _founders_in_log(self) -> dict[str, str]:
        """Who formed the domain: nobody else can have, so they need not be known to be stable."""
        log = self.server.log
        first = decode_command(decode_entry(log.entry(log.base + 1)).body) if log.count else None
        return dict(first.voters) if isinstance(first, FormDomain) else {}

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
        found: list[Standing] = []
        for name in self.parameters.all_voters:
            entry = self._nodes.get(name)
            if name in (self.turn.node, without):
                continue
            pinned, priority = (entry.pinned, entry.priority) if entry is not None else (False, 0)
            if priority > NEVER and (entry is None or entry.status == "up"):
                found.append(Standing(name, 0, pinned, priority))
        return tuple(found)

    # --- The stream's host ---

    def deliver(self, first_seq: int, runs: list[Run]) -> None:
        """An entry of the domain stream is stable; they come one by one."""
        entries = (entry for run in runs for entry in run.entries())
        for seq, entry in enumerate(entries, first_seq):
            self._deliver(seq, entry)

    def _deliver(self, seq: int, entry: Entry) -> None:
        if entry.origin:
            answer = self.directory.apply_entry(seq, (entry.origin, entry.incarnation), entry.n, entry.body)
        else:
            command = decode_command(entry.body)
            invariant(command is not None, f"entry {seq} of the name server is no command")
            assert command is not None
            answer = self.directory.apply(seq, command)
        dropped = self.directory.groups.dropped
        while dropped:
            self.turn.journal("group_dropped", seq=seq, id=dropped.pop())
        if self.office is not None:
            self.office.applied(seq, entry, answer)

    def restore(self, seq: int, state: bytes) -> None:
        """Continue from a checkpoint."""
        self.directory = self._fresh_directory(state)

    def snapshot(self) -> bytes:
        """The directory as bytes."""
        return self.directory.snapshot()

    def switching(self, epoch: int) -> tuple[Record, ...]:
        """The log becomes that of ``epoch``; with its first one a voter joins the domain."""
        if not self.server.accepted_persisted:
            self.turn.mark("blank-voter-joins")
        if self.identity.domain == NO_DOMAIN:
            self.identity.domain = self._offered_domain
        return (NodeRecord(self.identity.newest_incarnation, self.identity.domain),)

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
        self._forget_who_was_blank()
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

    def handlers(self) -> dict[type, Handler]:
        """Which message goes to which hat."""
        return {
            Alive: self._on_alive,
            NodeListAsk: self._on_node_list_ask,
            Register: self._on_register,
            Suspect: self._on_suspect,
            Complaint: self._on_complaint,
            Orphan: self._on_orphan,
            Submit: self._on_submit,
            Ask: self._on_ask,
            Canvass: self._on_canvass,
            Support: self._on_support,
            Claim: self._on_claim,
            Yield: self._on_yield,
            Order: self._on_order,
            Held: self._on_held,
            Beat: self._on_beat,
            Promised: self._on_promised,
            Open: self._on_open,
            Opened: self._on_opened,
            RepairAsk: self._on_repair_ask,
            Repair: self._on_repair,
            BlockAsk: lambda sender, message: self.server.replica.on_block_ask(sender.name, message),
            Block: lambda sender, message: self.server.on_block(sender.name, message),
            Refused: self._on_refused,
        }

    # For the office.

    def _on_alive(self, sender: Sender, message: Alive) -> None:
        if self.roster is not None:
            self.roster.note_wire(sender.name, sender.wire)
        if self.office is not None:
            self.office.on_alive(sender.name, sender.incarnation, message)

    def _on_node_list_ask(self, sender: Sender, message: NodeListAsk) -> None:
        if self.office is not None:
            self.office.on_node_list_ask(sender.name, message)

    def _on_register(self, sender: Sender, message: Register) -> None:
        if self.roster is not None:
            self.roster.on_register(sender.name, sender.incarnation, message, sender.wire)

    def _on_suspect(self, sender: Sender, message: Suspect) -> None:
        if self.roster is not None:
            self.roster.on_suspect(sender.name, message)

    def _on_complaint(self, sender: Sender, message: Complaint) -> None:
        if self.office is not None:
            self.office.on_complaint(sender.name, sender.incarnation, message)

    def _on_orphan(self, sender: Sender, message: Orphan) -> None:
        if self.office is not None:
            self.office.on_orphan(sender.name, sender.incarnation, message)

    def _on_submit(self, sender: Sender, message: Submit) -> None:
        if self.office is not None:
            self.office.on_submit(sender.name, sender.incarnation, message)

    def _on_ask(self, sender: Sender, message: Ask) -> None:
        if self.office is not None:
            self.office.on_ask(sender.name, sender.incarnation, message)

    def _on_held(self, sender: Sender, message: Held) -> None:
        if self.office is not None:
            self.office.on_held(sender.name, sender.incarnation, message)

    def _on_opened(self, sender: Sender, message: Opened) -> None:
        if self.office is not None:
            self.office.on_opened(sender.name, sender.incarnation, message)

    def _on_promised(self, sender: Sender, message: Promised) -> None:
        claim = self.election.claim
        if self.office is not None:
            self.office.on_promised(sender.name, sender.incarnation, message)
        elif claim is not None:
            claim.on_promised(sender.name, sender.incarnation, message)

    # For the election.

    def _on_canvass(self, sender: Sender, message: Canvass) -> None:
        if sender.name in self.parameters.all_voters and self._agrees(sender.name, message.essentials):
            self._has_log[sender.name] = message.formed
            self.election.on_canvass(sender.name, message)

    def _on_support(self, sender: Sender, message: Support) -> None:
        if sender.name in self.parameters.all_voters:
            self._has_log[sender.name] = message.formed
            self.election.on_support(sender.name, message)

    def _on_claim(self, sender: Sender, message: Claim) -> None:
        if sender.name in self.parameters.all_voters:
            self.election.on_claim(sender.name, message)

    def _on_yield(self, sender: Sender, message: Yield) -> None:
        self.election.on_yield(sender.name, message)

    def _on_refused(self, sender: Sender, message: Refused) -> None:
        self.election.on_refused(message)

    def on_leader_alive(self, sender: str, message: LeaderAlive) -> bool:
        """The name server calls; returns whether it is to be answered."""
        self._forget_who_was_blank()
        return self.election.on_leader_alive(sender, message)

    def _forget_who_was_blank(self) -> None:
        """A name server fills blank voters; one that is still blank without it will say so again."""
        if False in self._has_log.values():
            self._has_log = {name: True for name, has_log in self._has_log.items() if has_log}

    # For the server.

    def _on_order(self, sender: Sender, message: Order) -> None:
        self.server.on_order(sender.name, message)

    def _on_beat(self, sender: Sender, message: Beat) -> None:
        self.server.on_beat(sender.name, message)

    def _on_open(self, sender: Sender, message: Open) -> None:
        if self.formed or self.server.promised == message.epoch:
            if self.identity.domain == NO_DOMAIN:
                self._offered_domain = sender.domain
            self.server.on_open(sender.name, message)

    def _on_repair_ask(self, sender: Sender, message: RepairAsk) -> None:
        self.server.replica.on_repair_ask(sender.name, message)

    def _on_repair(self, sender: Sender, message: Repair) -> None:
        if self.office is not None:
            self.office.recovery.on_repair(sender.name, message)
        self.server.on_repair(sender.name, message)

    # For several.

    def lose_leader(self, node: str) -> None:
        """This node stops on purpose."""
        if node == self.election.leader and self.election.state is State.LEADER_KNOWN:
            self.election.lose_leader()

    def on_port_refused(self, node: str) -> None:
        """Nothing listens at the node's address."""
        self.election.on_port_refused(node)
        if self.roster is not None:
            self.roster.on_port_refused(node)

    @property
    def roster(self) -> Roster | None:
        """The list of nodes is ours to care for while we are name server."""
        return self.office.roster if self.office is not None else None

    def on_new_incarnation(self, name: str) -> None:
        """The node was restarted: what its predecessor held or promised it has to say anew."""
        self._has_log.pop(name, None)
        if self.office is not None:
            self.office.forget(name)
        elif self.election.claim is not None:
            self.election.claim.forget(name)

    # --- Words for people ---

    def trouble(self, away: list[str]) -> str:
        """Why there is no name server; ``away`` are the voters that were not heard lately."""
        voters, majority = self.parameters.all_voters, self.parameters.majority
        here = [name for name in voters if name not in away and name != self.turn.node]
        if not self.formed:
            if any(self._has_log.get(name) for name in here):
                return "this voter has lost its state and waits to be let in again by a name server elected without it"
            waits = f": waits for {', '.join(away)}" if away else ""
            return f"the domain is not formed yet{waits}"
        if len(voters) - len(away) < majority:
            witness = ", or a witness" if len(voters) == 2 else ""
            return f"{SUSPENDED}no majority of voters; needs {' or '.join(away)}{witness}"
        blank = [name for name in here if self._has_log.get(name) is False]
        if len(voters) - len(away) - len(blank) < majority:
            others = f", or {' or '.join(away)}" if away else ""
            return f"{SUSPENDED}{', '.join(blank)} lost the state; needs one of the lost disks back{others}"
        return "no name server yet"

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When something is to be done without a message."""
        at = min(self.election.deadline, self.server.deadline)
        return min(at, self.office.deadline) if self.office is not None else at

    def tick(self) -> None:
        """Time has passed."""
        self.election.tick()
        self.server.tick()
        if self.office is not None:
            self.office.tick()
