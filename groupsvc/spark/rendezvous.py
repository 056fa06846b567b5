"""Who listens where: what distributed training asks first.

Every task binds a port and tells the others in one all-gather; the lowest rank is the one that they all connect to:

    listener = socket.create_server(("", 0))
    where = task.rendezvous(listener.getsockname()[1])
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = where.leader.rsplit(":", 1)
"""

from __future__ import annotations

import socket

import attrs


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


def own_host() -> str:
    """An address of this machine that others can use, if its name says one; else loopback, where all are on it."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
