"""What the leader of a group does while its view is active.

A leads. What members and strangers submit it numbers; who asks to be inserted or removed it orders so; whoever the
node list no longer has as up it orders as failed, before anything else. And it looks after its servers: too few, and
the oldest member that has caught up becomes one; one that was silent for a lease, or leaves, is replaced. Each such
change is a new view, which the directory grants and A recovers like any other; between two views nothing is numbered.
So A proposes none while it hears enough servers to go on, and too few to get their promises.

A leader that leaves hands over: it proposes the view without itself, led by the next server. If it is the only server
it first proposes one with another, and if it is the only member the group ends (see ``ending``).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from ..domain.commands import ProposeView, encode_command
from ..identity import Sender
from ..peer_messages import (
    Accepted,
    DataAsk,
    DataHeld,
    Held,
    Insert,
    Inserted,
    InsertRefused,
    Leave,
    Left,
    Opened,
    Seen,
    Submit,
    SubmitRefused,
    SyncAsk,
    Synced,
)
from ..stream.duplicates import DuplicateFilter, Verdict
from ..stream.library import ASKED_AT_ONCE_MAX
from ..stream.payloads import PayloadId
from ..stream.sequencer import Sequencer
from ..stream.server import Server
from ..views import NodeId, View
from ..views import Server as ServerId
from .adverts import Adverts, keeps_too_much
from .attendance import Attendance
from .beats import Beats
from .beginnings import Beginnings
from .controls import AnyControl, NodeInserted, NodeRemoved, NodesFailed, Ruled, ViewStarted, encode_control
from .ending import Ending
from .lines import Line, drop_settled
from .rounds import Asked, Rounds

if TYPE_CHECKING:
    from .node_group import NodeGroup

UNSTABLE_ENTRIES_MAX = 65_536
"""Numbered and not stable yet. More is not taken: the origins repeat, and their windows are full meanwhile."""

INLINE = frozenset((bytes,))
"""What is submitted if no large payload is among it."""


class Leading:
    """One active view, from the side of its leader."""

    def __init__(self, group: NodeGroup, server: Server, view: View) -> None:
        station = group.station
        self.group = group
        self.station = station
        self.turn = station.turn
        self.view = view
        self.server = server
        self._timers = station.parameters.timers
        self._origins = DuplicateFilter(group.roll.origins, group.settings.logical_lifetime)
        self.sequencer = self._new_sequencer()
        self.inserting: set[NodeId] = set()
        self._removing: set[NodeId] = set()
        self._failing: set[NodeId] = set()
        self._buried: set[NodeId] = set()  # who failed without an entry, and left payloads
        self.attendance = Attendance(self.turn, self._timers, view.names)
        self._accepted: dict[NodeId, int] = {}
        self._waiting: dict[NodeId, Line] = {}
        self._data_held: dict[PayloadId, set[str]] = {}
        self.adverts = Adverts()
        self._beginnings = Beginnings(server, self._timers.lease)
        self._proposed: tuple[ServerId, ...] = ()
        self._pending: tuple[ServerId, ...] = ()  # of the view that was granted since, as far as we know
        self._propose_not_before = self.turn.now
        self._beats = Beats(self.turn, self._timers, server.log.last)
        self.ending = Ending(self)
        self._look = True  # whether the servers may be other than they should be
        self.rounds = Rounds(view.k, self._begin_round)
        self._is_asked = False  # whether a question is open

    def _new_sequencer(self) -> Sequencer:
        return Sequencer(self.server, self.view.epoch, self.view.k, self._origins, self._timers)

    def start(self, opened_by: dict[str, int], *, tail_may_be_lost: bool) -> None:
        """The view is active: its first entry, then whoever failed meanwhile."""
        roll, view = self.group.roll, self.view
        for name, last in opened_by.items():
            self.sequencer.holds(name, last)
        began = self.sequencer.began = self.server.replica.began = self.sequencer.next_seq
        started = ViewStarted(view.epoch, view.leader, view.servers, view.k, view.fence, tail_may_be_lost)
        self.sequencer.views = roll.views_after(roll.views, (roll.epoch, roll.began), began, started)
        if any(self._server_of(node) not in view.servers for node in roll.members):
            self.server.carrier.publish(self.sequencer.beat())  # ahead of the first order, for those who only follow
        self._order(started)
        if self.station.me not in roll.members:
            self._fail_older(self.station.me)
            self.inserting.add(self.station.me)
            self._order(NodeInserted(self.station.me, self.group.key, 0))
        self.look_at_nodes()
        self._let_go()
        if self.group.is_closed:
            self.close()

    def close(self) -> None:
        """The layer above has seen its last word in the stream."""
        self.ending.close()
        self._look = True
        self._beats.wake()

    def _order(self, control: AnyControl) -> None:
        self.sequencer.order("", 0, 0, encode_control(control))

    def rule(self, body: bytes) -> None:
        """Order what a layer above us decides."""
        if not self.ending.has_begun:
            self._order(Ruled(body))

    # --- Members ---

    def on_insert(self, sender: Sender, insert: Insert) -> None:
        """A node wants to carry the group."""
        node = (sender.name, sender.incarnation)
        term = self.group.roll.members.get(node)
        begins, problem = self._beginnings.judge(insert.since)
        if term is not None and insert.term > term:
            self.group.leaving.add(node)  # it has left, though we do not know of it: it asks again when that is ordered
            self._let_go()
        elif problem:
            self.group.reach(node[0])
            refused = InsertRefused(self.server.stream, sender.incarnation, insert.term, problem)
            self.server.carrier.vouch(node[0], refused)
        elif term is not None:
            self._beginnings.note(node, begins)
            self.welcome(node, self.server.delivered)
        elif self.ending.has_begun:
            self.ending.redirect(node[0])
        elif self.station.is_up(node) and node not in self.inserting:
            self._fail_older(node)
            self.inserting.add(node)
            self._beginnings.note(node, begins)
            self._order(NodeInserted(node, insert.term, insert.last_n))
            self._origins.welcome(node, insert.last_n)

    def welcome(self, node: NodeId, seq: int) -> None:
        """Give a member what it needs to follow: the roll after entry ``seq``."""
        self._say_inserted(node, seq, self.group.roll.snapshot())

    def _say_inserted(self, node: NodeId, seq: int, roll: bytes) -> None:
        self.group.reach(node[0])
        term = self.group.roll.members[node]
        begins = self._beginnings.of(node)
        inserted = Inserted(self.server.stream, node[1], term, self.view.epoch, seq, roll, begins)
        self.server.carrier.vouch(node[0], inserted)

    def on_leave(self, sender: Sender, leave: Leave) -> None:
        """A node wants to carry the group no longer; a server only leaves with a view without it."""
        node = (sender.name, sender.incarnation)
        term = self.group.roll.members.get(node)
        if term is None:
            self.group.reach(node[0])
            self.server.carrier.vouch(sender.name, Left(self.server.stream, sender.incarnation, leave.term))
        elif leave.term >= term:
            self.group.leaving.add(node)
            self._look = self._look or self.ending.is_closed
            self._let_go()
            self._beats.wake()

    def stay(self) -> bool:
        """We were about to leave and need not; False if the group is about to end, or goes on without us already."""
        if self.ending.has_begun or self.station.me not in self.group.roll.members:
            return False
        self.group.leaving.discard(self.station.me)
        self._look = True
        return True

    def _let_go(self) -> None:
        """Order the removal of those who leave and are no servers; at the end of the group all go at once."""
        for node in sorted(self.group.leaving) if not self.ending.is_closed else ():
            server = self._server_of(node)
            is_needed = server in (*self.view.servers, *self._proposed, *self._pending)
            if not is_needed and node not in self._removing:
                self._removing.add(node)
                self._order(NodeRemoved(node))

    def look_at_nodes(self) -> None:
        """Compare members and origins with the node list; whoever is down is ordered as failed."""
        known = dict.fromkeys((*self.group.roll.members, *self.group.roll.origins))
        failed = tuple(node for node in known if self.station.is_down(node) and node not in self._failing)
        if failed:
            self._fail(failed)
        last_n, is_down = self._origins.last_n, self.station.is_down  # of who is down nothing more is ordered
        held = self._data_held.items()
        self._data_held = {one: by for one, by in held if one[2] > last_n(one[:2]) and not is_down(one[:2])}

    def _fail_older(self, node: NodeId) -> None:
        """What the node was before has failed, and is shown so before it is shown as a member again."""
        older = [other for other in self.group.roll.members if other[0] == node[0] and other not in self._failing]
        if older:
            self._fail(tuple(older))

    def _fail(self, nodes: tuple[NodeId, ...]) -> None:
        self._failing.update(nodes)
        for node in nodes:
            self._waiting.pop(node, None)  # others may have delivered the failure, and dropped its payloads, before us
        self._order(NodesFailed(nodes))

    def delivered(self, seq: int, control: AnyControl) -> None:
        """A control entry, ours or of a leader before us, has taken effect here."""
        self._look = True
        if isinstance(control, NodeInserted):
            self.inserting.discard(control.node)
            self.turn.mark("group-insert")
            self.look_at_nodes()  # it may be down by now, or have given up what it had sent before
            if control.node != self.station.me:
                self.welcome(control.node, seq)
        elif isinstance(control, NodeRemoved):
            self._forget((control.node,))
            self._waiting.pop(control.node, None)  # what it still wants to have numbered, it submits again
        elif isinstance(control, NodesFailed):
            self._forget(control.nodes)
            for node in control.nodes:
                self._origins.forget(node)
                self._waiting.pop(node, None)
            self._data_held = {one: by for one, by in self._data_held.items() if one[:2] not in control.nodes}

    def _forget(self, nodes: tuple[NodeId, ...]) -> None:
        for node in nodes:
            self.group.leaving.discard(node)
            self._removing.discard(node)
            self._failing.discard(node)
            self.attendance.forget(node)
            self._beginnings.forget(node)
            self._accepted.pop(node, None)

    # --- Submissions ---

    def on_submit(self, sender: Sender, submit: Submit) -> None:
        """A node submits entries; each is numbered once."""
        origin = (sender.name, sender.incarnation)
        sequencer = self.sequencer
        if self.ending.has_begun or sequencer.next_seq - self.server.stable > UNSTABLE_ENTRIES_MAX:
            if origin not in self.group.roll.members:
                self.ending.redirect(sender.name)
            return
        if self.server.disk_hangs:
            self._refuse(origin, submit.first_n, 0, Verdict.NO_DISK)
            return
        if not self.station.is_up(origin):
            if self.station.is_down(origin):
                self._refuse(origin, submit.first_n, 0, Verdict.TOO_OLD)
            return
        if origin in self._failing:
            return
        if not submit.bodies:
            self._accepted[origin] = self.group.roll.origins.get(origin, (0, 0))[0]  # it asks where the stream stands
            return
        drop_settled(self._waiting, origin, submit.settled)
        self._origins.settle(origin, submit.settled)  # what is left of its line begins behind that
        is_fresh = sequencer.next_seq - submit.known_seq <= self.group.settings.logical_lifetime
        if origin not in self._waiting and is_fresh:
            # If it is unknown here, whatever it had numbered lies further back than this is old, or is lost.
            self._origins.welcome(origin, submit.settled)
        if origin in self._waiting or not INLINE.issuperset(map(type, submit.bodies)):
            self._put_in_line(origin, submit)
            return
        # An origin's numbers follow one another, so the first that is new decides about all after it.
        known = min(max(self._origins.last_n(origin) - submit.first_n + 1, 0), len(submit.bodies))
        if known:
            self._accept_again(origin)
        if known == len(submit.bodies):
            return
        n = submit.first_n + known
        verdict = self._origins.judge(origin, n, submit.known_seq, sequencer.next_seq)
        if verdict is Verdict.NEXT:
            sequencer.order_run(sender.name, sender.incarnation, n, submit.bodies[known:])  # type: ignore[arg-type]
        else:
            self._refuse(origin, n, self._origins.last_n(origin), verdict)

    def _put_in_line(self, origin: NodeId, submit: Submit) -> None:
        """A large payload gets its number when enough servers have it; what comes after it waits behind it."""
        line = self._waiting.setdefault(origin, deque())
        next_n = (line[-1][0] if line else self._origins.last_n(origin)) + 1
        again: list[PayloadId] = []
        for n, body in enumerate(submit.bodies, submit.first_n):
            if n == next_n:
                verdict = self._origins.judge(
                    origin, line[0][0] if line else n, submit.known_seq, self.sequencer.next_seq
                )
                if verdict is not Verdict.NEXT:
                    self._refuse(origin, n, self._origins.last_n(origin), verdict)
                    break
                line.append((n, body, self.turn.now))
                next_n += 1
            elif n > next_n:
                self._refuse(origin, n, next_n - 1, Verdict.GAP)
                break
            elif n <= self._origins.last_n(origin):
                self._accept_again(origin)
            elif not isinstance(body, bytes) and self._is_overdue(line, n):
                again.append((*origin, n))
        if again:
            self.group.reach(origin[0])
            self.server.carrier.vouch(origin[0], DataAsk(self.server.stream, tuple(again[:ASKED_AT_ONCE_MAX])))
        self._move_up(origin)

    def _is_overdue(self, line: Line, n: int) -> bool:
        """Whether a payload in line has been waited for so long that the servers' reports are not merely late."""
        return self.turn.now - line[n - line[0][0]][2] > 2 * self._timers.beat_interval

    def _is_held(self, payload_id: PayloadId) -> bool:
        return len(self._data_held.get(payload_id, ())) >= min(
            self.group.settings.data_k or self.view.k, len(self.view.servers)
        )

    def _move_up(self, origin: NodeId) -> None:
        line = self._waiting.get(origin)
        while line:
            n, body, _ = line[0]
            if isinstance(body, bytes):
                self.sequencer.order(*origin, n, body)
            elif self._is_held((*origin, n)):
                del self._data_held[(*origin, n)]
                self.sequencer.order_reference(*origin, n, *body)
            else:
                return
            line.popleft()
        self._waiting.pop(origin, None)

    def on_data_held(self, sender: Sender, held: DataHeld) -> None:
        """A server has payloads that wait for their numbers."""
        if self._server_of((sender.name, sender.incarnation)) not in self.view.servers:
            return
        for payload_id in held.payloads:
            origin = payload_id[:2]
            if self.station.is_down(origin):
                self._bury(origin)
            elif payload_id[2] > self._origins.last_n(origin) and origin not in self._failing:
                self._data_held.setdefault(payload_id, set()).add(sender.name)
                if origin in self._waiting:
                    self._move_up(origin)

    def _bury(self, origin: NodeId) -> None:
        """Servers keep payloads of who failed without having got them a number: tell all, so that they drop them."""
        if origin not in self._failing and origin not in self._buried:
            self._buried.add(origin)
            self._fail((origin,))

    def _refuse(self, origin: NodeId, n: int, last_n: int, verdict: Verdict) -> None:
        self.group.reach(origin[0])
        self.server.carrier.vouch(origin[0], SubmitRefused(self.server.stream, origin[1], n, last_n, verdict.value))

    def _accept_again(self, origin: NodeId) -> None:
        row = self.group.roll.origins.get(origin)
        if row is not None and origin not in self.group.roll.members:
            self._accepted[origin] = row[0]

    def accept(self, origin: NodeId, n: int) -> None:
        """An entry of somebody who is no member is stable; it cannot see that for itself."""
        self._accepted[origin] = n

    # --- Servers and receivers ---

    def _server_of(self, node: NodeId) -> ServerId:
        return self.station.server(node, durable=self.group.settings.durable)

    def on_opened(self, sender: Sender, opened: Opened) -> None:
        """A server of the view has the log that we opened."""
        if self._server_of((sender.name, sender.incarnation)) in self.view.servers:
            self.attendance.hear(sender.name)
            self.sequencer.holds(sender.name, opened.last)

    def on_held(self, sender: Sender, held: Held) -> None:
        """A server says what it has."""
        if held.epoch == self.view.epoch:
            self.attendance.hear(sender.name)
            self.sequencer.on_held(sender.name, held)
            if held.round:
                self.rounds.answered(sender.name, held.round)
            self._note_seen((sender.name, sender.incarnation), held.delivered)

    def on_seen(self, sender: Sender, seen: Seen) -> None:
        """A receiver says how far it has got."""
        node = (sender.name, sender.incarnation)
        if node in self.group.roll.members and seen.epoch == self.view.epoch:
            self._note_seen(node, seen.upto)

    def _note_seen(self, node: NodeId, upto: int) -> None:
        self._look = self.attendance.note(node, upto) or self._look

    # --- Questions ---

    def on_sync_ask(self, sender: Sender, ask: SyncAsk) -> None:
        """Somebody wants to know up to where the stream was ordered; what is not stable counts, too."""
        node = (sender.name, sender.incarnation)
        if node in self.group.roll.members:
            self._is_asked = True
            self.rounds.ask(Asked(node, ask.number, self.sequencer.next_seq - 1))

    def _begin_round(self, number: int) -> None:
        beat = msgspec.structs.replace(self.sequencer.beat(), round=number)
        for name in self.view.names:
            if name != self.turn.node:
                self.server.carrier.vouch(name, beat)
        self.rounds.answered(self.turn.node, number)

    def _answer_questions(self) -> None:
        self.rounds.start()
        for asked in self.rounds.confirmed(self.server.stable):
            self.turn.mark("group-synced")
            synced = Synced(self.server.stream, asked.node[1], asked.number, self.view.epoch, asked.seq)
            self.server.carrier.vouch(asked.node[0], synced)
        self._is_asked = self.rounds.has_any

    def _discard_line(self) -> int:
        """Up to where everybody has delivered; who lags behind the whole history is not waited for."""
        log = self.server.log
        settings = self.group.settings
        size = log.bytes + self.server.replica.library.payloads.bytes
        kept_max = min(settings.history_entries_max, settings.history_bytes_max * log.count // max(size, 1))
        seen = {**self.attendance.seen, self.station.me: self.server.delivered}
        lines = [*(seen[node] for node in self.group.roll.members if node in seen), *self._beginnings.kept()]
        kept = [line for line in lines if log.last - line <= max(kept_max, 1)]
        if any(node not in seen for node in self.group.roll.members) and log.last - log.base <= max(kept_max, 1):
            kept.append(self.sequencer.discard)  # somebody has not said yet where it is: nothing more is dropped
        return min(kept, default=0)

    def _lagging(self) -> list[str]:
        delivered = self.server.delivered
        return [
            node[0]
            for node in self.group.roll.members
            if node != self.station.me and self.attendance.seen.get(node, 0) < delivered
        ]

    # --- Views ---

    def consider_view(self) -> None:
        """Propose another view if the servers are not as they should be."""
        if self._proposed or self.ending.is_dropping or self.turn.now < self._propose_not_before:
            return
        wanted = self._wanted() if not self.ending.is_closed else None
        if wanted is None:
            if self.ending.is_due:
                self.ending.drop()
            return
        leader, servers = wanted
        is_as_wanted = leader == self.view.leader and set(servers) == set(self.view.servers)
        if is_as_wanted or not any(server in self.view.servers for server in servers):
            return
        if self.attendance.is_to_wait(self.view, is_whole=self.server.is_whole):
            return  # the others could not promise either; k are there, and we go on as we are
        self._proposed = servers
        k = min(self.group.settings.k_wanted, len(servers))
        if leader != self.view.leader:
            self.turn.mark("group-handover")
        elif len(servers) > len(self.view.servers):
            self.turn.mark("group-promoted")
        else:
            self.turn.mark("group-view-shrunk")
        body = encode_command(ProposeView(self.server.stream, self.view.epoch, leader, servers, k, self.station.me))
        about = f"proposing a view of {self.group.name!r}"
        self.group.command(about, lambda: body, self._proposal_answered, self.errand_failed)

    def _wanted(self) -> tuple[str, tuple[ServerId, ...]] | None:
        """(leader, servers) as they should be; None if nobody would be left."""
        me, roll = self.station.me, self.group.roll
        staying = [
            node for node in roll.members if node not in self.group.leaving and (node == me or self.station.is_up(node))
        ]
        ours = {self._server_of(node): node for node in roll.members}
        servers = [
            server
            for server in self.view.servers
            if (ours.get(server) in staying or self._comes_back(server, ours))
            and (server[0] == self.turn.node or not self.attendance.is_mute(server[0]))
        ]
        for node in staying:
            if len(servers) >= self.group.settings.replicas:
                break
            server = self._server_of(node)
            is_mute = server in self.view.servers  # and not among those that are kept
            has_place = server[1] != ""  # a durable group has none for who has no disk
            can_serve = has_place and not is_mute and node not in self._failing
            if server not in servers and can_serve and self._is_able(node):
                servers.append(server)
        if me not in self.group.leaving:
            return self.view.leader, tuple(servers or self.view.servers)
        mine = self._server_of(me)
        if any(server in self.view.servers for server in servers):
            return servers[0][0], tuple(servers)
        if servers:
            return self.view.leader, (mine, servers[0])
        if len(roll.members) > 1 or self.inserting:
            return self.view.leader, (mine,)  # all leave: we are the last
        return None

    def _is_able(self, node: NodeId) -> bool:
        """Whether it has caught up, and is heard; if we do not know that, it is asked."""
        attendance = self.attendance
        if node == self.station.me:
            return True
        if not attendance.has_caught_up(node, self.server.stable, self.group.late.get(node[0], 0)):
            return False
        if not attendance.is_heard(node) and attendance.is_to_ask(node):
            self.server.carrier.vouch(node[0], self.sequencer.beat())
        return attendance.is_heard(node)

    def _comes_back(self, server: ServerId, members: dict[ServerId, NodeId]) -> bool:
        """Whether a disk of this view has come back with another process, which is to be inserted yet."""
        entry = self.station.member.nodes.get(server[0])
        return server not in members and entry is not None and entry.status == "up" and entry.state_id == server[1]

    def _proposal_answered(self, answer: dict[str, Any]) -> None:
        self._proposed = ()
        self._propose_not_before = self.turn.now + self._timers.repeat_first
        group = answer.get("group")
        pending = group.get("pending") if group is not None else None
        self._pending = View.from_answer(pending).servers if pending is not None else ()
        if answer.get("ok") and group is not None and self.group.seat is not None and self.group.seat.leading is self:
            if pending is not None and pending["epoch"] == answer["epoch"] and pending["leader"] == self.turn.node:
                self.group.seat.take_grant(View.from_answer(pending), View.from_answer(group["active"]))

    def errand_failed(self, text: str) -> None:
        """What became of it is not known: look again."""
        self._proposed, self.ending.is_dropping = (), False
        self._propose_not_before = self.turn.now + self._timers.repeat_first

    # --- The end of a step, and time ---

    def flush(self) -> None:
        """Send what was numbered in this step and tell what became stable."""
        if self._look:
            self._look = False
            servers, members = self.view.servers, self.group.roll.members
            self.sequencer.servers_suffice = all(self._server_of(node) in servers for node in members)
            self.consider_view()
        self.sequencer.flush()
        self.sequencer.tell_stable()
        log = self.server.log
        self._beats.hurry(log.last, keeps_too_much=keeps_too_much(self.server, self.group.settings))
        if self._is_asked:
            self._answer_questions()
        if self._beats.is_quiet and log.last > self.sequencer.discard:
            self._beats.wake()
        if self._accepted:
            for (name, incarnation), n in self._accepted.items():
                self.group.reach(name)
                self.server.carrier.vouch(name, Accepted(self.server.stream, incarnation, n, self.server.stable))
            self._accepted.clear()

    @property
    def deadline(self) -> float:
        """When the next beat is due."""
        return self._beats.at

    def tick(self) -> None:
        """Beat; look after the servers."""
        if not self._beats.begin(self.server.log.last):
            return
        if self.station.member.isolated or self.server.disk_hangs:
            return  # a leader that cannot write falls silent, so that another one is asked for
        if self.server.held_upto > self.sequencer.held_by(self.turn.node):
            self.server.say_held()  # it was written while we had no lease
        self.server.report_payloads()
        self.server.learn_stable(0)  # what was announced just before our lease ended
        before, self.sequencer.discard = self.sequencer.discard, self._discard_line()
        self.server.replica.learn_discard(self.sequencer.discard)
        seen = {**self.attendance.seen, self.station.me: self.server.delivered}
        seen_before = self.sequencer.seen
        self.sequencer.seen = min((seen.get(node, 0) for node in self.group.roll.members), default=0)
        self.server.replica.seen_said = max(self.server.replica.seen_said, self.sequencer.seen)
        is_advertised = self.adverts.advertise(self.server, self.group.settings, self.view)
        beat = msgspec.structs.replace(self.sequencer.beat(), round=self.rounds.number)
        if self.sequencer.discard > before or is_advertised or self.sequencer.seen > seen_before:
            self.server.carrier.publish(beat)  # receivers drop what nobody needs, too
        else:
            for name in dict.fromkeys((*self.view.names, *self._lagging())):
                if name != self.turn.node:
                    self.server.carrier.vouch(name, beat)
        has_everybody_all = self.sequencer.discard == self.server.log.last == before
        self._beats.rest(is_quiet=has_everybody_all and not self._proposed)
        self._let_go()
        self.consider_view()
