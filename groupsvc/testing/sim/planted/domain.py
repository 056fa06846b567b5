"""Planted in the domain: its stream, its leases, the election of its name server.

The names follow the table of short cuts in the design; what goes wrong with each stands beside it.
"""

from __future__ import annotations

import math
from typing import Any

from groupsvcd.core.domain import election, mandate, member, name_server, requests, roll_call, voter
from groupsvcd.core.records import OpenRecord
from groupsvcd.core.stream import duplicates, recovery, sequencer, server

from .bug import LOST, Planted, instead, property_of


def _one_promise_less(original: Any) -> Any:
    def init(self: Any, *args: Any) -> None:
        *others, promises_needed = args
        original(self, *others, max(1, promises_needed - 1))

    return init


def _drop_old_tail(original: Any) -> Any:
    def on_open(self: Any, sender: str, message: Any) -> None:
        if message.epoch >= self.promised and message.epoch > self.log.accepted and self.builder is None:
            self.log.switch(self.log.accepted, self.stable, ())
        original(self, sender, message)

    return on_open


def _deliver_at_once(original: Any) -> Any:
    def _install(self: Any, builder: Any, accepted: int) -> None:
        original(self, builder, accepted)
        self.server.learn_stable(self.server.log.last)

    return _install


def _hold_unaccepted(original: Any) -> Any:
    def on_order(self: Any, sender: str, order: Any) -> None:
        if order.epoch >= self.promised and order.epoch > self.log.accepted > 0:
            self.promised = self.log.accepted = self.accepted_persisted = order.epoch
            self.builder = None
            self.turn.persist(OpenRecord(self.stream, order.epoch, self.log.last, ()))
        original(self, sender, order)

    return on_order


def _say_before_writing(original: Any) -> Any:
    def _say_promise(self: Any, claimant: str) -> None:
        self.turn.send(claimant, self.voter.server.report())
        self.turn.persist(self.voter.server.promise_record())

    return _say_promise


def _hold_before_writing(original: Any) -> Any:
    def _hold(self: Any, fresh: tuple[bytes, ...]) -> None:
        self.persisted_upto = self.log.last
        original(self, fresh)
        self.say_held()

    return _hold


def _hold_below_promise(original: Any) -> Any:
    def on_order(self: Any, sender: str, order: Any) -> None:
        promised, self.promised = self.promised, min(self.promised, order.epoch)
        original(self, sender, order)
        self.promised = promised

    return on_order


def _say_held_below_promise(original: Any) -> Any:
    def say_held(self: Any, *args: Any) -> None:
        promised, self.promised = self.promised, self.log.accepted
        original(self, *args)
        self.promised = promised

    return say_held


def _claim_at_once(original: Any) -> Any:
    def _count_support(self: Any) -> None:
        if self.candidacy is not None and self.candidacy.canvass.formed:
            self._claim(self.candidacy)
        else:
            original(self)

    return _count_support


def _lease_from_receipt(original: Any) -> Any:
    def on_alive_ack(self: Any, sender: str, ack: Any) -> None:
        if ack.count in self._sent:
            self._sent[ack.count] = self.turn.now
        original(self, sender, ack)

    return on_alive_ack


def _trust_unseen_leases(original: Any) -> Any:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._counted_from = -math.inf

    return init


def _call_it_failed(original: Any) -> Any:
    def _problem(self: Any, call: Any, family: str, code: str, text: str) -> None:
        original(self, call, "failed", code, text)

    return _problem


DOMAIN = (
    Planted(
        "too-few-promises", "one promise less than a majority", "stable entries are lost, two leaders",
        (*LOST, "V4", "L1", "L5"), ((mandate.Mandate, "__init__", _one_promise_less),),
    ),
    Planted(
        "longest-log-wins", "choosing by last seq without the accepted epoch", "two entries at one seq",
        LOST, ((recovery, "best_report", instead(lambda me, reports: max(reports, key=lambda n: reports[n].last))),),
        faults=("stale-tail",), voters=3,
    ),
    Planted(
        "own-log-is-enough", "opening before the leader has the best log", "stable entries are lost",
        LOST, ((recovery, "best_report", instead(lambda me, reports: me)),),
    ),
    Planted(
        "open-compares-last-only", "an opening server keeps its own tail whatever its epoch", "two entries at one seq",
        LOST, ((server.Server, "common_upto", instead(lambda self, accepted, last: min(self.log.last, last))),),
        first_seed=1,
    ),
    Planted(
        "stable-before-opened", "the recovered tail counts as stable before a majority has it", "delivered, then lost",
        (*LOST, "B1"), ((recovery.Recovery, "_install", _deliver_at_once),),
        faults=("stale-tail", "kill-during-recovery"), first_seed=116,
    ),
    Planted(
        "drops-old-tail-early", "the old tail goes before the new one is complete", "stable entries are lost",
        LOST, ((server.Server, "on_open", _drop_old_tail),),
        faults=("kill-idle", "kill-during-recovery", "kill"), voters=5, first_seed=144,
    ),
    Planted(
        "holds-before-accepting", "Held for an epoch whose log was never opened here", "stable entries are lost",
        (*LOST, "V7"), ((server.Server, "on_order", _hold_unaccepted),),
    ),
    Planted(
        "repair-from-any-epoch", "entries of a repair are taken whatever epoch they are from", "wrong entry delivered",
        LOST, ((server, "usable_entries", instead(lambda repair, epoch: repair.entries)),),
        faults=("stale-tail", "bad-weather"), voters=5,
    ),
    Planted(
        "blank-voter-promises", "a restarted voter without its memory counts as the one it was",
        "stable entries are lost",
        (*LOST, "V4", "L1", "L5"), ((voter.Voter, "may_promise", instead(lambda self, table: True)),
                                    (mandate, "counting_reports", instead(lambda me, reports: list(reports))),
                                    (name_server, "counting_reports", instead(lambda me, reports: list(reports)))),
        first_seed=3,
    ),
    Planted(
        "cut-off-name-server-goes-on", "a name server without a majority keeps acknowledging",
        "a group in two places", ("L5", "V4", "L7", "V7"),
        ((roll_call.RollCall, "office_until", property_of(lambda self: math.inf)),), first_seed=1,
    ),
    Planted(
        "deaf-leader-keeps-office", "a leader that hears nobody keeps its office", "no leader for ever",
        ("V7",), ((roll_call.RollCall, "office_until", property_of(lambda self: math.inf)),), under_cut_links=True,
    ),
    Planted(
        "claims-without-canvass", "binding claims at once", "no leader for ever under one-way cuts",
        ("V7",), ((election.Election, "_count_support", _claim_at_once),
                  (election.Election, "hears_leader", property_of(lambda self: False))), under_cut_links=True,
    ),
    Planted(
        "trusts-leases-it-never-saw", "a new name server counts absences from before its time",
        "a group in two places", ("L7",), ((roll_call.RollCall, "__init__", _trust_unseen_leases),), first_seed=1,
    ),
    Planted(
        "lease-from-receipt", "a lease counted from the acknowledgement instead of the answer",
        "a holder acts after others took over", ("L7",), ((member.Member, "on_alive_ack", _lease_from_receipt),),
        faults=("bad-weather", "pause"), first_seed=11,
    ),
    Planted(
        "promise-before-disk", "a promise is spoken before it is on disk", "two promises of one epoch",
        ("L2",), ((election.Election, "_say_promise", _say_before_writing),),
    ),
    Planted(
        "held-before-disk", "Held is said before the entry is on disk", "acknowledged, then lost with the power",
        (*LOST, "L3"), ((server.Server, "_hold", _hold_before_writing),),
    ),
    Planted(
        "holds-below-promise", "a server goes on holding for the leader it promised to refuse",
        "stable entries are lost", (*LOST, "L3"),
        ((server.Server, "on_order", _hold_below_promise), (server.Server, "say_held", _say_held_below_promise)),
        first_seed=161,
    ),
    Planted(
        "one-copy-is-stable", "stable as soon as the leader has it", "acknowledged, then lost",
        LOST, ((sequencer.Sequencer, "__init__", lambda original: (
            lambda self, server, epoch, k, *rest: original(self, server, epoch, 1, *rest)
        )),),
    ),
    Planted(
        "numbers-duplicates", "a repeated submission is numbered again", "one command takes effect twice",
        ("B1", "K1"), ((duplicates.DuplicateFilter, "judge", instead(
            lambda self, origin, n, known_seq, next_seq: duplicates.Verdict.NEXT
        )),), first_seed=1,
    ),
    Planted(
        "late-is-failed", "a command that is late is reported as failed", "what 'certainly did not happen' happens",
        ("K1",), ((requests.Requests, "_problem", _call_it_failed),), first_seed=1,
    ),
)  # fmt: skip

UNSORTED = Planted(
    "order-of-a-set", "iterating a set of names", "the same seed gives another run",
    ("X3",), ((mandate.Mandate, "asked", lambda original: (
        lambda self: tuple(set(original(self)))  # the order of a set depends on PYTHONHASHSEED
    )),),
)  # fmt: skip
