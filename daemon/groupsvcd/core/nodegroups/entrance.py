"""How this node becomes a member of a group: it forms it, is inserted into it, or comes back to it with a disk.

    finding    -- no such group -->         forming    -- formed here -->   carrying, as leader
    finding    -- led by A -->              inserting  -- inserted -->      carrying, as receiver
    returning  -- inserted once more -->    carrying, as the server that the disk says we were

After a restart a node *returns* to the durable groups its disk knows. Their servers are disks, so it promises, reports
and opens from the first moment on; but a member is a process, and this is a new one. So it asks the leader to be
inserted, and is a member when it finds itself in the stream. Whether a program on this node takes part does not matter:
a durable group is carried for its own sake until somebody who took part leaves.

A disk on which the log of a group is damaged holds nothing. It must not speak as the server that held it: it stays
silent until the active view does not count on it, and then begins anew.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..domain.commands import FormGroup, encode_command
from ..effects import Subscribe
from ..identity import Sender
from ..peer_messages import Insert, Inserted, InsertRefused, NotLeader, topic_of
from ..records import StoredStream
from ..stream.receiver import Receiver
from ..views import AttributeValue, View
from .group_carrier import GroupCarrier
from .group_settings import GroupSettings
from .phases import Phase
from .roll import Roll, decode_checkpoint, encode_checkpoint
from .user import CHECKPOINT, HAS_ENDED, NO_SUCH_GROUP, NOW, Application

if TYPE_CHECKING:
    from .node_group import NodeGroup


WHILE_DAMAGED = "nothing of it is served here until its other servers have given it back"
"""What people are told."""


class Entrance:
    """One node's way into one group."""

    def __init__(self, group: NodeGroup) -> None:
        self.group = group
        self.turn = group.turn
        self.station = group.station
        self._timers = group.station.parameters.timers
        self._leader = ""  # as far as we know, while we are no member
        self.promised = 0  # while we are no member: who is inserted under an older epoch is not inserted
        self.damage = ""  # what is wrong with what the disk once held for the group
        self._attempts = 0
        self._wait = self._timers.repeat_first
        self.repeat_at = math.inf
        self._forms_for: tuple[Application, ...] = ()  # who was there when we asked to form it

    # --- Finding and forming ---

    def find(self) -> None:
        """Ask the name server who leads the group."""
        self.group.phase = Phase.FINDING
        if self.group.participants.only_form:
            self._ask_to_form()  # what the directory says of it is enough
        elif self.group.participants.former is not None:
            self.group.ask(self._found)
        else:
            self.group.ask(self._found_for_certain, what="group")

    def _found(self, answer: dict[str, Any]) -> None:
        group = self.group
        if group.phase is not Phase.FINDING:
            return
        record = answer.get("group")
        if record is not None:
            self._insert_into(record)
        elif group.participants.former is not None:
            self._ask_to_form()
        else:
            group.ask(self._found_for_certain, what="group")  # who wanted it formed has gone meanwhile

    def _found_for_certain(self, answer: dict[str, Any]) -> None:
        """Nobody who asked wants the group formed, so it must be true that there is none."""
        group = self.group
        if group.phase is not Phase.FINDING:
            return
        record = answer.get("group")
        if record is not None:
            self._insert_into(record)
        elif group.participants.former is not None:
            self._ask_to_form()
        else:
            group.participants.there_is_no_group()
            if group.users:
                self.find()  # somebody else has come meanwhile
            else:
                group.end(NO_SUCH_GROUP)

    def _ask_to_form(self) -> None:
        group = self.group
        former = group.participants.former
        assert former is not None
        group.phase = Phase.FORMING
        self._forms_for = tuple(group.participants.applications)
        name, group.attributes = group.name, former.formed_with
        attributes = group.attributes
        group.command(
            f"forming group {name!r}",
            lambda: encode_command(FormGroup(name, self.turn.node, self.station.identity.incarnation, attributes)),
            self._formed, group.end,
        )  # fmt: skip

    def adopt(self, answer: dict[str, Any]) -> None:
        """Somebody had the group formed here."""
        self.group.phase = Phase.FORMING
        self._formed(answer)

    def _formed(self, answer: dict[str, Any]) -> None:
        group = self.group
        if group.phase is not Phase.FORMING:
            return
        if not answer.get("ok"):
            group.end(str(answer.get("problem", "refused")))
            return
        record = answer["group"]
        if not answer.get("formed"):
            self._insert_into(record)
            return
        group.with_lease(lambda: self._form(record))

    def _form(self, record: dict[str, Any]) -> None:
        """The group is ours: from here on it exists."""
        group = self.group
        if group.phase is not Phase.FORMING:
            return
        group.touch(group)
        self._take_record(record, self._forms_for)
        view = View.from_answer(record["active"])
        self.turn.mark("group-formed")
        seat = group.sit(StoredStream(promised=view.epoch, accepted=view.epoch))
        self._now_member()
        seat.form(view)
        if not group.users:
            group.leave()

    def _take_record(self, record: dict[str, Any], formed_for: tuple[Application, ...] = ()) -> None:
        self._is_called(record["id"], record["attributes"])
        self.group.participants.prescreen(formed_for)

    def _is_called(self, group_id: int, attributes: dict[str, AttributeValue]) -> None:
        group, parameters = self.group, self.station.parameters
        group.id = group_id
        group.attributes = attributes
        group.settings = GroupSettings(attributes, parameters)
        group.roll = group.new_roll()
        is_on_disk = group.settings.durable and self.station.member.disk != ""
        group.carrier = GroupCarrier(
            self.turn, group_id, self.station.member, journals_entries=parameters.journal_full,
            journals_digests=parameters.journal_digests, about=group.about() if is_on_disk else None,
        )  # fmt: skip
        group.submitter = group.known_as(group_id, group)
        group.submitter.inline_bytes_max = group.settings.inline_bytes_max
        group.submitter.disseminate = group.disseminate
        self.turn.effects.append(Subscribe(topic_of(group_id)))

    # --- Being inserted ---

    def _insert_into(self, record: dict[str, Any]) -> None:
        self._take_record(record)
        if not self.group.users:
            self.group.end("nobody on this node takes part in a group like this")
            return
        self._leader = record["active"]["leader"]
        self.group.phase = Phase.INSERTING
        self._wait = self._timers.repeat_first
        self._attempts = 0
        self._ask_in()

    def _ask_in(self) -> None:
        self._attempts += 1
        self.repeat_at = self.turn.now + self._wait
        self._wait = min(2 * self._wait, self._timers.repeat_max)
        group = self.group
        if self._attempts % 3 == 0 or self._leader in ("", self.turn.node):
            self.look_up_again()
        else:
            group.reach(self._leader)
            assert group.submitter is not None
            self.turn.send(self._leader, Insert(group.id, group.key, group.submitter.accepted_upto, self._since))

    @property
    def _since(self) -> int:
        """Where the first of our users begins that does not begin now; what comes after it is kept for all of them."""
        wishes = {application.since for application in self.group.participants.applications} - {NOW}
        numbers = wishes - {CHECKPOINT}
        if not wishes or self.group.phase is not Phase.INSERTING:
            return NOW
        return min(numbers) if numbers else CHECKPOINT

    def on_insert_refused(self, message: InsertRefused) -> None:
        """What one of our users wants to begin with is not to be had; the others ask again."""
        group = self.group
        mine = (message.to, message.term) == (self.station.identity.incarnation, group.key)
        since = self._since
        if mine and group.phase is Phase.INSERTING and since != NOW:
            self.turn.mark("group-begin-refused")
            for application in [one for one in group.participants.applications if one.since == since]:
                group.participants.turn_away(application, message.reason)
            if group.users:
                self._ask_in()
            else:
                group.end(message.reason)

    def look_up_again(self) -> None:
        """Somebody else may lead, or the group may have ended and been formed anew."""
        self.group.ask(self._found_again)

    def _found_again(self, answer: dict[str, Any]) -> None:
        group = self.group
        is_following = group.phase is Phase.CARRYING and group.seat is not None and group.seat.is_following
        if group.phase not in (Phase.INSERTING, Phase.RETURNING, Phase.LEAVING) and not is_following:
            return
        record = answer.get("group")
        if record is not None and record["id"] < group.id:
            return  # old news, of a group that had the name before
        if record is None or record["id"] != group.id:
            self._start_over(HAS_ENDED)
            return
        self._leader = record["active"]["leader"]
        if group.seat is not None and isinstance(group.seat.role, Receiver):
            group.seat.replica.leader = self._leader
            group.reach(self._leader)

    def _start_over(self, reason: str) -> None:
        """This group is no more, or we are not in it any more: who still wants it begins anew."""
        group = self.group
        if group.phase in (Phase.INSERTING, Phase.RETURNING):
            group.returning = [*group.returning, *group.participants.applications]
            group.participants.forget_all()
        group.end(reason)

    def on_not_leader(self, message: NotLeader) -> None:
        """We asked the wrong one."""
        if message.leader and message.leader != self._leader:
            self._leader = message.leader
        else:
            self.look_up_again()

    def on_inserted(self, sender: Sender, message: Inserted) -> None:
        """We are a member."""
        group = self.group
        mine = (message.to, message.term) == (self.station.identity.incarnation, group.key)
        if not mine or group.phase not in (Phase.INSERTING, Phase.RETURNING) or message.epoch < self.promised:
            return
        if self._since not in (NOW, message.begins) and (self._since != CHECKPOINT or message.begins == NOW):
            return  # a new leader does not know yet what we asked for
        group.begins = message.begins
        welcome = group.new_roll()
        welcome.restore(message.state)
        group.inserted(message.seq, tuple(name for name, _ in welcome.members))
        if group.phase is Phase.RETURNING and not self.damage:
            self._find_ourselves(sender.name, welcome, message)
            return
        if self.damage:
            if self.station.my_server(durable=True) in welcome.servers:
                return  # they still count on what the disk has not
            self.damage = ""
            assert group.carrier is not None
            group.carrier.forget(self.promised)
        begins = 0 if group.settings.machine else message.seq
        stored = StoredStream(
            accepted=message.epoch, base=begins, checkpoint_seq=begins, checkpoint=encode_checkpoint(message.state, b"")
        )
        seat = group.sit(stored)
        self.turn.journal("restored", group=group.id, epoch=message.epoch, seq=begins)
        if begins:
            group.roll = welcome
        else:
            seat.replica.intake.begins_with_checkpoint = True
            seat.replica.intake.begin(message.seq, self.turn.now)  # with the newest checkpoint, and what came after it
        returned = group.phase is Phase.RETURNING
        self._now_member()
        assert group.carrier is not None
        if group.carrier.durable:
            seat.be_quiet()  # nobody makes a server of a disk that does not know the group
            group.carrier.persist(done=seat.speak_up)
        seat.follow(sender.name, welcome.server_names)
        group.note_own_entries()
        group.submit_to(sender.name, welcome, message.seq)
        if not group.users and not returned:
            group.leave()

    def _now_member(self) -> None:
        self.repeat_at = math.inf
        self.group.now_member()

    # --- Coming back ---

    def come_back(self, group_id: int, attributes: dict[str, AttributeValue], stored: StoredStream) -> None:
        """A restart: the disk knows the group, and perhaps what this node held of it."""
        group = self.group
        self._is_called(group_id, attributes)
        assert group.carrier is not None
        group.carrier.found_on_disk(is_described=stored.about != b"", is_stored=stored.accepted > 0)
        self.turn.mark("group-returns")
        self._return()
        if stored.damage:
            self.damage = f"group {group.name!r}: {stored.damage}; {WHILE_DAMAGED}"
            self.turn.mark("group-damaged")
            self.turn.journal("trouble", group=group_id, text=self.damage)
            self.promised = max(self.promised, stored.promised)
            return
        seat = group.sit(stored)
        if stored.checkpoint:
            group.roll.restore(decode_checkpoint(stored.checkpoint).roll)
        self.turn.journal("restored", group=group_id, epoch=stored.accepted, seq=stored.checkpoint_seq)
        seat.come_back(stored.promised)

    def go_on(self) -> None:
        """This node was declared down, and goes on as a new process with the same disk."""
        group = self.group
        group.submitter = group.known_as(group.id, group)
        group.submitter.inline_bytes_max = group.settings.inline_bytes_max
        group.submitter.disseminate = group.disseminate
        if group.seat is not None:
            epoch = group.seat.replica.log.accepted
            self.turn.journal("restored", group=group.id, epoch=epoch, seq=group.delivered)
        self._return()

    def _return(self) -> None:
        self.group.phase = Phase.RETURNING
        self.group.came_back(self.group)
        self._leader = ""
        self._attempts = 0
        self._wait = self._timers.repeat_first
        self.repeat_at = self.turn.now

    def is_asking_into(self, group_id: int) -> bool:
        """Whether somebody here wants to take part, and nobody has let us in yet."""
        return self.group.phase is Phase.INSERTING and self.group.id == group_id

    def begin_as_server(self, group_id: int, attributes: dict[str, AttributeValue]) -> None:
        """We are to lead a group that our disk formed and then knew nothing of: nobody else can have anything of it."""
        group = self.group
        group.participants.set_machine_aside()
        self.come_back(group_id, attributes, StoredStream())

    def _find_ourselves(self, leader: str, welcome: Roll, message: Inserted) -> None:
        """We are in the stream, at ``message.seq``; once it is delivered here, we are a member."""
        seat = self.group.seat
        assert seat is not None
        seat.is_welcome(leader, welcome.server_names, message.seq)

    def look_for_ourselves(self) -> None:
        """After something was delivered."""
        group = self.group
        is_in = self.station.me in group.roll.members
        if group.phase is Phase.RETURNING and is_in and group.seat is not None:
            group.seat.replica.library.drop_numbered()  # the disk may have some whose entries were dropped
            group.seat.speak_up()  # whatever we were about to do before
            self._now_member()
            group.note_own_entries()
            group.submit_to(group.seat.replica.leader, group.roll, group.delivered)

    # --- Time ---

    def tick(self) -> None:
        """Ask again."""
        if self.turn.now >= self.repeat_at:
            if self.group.phase in (Phase.INSERTING, Phase.RETURNING):
                self._ask_in()
            else:
                self.repeat_at = math.inf
