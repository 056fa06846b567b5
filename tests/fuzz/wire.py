"""Frames and the messages in them, as daemons and programs read them.

Frames are tried twice, once as they are and once with length and checksum made right, because no fuzzer guesses a
checksum.
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32

from groupsvc.errors import PeerProtocolError
from groupsvc.wire import client_messages, frames
from groupsvc.wire.codec import Codec
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core import peer_messages, views
from groupsvcd.core.stream.entries import Run
from groupsvcd.io.backlog import requests_in
from tests.fuzz.family import Family


def read_frame(data: bytes) -> None:
    """``problem_with`` and ``unpack`` agree, and what is taken is packed to the same bytes, but for another version."""
    problem = frames.problem_with(data)
    try:
        frame = frames.unpack(data)
    except PeerProtocolError as refusal:
        reason = str(refusal)
        assert problem == reason, "unpack and problem_with give different reasons"
        return
    assert problem is None, "unpack takes what problem_with refuses"
    again = frames.pack(frame.kind, frame.domain, frame.sender.encode(), frame.incarnation, frame.body)
    if frame.wire == frames.unpack(again).wire:
        assert again == data
    else:  # of a daemon of another version that is understood: we write our own, and all else is the same
        assert (again[:4], again[5:7], again[12:]) == (data[:4], data[5:7], data[12:])
    if frame.kind is FrameKind.PEER:
        read_body(peer_messages.PEER_CODEC, frame.body)


def read_repaired_frame(data: bytes) -> None:
    """The same for a frame whose length and checksum are right."""
    if len(data) >= frames.HEADER_BYTES:
        body_bytes = max(0, len(data) - frames.HEADER_BYTES - data[6])
        data = data[:12] + struct.pack("!I", body_bytes) + data[16:]
        data = data[:8] + struct.pack("!I", crc32(data[12:], crc32(data[:8]))) + data[12:]
    read_frame(data)


def read_body(codec: Codec[Any], data: bytes) -> None:
    """A body is refused, or its messages survive a round trip."""
    try:
        messages = codec.decode(data)
    except PeerProtocolError:
        return
    once = codec.encode(messages)
    assert codec.encode(codec.decode(once)) == once


def read_requests(data: bytes) -> None:
    """As any body; and there are no more than its first bytes say."""
    read_body(client_messages.REQUEST_CODEC, data)
    try:
        messages = client_messages.REQUEST_CODEC.decode(data)
    except PeerProtocolError:
        return
    assert len(messages) <= requests_in(data)


RUN = Run("n1", 7, 1, (b"two", b"three"))
VIEW = views.View(epoch=2, leader="n1", servers=(("n1", 7), ("n2", "disk")), k=2, base=1)
PEER = peer_messages.PEER_CODEC.encode(
    [
        peer_messages.Order(stream=0, epoch=3, first_seq=9, entries=(b"one", RUN), stable=8),
        peer_messages.Tell(to=1, epoch=3, number=1, answer={"leader": "n1", "servers": ["n1", 2, 0.5, None, True]}),
        peer_messages.NodeList(
            epoch=3, have=0, version=4,
            nodes=(peer_messages.NodeEntry("n1", 7, "up", "tcp://127.0.0.1:5000", "id", True, 4),),
        ),
        peer_messages.Canvass(4, 0, False, 10, True, {"domain": "groupsvc"}),
        peer_messages.Grant(5, "group", {"durable": True, "replicas": 3, "hosts": ["n1"], "none": None}, VIEW, VIEW),
        peer_messages.Goodbye(),
    ]
)  # fmt: skip
REQUESTS = client_messages.REQUEST_CODEC.encode(
    [client_messages.Hello(1, 1, 1, "fuzz"), client_messages.ConfigSet(2, "key", "value", 0, 1.5)]
)
REPLIES = client_messages.REPLY_CODEC.encode(
    [client_messages.Problem(1, "failed", "code", "text"), client_messages.ConfigValue(2, "key", "value", 1)]
)
FRAME = frames.pack(FrameKind.PEER, bytes(range(16)), b"n1", 7, PEER)

WIRE = Family(
    name="wire",
    about="frames, and messages between daemons and between program and daemon",
    decoders=(
        "groupsvc.wire.codec:Codec",
        "groupsvc.wire.frames:unpack",
        "groupsvcd.io.backlog:requests_in",
        "groupsvc.wire.client_messages:REQUEST_CODEC",
        "groupsvc.wire.client_messages:REPLY_CODEC",
        "groupsvcd.core.peer_messages:PEER_CODEC",
    ),
    readers=(
        (read_frame, (FRAME,)),
        (read_repaired_frame, (FRAME,)),
        (lambda data: read_body(peer_messages.PEER_CODEC, data), (PEER,)),
        (read_requests, (REQUESTS,)),
        (lambda data: read_body(client_messages.REPLY_CODEC, data), (REPLIES,)),
    ),
)
