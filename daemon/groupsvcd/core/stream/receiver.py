"""A receiver: a node that follows a stream without holding it for others.

C is no server of the stream; it hears what the leader multicasts and delivers what is stable. It promised
nothing, so it must be careful with what it keeps: an entry it got in epoch 7 may have been replaced in the
log of epoch 8. So on the first frame of a higher epoch it drops everything above the stable number it
already knew. An entry out of a repair is taken if the answering server has it stable, or has accepted the
very epoch the receiver follows.

Only groups have receivers: the domain stream is held by its voters, and all other nodes learn from it what concerns
them by asking for the node list.
"""

from __future__ import annotations

from random import Random

from ..parameters import Timers
from ..peer_messages import Beat, Order, Repair
from ..turn import Turn
from .assembly import Assembly
from .delivery import Delivery, Host
from .intake import Intake
from .log import Log
from .server import usable_entries, whom_to_ask


class Receiver:
    """This node's follow-up of one stream, in memory."""

    def __init__(
        self, turn: Turn, stream: int, servers: tuple[str, ...], timers: Timers, rng: Random, host: Host
    ) -> None:
        self.turn = turn
        self.stream = stream
        self.servers = servers
        self.epoch = 0
        self.leader = ""
        self.log = Log()
        self.stable_said = 0
        self._delivery = Delivery(turn, stream, host)
        self.intake = Intake(self.log, timers, rng)
        self._assembly = Assembly()

    @property
    def delivered(self) -> int:
        """Up to where the host has got."""
        return self._delivery.upto

    @property
    def stable(self) -> int:
        """Up to where this copy is known to be stable."""
        return min(self.stable_said, self.log.last)

    def follow(self, epoch: int, leader: str = "") -> bool:
        """Note the epoch of a frame; returns whether it is the one to follow (not an old one)."""
        if epoch < self.epoch:
            return False
        if epoch > self.epoch:
            stable = self.stable
            self.log.switch(epoch, stable, ())
            self.stable_said = stable
            self.intake.reset()
            self.epoch = epoch
            self.leader = leader
        if leader:
            self.leader = leader
        return True

    def on_order(self, sender: str, order: Order) -> None:
        """The leader orders entries."""
        if self.follow(order.epoch, sender):
            self.intake.offer(order.first_seq, order.entries, self.turn.now)
            self._learn_stable(order.stable)

    def on_beat(self, sender: str, beat: Beat) -> None:
        """The leader says where the stream stands."""
        if self.follow(beat.epoch, sender):
            self.intake.expect(beat.last, self.turn.now)
            self._learn_stable(beat.stable)

    def on_repair(self, sender: str, repair: Repair) -> None:
        """Entries that were asked for."""
        if repair.accepted > self.epoch:
            self.follow(repair.accepted)
        usable = usable_entries(repair, self.epoch)
        if repair.checkpoint_seq > self.log.last:
            state = self._assembly.take(sender, repair)
            if state is None:
                if self._assembly.grew:
                    self.intake.progressed(self.turn.now)
                    self.turn.send(sender, self._assembly.ask(sender, self.stream, self.log.last + 1, repair.first))
                return
            seq = repair.checkpoint_seq
            self.log.set_checkpoint(seq, state, seq)
            self.stable_said = seq
            self._delivery.skip_to(seq, state, self.epoch)
        if usable and repair.first <= self.log.last + 1:
            self.intake.offer(repair.first, usable, self.turn.now)
            taken = repair.first + len(usable) - 1
            self._learn_stable(min(repair.stable, taken))

    def _learn_stable(self, stable: int) -> None:
        self.stable_said = max(self.stable_said, stable)
        self._delivery.advance(self.log, self.stable)

    @property
    def deadline(self) -> float:
        """When the next repair is to be asked for."""
        return self.intake.ask_at

    def tick(self) -> None:
        """Ask for what is missing."""
        ask = self.intake.next_ask(self.turn.now)
        if ask is not None:
            first, upto, attempt = ask
            self._assembly.give_up()
            target = whom_to_ask(self.servers, self.turn.node, self.leader, attempt)
            if target:
                self.turn.send(target, self._assembly.ask(target, self.stream, first, upto))
