"""Garbage for everything that reads bytes of others: frames, the codecs, what is inside of messages, and files.

    python tests/fuzz/fuzz_wire.py -max_total_time=20

The arguments are libFuzzer's; a folder as the last one keeps the corpus between runs. The first byte of an
input chooses the reader, the rest is what it reads. Frames are tried twice, once as they are and once with
length and checksum made right, because no fuzzer guesses a checksum.

What must hold (X2): a reader answers or refuses, with ``PeerProtocolError`` (history: ``msgspec.DecodeError``)
and with nothing else; and what it has read, written and read again is the same. Sameness is judged by bytes, as a
NaN is not equal to itself. What stands inside of messages (entries, commands, checkpoints) comes from nodes, which
are believed; it is refused with the errors of msgspec.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import atheris

with atheris.instrument_imports(include=["groupsvc", "groupsvcd"]):
    import msgspec

    from groupsvc.errors import PeerProtocolError, UsageError
    from groupsvc.events import Message
    from groupsvc.keys import _parsed
    from groupsvc.spark.members import member_of
    from groupsvc.tables import Table
    from groupsvc.views import Provider
    from groupsvc.wire import client_messages, frames, history
    from groupsvc.wire.codec import Codec
    from groupsvc.wire.kinds import FrameKind
    from groupsvcd.core import peer_messages, views
    from groupsvcd.core.domain import commands as domain_commands
    from groupsvcd.core.groups import commands as group_commands
    from groupsvcd.core.groups import stored_group
    from groupsvcd.core.nodegroups import about, controls, roll
    from groupsvcd.core.stream import entries
    from groupsvcd.core.stream.entries import Run
    from groupsvcd.io.backlog import requests_in

INPUT_BYTES_MAX = 4096


def read_frame(data: bytes) -> None:
    """``problem_with`` and ``unpack`` agree, and a frame that is taken is packed to the same bytes."""
    problem = frames.problem_with(data)
    try:
        frame = frames.unpack(data)
    except PeerProtocolError as refusal:
        reason = str(refusal)
        assert problem == reason, "unpack and problem_with give different reasons"
        return
    assert problem is None, "unpack takes what problem_with refuses"
    again = frames.pack(frame.kind, frame.domain, frame.sender.encode(), frame.incarnation, frame.body)
    assert again == data
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


def read_line(data: bytes) -> None:
    """A line is refused, or its event survives a round trip."""
    try:
        event = history.from_line(data)
    except msgspec.DecodeError:
        return
    once = history.to_line(event)
    assert history.to_line(history.from_line(once)) == once


def read_requests(data: bytes) -> None:
    """As any body; and there are no more than its first bytes say."""
    read_body(client_messages.REQUEST_CODEC, data)
    try:
        messages = client_messages.REQUEST_CODEC.decode(data)
    except PeerProtocolError:
        return
    assert len(messages) <= requests_in(data)


def read_inside(decode: Callable[[bytes], Any]) -> Callable[[bytes], None]:
    """What is inside of messages is refused by msgspec, or survives a round trip."""

    def read(data: bytes) -> None:
        try:
            found = decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        once = msgspec.msgpack.encode(found)
        if found is not None:
            assert msgspec.msgpack.encode(decode(once)) == once

    return read


INSIDE: list[Callable[[bytes], Any]] = [
    entries.decode_entry,
    entries.decode_reference,
    domain_commands.decode_command,
    group_commands.decode_command,
    group_commands.decode_ruling,
    stored_group.decode_group,
    controls.decode_control,
    about.decode_about,
    roll.decode_checkpoint,
]
"""The first byte chooses one."""


def read_something_inside(data: bytes) -> None:
    """One of them."""
    if data:
        read_inside(INSIDE[data[0] % len(INSIDE)])(data[1:])


def read_as_a_program(data: bytes) -> None:
    """What programs show each other: a write to a table, who a task of Spark is, a key file."""
    Table().apply(Message(None, data, 1, "g", "n/1/1", None))  # type: ignore[arg-type]
    member_of(Provider("n/1/1", "n", "", data, 1))
    with contextlib.suppress(UsageError):
        _parsed(Path("a.key"), data)


READERS: list[Callable[[bytes], None]] = [
    read_frame,
    read_repaired_frame,
    lambda data: read_body(peer_messages.PEER_CODEC, data),
    read_requests,
    lambda data: read_body(client_messages.REPLY_CODEC, data),
    read_line,
    read_something_inside,
    read_as_a_program,
]


def read_input(data: bytes) -> None:
    """One input of the fuzzer."""
    if data:
        READERS[data[0] % len(READERS)](data[1:])


def seeds() -> list[bytes]:
    """Valid inputs to begin with, at least one per reader."""
    run = Run("n1", 7, 1, (b"two", b"three"))
    order = peer_messages.Order(stream=0, epoch=3, first_seq=9, entries=(b"one", run), stable=8)
    tell = peer_messages.Tell(to=1, epoch=3, number=1, answer={"leader": "n1", "servers": ["n1", 2, 0.5, None, True]})
    line = peer_messages.NodeEntry("n1", 7, "up", "tcp://127.0.0.1:5000", "id", True, 4)
    nodes = peer_messages.NodeList(epoch=3, have=0, version=4, nodes=(line,))
    canvass = peer_messages.Canvass(4, 0, False, 10, True, {"domain": "groupsvc"})
    view = views.View(epoch=2, leader="n1", servers=(("n1", 7), ("n2", "disk")), k=2, base=1)
    grant = peer_messages.Grant(5, "group", {"durable": True, "replicas": 3, "hosts": ["n1"], "none": None}, view, view)
    peer = peer_messages.PEER_CODEC.encode([order, tell, nodes, canvass, grant, peer_messages.Goodbye()])
    request = client_messages.REQUEST_CODEC.encode(
        [client_messages.Hello(1, 1, 1, "fuzz"), client_messages.ConfigSet(2, "key", "value", 0, 1.5)]
    )
    reply = client_messages.REPLY_CODEC.encode(
        [client_messages.Problem(1, "failed", "code", "text"), client_messages.ConfigValue(2, "key", "value", 1)]
    )
    frame = frames.pack(FrameKind.PEER, bytes(range(16)), b"n1", 7, peer)
    event = history.HistoryEvent(v=1, i=1, t=0.5, node="n1", op="promise", args={"a": [1, None, {"b": 0.1}]})
    inside = b"\x00" + entries.encode_entry("n1", 7, 1, b"body")
    contents = [frame, frame, peer, request, reply, history.to_line(event), inside, b"\x95\xa1k\xa1v\x00\x00\x00"]
    assert len(contents) == len(READERS)
    return [bytes([number]) + content for number, content in enumerate(contents)]


def in_memory(content: bytes) -> str:
    """The path of a file that is gone with the process, since libFuzzer leaves without cleaning up."""
    file = os.memfd_create("seed")
    os.write(file, content)
    return f"/proc/self/fd/{file}"


def main() -> None:
    """Fuzz until libFuzzer's arguments say stop."""
    for data in seeds():
        read_input(data)
    begin_with = ",".join(in_memory(data) for data in seeds())
    options = ["-keep_seed=1", f"-max_len={INPUT_BYTES_MAX}", f"-seed_inputs={begin_with}"]
    atheris.Setup([*sys.argv, *options], read_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
