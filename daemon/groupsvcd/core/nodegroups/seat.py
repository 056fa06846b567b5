"""What this node is in a group's stream: receiver or server, recovering or leading.

Each role is an object; who becomes what is decided here, by these rules:

- A claim of a higher epoch makes whoever gets it a server that promises, and ends what it led before: only the
  directory gives epochs. A receiver that becomes a server this way reports nothing until it has opened a log.
- A beat of a higher epoch than was promised here, or of the promised one by a view without us, makes a server a
  receiver: the view is active, and we are not in it.
- A beat tells the views of a log, and so whether our entries are in it (see ``inheritance``). Who is no server enters a
  higher epoch only by a beat, or by a repair that tells the same; an order of a view that we know nothing of is not
  heard. The leader sends a beat ahead of its first order.
- Who has delivered entries that the log of an active view lacks has lost the group.
- A grant makes us recover; its confirmation makes us lead; a promise to somebody else, or a refusal by somebody who
  promised to somebody else, ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ..effects import SendToPeer
from ..identity import Sender
from ..peer_messages import (
    Beat,
    Block,
    BlockAsk,
    CheckpointHeld,
    Claim,
    Data,
    DataAsk,
    DataHeld,
    Held,
    Insert,
    Leave,
    NotLeader,
    Open,
    Opened,
    Order,
    Promised,
    Refused,
    Relay,
    Repair,
    RepairAsk,
    Seen,
    Submit,
    SyncAsk,
)
from ..stream.receiver import Receiver
from ..stream.replica import Replica
from ..stream.server import Server
from ..views import NodeId, View
from ..views import Server as ServerId
from .complaints import Complaints
from .granted import Granted
from .inheritance import GroupRecovery, Inheritance
from .leading import Leading
from .retreat import go_back

if TYPE_CHECKING:
    from .node_group import NodeGroup


PROBES_BEFORE_LOOK_UP = 2
"""Probes that nobody answers before a receiver asks the name server what has become of the group."""

DISK_HANGS_HERE = "this node serves the group and cannot write to its state directory: its disk is full or hangs"
"""What who submits is told."""


class Seat:
    """The roles of this node in one group, one after the other, around one copy of the stream."""

    about_views: ClassVar[dict[str, Any]] = {}  # what else the history says of a view that is active

    def __init__(self, group: NodeGroup, replica: Replica, activate: Callable[[int, int], None]) -> None:
        self.group = group
        self.station = group.station
        self.turn = group.turn
        self.replica = replica
        self._bound = 0  # what was promised before we became a receiver
        self.role: Receiver | Server = self._new_receiver(replica.log.accepted)
        self.recovery: GroupRecovery | None = None
        self.leading: Leading | None = None
        self._granted: Granted | None = None
        self._promised_view: View | None = None
        self._led: tuple[int, NodeId] = (0, ("", 0))  # the newest epoch that was ours to number in, and who we were
        self._activate = activate
        self._complaints = Complaints(self)
        self.inheritance = Inheritance(group, replica)
        self._timers = self.station.parameters.timers

    @property
    def epoch(self) -> int:
        """The highest epoch this node knows of, or has promised."""
        role = self.role
        return max(self._bound, *(role.promised, role.log.accepted) if isinstance(role, Server) else (role.epoch,))

    @property
    def is_following(self) -> bool:
        """Whether we only follow the stream, and hold nothing for others."""
        return isinstance(self.role, Receiver)

    def is_lonely(self) -> bool:
        """Whether nobody answers a receiver any more: the group may have ended. Tells it once every few probes."""
        is_lonely = isinstance(self.role, Receiver) and self.role.unheard_probes >= PROBES_BEFORE_LOOK_UP
        if is_lonely and isinstance(self.role, Receiver):
            self.role.unheard_probes = 0
        return is_lonely

    @property
    def asked(self) -> tuple[str, ...]:
        """Whom we ask for entries: to recover, or because we lack them."""
        recovering = self._granted.asked() if self._granted is not None else ()
        return (*recovering, *self.replica.servers, self.replica.leader)

    @property
    def _mine(self) -> ServerId:
        return self.station.my_server(durable=self.group.settings.durable)

    # --- Roles ---

    def _new_receiver(self, epoch: int) -> Receiver:
        return Receiver(self.replica, epoch)

    def _new_server(self, promised: int, k: int, *, complete: bool = True) -> Server:
        return Server(self.replica, promised, k, complete=complete)

    def _new_recovery(self, server: Server, view: View, granted: Granted) -> GroupRecovery:
        return GroupRecovery(
            server, view.epoch, granted, self._timers, delivered=lambda: self.inheritance.delivered,
            contradicted=lambda: self._contradicted_in(view.epoch), stuck=self._go_back,
        )  # fmt: skip

    def _go_back(self) -> None:
        if self.recovery is not None and self._granted is not None:
            go_back(self, self.recovery, self._granted)

    def _new_leading(self, server: Server, view: View) -> Leading:
        return Leading(self.group, server, view)

    def form(self, view: View) -> None:
        """The group is ours to form: the first view, and nothing before it."""
        self.replica.leader, self.replica.servers = self.turn.node, view.names
        self.role = server = self._new_server(view.epoch, view.k)
        self.turn.journal("view_installed", group=self.group.id, epoch=view.epoch, seq=0, leader=view.leader,
                          members=list(view.names), k=view.k)  # fmt: skip
        if not self.replica.carrier.durable:
            self._lead(server, view, {self.turn.node: 0})
            return

        def safe() -> None:
            if self.role is server and server.promised == view.epoch and self.leading is None and self.group.is_member:
                self.group.touch(self.group)
                self._lead(server, view, {self.turn.node: 0})

        self.replica.write(*self.replica.begin_to_store(), done=lambda: self.group.with_lease(safe))

    def follow(self, leader: str, servers: tuple[str, ...]) -> None:
        """We were inserted: begin as a receiver."""
        self.replica.leader, self.replica.servers = leader, servers
        if isinstance(self.role, Receiver):
            self.role.say_seen()

    def come_back(self, promised: int) -> None:
        """After a restart: the server that the disk remembers, or one that holds nothing."""
        self.role = self._new_server(promised, 1, complete=self.replica.log.accepted > 0)

    def is_welcome(self, leader: str, servers: tuple[str, ...], seq: int) -> None:
        """We are a member again, as entry ``seq`` says, which we may lack."""
        if isinstance(self.role, Receiver):
            self.replica.leader, self.replica.servers = leader, servers
        self.replica.intake.expect(seq, self.turn.now)

    def be_quiet(self) -> None:
        """Do not tell how far we have got: it would make a server of us."""
        if isinstance(self.role, Receiver):
            self.role.is_quiet = True

    def speak_up(self) -> None:
        """The disk knows the group."""
        if isinstance(self.role, Receiver):
            self.role.is_quiet = False
            self.role.say_seen()

    def _as_server(self) -> Server:
        """Our role as one that may promise."""
        role = self.role
        if isinstance(role, Receiver):
            self._promised_view = None
            self.role = role = self._new_server(self.epoch, 1, complete=False)
        return role

    def _as_receiver(self, server: Server) -> Receiver:
        """The view goes on without us as server; what we promised still binds us."""
        self.stop_leading()
        self.turn.mark("group-server-retires")
        self._bound = max(self._bound, server.promised)
        self.replica.cease_to_store(self._bound)
        self.role = receiver = self._new_receiver(server.log.accepted)
        receiver.is_quiet = self.group.is_leaving
        self._promised_view = None
        return receiver

    def stop_leading(self) -> None:
        """Somebody else was given a higher epoch, or we are to begin anew under one."""
        if self.recovery is not None:
            self.recovery.abandon()
            self.recovery = self._granted = None
        if self.leading is not None:
            self.leading = None
            self.role.heard_at = self.turn.now  # who takes over has time to be heard
            self.turn.journal("view_left", group=self.group.id, epoch=self.epoch)

    def _new_granted(self, view: View, base: View) -> Granted:
        return Granted(
            self.group.id, self.turn.node, view, base, is_up=lambda name: self._is_up_as(name, view, base),
            opened=self._enough_opened, has_led=self._has_led(base), numbered=self.replica.log.last,
        )  # fmt: skip

    def _has_led(self, base: View) -> bool:
        """Whether this very process has led the view before, and reports its log: not if it only follows by now."""
        return self._led == (base.epoch, self.station.me) and isinstance(self.role, Server) and self.role.complete

    def take_grant(self, view: View, base: View) -> None:
        """The directory wants us to lead in ``view``."""
        if self.inheritance.is_detached:
            self.inheritance.cannot_serve_in(view.epoch)
            return
        if view.epoch <= self.epoch:
            return
        granted = self._new_granted(view, base)
        if not granted.recognises(self._mine):
            return  # it is for an older process of this node
        server = self._as_server()
        self.stop_leading()
        self._granted = granted
        self.group.link()
        self.recovery = self._new_recovery(server, view, granted)
        server.complete = server.complete or view.forced  # whatever there is
        server.replica.servers, server.k = view.names, view.k
        self.turn.journal("granted", group=self.group.id, epoch=view.epoch, base=base.epoch, forced=view.forced)
        self.recovery.begin()

    def _is_up_as(self, name: str, view: View, base: View) -> bool:
        entry = self.station.member.nodes.get(name)
        if entry is None or entry.status != "up":
            return False
        server = self.station.server((name, entry.incarnation), durable=self.group.settings.durable)
        return server in view.servers or server in base.servers

    def _enough_opened(self) -> None:
        if self.recovery is not None:
            self._activate(self.group.id, self.recovery.epoch)

    def activated(self, answer: dict[str, Any]) -> None:
        """What the directory said to our request to be activated."""
        recovery, granted = self.recovery, self._granted
        if recovery is None or granted is None or answer["epoch"] != recovery.epoch or self.leading is not None:
            return
        if not answer["ok"]:
            self.turn.mark("group-superseded")
            self.stop_leading()
            return
        server = recovery.server
        if server.promised != recovery.epoch:
            return
        view = msgspec.structs.replace(granted.granted, activated=answer["activated"])
        self.turn.mark("group-forced" if view.forced else "group-recovered")
        self._lead(server, view, recovery.opened_by)

    def _lead(self, server: Server, view: View, opened_by: dict[str, int]) -> None:
        self.turn.journal(
            "view_active", group=self.group.id, epoch=view.epoch, seq=server.log.last, leader=view.leader,
            servers=[list(one) for one in view.servers], k=view.k, base=view.base, forced=view.forced, fence=view.fence,
            **self.about_views,
        )  # fmt: skip
        if server.log.last > server.stable:
            self.turn.journal("stable", group=self.group.id, epoch=view.epoch, seq=server.log.last)
        server.learn_stable(server.log.last)  # k hold all of it, and nobody else can be given an older epoch
        self._led = (view.epoch, self.station.me)
        self.leading = self._new_leading(server, view)
        self.leading.start(opened_by, tail_may_be_lost=self.replica.tail_may_be_lost)
        if self.group.is_leaving:
            self.group.leaving.add(self.station.me)

    # --- Messages to whoever carries the group ---

    def on_order(self, sender: Sender, message: Order) -> None:
        """The leader orders entries."""
        role = self._follower(sender.name, message.epoch, message.began)
        if role is not None:
            role.on_order(sender.name, message)

    def on_beat(self, sender: Sender, message: Beat) -> None:
        """The leader says where the stream stands."""
        role = self._follower_after(sender.name, message)
        if role is not None:
            role.on_beat(sender.name, message)

    def _is_known(self, epoch: int) -> bool:
        """Whether a frame of this epoch is of the view that we are in, or of an older one, which a server refuses."""
        return epoch == self.replica.log.accepted or epoch < self.epoch

    def _follower(self, sender: str, epoch: int, began: int) -> Receiver | Server | None:
        """The role in which an order is heard; it does not tell which views came before, but perhaps enough."""
        role, known = self.role, self._is_known(epoch)
        if epoch < self._bound and isinstance(role, Receiver):
            return None  # it promised to refuse that
        if not known and began <= self.replica.settled:
            self._detach(sender)
        waits_for_open = isinstance(role, Server) and epoch == role.promised
        return role if (known or waits_for_open) and not self.inheritance.is_detached else None

    def _follower_after(self, sender: str, beat: Beat) -> Receiver | Server | None:
        """The role in which a beat is heard; a server that is not in its view retires."""
        role, epoch = self.role, beat.epoch
        if self._is_known(epoch):
            return self._follower(sender, epoch, beat.began)
        if self.inheritance.is_detached or not self.inheritance.is_before(beat.began, beat.views):
            self._detach(sender)
            return None
        if isinstance(role, Receiver):
            return role
        view = self._promised_view
        waits_for_open = epoch == role.promised and view is not None and self._mine in view.servers
        return role if waits_for_open else self._as_receiver(role)

    def _detach(self, leader: str) -> None:
        """An active view goes on without what we have; its leader lets us go."""
        self.stop_leading()
        self.inheritance.detach()
        self.replica.leader = leader

    def _contradicted_in(self, epoch: int) -> None:
        """We are to lead, and a view before, which was active, has gone on without what was delivered here."""
        self._detach(self.replica.leader)
        self.inheritance.cannot_serve_in(epoch)

    def on_claim(self, sender: Sender, message: Claim) -> None:
        """Somebody was granted a higher epoch."""
        if message.epoch < self.epoch:
            self._refuse(sender)
            return
        is_wanted = message.view is not None and self._mine in message.view.servers
        if isinstance(self.role, Receiver) and message.epoch == self.epoch and not is_wanted:
            return  # the view is active, and we are none of its servers
        server = self._as_server()
        if message.epoch > server.promised:
            if self.recovery is None or self.recovery.epoch != message.epoch:
                self.stop_leading()
            server.promise(message.epoch)
        self._promised_view = message.view
        self.group.reach(sender.name)
        report = server.report(whatever_there_is=message.view is not None and message.view.forced)
        if self.inheritance.is_detached:
            report = Promised(self.group.id, server.promised, 0, 0, 0, 0)
        server.carrier.persist(server.promise_record(), then=(SendToPeer(sender.name, report),))

    def _refuse(self, sender: Sender) -> None:
        self.replica.carrier.send(sender.name, Refused(self.group.id, self.epoch))

    def on_open(self, sender: Sender, message: Open) -> None:
        """The leader of a new view says what its log is."""
        if message.view is None or self._mine not in message.view.servers:
            return
        if message.epoch < self.epoch:
            self._refuse(sender)
            return
        if not self.inheritance.can_open(message):
            return
        server = self._as_server()
        if message.epoch > server.promised:
            self.stop_leading()
        server.on_open(sender.name, message)

    def on_data(self, sender: Sender, message: Data) -> None:
        """A large payload; what is numbered already and not missing here is not needed."""
        self.group.participants.backlogs.take(message)
        if not self.replica.library.wants((message.origin, message.incarnation, message.n)):
            return
        self.role.on_data(message)
        if self.recovery is not None:
            self.recovery.on_data()

    def on_data_ask(self, sender: Sender, message: DataAsk) -> None:
        """Somebody misses payloads; or the leader misses ours."""
        submitter = self.group.submitter
        if submitter is not None:
            for name, incarnation, n in message.payloads:
                if (name, incarnation) == self.station.me:
                    submitter.disseminate_again(n)
        self.replica.library.answer(sender.name, message)

    def on_repair_ask(self, sender: Sender, message: RepairAsk) -> None:
        """Somebody misses entries, or asks whether there are any: so it knows that the group is there."""
        self.group.reach(sender.name)  # it may not know that it is no member any more
        log = self.replica.log
        if message.first <= log.last:
            self.replica.on_repair_ask(sender.name, message)
        elif isinstance(self.role, Server):
            nothing = Repair(
                self.group.id, log.accepted, self.replica.stable, message.first, (), began=self.replica.began,
                views=self.replica.known_views,
            )  # fmt: skip
            self.replica.carrier.vouch(sender.name, nothing)

    def on_block_ask(self, sender: Sender, message: BlockAsk) -> None:
        """Somebody fetches a checkpoint."""
        self.group.reach(sender.name)
        self.replica.on_block_ask(sender.name, message)

    def on_block(self, sender: Sender, message: Block) -> None:
        """Part of a checkpoint that we fetch."""
        if self._can_take(message):
            self.role.on_block(sender.name, message)

    def on_repair(self, sender: Sender, message: Repair) -> None:
        """Entries that we asked for."""
        self.group.participants.backlogs.take(message)
        if self.recovery is not None:
            self.recovery.on_repair(sender.name, message)
        if self._can_take(message):
            self.role.on_repair(sender.name, message)

    def _can_take(self, message: Repair | Block) -> bool:
        """Whether what was delivered here is in the log of an answer: a receiver follows whoever gives it."""
        role = self.role
        if isinstance(message, Block) or not isinstance(role, Receiver) or message.accepted <= role.epoch:
            return True
        if not message.views or self.inheritance.is_detached:
            return False  # it does not know all of that log itself
        if not self.inheritance.is_before(message.began, message.views):
            self._detach(self.replica.leader)
            return False
        return True

    def on_refused(self, sender: Sender, message: Refused) -> None:
        """Somebody has promised a higher epoch to another leader."""
        ours = self.recovery.epoch if self.recovery is not None else 0
        if self.leading is not None:
            ours = max(ours, self.leading.view.epoch)
        if message.epoch > ours and (self.leading is not None or self.recovery is not None):
            self.turn.mark("group-leader-refused")
            self.stop_leading()

    # --- Messages to the leader ---

    def _server_behind(self, sender: Sender) -> bool:
        """Whether this very process may speak as a server in what we recover."""
        # Our own list may not have this process yet.
        server = self._mine if sender.name == self.turn.node else self._server_of(sender)
        return self._granted is not None and self._granted.recognises(server)

    def _server_of(self, sender: Sender) -> ServerId:
        return self.station.server((sender.name, sender.incarnation), durable=self.group.settings.durable)

    def on_promised(self, sender: Sender, message: Promised) -> None:
        """A server promises us its epoch."""
        if self.recovery is not None and self._server_behind(sender):
            self.recovery.on_promised(sender.name, sender.incarnation, message)
            self.group.link()  # it may have told of members that have to be asked

    def on_opened(self, sender: Sender, message: Opened) -> None:
        """A server has the log of our view."""
        if self.recovery is not None and self._server_behind(sender):
            self.recovery.on_opened(sender.name, sender.incarnation, message)
            if self.leading is not None and message.epoch == self.leading.view.epoch:
                self.leading.on_opened(sender, message)

    def on_held(self, sender: Sender, message: Held) -> None:
        """A server says what it has."""
        if self.leading is not None and self._server_of(sender) in self.leading.view.servers:
            self.leading.on_held(sender, message)

    def on_data_held(self, sender: Sender, message: DataHeld) -> None:
        """A server has payloads that wait for their numbers."""
        if self.leading is not None:
            self.leading.on_data_held(sender, message)

    def on_checkpoint_held(self, sender: Sender, message: CheckpointHeld) -> None:
        """A server has checkpoints that may be advertised."""
        leading = self.leading
        if leading and self._server_of(sender) in leading.view.servers and message.epoch == leading.view.epoch:
            leading.adverts.heard(sender.name, message.checkpoints)

    def on_seen(self, sender: Sender, message: Seen) -> None:
        """A receiver says how far it has got."""
        if self.leading is not None:
            self.leading.on_seen(sender, message)

    def on_sync_ask(self, sender: Sender, message: SyncAsk) -> None:
        """A member wants to have everything that was ordered. Who asks a server does not reach the leader."""
        if self.leading is not None:
            self.leading.on_sync_ask(sender, message)
        elif isinstance(self.role, Server):
            self.group.ask_for(sender, message)

    def on_submit(self, sender: Sender, message: Submit) -> None:
        """A node submits entries. Who sends them to a server cannot reach the leader, or does not know it."""
        if self.leading is not None:
            self.leading.on_submit(sender, message)
        elif isinstance(self.role, Server) and self.recovery is None and self.replica.leader != self.turn.node:
            self.turn.mark("group-relayed")
            relay = Relay(self.group.id, sender.name, sender.incarnation, message)
            self.replica.carrier.send(self.replica.leader, relay)
        else:
            self._redirect(sender)

    def on_relay(self, sender: Sender, message: Relay) -> None:
        """A server passes on what another node submits."""
        if self.leading is not None and message.submit.stream == message.stream:
            self.leading.on_submit(Sender(message.origin, message.incarnation, sender.domain), message.submit)

    def on_insert(self, sender: Sender, message: Insert) -> None:
        """A node wants to carry the group."""
        if self.leading is not None:
            self.leading.on_insert(sender, message)
        else:
            self._redirect(sender)

    def on_leave(self, sender: Sender, message: Leave) -> None:
        """A node wants to carry the group no longer."""
        if self.leading is not None:
            self.leading.on_leave(sender, message)
        else:
            self._redirect(sender)

    def _redirect(self, sender: Sender) -> None:
        leader = self.replica.leader
        if self.recovery is None and leader != self.turn.node:
            self.turn.mark("group-not-leader")
            self.group.reach(sender.name)
            self.turn.send(sender.name, NotLeader(self.group.id, self.epoch, leader))

    # --- Time ---

    def look_at_nodes(self) -> None:
        """The node list has changed."""
        if self.leading is not None:
            self.leading.look_at_nodes()
        elif self.recovery is not None:
            self.recovery.recount()

    def deliver_announced(self) -> None:
        """What we told others to be stable is delivered here, too, before the group is over for us."""
        if self.leading is not None and self.turn.now < self.replica.carrier.valid_until:
            self.leading.server.learn_stable(0)

    def superseded_by(self, view: View) -> None:
        """The name server says that this view is active."""
        if self.leading is not None and view.epoch > self.leading.view.epoch:
            self.stop_leading()
        self._complaints.newest = view
        role, is_in = self.role, self._mine in view.servers
        if isinstance(role, Server) and not is_in and role.log.accepted < view.epoch >= self.epoch:
            # Nobody of that view gets through to us, or only some: a receiver asks whom it can.
            self._as_receiver(role)
            self.replica.leader, self.replica.servers = view.leader, view.names
            self.group.link()

    def flush(self) -> None:
        """Send what was numbered in this step."""
        if self.leading is not None:
            self.leading.flush()

    def holds_for(self, servers: tuple[ServerId, ...]) -> bool:
        """Whether the group can go on from our copy, if these servers are down."""
        return isinstance(self.role, Server) and self.role.complete

    @property
    def deadline(self) -> float:
        """When something is to be done without a message."""
        at = min(self.role.deadline, self._complaints.at)
        if self.recovery is not None:
            at = min(at, self.recovery.deadline)
        return min(at, self.leading.deadline) if self.leading is not None else at

    def tick(self) -> None:
        """Time has passed."""
        self.role.tick()
        if self.turn.now >= self._complaints.at:
            self._complaints.complain()
        if self.recovery is not None:
            self.recovery.tick()
        if self.leading is not None:
            self.leading.tick()

    @property
    def cannot_write(self) -> bool:
        """Whether our disk could not take over from anybody."""
        return isinstance(self.role, Server) and self.role.disk_hangs

    @property
    def refusal(self) -> str:
        """Why nothing new is taken from this node's programs, or "". If another leads, its word is what counts."""
        is_following = self.leading is None and self.replica.log.accepted == self.epoch
        return DISK_HANGS_HERE if self.cannot_write and not is_following else ""
