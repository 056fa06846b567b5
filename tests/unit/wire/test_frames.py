"""A frame says who sent it, and every way of being wrong has a reason of its own (X2)."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from groupsvc.errors import PeerProtocolError
from groupsvc.wire import frames
from groupsvc.wire.kinds import FrameKind
from groupsvc.wire.limits import FRAME_BYTES_MAX, NODE_NAME_BYTES_MAX

DOMAIN = bytes(range(16))
FRAME = frames.pack(FrameKind.PEER, DOMAIN, b"n1", 7, b"\x90")


def with_right_checksum(frame: bytes) -> bytes:
    """The frame as a sender would have made it who meant every other byte of it."""
    return frame[:8] + struct.pack("!I", crc32(frame[12:], crc32(frame[:8]))) + frame[12:]


def changed(offset: int, replacement: bytes) -> bytes:
    """FRAME with other bytes at ``offset``, checksum made right."""
    return with_right_checksum(FRAME[:offset] + replacement + FRAME[offset + len(replacement) :])


def test_the_bytes_of_a_frame_are_those_of_the_document() -> None:
    """A change of this line is a new frame version."""
    expected = "47535643 01 01 02 00 13fc57a9 00000001 000102030405060708090a0b0c0d0e0f 0000000000000007 6e31 90"
    assert bytes.fromhex(expected) == FRAME


@pytest.mark.parametrize("kind", FrameKind)
def test_a_frame_comes_back_as_it_was_packed(kind: FrameKind) -> None:
    frame = frames.unpack(frames.pack(kind, DOMAIN, "nœud-1".encode(), 2**64 - 1, b"body"))
    assert frames.Frame(kind=kind, domain=DOMAIN, sender="nœud-1", incarnation=2**64 - 1, body=b"body") == frame


@pytest.mark.parametrize("kind", FrameKind)
def test_every_truncation_of_a_frame_is_refused(kind: FrameKind) -> None:
    whole = frames.pack(kind, DOMAIN, b"a-longer-name", 1_700_000_000_000_000, bytes(range(64)))
    for size in range(len(whole)):
        reason = frames.problem_with(whole[:size])
        assert reason is not None, size
        assert ("less than a header" in reason) == (size < frames.HEADER_BYTES)


@pytest.mark.parametrize("kind", FrameKind)
def test_every_single_flipped_bit_of_a_frame_is_refused(kind: FrameKind) -> None:
    whole = frames.pack(kind, DOMAIN, b"a-longer-name", 1_700_000_000_000_000, bytes(range(64)))
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        assert frames.problem_with(bytes(flipped)), bit


WRONG = {
    "empty": (b"", "0 bytes are less than a header of 40"),
    "magic": (changed(0, b"HTTP"), "begins with b'HTTP' and not with b'GSVC'"),
    "newer version": (changed(4, b"\x02"), "n1 writes wire version 2 and reads 2, this side writes wire version 1"),
    "older version": (changed(4, b"\x00"), "n1 writes wire version 0 and reads 0, this side writes wire version 1"),
    "newer version, reads ours": (changed(4, b"\x02\x01\x02\x10"), "n1 writes wire version 2 and reads 1 to 2, this"),
    "version of a program": (
        with_right_checksum(FRAME[:4] + b"\x02\x02" + FRAME[6:]),
        "frame version 2.0, programs and daemons speak 1.0",
    ),
    "reserved byte of a program": (
        with_right_checksum(FRAME[:5] + b"\x03\x02\x01" + FRAME[8:]),
        "frame version 1.1, programs and daemons speak",
    ),
    "kind 0": (changed(5, b"\x00"), "frame kind 0 is unknown"),
    "kind 4": (changed(5, b"\x04"), "frame kind 4 is unknown"),
    "no name": (changed(6, b"\x00"), "name has 0 bytes, allowed are 1 to 63"),
    "name over the limit": (changed(6, b"\x40"), "name has 64 bytes"),
    "name longer than it is": (changed(6, b"\x03"), "announces 44 bytes, 43 came"),
    "body longer than it is": (changed(12, struct.pack("!I", 2)), "announces 44 bytes, 43 came"),
    "body of 4 GiB": (changed(12, b"\xff\xff\xff\xff"), "announces 4294967337 bytes, 43 came"),
    "name not UTF-8": (changed(40, b"\xff"), "name is not UTF-8"),
    "checksum": (FRAME[:8] + b"\0\0\0\0" + FRAME[12:], "checksum is 13fc57a9, the header says 00000000"),
}


@pytest.mark.parametrize("frame, reason", WRONG.values(), ids=WRONG.keys())
def test_each_wrong_frame_is_refused_with_its_own_reason(frame: bytes, reason: str) -> None:
    said = frames.problem_with(frame)
    assert said is not None
    assert reason in said
    with pytest.raises(PeerProtocolError) as raised:
        frames.unpack(frame)
    assert said == str(raised.value)


def test_a_frame_over_the_limit_is_refused_before_anything_in_it_is_looked_at() -> None:
    assert "more than the 8388608 allowed" in str(frames.problem_with(bytes(FRAME_BYTES_MAX + 1)))


def test_a_frame_at_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    room = FRAME_BYTES_MAX - frames.HEADER_BYTES - len(b"n1")
    assert frames.problem_with(frames.pack(FrameKind.PEER, DOMAIN, b"n1", 1, bytes(room))) is None
    assert frames.problem_with(frames.pack(FrameKind.PEER, DOMAIN, b"n1", 1, bytes(room + 1)))


def test_a_name_at_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    assert frames.problem_with(frames.pack(FrameKind.PEER, DOMAIN, b"n" * NODE_NAME_BYTES_MAX, 1, b"")) is None
    assert frames.problem_with(frames.pack(FrameKind.PEER, DOMAIN, b"n" * (NODE_NAME_BYTES_MAX + 1), 1, b""))


def test_whom_a_frame_claims_to_be_from_can_be_asked_of_any_bytes() -> None:
    """Before anything else in it is believed, and so of frames that would be refused, too."""
    frame = frames.pack(FrameKind.PEER, bytes(16), b"n1", 1, b"body")
    assert b"n1" == frames.claimed_sender(frame) == frames.claimed_sender(memoryview(frame))
    assert b"n1" == frames.claimed_sender(frame[:8] + bytes(4) + frame[12:])
    for size in range(frames.HEADER_BYTES + 1):
        assert b"" == frames.claimed_sender(frame[:size])
    assert b"n" == frames.claimed_sender(frame[: frames.HEADER_BYTES + 1])
