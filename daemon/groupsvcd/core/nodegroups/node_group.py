"""This node's part in one group, from the first look-up to the last word.

    finding    -- no such group -->       forming    -- formed here -->  carrying, as leader
    finding    -- led by A -->            inserting  -- inserted -->     carrying, as receiver
    carrying   -- nobody needs it -->     leaving    -- removed -->      over

While it carries the group a node is a *receiver* or a *server*, and a server may be *recovering* the stream under a new
grant, or *leading* it. Each is an object; who becomes what is decided here, by these rules:

- A claim of a higher epoch makes whoever gets it a server that promises, and ends what it led before: only the
  directory gives epochs. A receiver that becomes a server this way reports nothing until it has opened a log.
- An order or a beat of a higher epoch than was promised here, or of the promised one by a view without us, makes a
  server a receiver: the view is active, and we are not in it.
- Who has delivered entries that the log of a forced view lacks has lost the group.
- A grant makes us recover; its confirmation makes us lead; a promise to somebody else, or a refusal by somebody who
  promised to somebody else, ends it.

Without a lease the node is isolated: then it only promises, reports and gives repairs.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any

from ..domain.commands import FormGroup, encode_command
from ..domain.groups import default_k
from ..domain.limits import GROUP_SERVERS_WANTED
from ..effects import SendToPeer, Subscribe, Unsubscribe
from ..identity import Sender
from ..peer_messages import (
    Accepted,
    Beat,
    Claim,
    GroupIs,
    Held,
    Insert,
    Inserted,
    Leave,
    Left,
    NotLeader,
    Open,
    Opened,
    Order,
    Promised,
    Refused,
    Repair,
    RepairAsk,
    Seen,
    Submit,
    SubmitRefused,
    topic_of,
)
from ..records import Record, StoredStream
from ..stream.delivery import Holders
from ..stream.entries import Entry
from ..stream.receiver import Receiver
from ..stream.recovery import Phase as RecoveryPhase
from ..stream.recovery import Recovery
from ..stream.replica import Replica, Retention
from ..stream.server import Server
from ..views import AttributeValue, View
from .controls import NodeInserted, ViewStarted, decode_control
from .granted import Granted
from .group_carrier import GroupCarrier
from .leading import Leading
from .roll import Roll
from .station import Station
from .submitter import Submitter
from .user import User


class Phase(enum.Enum):
    """How far this node is with the group."""

    FINDING = "finding"
    FORMING = "forming"
    INSERTING = "inserting"
    CARRYING = "carrying"
    LEAVING = "leaving"
    OVER = "over"


class NodeGroup:
    """One group on one node."""

    def __init__(
        self, key: int, station: Station, name: str, attributes: dict[str, AttributeValue], *,
        known_as: Callable[[int, NodeGroup], None], activate: Callable[[int, int], None],
        over: Callable[[NodeGroup], None],
    ) -> None:  # fmt: skip
        self.key = key  # never used again on this node
        self.station = station
        self.turn = station.turn
        self.name = name
        self.id = 0
        self.attributes = attributes
        self.phase = Phase.FINDING
        self.users: list[User] = []
        self.roll = Roll(self.logical_lifetime)
        self.role: Receiver | Server | None = None
        self.recovery: Recovery | None = None
        self.leading: Leading | None = None
        self.submitter: Submitter | None = None
        self._granted: Granted | None = None
        self._promised_view: View | None = None
        self._replica: Replica | None = None
        self._leader = ""  # as far as we know, while we are no member
        self._known_as = known_as
        self._activate = activate
        self._over = over
        self._timers = station.parameters.timers
        self._unsubmitted: list[bytes] = []
        self._batch: list[Entry] = []
        self._batch_first = 0
        self._changed_at = 0
        self._attempts = 0
        self._repeat_at = math.inf
        self._wait = self._timers.repeat_first

    # --- What the group is ---

    @property
    def durable(self) -> bool:
        """Whether disks hold the stream."""
        return self.attributes.get("durable") is True

    @property
    def replicas(self) -> int:
        """How many servers there should be."""
        return self._number("replicas", GROUP_SERVERS_WANTED)

    @property
    def k_wanted(self) -> int:
        """How many of them must hold an entry."""
        return self._number("commit_k", default_k(self.replicas))

    @property
    def logical_lifetime(self) -> int:
        """Numbers after which what was not numbered yet never is."""
        return self._number("logical_lifetime", self.station.parameters.logical_lifetime)

    @property
    def history_entries_max(self) -> int:
        """How far a member may lag before nobody waits for it."""
        return self._number("history_entries_max", self.station.parameters.history_entries_max)

    def _number(self, attribute: str, otherwise: int) -> int:
        value = self.attributes.get(attribute)
        return value if type(value) is int else otherwise

    @property
    def epoch(self) -> int:
        """The highest epoch this node knows of."""
        if isinstance(self.role, Server):
            return max(self.role.promised, self.role.log.accepted)
        return self.role.epoch if self.role is not None else 0

    @property
    def is_member(self) -> bool:
        """Whether this node carries the group."""
        return self.phase in (Phase.CARRYING, Phase.LEAVING)

    @property
    def delivered(self) -> int:
        """Up to where the stream was handed up here."""
        return self._replica.delivered if self._replica is not None else 0

    # --- Users ---

    def add_user(self, user: User) -> None:
        """Somebody on this node takes part."""
        self.users.append(user)
        if self.is_member:
            self.hand_up()
            user.joined(self.id, self.delivered, tuple(self.roll.members))
        if self.phase is Phase.LEAVING and self.leading is not None:
            self.leading.leaving.discard(self.station.me)
            self.phase = Phase.CARRYING

    def remove_user(self, user: User) -> None:
        """Somebody on this node takes part no longer; with the last one the node leaves."""
        if user not in self.users:
            return
        self.hand_up()
        self.users.remove(user)
        user.lost("left")
        if self.users:
            return
        if self.phase is Phase.CARRYING:
            self.phase = Phase.LEAVING
            self._again_soon()
        elif not self.is_member and self.phase is not Phase.FORMING:
            # An Insert may be on its way. Whoever gets an answer without wanting one leaves again.
            self.phase = Phase.OVER if self.phase is Phase.FINDING else self.phase
            if self.phase is Phase.OVER:
                self._over(self)

    def submit(self, bodies: tuple[bytes, ...]) -> int:
        """Submit entries; the number of the first, or 0 if the window is full or there is no group yet."""
        if self.submitter is None:
            return 0
        first = self.submitter.submit(bodies)
        if first:
            self.submitter.send_new(self.delivered)
        return first

    # --- Becoming a member ---

    def find(self) -> None:
        """Ask the name server who leads the group."""
        self.phase = Phase.FINDING
        self._repeat_at = math.inf
        self.station.requests.ask("find", self.name, self._found)

    def _found(self, answer: dict[str, Any]) -> None:
        if self.phase is not Phase.FINDING:
            return
        record = answer.get("group")
        if record is not None:
            self._insert_into(record)
            return
        self.phase = Phase.FORMING
        name, attributes = self.name, self.attributes
        self.station.requests.command(
            f"forming group {name!r}",
            lambda: encode_command(FormGroup(name, self.turn.node, self.station.identity.incarnation, attributes)),
            self._formed, lambda family, code, text: self.end(text),
        )  # fmt: skip

    def _formed(self, answer: dict[str, Any]) -> None:
        if self.phase is not Phase.FORMING:
            return
        if not answer.get("ok"):
            self.end(str(answer.get("problem", "refused")))
            return
        record = answer["group"]
        if not answer.get("formed"):
            self._insert_into(record)
            return
        self._take_record(record)
        view = View.from_answer(record["active"])
        self.turn.mark("group-formed")
        self._begin(StoredStream(promised=view.epoch, accepted=view.epoch))
        replica = self._replica
        assert replica is not None
        replica.leader, replica.servers = self.turn.node, view.names
        server = Server(replica, view.epoch, view.k)
        self.role = server
        self.turn.journal("view_installed", group=self.id, epoch=view.epoch, seq=0, leader=view.leader,
                          members=list(view.names), k=view.k)  # fmt: skip
        self.roll.members = {self.station.me: None}
        self._now_member()
        self._lead(server, view, {self.turn.node: 0})

    def _take_record(self, record: dict[str, Any]) -> None:
        self.id = record["id"]
        self.attributes = record["attributes"]
        self.roll = Roll(self.logical_lifetime)
        self._known_as(self.id, self)
        self.turn.effects.append(Subscribe(topic_of(self.id)))

    def _insert_into(self, record: dict[str, Any]) -> None:
        self._take_record(record)
        self._leader = record["active"]["leader"]
        self.phase = Phase.INSERTING
        self._wait = self._timers.repeat_first
        self._attempts = 0
        self._ask_in()

    def _ask_in(self) -> None:
        self._attempts += 1
        self._repeat_at = self.turn.now + self._wait
        self._wait = min(2 * self._wait, self._timers.repeat_max)
        if self._attempts % 3 == 0 or self._leader == self.turn.node:
            self._look_up_again()
        else:
            self.reach(self._leader)
            self.turn.send(self._leader, Insert(self.id))

    def _look_up_again(self) -> None:
        """Somebody else may lead, or the group may have ended and been formed anew."""
        self.station.requests.ask("find", self.name, self._found_again)

    def _found_again(self, answer: dict[str, Any]) -> None:
        if self.phase not in (Phase.INSERTING, Phase.LEAVING):
            return
        record = answer.get("group")
        if record is None or record["id"] != self.id:
            self._start_over("the group has ended")
        else:
            self._leader = record["active"]["leader"]

    def _start_over(self, reason: str) -> None:
        """This group is no more, or we are not in it any more: who still wants it begins anew."""
        waiting = self.users if self.phase is Phase.INSERTING else []
        self.users = [] if waiting else self.users
        name, attributes = self.name, self.attributes
        self.end(reason)
        self.users, self.name, self.attributes = waiting, name, attributes

    def on_inserted(self, sender: Sender, message: Inserted) -> None:
        """We are a member."""
        if message.to != self.station.identity.incarnation or self.phase is not Phase.INSERTING:
            return
        stored = StoredStream(
            accepted=message.epoch, base=message.seq, checkpoint_seq=message.seq, checkpoint=message.state
        )
        self._begin(stored)
        replica = self._replica
        assert replica is not None
        self.turn.journal("restored", group=self.id, epoch=message.epoch, seq=message.seq)
        self.roll.restore(message.state)
        replica.leader, replica.servers = sender.name, self.roll.server_names
        self.role = Receiver(replica, message.epoch)
        self._now_member()
        assert self.submitter is not None
        self.submitter.follow(sender.name)
        self.role.say_seen()
        if not self.users:
            self.phase = Phase.LEAVING
            self._again_soon()

    def _begin(self, stored: StoredStream) -> None:
        station = self.station
        parameters = station.parameters
        carrier = GroupCarrier(
            self.turn, self.id, station.member, durable=self.durable, journals_entries=parameters.journal_full
        )
        retention = Retention(
            checkpoint_every=parameters.group_checkpoint_every, margin=parameters.retention_margin,
            block_bytes=parameters.checkpoint_block_bytes,
        )  # fmt: skip
        self._replica = Replica(carrier, stored, (), retention, self._timers, station.rng, self)
        self.submitter = Submitter(carrier, self._timers)

    def _now_member(self) -> None:
        self.phase = Phase.CARRYING
        self._repeat_at = math.inf
        self._changed_at = 0
        self.turn.journal("joined", group=self.id, epoch=self.epoch, seq=self.delivered)
        self._link()
        members = tuple(self.roll.members)
        for user in tuple(self.users):
            user.joined(self.id, self.delivered, members)

    def _link(self) -> None:
        """Be connected to all who carry the group, and to whom we recover from."""
        names = dict.fromkeys(name for name, _ in self.roll.members)
        if self._granted is not None:
            names.update(dict.fromkeys(self._granted.asked()))
        self.station.links.need(self.id, self.station.addresses(tuple(names)), listen=True)

    def reach(self, name: str) -> None:
        """Have a link to one more node."""
        address = self.station.addresses((name,)).get(name, "")
        if address:
            self.station.links.need_too(self.id, name, address)

    # --- Ceasing to be one ---

    def _again_soon(self) -> None:
        self._wait = self._timers.repeat_first
        self._repeat_at = self.turn.now

    def _ask_out(self) -> None:
        self._repeat_at = self.turn.now + self._wait
        self._wait = min(2 * self._wait, self._timers.repeat_max)
        if self.leading is not None:
            self.leading.leaving.add(self.station.me)
            self.leading.consider_view()
        elif self._replica is not None and self._replica.leader and self._replica.leader != self.turn.node:
            self.turn.send(self._replica.leader, Leave(self.id))

    def on_left(self, sender: Sender, message: Left) -> None:
        """We are no member."""
        if message.to == self.station.identity.incarnation and self.phase is Phase.LEAVING:
            self.end("left")

    def end(self, reason: str) -> None:
        """Nothing is done for this group any more; who still wants it is told, and may join again."""
        if self.phase is Phase.OVER:
            return
        self.hand_up()
        if self.recovery is not None:
            self.recovery.abandon()
        self.phase = Phase.OVER
        self.role = self.leading = self.recovery = None
        self._repeat_at = math.inf
        if self.id:
            self.turn.journal("group_lost", group=self.id, seq=self.delivered, reason=reason)
            self.turn.effects.append(Unsubscribe(topic_of(self.id)))
            self.station.links.forget(self.id)
        users, self.users = self.users, []
        self._over(self)
        for user in users:
            user.lost(reason)

    # --- Roles ---

    def _as_server(self) -> Server | None:
        """Our role as one that may promise."""
        role = self.role
        if isinstance(role, Receiver):
            self._promised_view = None
            self.role = role = Server(role.replica, role.epoch, 1, complete=False)
        return role

    def _as_receiver(self, server: Server) -> Receiver:
        """The view goes on without us as server."""
        self._stop_leading()
        self.turn.mark("group-server-retires")
        self.role = receiver = Receiver(server.replica, server.log.accepted)
        self._promised_view = None
        return receiver

    def _stop_leading(self) -> None:
        if self.recovery is not None:
            self.recovery.abandon()
            self.recovery = self._granted = None
        if self.leading is not None:
            self.leading = None
            self.turn.journal("view_left", group=self.id, epoch=self.epoch)

    def take_grant(self, view: View, base: View) -> None:
        """The directory wants us to lead in ``view``."""
        server = self._as_server() if self.is_member else None
        if server is None or view.epoch <= server.promised:
            return
        self._stop_leading()
        me = self.station.server(self.station.me, durable=self.durable)
        granted = Granted(
            self.id, self.turn.node, view, base, is_up=lambda name: self._is_up_as(name, view, base),
            opened=self._enough_opened,
        )  # fmt: skip
        if not granted.recognises(me):
            return
        self._granted = granted
        self._link()
        self.recovery = Recovery(server, view.epoch, granted, self._timers)
        server.complete = server.complete or view.forced  # whatever there is
        server.replica.servers, server.k = view.names, view.k
        self.turn.journal("granted", group=self.id, epoch=view.epoch, base=base.epoch)
        self.recovery.begin()

    def _is_up_as(self, name: str, view: View, base: View) -> bool:
        entry = self.station.member.nodes.get(name)
        if entry is None or entry.status != "up":
            return False
        server = self.station.server((name, entry.incarnation), durable=self.durable)
        return server in view.servers or server in base.servers

    def _enough_opened(self) -> None:
        if self.recovery is not None:
            self._activate(self.id, self.recovery.epoch)

    def activated(self, answer: dict[str, Any]) -> None:
        """What the directory said to our request to be activated."""
        recovery, granted = self.recovery, self._granted
        if recovery is None or granted is None or answer["epoch"] != recovery.epoch or self.leading is not None:
            return
        if not answer["ok"]:
            self.turn.mark("group-superseded")
            self._stop_leading()
            return
        server = recovery.server
        if server.promised != recovery.epoch:
            return
        view = granted.granted
        view = View(view.epoch, view.leader, view.servers, view.k, view.forced, view.base, view.replaces,
                    answer["activated"])  # fmt: skip
        self.turn.mark("group-forced" if view.forced else "group-recovered")
        server.learn_stable(server.log.last)
        self._lead(server, view, recovery.opened_by)

    def _lead(self, server: Server, view: View, opened_by: dict[str, int]) -> None:
        self.leading = Leading(self, server, view)
        self.leading.start(opened_by)
        if self.phase is Phase.LEAVING:
            self.leading.leaving.add(self.station.me)

    # --- Messages to whoever carries the group ---

    def on_order(self, sender: Sender, message: Order) -> None:
        """The leader orders entries."""
        role = self._follower(message.epoch, message.began)
        if role is not None:
            role.on_order(sender.name, message)

    def on_beat(self, sender: Sender, message: Beat) -> None:
        """The leader says where the stream stands."""
        role = self._follower(message.epoch, message.began)
        if role is not None:
            role.on_beat(sender.name, message)

    def _follower(self, epoch: int, began: int) -> Receiver | Server | None:
        """The role in which a frame of an active view is heard; a server that is not in that view retires."""
        role = self.role
        if role is not None and role.replica.log.accepted < epoch and began <= self.delivered:
            self.turn.mark("group-tail-lost")
            self.end("the group goes on without entries that were delivered here")
            return None
        if isinstance(role, Server) and role.log.accepted < epoch:
            view = self._promised_view
            mine = self.station.server(self.station.me, durable=self.durable)
            waits_for_open = epoch == role.promised and view is not None and mine in view.servers
            if epoch >= role.promised and not waits_for_open:
                return self._as_receiver(role)
        return role

    def on_claim(self, sender: Sender, message: Claim) -> None:
        """Somebody was granted a higher epoch."""
        server = self._as_server()
        if server is None:
            return
        if message.epoch < server.promised:
            server.refuse(sender.name)
            return
        if message.epoch > server.promised:
            if self.recovery is None or self.recovery.epoch != message.epoch:
                self._stop_leading()
            server.promise(message.epoch)
        self._promised_view = message.view
        self.reach(sender.name)
        report = server.report(whatever_there_is=message.view is not None and message.view.forced)
        server.carrier.persist(server.promise_record(), then=(SendToPeer(sender.name, report),))

    def on_open(self, sender: Sender, message: Open) -> None:
        """The leader of a new view says what its log is."""
        mine = self.station.server(self.station.me, durable=self.durable)
        if message.view is None or mine not in message.view.servers:
            return
        server = self._as_server()
        if server is not None:
            if message.epoch > server.promised:
                self._stop_leading()
            server.on_open(sender.name, message)

    def on_repair_ask(self, sender: Sender, message: RepairAsk) -> None:
        """Somebody misses entries."""
        if self._replica is not None:
            self._replica.on_repair_ask(sender.name, message)

    def on_repair(self, sender: Sender, message: Repair) -> None:
        """Entries that we asked for."""
        if self.recovery is not None:
            self.recovery.on_repair(sender.name, message)
        if self.role is not None:
            self.role.on_repair(sender.name, message)

    def on_refused(self, sender: Sender, message: Refused) -> None:
        """Somebody has promised a higher epoch to another leader."""
        ours = self.recovery.epoch if self.recovery is not None else 0
        if self.leading is not None:
            ours = max(ours, self.leading.view.epoch)
        if message.epoch > ours and (self.leading is not None or self.recovery is not None):
            self.turn.mark("group-leader-refused")
            self._stop_leading()

    def on_group_is(self, sender: Sender, message: GroupIs) -> None:
        """The name server corrects our view of the group."""
        if message.active is None:
            self.end("the group has ended")
        elif self.leading is not None and message.active.epoch > self.leading.view.epoch:
            self._stop_leading()

    # --- Messages to the leader ---

    def _server_behind(self, sender: Sender) -> bool:
        """Whether this very process may speak as a server in what we recover."""
        server = self.station.server((sender.name, sender.incarnation), durable=self.durable)
        return self._granted is not None and self._granted.recognises(server)

    def on_promised(self, sender: Sender, message: Promised) -> None:
        """A server promises us its epoch."""
        if self.recovery is not None and self._server_behind(sender):
            self.recovery.on_promised(sender.name, sender.incarnation, message)

    def on_opened(self, sender: Sender, message: Opened) -> None:
        """A server has the log of our view."""
        if self.recovery is not None and self._server_behind(sender):
            self.recovery.on_opened(sender.name, sender.incarnation, message)
            if self.leading is not None and message.epoch == self.leading.view.epoch:
                self.leading.sequencer.holds(sender.name, message.last)

    def on_held(self, sender: Sender, message: Held) -> None:
        """A server says what it has."""
        if self.leading is not None:
            server = self.station.server((sender.name, sender.incarnation), durable=self.durable)
            if server in self.leading.view.servers:
                self.leading.on_held(sender, message)

    def on_seen(self, sender: Sender, message: Seen) -> None:
        """A receiver says how far it has got."""
        if self.leading is not None:
            self.leading.on_seen(sender, message)

    def on_submit(self, sender: Sender, message: Submit) -> None:
        """A node submits entries."""
        if self.leading is not None:
            self.leading.on_submit(sender, message)
        else:
            self._redirect(sender)

    def on_insert(self, sender: Sender, message: Insert) -> None:
        """A node wants to carry the group."""
        if self.leading is not None:
            self.leading.on_insert(sender)
        else:
            self._redirect(sender)

    def on_leave(self, sender: Sender, message: Leave) -> None:
        """A node wants to carry the group no longer."""
        if self.leading is not None:
            self.leading.on_leave(sender)
        else:
            self._redirect(sender)

    def _redirect(self, sender: Sender) -> None:
        leader = self._replica.leader if self._replica is not None else ""
        if self.recovery is None and leader != self.turn.node:
            self.turn.mark("group-not-leader")
            self.reach(sender.name)
            self.turn.send(sender.name, NotLeader(self.id, self.epoch, leader))

    # --- Messages to whoever submits or asks ---

    def on_not_leader(self, sender: Sender, message: NotLeader) -> None:
        """We asked the wrong one."""
        if self.phase is Phase.INSERTING:
            if message.leader and message.leader != self._leader:
                self._leader = message.leader
            else:
                self._look_up_again()

    def on_accepted(self, sender: Sender, message: Accepted) -> None:
        """What we submitted is stable; for who is no member."""
        if self.submitter is not None and message.to == self.station.identity.incarnation:
            self.submitter.accepted(message.upto_n)

    def on_submit_refused(self, sender: Sender, message: SubmitRefused) -> None:
        """A gap: the leader misses what was sent before. Anything else ends our part in the group."""
        if self.submitter is None or message.to != self.station.identity.incarnation:
            return
        if message.reason == "gap":
            self.submitter.resend(after=message.last_n)

    # --- The stream's host ---

    def deliver(self, seq: int, entry: Entry) -> None:
        """An entry is stable and next in order."""
        roll = self.roll
        if entry.origin:
            origin = (entry.origin, entry.incarnation)
            roll.note(seq, origin, entry.n)
            if origin == self.station.me:
                if self.submitter is not None:
                    self.submitter.accepted(entry.n)
            elif self.leading is not None and origin not in roll.members:
                self.leading.accept(origin, entry.n)
        else:
            self._deliver_control(seq, entry.body)
        if not self._batch:
            self._batch_first = seq
        self._batch.append(entry)

    def _deliver_control(self, seq: int, body: bytes) -> None:
        control = decode_control(body)
        self.roll.apply(seq, control)
        self._changed_at = seq
        members = tuple(self.roll.members)
        self.turn.journal("members", group=self.id, epoch=self.epoch, seq=seq, members=[list(node) for node in members])
        replica = self._replica
        if isinstance(control, ViewStarted):
            if replica is not None and not isinstance(self.role, Server):
                replica.servers = self.roll.server_names
            if self.submitter is not None:
                self.submitter.follow(control.leader)
                self.submitter.send_new(seq)
        if isinstance(control, NodeInserted) and self.submitter is not None and control.node == self.station.me:
            self.submitter.send_new(seq)
        self._link()
        if self.leading is not None:
            self.leading.delivered(seq, control)

    def restore(self, seq: int, state: bytes) -> None:
        """What we missed is no longer kept: the roll goes on from a checkpoint, the users have lost the group."""
        self.roll.restore(state)
        self.turn.mark("group-lagged")
        users, self.users = self.users, []
        self._batch = []
        for user in users:
            user.lost("lagged: entries that were not delivered here are no longer kept")
        self.phase = Phase.LEAVING
        self._again_soon()

    def snapshot(self) -> bytes:
        """The roll."""
        return self.roll.snapshot()

    def holders(self) -> Holders:
        """No disks are named in a group's log: the directory names them."""
        return Holders()

    def switching(self, epoch: int) -> tuple[Record, ...]:
        """Nothing besides the log itself."""
        return ()

    # --- The end of a step, and time ---

    def look_at_nodes(self) -> None:
        """The node list has changed."""
        if self.is_member:
            self._link()
        if self.leading is not None:
            self.leading.look_at_nodes()

    def flush(self) -> None:
        """Send what was numbered in this step."""
        if self.leading is not None:
            self.leading.flush()

    def hand_up(self) -> None:
        """Give the users what was delivered in this step."""
        if self._batch:
            batch, self._batch = self._batch, []
            for user in tuple(self.users):
                user.delivered(self._batch_first, batch)
        if self._changed_at:
            seq, self._changed_at = self._changed_at, 0
            if self.is_member and self.station.me not in self.roll.members:
                self.end("left" if self.phase is Phase.LEAVING else "this node was removed from the group")
                return
            members = tuple(self.roll.members)
            for user in tuple(self.users):
                user.changed(seq, members)

    @property
    def deadline(self) -> float:
        """When something is to be done without a message."""
        at = self._repeat_at
        if self.role is not None:
            at = min(at, self.role.deadline)
        if self.recovery is not None:
            at = min(at, self.recovery.deadline)
            if self.recovery.phase is RecoveryPhase.FETCHING:
                at = min(at, self.recovery.progress_at + self._timers.leader_silent)
        if self.leading is not None:
            at = min(at, self.leading.deadline)
        if self.submitter is not None:
            at = min(at, self.submitter.deadline)
        return at

    def tick(self) -> None:
        """Time has passed."""
        now = self.turn.now
        if now >= self._repeat_at:
            if self.phase is Phase.INSERTING:
                self._ask_in()
            elif self.phase is Phase.LEAVING:
                self._ask_out()
            else:
                self._repeat_at = math.inf
        if self.role is not None:
            self.role.tick()
        recovery = self.recovery
        if recovery is not None:
            if recovery.phase is RecoveryPhase.FETCHING and now - recovery.progress_at > self._timers.leader_silent:
                recovery.choose_anew()
            recovery.tick()
        if self.submitter is not None:
            self.submitter.tick()
        if self.leading is not None and not self.station.member.isolated:
            self.leading.tick()
