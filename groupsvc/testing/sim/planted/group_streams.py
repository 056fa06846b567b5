"""Planted in the streams of groups: short cuts of leaders, servers and members while nobody takes over.

Together with ``group_recovery`` and ``group_disks`` each checker of groups has a bug here that it is the one to see,
where any bug of the core can show it; ``tests/sim/checkers`` has edited histories for the others.
"""

from __future__ import annotations

import math
from typing import Any

import attrs
import msgspec

from groupsvcd.core.domain import member
from groupsvcd.core.nodegroups import controls, granted, group_carrier, leading, node_group, seat, submitter
from groupsvcd.core.stream import duplicates, library, receiver, replica, server
from groupsvcd.core.views import View

from ..network import Weather
from .bug import LOST, Planted, instead, property_of
from .group_recovery import LOSSY, ON_DISKS, QUICK, always, in_groups

RAIN = Weather(delay_spread=0.02, loss=0.03, repeat=0.02, overtake=0.1)
"""Frames get lost, come twice and overtake one another."""

LATE = attrs.evolve(RAIN, late=0.02, late_s_max=3.0)
"""And some come when nobody expects them any more."""

LARGE = attrs.evolve(LOSSY, burst=4, parameters={"inline_bytes_max": 10}, attributes={"data_k": 1})
"""Every payload travels apart from its order, and one server that has it is enough for a number."""


# --- Memory ---


def _forget_without_dropping(original: Any, self: Any, upto: int) -> None:
    drop = self.payloads.drop
    self.payloads.drop = lambda payload_id: None
    try:
        original(self, upto)
    finally:
        self.payloads.drop = drop


# --- Views ---


def _open_for_all(original: Any, self: Any, sender: Any, message: Any) -> None:
    role = self._as_server()
    if message.epoch > role.promised:
        self.stop_leading()
    role.on_open(sender.name, message)


def _follow_any_epoch(original: Any, self: Any, epoch: int, leader: str = "") -> bool:
    if epoch < self.epoch:
        self.replica.switch(epoch, self.replica.stable, ())
        self.epoch = epoch
    return bool(original(self, epoch, leader))


def _keep_the_old_view(original: Any, self: Any) -> None:
    if self._building is not None:
        self._building = msgspec.structs.replace(self._building, view=None)
    original(self)


def _begin_with_the_view(original: Any, self: Any, sender: str, beat: Any) -> None:
    copy = self.replica
    if beat.epoch > self.epoch and beat.began - 1 > copy.log.last:
        copy.log.set_checkpoint(beat.began - 1, copy.log.checkpoint, beat.began - 1)
        copy._delivery.upto = copy.stable_said = beat.began - 1
    original(self, sender, beat)


def _receivers_do_not_see_removals(original: Any, self: Any, seq: int, body: bytes) -> None:
    control = controls.decode_control(body)
    if isinstance(self.seat.role, receiver.Receiver) and isinstance(control, controls.NodesFailed):
        body = controls.encode_control(controls.NodesFailed(()))
    original(self, seq, body)


# --- Numbers ---


class _NumbersAcrossGaps(duplicates.DuplicateFilter):
    """A number is given whatever is missing before it."""

    def judge(self, origin: Any, n: int, known_seq: int, next_seq: int) -> Any:
        verdict = super().judge(origin, n, known_seq, next_seq)
        return duplicates.Verdict.NEXT if verdict is duplicates.Verdict.GAP else verdict


def _forget_the_last_number(original: Any, self: Any, *args: Any) -> None:
    original(self, *args)
    table = self._origins._table
    for origin, (n, seq) in list(table.items()):
        table[origin] = (max(n - 1, 0), seq)


# --- Leaders ---


def _lead_on(original: Any, self: Any, sender: Any, message: Any) -> None:
    leading_now = self.leading
    original(self, sender, message)
    if self.leading is None and leading_now is not None:
        self.leading = leading_now


def _held_without_payloads(original: Any, self: Any, upto: int) -> Any:
    kept = self.replica.library
    self.replica.library = _AllThere(kept, self.log.last)
    try:
        return original(self, upto)
    finally:
        self.replica.library = kept


class _AllThere:
    """A library that says that no payload is missing."""

    def __init__(self, library: Any, upto: int) -> None:
        self._library = library
        self.complete_upto = upto

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)


def _take_in_whatever_comes(original: Any, self: Any, bodies: Any) -> int:
    first = self._first + len(self._bodies)
    if any(len(body) > self.inline_bytes_max for body in bodies):
        self._large_upto = first + len(bodies) - 1
    self._bodies.extend(bodies)
    self._bytes += sum(map(len, bodies))
    return int(first)


def _leave_a_trace(original: Any, self: Any, origin: Any) -> None:
    line = self._waiting.get(origin)
    payload_ids = [(*origin, n) for n, body, _ in line or () if not isinstance(body, bytes)]
    original(self, origin)
    for payload_id in payload_ids:
        self._data_held.setdefault(payload_id, set())


def _drop_at_once(original: Any) -> Any:
    return property(lambda self: self.log.checkpoint_seq if self.stream else original.fget(self))


def _checkpoint_of_what_is_to_come(original: Any, self: Any, seq: int, state: bytes) -> None:
    original(self, self.log.last if self.stream else seq, state)


GROUP_STREAMS = (
    Planted(
        "group-opens-for-who-is-no-server", "whoever was asked for a promise is told to open", "a view with guests",
        ("V1",), ((granted.Granted, "opens", instead(lambda self: self._asked)),
                  (seat.Seat, "on_open", always(_open_for_all))),
        faults=("kill-group-leader", "churn"), stage=attrs.evolve(QUICK, leave=0.1),
    ),
    Planted(
        "group-receiver-follows-old-epochs", "a receiver follows whoever speaks, of whatever epoch",
        "entries of a log that is no more",
        ("V2", "B4", "B6", "S1"), ((receiver.Receiver, "follow", always(_follow_any_epoch)),),
        faults=("isolate-group-leader", "pause-group-leader", "group-stale-tail"),
        stage=attrs.evolve(LOSSY, weather=LATE), first_seed=241,
    ),
    Planted(
        "group-server-keeps-the-old-view", "a server opens a log and not the view it is of", "who counts is not agreed",
        ("V3",), ((server.Server, "_build_on", in_groups(_keep_the_old_view)),),
        faults=("kill-group-leader", "churn"), stage=QUICK,
    ),
    Planted(
        "group-receiver-begins-with-the-view", "a receiver goes on with the first entry of a view, whatever it missed",
        "nodes that go from view to view together have not delivered the same",
        ("V5",), ((receiver.Receiver, "on_beat", always(_begin_with_the_view)),),
        faults=("lost-multicasts", "kill-group-leader", "churn"), stage=LOSSY, first_seed=36,
    ),
    Planted(
        "group-receiver-keeps-the-dead", "a receiver does not take the dead off its list", "lists differ",
        ("V6",), ((node_group.NodeGroup, "_deliver_control", always(_receivers_do_not_see_removals)),),
        faults=("kill-idle", "kill-group-leader"), stage=QUICK, first_seed=4,
    ),
    Planted(
        "group-ghosts-stay", "nobody orders the failure of a member", "a list with the dead in it",
        ("V7",), ((leading.Leading, "look_at_nodes", instead(lambda self: None)),),
        faults=("kill-idle", "kill-group-leader"), stage=QUICK, first_seed=12,
    ),
    Planted(
        "group-numbers-across-gaps", "a number is given although the one before it is missing", "not as it was sent",
        ("B5",), ((leading, "DuplicateFilter", instead(_NumbersAcrossGaps)),),
        faults=("churn",), stage=attrs.evolve(LOSSY, weather=RAIN, burst=20),
    ),
    Planted(
        "group-forgets-a-number", "a new leader does not know the last number of each origin", "numbered twice",
        ("B1",), ((leading.Leading, "__init__", always(_forget_the_last_number)),),
        faults=("kill-group-leader", "isolate-group-leader"), stage=LOSSY, first_seed=15,
    ),
    Planted(
        "group-never-sends-again", "what was submitted is sent once", "a submission that never ends",
        ("B2",), ((submitter.Submitter, "resend", instead(lambda self, after=0: None)),),
        faults=("kill-group-leader",), stage=QUICK, first_seed=1,
    ),
    Planted(
        "group-never-asks", "nobody asks for what was lost", "some do not deliver what others have",
        ("V7",), ((receiver.Receiver, "tick", instead(lambda self: None)),
                  (receiver.Receiver, "deadline", property_of(lambda self: math.inf))),
        faults=("lost-multicasts",), stage=QUICK, first_seed=74,
    ),
    Planted(
        "group-deposed-leader-goes-on", "a leader goes on after it promised another epoch", "two leaders go on",
        ("L5",), ((seat.Seat, "on_claim", always(_lead_on)),),
        faults=("cut-group-leader", "isolate-group-leader", "group-stale-tail"), stage=LOSSY, first_seed=22,
    ),
    Planted(
        "group-goes-on-without-lease", "a node without a lease goes on as if it had one", "a group in two places",
        ("L5",), ((member.Member, "expire", instead(lambda self: None)),
                  (member.Member, "deadline", property_of(lambda self: self._register_at if self.leader else math.inf)),
                  (group_carrier.GroupCarrier, "valid_until", property_of(lambda self: math.inf))),
        faults=("isolate-one", "isolate-leader", "halves"), stage=QUICK, first_seed=9,
    ),
    Planted(
        "group-fence-is-the-size", "a fence that counts servers", "a resource takes orders of a deposed holder",
        ("L6",), ((View, "fence", property_of(lambda self: len(self.servers))),),
        faults=("kill-group-leader",), stage=QUICK,
    ),
    Planted(
        "group-held-without-payload", "Held counts an entry whose payload is not there", "an entry without its bytes",
        (*LOST, "V7", "B2"), ((server.Server, "held_upto", property_of(lambda self: self.persisted_upto)),
                              (server.Server, "_held", always(_held_without_payloads))),
        faults=("kill-group-leader", "lost-multicasts"), stage=LARGE, first_seed=71,
    ),
    Planted(
        "group-window-is-never-full", "a node takes in whatever is submitted", "memory without a bound",
        ("X1",), ((submitter.Submitter, "submit", always(_take_in_whatever_comes)),
                  (submitter, "OUTSTANDING_ENTRIES_MAX", instead(8))),
        faults=("isolate-group-leader", "cut-group-leader"), stage=attrs.evolve(LOSSY, burst=20),
    ),
    Planted(
        "group-payloads-stay-in-line", "what a large payload waited for is not forgotten", "memory without a bound",
        ("X1",), ((leading.Leading, "_move_up", always(_leave_a_trace)),),
        faults=("lost-multicasts",), stage=LARGE,
    ),
    Planted(
        "group-log-is-kept", "what everybody has delivered is kept, in case", "memory without a bound",
        ("X1",), ((replica.Replica, "_drop_upto", instead(lambda self, upto: None)),
                  (submitter, "SUBMIT_ENTRIES_MAX", instead(20))),
        stage=attrs.evolve(QUICK, burst=4, parameters={
            "history_entries_max": 20, "group_checkpoint_every": 5, "retention_margin": 5,
        }),
    ),
    Planted(
        "group-payloads-outlive-their-entries", "a payload is kept when its entry is not", "memory without a bound",
        ("X1",), ((library.Library, "dropped", always(_forget_without_dropping)),),
        stage=attrs.evolve(LARGE, parameters={
            **LARGE.parameters, "history_entries_max": 20, "group_checkpoint_every": 5, "retention_margin": 5,
        }),
    ),
    Planted(
        "group-discards-too-much", "what the leader has delivered nobody needs any more", "a member misses entries",
        ("B3",), ((leading.Leading, "_discard_line", instead(lambda self: self.server.delivered)),),
        faults=("lost-multicasts", "cut-group-leader"), stage=attrs.evolve(LOSSY, weather=RAIN),
    ),
    Planted(
        "group-checkpoint-drops-too-much", "entries go with a checkpoint although members lack them",
        "a member misses entries",
        ("B3",), ((replica.Replica, "_droppable", _drop_at_once),),
        faults=("lost-multicasts", "cut-group-leader"),
        stage=attrs.evolve(ON_DISKS, weather=RAIN, parameters={
            "durable": True, "retention_margin": 0, "group_checkpoint_every": 5,
        }),
    ),
    Planted(
        "group-checkpoint-too-early", "a checkpoint is said to be of entries that are not in its state",
        "who begins with it does not know what happened",
        ("V3", "V6", "B4", "B1", "engine"),
        ((replica.Replica, "_set_checkpoint", always(_checkpoint_of_what_is_to_come)),),
        faults=("lost-multicasts", "churn", "kill-group-leader"),
        stage=attrs.evolve(LOSSY, weather=LATE, parameters={
            "history_entries_max": 3, "group_checkpoint_every": 1, "retention_margin": 0,
        }),
        first_seed=35,
    ),
)  # fmt: skip
