"""Probes: sockets of the harness in the network of each node, by which it sees whether a wire is as it was told to be.

A rule that drops nothing would give green runs for ever. So whoever cuts looks: B's probe says a word to A's, and A
must not have heard it; after that the daemons are left alone with the fault. A probe is three sockets that were made
inside a namespace and belong to it from then on, whichever thread uses them: nothing is started for a look, and it
takes some milliseconds.

That a word is not heard is only worth something if it would have been: so ``Probes`` is not made before each has heard
each, and a fault that strikes some is looked at from all.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

PORT = 6999
"""Of probes; daemons have others."""

HEARS_S = 0.05
"""A word takes less than a millisecond; on a busy machine whoever carries it may have to wait for a core."""

WARM_S = 5.0
"""Until each has heard each for the first time, at most."""

BATCH = 50
"""Words at a time: the buffer of a socket has room for some hundred."""

CLONE_NEWNET = 0x40000000

_word = struct.Struct("=QId")  # number, sender, and when it was said

T = TypeVar("T")

Pair = tuple[str, str]
"""Who speaks, and who should hear it."""


class Probes:
    """Those of all nodes; a context manager."""

    def __init__(self, addresses: Mapping[str, str], space: Callable[[str], str]) -> None:
        self._addresses, self._space = dict(addresses), space
        self._names = list(addresses)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._words: dict[str, socket.socket] = {}
        self._doors: dict[str, socket.socket] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for name, address in self._addresses.items():
                words, door = made_in(self._space(name), lambda: (
                    socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(),
                ))  # fmt: skip
                stack.enter_context(words).bind((address, PORT))
                stack.enter_context(door).bind((address, PORT))
                door.listen(64)
                words.setblocking(False)
                self._words[name], self._doors[name] = words, door
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the sockets back: a namespace lives as long as one of them."""
        self._stack.close()

    # --- Words ---

    @property
    def pairs(self) -> frozenset[Pair]:
        """All there are."""
        return frozenset(itertools.permutations(self._names, 2))

    def heard(self, pairs: Iterable[Pair] | None = None, *, within_s: float = HEARS_S) -> frozenset[Pair]:
        """Which of these (default: all) hear one word that is said now."""
        with self._lock:
            number, wanted = next(self._numbers), set(self.pairs if pairs is None else pairs)
            for speaker, hearer in wanted:
                self._say(number, speaker, hearer)
            found, until = set[Pair](), time.monotonic() + within_s
            while len(found) < len(wanted):
                for hearer in self._wait(until - time.monotonic()):
                    found |= {(speaker, hearer) for one, speaker, _ in self._taken(hearer) if one == number}
                if time.monotonic() >= until:
                    break
            return frozenset(found & wanted)

    def wait_until_all_hear(self) -> None:
        """Neighbours have to be found first; ``TimeoutError`` if somebody hears nothing."""
        until, missing = time.monotonic() + WARM_S, self.pairs
        while missing := missing - self.heard(missing):
            if time.monotonic() > until:
                raise TimeoutError(f"{len(missing)} do not hear one another before anything is cut: {sorted(missing)}")

    def lost(self, speaker: str, hearer: str, count: int) -> int:
        """How many of so many words are not heard."""
        with self._lock:
            number, heard = next(self._numbers), 0
            for left in range(count, 0, -BATCH):
                batch = min(BATCH, left)
                for _ in range(batch):
                    self._say(number, speaker, hearer)
                until, expected = time.monotonic() + HEARS_S / 5, heard + batch
                while heard < expected and self._wait(until - time.monotonic(), [hearer]):
                    heard += sum(one == number for one, _, _ in self._taken(hearer))
            return count - heard

    def late_s(self, speaker: str, hearer: str, *, count: int = 5, within_s: float = 1.0) -> list[float]:
        """How long words take that are said now; those that have come by then."""
        with self._lock:
            number, found, until = next(self._numbers), list[float](), time.monotonic() + within_s
            for _ in range(count):
                self._say(number, speaker, hearer)
            while len(found) < count and self._wait(until - time.monotonic(), [hearer]):
                found += [time.monotonic() - said for one, _, said in self._taken(hearer) if one == number]
            return found

    def _say(self, number: int, speaker: str, hearer: str) -> None:
        word = _word.pack(number, self._names.index(speaker), time.monotonic())
        with suppress(OSError):  # there is no way, and the kernel knows it
            self._words[speaker].sendto(word, (self._addresses[hearer], PORT))

    def _wait(self, seconds: float, hearers: Iterable[str] | None = None) -> list[str]:
        names = {self._words[name]: name for name in (self._words if hearers is None else hearers)}
        ready, _, _ = select.select(list(names), [], [], max(0.0, seconds))
        return [names[one] for one in ready]

    def _taken(self, hearer: str) -> list[tuple[int, str, float]]:
        """What is there for it."""
        found = []
        while True:
            try:
                number, speaker, said = _word.unpack(self._words[hearer].recv(_word.size))
            except OSError:
                return found
            found.append((number, self._names[speaker], said))

    # --- Connections ---

    def connection(self, caller: str, to: str, *, within_s: float = 1.0) -> tuple[socket.socket, socket.socket]:
        """Both ends of a new one; ``ConnectionRefusedError`` and the like where there is none."""
        calling: socket.socket = made_in(self._space(caller), socket.socket)
        try:
            calling.settimeout(within_s)
            calling.connect((self._addresses[to], PORT))
            self._doors[to].settimeout(within_s)
            called, _ = self._doors[to].accept()
        except BaseException:
            calling.close()
            raise
        called.settimeout(within_s)
        return calling, called

    def is_refused(self, caller: str, to: str) -> bool:
        """Whether a call is answered with a reset: not taken, and not left without an answer."""
        try:
            for end in self.connection(caller, to, within_s=0.5):
                end.close()
        except ConnectionError:
            return True
        except OSError:
            return False
        return False


def made_in(space: str, make: Callable[[], T]) -> T:
    """What this makes is made inside the network namespace of this name; by a thread, which ends with it."""
    found: list[T] = []
    problems: list[OSError] = []

    def go_and_make() -> None:
        place = os.open(Path("/run/netns") / space, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(place, CLONE_NEWNET):
                problems.append(OSError(ctypes.get_errno(), f"nobody may enter {space}"))
            else:
                found.append(make())
        except OSError as problem:
            problems.append(problem)
        finally:
            os.close(place)

    thread = threading.Thread(target=go_and_make)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
    return found[0]
