"""This node's part in one group, from the first look-up to the last word.

It becomes a member by its ``entrance``, and ceases to be one when nobody on this node needs the group any more:

    carrying   -- nobody needs it -->     leaving    -- removed -->      over

A leader that leaves hands over first. If meanwhile somebody here needs the group again, it stays: there may be nobody
to hand over to. The only node with a disk carries a durable group as long as others take part in it.

While it carries the group it has a *seat* in its stream (see ``seat``). Without a lease the node is isolated: then it
only promises, reports and gives repairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from ..effects import Unsubscribe
from ..identity import Sender
from ..invariants import invariant
from ..peer_messages import Data, Leave, SyncAsk, topic_of
from ..records import Record, StoredStream
from ..stream.delivery import Holders
from ..stream.entries import Entries, Run
from ..stream.fast import FastReplica
from ..stream.receiver import Receiver
from ..stream.replica import Replica, Retention
from ..stream.server import Server
from ..views import AttributeValue, NodeId
from .about import About, encode_about
from .confirmations import Confirmations
from .controls import NodeInserted, NodesFailed, Ruled, ViewStarted, decode_control, who_changed
from .entrance import Entrance
from .fast_seat import FastSeat
from .group_carrier import GroupCarrier
from .group_settings import GroupSettings
from .participants import LAGGED, Participants
from .phases import Phase
from .roll import Roll, decode_checkpoint, encode_checkpoint
from .seat import Seat
from .station import Station
from .submitter import Submitter
from .user import NOW, Application, User


class NodeGroup:
    """One group on one node."""

    __slots__ = (
        "_activate", "_batch", "_batch_first", "_changed_at", "_inserted_seq", "_is_handing_up", "_is_out",
        "_over", "_repeat_at", "_shown", "_timers", "_wait", "attributes", "begins", "came_back", "carrier",
        "confirmations", "entrance", "id", "is_closed", "is_to_leave", "key", "known_as", "late", "leaving",
        "name", "participants", "phase", "returning", "roll", "seat", "settings", "station", "submitter",
        "touch", "turn", "with_lease",
    )  # fmt: skip  # a node has thousands

    def __init__(
        self, key: int, station: Station, name: str, attributes: dict[str, AttributeValue], *,
        known_as: Callable[[int, NodeGroup], Submitter], activate: Callable[[int, int], None],
        over: Callable[[NodeGroup], None], touch: Callable[[NodeGroup], None],
        with_lease: Callable[[Callable[[], None]], None], came_back: Callable[[NodeGroup], None],
    ) -> None:  # fmt: skip
        self.key = key  # never used again on this node
        self.station = station
        self.turn = station.turn
        self.name = name
        self.id = 0
        self.attributes = attributes
        self.settings = GroupSettings(attributes, station.parameters)
        self.phase = Phase.FINDING
        self.returning: list[Application] = []  # who joins again when this node has left
        self.leaving: set[NodeId] = set()  # who told us, as leader, that it leaves
        self.late: dict[str, int] = {}  # who could not open our view in time, and up to where it has to come first
        self.roll = self.new_roll()
        self.begins = NOW  # what came after that entry is kept for us
        self.participants = Participants(self)
        self.carrier: GroupCarrier | None = None
        self.seat: Seat | None = None
        self.submitter: Submitter | None = None
        self.known_as = known_as
        self._activate = activate
        self._over = over
        self.touch = touch
        self.with_lease = with_lease
        self.came_back = came_back  # told that we may lead the group, for the sake of our disk, and no program is in
        self._timers = station.parameters.timers
        self._batch: list[Run] = []
        self._batch_first = 0
        self._is_handing_up = False  # a user is just being given entries, and may do anything
        self._changed_at, self._is_out = 0, False
        self._inserted_seq = 0
        self.is_to_leave = False  # once we are a member again
        self.is_closed = False  # the layer above has seen its last word in the stream
        self._shown: tuple[str, ...] = ()  # the members as of our insertion
        self._repeat_at = math.inf
        self._wait = self._timers.repeat_first
        self.entrance = Entrance(self)
        self.confirmations: Confirmations | None = None  # once somebody has asked for any

    # --- Where this node is with it ---

    @property
    def is_leaving(self) -> bool:
        """Whether nobody on this node needs the group any more."""
        return self.phase is Phase.LEAVING

    @property
    def is_member(self) -> bool:
        """Whether this node carries the group; after a restart also before the others have it as a member again."""
        phase = self.phase
        return phase is Phase.CARRYING or phase is Phase.LEAVING or phase is Phase.RETURNING

    @property
    def delivered(self) -> int:
        """Up to where the stream was handed up here."""
        return self.seat.replica.delivered if self.seat is not None else 0

    def new_roll(self) -> Roll:
        """One of nothing yet."""
        return Roll(self.settings.logical_lifetime, fast=self.settings.fast)

    def about(self) -> bytes:
        """What a restart has to know of the group."""
        return encode_about(About(self.name, self.attributes, self.is_leaving or self.is_to_leave))

    # --- Users ---

    @property
    def users(self) -> list[User]:
        """Who takes part."""
        return self.participants.users

    def add_user(self, application: Application) -> None:
        """Somebody on this node takes part, if the group is what it asked for; not if it is about to end."""
        if self.is_leaving or self.is_closed:
            self.returning.append(application)
            self._again_soon()
            return
        self.hand_up()
        self.participants.add(application)
        if self.users:
            self._is_wanted(wanted=True)

    def _is_wanted(self, *, wanted: bool) -> None:
        """Whether anybody needs the group here, once this node is a member again; the disk knows it, too."""
        if self.is_to_leave == wanted:
            self.is_to_leave = not wanted
            self._describe()

    def remove_user(self, user: User) -> None:
        """Somebody on this node takes part no longer; with the last one the node leaves."""
        waiting = [application for application in self.returning if application.user is user]
        if waiting:
            self.returning.remove(waiting[0])
            user.lost("left")
        self.hand_up()
        if all(application.user is not user for application in self.participants.applications):
            return
        self.participants.forget(user)
        user.lost("left")
        if self.users:
            return
        if self.phase is Phase.CARRYING:
            self.leave()
        elif self.phase is Phase.RETURNING:
            self._is_wanted(wanted=False)
        elif not self.is_member and self.phase is not Phase.FORMING:
            # An Insert may be on its way. Whoever gets an answer without wanting one leaves again.
            self.phase = Phase.OVER if self.phase is Phase.FINDING else self.phase
            if self.phase is Phase.OVER:
                self._over(self)

    @property
    def refusal(self) -> str:
        """Why nothing new can be submitted at the moment, or ""; what was submitted before is ordered in the end."""
        here = self.seat.refusal if self.seat is not None else ""
        return here or (self.submitter.refused_because if self.submitter is not None else "")

    def disseminate(self, n: int, payload: bytes) -> None:
        """A large payload of ours goes to all who carry the group, and to our own copy."""
        data = Data(self.id, *self.station.me, n, payload)
        self.turn.multicast(topic_of(self.id), data)

    # --- Errands ---

    def _touched(self, answered: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
        def touched(answer: dict[str, Any]) -> None:
            self.touch(self)
            answered(answer)

        return touched

    def ask(self, answered: Callable[[dict[str, Any]], None], what: str = "find") -> None:
        """Ask the name server for the record of the group; with "group" it is certain if there is none."""
        self.station.requests.ask(what, self.name, self._touched(answered))

    def command(
        self, about: str, body: Callable[[], bytes], answered: Callable[[dict[str, Any]], None],
        failed: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Have a command ordered in the directory."""
        self.station.requests.command(about, body, self._touched(answered), lambda family, code, text: failed(text))

    # --- Being a member ---

    def sit(self, stored: StoredStream) -> Seat:
        """Take a seat with this copy of the stream."""
        station = self.station
        parameters = station.parameters
        retention = Retention(
            checkpoint_every=self.settings.checkpoint_every, margin=parameters.retention_margin,
            block_bytes=parameters.checkpoint_block_bytes, fetched_entries_max=self.settings.history_entries_max,
        )  # fmt: skip
        assert self.carrier is not None
        copy = (self.carrier, stored, (), retention, self._timers, station.rng, self)
        if self.settings.fast:
            self.seat = FastSeat(self, FastReplica(*copy), self._activate)
        else:
            self.seat = Seat(self, Replica(*copy), self._activate)
        self.seat.replica.members = lambda: self.roll.members
        self.seat.replica.library.numbered_upto = lambda origin: self.roll.origins.get(origin, (0, 0))[0]
        return self.seat

    def now_member(self) -> None:
        """The others have us as a member."""
        self.phase = Phase.CARRYING
        self._changed_at, self._is_out = 0, False
        self.turn.journal("joined", group=self.id, seq=self.delivered, era=self.roll.beginning)
        self.link()
        self.participants.tell_joined()
        is_to_leave, self.is_to_leave = self.is_to_leave, False
        if is_to_leave and not self.users:
            self.leave()

    def inserted(self, seq: int, names: tuple[str, ...]) -> None:
        """We are in the stream as of entry ``seq``, among these."""
        self._inserted_seq, self._shown = seq, names

    def link(self) -> None:
        """Be connected to all who carry the group, and to whom we ask for what we lack: our own roll may lag."""
        names = dict.fromkeys(name for name, _ in self.roll.members)
        if self.delivered < self._inserted_seq:
            names.update(dict.fromkeys(self._shown))
        if self.seat is not None:
            names.update(dict.fromkeys(self.seat.asked))
        self.station.links.need(self.id, self.station.addresses(tuple(names)), listen=True)

    def reach(self, name: str) -> None:
        """Have a link to one more node."""
        address = self.station.addresses((name,)).get(name, "")
        if address:
            self.station.links.need_too(self.id, name, address)

    # --- Ceasing to be one ---

    def close(self) -> None:
        """Nothing that is ordered from now on means anything to anybody: the group ends when all members know."""
        if not self.is_closed:
            self.is_closed = True
            self.turn.mark("group-closed")
            if self.seat is not None and self.seat.leading is not None:
                self.seat.leading.close()

    def leave(self) -> None:
        """Nobody on this node needs the group any more."""
        self.phase = Phase.LEAVING
        self._describe()
        self._again_soon()

    def _describe(self) -> None:
        if self.carrier is not None:
            self.carrier.describe(self.about())

    def _again_soon(self) -> None:
        self._wait = self._timers.repeat_first
        self._repeat_at = self.turn.now

    def _ask_out(self) -> None:
        self._repeat_at = self.turn.now + self._wait
        self._wait = min(2 * self._wait, self._timers.repeat_max)
        seat = self.seat
        if seat is None:
            return
        if seat.leading is not None:
            if self.returning and seat.leading.stay():
                self._stay()
                return
            self.leaving.add(self.station.me)
            seat.leading.consider_view()
            if self._wait == self._timers.repeat_max and self.is_without_heir and not self.is_closed:
                self.came_back(self)  # it takes longer than a hand-over does: somebody is to preside meanwhile
        elif seat.replica.leader and seat.replica.leader != self.turn.node:
            self.turn.send(seat.replica.leader, Leave(self.id, self.key))

    @property
    def is_without_heir(self) -> bool:
        """Whether we lead a durable group in which others take part, and nobody of them has a disk to hold it."""
        if self.seat is None or self.seat.leading is None or not self.settings.durable:
            return False
        others = [node for node in self.roll.members if node != self.station.me and node not in self.leaving]
        return bool(others) and all(self.station.server(node, durable=True)[1] == "" for node in others)

    def _stay(self) -> None:
        """We lead the group, and somebody needs it again; the journal says so: it told of no processes meanwhile."""
        self.turn.mark("group-stays")
        self.phase, returning, self.returning = Phase.CARRYING, self.returning, []
        self._describe()
        self.turn.journal("joined", group=self.id, seq=self.delivered, era=self.roll.beginning)
        for application in returning:
            self.add_user(application)
        if not self.users:
            self.leave()  # none of them fits

    @property
    def is_counted_on(self) -> bool:
        """Whether, for all we know, a view counts on what our disk holds: then it must not be forgotten."""
        return self.carrier is not None and self.carrier.is_stored

    def end(self, reason: str) -> None:
        """Nothing is done for this group any more; who still wants it is told, and may join again."""
        if self.phase is Phase.OVER:
            return
        if self.seat is not None:
            self.seat.deliver_announced()
        self.hand_up()
        if self.seat is not None:
            self.seat.stop_leading()
        self.phase = Phase.OVER
        self._repeat_at = self.entrance.repeat_at = math.inf
        if self.carrier is not None:
            self.carrier.forget_all()
        self.submitter = None  # its numbers go on when this node comes back
        if self.id:
            self.turn.journal("group_lost", group=self.id, seq=self.delivered, reason=reason)
            self.turn.effects.append(Unsubscribe(topic_of(self.id)))
            self.station.links.forget(self.id)
        users = self.participants.forget_all()
        self._over(self)
        for user in users:
            user.lost(reason)

    def go_on(self, reason: str, key: int) -> bool:
        """This node goes on as a new process, the disk of a durable group as what it was; False if there is none."""
        if self.carrier is None or not self.carrier.durable or not self.is_member:
            return False
        self.hand_up()
        if self.seat is not None:
            self.seat.stop_leading()
        self.key = key
        self.leaving.clear()
        self._inserted_seq, self._repeat_at, self._is_out = 0, math.inf, False
        self.is_to_leave = self.is_to_leave or self.is_leaving
        users = [*self.participants.forget_all(), *(application.user for application in self.returning)]
        self.returning = []
        self.entrance.go_on()
        for user in users:
            user.lost(reason)
        return True

    def ask_for(self, sender: Sender, message: SyncAsk) -> None:
        """Another member does not reach the leader, and asks us how far the stream is."""
        node = (sender.name, sender.incarnation)
        if node in self.roll.members:
            self.confirmations = self.confirmations or Confirmations(self)
            self.confirmations.ask_for(node, message.number)

    def forget_questions(self) -> None:
        """Nobody is told anything more about the stream."""
        if self.confirmations is not None:
            self.confirmations.forget_all()

    # --- The stream's host ---

    def deliver(self, first_seq: int, runs: list[Run]) -> None:
        """These entries are stable and next in order; only the last may be one of the leader's own."""
        if not self._batch:
            self._batch_first = first_seq
            self.touch(self)
        self._batch += runs
        last = runs[-1]
        newest = self.roll.note(first_seq, runs if last.origin else runs[:-1])
        if not last.origin:
            self._deliver_control(self.delivered, last.bodies[0])
        if newest:
            self._tell_origins(newest)

    def note_own_entries(self) -> None:
        """Entries of ours that we did not see delivered are in the roll all the same."""
        if self.submitter is not None:
            self.submitter.accepted(self.roll.origins.get(self.station.me, (0, 0))[0])

    def _tell_origins(self, newest: dict[NodeId, int]) -> None:
        """What came from this node is no longer outstanding; who is no member cannot see that for itself."""
        mine = newest.get(self.station.me)
        if mine is not None and self.submitter is not None:
            self.submitter.accepted(mine)
        leading = self.seat.leading if self.seat is not None else None
        if leading is not None:
            for origin, n in newest.items():
                if origin not in self.roll.members:
                    leading.accept(origin, n)

    def _deliver_control(self, seq: int, body: bytes) -> None:
        control = decode_control(body)
        self.roll.apply(seq, control)
        if isinstance(control, Ruled):
            return
        self._changed_at = seq
        self.leaving.difference_update(who_changed(control))  # a leave that a leader before us has heard of is past
        seat = self.seat
        assert seat is not None
        epoch = seat.replica.log.accepted
        self.turn.journal("members", group=self.id, epoch=epoch, seq=seq, **self.roll.shown)
        if isinstance(control, ViewStarted):
            seat.replica.tail_may_be_lost = seat.replica.tail_may_be_lost and control.epoch != epoch
            if isinstance(seat.role, Receiver):
                seat.replica.servers = self.roll.server_names
                if control.epoch == epoch:
                    seat.replica.leader = control.leader
            self.submit_to(control.leader, self.roll, seq)
            if self.confirmations is not None:
                self.confirmations.view_started()
            if isinstance(seat.role, Server):
                seat.role.report_payloads()
            if self.is_leaving:
                self._again_soon()
        if isinstance(control, NodeInserted) and self.submitter is not None and control.node == self.station.me:
            self.submitter.send_new(seq)
        if isinstance(control, NodesFailed):
            for node in control.nodes:
                seat.replica.library.payloads.drop_unordered_of(*node)
        self.link()
        if seat.leading is not None:
            seat.leading.delivered(seq, control)

    def submit_to(self, leader: str, roll: Roll, seq: int) -> None:
        """This one leads, as the roll after entry ``seq`` tells: what we submit goes there."""
        if self.submitter is not None:
            self.submitter.relays = roll.relays(leader, self.turn.node)
            self.submitter.follow(leader)
            self.submitter.send_new(seq)

    def restore(self, seq: int, state: bytes) -> None:
        """What we missed is no longer kept: go on from a checkpoint. Users without a machine have lost the group."""
        asked, self.confirmations = self.confirmations, None  # the stream is further than the users yet
        self.hand_up()
        self.confirmations = asked
        checkpoint = decode_checkpoint(state)
        self.roll.restore(checkpoint.roll)
        if self.seat is not None:
            self.seat.replica.library.drop_numbered()
            self.link()
        self.note_own_entries()
        self.submit_to(self.roll.leader, self.roll, seq)
        if self.participants.machine is not None:
            self.turn.mark("group-resynchronised")
            self.participants.restore(seq, checkpoint.application)
        elif self.users and self.phase is not Phase.RETURNING:
            self.turn.mark("group-lagged")
            self.forget_questions()
            self.forsake(LAGGED)
        self._changed_at = seq

    def forsake(self, reason: str) -> None:
        """The users have lost the group. The node leaves in due form: it may be one of the servers."""
        self.hand_up()
        users = self.participants.forget_all()
        if self.phase is Phase.CARRYING:
            self.leave()
        for user in users:
            user.lost(reason)

    def snapshot(self) -> bytes | None:
        """The roll, and the state of the application if it has one."""
        # A machine has applied what was delivered; its user may have left meanwhile. Whether we are a member is seen at
        # the end of the step: whoever forms a group is so with its second entry only.
        self._hand_up_entries()
        if not self.can_snapshot:
            return None
        machine = self.participants.machine
        return encode_checkpoint(self.roll.snapshot(), machine.snapshot() if machine is not None else b"")

    @property
    def can_snapshot(self) -> bool:
        """Whether the application's state, if it has one, is here."""
        return self.participants.machine is not None or not self.settings.machine

    @property
    def snapshots_cheaply(self) -> bool:
        """The roll is small; an application's state may not be."""
        return not self.settings.machine

    def holders(self) -> Holders:
        """No disks are named in a group's log: the directory names them."""
        return Holders()

    def switching(self, epoch: int) -> tuple[Record, ...]:
        """Nothing besides the log itself."""
        return ()

    # --- The end of a step, and time ---

    def look_at_nodes(self) -> None:
        """The node list has changed."""
        if self.is_member and self.seat is not None:
            self.link()
            self.seat.look_at_nodes()

    def send_submitted(self) -> None:
        """Send what was submitted in this step, all at once."""
        if self.confirmations is not None:
            self.confirmations.before_sending()
        submitter = self.submitter
        if submitter is not None and submitter.has_unsent and self.is_member:
            if not submitter.leader and self.phase is Phase.CARRYING and self.seat is not None:
                submitter.follow(self.seat.replica.leader)  # the stream let us in, and nobody told us
            submitter.send_new(max(self.delivered, self._inserted_seq))

    def flush(self) -> None:
        """Send what was numbered in this step."""
        if self.is_member and self.seat is not None:
            self.seat.flush()

    def hand_up(self) -> None:
        """Give the users what was delivered in this step, and see what it has made of us."""
        if self._is_handing_up:
            return  # what comes after the entries comes when all have them
        self._hand_up_entries()
        if self.confirmations is not None:
            self.confirmations.look()
        if self._changed_at:
            seq, self._changed_at = self._changed_at, 0
            self.entrance.look_for_ourselves()
            self._is_out = self.station.me not in self.roll.members and self.delivered >= self._inserted_seq
            if self._leave_if_out():
                return
            members = tuple(self.roll.members)
            for user in self._told():
                user.changed(seq, members)
        elif self._is_out:
            self._leave_if_out()

    def _leave_if_out(self) -> bool:
        """Whether we were removed, and go; not who leads or is to: the directory counts on it, and it gets in again."""
        is_to_lead = self.seat is not None and (self.seat.leading is not None or self.seat.recovery is not None)
        if not self._is_out or is_to_lead or self.phase not in (Phase.CARRYING, Phase.LEAVING):
            return False
        self._is_out = False
        removed = "this node was removed from the group"
        if not (self.is_counted_on and self.go_on(removed, self.key)):
            self.end("left" if self.phase is Phase.LEAVING else removed)
        return True

    def _hand_up_entries(self) -> None:
        if self._batch:
            batch, self._batch = Entries(self._batch), []
            self._is_handing_up = True
            for user in self._told():
                user.delivered(self._batch_first, batch)
            self._is_handing_up = False

    def _told(self) -> Iterator[User]:
        """Who takes part and is told something, one after the other; who is told may take out those that come next."""
        for user in tuple(self.users) if self.phase is not Phase.RETURNING else ():
            if user in self.users:
                yield user

    @property
    def deadline(self) -> float:
        """When something is to be done without a message."""
        at = min(self._repeat_at, self.entrance.repeat_at, self.participants.backlogs.deadline)
        if self.seat is not None and self.is_member:
            at = min(at, self.seat.deadline)
        if self.submitter is not None:
            at = min(at, self.submitter.deadline)
        if self.confirmations is not None:
            at = min(at, self.confirmations.deadline)
        return at

    def tick(self) -> None:
        """Time has passed."""
        invariant(self.phase is not Phase.OVER, f"a tick for {self.name!r}, which is over")
        now = self.turn.now
        self.entrance.tick()
        self.participants.backlogs.tick()
        if now >= self._repeat_at:
            if self.phase is Phase.LEAVING:
                self._ask_out()
            else:
                self._repeat_at = math.inf
        if self.seat is not None and self.is_member:
            self.seat.tick()
            if self.seat.is_lonely():
                self.entrance.look_up_again()
        if self.submitter is not None:
            self.submitter.tick()
        if self.confirmations is not None:
            self.confirmations.tick()
