"""Who listens where: what distributed training asks first.

Every task binds a port and tells the others in one all-gather; the lowest rank is the one that they all connect to:

    listener = socket.create_server(("", 0))
    where = task.rendezvous(listener.getsockname()[1])
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = where.leader.rsplit(":", 1)

*Which address of its own a machine tells* cannot be learned from its name: Debian writes 127.0.1.1 for that into
``/etc/hosts``. It is the one that its packets to the others would have, so the kernel is asked: a UDP socket is
"connected" to a machine outside, which sends nothing and chooses the address. Outside is the daemon or the driver, if
they are elsewhere, else whatever the default route leads to. Loopback is told by a machine that has nothing else; tasks
on several machines that tell it would each connect to themselves, and that is an error.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping

import attrs

from ..addresses import is_loopback
from ..errors import PeerProtocolError, UsageError

LOOPBACK = "127.0.0.1"

ELSEWHERE = ("192.0.2.1", "2001:db8::1")
"""Addresses for documentation (RFC 5737, RFC 3849), which nobody has: the way to them is the default route."""

ANY_PORT = 9
"""Nothing is sent there; but it must not be 0."""


@attrs.frozen
class Rendezvous:
    """Where the tasks listen, by rank, as "host:port"."""

    rank: int
    addresses: dict[int, str]

    @property
    def leader(self) -> str:
        """Where the task with the lowest rank listens."""
        return self.addresses[min(self.addresses)]

    @property
    def leads(self) -> bool:
        """Whether that is this task."""
        return self.rank == min(self.addresses)


@attrs.frozen
class Place:
    """Where one task listens, and the name of its machine."""

    host: str
    port: int
    machine: str

    def encoded(self) -> bytes:
        """For the others."""
        return f"{self.host}:{self.port} {self.machine}".encode()

    @classmethod
    def decoded(cls, told: bytes) -> Place:
        """What another one has told."""
        try:
            address, machine = told.decode().split(" ", 1)
            host, port = address.rsplit(":", 1)
            return cls(host, int(port), machine)
        except ValueError:
            raise PeerProtocolError("a task has brought something else to a rendezvous than where it listens") from None


def rendezvous_of(rank: int, places: Mapping[int, Place]) -> Rendezvous:
    """What all have told; ``UsageError`` if one of them is reached by nobody on another machine."""
    machines = sorted({place.machine for place in places.values()})
    inside = sorted(rank for rank, place in places.items() if is_loopback(place.host))
    if inside and len(machines) > 1:
        who = ", ".join(f"{rank} on {places[rank].machine} ({places[rank].host})" for rank in inside[:5])
        text = (
            f"tasks are on {len(machines)} machines, and these tell a loopback address, which leads to no other: {who}"
        )
        raise UsageError(
            text + (" and others" if len(inside) > 5 else ""),
            advice="say host=, an address of the machine that the others reach: task.rendezvous(port, host=...)",
        )
    return Rendezvous(rank, {rank: f"{place.host}:{place.port}" for rank, place in places.items()})


def own_host(*peers: str | None) -> str:
    """An address of this machine at which others reach it: the one towards the first peer that is not on it."""
    for peer in (*peers, *ELSEWHERE):
        found = None if peer is None else _own_address_towards(peer)
        if found is not None:
            return found
    with contextlib.suppress(OSError):  # no route leads out: perhaps the name knows more
        named = socket.gethostbyname(socket.gethostname())
        if not is_loopback(named):
            return named
    return LOOPBACK


def _own_address_towards(peer: str) -> str | None:
    try:
        ways = socket.getaddrinfo(peer, ANY_PORT, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    for family, kind, protocol, _, address in ways:
        with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as probe:
            probe.connect(address)
            own = str(probe.getsockname()[0])
            if not is_loopback(own) and "%" not in own:  # one with a zone means something on this machine only
                return own
    return None
