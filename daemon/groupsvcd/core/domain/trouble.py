"""What is wrong with this node's place in the domain, in words.

For people who ask for the status, and for programs that waited in vain. A join that is late says little with "not
approved in time" where nobody could approve it: of three voters only A was started, and the domain is not formed yet;
or B and C have died, and A is suspended. Each knows its part: the member its lease, the voter whom the domain lacks,
the engine who was heard and what others complained about. Here it becomes one sentence.

Nothing is decided by these words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from groupsvc.wire.survey_messages import BARRED

from ..parameters import Parameters
from ..turn import Turn
from .member import Member

if TYPE_CHECKING:
    from .voter import Voter

NOTED_MAX = 100
"""Complaints of or about other nodes that are kept for the status; one per node, so there is one each for most."""

SUSPENDED = "suspended: "
"""How trouble begins that only other voters can end."""


class Trouble:
    """The trouble of one node."""

    def __init__(self, turn: Turn, parameters: Parameters, member: Member) -> None:
        self.voter: Voter | None = None
        self.barred_by: Callable[[], list[str]] = list  # who does not know our key; the driver sees that
        self._turn = turn
        self._parameters = parameters
        self._member = member
        self._heard_at: dict[str, float] = {}
        self._noted: dict[str, str] = {}

    # --- What was seen ---

    def heard(self, node: str) -> None:
        """A frame of this node came."""
        self._heard_at[node] = self._turn.now

    def heard_s(self, node: str) -> float:
        """How long ago that was; -1 if never, or if nobody is there any more."""
        heard_at = self._heard_at.get(node)
        return -1.0 if heard_at is None else self._turn.now - heard_at

    def refused(self, node: str) -> None:
        """Its port refuses: whoever asks for the status need not wait until its silence is long."""
        self._heard_at.pop(node, None)

    def note(self, node: str, text: str) -> None:
        """This node complains, or there is something to complain about."""
        if self._noted.get(node) != text:
            self._noted[node] = text
            self._turn.journal("trouble", text=text, sender=node)
            if len(self._noted) > NOTED_MAX:
                del self._noted[next(iter(self._noted))]

    def forget(self, node: str) -> None:
        """There is nothing to complain about any more."""
        self._noted.pop(node, None)

    # --- In words ---

    @property
    def leader(self) -> str:
        """The name server, if one is heard."""
        leader = self._member.leader if self._member.hears_leader else ""
        if self.voter is not None and leader == self._turn.node and self.voter.office is None:
            return ""  # it has just left office, and the member in it has not noticed yet
        return leader

    @property
    def in_words(self) -> str:
        """Why the domain does not serve this node; "" if it does."""
        leader, disk_s = self.leader, self._turn.oldest_write_age
        if disk_s > self._parameters.timers.leader_silent:
            return f"a write has been under way for {disk_s:.1f} s: is the disk full or hung?"
        noted = "; ".join(text for _, text in sorted(self._noted.items()))
        if not leader:
            unheard = "no name server answers" if self.voter is None else noted or self.voter.trouble(self._away)
            barred_by = ", ".join(self.barred_by())
            return f"{BARRED} {barred_by}; {unheard}" if barred_by else unheard
        if not self._member.isolated:
            return ""
        waits = f"{leader} does not acknowledge this node: it has not been let in, or their addresses are mixed up"
        return self._member.trouble or noted or waits

    @property
    def _away(self) -> list[str]:
        """The voters that were not heard lately."""
        silent = self._parameters.timers.leader_silent * 2
        return [
            name
            for name in self._parameters.all_voters
            if name != self._turn.node and self._turn.now - self._heard_at.get(name, -math.inf) > silent
        ]

    # --- To whom waited in vain ---

    def why_unanswered(self, otherwise: str) -> str:
        """Why a question to the name server is late: there is none, else ``otherwise``."""
        return otherwise if self.leader else self._sentence

    def why_undone(self, otherwise: str) -> str:
        """Why something is late in a group that this node carries: it may not act, else ``otherwise``."""
        return self._sentence if self._member.isolated else otherwise

    def why_not_there(self, otherwise: str) -> str:
        """Why this node has not got to a group: it takes a name server and a lease, and else it is ``otherwise``."""
        return self.why_unanswered(self.why_undone(otherwise))

    @property
    def _sentence(self) -> str:
        member = self._member
        if not (member.isolated and member.was_in):
            return self.in_words
        since_s = self._turn.now - member.isolated_at
        return f"{self._turn.node} has been suspended for {since_s:.1f} s: {self.in_words.removeprefix(SUSPENDED)}"
