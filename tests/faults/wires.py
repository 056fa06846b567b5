"""Wires: a network namespace for each node, and one with the switch that they all hang on.

Everything is named ``gsf-PID-…`` after the process that made it, so whatever a run that was killed has left behind can
be told from what another run uses at this moment: ``sweep`` removes what belongs to nobody. Addresses are inside the
namespaces, so runs side by side do not meet.

What is cut is written as a rule of the *receiver*: it does not take what comes from some address. So every direction of
every pair can be cut by itself, nobody is told, and connections that were there are there again when the rule goes.

Whether what is cut is really cut is seen by probes in each namespace (``probes.py``): ``silent`` is what they should
not hear, ``problem`` says what they hear in spite of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from .probes import Pair, Probes

PREFIX = "gsf"
ALL_HEAR_S = 2.0
"""What is not cut is heard within this: after a wire was put back neighbours have to be found again."""

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
        self.probes = Probes(self.addresses, self.space)
        self._prefix = f"{PREFIX}-{os.getpid()}"
        self._cut: set[Pair] = set()
        self._unplugged: set[str] = set()

    def __enter__(self) -> Self:
        need_root()
        need("ip", "nft", "nsenter")
        sweep()
        try:
            self._make()
            self.probes.__enter__()
            self.probes.wait_until_all_hear()
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
        self.probes.close()
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
        for receiver, others in blocked.items():
            senders = list(others)
            if verdict == "drop":
                self._cut |= {(sender, receiver) for sender in senders if sender != receiver}
            addresses = ", ".join(self.addresses[sender] for sender in senders if sender != receiver)
            if addresses:
                self.rules(receiver, f"add rule inet faults input ip saddr {{ {addresses} }} {verdict}\n")

    def lose(self, name: str, percent: int) -> None:
        """So much of what comes to this node over its wire is lost."""
        self.rules(name, f"add rule inet faults input iif wire numgen random mod 100 < {percent} drop\n")

    def refuse(self, blocked: Mapping[str, Iterable[str]]) -> None:
        """By receiver: from whom it takes no connection, and answers with a reset what comes by one that is there.

        But resets, those it takes: where both sides refuse one another they would be dropped, nobody would be told, and
        it were a cut as any other.
        """
        self.cut(blocked, "tcp flags & rst == 0 reject with tcp reset")

    def part(self, *sides: Iterable[str]) -> None:
        """Those of different sides do not hear one another."""
        of = {name: set(side) for side in map(tuple, sides) for name in side}
        self.cut({name: [other for other in of if other not in side] for name, side in of.items()})

    def heal(self, names: Iterable[str] | None = None) -> None:
        """Take all rules away, of these nodes or of all, and put every wire back."""
        for name in self.names if names is None else names:
            self.rules(name, "flush chain inet faults input\nflush chain inet faults output\n")
            self._cut = {(sender, receiver) for sender, receiver in self._cut if receiver != name}
            self.plug_in(name)

    def unplug(self, name: str) -> None:
        """Pull the wire of this node out of the switch."""
        self._unplugged.add(name)
        self.link(name, "down")

    def plug_in(self, name: str) -> None:
        """As it was."""
        self._unplugged.discard(name)
        self.link(name, "up")

    def link(self, name: str, state: str) -> None:
        """The port of this node at the switch is up or down."""
        _do("ip", "-n", self.space("hub"), "link", "set", name, state)

    # --- For those who look ---

    @property
    def silent(self) -> frozenset[Pair]:
        """Who speaks, and whom nothing of it should reach."""
        unplugged = {pair for pair in self.probes.pairs if self._unplugged.intersection(pair)}
        return frozenset(self._cut | unplugged)

    def problem(self) -> str:
        """Who hears whom in spite of what was cut, or does not though nothing is between them; "" if all is as told.

        What is not cut may take its time to be heard.
        """
        silent = self.silent
        if through := silent & self.probes.heard():
            return f"what is cut is heard: {_in_words(through)}"
        missing, until = self.probes.pairs - silent, time.monotonic() + ALL_HEAR_S
        while missing := missing - self.probes.heard(missing):
            if time.monotonic() > until:
                return f"what is not cut is not heard: {_in_words(missing)}"
        return ""


def _in_words(pairs: Iterable[Pair]) -> str:
    return ", ".join(f"{speaker} by {hearer}" for speaker, hearer in sorted(pairs))


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
