"""Who says something: this node to the others, and the others to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from groupsvc.wire import versions


class Identity:
    """This node, as every frame it sends says. Changes when it joins a domain or gets a new incarnation."""

    def __init__(self, incarnation: int, domain: bytes) -> None:
        self.incarnation = incarnation
        self.newest_incarnation = incarnation  # written, or being written; used once it is safe
        self.domain = domain


class Sender(NamedTuple):
    """Another node, or ourselves, as a frame's header says."""

    name: str
    incarnation: int
    domain: bytes
    wire: int = versions.OWN  # which wire versions it writes and reads


Handler = Callable[[Sender, Any], None]
"""What is done about one kind of message."""
