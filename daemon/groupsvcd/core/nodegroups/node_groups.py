"""All groups of a node: who wants which, and which message is for which.

Frames carry a group's id, never its name: an id is never used again, so what was sent to a group that has ended cannot
reach another of the same name. A node without the group answers what only a leader can do with "look it up again", and
nothing else.

Only groups that something happened to are looked at when a step ends, and a heap knows which one is next in time: a
node may carry thousands of groups that sleep.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..domain.commands import ActivateView, encode_command
from ..domain.limits import ACTIVATIONS_MAX
from ..identity import Sender
from ..links import ANSWERS
from ..peer_messages import (
    Accepted,
    Beat,
    BlockAsk,
    Claim,
    Complaint,
    DataAsk,
    Grant,
    GroupIs,
    Insert,
    Inserted,
    Leave,
    NotLeader,
    Open,
    Opened,
    Order,
    PeerMessage,
    Promised,
    Refused,
    RepairAsk,
    Seen,
    StreamMessage,
    Submit,
    SubmitRefused,
)
from ..records import StoredStream
from ..statistics import NodeGroupStatistics
from ..stream.server import Server
from ..views import AttributeValue, View
from .about import decode_about
from .answers import ANSWERS as ANSWERS_BY_KIND
from .carried_once import CarriedOnce
from .confirmations import Confirmations, Told
from .group_status import GroupStatus, statistics_of, status_of
from .node_group import NodeGroup
from .outsider import Outsider, Stranger
from .phases import Phase
from .seat import Seat
from .seat_messages import for_seats
from .station import Station
from .submitter import Submitter, refuse_too_large
from .submitters import Submitters
from .user import CHECKPOINT, HAS_ENDED, NOW, Application, Form, Machine, User, WhyNot

ALSO_WHEN_ISOLATED = (Claim, RepairAsk, BlockAsk, DataAsk, Refused, GroupIs)
"""Without a lease a node still promises, gives repairs, and learns that it was replaced. To itself it may say that it
has opened a log: only the directory makes something of that."""

FOR_A_LEADER = (Insert, Leave, Submit, Seen, RepairAsk)
"""Who sends these to a node without the group is told to look it up again."""

FOR_A_MEMBER = (Inserted, Order, Beat)
"""Who sends these to a node without the group takes it for a member."""

CARRIED_TOLD_MAX = 100
"""Groups in one answer to the name server; who carries more tells of them in turn. An answer stays below 2 KB."""


class NodeGroups:
    """The groups of one node."""

    def __init__(self, station: Station) -> None:
        self.station = station
        self.turn = station.turn
        self._by_name: dict[str, NodeGroup] = {}
        self._by_id: dict[int, NodeGroup] = {}
        self._touched: dict[NodeGroup, None] = {}
        self._heap: list[tuple[float, int]] = []
        self._planned: dict[int, tuple[float, NodeGroup]] = {}
        self._unplanned: dict[NodeGroup, None] = {}  # touched since anybody asked when to look again
        self._keys = 0
        self._activations: list[tuple[int, int]] = []
        self._waiting: list[Callable[[], None]] = []
        self._list_version = 0
        self._untold: list[int] = []  # groups that the name server is to hear of next
        self._outsiders: dict[str, Outsider] = {}
        self._outside: dict[int, Outsider] = {}
        self._looked_up: set[int] = set()  # what we are to serve and do not carry, until the name server has answered
        self._carried_once = CarriedOnce(station.requests)
        self.came_back: Callable[[str], None] = lambda name: None  # a group of processes, with a disk, without any
        self._submitters = Submitters(station)
        self._for_seats = for_seats()

    # --- Users ---

    def join(
        self, name: str, attributes: dict[str, AttributeValue], user: User, machine: Machine | None = None,
        since: int | None = None, form: Form = Form.IF_NONE, refused: Callable[[WhyNot], None] | None = None,
    ) -> None:  # fmt: skip
        """``user`` takes part in the group, which is formed if there is none, unless ``form`` says otherwise.

        With a ``machine`` this node has the state that all entries of the group add up to, from the newest checkpoint
        on. Either all members have one or none. If the group is there already, what ``attributes`` state must be so in
        it; else ``user`` is told ``lost`` with a reason that names what differs.

        ``since`` says where a user without a machine begins: ``NOW`` (default), ``CHECKPOINT``, or after an entry by
        its number. If that is no longer kept it is told ``lost`` with a reason that names the oldest number.
        """
        if machine is not None and since not in (None, CHECKPOINT):
            raise ValueError("a state machine begins with the newest checkpoint: since must be CHECKPOINT or left out")
        if since is not None and since < CHECKPOINT:
            raise ValueError(f"since must be NOW, CHECKPOINT or the number of an entry, not {since}")
        since = NOW if since is None or machine else since
        self._join(name, Application(user, attributes, machine, since, form, refused))

    def _join(self, name: str, application: Application) -> None:
        group = self._by_name.get(name)
        if group is None:
            group = self._new(name, application.formed_with)
            group.add_user(application)
            group.entrance.find()
        else:
            group.add_user(application)
        self._touched[group] = None

    def adopt(self, answer: dict[str, Any], application: Application | None) -> bool:
        """A client had it formed here: who carries it, if nobody has just asked for it. False if we are or were in."""
        record = answer["group"]
        if record["id"] in self._carried_once:
            return False
        group = self._by_name.get(record["name"])
        if group is not None and group.id and group.id != record["id"]:
            group.end(HAS_ENDED)  # what had the name before
            group = self._by_name.get(record["name"])  # who comes back to it asks for the new one
        group = group or self._new(record["name"], record["attributes"])
        if group.phase not in (Phase.FINDING, Phase.INSERTING, Phase.FORMING):
            return False
        if application is not None:
            group.add_user(application)
        group.entrance.adopt(answer)
        self._touched[group] = None
        return True

    def start(self, streams: dict[int, StoredStream]) -> None:
        """A new process: come back to the durable groups that the disk knows."""
        for group_id, stored in sorted(streams.items()):
            about = decode_about(stored.about)
            group = self._new(about.name, about.attributes)
            group.is_to_leave = about.is_leaving
            group.entrance.come_back(group_id, about.attributes, stored)
            self._touched[group] = None

    def _new(self, name: str, attributes: dict[str, AttributeValue]) -> NodeGroup:
        self._keys += 1
        group = NodeGroup(
            self._keys, self.station, name, attributes,
            known_as=self._known_as, activate=self._activate, over=self._ended, touch=self._touch,
            with_lease=self._with_lease, came_back=self._came_back,
        )  # fmt: skip
        self._by_name[name] = group
        return group

    def _came_back(self, group: NodeGroup) -> None:
        if group.settings.processes and not group.is_to_leave:
            self.turn.round_trip.append(lambda: self.came_back(group.name))

    def leave(self, name: str, user: User) -> None:
        """``user`` takes part no longer."""
        group = self._by_name.get(name)
        if group is not None:
            group.remove_user(user)
            self._touched[group] = None

    def submit(self, name: str, bodies: Sequence[bytes]) -> int:
        """Submit entries to a group that this node carries; the number of the first, 0 if they cannot be taken now."""
        group = self._by_name.get(name)
        if group is None or group.submitter is None or (group.settings.durable and group.refusal):
            refuse_too_large(bodies)
            return 0
        self._touched[group] = None
        return group.submitter.submit(bodies)

    def submit_one(self, name: str, body: bytes) -> int:
        """The same for a single one, at less cost."""
        group = self._by_name.get(name)
        if group is None or group.submitter is None or group.settings.durable:
            return self.submit(name, (body,))
        self._touched[group] = None
        return group.submitter.submit_one(body)

    def refusal(self, name: str) -> str:
        """Why a durable group takes nothing new from this node at the moment (S4), or ""."""
        group = self._by_name.get(name)
        return group.refusal if group is not None else ""

    def when_held(self, name: str, user: User, n: int, told: Told) -> bool:
        """Call back when k servers hold what this node submitted as its ``n``; False if it carries no such group.

        Asked in the step that submits, it makes that an acknowledged multicast (GS-14).
        """
        return self._confirm(name, lambda found: found.wait_for(user, n, told, seen=False))

    def when_seen(self, name: str, user: User, n: int, told: Told) -> bool:
        """The same for when all members have delivered it."""
        return self._confirm(name, lambda found: found.wait_for(user, n, told, seen=True))

    def sync(self, name: str, user: User, told: Told) -> bool:
        """Call back when the users here have been given all that was ordered before; False if there is no such group.

        A user that has lost the group is not called back any more.
        """
        return self._confirm(name, lambda found: found.sync(user, told))

    def _confirm(self, name: str, ask: Callable[[Confirmations], None]) -> bool:
        group = self._by_name.get(name)
        if group is None or group.phase is not Phase.CARRYING:
            return False
        if group.confirmations is None:
            group.confirmations = Confirmations(group)
        ask(group.confirmations)
        self._touched[group] = None
        return True

    def send(self, name: str, bodies: Sequence[bytes], stranger: Stranger) -> bool:
        """Submit entries to a group that this node does not carry; False if they cannot be taken now."""
        if name in self._by_name:
            return False
        refuse_too_large(bodies)
        outsider = self._outsiders.get(name)
        if outsider is None:
            outsider = Outsider(
                self.station,
                name,
                stranger,
                known_as=self._outside_as,
                over=self._outsider_ended,
                is_carried=lambda group_id: group_id in self._by_id,
            )
            self._outsiders[name] = outsider
        outsider.stranger = stranger
        return outsider.submit(tuple(bodies))

    def sent_upto(self, name: str) -> int:
        """The number of the newest entry that was sent from outside; nothing is if there is none."""
        outsider = self._outsiders.get(name)
        return outsider.last_n if outsider is not None else 0

    def outstanding(self, name: str) -> int:
        """How many entries of this node are on their way to the group."""
        group = self._by_name.get(name)
        return group.submitter.outstanding if group is not None and group.submitter is not None else 0

    def seat_of(self, name: str) -> Seat | None:
        """This node's place in the stream of a group that it carries, for the layer above."""
        group = self._by_name.get(name)
        return group.seat if group is not None and group.is_member else None

    # --- Groups come and go ---

    def _touch(self, group: NodeGroup) -> None:
        self._touched[group] = None

    def _known_as(self, group_id: int, group: NodeGroup) -> Submitter:
        self._by_id[group_id] = group
        submitter = self._submitters.of(group_id)
        submitter.leader = ""
        return submitter

    def _outside_as(self, group_id: int, outsider: Outsider) -> Submitter:
        self._outside[group_id] = outsider
        submitter = self._submitters.of(group_id)
        if group_id not in self._by_id:  # else the member knows who leads
            submitter.leader = ""
        return submitter

    def _outsider_ended(self, outsider: Outsider) -> None:
        self._outside.pop(outsider.id, None)
        self._give_up_submissions(outsider.id)
        if self._outsiders.get(outsider.name) is outsider:
            del self._outsiders[outsider.name]

    def _give_up_submissions(self, group_id: int) -> None:
        """Nobody here waits for what is on its way to that group, unless a member or a stranger still does."""
        if group_id not in self._by_id and group_id not in self._outside:
            self._submitters.settle(group_id)

    def _ended(self, group: NodeGroup) -> None:
        self._by_id.pop(group.id, None)
        self._give_up_submissions(group.id)
        if group.seat is not None:
            self._carried_once.remember(group.id, forgetting=not self._looked_up)
        self._planned.pop(group.key, None)
        if self._by_name.get(group.name) is group:
            del self._by_name[group.name]
        for application in group.returning:
            self._join(group.name, application)

    def start_again(self, reason: str) -> None:
        """This node goes on under a new incarnation: what the old one carried goes on without it."""
        groups = list(self._by_name.values())
        self._carried_once.start_again()
        self._activations.clear()
        self._looked_up.clear()
        self._submitters.clear()
        self._waiting.clear()
        for group in groups:
            self._planned.pop(group.key, None)
            self._keys += 1
            if group.go_on(reason, self._keys):
                self._touched[group] = None
            else:
                group.end(reason)
        for outsider in list(self._outsiders.values()):
            outsider.give_up(reason)

    # --- Messages ---

    def on_message(self, sender: Sender, message: StreamMessage) -> None:
        """A message about a group's stream."""
        group = self._by_id.get(message.stream)
        if group is None:
            outsider = self._outside.get(message.stream)
            if isinstance(message, Claim) and message.from_all:
                self._promise_nothing(sender, message)
            if isinstance(message, Grant | Claim | Open):
                self._is_to_serve(message)
            elif isinstance(message, FOR_A_MEMBER):
                # An old Insert of ours has made us a member of what we do not carry.
                self.turn.mark("group-ghost")
                self._answer(sender, Leave(message.stream, self._oldest_key))
            elif outsider is not None:
                self._to_outsider(outsider, message)
            elif isinstance(message, FOR_A_LEADER) and self.station.is_up((sender.name, sender.incarnation)):
                self._answer(sender, NotLeader(message.stream, 0, ""))
            return
        if self.station.member.isolated and not isinstance(message, ALSO_WHEN_ISOLATED):
            if not isinstance(message, Opened) or sender.name != self.turn.node:
                return
        self._touched[group] = None
        for_seat = self._for_seats.get(type(message))
        if for_seat is None:
            ANSWERS_BY_KIND[type(message)](group, sender, message)
        elif isinstance(message, Grant) and group.seat is not None and group.seat.replica.disk_hangs:
            self._cannot_serve(message)  # our promise would not get onto the disk
        elif group.seat is not None and group.is_member:
            for_seat(group.seat, sender, message)
        elif isinstance(message, Grant | Claim | Open):
            if isinstance(message, Claim) and message.from_all:
                group.entrance.promised = max(group.entrance.promised, message.epoch)
                self._promise_nothing(sender, message)
            self._is_to_serve(message)
        elif isinstance(message, FOR_A_LEADER):
            self._answer(sender, NotLeader(message.stream, 0, ""))

    @property
    def _oldest_key(self) -> int:
        """A term that no group has which is only about to be found: a late word about it ends no later membership."""
        return min((group.key for group in self._by_name.values() if not group.id), default=self._keys + 1) - 1

    def _is_to_serve(self, message: Grant | Claim | Open) -> None:
        """We are to lead or serve what we do not carry: perhaps a durable group, formed here just before a restart.

        Then nobody else can have anything of it. But a grant may also be a minute old, and we may have carried the
        group and left it since: so the name server is asked whether it is still so.
        """
        if isinstance(message, Grant) and self._is_formed_here(message.stream, message.base):
            if message.stream not in self._looked_up:
                self._looked_up.add(message.stream)
                self.station.requests.ask("find", message.name, lambda answer: self._found(message.stream, answer))
        else:
            self._cannot_serve(message)

    def _is_formed_here(self, group_id: int, active: View) -> bool:
        """Whether the first view is still active, and this disk alone is in it; this process never carried it."""
        mine = self.station.my_server(durable=True)
        return group_id == active.epoch and (mine,) == active.servers and group_id not in self._carried_once

    def _found(self, group_id: int, answer: dict[str, Any]) -> None:
        self._looked_up.discard(group_id)
        record = answer.get("group")
        if record is None or record["id"] != group_id or record["pending"] is None:
            return
        base, name = View.from_answer(record["active"]), record["name"]
        group = self._by_name.get(name)
        if self._is_formed_here(group_id, base) and (group is None or group.entrance.is_asking_into(group_id)):
            group = group or self._new(name, record["attributes"])
            group.entrance.begin_as_server(group_id, record["attributes"])
            assert group.seat is not None
            group.seat.take_grant(View.from_answer(record["pending"]), base)
            self._touched[group] = None

    def _cannot_serve(self, message: Grant | Claim | Open) -> None:
        """Tell the name server, which knows whether anybody counts on us, so that it does without us."""
        view, member = message.view, self.station.member
        if view is not None and member.hears_leader and not member.isolated:
            if any(self.station.my_server(durable=durable) in view.servers for durable in (False, True)):
                self.turn.mark("group-cannot-serve")
                self.turn.send(member.leader, Complaint(message.stream, view.epoch, unable=True))

    def _promise_nothing(self, sender: Sender, claim: Claim) -> None:
        """A fast group is recovered from all who carry it, and somebody counts us among them. We have nothing of it."""
        self.turn.mark("fast-not-carried")
        self._answer(sender, Promised(claim.stream, claim.epoch, 0, 0, 0, 0))

    def _answer(self, sender: Sender, message: PeerMessage) -> None:
        """About a group that we do not carry: over a link that is kept for as long as links are that nobody needs."""
        address = self.station.addresses((sender.name,)).get(sender.name, "")
        if address:
            self.station.links.need_too(ANSWERS, sender.name, address)
            self.station.links.forget(ANSWERS)
        self.turn.send(sender.name, message)

    def _to_outsider(self, outsider: Outsider, message: StreamMessage) -> None:
        if isinstance(message, Accepted):
            outsider.on_accepted(message)
        elif isinstance(message, SubmitRefused):
            outsider.on_submit_refused(message)
        elif isinstance(message, NotLeader):
            outsider.on_not_leader(message)
        elif isinstance(message, DataAsk):
            outsider.on_data_ask(message)

    def _activate(self, group_id: int, epoch: int) -> None:
        self._activations.append((group_id, epoch))

    def _ask_for_activation(self) -> None:
        while self._activations:
            batch = tuple(self._activations[:ACTIVATIONS_MAX])
            del self._activations[:ACTIVATIONS_MAX]
            self.station.requests.command(
                f"activating {len(batch)} views", lambda batch=batch: encode_command(ActivateView(batch)),  # type: ignore[misc]
                self._activated, lambda family, code, text, batch=batch: self._activations.extend(batch),  # type: ignore[misc]
            )  # fmt: skip

    def _activated(self, answer: dict[str, Any]) -> None:
        for one in answer["activations"]:
            self._with_lease(lambda one=one: self._lead(one))  # type: ignore[misc]

    def _lead(self, activation: dict[str, Any]) -> None:
        group = self._by_id.get(activation["id"])
        if group is not None and group.is_member and group.seat is not None:
            self._touched[group] = None
            group.seat.activated(activation)

    def _with_lease(self, action: Callable[[], None]) -> None:
        """Do something at the end of this step, or when the lease is back: who leads orders and delivers."""
        self._waiting.append(action)

    def _do_what_waited(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            for action in waiting:
                action()

    # --- The end of a step, and time ---

    def flush(self) -> None:
        """Send what was numbered; ask for what was recovered to be activated."""
        member = self.station.member
        if not member.isolated:
            if self._waiting:
                self._do_what_waited()
            if member.list_version != self._list_version:
                self._list_version = member.list_version
                for group in list(self._by_id.values()):
                    self._touched[group] = None
                    group.look_at_nodes()
            if self._touched:
                for group in list(self._touched):
                    group.flush()
        if self._activations:
            self._ask_for_activation()

    def settle(self) -> None:
        """After everything in a step: hand up what was delivered; when to look again is found out when asked for."""
        while self._touched:
            touched, self._touched = list(self._touched), {}
            for group in touched:
                group.hand_up()
                group.send_submitted()
                self._unplanned[group] = None

    def _plan(self, group: NodeGroup) -> None:
        at = group.deadline if group.phase is not Phase.OVER else math.inf
        key = group.key
        planned = self._planned.get(key)
        if planned is not None and planned[0] == at:
            return
        if at == math.inf:
            self._planned.pop(key, None)
            return
        self._planned[key] = (at, group)
        heapq.heappush(self._heap, (at, key))

    @property
    def deadline(self) -> float:
        """When the next group wants to be looked at."""
        at = self._next_group
        return min([at, *(one.deadline for one in self._outside_only)]) if self._outsiders else at

    @property
    def _outside_only(self) -> list[Outsider]:
        """Those whose groups this node does not carry; else the members see to what they submitted."""
        return [one for one in self._outsiders.values() if one.id not in self._by_id]

    @property
    def _next_group(self) -> float:
        heap, planned = self._heap, self._planned
        if self._unplanned:
            for group in self._unplanned:
                self._plan(group)
            self._unplanned.clear()
        while heap:
            at, key = heap[0]
            plan = planned.get(key)
            if plan is not None and plan[0] == at:
                return at
            heapq.heappop(heap)
        return math.inf

    def tick(self) -> None:
        """Time has passed."""
        for outsider in self._outside_only:
            if outsider.deadline <= self.turn.now:
                outsider.tick()
        while self._next_group <= self.turn.now:
            _, key = heapq.heappop(self._heap)
            _, group = self._planned.pop(key)
            self._touched[group] = None
            group.tick()

    # --- Looking at it ---

    def carried(self) -> tuple[tuple[int, int], ...]:
        """(id, epoch) of the groups that this node leads or serves: all of them, or if they are many, the next ones."""
        if not self._untold:
            self._untold = list(self._by_id)
        told, self._untold = self._untold[:CARRIED_TOLD_MAX], self._untold[CARRIED_TOLD_MAX:]
        groups = [self._by_id[group_id] for group_id in told if group_id in self._by_id]
        return tuple(
            (group.id, group.seat.replica.log.accepted)
            for group in groups
            if group.seat is not None and isinstance(group.seat.role, Server)
        )

    @property
    def trouble(self) -> str:
        """What is wrong with the groups here, for people."""
        return "; ".join(group.entrance.damage for group in self._by_name.values() if group.entrance.damage)

    @property
    def all(self) -> list[NodeGroup]:
        """Every group that this node has to do with."""
        return list(self._by_name.values())

    def status(self) -> tuple[GroupStatus, ...]:
        """Every group, by name."""
        return tuple(status_of(self._by_name[name]) for name in sorted(self._by_name))

    def statistics(self) -> NodeGroupStatistics:
        """All groups together."""
        return statistics_of(self._by_name.values())
