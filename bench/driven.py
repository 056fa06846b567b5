"""A domain of real daemons with a driver inside each, and groups formed over them.

    with DrivenDomain(nodes=3) as domain:
        group = domain.form("bench", ["n2", "n1", "n3"], Load(senders=3))
        group.send()

The first of the nodes named forms the group and leads it; the others join one after the other and become servers, up
to three of them.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import LocalNode, environment
from groupsvcd.core.views import AttributeValue

from .driver import (
    Answer,
    AnyAnswer,
    Command,
    GroupLook,
    Hold,
    Join,
    Joined,
    Look,
    Looked,
    Send,
    Tell,
    Told,
)
from .load import Load

ANSWER_WAIT_S = 20.0
SERVERS = 3

A = TypeVar("A", bound=Answer)


class NoAnswer(TimeoutError):
    """A driver did not say what was waited for; the text has the last words of its daemon."""


class DrivenNode(LocalNode):
    """One daemon with a driver inside."""

    profile_directory: str | None = None
    """Where the daemons leave what cProfile found, if anywhere."""

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "bench.driver", "--config", str(self.config_file)]
        if self.profile_directory is not None:
            command += ["--profile", f"{self.profile_directory}/{self.name}.prof"]
        return command

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        self._heard: list[AnyAnswer] = []
        self._unread = b""
        self._decode = msgspec.json.Decoder(AnyAnswer).decode
        return subprocess.Popen(
            self._command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(),
            start_new_session=True,
        )

    def tell(self, command: Command) -> None:
        """Say something to the driver."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(command) + b"\n")
        process.stdin.flush()

    def answer(self, kind: type[A], timeout: float = ANSWER_WAIT_S) -> A:
        """The next thing of this kind that the driver says; what else it says is kept for later."""
        until = time.monotonic() + timeout
        while True:
            for position, heard in enumerate(self._heard):
                if isinstance(heard, kind):
                    del self._heard[position]
                    return heard
            self._hear(kind, until)

    def _hear(self, kind: type[Answer], until: float) -> None:
        process = self._running()
        assert process.stdout is not None
        fd = process.stdout.fileno()
        if not select.select([fd], [], [], max(0.0, until - time.monotonic()))[0]:
            raise NoAnswer(f"{self.name} does not say {kind.__name__}; its last words:\n{self.last_lines()}")
        found = os.read(fd, 1 << 20)
        if not found:
            raise NoAnswer(f"{self.name} has ended; its last words:\n{self.last_lines(40)}")
        *lines, self._unread = (self._unread + found).split(b"\n")
        self._heard += map(self._decode, lines)

    def look(self) -> Looked:
        """How things stand there."""
        self.tell(Look())
        return self.answer(Looked)

    def _end(self, number: signal.Signals) -> None:
        process = self._process
        super()._end(number)
        for pipe in (process.stdin, process.stdout) if process is not None else ():
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class DrivenDomain(LocalDomain):
    """Real daemons with drivers inside."""

    node_class = DrivenNode

    def driver(self, name: str) -> DrivenNode:
        """The driver in the daemon of ``name``."""
        node = self._node(name)
        assert isinstance(node, DrivenNode)
        return node

    def form(
        self,
        name: str,
        nodes: Sequence[str],
        load: Load,
        *,
        record: bool = False,
        attributes: dict[str, AttributeValue] | None = None,
    ) -> Gathering:
        """A group over these nodes, led by the first of them, once all is settled."""
        for number, node in enumerate(nodes):
            self.driver(node).tell(Join(name, number, load, record=record, attributes=attributes or {}))
            self.driver(node).answer(Joined)
        gathering = Gathering(self, name, tuple(nodes), load)
        self.wait_until(gathering.is_settled, f"{name} has its servers")
        return gathering


class Gathering:
    """One group over several daemons, and their drivers."""

    def __init__(self, domain: DrivenDomain, name: str, nodes: tuple[str, ...], load: Load) -> None:
        self.domain = domain
        self.name = name
        self.nodes = nodes
        self.load = load

    def looks(self) -> list[GroupLook | None]:
        """The group as each node sees it."""
        found = []
        for node in self.nodes:
            groups = self.domain.driver(node).look().groups
            found.append(next((group for group in groups if group.name == self.name), None))
        return found

    def is_settled(self) -> bool:
        """Whether all are members and there are as many servers as there can be."""
        return all(
            look is not None
            and set(look.members) == set(self.nodes)
            and len(look.servers) == min(SERVERS, len(self.nodes))
            and look.leader == self.nodes[0]
            for look in self.looks()
        )

    def is_drained(self) -> bool:
        """Whether everything that was sent is delivered everywhere."""
        looks = self.looks()
        return all(
            look is not None and look.outstanding == 0 and looks[0] is not None and look.delivered == looks[0].delivered
            for look in looks
        )

    def send(self, *nodes: str) -> float:
        """Let these nodes send (default: whom the load names); when that was."""
        senders = nodes or [node for number, node in enumerate(self.nodes) if self.load.sends(number)]
        began = time.monotonic()
        for node in senders:
            self.domain.driver(node).tell(Send(self.name))
        return began

    def end(self, timeout: float = ANSWER_WAIT_S) -> None:
        """Let nobody send any more, and wait until everything is delivered everywhere."""
        for node in self.nodes:
            self.domain.driver(node).tell(Hold(self.name))
        self.domain.wait_until(self.is_drained, f"everything in {self.name} is delivered", timeout=timeout)

    def told(self) -> list[Told]:
        """What each node noted."""
        found = []
        for node in self.nodes:
            self.domain.driver(node).tell(Tell(self.name, str(self._order_file(node))))
            found.append(self.domain.driver(node).answer(Told))
        return found

    def orders(self, told: Sequence[Told]) -> list[array[int]]:
        """The recorded orders, each from the first entry that all have."""
        first = max(each.first_seq for each in told)
        found = []
        for node, each in zip(self.nodes, told, strict=True):
            order = array("Q")
            order.frombytes(self._order_file(node).read_bytes())
            found.append(order[first - each.first_seq :])
        return found

    def _order_file(self, node: str) -> Path:
        return self.domain.directory / f"{node}.{self.name}.order"

    def without(self, node: str) -> Gathering:
        """The same group without one of its nodes."""
        return Gathering(self.domain, self.name, tuple(each for each in self.nodes if each != node), self.load)
