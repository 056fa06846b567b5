"""Telling systemd how the daemon is: one datagram at a time, and never waiting for it.

A is started by systemd (``Type=notify``). Until A is in the domain and serves it, A is *activating*: whoever is ordered
after it waits, and whoever looks (``systemctl status``) reads in words what A waits for. The first start of a domain
may have to wait for other machines, so A asks for more time again and again, as long as it runs well itself. Then A is
ready, and stays so: a node that is suspended for a while says so in its status, and needs no restart.

The watchdog is fed by the loop that does the work, at the end of a round, and by nothing else. A thread or a timer that
feeds it would prove that a thread runs. If a round never ends, systemd ends the daemon and starts it anew.

The protocol is a few lines of text to the datagram socket in ``$NOTIFY_SOCKET`` (see sd_notify(3)), so it is written
out here. A datagram that does not fit into the queue of the other side is given up at once, and said again in the next
round. Without the variable nothing is said, and nothing costs anything.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, MutableMapping
from typing import NamedTuple

ADDRESS_VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLES = ("WATCHDOG_USEC", "WATCHDOG_PID")

LOOK_EVERY_S = 1.0
"""How often the daemon is asked how it is; what changes in between is told so much later."""

EXTEND_EVERY_S = 10.0
EXTEND_S = 30.0
"""While it waits for other nodes it asks for so much time, so often: two of three may get lost."""

STATUS_CHARS_MAX = 500
"""Of the words for people."""


class Condition(NamedTuple):
    """How a daemon is: whether it serves, and in words."""

    serves: bool
    words: str


class NotifySocket:
    """The socket of whoever supervises us; an address that begins with ``@`` is in the abstract name space."""

    def __init__(self, address: str) -> None:
        self._path = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)

    def say(self, *lines: str) -> bool:
        """One datagram; False if it could not be left there, for whatever reason."""
        try:
            self._socket.sendto("\n".join(lines).encode(), self._path)
        except OSError:  # full, gone, or not allowed: nothing that a daemon should stumble over
            return False
        return True

    def close(self) -> None:
        """Nothing more is said."""
        self._socket.close()


class Supervision:
    """What systemd is told, and when. ``attend`` is called after a round of the reactor, when ``due`` has come."""

    def __init__(
        self,
        to: NotifySocket,
        condition: Callable[[], Condition],
        *,
        clock: Callable[[], float],
        watchdog_s: float = math.inf,
    ) -> None:
        self.due = -math.inf
        self._to = to
        self._condition = condition
        self._clock = clock
        self._feed_every_s = watchdog_s / 2
        self._feed_at = clock() if math.isfinite(watchdog_s) else math.inf
        self._extend_at = -math.inf
        self._is_ready = False
        self._words = ""

    def attend(self) -> None:
        """A round has ended: say what is new, and that we are alive."""
        now = self._clock()
        condition = self._condition()
        words = " ".join(condition.words.split())[:STATUS_CHARS_MAX]  # a line of its own would be another word of ours
        becomes_ready = condition.serves and not self._is_ready
        feeds = now >= self._feed_at
        extends = not (condition.serves or self._is_ready) and now >= self._extend_at
        lines = [f"STATUS={words}"] if words != self._words else []
        if becomes_ready:
            lines.append("READY=1")
        if feeds:
            lines.append("WATCHDOG=1")
        if extends:
            lines.append(f"EXTEND_TIMEOUT_USEC={EXTEND_S * 1e6:.0f}")
        if lines and self._to.say(*lines):
            self._words = words
            self._is_ready = self._is_ready or becomes_ready
            if feeds:
                self._feed_at = now + self._feed_every_s
            if extends:
                self._extend_at = now + EXTEND_EVERY_S
        self.due = min(now + LOOK_EVERY_S, max(self._feed_at, now + self._feed_every_s / 4))

    def reloading(self) -> None:
        """The configuration is being read again; ``reloaded`` follows. Nothing to say before we are ready."""
        if self._is_ready:
            self._to.say("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1_000}")

    def reloaded(self) -> None:
        """It was read; if that cannot be said now, the next round says it."""
        if self._is_ready:
            self._is_ready = self._to.say("READY=1")

    def stopping(self, words: str) -> None:
        """The daemon ends, on purpose: from here on systemd gives it the time for a stop."""
        self._to.say("STOPPING=1", f"STATUS={words}")


def supervision(
    environment: MutableMapping[str, str], pid: int, condition: Callable[[], Condition], clock: Callable[[], float]
) -> Supervision | None:
    """What ``environment`` asks for, which is taken out of it: processes that we start are not supervised."""
    address = environment.pop(ADDRESS_VARIABLE, "")
    usec, meant = (environment.pop(name, "") for name in WATCHDOG_VARIABLES)
    if not address.startswith(("/", "@")):
        return None
    is_fed = usec.isdecimal() and int(usec) > 0 and meant in ("", str(pid))
    return Supervision(
        NotifySocket(address), condition, clock=clock, watchdog_s=int(usec) / 1e6 if is_fed else math.inf
    )
