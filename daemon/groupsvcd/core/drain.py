"""Ending in good order: a node hands over what it has before it goes.

D is to be taken down for an hour. It carries groups and leads some, programs are connected to it, and perhaps it is
name server. Killed, it would be missed for as long as its silence takes to be noticed. Drained, it is missed by nobody:

    finishing  D begins nothing new, and says so to who asks. What its programs have asked for is answered, as far as
               that does not take long. If it is name server, the best voter that has caught up gets the office.
    leaving    Its sessions end, with the reason; its providers say goodbye, each when it is its turn: a vote that runs
               in its group comes first. D leaves the groups it carries, as it always does when nobody on it needs
               them: who leads hands over first.
    drained    Nothing is left: D says goodbye to the other nodes and ends.
    gave up    Its time was up. D ends all the same, as it does when it is told to stop, and names what was left.

What must hold, whenever it begins and whatever happens meanwhile:

- Nothing that is stable is lost. All that leaves D leaves by the ways that are there without a drain: a view without
  D, the yielding of the office, a goodbye. None of them is hurried by the clock; when time is up D simply stops, which
  everything must survive anyway.
- What is on disks stays there. Of a durable group D keeps its copy, and its providers go with their node: were the last
  of them to say goodbye, the group would end with all it has kept. Somebody else leads it as soon as D said goodbye.
- Who holds something alone holds it until its program knows better. In an exclusive group a provider says goodbye when
  nobody vouches for its session any more, as after any other end that its program did not ask for.
- A drain ends: all that waits looks at the clock. Without a majority nothing can be handed over, and D waits for one
  until its time is up. The last voter, and the only node of a domain, have nobody to hand the office to: nor do they
  wait for anybody.
- Asked twice, it is the same drain; the shorter time counts. A stop that comes meanwhile is a stop.

Nothing here is persisted: a node that is killed in its drain and started again is as any other.
"""

from __future__ import annotations

import math
from typing import Literal

from groupsvc.wire.client_messages import DrainAsk, DrainIs
from groupsvc.wire.limits import TIMEOUT_S_MAX

from .domain.member import Member
from .domain.requests import Requests
from .domain.trouble import Trouble
from .domain.voter import Voter
from .groups.process_groups import ProcessGroups
from .nodegroups.node_groups import NodeGroups
from .sessions.sessions import Sessions
from .turn import Turn

DRAIN_S_MIN = 0.1
"""What is less is taken for so much: a drain that ends before it begins is a stop, and there is a signal for that."""

FINISH_S = 2.0
"""How long requests that are under way are waited for; never more than a quarter of the whole time."""

LOOK_S = 0.1
"""Something is looked for so often if no message makes us look."""

TELL_EVERY_S = 0.25
"""Who asks how far it is hears it so much later, unless it is over before."""

LAST_WORD_S = 2.0
"""Who has asked and was just answered asks again at once: for so long the last word is kept for it."""

SAID_S = 0.3
"""Who was told the last word gets so much time to read it: what a connection carries may go with the connection."""

NAMED_MAX = 5
"""Groups that are named of those that are left."""

OTHERS_NAMED_MAX = 3
"""Nodes that are named to those who have to go elsewhere."""


class Drain:
    """The end of one node, once somebody wants it."""

    def __init__(
        self, turn: Turn, member: Member, trouble: Trouble, voter: Voter | None, requests: Requests,
        sessions: Sessions, processes: ProcessGroups, groups: NodeGroups,
    ) -> None:  # fmt: skip
        self.turn = turn
        self._member = member
        self._trouble = trouble
        self._voter = voter
        self._requests = requests
        self._sessions = sessions
        self._processes = processes
        self._groups = groups
        self.stage: Literal["", "finishing", "leaving", "drained", "gave up"] = ""
        self._finish_at = self._limit_at = self._look_at = math.inf
        self._has_yielded = False
        self._asked: list[tuple[int, int, float]] = []  # client, request, when it is answered
        self._askers: set[int] = set()
        self._over_since = math.inf
        self._left_at = -math.inf
        self._stop_at = math.inf  # the last word was said
        self._last_words = ""
        self._left_undone: list[str] = []

    @property
    def is_on(self) -> bool:
        """Whether this node is about to end."""
        return self.stage in ("finishing", "leaving")

    @property
    def in_words(self) -> str:
        """For people who ask how this node is; "" if it is not drained."""
        if not self.is_on:
            return ""
        return (
            f"this node is being drained, {self._time_left:.0f} s at most: {'; '.join(self._left()) or 'ready to end'}"
        )

    # --- Asked for ---

    def begin(self, timeout: float) -> None:
        """Hand over and end within so many seconds."""
        allowed = min(max(timeout, DRAIN_S_MIN), TIMEOUT_S_MAX) if math.isfinite(timeout) else TIMEOUT_S_MAX
        limit_at = self.turn.now + allowed
        if self.stage:
            self._limit_at = min(self._limit_at, limit_at)
            return
        self.stage = "finishing"
        self._limit_at, self._finish_at = limit_at, self.turn.now + min(FINISH_S, allowed / 4)
        self._sessions.desk.draining = self._advice()
        if self._voter is not None:
            self._voter.election.stands_back = True
        self.turn.journal("drain", stage=self.stage, left=[])

    def _advice(self) -> str:
        me = self.turn.node
        up = [name for name, entry in sorted(self._member.nodes.items()) if entry.status == "up" and name != me]
        others = f" ({', '.join(up[:OTHERS_NAMED_MAX])} {'are' if len(up) > 1 else 'is'} up)" if up else ""
        return (
            f"node {me} is being drained and begins nothing new: use the daemon of another node{others},"
            " or wait until this one is back"
        )

    def on_ask(self, client: int, ask: DrainAsk) -> None:
        """Somebody wants it, or wants to know how far it is."""
        self.begin(ask.timeout)
        self._askers.add(client)
        self._asked.append((client, ask.id, self.turn.now + TELL_EVERY_S))
        if self.stage == "drained" or self.stage == "gave up":  # it is over, and about to end
            self._tell(math.inf, self.stage, self._left_undone)

    def on_client_gone(self, client: int) -> None:
        """Nobody is there to be told."""
        self._askers.discard(client)
        if self._asked:
            self._asked = [one for one in self._asked if one[0] != client]

    # --- Going on ---

    def goes_on(self) -> bool:
        """At the end of every step: do what can be done now. Whether that has changed anything."""
        now = self.turn.now
        if now >= self._stop_at:
            self._stop_at = math.inf
            self.turn.stop(self._last_words)
        if not self.stage or not self.is_on:
            return False
        self._look_at = now + LOOK_S
        has_changed = self._hand_over()
        if self.stage == "finishing" and (now >= self._finish_at or self._is_quiet):
            self.stage = "leaving"
            self.turn.journal("drain", stage=self.stage, left=self._left())
            self._sessions.drain(f"{self._sessions.desk.draining}; its sessions have ended")
            has_changed = True
        if self.stage == "leaving" and self._leave():
            has_changed = True
        if has_changed:
            return True
        left = self._left()
        is_done = self.stage == "leaving" and not left
        if not is_done and now < self._limit_at:
            self._over_since = math.inf
        elif self._can_say_it(now):
            self._end("drained" if is_done else "gave up", left)
            return False
        self._tell(now)
        return False

    def _can_say_it(self, now: float) -> bool:
        """Whether all who want to know how it ends wait for an answer, or had the time to ask."""
        self._over_since = min(self._over_since, now)
        return self._askers <= {client for client, _, _ in self._asked} or now >= self._over_since + LAST_WORD_S

    @property
    def _is_quiet(self) -> bool:
        return self._sessions.is_quiet and self._requests.is_quiet

    def _hand_over(self) -> bool:
        """Yield the office, if we have it and somebody can have it; whether that was done."""
        office = self._voter.office if self._voter is not None else None
        if office is None or self._voter is None or not office.hand_over():
            return False
        if self._voter.office is not None:
            return False  # nobody has caught up yet
        self._has_yielded = True
        return True

    def _leave(self) -> bool:
        """Nobody on this node needs a group any more; whether anybody still did.

        Once in a moment: who is told that it has left may come again at once.
        """
        if self._left_at == self.turn.now:
            return False
        self._left_at = self.turn.now
        has_left = self._processes.drain()
        for group in self._groups.all:
            if not group.settings.processes:
                for user in (*group.users, *(application.user for application in group.returning)):
                    self._groups.leave(group.name, user)
                    has_left = True
        return has_left

    def _left(self) -> list[str]:
        """What is to be done yet, in words."""
        found: list[str] = []
        if self.stage == "finishing" and not self._is_quiet:
            found.append("requests of its programs are under way")
        if self._sessions.count:
            found.append(f"sessions: {self._sessions.count}")
        names = self._group_names
        if names:
            more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
            found.append(f"groups: {', '.join(map(repr, names[:NAMED_MAX]))}{more}")
        if self._keeps_office:
            found.append("the office of name server, for which no other voter is ready")
        elif self._has_yielded and self._trouble.leader in ("", self.turn.node) and not self._has_office:
            found.append("the office of name server, which nobody has taken yet")
        if found and self._member.isolated:
            found.append(self._trouble.in_words)
        return found

    @property
    def _has_office(self) -> bool:
        return self._voter is not None and self._voter.office is not None

    @property
    def _keeps_office(self) -> bool:
        """Whether we are name server, and somebody else could be."""
        return self._voter is not None and self._voter.office is not None and self._voter.office.has_heirs

    @property
    def _group_names(self) -> list[str]:
        """Of the groups that are to be left; what our disk holds for later is not."""
        return sorted(group.name for group in self._groups.all if not group.settings.durable)

    # --- The end ---

    def _end(self, stage: Literal["drained", "gave up"], left: list[str]) -> None:
        self._tell(math.inf, stage, left)
        self.stage, self._left_undone = stage, left
        self.turn.journal("drain", stage=stage, left=left)
        self._last_words = "drained" if not left else f"the time for the drain is over; left were {'; '.join(left)}"
        if self._askers:
            self._stop_at = self.turn.now + SAID_S
        else:
            self.turn.stop(self._last_words)

    @property
    def _time_left(self) -> float:
        return max(0.0, self._limit_at - self.turn.now)

    def _tell(self, now: float, stage: Literal["drained", "gave up", ""] = "", left: list[str] | None = None) -> None:
        """Tell those whose time has come."""
        due = [one for one in self._asked if one[2] <= now]
        if not due:
            return
        self._asked = [one for one in self._asked if one[2] > now]
        words = tuple(self._left() if left is None else left)
        for client, number, _ in due:
            is_at = stage or ("leaving" if self.stage == "leaving" else "finishing")
            told = DrainIs(
                number, self.turn.node, is_at, self._sessions.count, len(self._group_names), self._time_left, words
            )
            self.turn.reply(client, told)

    @property
    def deadline(self) -> float:
        """When to look again."""
        if not self.is_on:
            return self._stop_at
        told_at = min((one[2] for one in self._asked), default=math.inf)
        ends_at = self._limit_at if self._over_since == math.inf else self._over_since + LAST_WORD_S
        return min(self._look_at, ends_at, self._finish_at if self.stage == "finishing" else math.inf, told_at)
