"""A network for each of three servers on one machine, so that they can have addresses of their own and be cut off.

Each server lives in a network namespace, and all hang on one bridge. That takes root. What is left of a bench that was
killed is taken away by the next one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

PREFIX, LETTERS = "gsb", "abc"
NETWORK = "10.231.77"
MTU = "9000"
CLONE_NEWNET = 0x40000000


class Namespaces:
    """A bridge with a network namespace for each server, named by this process."""

    def __init__(self) -> None:
        for left in _left_behind():
            _remove(left)
        bridge = f"{PREFIX}{os.getpid()}"
        self.names = [f"{bridge}{letter}" for letter in LETTERS]
        _ip("link", "add", bridge, "mtu", MTU, "type", "bridge")
        _ip("link", "set", bridge, "up")
        for number, name in enumerate(self.names):
            _ip("netns", "add", name)
            inside_end = ("peer", "name", "eth0", "mtu", MTU, "netns", name)
            _ip("link", "add", f"{name}v", "mtu", MTU, "type", "veth", *inside_end)
            _ip("link", "set", f"{name}v", "master", bridge, "up")
            _ip("-n", name, "address", "add", f"{address(number)}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")

    def cut(self, number: int) -> None:
        """Nothing comes to this server or goes out any more, and nobody is told."""
        _ip("link", "set", f"{self.names[number]}v", "down")

    def mend(self, number: int) -> None:
        """As before."""
        _ip("link", "set", f"{self.names[number]}v", "up")

    def close(self) -> None:
        """Take all of it away."""
        _remove(os.getpid())


def _left_behind() -> list[int]:
    """Of which processes that are no more, or of this one, a bridge is left."""
    links = subprocess.run(["ip", "-o", "link", "show", "type", "bridge"], capture_output=True, text=True, check=True)
    pids = map(int, re.findall(rf": {PREFIX}(\d+):", links.stdout))
    return [pid for pid in pids if pid == os.getpid() or not Path(f"/proc/{pid}").exists()]


def _remove(pid: int) -> None:
    """All that a process has made; a namespace lives on as long as somebody is in it, so its link goes first."""
    names = [f"{PREFIX}{pid}{letter}" for letter in LETTERS]
    for words in (
        *(("link", "delete", f"{name}v") for name in names),
        *(("netns", "delete", name) for name in names),
        ("link", "delete", f"{PREFIX}{pid}"),
    ):
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip(*words)


def address(number: int) -> str:
    """Of a server on the bridge."""
    return f"{NETWORK}.{number + 1}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextlib.contextmanager
def inside(space: str) -> Iterator[None]:
    """This thread is in the network namespace of a server meanwhile: only there its socket is seen."""
    with open("/proc/thread-self/ns/net") as before, open(f"/run/netns/{space}") as wanted:
        _enter(wanted.fileno())
        try:
            yield
        finally:
            _enter(before.fileno())


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "cannot enter a network namespace")
