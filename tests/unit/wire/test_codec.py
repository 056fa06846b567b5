"""A body holds known messages of the right shape, or it is refused whole, naming the place (X2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groupsvc.errors import PeerProtocolError
from groupsvc.wire.client_messages import REPLY_CODEC, REQUEST_CODEC, Done, Hello, Problem, StatusAsk
from groupsvc.wire.codec import Codec
from groupsvc.wire.kinds import Kind
from groupsvcd.core.peer_messages import PEER_CODEC, Goodbye, LeaderAlive, Order, Unwelcome

CODECS: dict[str, Codec[Any]] = {"peer": PEER_CODEC, "request": REQUEST_CODEC, "reply": REPLY_CODEC}
OWN_KINDS = {
    "peer": {kind for kind in Kind if kind < 100},
    "request": {kind for kind in Kind if 100 <= kind < 120 or 140 <= kind < 180},
    "reply": {kind for kind in Kind if 120 <= kind < 140 or 180 <= kind},
}


def body(*messages: Any) -> bytes:
    """A body made by hand, of whatever one likes."""
    return msgspec.msgpack.encode(messages)


def test_a_message_is_an_array_of_its_number_and_its_fields() -> None:
    assert body([10, 4, 2, 9, 7], [18]) == PEER_CODEC.encode([LeaderAlive(4, 2, 9, 7), Goodbye()])
    assert body([101, 5]) == REQUEST_CODEC.encode([StatusAsk(id=5)])
    assert body([124, 5]) == REPLY_CODEC.encode([Done(id=5)])


def test_fields_with_defaults_may_be_left_out_at_the_end() -> None:
    assert (Unwelcome(reason="other domain"),) == PEER_CODEC.decode(body([14, "other domain"]))


def test_a_frame_without_messages_is_valid() -> None:
    assert PEER_CODEC.decode(body()) == ()


@pytest.mark.parametrize("name", CODECS)
def test_every_number_that_is_no_kind_of_this_codec_is_refused(name: str) -> None:
    for number in range(-1, 300):
        if number in OWN_KINDS[name]:
            continue
        with pytest.raises(PeerProtocolError, match=r"\$\[0\]"):
            CODECS[name].decode(body([number, 1, 1, 1, 1]))


WRONG: dict[str, tuple[Codec[Any], bytes]] = {
    "extra field": (PEER_CODEC, body([10, 4, 2, 9, 7, 1])),
    "extra field after none": (PEER_CODEC, body([18, 1])),
    "extra field in a request": (REQUEST_CODEC, body([101, 5, 5])),
    "missing field": (PEER_CODEC, body([10, 4, 2])),
    "text for a number": (PEER_CODEC, body([10, "4", 2, 9, 7])),
    "fraction for a number": (PEER_CODEC, body([10, 4.5, 2, 9, 7])),
    "truth for a number": (PEER_CODEC, body([10, True, 2, 9, 7])),
    "nothing for a number": (PEER_CODEC, body([10, None, 2, 9, 7])),
    "text for bytes": (PEER_CODEC, body([31, 0, 1, 1, ["entry"], 0])),
    "number beyond 64 bits": (PEER_CODEC, b"\x91\x95\x0a\xc7\x09\x00" + bytes(9) + b"\x02\x09\x07"),
    "tag as text": (PEER_CODEC, body(["10", 4, 2, 9, 7])),
    "no tag": (PEER_CODEC, body([])),
    "message as a table": (PEER_CODEC, body({"epoch": 4})),
    "one message without its list": (PEER_CODEC, msgspec.msgpack.encode([18])),
    "family that does not exist": (REPLY_CODEC, body([125, 1, "maybe", "", ""])),
    "second message bad": (PEER_CODEC, body([18], [10, 4, 2])),
    "text that is no UTF-8": (REQUEST_CODEC, body([100, 1, 1, 1, "xyz"]).replace(b"xyz", b"\xff\xfe\xfd")),
    "plain data that is no UTF-8": (PEER_CODEC, body([51, 1, 1, 1, {"k": "xyz"}]).replace(b"xyz", b"\xff\xfe\xfd")),
    "plain data nested too deep": (PEER_CODEC, body([51, 1, 1, 1, {"k": 0}])[:-1] + b"\x91" * 100_000 + b"\x00"),
    "array of four billion": (PEER_CODEC, b"\xdd\xff\xff\xff\xff"),
    "bytes of four billion": (PEER_CODEC, b"\x91\x96\x1f\x00\x01\x01\x91\xc6\xff\xff\xff\xff"),
    "bytes behind the end": (PEER_CODEC, body([18]) + b"\x90"),
    "empty": (PEER_CODEC, b""),
}


@pytest.mark.parametrize("codec, wrong", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_body_is_refused_with_a_reason(codec: Codec[Any], wrong: bytes) -> None:
    with pytest.raises(PeerProtocolError, match=f"body of {len(wrong)} bytes is no list of messages: ."):
        codec.decode(wrong)


def test_the_reason_names_the_message_and_the_field() -> None:
    with pytest.raises(PeerProtocolError, match=r"Expected `int`, got `str` - at `\$\[1\]\[2\]`"):
        PEER_CODEC.decode(body([18], [10, 4, "2", 9, 7]))


def test_entries_are_carried_as_opaque_bytes() -> None:
    entries = (b"", b"\x00\xff", bytes(1000))
    order = Order(stream=0, epoch=1, first_seq=1, entries=entries, stable=0)
    assert (order,) == PEER_CODEC.decode(PEER_CODEC.encode([order]))


def test_messages_cannot_be_changed_after_they_were_made() -> None:
    for message in (Hello(1, 1, 1, "test"), Problem(1, "failed", "", ""), Goodbye(), LeaderAlive(1, 1, 1, 1)):
        with pytest.raises(AttributeError):
            setattr(message, "id", 2)  # noqa: B010


@pytest.mark.parametrize("count", [0, 1, 15, 16, 65_535, 65_536])
def test_messages_encoded_one_by_one_make_the_same_body(count: int) -> None:
    one = PEER_CODEC.encode_one(Goodbye())
    assert PEER_CODEC.encode([Goodbye()] * count) == PEER_CODEC.joined([one] * count)
