"""A node's place in the domain: its registration, its lease, its copy of the node list.

With the list comes what the domain says about the options of its daemons (``settings``). A voter has that in its
directory, too, but takes it from here like everybody else: one way, and one version to speak of.

Every node has one of these, voter or not, the name server's node too. It answers the name server's calls;
each acknowledgement is a lease, counted from when the answer was *sent*, so that the node's own clock tells
it, before anybody else's does, when it may no longer act. Without a lease the node is *isolated*.

A node that finds its incarnation declared down has been given up by the others. What it was part of goes on
without it; it starts again under a new incarnation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

from groupsvc.wire import versions

from ..effects import Adopt
from ..identity import Identity
from ..parameters import Parameters
from ..peer_messages import Alive, AliveAck, LeaderAlive, NodeEntry, NodeList, NodeListAsk, Register, Unwelcome
from ..records import OptionsRecord
from ..turn import Turn
from .standing import priority_of


class Member:
    """What this node knows of the domain, and whether it may act in it."""

    def __init__(
        self, turn: Turn, parameters: Parameters, state_id: str, identity: Identity, rng: Random,
        declared_down: Callable[[int], None],
    ) -> None:  # fmt: skip
        self.turn = turn
        self.nodes: dict[str, NodeEntry] = {}
        self.list_version = 0
        self.options: dict[str, tuple[str, int]] = {}  # what the domain says of the daemons' options: value, version
        self.known_seq = 0  # how far the domain stream is known to have got
        self.leader = ""
        self.leader_epoch = 0
        self.lease_until = -math.inf
        self.isolated = True
        self.isolated_at = -math.inf  # since when, if it ever had a lease
        self.was_in = False  # whether this run ever had a lease
        self.trouble = ""
        self._parameters = parameters
        self._timers = parameters.timers
        self._state_id = state_id
        self._identity = identity
        self._rng = rng
        self._declared_down = declared_down
        self.carried: Callable[[], tuple[tuple[int, int], ...]] = lambda: ()  # what this node leads or serves
        self._count = 0
        self._sent: dict[int, float] = {}
        self._heard_at = -math.inf
        self._register_at = math.inf
        self._register_wait = self._timers.repeat_first

    # --- Calls ---

    def on_leader_alive(self, sender: str, call: LeaderAlive, state_id: str) -> None:
        """The name server calls: answer, and see whether the list has changed or lacks us.

        ``state_id`` is that of a voter that has its state; "" for all others.
        """
        if call.epoch < self.leader_epoch:
            return
        now = self.turn.now
        if call.epoch > self.leader_epoch:
            self.turn.tally.leader_changes += 1
        self.leader, self.leader_epoch = sender, call.epoch
        self._heard_at = now
        self.known_seq = max(self.known_seq, call.stable)
        self._count += 1
        self._sent[self._count] = now
        while (oldest := next(iter(self._sent))) and self._sent[oldest] < now - self._timers.lease:
            del self._sent[oldest]
        self.turn.send(sender, Alive(call.epoch, call.n, self._count, state_id, self.carried()))
        if call.list_version > self.list_version:
            self.turn.send(sender, NodeListAsk(self.list_version))
        if call.list_version and not self.is_listed:
            if self.list_version == 0:
                self._register_at = min(self._register_at, now)
            elif self.list_version >= call.list_version:
                # Many may find themselves missing at once, so each waits a little (DIST-03).
                self._register_at = min(self._register_at, now + self._rng.random() * self._timers.alive_interval)

    @property
    def hears_leader(self) -> bool:
        """Whether a name server called lately."""
        return self.leader != "" and self.turn.now - self._heard_at < self._timers.leader_silent

    def lose_leader(self, node: str) -> None:
        """The name server's port refuses, or it said goodbye."""
        if node == self.leader:
            self._heard_at = -math.inf

    @property
    def is_listed(self) -> bool:
        """Whether the list has this very incarnation as up."""
        mine = self.nodes.get(self.turn.node)
        return mine is not None and mine.incarnation == self._identity.incarnation and mine.status == "up"

    @property
    def disk(self) -> str:
        """The id of our state directory, as others know it; "" if there is none, so that nobody counts on it."""
        return self._state_id if self._parameters.durable else ""

    def _register(self) -> None:
        parameters = self._parameters
        self._register_at = self.turn.now + self._register_wait
        self._register_wait = min(2 * self._register_wait, self._timers.repeat_max)
        self.turn.send(
            self.leader,
            Register(
                self.disk, parameters.address, parameters.pinned, priority_of(parameters), parameters.essentials()
            ),
        )

    def on_unwelcome(self, unwelcome: Unwelcome) -> None:
        """The name server does not let us in."""
        if not self.leader:
            return
        if unwelcome.parameter == "incarnation":
            known = int(unwelcome.here) if unwelcome.here.isdecimal() else 0
            if known > self._identity.incarnation and unwelcome.there == str(self._identity.incarnation):
                self._declared_down(known)
        elif unwelcome.parameter == "state_directory":
            if unwelcome.there == self._state_id:
                self._halt(unwelcome.reason, "What is in it stays as it is, for you to look at")
        elif unwelcome.parameter == versions.PARAMETER:
            if not self.was_in:
                self._halt(unwelcome.reason, versions.REMEDY)
        elif unwelcome.parameter:
            if not self.was_in:
                places = "; ".join(filter(None, map(self._parameters.where, unwelcome.parameters)))
                here = f"On {self.turn.node} {places}. " if places else ""
                self._halt(unwelcome.reason, f"{here}Make it the same on all nodes and start this one again")
        elif self.isolated:
            self.trouble = unwelcome.reason

    def _halt(self, reason: str, remedy: str) -> None:
        self.turn.halt(f"this node may not join the domain: {reason}. {remedy}")

    # --- Leases ---

    def on_alive_ack(self, sender: str, ack: AliveAck) -> None:
        """The name server acknowledges an answer."""
        sent = self._sent.get(ack.count)
        if ack.to != self._identity.incarnation or ack.epoch != self.leader_epoch or sender != self.leader:
            return
        if sent is None or not math.isfinite(ack.good_for):
            return
        until = sent + min(self._timers.lease, ack.good_for)
        if until > self.lease_until:
            self.lease_until = until
            self.turn.journal("lease", epoch=ack.epoch, until=until)
        if self.isolated and self.turn.now < self.lease_until:
            self.isolated, self.was_in, self.trouble = False, True, ""
            self.turn.journal("rejoined", epoch=ack.epoch)

    def expire(self) -> None:
        """First of all in every step: without a lease nothing is done in the domain's name."""
        if not self.isolated and self.turn.now >= self.lease_until:
            self.isolated, self.isolated_at = True, self.turn.now
            self.turn.journal("isolated", epoch=self.leader_epoch)

    # --- The list ---

    def on_node_list(self, message: NodeList) -> bool:
        """What has changed in the list since the version we had; False if it is late, or leaves something out."""
        if message.have > self.list_version or message.version <= self.list_version:
            return False
        for entry in message.nodes:
            self.nodes[entry.name] = entry
        self.list_version = message.version
        options = self._options_told(message)
        shown = self.nodes.values() if self._parameters.journal_full else message.nodes
        lines = {entry.name: [entry.incarnation, entry.status] for entry in sorted(shown, key=lambda entry: entry.name)}
        self.turn.journal("list_installed", epoch=message.epoch, seq=message.version, nodes=lines, **options)
        mine = self.nodes.get(self.turn.node)
        if mine is not None and mine.incarnation == self._identity.incarnation and mine.status != "up":
            self._declared_down(mine.incarnation)
        if self.is_listed:
            self._register_at = math.inf
            self._register_wait = self._timers.repeat_first
        return True

    def _options_told(self, message: NodeList) -> dict[str, Any]:
        """What the domain says of options, as of this list: kept, put into force, and given back for the journal.

        It is on disk for the next start, which comes before anybody can be asked. Whether it is there when this process
        dies matters little: the list is asked for anew, from the beginning.
        """
        told = {key: (value, version) for key, value, version in message.options}
        options = self.options | told if message.have else told
        if options != self.options:
            self.options = options
            lines = tuple((key, *options[key]) for key in sorted(options))
            self.turn.mark("options-acquired")
            self.turn.persist(OptionsRecord(lines))
            self.turn.effects.append(Adopt(lines))
        shown = options if self._parameters.journal_full else told
        return {"options": {key: list(shown[key]) for key in sorted(shown)}} if shown else {}

    def give_up_lease(self) -> None:
        """This incarnation was declared down: nothing is done under it any more."""
        self.lease_until = -math.inf
        self._sent.clear()
        self.expire()

    def start_again(self) -> None:
        """This node goes on under a new incarnation and must be let in anew."""
        self.was_in = False
        self._register_at = self.turn.now
        self._register_wait = self._timers.repeat_first

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When something is to be done without a message."""
        at = self._register_at if self.leader else math.inf
        return at if self.isolated else min(at, self.lease_until)

    def tick(self) -> None:
        """Time has passed."""
        if self.turn.now >= self._register_at and self.leader:
            if self.is_listed:
                self._register_at = math.inf
            else:
                self._register()
