"""A session by raw messages: what is said, what comes back, and when; no library in between.

    with RawSession(domain.address("n1")) as session:
        session.join("db")
        session.until(lambda: session.notices(Joined), "it has joined")

Run as a program it joins a group, says so, and then waits to be killed:

    python -m tests.interop.raw_session ADDRESS GROUP
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import zmq

from groupsvc.wire import frames
from groupsvc.wire.client_messages import (
    NOT_COUNTED,
    REPLY_CODEC,
    REQUEST_CODEC,
    AnyClientReply,
    ClientRequest,
    Hello,
    JoinAsk,
    JoinedAs,
    MessagesCame,
    OpenSession,
    Problem,
    ResumeSession,
    SessionAlive,
    SessionIs,
    Told,
    Welcome,
)
from groupsvc.wire.kinds import FrameKind
from groupsvc.wire.limits import SESSION_ALIVE_S
from groupsvc.wire.notices import AttributeValue, Notice

N = TypeVar("N", bound=Notice)
R = TypeVar("R", bound=AnyClientReply)


class RawSession:
    """One session on one connection at a time."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.told: list[AnyClientReply] = []
        self.when: list[float] = []
        self.not_counted: list[AnyClientReply] = []
        self.session: SessionIs | None = None
        self.member = 0
        self._ids = itertools.count(1)
        self._alive_at = 0.0
        self._connect()
        self.say(OpenSession, "raw")
        self.until(lambda: self.session is not None, "the session is open")

    def _connect(self) -> None:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(self.address)
        self.say(Hello, 1, 1, "raw")
        self.until(lambda: any(isinstance(one, Welcome) for one in self.not_counted), "the daemon says welcome")

    def resume(self) -> None:
        """Break the connection, and go on on another one."""
        assert self.session is not None
        before, self.session = self.session, None
        self._socket.close(linger=0)
        self.not_counted.clear()
        self._connect()
        self.say(ResumeSession, before.session, before.secret, len(self.told))
        self.until(lambda: self.session is not None, "the session is resumed")

    def say(self, kind: type[ClientRequest], *arguments: Any) -> int:
        """A request; its number."""
        number = next(self._ids)
        body = REQUEST_CODEC.encode([kind(number, *arguments)])  # type: ignore[list-item]
        self._socket.send(frames.pack(FrameKind.CLIENT_REQUEST, bytes(16), b"client", os.getpid(), body))
        return number

    def join(self, group: str, **attributes: AttributeValue) -> JoinedAs:
        """Become a provider."""
        number = self.say(JoinAsk, group, "", b"", attributes, None, 10.0)
        joined = self.answer(number)
        assert isinstance(joined, JoinedAs), joined
        self.member = joined.member
        return joined

    def answer(self, number: int) -> AnyClientReply:
        """Wait for the reply to this request."""
        self.until(lambda: self._answers(number), f"request {number} is answered")
        return self._answers(number)[0]

    def _answers(self, number: int) -> list[AnyClientReply]:
        return [one for one in self.told if getattr(one, "id", None) == number]

    def until(self, condition: Callable[[], Any], what: str, timeout: float = 15.0) -> None:
        """Read what comes until this is so."""
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, f"not within {timeout} s: {what}; {self.not_counted}"
            self.read(0.02)

    def read(self, seconds: float) -> None:
        """What has come, or comes within this time; and say that we are alive."""
        now = time.monotonic()
        if self.session is not None and now > self._alive_at + SESSION_ALIVE_S:
            self._alive_at = now
            self.say(SessionAlive, len(self.told), True)
        if not self._socket.poll(int(seconds * 1000)):
            return
        for reply in REPLY_CODEC.decode(frames.unpack(self._socket.recv()).body):
            if isinstance(reply, SessionIs):
                self.session = reply
            if isinstance(reply, NOT_COUNTED) or (isinstance(reply, Problem) and self.session is None):
                self.not_counted.append(reply)
            else:
                self.told.append(reply)
                self.when.append(time.monotonic())

    def notices(self, kind: type[N]) -> list[N]:
        """What it was told of one kind, by its newest member."""
        told = [one for one in self.told if isinstance(one, Told) and one.member == self.member]
        return [one.notice for one in told if isinstance(one.notice, kind)]

    def told_at(self, kind: type[Notice]) -> float:
        """When it was first told of this kind."""
        return next(
            when for one, when in zip(self.told, self.when, strict=True)
            if isinstance(one, Told) and isinstance(one.notice, kind)
        )  # fmt: skip

    @property
    def payloads(self) -> list[bytes]:
        """Plain messages."""
        return [payload for one in self.told if isinstance(one, MessagesCame) for payload in one.payloads]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close(linger=0)


def main() -> None:
    """Join, say so, and wait for the end."""
    address, group = sys.argv[1:]
    with RawSession(address) as session:
        session.join(group)
        print("joined", flush=True)
        session.until(lambda: False, "it is killed", timeout=60)


if __name__ == "__main__":
    main()
