"""The frame: what every datagram of groupsvc looks like from the outside.

A receiver must be able to say *why* it throws a frame away before it parses anything that a stranger
wrote. So a fixed header comes first: magic, version, kind, checksum, lengths, domain id, the sender's
incarnation and name. ``problem_with`` checks them from cheap to dear and answers with a sentence. The version comes
last: only of a frame that is whole can be said that somebody meant it so.

The checksum covers the whole frame except itself. TCP has one of its own; ours catches what happens
before and after TCP (a broken proxy, memory, a file), and makes every flipped bit a refusal with a reason
instead of a message that was never sent. It is no defence against an enemy: that is what CURVE is for.

    0      4  magic "GSVC"
    4      1  version: of frames between daemons the wire version (versions.py), else 1
    5      1  kind of frame (kinds.FrameKind)
    6      1  length of the sender's name
    7      1  of frames between daemons how far below and above the version their sender reads, else zero
    8      4  CRC-32 of bytes 0-7 and 12-end
    12     4  length of the body
    16    16  domain id, all zero while the sender is in none
    32     8  sender's incarnation
    40        sender's name, then the body
"""

from __future__ import annotations

import struct
from zlib import crc32

import msgspec

from ..errors import PeerProtocolError
from . import versions
from .kinds import FrameKind
from .limits import FRAME_BYTES_MAX, NODE_NAME_BYTES_MAX

MAGIC = b"GSVC"
CLIENT_VERSION = 1
"""Of frames between a program and its daemon, for ever: what they speak is settled by Hello."""
DOMAIN_ID_BYTES = 16

_before_crc = struct.Struct("!4sBBBB")
_crc = struct.Struct("!I")
_after_crc = struct.Struct("!I16sQ")
_header = struct.Struct("!4sBBBBII16sQ")
HEADER_BYTES = _header.size
_NAME_BYTES_AT = 6
_KINDS = {int(kind): kind for kind in FrameKind}
_OWN = {int(kind): versions.from_header(CLIENT_VERSION, 0) for kind in FrameKind} | {int(FrameKind.PEER): versions.OWN}
_HEADER_BYTES = {kind: versions.header_bytes(wire) for kind, wire in _OWN.items()}


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A frame that passed ``problem_with``. ``body`` is a look into its bytes, not a copy of them."""

    kind: FrameKind
    domain: bytes
    sender: str
    incarnation: int
    body: memoryview
    wire: int = versions.OWN  # the versions of a daemon that sent it


class OtherVersion(PeerProtocolError):
    """A frame that is whole, of a daemon ``sender`` that does not understand this one, or the other way round."""

    def __init__(self, sender: str, wire: int) -> None:
        text = f"{sender} {versions.in_words(wire)}, this side {versions.in_words(versions.OWN)}"
        super().__init__(text)
        self.sender = sender
        self.wire = wire


def pack(
    kind: FrameKind, domain: bytes, sender: bytes, incarnation: int, body: bytes | memoryview, *, topic: bytes = b""
) -> bytes:
    """The bytes of a frame, behind its topic if it is a multicast; ``sender`` is the encoded node name."""
    version, reach = _HEADER_BYTES[kind]
    front = _before_crc.pack(MAGIC, version, kind, len(sender), reach)
    rest = _after_crc.pack(len(body), domain, incarnation) + sender
    return b"".join((topic, front, _crc.pack(crc32(body, crc32(rest, crc32(front)))), rest, body))


def problem_with(frame: bytes | memoryview) -> str | None:
    """Why this frame must be refused, or None. Never raises, never reads past the end."""
    try:
        unpack(frame)
    except PeerProtocolError as problem:
        return str(problem)
    return None


def unpack(frame: bytes | memoryview) -> Frame:
    """The parts of a frame, checked from cheap to dear; raises ``PeerProtocolError`` with what is wrong."""
    size = len(frame)
    if size < HEADER_BYTES:
        raise PeerProtocolError(f"{size} bytes are less than a header of {HEADER_BYTES}")
    if size > FRAME_BYTES_MAX:
        raise PeerProtocolError(f"{size} bytes are more than the {FRAME_BYTES_MAX} allowed")
    magic, version, kind, name_bytes, reach, stated, body_bytes, domain, incarnation = _header.unpack_from(frame)
    if magic != MAGIC:
        raise PeerProtocolError(f"it begins with {magic!r} and not with {MAGIC!r}: not a groupsvc frame")
    if kind not in _KINDS:
        raise PeerProtocolError(f"frame kind {kind} is unknown")
    name_end = HEADER_BYTES + name_bytes
    if not 1 <= name_bytes <= NODE_NAME_BYTES_MAX:
        text = f"the sender's name has {name_bytes} bytes, allowed are 1 to {NODE_NAME_BYTES_MAX}"
        raise PeerProtocolError(text)
    if name_end + body_bytes != size:
        raise PeerProtocolError(f"the header announces {name_end + body_bytes} bytes, {size} came")
    view = memoryview(frame)
    counted = crc32(view[12:], crc32(view[:8]))
    if stated != counted:
        raise PeerProtocolError(f"checksum is {counted:08x}, the header says {stated:08x}")
    try:
        sender = str(view[HEADER_BYTES:name_end], "utf-8")
    except UnicodeDecodeError:
        raise PeerProtocolError("the sender's name is not UTF-8") from None
    wire = _OWN[kind]
    if (version, reach) != _HEADER_BYTES[kind]:
        if kind != FrameKind.PEER:
            text = f"it is of frame version {version}.{reach}, programs and daemons speak {CLIENT_VERSION}.0"
            raise PeerProtocolError(text)
        wire = versions.from_header(version, reach)
        if not versions.understand(versions.OWN, wire):
            raise OtherVersion(sender, wire)
    return Frame(_KINDS[kind], domain, sender, incarnation, view[name_end:], wire)


def claimed_sender(frame: bytes | memoryview) -> bytes:
    """The encoded name that a frame gives for its sender, be the frame good or not; empty if there is none."""
    return bytes(frame[HEADER_BYTES : HEADER_BYTES + frame[_NAME_BYTES_AT]]) if len(frame) > HEADER_BYTES else b""
