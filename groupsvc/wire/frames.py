"""The frame: what every datagram of groupsvc looks like from the outside.

A receiver must be able to say *why* it throws a frame away before it parses anything that a stranger
wrote. So a fixed header comes first: magic, version, kind, checksum, lengths, domain id, the sender's
incarnation and name. ``problem_with`` checks them from cheap to dear and answers with a sentence.

The checksum covers the whole frame except itself. TCP has one of its own; ours catches what happens
before and after TCP (a broken proxy, memory, a file), and makes every flipped bit a refusal with a reason
instead of a message that was never sent. It is no defence against an enemy: that is what CURVE is for.

    0      4  magic "GSVC"
    4      1  version
    5      1  kind of frame (kinds.FrameKind)
    6      1  length of the sender's name
    7      1  zero
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
from .kinds import FrameKind
from .limits import FRAME_BYTES_MAX, NODE_NAME_BYTES_MAX

MAGIC = b"GSVC"
VERSION = 1
DOMAIN_ID_BYTES = 16

_before_crc = struct.Struct("!4sBBBB")
_crc = struct.Struct("!I")
_after_crc = struct.Struct("!I16sQ")
_header = struct.Struct("!4sBBBBII16sQ")
HEADER_BYTES = _header.size
_NAME_BYTES_AT = 6
_KINDS = {int(kind): kind for kind in FrameKind}


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A frame that passed ``problem_with``. ``body`` is a look into its bytes, not a copy of them."""

    kind: FrameKind
    domain: bytes
    sender: str
    incarnation: int
    body: memoryview


def pack(
    kind: FrameKind, domain: bytes, sender: bytes, incarnation: int, body: bytes | memoryview, *, topic: bytes = b""
) -> bytes:
    """The bytes of a frame, behind its topic if it is a multicast; ``sender`` is the encoded node name."""
    front = _before_crc.pack(MAGIC, VERSION, kind, len(sender), 0)
    rest = _after_crc.pack(len(body), domain, incarnation) + sender
    return b"".join((topic, front, _crc.pack(crc32(body, crc32(rest, crc32(front)))), rest, body))


def problem_with(frame: bytes | memoryview) -> str | None:
    """Why this frame must be refused, or None. Never raises, never reads past the end."""
    found = _look_at(frame)
    return found if isinstance(found, str) else None


def unpack(frame: bytes | memoryview) -> Frame:
    """The parts of a frame; raises ``PeerProtocolError`` with the reason if there is a problem."""
    found = _look_at(frame)
    if isinstance(found, str):
        raise PeerProtocolError(found)
    return found


def claimed_sender(frame: bytes | memoryview) -> bytes:
    """The encoded name that a frame gives for its sender, be the frame good or not; empty if there is none."""
    return bytes(frame[HEADER_BYTES : HEADER_BYTES + frame[_NAME_BYTES_AT]]) if len(frame) > HEADER_BYTES else b""


def _look_at(frame: bytes | memoryview) -> Frame | str:
    """The parts, or the problem: checked from cheap to dear."""
    size = len(frame)
    if size < HEADER_BYTES:
        return f"{size} bytes are less than a header of {HEADER_BYTES}"
    if size > FRAME_BYTES_MAX:
        return f"{size} bytes are more than the {FRAME_BYTES_MAX} allowed"
    magic, version, kind, name_bytes, zero, stated, body_bytes, domain, incarnation = _header.unpack_from(frame)
    if magic != MAGIC:
        return f"it begins with {magic!r} and not with {MAGIC!r}: not a groupsvc frame"
    if version != VERSION:
        return f"it is of frame version {version}, this side speaks {VERSION}"
    if kind not in _KINDS:
        return f"frame kind {kind} is unknown"
    if zero != 0:
        return f"the reserved byte is {zero} and not 0"
    name_end = HEADER_BYTES + name_bytes
    if not 1 <= name_bytes <= NODE_NAME_BYTES_MAX:
        return f"the sender's name has {name_bytes} bytes, allowed are 1 to {NODE_NAME_BYTES_MAX}"
    if name_end + body_bytes != size:
        return f"the header announces {name_end + body_bytes} bytes, {size} came"
    view = memoryview(frame)
    counted = crc32(view[12:], crc32(view[:8]))
    if stated != counted:
        return f"checksum is {counted:08x}, the header says {stated:08x}"
    try:
        sender = str(view[HEADER_BYTES:name_end], "utf-8")
    except UnicodeDecodeError:
        return "the sender's name is not UTF-8"
    return Frame(_KINDS[kind], domain, sender, incarnation, view[name_end:])
