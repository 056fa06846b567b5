"""Which nodes this one is connected to, and why.

A node talks to the voters, because one of them is the name server; the name server to everybody; and the members of
a group to one another. Nobody else: groups are independent, and a domain of a thousand nodes has no all-to-all
traffic (GS-02). Each reason is an *owner* with the nodes it needs. A link stays as long as anybody owns it, and
multicasts are heard over it if any owner listens. A link that nobody owns any more is kept for a little while: the
last words are still on their way, and who left a group often comes back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from .effects import Connect, Disconnect
from .turn import Turn

LINGER_S = 5.0
"""How long a link outlives its last owner."""

VOTERS = -1
OFFICE = -2
ANSWERS = -3
SURVEYS = -4
"""Owners beside the groups, which own by their id."""


def outside(group: int) -> int:
    """The owner of links to the servers of a group that this node only submits to."""
    return -10 - group


@attrs.frozen
class _Link:
    address: str
    listen: bool


class Links:
    """The links of one node."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._needed: dict[int, tuple[dict[str, str], bool]] = {}
        self._owners: dict[str, set[int]] = {}
        self._present: dict[str, _Link] = {}
        self._unowned: dict[str, float] = {}  # since when, the oldest first

    def need(self, owner: int, addresses: Mapping[str, str], *, listen: bool) -> None:
        """From now on ``owner`` needs exactly these nodes, at these addresses."""
        before = self._needed.get(owner, ({}, False))
        wanted = {name: address for name, address in addresses.items() if address and name != self.turn.node}
        if before == (wanted, listen):
            return
        self._needed[owner] = (wanted, listen)
        for name in sorted(before[0].keys() - wanted.keys()):
            self._owners[name].discard(owner)
            self._settle(name)
        for name in wanted:
            self._owners.setdefault(name, set()).add(owner)
            self._settle(name, wanted[name])

    def need_too(self, owner: int, name: str, address: str) -> None:
        """``owner`` needs one node more, or at another address; what that costs does not grow with all it needs."""
        addresses, listen = self._needed.get(owner, ({}, False))
        if name == self.turn.node or not address or addresses.get(name) == address:
            return
        addresses[name] = address
        self._needed[owner] = (addresses, listen)
        self._owners.setdefault(name, set()).add(owner)
        self._settle(name, address)

    def forget(self, owner: int) -> None:
        """``owner`` needs nobody any more."""
        if owner in self._needed:
            self.need(owner, {}, listen=False)
            del self._needed[owner]

    def _settle(self, name: str, address: str = "") -> None:
        owners = self._owners[name]
        if not owners:
            del self._owners[name]
            self._unowned[name] = self.turn.now
            return
        self._unowned.pop(name, None)
        present = self._present.get(name)
        address = address or (present.address if present is not None else "")
        link = _Link(address, any(self._needed[owner][1] for owner in owners))
        if link != present:
            self._present[name] = link
            self.turn.effects.append(Connect(name, link.address, link.listen))

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When the next link has outlived its owners."""
        for since in self._unowned.values():
            return since + LINGER_S
        return math.inf

    def tick(self) -> None:
        """Drop the links that nobody has owned for a while."""
        for name, since in list(self._unowned.items()):
            if self.turn.now < since + LINGER_S:
                return
            del self._unowned[name], self._present[name]
            self.turn.effects.append(Disconnect(name))
