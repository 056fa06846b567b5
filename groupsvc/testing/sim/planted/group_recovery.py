"""Planted in the streams of groups: every short cut on the way from one leader to the next.

The rows of the design's table that concern streams, one by one and each half for itself. The domain's stream has the
same code; here the bug is in groups alone, and only what happens to groups can show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import msgspec

from groupsvcd.core.domain import group_rules, groups
from groupsvcd.core.nodegroups import fast_recovery, granted, node_groups, seat
from groupsvcd.core.peer_messages import Claim, Promised
from groupsvcd.core.stream import receiver, recovery, sequencer, server
from groupsvcd.core.views import View

from ..network import Weather
from .bug import LOST, Planted, Replacement, Stage, instead, property_of

TWO_LEADERS = ("L1", "L2", "L4", "B1", "B4", "B6", "V3", "V4", "engine")
"""What it looks like when two go on."""

THREE_OF_FIVE = Stage()
"""Three servers, two of which must hold an entry."""

QUICK = attrs.evolve(THREE_OF_FIVE, gap_s=0.6)
"""The same with faults that overlap."""

LOSSY = attrs.evolve(QUICK, think_s=0.1, burst=8)
"""The same with many entries on their way."""

FIVE_SERVERS = attrs.evolve(
    THREE_OF_FIVE, nodes=7, members=9, think_s=0.3, gap_s=2.0, attributes={"replicas": 5, "commit_k": 3}
)
"""A view becomes active while some of its servers still have the old log."""

CUT_OFF = attrs.evolve(LOSSY, nodes=7, members=9)
"""The same with members that are cut off while views change."""

STALE_TAILS = attrs.evolve(FIVE_SERVERS, think_s=2.0, burst=1, seconds=30.0)
"""The old log is often the longer one, because nobody but the enemy makes traffic."""

ON_DISKS = attrs.evolve(QUICK, attributes={"durable": True}, parameters={"durable": True})
"""Disks hold the stream."""


ONE_COPY = attrs.evolve(LOSSY, attributes={"commit_k": 1})
"""An entry is stable with the leader alone, and whoever takes over has to ask everybody."""

ONE_DISK = attrs.evolve(ON_DISKS, attributes={"commit_k": 1, "durable": True}, burst=8, think_s=0.1)
"""The same with disks: what one other has written is stable, though the leader has not."""


FAST = attrs.evolve(
    THREE_OF_FIVE, nodes=6, burst=2, gap_s=2.0, seconds=25.0, attributes={"delivery": "fast", "sync_window": 5}
)
"""Everybody delivers on arrival."""


def in_groups(mutant: Callable[..., Any]) -> Replacement:
    """``mutant(original, self, …)`` in the streams of groups, the original in that of the domain."""

    def replacement(original: Any) -> Any:
        def method(self: Any, *args: Any) -> Any:
            return mutant(original, self, *args) if self.stream else original(self, *args)

        return method

    return replacement


def always(mutant: Callable[..., Any]) -> Replacement:
    """``mutant(original, self, …)`` wherever the function is used."""
    return lambda original: lambda self, *args, **named: mutant(original, self, *args, **named)


def _nearly_whatever_k(original: Any, self: Any) -> Any:
    return original(self) if self.carrier.durable else self.server.held_upto


# --- The directory ---


def _active_epoch_plus_one(original: Any, self: Any, group: Any, seq: int, *args: Any, **more: Any) -> Any:
    return original(self, group, group.active.epoch + 1, *args, **more)


def _base_is_the_newest(original: Any, self: Any, group: Any, *args: Any, **more: Any) -> Any:
    return original(self, msgspec.structs.replace(group, active=group.newest), *args, **more)


def _with_keywords(mutant: Callable[..., Any]) -> Replacement:
    return lambda original: lambda self, *args, **more: mutant(original, self, *args, **more)


def _confirm_whatever_was_granted(original: Any, self: Any, seq: int, group_id: int, epoch: int) -> Any:
    group = self._groups.get(group_id)
    if group is not None and group.active.epoch < epoch < group.newest_epoch:
        return {"ok": True, "activated": seq, "id": group_id, "epoch": epoch}
    return original(self, seq, group_id, epoch)


# --- Promises ---


def _count_everybody(original: Any, self: Any, reports: dict[str, Promised]) -> list[str] | None:
    if self._me in reports and not self.granted.forced and len(reports) >= self.base.promises_needed:
        return list(reports)
    result: list[str] | None = original(self, reports)
    return result


def _has_led_by_name(original: Any, self: Any, base: View) -> bool:
    return str(self.turn.node) == base.leader


def _recognise_the_name(original: Any, self: Any, candidate: Any) -> bool:
    for known in (*self.base.servers, *self.granted.servers):
        if known[0] == candidate[0]:
            self._servers[known[0]] = known
            return True
    return False


def _promise_without_memory(original: Any, self: Any, message: Any) -> None:
    if isinstance(message, Claim) and message.view is not None:
        self.turn.send(message.view.leader, Promised(message.stream, message.epoch, 0, 0, 0, 0))
        return
    original(self, message)


# --- Choosing and opening ---


def _longest_log(original: Any) -> Any:
    def best_report(me: str, reports: dict[str, Promised]) -> str:
        if not any(report.stream for report in reports.values()):
            return str(original(me, reports))
        return max(reports, key=lambda name: (reports[name].last, name))

    return best_report


def _own_log(original: Any) -> Any:
    def best_report(me: str, reports: dict[str, Promised]) -> str:
        return me if any(report.stream for report in reports.values()) else str(original(me, reports))

    return best_report


def _open_what_is_there(original: Any, self: Any, accepted: int) -> None:
    if self.server.stream and self._builder is not None and self._builder.missing:
        self._install(self._builder, accepted)
    else:
        original(self, accepted)


def _drop_old_tail(original: Any, self: Any, sender: str, message: Any) -> None:
    if message.epoch >= self.promised and message.epoch > self.log.accepted and self.builder is None:
        self.replica.switch(self.log.accepted, self.stable, ())
    original(self, sender, message)


def _deliver_the_tail(original: Any, self: Any, builder: Any, accepted: int) -> None:
    original(self, builder, accepted)
    if self.server.stream:
        self.server.learn_stable(self.server.log.last)


def _lead_unconfirmed(original: Any, self: Any) -> None:
    original(self)
    recovering = self.recovery
    if recovering is not None:
        self.activated({"epoch": recovering.epoch, "ok": True, "activated": recovering.epoch})


def _stop_if_refused(original: Any, self: Any, answer: dict[str, Any]) -> None:
    if self.leading is not None and answer["epoch"] == self.leading.view.epoch and not answer["ok"]:
        self.stop_leading()
    else:
        original(self, answer)


def _hold_unopened(original: Any, self: Any, sender: str, order: Any) -> None:
    if order.epoch >= self.promised and order.epoch > self.log.accepted > 0:
        self.promised = self.log.accepted = self.accepted_persisted = order.epoch
        self.builder = self._building = None
    original(self, sender, order)


def _hold_below_promise(original: Any, self: Any, sender: str, order: Any) -> None:
    promised, self.promised = self.promised, min(self.promised, order.epoch)
    original(self, sender, order)
    self.promised = max(promised, self.promised)


def _say_held_below_promise(original: Any, self: Any, *args: Any) -> None:
    promised, self.promised = self.promised, self.log.accepted
    original(self, *args)
    self.promised = promised


# --- Receivers ---


def _keep_the_tail(original: Any, self: Any, epoch: int, leader: str = "") -> bool:
    if epoch > self.epoch:
        self.replica.switch(epoch, self.replica.log.last, ())
        self.epoch = epoch
    return bool(original(self, epoch, leader))


def _shared_always(original: Any) -> Any:
    return lambda repair, epoch, began: math.inf if repair.stream else original(repair, epoch, began)


def _complete_from_the_start(original: Any) -> Any:
    def init(self: Any, replica: Any, promised: int, k: int, *, complete: bool = True) -> None:
        original(self, replica, promised, k, complete=complete or replica.log.accepted > 0)

    return init


def _one_copy(original: Any) -> Any:
    def init(self: Any, server: Any, epoch: int, k: int, *rest: Any) -> None:
        original(self, server, epoch, 1 if server.stream else k, *rest)

    return init


GROUP_RECOVERY = (
    Planted(
        "group-epoch-is-active-plus-one", "epoch = active epoch + 1", "two leaders go on with one epoch",
        ("L2",), ((groups.GroupTable, "grant", _with_keywords(_active_epoch_plus_one)),),
        faults=("kill-group-leader", "pause-group-leader", "kill-during-group-recovery"), stage=QUICK, first_seed=13,
    ),
    Planted(
        "group-superseded-epoch-activated", "ActivateView of a superseded epoch is accepted", "two leaders go on",
        TWO_LEADERS, ((group_rules.GroupRules, "_activate_view", always(_confirm_whatever_was_granted)),),
        faults=("kill-during-group-recovery", "kill-during-recovery"), stage=attrs.evolve(QUICK, gap_s=0.4),
        first_seed=3,
    ),
    Planted(
        "group-recovers-from-pending", "recovering from a pending view", "stable entries are lost",
        (*LOST, "V4"), ((groups.GroupTable, "grant", _with_keywords(_base_is_the_newest)),),
        faults=("kill-group-leader", "kill-during-group-recovery", "kill-group-servers"), stage=QUICK, first_seed=9,
    ),
    Planted(
        "group-too-few-promises", "|S| - k promises", "stable entries are lost",
        ("V4",), ((View, "promises_needed", property_of(lambda self: max(1, len(self.servers) - self.k))),),
        faults=("group-stale-tail", "kill-group-leader", "cut-group-leader"), stage=LOSSY,
    ),
    Planted(
        "group-promises-of-anybody", "promises counted outside S", "stable entries are lost",
        (*LOST, "V4"), ((granted.Granted, "counting", always(_count_everybody)),),
        faults=("kill-group-leader", "isolate-group-leader"), stage=LOSSY, first_seed=28,
    ),
    Planted(
        "group-successor-needs-k", "whoever takes over needs no more promises than the one that led",
        "stable entries are lost",
        (*LOST, "V4"), ((seat.Seat, "_has_led", instead(lambda self, base: True)),),
        faults=("group-stale-tail", "kill-group-leader", "cut-group-leader"), stage=ONE_COPY,
    ),
    Planted(
        "group-name-has-led", "a leader that was started again counts as the one that led",
        "stable entries are lost",
        (*LOST, "V4"), ((seat.Seat, "_has_led", always(_has_led_by_name)),),
        faults=("kill-group-leader", "power-loss-all", "kill-group-servers"), stage=ONE_DISK,
    ),
    Planted(
        "group-longest-log-wins", "choosing by last seq without the accepted epoch", "two entries at one seq",
        LOST, ((recovery, "best_report", _longest_log),),
        faults=("group-stale-tail",), stage=STALE_TAILS, first_seed=15,
    ),
    Planted(
        "group-own-log-is-enough", "choosing one's own log", "stable entries are lost",
        ("L4",), ((recovery, "best_report", _own_log),),
        faults=("group-stale-tail", "kill-group-leader", "lost-multicasts"), stage=LOSSY, first_seed=4,
    ),
    Planted(
        "group-open-compares-last-only", "an opening server keeps its own tail whatever its epoch",
        "two entries at one seq",
        LOST, ((server.Server, "common_upto", in_groups(
            lambda original, self, accepted, last: min(self.log.last, last)
        )),),
        faults=("group-stale-tail",), stage=STALE_TAILS, first_seed=6,
    ),
    Planted(
        "group-numbers-before-activation", "numbers before activation", "delivered, then lost",
        (*TWO_LEADERS, "B3"), ((seat.Seat, "_enough_opened", always(_lead_unconfirmed)),
                               (seat.Seat, "activated", always(_stop_if_refused))),
        faults=("kill-during-group-recovery", "kill-both-leaders", "isolate-group-leader", "pause-group-leader"),
        stage=QUICK, first_seed=4,
    ),
    Planted(
        "group-tail-stable-before-activation", "stable for the recovered tail before activation",
        "delivered, then lost",
        ("V4",), ((recovery.Recovery, "_install", always(_deliver_the_tail)),),
        faults=("kill-during-group-recovery", "kill-group-leader"), stage=LOSSY, first_seed=1,
    ),
    Planted(
        "group-drops-old-tail-early", "dropping the old tail before the new one is complete", "stable entries are lost",
        LOST, ((server.Server, "on_open", in_groups(_drop_old_tail)),),
        faults=("kill-group-successor",), stage=FIVE_SERVERS, first_seed=7,
    ),
    Planted(
        "group-opens-before-it-has-the-log", "L opening before it has the log", "stable entries are lost",
        LOST, ((recovery.Recovery, "_fetch_on", always(_open_what_is_there)),),
        faults=("group-stale-tail", "kill-group-leader", "lost-multicasts"), stage=LOSSY, first_seed=4,
    ),
    Planted(
        "group-holds-before-accepting", "Held for an epoch whose log was never opened here", "stable entries are lost",
        (*LOST, "V7"), ((server.Server, "on_order", in_groups(_hold_unopened)),),
        faults=("group-stale-tail", "cut-group-leader"), stage=STALE_TAILS, first_seed=86,
    ),
    Planted(
        "group-holds-below-promise", "a server goes on holding for the leader it promised to refuse",
        "stable entries are lost",
        ("L3",), ((server.Server, "on_order", in_groups(_hold_below_promise)),
                  (server.Server, "say_held", in_groups(_say_held_below_promise))),
        faults=("isolate-group-leader", "pause-group-leader", "cut-group-leader"), stage=LOSSY, first_seed=15,
    ),
    Planted(
        "group-receiver-keeps-its-tail", "receivers keep entries across epochs", "wrong entry delivered",
        (*LOST, "V5", "B1"), ((receiver.Receiver, "follow", always(_keep_the_tail)),),
        faults=("group-stale-tail", "kill-group-leader", "cut-group-leader"), stage=LOSSY, first_seed=9,
    ),
    Planted(
        "group-repair-from-any-epoch", "repair from a server not yet in e", "wrong entry delivered",
        (*LOST, "V5", "B1"), ((server, "shared_upto", _shared_always), (receiver, "shared_upto", _shared_always)),
        faults=("group-stale-tail", "lost-multicasts"), stage=LOSSY, first_seed=121,
    ),
    Planted(
        "group-forgetful-server-counts", "a restarted server without its memory counts as the one it was",
        "stable entries are lost",
        (*LOST, "V4"), ((granted.Granted, "recognises", always(_recognise_the_name)),
                        (node_groups.NodeGroups, "_cannot_serve", always(_promise_without_memory))),
        faults=("kill-group-servers", "kill-group-leader", "kill-idle"), stage=LOSSY, first_seed=6,
    ),
    Planted(
        "group-newcomer-is-complete", "a receiver made a server in mid-view speaks before it has opened",
        "stable entries are lost",
        ("S1",), ((server.Server, "__init__", _complete_from_the_start),),
        faults=("churn", "kill-group-leader"), stage=attrs.evolve(ON_DISKS, weather=Weather(loss=0.1)), first_seed=7,
    ),
    Planted(
        "group-one-copy-is-stable", "stable as soon as the leader has it", "delivered, then lost",
        ("S1",), ((sequencer.Sequencer, "__init__", _one_copy),),
        faults=("kill-group-leader",), stage=THREE_OF_FIVE,
    ),
    Planted(
        "fast-recovers-from-servers-only", "a fast group is recovered from its servers, as if it were safe",
        "survivors are contradicted",
        ("B6", "B3", "engine"), ((fast_recovery.FastGranted, "missing", instead(lambda self, reports: [])),
                                 (fast_recovery.FastGranted, "asked", instead(lambda self: self._asked))),
        faults=("lost-multicasts", "kill-group-leader"), stage=FAST, first_seed=20,
    ),
    Planted(
        "group-second-of-three-delivers", "the second holder knows that an entry is stable, though three must hold it",
        "delivered, then lost",
        LOST, ((sequencer.Sequencer, "_nearly", always(_nearly_whatever_k)),),
        faults=("lost-multicasts", "kill-group-leader"), stage=FIVE_SERVERS,
    ),
)  # fmt: skip
