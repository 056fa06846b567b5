"""The election of the name server among the voters (DIST-01, DIST-02).

Five states, and what leads from one to another:

    leader known    -- silence, or its port refuses -->          leader unknown
    leader unknown  -- claim delay over -->                      voting open
    voting open     -- support of a majority, then promises -->  leader is me
    voting open     -- a better canvass heard -->                conceding
    voting open     -- time out -->                              leader unknown (with one more failure)
    conceding       -- 2 x claim_timeout without a leader -->    leader unknown
    leader is me    -- no answers, superseded, yields -->        leader unknown
    any             -- LeaderAlive of a high enough epoch -->    leader known

Two rounds. A *canvass* binds nobody: it only finds out whether a majority hears no leader and knows nobody
better. Only then the *claim* asks for promises, which bind for ever. With one binding round, a node that can
be heard but cannot hear would make the voters promise higher and higher epochs and depose every leader that
could have worked.

A voter supports or promises only while it has heard no leader for ``leader_silent``, and a leader that was
not answered by a majority for (a little less than) that time leaves office. So whoever is elected can be
sure that its predecessor has already stopped acknowledging. A port that refuses counts as silence at once,
because the process behind it is gone; were a firewall to lie about that, two could acknowledge for a moment,
and still no entry would be lost: promises do not depend on time.
"""

from __future__ import annotations

import enum
import math
from random import Random
from typing import TYPE_CHECKING

from ..effects import SendToPeer
from ..invariants import invariant
from ..parameters import Parameters
from ..peer_messages import DOMAIN_STREAM, Canvass, Claim, LeaderAlive, Refused, Support, Yield
from ..stream.recovery import Phase, Recovery
from ..turn import Turn
from .mandate import Mandate
from .standing import NEVER, Standing, priority_of

if TYPE_CHECKING:
    from .voter import Voter

FAILED_DELAY_MAX = 5
"""Failures that lengthen the claim delay: beyond it a lone voter would hardly look for company any more."""


class State(enum.Enum):
    """The five states."""

    LEADER_KNOWN = "leader known"
    LEADER_UNKNOWN = "leader unknown"
    VOTING_OPEN = "voting open"
    LEADER_IS_ME = "leader is me"
    CONCEDING = "conceding"


class Candidacy:
    """A canvass of ours, and the claim that may follow."""

    def __init__(self, canvass: Canvass, deadline: float) -> None:
        self.canvass = canvass
        self.supporters: dict[str, Support] = {}
        self.deadline = deadline
        self.repeat_at = math.inf
        self.recovery: Recovery | None = None


class Election:
    """One voter's part in it."""

    def __init__(self, turn: Turn, voter: Voter, parameters: Parameters, rng: Random) -> None:
        self.turn = turn
        self.voter = voter
        self.state = State.LEADER_UNKNOWN
        self.leader = ""
        self.leader_epoch = 0
        self.failed = 0
        self.candidacy: Candidacy | None = None
        self._parameters = parameters
        self._timers = parameters.timers
        self._rng = rng
        self._highest_seen = voter.server.promised
        self._last_heard = -math.inf
        self._claim_at = math.inf
        self._conceding_to = ""
        self._conceding_until = -math.inf
        self._lost = ""  # the leader lost last: it is not counted as a rival
        self._promised_to = ""
        self.stands_back = False  # for as long as anybody else could stand: this node is about to end

    def start(self) -> None:
        """A voter that has a state behaves as if it had just heard a leader: it may have, before it went down."""
        now = self.turn.now
        if self.voter.formed:
            self._last_heard = now
            self._claim_at = now + self._timers.leader_silent + self._claim_delay()
        else:
            self._claim_at = now + self._claim_delay()

    @property
    def claim(self) -> Recovery | None:
        """Our claim that is under way, if there is one."""
        return self.candidacy.recovery if self.candidacy is not None else None

    # --- Who leads ---

    @property
    def hears_leader(self) -> bool:
        """Whether a leader was heard lately, so that no other may be helped into office."""
        return self.state is State.LEADER_IS_ME or self.turn.now - self._last_heard < self._timers.leader_silent

    def on_leader_alive(self, sender: str, message: LeaderAlive) -> bool:
        """Returns whether the sender is to be followed."""
        if message.epoch < self.voter.server.promised:
            self.turn.send(sender, Refused(DOMAIN_STREAM, self.voter.server.promised))
            return False
        self._highest_seen = max(self._highest_seen, message.epoch)
        if sender == self.turn.node:
            return self.state is State.LEADER_IS_ME
        if self.state is State.LEADER_IS_ME:
            self.voter.resign(f"{sender} leads in epoch {message.epoch}", failed=0)
        self._drop_candidacy()
        if self.state is not State.LEADER_KNOWN or self.leader != sender:
            self.turn.journal("leader_known", epoch=message.epoch, leader=sender)
        self.state = State.LEADER_KNOWN
        self.leader, self.leader_epoch = sender, message.epoch
        self._last_heard = self.turn.now
        self._conceding_to = ""
        self.failed = 0
        return True

    def on_port_refused(self, node: str) -> None:
        """Nothing listens at ``node`` any more; a leader there is dead and need not be waited for."""
        if node == self.leader and self.state is State.LEADER_KNOWN:
            self.turn.mark("leader-port-refused")
            self.lose_leader()
        elif node == self._conceding_to and self.state is State.CONCEDING:
            self._look_for_leader()

    def lose_leader(self) -> None:
        """The leader is silent, dead or has said goodbye."""
        self._lost = self.leader
        self.leader = ""
        self._last_heard = -math.inf
        self.turn.journal("leader_lost", epoch=self.leader_epoch, leader=self._lost)
        self._look_for_leader()

    def _look_for_leader(self) -> None:
        self._drop_candidacy()
        self.state = State.LEADER_UNKNOWN
        self._conceding_to = ""
        self._claim_at = self.turn.now + self._claim_delay()

    def _claim_delay(self) -> float:
        timers = self._timers
        rivals = self.voter.rivals(without=self._lost)
        mine = self._standing(failed=0)
        rank = sum(1 for rival in rivals if rival.better_than(mine))
        return (
            timers.claim_delay_base
            + timers.claim_delay_rank * rank
            + timers.claim_delay_jitter * self._rng.random()
            + timers.claim_delay_failed * min(self.failed, FAILED_DELAY_MAX)
        )

    @property
    def _disk_hangs(self) -> bool:
        """Whether we could neither promise nor hold in time; then we stay out of the way."""
        return self.turn.oldest_write_age > self._timers.claim_timeout

    @property
    def _leaves_it_to_others(self) -> bool:
        return self.stands_back and bool(self.voter.rivals(without=self._lost))

    def _standing(self, failed: int) -> Standing:
        return Standing(self.turn.node, failed, self._parameters.pinned, priority_of(self._parameters))

    # --- Canvass: binds nobody ---

    def open_canvass(self) -> None:
        """Ask the voters whether they would support us."""
        self._drop_candidacy()
        if not self._parameters.candidate or self._disk_hangs or self._leaves_it_to_others:
            self.state = State.LEADER_UNKNOWN
            self._claim_at = self.turn.now + self._timers.leader_silent
            return
        voter, parameters = self.voter, self._parameters
        epoch = max(self._highest_seen, voter.server.promised) + 1
        canvass = Canvass(
            epoch, self.failed, parameters.pinned, priority_of(parameters), voter.formed, parameters.essentials()
        )
        self.failed += 1
        self.state = State.VOTING_OPEN
        self._conceding_to = ""
        self.candidacy = Candidacy(canvass, self.turn.now + self._timers.claim_timeout)
        self.candidacy.supporters[self.turn.node] = Support(epoch, voter.formed, voter.state_id)
        self.turn.journal("canvass", epoch=epoch, failed=canvass.failed)
        self._repeat_canvass(self.candidacy)
        self._count_support()

    def _repeat_canvass(self, candidacy: Candidacy) -> None:
        candidacy.repeat_at = self.turn.now + self._timers.repeat_first
        for name in self._parameters.all_voters:
            if name not in candidacy.supporters:
                self.turn.send(name, candidacy.canvass)

    def on_canvass(self, sender: str, canvass: Canvass) -> None:
        """Somebody wants to become name server."""
        promised = self.voter.server.promised
        if canvass.epoch <= promised:
            self.turn.send(sender, Refused(DOMAIN_STREAM, promised))
            return
        if self.hears_leader or self._disk_hangs or (self.voter.formed and not canvass.formed):
            return
        if self.claim is not None:
            return  # our own claim is under way and has a majority behind it
        theirs = Standing(sender, canvass.failed, canvass.pinned, canvass.priority)
        if self.voter.formed == canvass.formed and self._beats(theirs):
            conceding_to_other = self.state is State.CONCEDING and self._conceding_to != sender
            if self.candidacy is None and not conceding_to_other:
                self.turn.mark("better-canvasses-at-once")
                self.open_canvass()
            return
        self._concede_to(sender)
        self.turn.send(sender, Support(canvass.epoch, self.voter.formed, self.voter.state_id))

    def _beats(self, theirs: Standing) -> bool:
        """Whether we are the better candidate, and did not concede to this one for its first try."""
        mine = self._standing(self.candidacy.canvass.failed if self.candidacy else self.failed)
        conceded = self._conceding_to == theirs.name and theirs.failed == 0
        is_candidate = mine.priority > NEVER and not self._leaves_it_to_others
        return is_candidate and mine.better_than(theirs) and not conceded

    def _concede_to(self, name: str) -> None:
        self._drop_candidacy()
        self.state = State.CONCEDING
        self._conceding_to = name
        self._conceding_until = self.turn.now + 2 * self._timers.claim_timeout

    def on_support(self, sender: str, support: Support) -> None:
        """A voter would support us."""
        candidacy = self.candidacy
        if candidacy is None or candidacy.recovery is not None or support.epoch != candidacy.canvass.epoch:
            return
        if candidacy.canvass.formed or not support.formed:
            candidacy.supporters[sender] = support
            self._count_support()

    # --- Claim: binds for ever ---

    def _count_support(self) -> None:
        candidacy = self.candidacy
        if candidacy is None:
            return
        indispensable = () if candidacy.canvass.formed else self._founders
        everybody = all(name in candidacy.supporters for name in indispensable)
        if everybody and len(candidacy.supporters) >= self._enough(candidacy.canvass.formed):
            self._claim(candidacy)

    @property
    def _founders(self) -> tuple[str, ...]:
        """Who must take part when the domain is formed: all voters, except whom the operator excuses."""
        return tuple(name for name in self._parameters.all_voters if name not in self._parameters.form_without)

    def _enough(self, formed: bool) -> int:
        """How many promises decide: a majority; all founders when the domain is formed."""
        majority = self._parameters.majority
        return majority if formed else max(len(self._founders), majority)

    def _claim(self, candidacy: Candidacy) -> None:
        voter, epoch = self.voter, candidacy.canvass.epoch
        if candidacy.canvass.formed:
            _, table, admitted = voter.holders()
        else:
            ids = {name: support.state_id for name, support in candidacy.supporters.items()}
            table = admitted = tuple((name, ids.get(name, "")) for name in self._parameters.all_voters)
        candidacy.deadline = self.turn.now + self._timers.claim_timeout
        candidacy.repeat_at = math.inf
        enough = self._enough(candidacy.canvass.formed)
        mandate = Mandate(self, voter, self._parameters, epoch, table, admitted, enough)
        candidacy.recovery = Recovery(voter.server, epoch, mandate, self._timers)
        self._promised_to = self.turn.node
        candidacy.recovery.begin()

    def won(self) -> None:
        """Enough voters have promised us the epoch: the office is ours."""
        candidacy = self.candidacy
        invariant(candidacy is not None and candidacy.recovery is not None, "won without a claim")
        assert candidacy is not None
        assert candidacy.recovery is not None
        self.candidacy = None
        self.state = State.LEADER_IS_ME
        self.leader, self.leader_epoch = self.turn.node, candidacy.recovery.epoch
        self._highest_seen = max(self._highest_seen, self.leader_epoch)
        self.failed = 0
        self.voter.take_office(candidacy.recovery)

    def on_claim(self, sender: str, claim: Claim) -> None:
        """Promise, if nothing speaks against it."""
        server = self.voter.server
        self._highest_seen = max(self._highest_seen, claim.epoch)
        if claim.epoch < server.promised:
            self.turn.send(sender, Refused(DOMAIN_STREAM, server.promised))
            return
        if not self.voter.may_promise(claim):
            return
        leads = sender == self.leader and claim.epoch == self.leader_epoch and self.state is State.LEADER_KNOWN
        if claim.epoch == server.promised:
            if sender == self._promised_to or leads:
                self._promised_to = sender
                self._say_promise(sender)
            return
        if self.hears_leader and not leads:
            return
        self._drop_candidacy()
        server.promise(claim.epoch)
        self._promised_to = sender
        if not leads:
            self._concede_to(sender)
        self._say_promise(sender)

    def _say_promise(self, claimant: str) -> None:
        """Write the promise, then say it; a repeated claim repeats both, unless the disk has enough to do."""
        if not self._disk_hangs:
            server = self.voter.server
            self.turn.persist(server.promise_record(), then=(SendToPeer(claimant, server.report()),))

    def _drop_candidacy(self) -> None:
        if self.candidacy is not None:
            if self.candidacy.recovery is not None:
                self.candidacy.recovery.abandon()
            self.candidacy = None

    # --- Leaving office, refusals, yielding ---

    def resigned(self, failed: int) -> None:
        """We were leader and are not any more."""
        self._lost = ""
        self.leader = ""
        self._last_heard = -math.inf
        self.failed = failed
        self._look_for_leader()

    def stand_back_for(self, name: str) -> None:
        """We handed our office over."""
        self._concede_to(name)

    def on_refused(self, refused: Refused) -> None:
        """Somebody has promised a higher epoch than ours."""
        self._highest_seen = max(self._highest_seen, refused.epoch)
        if self.state is State.LEADER_IS_ME and refused.epoch > self.leader_epoch:
            self.voter.resign(f"a voter has promised epoch {refused.epoch}", failed=0)
        elif self.candidacy is not None and refused.epoch >= self.candidacy.canvass.epoch:
            if self.candidacy.recovery is None or self.candidacy.recovery.phase is Phase.ASKING:
                self._look_for_leader()

    def on_yield(self, sender: str, message: Yield) -> None:
        """The leader hands over its office."""
        if sender != self.leader or message.epoch != self.leader_epoch:
            return
        self.turn.mark("yielded")
        self.leader = ""
        self._last_heard = -math.inf
        self.failed = 0
        if message.to == self.turn.node:
            self.open_canvass()
        else:
            self._concede_to(message.to)

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When the present state ends by itself."""
        if self.state is State.LEADER_KNOWN:
            return self._last_heard + self._timers.leader_silent
        if self.state is State.LEADER_UNKNOWN:
            return self._claim_at
        if self.state is State.CONCEDING:
            return self._conceding_until
        if self.candidacy is not None:
            at = min(self.candidacy.deadline, self.candidacy.repeat_at)
            return min(at, self.candidacy.recovery.deadline) if self.candidacy.recovery else at
        return math.inf

    def tick(self) -> None:
        """Time has passed."""
        now = self.turn.now
        if self.state is State.LEADER_KNOWN:
            if now >= self._last_heard + self._timers.leader_silent:
                self.turn.mark("leader-silent")
                self.lose_leader()
        elif self.state is State.LEADER_UNKNOWN:
            if now >= self._claim_at:
                self.open_canvass()
        elif self.state is State.CONCEDING:
            if now >= self._conceding_until:
                self._look_for_leader()
        elif self.candidacy is not None:
            candidacy = self.candidacy
            if now >= candidacy.deadline:
                self.turn.mark("claim-timed-out" if candidacy.recovery else "canvass-timed-out")
                self._look_for_leader()
            elif candidacy.recovery is not None:
                candidacy.recovery.tick()
            elif now >= candidacy.repeat_at:
                self._repeat_canvass(candidacy)
