"""Who is in: the name server lets nodes in and declares them down and gone.

It compares what it sees with what the directory says and orders the difference (``NodeUp``, ``NodeDown``, ``NodeGone``,
``VoterReplaced``). Nothing is remembered from one comparison to the next that a successor could not find out:

- *down*: the node has not answered for lease + margin, or said goodbye, or its port refuses here and elsewhere;
- *gone*: lease + margin have passed since this incarnation last answered, so that it knows by its own clock;
- a voter's new state directory is admitted once every incarnation of the old one is gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from groupsvc.wire import versions

from ..links import OFFICE, Links
from ..parameters import Parameters
from ..peer_messages import DOMAIN_TOPIC, Alive, PeerMessage, Register, Suspect, Unwelcome
from ..turn import Turn
from ..views import NodeId
from .commands import AnyCommand, NodeDown, NodeGone, NodeUp, VoterReplaced
from .limits import SHOWN_CHARS_MAX
from .nodes import UP, Node
from .roll_call import RollCall
from .suspicions import Suspicions

if TYPE_CHECKING:
    from .directory import Directory


REFUSED_AGAIN_S = 5.0
REFUSED_MAX = 1_000
"""Of so many who are refused it is known when that was told; of more it is told again."""

DIFFERENCES_SHOWN_MAX = 30
"""More than there are essential parameters; only a stranger differs in more."""


class Roster:
    """The name server's care for the list of nodes, in one term of office."""

    def __init__(
        self, turn: Turn, directory: Directory, roll: RollCall, parameters: Parameters, epoch: int, links: Links,
        order: Callable[[AnyCommand], None],
    ) -> None:  # fmt: skip
        self.turn = turn
        self.directory = directory
        self.roll = roll
        self.epoch = epoch
        self.order = order
        self._parameters = parameters
        self._suspicions = Suspicions(parameters.timers.leader_silent)
        self._goodbyes: set[NodeId] = set()
        self._wires: dict[str, int] = {turn.node: versions.OWN}  # of nodes in the list that this office has heard
        self._refused: dict[str, tuple[str, float]] = {}  # why, and when that was told last
        self._coming: dict[str, tuple[int, float]] = {}  # whose NodeUp was ordered: incarnation, and at what time
        self._links = links
        links.need(
            OFFICE, {node.name: node.address for node in directory.nodes.all() if node.status == UP}, listen=False
        )

    def reach(self, name: str, address: str) -> None:
        """Have a connection to this node, so that it can be answered."""
        self._links.need_too(OFFICE, name, address)

    # --- Letting in ---

    def note_wire(self, name: str, wire: int) -> None:
        """Which versions a node writes and reads, by its newest answer."""
        if name in self._wires or self.directory.nodes.get(name) is not None:
            self._wires[name] = wire

    def on_register(self, sender: str, incarnation: int, register: Register, wire: int = versions.OWN) -> None:
        """A node wants to be in the list with this incarnation."""
        node = self.directory.nodes.get(sender)
        refusal = self._refusal(sender, incarnation, node, register)
        if refusal is None and wire != versions.OWN:
            others = [name for name in (*self._names_coming(), *self._names_up()) if name != sender]
            if any(name not in self._wires for name in others):
                return  # it asks again, and by then they have answered this office, or are down
            refusal = self._not_understood(sender, wire, others)
        if refusal is not None:
            self._refuse(sender, incarnation, register.address, refusal)
            self._tell_of(sender, refusal.reason)
            return
        self.reach(sender, register.address)
        if node is None or incarnation > node.incarnation:
            self._coming[sender] = (incarnation, self.turn.now)
            self._wires[sender] = wire
            self.let_in(sender, incarnation, register)
        else:
            self.note_wire(sender, wire)

    def _tell_of(self, sender: str, reason: str) -> None:
        """Who is refused asks again several times a second; that is told now and then."""
        now = self.turn.now
        before, at = self._refused.get(sender, ("", -math.inf))
        if reason != before or now >= at + REFUSED_AGAIN_S:
            if len(self._refused) >= REFUSED_MAX:
                self._refused.clear()
            self._refused[sender] = (reason, now)
            self.turn.journal("unwelcome", epoch=self.epoch, name=sender, reason=reason)

    def _names_up(self) -> list[str]:
        return [other.name for other in self._others_up()]

    def _names_coming(self) -> list[str]:
        """Those who are about to be up: who comes meanwhile must understand them, too.

        Whose entry was not ordered in the end asks again; until then nobody is kept out for it longer than a lease.
        """
        since = self.turn.now - self._parameters.timers.lease
        for name, (incarnation, at) in list(self._coming.items()):
            node = self.directory.nodes.get(name)
            if at < since or (node is not None and node.incarnation >= incarnation):
                del self._coming[name]
                if node is None:
                    self._wires.pop(name, None)
        return list(self._coming)

    def _refuse(self, name: str, incarnation: int, address: str, refusal: Unwelcome) -> None:
        """Say so. The way to a name leads to the node that is up; a second machine hears what is said to all."""
        node = self.directory.nodes.get(name)
        if node is not None and node.status == UP and node.incarnation != incarnation and node.address != address:
            self.turn.publish(DOMAIN_TOPIC, msgspec.structs.replace(refusal, only=(name, incarnation)))
            return
        self.reach(name, address)
        self.turn.send(name, refusal)

    def _refusal(self, sender: str, incarnation: int, node: Node | None, register: Register) -> Unwelcome | None:
        found = difference(self.turn.node, self._parameters.essentials(), sender, register.essentials)
        if found is not None:
            return found
        if self.directory.is_retired(register.state_id):
            return self._retired(sender, register.state_id)
        if node is not None and incarnation < node.incarnation:
            return too_old(sender, incarnation, node)
        if node is not None and self._is_another_machine(node, register):
            reason = f"a voter {sender} is up with another state directory, at {node.address}; stop that one first"
            return Unwelcome(reason)
        return None

    def _not_understood(self, sender: str, wire: int, others: list[str]) -> Unwelcome | None:
        """Whether somebody who is in and the newcomer would be deaf to each other: both would be in groups together."""
        for name in others:
            theirs = self._wires[name]
            if not versions.understand(wire, theirs):
                reason = f"{sender} {versions.in_words(wire)}, but {name}, which is up, {versions.in_words(theirs)}"
                return Unwelcome(reason, versions.PARAMETER, str(theirs), str(wire))
        return None

    def _is_another_machine(self, node: Node, register: Register) -> bool:
        """Whether a voter that still answers would be displaced by one with another disk."""
        alive = node.status == UP and not self._is_over((node.name, node.incarnation))
        return node.voter and alive and node.state_id != register.state_id

    def on_old_incarnation(self, sender: str, incarnation: int, messages: tuple[PeerMessage, ...]) -> None:
        """Somebody speaks under an incarnation below the newest one: tell him, or he would wait for ever."""
        node = self.directory.nodes.get(sender)
        if node is None:
            return
        for message in messages:
            if not isinstance(message, Register | Alive):
                continue
            address = message.address if isinstance(message, Register) else node.address
            if self.directory.is_retired(message.state_id):
                self._refuse(sender, incarnation, address, self._retired(sender, message.state_id))
            elif incarnation < node.incarnation:
                self._refuse(sender, incarnation, address, too_old(sender, incarnation, node))

    def _retired(self, name: str, state_id: str) -> Unwelcome:
        reason = f"the state directory of {name} was replaced by another one; start it with an empty one"
        return Unwelcome(reason, "state_directory", self.directory.voters.get(name, ""), state_id)

    def let_in(self, name: str, incarnation: int, register: Register) -> None:
        """Order that this incarnation is up, unless the directory would refuse that."""
        voter = name in self._parameters.all_voters
        command = NodeUp(
            name, incarnation, register.state_id, register.address, voter, register.pinned, register.priority
        )
        problem = self.directory.nodes.problem_with(command)
        if problem:
            self.turn.send(name, Unwelcome(problem))
        else:
            self.order(command)

    # --- Signs of death and life ---

    def on_port_refused(self, node: str) -> None:
        """Nothing listens at the node's address: one of two reasons to declare it down early."""
        known = self.directory.nodes.get(node)
        if known is not None:
            self._suspicions.refused_here((node, known.incarnation), self.turn.now)
            self.watch()

    def on_suspect(self, sender: str, suspect: Suspect) -> None:
        """Another node finds that nothing listens there."""
        node = self.directory.nodes.get(suspect.node)
        if node is not None and node.incarnation == suspect.incarnation and sender != suspect.node:
            self._suspicions.refused_at((suspect.node, suspect.incarnation), sender, self.turn.now)
            if node.status == UP and node.name != self.turn.node:
                self._watch_up(node)  # and no other: everybody who was connected to it says so

    def on_goodbye(self, sender: str, incarnation: int) -> None:
        """The node's incarnation will never act again."""
        if self.directory.nodes.get(sender) is not None:
            self._goodbyes.add((sender, incarnation))
            self.watch()

    def on_sign_of_life(self, node_id: NodeId) -> None:
        """The node answered a call."""
        self._suspicions.clear(node_id)

    # --- Declaring down and gone ---

    def watch(self) -> None:
        """Order the difference between what is and what the directory says."""
        others = self._others_up()
        for node in others:
            self._watch_up(node)
        for name, incarnation in self.directory.nodes.not_gone():
            if self._is_over((name, incarnation)):
                self.order(NodeGone(name, incarnation))
        for node in others:
            self._watch_disk(node)

    def next_overdue(self) -> float:
        """When the next incarnation of which nothing is heard is down, or gone; of those that are not due already."""
        nodes = [*((node.name, node.incarnation) for node in self._others_up()), *self.directory.nodes.not_gone()]
        return min((at for node_id in nodes if (at := self.roll.overdue_at(node_id)) > self.turn.now), default=math.inf)

    def _others_up(self) -> list[Node]:
        return [node for node in self.directory.nodes.all() if node.name != self.turn.node and node.status == UP]

    def _is_over(self, node_id: NodeId) -> bool:
        """Whether this incarnation certainly holds no lease any more."""
        return node_id in self._goodbyes or self.roll.overdue(node_id, self.turn.now)

    def _watch_up(self, node: Node) -> None:
        node_id = (node.name, node.incarnation)
        if self._is_over(node_id):
            self.order(NodeDown(node.name, node.incarnation, False))
        elif self._suspicions.is_refused_here(node_id, self.turn.now):
            if self._suspicions.confirmed(node_id, [other.name for other in self._others_up()], self.turn.now):
                self.turn.mark("down-early")
                self.order(NodeDown(node.name, node.incarnation, True))

    def _watch_disk(self, node: Node) -> None:
        """Admit a voter's new state directory once the old one can act no more.

        Only if it answers us: the directory may say "up" of a disk that is away, while the old one is here and counts.
        """
        known = self.directory.voters.get(node.name)
        if not self.roll.answered_lately((node.name, node.incarnation), self.turn.now):
            return
        if known is None or known == node.state_id or self.directory.is_retired(node.state_id):
            return
        if all(state_id != known for _, state_id in node.former):
            self.order(VoterReplaced(node.name, node.state_id))

    def forget(self, node_id: NodeId) -> None:
        """This incarnation is gone; it is called no more, and what was said against it does not count any more."""
        self.roll.dismiss(node_id, self.turn.now)
        self._suspicions.clear(node_id)
        self._goodbyes.discard(node_id)


def too_old(name: str, incarnation: int, node: Node) -> Unwelcome:
    """Two processes use one name, or a clock was set back; in the second case the node picks a higher incarnation."""
    reason = f"incarnation {incarnation} of {name} is older than {node.incarnation}, which is {node.status}"
    parameter = "" if node.status == UP else "incarnation"
    return Unwelcome(reason, parameter, str(node.incarnation), str(incarnation))


def difference(here: str, ours: dict[str, str], there: str, theirs: dict[str, str]) -> Unwelcome | None:
    """Every essential parameter that differs between two nodes, in both values, or None (MSG-13).

    Whoever has made three mistakes need not start three times. What the other one sent is quoted, so not without end.
    """
    differing = [key for key in sorted(ours | theirs) if ours.get(key) != theirs.get(key)]
    if not differing:
        return None
    lines = [
        (_cut(key), _cut(ours.get(key, "not set")), _cut(theirs.get(key, "not set")))
        for key in differing[:DIFFERENCES_SHOWN_MAX]
    ]
    reason = "; ".join(f"parameter {key} is {other} on {there} and {mine} on {here}" for key, mine, other in lines)
    if len(differing) > len(lines):
        reason += f"; and {len(differing) - len(lines)} more"
    return Unwelcome(reason, *lines[0], tuple(key for key, _, _ in lines))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…"
