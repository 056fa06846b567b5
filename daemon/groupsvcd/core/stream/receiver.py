"""A receiver: a node that follows a stream without holding it for others.

C is no server of the stream; it hears what the leader multicasts and delivers what is stable. It promised
nothing, so it must be careful with what it keeps: an entry it got in epoch 7 may have been replaced in the
log of epoch 8. So on the first frame of a higher epoch it drops everything above the stable number it
already knew. An entry out of a repair is taken if the answering server has it stable, or has accepted the
very epoch the receiver follows. What it dropped it keeps apart until it has the next entry of epoch 8: if that is kept
nowhere any more, a checkpoint tells whether it was the same.

Only groups have receivers: the domain stream is held by its voters, and all other nodes learn from it what concerns
them by asking for the node list.
"""

from __future__ import annotations

import math

from ..peer_messages import Beat, Block, Data, Order, Repair, RepairAsk, Seen
from .checkpoints import Described
from .replica import Replica, shared_upto, usable_entries

SEEN_EVERY = 256
"""Entries after which a receiver tells how far it has got without being asked."""


PROBED_ENTRIES = 1_024
"""How many entries a receiver asks for when it does not know whether there are any."""


class Receiver:
    """Follows one stream with this node's copy."""

    def __init__(self, replica: Replica, epoch: int = 0) -> None:
        self.replica = replica
        self.turn = replica.turn
        self.epoch = epoch
        self.heard_at = self.turn.now
        self._seen_told = replica.delivered
        self._probed_at = -math.inf
        self._probes = 0
        self.unheard_probes = 0  # since the leader was last heard
        self.is_quiet = False  # whether nobody is to be told how far we have got

    @property
    def delivered(self) -> int:
        """Up to where the host has got."""
        return self.replica.delivered

    def follow(self, epoch: int, leader: str = "") -> bool:
        """Note the epoch of a frame; returns whether it is the one to follow (not an old one)."""
        if epoch < self.epoch:
            return False
        replica = self.replica
        if epoch > self.epoch:
            replica.change_over(epoch)
            self.epoch = epoch
            replica.leader = leader
            self.turn.mark("receiver-follows-new-epoch")
        if leader:
            replica.leader = leader
            self.heard_at = self.turn.now
            self.unheard_probes = 0
        return True

    def on_order(self, sender: str, order: Order) -> None:
        """The leader orders entries."""
        if self.follow(order.epoch, sender):
            self.replica.offer(order.first_seq, order.entries)
            self.replica.began = order.began
            self.replica.learn_discard(order.discard)
            self._learn_stable(order.stable)

    def on_beat(self, sender: str, beat: Beat) -> None:
        """The leader says where the stream stands, and wants to know where we do."""
        if self.follow(beat.epoch, sender):
            self.replica.intake.expect(beat.last, self.turn.now)
            self.replica.began = beat.began
            self.replica.learn_discard(beat.discard)
            self.replica.seen_said = max(self.replica.seen_said, beat.seen)
            self._learn_stable(beat.stable)
            self.replica.learn_advertised(Described(beat.checkpoint, beat.checkpoint_size, beat.checkpoint_crc))
            if self.delivered == beat.last or self.delivered != self._seen_told:
                self.say_seen()

    def on_repair(self, sender: str, repair: Repair) -> None:
        """Entries that were asked for."""
        replica = self.replica
        if repair.accepted >= self.epoch:
            self.unheard_probes = 0  # the group is there, though we do not hear its leader
        if repair.accepted > self.epoch:
            if repair.began <= replica.stable:
                return  # we have delivered what that log lacks, or it is not known; its leader will tell
            self.follow(repair.accepted)
            replica.began = repair.began
            self.turn.mark("receiver-follows-a-server")
        upto = shared_upto(repair, self.epoch, replica.began)
        usable = usable_entries(repair, upto)
        if replica.needs_checkpoint(repair, upto):
            state = replica.take_checkpoint_block(sender, repair)
            if state is None:
                return
            self._go_on_behind(repair.checkpoint_seq, state)
        if usable and repair.first <= replica.log.last + 1:
            replica.offer(repair.first, usable)
            self._learn_stable(min(repair.stable, repair.first + len(usable) - 1))
        replica.look_at_answer(sender, repair)

    def on_block(self, sender: str, block: Block) -> None:
        """Part of a checkpoint that we fetch."""
        replica, described = self.replica, Described(block.seq, block.size, block.crc)
        if shared_upto(block, self.epoch, replica.began) >= block.seq:
            state = replica.take_block(sender, described, block.offset, block.block)
            if state is not None:
                self._go_on_behind(block.seq, state)

    def _go_on_behind(self, seq: int, state: bytes) -> None:
        """What we lack is kept nowhere; but perhaps we had it before we followed this view, or some of it."""
        replica, last = self.replica, self.replica.log.last
        own = replica.own(last, seq, state)
        if own:
            self.turn.mark("receiver-had-it")
            replica.offer(last + 1, tuple(own))
            replica.intake.expect(seq, self.turn.now)
            self._learn_stable(last + len(own))
        else:
            self.turn.mark("receiver-fetched-checkpoint")
            replica.skip_to(seq, state, self.epoch)

    def on_data(self, data: Data) -> None:
        """A payload: it may be the one that is missing."""
        if self.replica.library.take(data):
            self._learn_stable(0)

    def _learn_stable(self, stable: int) -> None:
        self.replica.learn_stable(stable)
        if self.delivered - self._seen_told >= SEEN_EVERY:
            self.say_seen()

    def say_seen(self) -> None:
        """Tell the leader how far we have got."""
        if self.is_quiet or self.replica.disk_hangs:
            return  # it would make a server of us
        self._seen_told = self.delivered
        if self.replica.leader:
            self.replica.carrier.vouch(self.replica.leader, Seen(self.replica.stream, self.epoch, self.delivered))

    @property
    def deadline(self) -> float:
        """When something is to be asked for."""
        return min(self.replica.ask_at, self._probe_at)

    @property
    def _probe_at(self) -> float:
        """After how long a silence there may be something: the leader may be cut off from us alone."""
        return max(self.heard_at, self._probed_at) + self.replica.timers.lease

    def tick(self) -> None:
        """Ask for what is missing, and after a long silence whether anything is: also if nobody knows who leads."""
        self.replica.ask_for_missing()
        if self.turn.now >= self._probe_at:
            self._probed_at = self.turn.now
            self._probes += 1
            self.unheard_probes += 1
            target = self.replica.whom_to_ask(self._probes)
            first = self.replica.log.last + 1
            if target:
                self.replica.carrier.send(target, RepairAsk(self.replica.stream, first, first + PROBED_ENTRIES))
