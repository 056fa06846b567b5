"""What was changed on its way is refused with a reason; garbage never gets further than that (X2)."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from groupsvc.errors import PeerProtocolError
from groupsvc.wire import frames
from groupsvc.wire.client_messages import REPLY_CODEC, REQUEST_CODEC
from groupsvc.wire.codec import Codec
from groupsvc.wire.history import from_line
from groupsvcd.core.peer_messages import PEER_CODEC
from tests.property.wire import strategies as s

CODECS: dict[str, Codec[Any]] = {"peer": PEER_CODEC, "request": REQUEST_CODEC, "reply": REPLY_CODEC}

FRAMES = st.builds(
    frames.pack,
    s.FRAME_KINDS,
    s.DOMAINS,
    s.NODE_NAMES.map(str.encode),
    s.INCARNATIONS,
    s.batches(s.PEER_CLASSES).map(PEER_CODEC.encode),
)


def reason_for_refusing(frame: bytes) -> str:
    """The reason ``problem_with`` gives, after checking that ``unpack`` gives the same."""
    reason = frames.problem_with(frame)
    assert reason
    with pytest.raises(PeerProtocolError) as raised:
        frames.unpack(frame)
    assert reason == str(raised.value)
    return reason


@given(frame=FRAMES)
def test_every_truncation_is_refused_with_a_reason(frame: bytes) -> None:
    for size in range(len(frame)):
        reason_for_refusing(frame[:size])


@given(frame=FRAMES, more=st.binary(min_size=1, max_size=20))
def test_bytes_after_the_end_are_refused_with_a_reason(frame: bytes, more: bytes) -> None:
    assert "announces" in reason_for_refusing(frame + more)


@given(frame=FRAMES, data=st.data())
def test_a_flipped_bit_is_refused_with_a_reason(frame: bytes, data: st.DataObject) -> None:
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    changed = bytearray(frame)
    changed[bit // 8] ^= 1 << bit % 8
    reason_for_refusing(bytes(changed))


@given(frame=FRAMES, data=st.data())
def test_a_burst_of_up_to_32_bits_is_refused_with_a_reason(frame: bytes, data: st.DataObject) -> None:
    """A CRC-32 promises it; the burst stays on one side of the checksum field."""
    start = data.draw(st.integers(12, len(frame) - 4))
    noise = data.draw(st.binary(min_size=4, max_size=4))
    assume(any(noise))
    changed = bytearray(frame)
    for offset, byte in enumerate(noise):
        changed[start + offset] ^= byte
    reason_for_refusing(bytes(changed))


@given(garbage=st.binary(max_size=400))
def test_garbage_is_no_frame(garbage: bytes) -> None:
    assume(not garbage.startswith(frames.MAGIC))
    reason_for_refusing(garbage)


@given(garbage=st.binary(max_size=400))
def test_garbage_behind_the_magic_is_no_frame(garbage: bytes) -> None:
    """Would need a right checksum among four billion; the fuzz target looks for that one."""
    reason_for_refusing(frames.MAGIC + garbage)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS.keys())
@given(body=st.binary(max_size=200))
def test_a_body_of_garbage_is_decoded_or_refused_and_nothing_else(codec: Codec[Any], body: bytes) -> None:
    with contextlib.suppress(PeerProtocolError):
        once = codec.encode(codec.decode(body))
        assert once == codec.encode(codec.decode(once))


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS.keys())
@given(content=s.PLAIN)
def test_a_body_of_other_data_is_refused(codec: Codec[Any], content: Any) -> None:
    assume(content != [])
    with pytest.raises(PeerProtocolError):
        codec.decode(msgspec.msgpack.encode(content))


@given(messages=s.batches(s.PEER_CLASSES).filter(bool), data=st.data())
def test_every_truncated_body_is_refused(messages: tuple[Any, ...], data: st.DataObject) -> None:
    body = PEER_CODEC.encode(messages)
    size = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(PeerProtocolError, match=f"body of {size} bytes"):
        PEER_CODEC.decode(body[:size])


@given(event=s.HISTORY_EVENTS, data=st.data())
def test_a_torn_line_of_history_is_refused(event: Any, data: st.DataObject) -> None:
    """S2 for journals: the last line after a power cut is noticed, never read as something shorter."""
    line = msgspec.json.encode(event)
    size = data.draw(st.integers(0, len(line) - 1))
    with pytest.raises(msgspec.DecodeError):
        from_line(line[:size])


@given(garbage=st.binary(max_size=200))
def test_garbage_is_no_line_of_history(garbage: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        from_line(garbage)
