"""What the disk of a node has to know of a durable group, besides its log: to come back to it after a restart."""

from __future__ import annotations

import msgspec

from groupsvc.wire.codec import Reader

from ..views import AttributeValue


class About(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A group that this node carries."""

    name: str
    attributes: dict[str, AttributeValue]
    is_leaving: bool = False  # nobody on this node needs it any more


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_reader: Reader[About] = Reader(About, "record of a group that this node carries")


def encode_about(about: About) -> bytes:
    """The bytes that stand on the disk."""
    return _encoder.encode(about)


def decode_about(body: bytes) -> About:
    """What they stand for; raises ``PeerProtocolError``."""
    return _reader.read(body)
