"""Who this node is to the others, in every frame it sends."""

from __future__ import annotations


class Identity:
    """Changes only when the node joins a domain or goes on under a new incarnation."""

    def __init__(self, incarnation: int, domain: bytes) -> None:
        self.incarnation = incarnation
        self.domain = domain
