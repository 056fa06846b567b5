"""Wires: a network namespace for each node, and one with the switch that they all hang on.

Everything is named ``gsf-PID-…`` after the process that made it, so whatever a run that was killed has left behind can
be told from what another run uses at this moment: ``sweep`` removes what belongs to nobody. Addresses are inside the
namespaces, so runs side by side do not meet.

What is cut is written as a rule of the *receiver*: it does not take what comes from some address. So every direction of
every pair can be cut by itself, nobody is told, and connections that were there are there again when the rule goes.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

PREFIX = "gsf"
_ours = re.compile(rf"{PREFIX}-(?P<pid>\d+)-\w+")

TABLE = """
table inet faults {
    chain input {
        type filter hook input priority 0; policy accept;
    }
    chain output {
        type filter hook output priority 0; policy accept;
    }
}
"""


class Missing(Exception):
    """Something that this machine lacks, by name."""


def need(*tools: str) -> None:
    """Raise ``Missing`` with the first of these programs that is not here."""
    for tool in tools:
        if shutil.which(tool) is None:
            raise Missing(f"there is no {tool} here")


def need_root() -> None:
    """Raise ``Missing`` for who may not make namespaces."""
    if os.geteuid() != 0:
        raise Missing("this needs root")


def _do(*command: str, text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{' '.join(command[:6])} … cannot be done here: {done.stderr.strip()}")
    return done.stdout


class Wires:
    """The namespaces of these nodes; a context manager."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self.addresses = {name: f"10.77.0.{number}" for number, name in enumerate(self.names, start=1)}
        self._prefix = f"{PREFIX}-{os.getpid()}"

    def __enter__(self) -> Self:
        need_root()
        need("ip", "nft", "nsenter")
        sweep()
        try:
            self._make()
        except BaseException:
            self._end()
            raise
        return self

    def _make(self) -> None:
        hub = self.space("hub")
        _do("ip", "netns", "add", hub)
        _do("ip", "-n", hub, "link", "add", "switch", "type", "bridge")
        _do("ip", "-n", hub, "link", "set", "switch", "up")
        for name in self.names:
            space = self.space(name)
            _do("ip", "netns", "add", space)
            _do("ip", "-n", hub, "link", "add", name, "type", "veth", "peer", "name", "wire", "netns", space)
            _do("ip", "-n", hub, "link", "set", name, "master", "switch", "up")
            _do("ip", "-n", space, "link", "set", "lo", "up")
            _do("ip", "-n", space, "addr", "add", f"{self.addresses[name]}/24", "dev", "wire")
            _do("ip", "-n", space, "link", "set", "wire", "up")
            self.rules(name, TABLE)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for name in (*self.names, "hub"):
            _remove(self.space(name))

    # --- For those who run there ---

    def space(self, name: str) -> str:
        """The namespace of a node."""
        return f"{self._prefix}-{name}"

    def inside(self, name: str) -> list[str]:
        """What starts something in the network of this node, as the process that it is."""
        return ["nsenter", f"--net=/run/netns/{self.space(name)}"]

    # --- For those who cut ---

    def rules(self, name: str, text: str) -> None:
        """Give the filter of this node these rules."""
        _do(*self.inside(name), "nft", "-f", "-", text=text)

    def cut(self, blocked: Mapping[str, Iterable[str]], verdict: str = "drop") -> None:
        """By receiver: from whom it takes nothing any more. What was cut before stays cut."""
        for receiver, senders in blocked.items():
            addresses = ", ".join(self.addresses[sender] for sender in senders if sender != receiver)
            if addresses:
                self.rules(receiver, f"add rule inet faults input ip saddr {{ {addresses} }} {verdict}\n")

    def part(self, *sides: Iterable[str]) -> None:
        """Those of different sides do not hear one another."""
        of = {name: set(side) for side in map(tuple, sides) for name in side}
        self.cut({name: [other for other in of if other not in side] for name, side in of.items()})

    def heal(self, names: Iterable[str] | None = None) -> None:
        """Take all rules away, of these nodes or of all, and put every wire back."""
        for name in self.names if names is None else names:
            self.rules(name, "flush chain inet faults input\nflush chain inet faults output\n")
            _do("ip", "-n", self.space("hub"), "link", "set", name, "up")

    def unplug(self, name: str) -> None:
        """Pull the wire of this node out of the switch."""
        _do("ip", "-n", self.space("hub"), "link", "set", name, "down")

    def plug_in(self, name: str) -> None:
        """As it was."""
        _do("ip", "-n", self.space("hub"), "link", "set", name, "up")


def sweep() -> list[str]:
    """Remove namespaces whose makers are no more, with whatever runs in them; which."""
    removed = []
    directory = Path("/run/netns")
    for path in sorted(directory.iterdir()) if directory.exists() else ():
        found = _ours.fullmatch(path.name)
        if found is not None and int(found["pid"]) != os.getpid() and not _is_a_run(int(found["pid"])):
            _remove(path.name)
            removed.append(path.name)
    return removed


def _is_a_run(pid: int) -> bool:
    """Whether this process may be one that uses namespaces: a number may have gone to somebody else."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"faults" in words or b"pytest" in words


def _remove(space: str) -> None:
    if not Path(f"/run/netns/{space}").exists():
        return
    done = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True, check=False)
    for pid in done.stdout.split():
        with contextlib.suppress(OSError, ValueError):
            if int(pid) != os.getpid():
                os.kill(int(pid), 9)
    done = subprocess.run(["ip", "netns", "del", space], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{space} is left behind: {done.stderr.strip()}", file=sys.stderr)
