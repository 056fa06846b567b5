"""A daemon that says what the test wants: real sockets and frames, no protocol behind them.

    with ScriptedDaemon(lambda request: Done(request.id)) as daemon:
        DaemonConnection(daemon.address).hand_over("n2")

It greets by itself. The script gets every other request and returns a reply, bytes to be sent as they are,
or None for silence. ``say`` sends something unasked to whoever spoke last, ``cut`` breaks all connections. It is for
testing what the client side does with answers that a real daemon gives seldom or never.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import zmq

from ..wire import frames
from ..wire.client_messages import REPLY_CODEC, REQUEST_CODEC, AnyClientReply, AnyClientRequest, Hello, Welcome
from ..wire.kinds import FrameKind

Script = Callable[[AnyClientRequest], AnyClientReply | bytes | None]

_STOP = b"stop"
_CUT = b"cut"


class ScriptedDaemon:
    """Serves one ipc socket from a thread of its own; a context manager."""

    def __init__(self, script: Script, *, greets: bool = True) -> None:
        self.requests: list[AnyClientRequest] = []
        self._script = script
        self._greets = greets
        self._directory = tempfile.TemporaryDirectory(prefix="groupsvc-")
        self.address = f"ipc://{Path(self._directory.name) / 'client.sock'}"
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._router = self._bound()
        self._last_client = b""
        self._control = self._context.socket(zmq.PAIR)
        self._control.bind("inproc://control")
        self._thread = threading.Thread(target=self._serve, name="scripted-daemon", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the socket as a dying process would; may be called again."""
        if not self._control.closed:
            self._control.send(_STOP)
            self._thread.join()
            self._control.close(linger=0)
            self._context.term()
            self._directory.cleanup()

    def say(self, *replies: AnyClientReply) -> None:
        """Send these, as one frame, to whoever spoke last."""
        self._control.send(reply_frame(*replies))

    def cut(self) -> None:
        """Break every connection; new ones are taken. When it returns, none of the old ones answers any more."""
        self._control.send(_CUT)
        self._control.recv()

    def _bound(self) -> zmq.Socket[bytes]:
        router: zmq.Socket[bytes] = self._context.socket(zmq.ROUTER)
        router.setsockopt(zmq.LINGER, 0)
        router.bind(self.address)
        return router

    def _serve(self) -> None:
        control: zmq.Socket[bytes] = self._context.socket(zmq.PAIR)
        control.connect("inproc://control")
        poller = zmq.Poller()
        poller.register(control, zmq.POLLIN)
        poller.register(self._router, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if control in ready:  # first: what was said before a request is told before its answer
                order = control.recv()
                if order == _STOP:
                    break
                if order == _CUT:
                    poller.unregister(self._router)
                    self._router.close(linger=0)
                    self._router = self._bound()
                    poller.register(self._router, zmq.POLLIN)
                    control.send(_CUT)
                else:
                    self._router.send_multipart([self._last_client, order])
            elif self._router in ready:
                self._last_client, frame = self._router.recv_multipart()
                for request in REQUEST_CODEC.decode(frames.unpack(frame).body):
                    self._answer(self._last_client, request)
        control.close(linger=0)
        self._router.close(linger=0)

    def _answer(self, client: bytes, request: AnyClientRequest) -> None:
        if isinstance(request, Hello) and self._greets:
            reply: AnyClientReply | bytes | None = Welcome(request.id, request.version, "scripted", 1, "00" * 16)
        else:
            self.requests.append(request)
            reply = self._script(request)
        if reply is not None:
            self._router.send_multipart([client, reply if isinstance(reply, bytes) else reply_frame(reply)])


def reply_frame(*replies: AnyClientReply) -> bytes:
    """The frame a daemon would send with these replies."""
    body = REPLY_CODEC.encode(replies)
    return frames.pack(FrameKind.CLIENT_REPLY, bytes(frames.DOMAIN_ID_BYTES), b"scripted", 1, body)
