"""Early suspicion: nothing listens at a node's address any more.

A refused connection proves that the process is gone, but one observer may be wrong about the address or the
network. So a node is declared down early only if the name server and one other node that is up are both
refused, within a short time; with nobody else to ask, the name server's own refusal is enough.
"""

from __future__ import annotations

from ..views import NodeId


class Suspicions:
    """Refusals the name server has heard of lately, per incarnation: a restarted node begins with none."""

    def __init__(self, within: float) -> None:
        self._within = within
        self._here: dict[NodeId, float] = {}
        self._elsewhere: dict[NodeId, dict[str, float]] = {}

    def refused_here(self, node: NodeId, now: float) -> None:
        """The name server itself was refused."""
        self._here[node] = now

    def refused_at(self, node: NodeId, observer: str, now: float) -> None:
        """Another node was refused."""
        self._elsewhere.setdefault(node, {})[observer] = now

    def clear(self, node: NodeId) -> None:
        """The node has been heard from, or is gone."""
        self._here.pop(node, None)
        self._elsewhere.pop(node, None)

    def is_refused_here(self, node: NodeId, now: float) -> bool:
        """Whether the name server itself was refused lately."""
        return node in self._here and now - self._here[node] <= self._within

    def confirmed(self, node: NodeId, others_up: list[str], now: float) -> bool:
        """Whether enough observers agree; ``others_up`` are the nodes besides the name server that are up."""
        if not self.is_refused_here(node, now):
            return False
        observers = [name for name in others_up if name != node[0]]
        heard = self._elsewhere.get(node, {})
        return not observers or any(name in heard and now - heard[name] <= self._within for name in observers)
