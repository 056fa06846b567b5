"""Ports of this machine for daemons under test, so that two test runs do not meet.

A daemon takes the port P for its peers and P + 1 for its multicasts. Asking the kernel for "any free port" and
giving it back is a race: the next outgoing connection of anybody may get it. So we take ports below the range
from which the kernel hands out its own, in blocks of three, and hold the third one bound as long as the block
is ours. Another run that tries the same block finds its third port taken and goes on.
"""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
PORTS_PER_BLOCK = 3
FIRST_PORT = 15_000
KERNEL_RANGE_FIRST = 32_768
"""Where the kernel's own range begins if it does not tell."""
TRIES_MAX = 500


class PortBlock:
    """Two neighbouring ports that nobody else on this machine takes while the block is open."""

    def __init__(self) -> None:
        blocks = range(FIRST_PORT, max(_kernel_range_first(), FIRST_PORT + 300) - PORTS_PER_BLOCK, PORTS_PER_BLOCK)
        choice = random.Random(os.urandom(8))
        for _ in range(TRIES_MAX):
            first = choice.choice(blocks)
            guard = _bound(first + 2)
            if guard is None:
                continue
            if _is_free(first) and _is_free(first + 1):
                self.port = first
                self._guard = guard
                return
            guard.close()
        raise OSError(f"no three neighbouring free ports on {LOOPBACK} in {TRIES_MAX} tries")

    @property
    def address(self) -> str:
        """The address of a daemon that uses this block."""
        return f"tcp://{LOOPBACK}:{self.port}"

    def close(self) -> None:
        """Let others have the ports."""
        self._guard.close()


def _bound(port: int) -> socket.socket | None:
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        taken.bind((LOOPBACK, port))
    except OSError:
        taken.close()
        return None
    return taken


def _is_free(port: int) -> bool:
    probe = _bound(port)
    if probe is None:
        return False
    probe.close()
    return True


def _kernel_range_first() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return KERNEL_RANGE_FIRST
