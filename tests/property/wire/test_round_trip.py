"""What is packed comes out again: every message, every frame, every line of history."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupsvc.wire import frames
from groupsvc.wire.client_messages import REPLY_CODEC, REQUEST_CODEC
from groupsvc.wire.codec import Codec
from groupsvc.wire.history import HistoryEvent, from_line, to_line
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core.peer_messages import PEER_CODEC
from tests.property.wire import strategies as s

CODECS: list[tuple[Codec[Any], tuple[type[msgspec.Struct], ...]]] = [
    (PEER_CODEC, s.PEER_CLASSES),
    (REQUEST_CODEC, s.REQUEST_CLASSES),
    (REPLY_CODEC, s.REPLY_CLASSES),
]
EVERY_CLASS = [(codec, cls) for codec, classes in CODECS for cls in classes]


@pytest.mark.parametrize("codec, cls", EVERY_CLASS, ids=[cls.__name__ for _, cls in EVERY_CLASS])
@given(data=st.data())
def test_every_message_comes_back_equal(codec: Codec[Any], cls: type[msgspec.Struct], data: st.DataObject) -> None:
    message = data.draw(s.structs(cls))
    (back,) = codec.decode(codec.encode([message]))
    assert message == back
    assert cls is type(back)


@pytest.mark.parametrize("codec, classes", CODECS, ids=["peer", "request", "reply"])
@given(data=st.data())
def test_a_batch_comes_back_in_its_order(
    codec: Codec[Any], classes: tuple[type[msgspec.Struct], ...], data: st.DataObject
) -> None:
    messages = data.draw(s.batches(classes))
    assert messages == codec.decode(codec.encode(messages))


@given(kind=s.FRAME_KINDS, domain=s.DOMAINS, name=s.NODE_NAMES, incarnation=s.INCARNATIONS, body=s.BODIES)
def test_every_frame_comes_back_equal(kind: FrameKind, domain: bytes, name: str, incarnation: int, body: bytes) -> None:
    """MSG-14: sender and incarnation, of which ids are made, arrive as they were sent."""
    packed = frames.pack(kind, domain, name.encode(), incarnation, body)
    assert frames.problem_with(packed) is None
    expected = frames.Frame(kind=kind, domain=domain, sender=name, incarnation=incarnation, body=body)
    assert expected == frames.unpack(packed)


@given(event=s.HISTORY_EVENTS)
def test_every_line_of_history_comes_back_equal(event: HistoryEvent) -> None:
    """X3 rests on this: the same event is the same line, byte for byte."""
    line = to_line(event)
    assert line.endswith(b"\n")
    assert 1 == line.count(b"\n")
    assert event == from_line(line)
    assert line == to_line(from_line(line))
