"""All process groups of a node: which process takes part in which, and which votes are for which.

It sits on ``NodeGroups``: each process group is a user of the node group of the same name, and brings it its machine.
It gives the numbers by which processes of this node are known everywhere; they are never used again.

Only groups in which something is waited for have a deadline: a node may carry thousands that sleep.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

from groupsvc.wire.notices import AnyNotice

from ..identity import Sender
from ..nodegroups.group_settings import GroupSettings
from ..nodegroups.node_groups import NodeGroups
from ..nodegroups.phases import Phase
from ..nodegroups.seat import Seat
from ..nodegroups.user import Application, Form
from ..parameters import Timers
from ..peer_messages import ForChair, PeerMessage
from ..statistics import ProcessGroupStatistics, Sees
from ..turn import Turn
from ..views import AttributeValue, NodeId
from . import chronicle
from . import commands as cmd
from .arrivals import Arrival, Arrivals
from .census import Census, Decided
from .local_group import LocalGroup

ASK_AGAIN_S = 0.5
"""How often the name server is asked whether an older incarnation of a node is gone."""

OURS: dict[str, AttributeValue] = {"processes": True}
"""What tells the stream of a process group from others: its entries are commands."""

LAGGED = "lagged: this node has missed entries that are no longer kept"


class ProcessGroups:
    """The process groups of one node."""

    def __init__(self, turn: Turn, node_groups: NodeGroups, timers: Timers) -> None:
        self.turn = turn
        self.timers = timers
        self._nodes = node_groups
        self._by_name: dict[str, LocalGroup] = {}
        self._by_id: dict[int, LocalGroup] = {}
        self._awake: dict[LocalGroup, None] = {}
        self._last_number = 0
        self._was_isolated = True
        self._list_version = 0
        self._gone: set[NodeId] = set()  # incarnations that have a successor, and are known to hold nothing
        self._asked: dict[NodeId, float] = {}  # whether they are, and when
        self._formed_for: dict[str, str] = {}  # groups that somebody had formed here without joining: by whom
        self.arrivals = Arrivals(self)
        self.census = Census(turn.tally)
        node_groups.came_back = self._came_back

    @property
    def me(self) -> NodeId:
        """This node, as part of the ids of its processes."""
        return self._nodes.station.me

    @property
    def now(self) -> float:
        """What time it is."""
        return self.turn.now

    def next_number(self) -> int:
        """For a process."""
        self._last_number += 1
        return self._last_number

    # --- For processes ---

    def take_part(self, name: str, attributes: dict[str, AttributeValue]) -> LocalGroup:
        """This node's part in a group; from now on it carries it, or tries to."""
        local = self._by_name.get(name)
        if local is None:
            self._by_name[name] = local = LocalGroup(self, name)
            self._nodes.join(name, {**attributes, **OURS}, local, local)
        return local

    def enter(self, name: str, arrival: Arrival) -> None:
        """The same for the first of those who wait for it; he is told what came of it.

        If the node is on its way back to a durable group, it carries that for the sake of its disk, whatever he does.
        """
        seat = self._nodes.seat_of(name)
        self._by_name[name] = local = LocalGroup(self, name, arrival)
        if seat is not None and seat.group.phase is Phase.RETURNING:
            local.is_steward = not seat.group.is_to_leave
        attributes = {**arrival.attributes, **OURS}
        self._nodes.join(name, attributes, local, local, form=arrival.form, refused=local.refused)

    def _came_back(self, name: str) -> None:
        """This node has come back to a durable group: it may lead, so it presides, though none of its processes is in.

        Or it wanted to leave one, and cannot, because meanwhile nobody else has a disk. It stays until a process of it
        that took part has left, as with everything durable.
        """
        if name not in self._by_name:
            self._by_name[name] = local = LocalGroup(self, name)
            local.is_steward = True
            self._nodes.join(name, OURS, local, local, form=Form.NEVER)

    def adopt(self, answer: dict[str, Any], who: str = "") -> None:
        """Somebody had this group formed here: this node carries it until processes have joined and left again."""
        name = answer["group"]["name"]
        self._formed_for[name] = who
        local = self._by_name.get(name)
        if local is None:
            self._by_name[name] = local = LocalGroup(self, name)
            local.is_kept = self._nodes.adopt(answer, Application(local, machine=local, refused=local.refused))
            if not local.is_kept and self._by_name.get(name) is local:
                del self._by_name[name]
        elif not local.is_in:
            local.is_kept = self._nodes.adopt(answer, None) or local.is_kept

    def formed_for(self) -> tuple[str, ...]:
        """For whom this node carries groups that nobody has joined, once for each."""
        carried = ((name, who, self._by_name.get(name)) for name, who in self._formed_for.items())
        self._formed_for = {name: who for name, who, local in carried if local is not None and local.is_kept}
        return tuple(self._formed_for.values())

    def get(self, name: str) -> LocalGroup | None:
        """The same, if there is any."""
        return self._by_name.get(name)

    # --- For local groups ---

    def carries(self, local: LocalGroup) -> None:
        """This node carries the group, which has an id now."""
        self._by_id[local.id] = local

    def attributes_of(self, local: LocalGroup) -> dict[str, AttributeValue]:
        """As the directory has them."""
        seat = self._nodes.seat_of(local.name)
        return dict(seat.group.attributes) if seat is not None else {}

    def seat_of(self, local: LocalGroup) -> Seat | None:
        """This node's copy of the group's stream; None if it carries it no longer."""
        return self._nodes.seat_of(local.name)

    def settings_of(self, local: LocalGroup) -> GroupSettings | None:
        """What was agreed upon when the group was formed, with what holds by default; None if we do not carry it."""
        seat = self._nodes.seat_of(local.name)
        return seat.group.settings if seat is not None else None

    def leave(self, local: LocalGroup) -> None:
        """No process of this node takes part any more."""
        self._nodes.leave(local.name, local)

    def is_without_heir(self, local: LocalGroup) -> bool:
        """Whether this node leads a durable group that nobody else could, as nobody else has a disk."""
        seat = self._nodes.seat_of(local.name)
        return seat is not None and seat.group.id == local.id and seat.group.is_without_heir

    def close(self, local: LocalGroup) -> None:
        """The last provider has left: nothing that comes in this stream counts any more."""
        seat = self._nodes.seat_of(local.name)
        if seat is not None and seat.group.id == local.id:
            seat.group.close()

    def soon(self, action: Callable[[], None]) -> None:
        """Do this within the step, when those who are busy now are done."""
        self.turn.round_trip.append(action)

    def look_at(self, local: LocalGroup) -> None:
        """Something has happened to it: it may wait for something now."""
        self._awake[local] = None

    def forget(self, local: LocalGroup) -> None:
        """This node does not carry the group any more; who waits for it is told by ``arrivals``."""
        self._awake.pop(local, None)
        self.census.is_over(local.id)
        if self._by_name.get(local.name) is local:
            del self._by_name[local.name]
        if self._by_id.get(local.id) is local:
            del self._by_id[local.id]

    def lost_entries(self, local: LocalGroup) -> None:
        """Its copy goes on behind entries that its processes were not told of: they cannot go on."""
        local.lost(LAGGED)
        self._nodes.leave(local.name, local)

    def journal(self, local: LocalGroup, notices: Sequence[AnyNotice]) -> None:
        """What follows from one entry, for who audits; old times, before our own insertion, are others' to tell."""
        if self.turn.is_audited and local.is_in:
            chronicle.tell(self.turn, local.id, local.group, notices)

    def quorum_was_lost(self, local: LocalGroup, seq: int) -> None:
        """With this entry it goes on, perhaps without what was delivered: the operators of all who carry it are told.

        Who is still on its way to its own insertion hears of old times, and says nothing.
        """
        if local.is_in:
            self.turn.journal("quorum_lost", group=local.id, seq=seq, name=local.name)

    def submit(self, local: LocalGroup, bodies: Sequence[bytes]) -> int:
        """Submit entries; the number of the first, 0 if there is no room now."""
        return self._nodes.submit(local.name, bodies)

    def timed(self, command: cmd.AnyProposal, decided: Decided) -> Decided:
        """The same; and how long it took until this was decided is counted."""
        return self.census.timed(command, self.now, lambda: self.now, decided)

    def counted(self, local: LocalGroup, notices: Sequence[AnyNotice]) -> Sequence[AnyNotice]:
        """The same: what follows from one entry. Who leads counts it."""
        if self.leads(local):
            self.census.note(local.id, notices, self.now)
        else:
            self.census.is_over(local.id)
        return notices

    def when_held(self, local: LocalGroup, n: int, told: Callable[[int], None]) -> None:
        """Call back when k servers hold what this node submitted as its ``n``, unless the group is lost before."""
        self._nodes.when_held(local.name, local, n, told)

    def sync(self, local: LocalGroup, told: Callable[[int], None]) -> bool:
        """Call back when everything that was ordered until now was given to ``local``; False if it is not in."""
        return self._nodes.sync(local.name, local, told)

    def leads(self, local: LocalGroup) -> bool:
        """Whether this node leads the group, and may: it has its lease.

        What it leads under that name may still be the group before, while ``local`` waits for the next.
        """
        seat = self._nodes.seat_of(local.name)
        if seat is None or seat.group.id != local.id:
            return False
        return seat.leading is not None and not self._nodes.station.member.isolated

    def rule(self, local: LocalGroup, body: bytes) -> None:
        """Order a ruling, which only the leader does: after what is being handed up now."""

        def order() -> None:
            seat = self._nodes.seat_of(local.name)
            if seat is not None and seat.leading is not None and self.leads(local):
                seat.leading.rule(body)
                seat.group.touch(seat.group)

        self.turn.round_trip.append(order)

    def send_to_leader(self, local: LocalGroup, message: PeerMessage) -> None:
        """Something that only the leader can make use of."""
        seat = self._nodes.seat_of(local.name)
        if seat is not None and seat.replica.leader:
            self.turn.send(seat.replica.leader, message)

    def drain(self) -> bool:
        """This node is about to end: it keeps nothing for who takes no part, but what is on its disk.

        Whether it did.
        """
        kept = [one for one in self._by_name.values() if one.is_kept and not one.group.rules.durable]
        for local in kept:
            local.is_kept = False
            self.soon(local.leave_if_idle)
        return bool(kept)

    # --- Messages, and time ---

    def on_message(self, sender: Sender, message: ForChair) -> None:
        """Something of another node for who leads a group."""
        local = self._by_id.get(message.stream)
        if local is not None:
            local.on_message((sender.name, sender.incarnation), message)

    def is_gone(self, node: NodeId) -> bool:
        """Whether no program of this incarnation holds anything any more, as far as we know.

        The name server knows, and is asked. Our list does not say it of an incarnation that has a successor; nor is it
        enough that one is gone, which has said goodbye: its programs may rely on its lease for a while.
        """
        if node in self._gone:
            return True
        entry = self._nodes.station.member.nodes.get(node[0])
        is_listed = entry is not None and entry.incarnation == node[1] and entry.status != "gone"
        may_be = not is_listed and (entry is None or entry.incarnation >= node[1])
        if may_be and self.now >= self._asked.get(node, -math.inf) + ASK_AGAIN_S:
            self._asked[node] = self.now
            self._nodes.station.requests.ask(
                "gone", f"{node[0]}/{node[1]}", lambda answer: self._is_known(node, is_gone=bool(answer.get("gone")))
            )
        return False

    def _is_known(self, node: NodeId, *, is_gone: bool) -> None:
        if is_gone:
            self._gone.add(node)
            self._asked.pop(node, None)
            for local in [one for one in self._by_name.values() if one.group.held_back]:
                self.look_at(local)
                local.look_who_leads()

    def look(self) -> None:
        """Within every step: a leader that has its lease again presides again, though nothing was ordered meanwhile."""
        if self._nodes.station.member.list_version != self._list_version:
            self._list_version = self._nodes.station.member.list_version
            holding = [one for one in self._by_name.values() if one.group.held_back]
            for local in holding:
                self.look_at(local)
                local.look_who_leads()
            if not holding:  # nobody needs to know any more
                self._gone.clear()
                self._asked.clear()
        is_isolated = self._nodes.station.member.isolated
        if is_isolated != self._was_isolated:
            self._was_isolated = is_isolated
            for local in [] if is_isolated else list(self._by_name.values()):
                self.look_at(local)
                local.look_who_leads()

    @property
    def deadline(self) -> float:
        """When the next group wants to be looked at."""
        for local in [local for local in self._awake if local.deadline == math.inf]:
            del self._awake[local]
        return min((local.deadline for local in self._awake), default=math.inf)

    def tick(self) -> None:
        """Time has passed."""
        for local in list(self._awake):
            if local.deadline <= self.now:
                local.tick()

    # --- Looking at it ---

    def statistics(self, groups_max: int, sees: Sees = lambda group: True) -> ProcessGroupStatistics:
        """As of now; of so many groups, the oldest by id, how many members each has, if it may be seen.

        Which may be seen is asked of those alone: who may see none of thousands must not have each judged.
        """
        members = unresponsive = failing = waiting = running = 0
        for local in self._by_id.values():  # once, as there may be thousands
            group = local.group
            members += len(group.providers)
            unresponsive += len(group.unresponsive)
            failing += len(group.failing)
            waiting += len(group.queue)
            running += group.ballot is not None
        shown = [self._by_id[group_id] for group_id in heapq.nsmallest(groups_max, self._by_id)]
        return ProcessGroupStatistics(
            groups=len(self._by_id),
            members=members,
            members_by_group={local.name: len(local.group.providers) for local in shown if sees(local.name)},
            unresponsive=unresponsive,
            failing=failing,
            proposals_waiting=waiting,
            ballots_running=running,
        )
