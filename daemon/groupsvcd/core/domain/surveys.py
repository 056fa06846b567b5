"""How all nodes are, for an operator who asks one of them.

A is asked. It asks every node that is up or a voter, and each answers with what only it knows: its version, what its
wall clock says, and how its own connections to others stand. B may be connected to C while C cannot reach B: only both
answers together show a way that is open in one direction. A waits a while, and tells who answered what.

A may not be connected to everybody. It makes the missing links, repeats its question until they stand, and lets them
go afterwards; who answers does the same. What is said back with the answer tells A how long it took, so that half of
that is how wrong it can be about B's clock.

The engine has neither a wall clock nor connections, so whoever drives it says what these are (``look``). Nothing in the
protocol depends on any of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import attrs

from groupsvc.wire.client_messages import Problem
from groupsvc.wire.survey_messages import LinkFinding, LinkState, NodeFindings, SurveyAsk, SurveyIs

from ..identity import Sender
from ..links import ANSWERS, SURVEYS, Links
from ..parameters import Parameters
from ..survey_messages import Findings, Survey
from ..turn import Turn
from .member import Member

WAIT_S = 2.0
"""Who has not answered by then is told as not answering, even if the asker would wait longer."""

REPEAT_S = 0.1
"""A link takes some milliseconds to stand, and a question before that is lost."""

NODES_MAX = 200
"""So many are asked at once; an operator of more looks at them in parts."""

SURVEYS_MAX = 8
"""At a time, for clients of one node: the question goes to everybody."""


@attrs.frozen
class Observed:
    """What only the driver of an engine sees: the wall clock, and the states of this node's connections by name."""

    version: str = ""
    wall_us: int = 0
    links: Mapping[str, LinkState] = attrs.field(factory=dict)


@attrs.define
class _Waiting:
    client: int
    request: int
    until: float
    repeat_at: float
    asked: tuple[str, ...]
    left_out: int
    found: dict[str, NodeFindings]


class Surveys:
    """Those of one node, asked by its clients, and answers to those of others."""

    def __init__(
        self, turn: Turn, parameters: Parameters, member: Member, links: Links, heard_s: Callable[[str], float]
    ) -> None:
        self.look: Callable[[], Observed] = Observed
        self._turn = turn
        self._parameters = parameters
        self._member = member
        self._links = links
        self._heard_s = heard_s
        self._waiting: dict[int, _Waiting] = {}
        self._last_number = 0

    # --- Asking ---

    def on_ask(self, client: int, ask: SurveyAsk) -> None:
        """A client wants to know how all nodes are."""
        if len(self._waiting) >= SURVEYS_MAX:
            text = f"{len(self._waiting)} others ask how all nodes are; try again in some seconds"
            self._turn.reply(client, Problem(ask.id, "failed", "busy", text))
            return
        addresses = self._addresses()
        asked = tuple(addresses)[:NODES_MAX]
        me, now = self._turn.node, self._turn.now
        self._last_number += 1
        self._waiting[self._last_number] = _Waiting(
            client, ask.id, until=now + min(max(ask.timeout, 0.0), WAIT_S), repeat_at=now, asked=asked,
            left_out=len(addresses) - len(asked), found={me: self._findings(me, self.look(), 0.0, 0.0)},
        )  # fmt: skip
        for name in asked:
            self._links.need_too(SURVEYS, name, addresses[name])
        self.tick()

    def _addresses(self) -> dict[str, str]:
        """Whom to ask, and where it is: the voters, then all other nodes that are up."""
        found = dict(sorted(self._parameters.voter_addresses.items()))
        for name, entry in sorted(self._member.nodes.items()):
            if entry.status == "up" or name in found:
                found[name] = entry.address or found.get(name, "")
        found.pop(self._turn.node, None)
        return found

    def on_findings(self, sender: Sender, message: Findings) -> None:
        """A node has answered."""
        waiting = self._waiting.get(message.number)
        if waiting is None or sender.name not in waiting.asked or sender.name in waiting.found:
            return
        round_trip = self._turn.now - message.sent
        if not 0 <= round_trip <= WAIT_S + REPEAT_S:  # what was said back is not what was said
            return
        skew = (message.wall_us - self.look().wall_us) / 1e6 + round_trip / 2
        waiting.found[sender.name] = NodeFindings(
            sender.name, True, message.version, skew, round_trip, message.suspended, message.links
        )
        self._end_if_done(message.number, waiting)

    def on_client_gone(self, client: int) -> None:
        """Nobody waits for that any more."""
        for number in [number for number, one in self._waiting.items() if one.client == client]:
            self._end(number)

    @property
    def deadline(self) -> float:
        """When the next question is to be repeated, or to be answered without those who have not."""
        return min((min(one.until, one.repeat_at) for one in self._waiting.values()), default=math.inf)

    def tick(self) -> None:
        """Repeat what was not answered; tell what is late."""
        now = self._turn.now
        for number, waiting in list(self._waiting.items()):
            if now >= waiting.repeat_at:
                waiting.repeat_at = now + REPEAT_S
                for name in waiting.asked:
                    if name not in waiting.found:
                        self._turn.send(name, Survey(number, now))
            self._end_if_done(number, waiting)

    def _end_if_done(self, number: int, waiting: _Waiting) -> None:
        if self._turn.now < waiting.until and len(waiting.found) <= len(waiting.asked):
            return
        nodes = [waiting.found.get(name) or NodeFindings(name, False) for name in {*waiting.asked, *waiting.found}]
        nodes.sort(key=lambda one: one.node)
        self._turn.reply(waiting.client, SurveyIs(waiting.request, tuple(nodes), waiting.left_out))
        self._end(number)

    def _end(self, number: int) -> None:
        del self._waiting[number]
        if not self._waiting:
            self._links.forget(SURVEYS)

    # --- Answering ---

    def on_survey(self, sender: Sender, message: Survey) -> None:
        """Another node asks; over a link that is kept for as long as links are that nobody needs."""
        known = self._member.nodes.get(sender.name)
        address = known.address if known is not None else self._parameters.voter_addresses.get(sender.name, "")
        if not address:
            return  # a stranger
        self._links.need_too(ANSWERS, sender.name, address)
        self._links.forget(ANSWERS)
        seen = self.look()
        mine = self._findings(self._turn.node, seen, 0.0, 0.0)
        answer = Findings(message.number, message.sent, seen.version, seen.wall_us, mine.suspended, mine.links)
        self._turn.send(sender.name, answer)

    def _findings(self, node: str, seen: Observed, skew: float, round_trip: float) -> NodeFindings:
        links = tuple(LinkFinding(name, state, self._heard_s(name)) for name, state in sorted(seen.links.items()))
        return NodeFindings(node, True, seen.version, skew, round_trip, self._member.isolated, links[:NODES_MAX])
