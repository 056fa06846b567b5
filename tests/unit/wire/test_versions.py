"""Who understands whom: releases next to each other do, those with one between them do not."""

from __future__ import annotations

import pytest

from groupsvc.wire import frames, versions
from groupsvc.wire.kinds import FrameKind

A = versions.wire_of(1, 1, 1)
B = versions.wire_of(1, 1, 2)
C = versions.wire_of(2, 1, 2)
D = versions.wire_of(2, 2, 3)


def test_the_next_release_understands_both_sides_and_the_one_after_it_not_the_first() -> None:
    builds = {"A": A, "B": B, "C": C, "D": D}
    expected = {"A": "AB", "B": "ABC", "C": "BCD", "D": "CD"}
    for one in builds:
        found = "".join(other for other in builds if versions.understand(builds[one], builds[other]))
        assert expected[one] == found


def test_versions_are_said_in_words() -> None:
    assert "writes wire version 1 and reads 1" == versions.in_words(A)
    assert "writes wire version 2 and reads 1 to 2" == versions.in_words(C)
    assert "writes wire version 2 and reads 2 to 3" == versions.in_words(D)


@pytest.mark.parametrize("wire", [A, B, C, D])
def test_two_bytes_of_the_header_say_it(wire: int) -> None:
    version, reach = versions.header_bytes(wire)
    assert 0 <= version < 256
    assert 0 <= reach < 256
    assert wire == versions.from_header(version, reach)


def test_any_two_bytes_are_understood_or_not_and_said_in_words() -> None:
    """X2: nobody's header breaks anything."""
    for number in range(1 << 16):
        wire = versions.from_header(number >> 8, number & 255)
        assert versions.understand(wire, versions.OWN) == versions.understand(versions.OWN, wire)
        assert versions.in_words(wire)


def test_the_versions_of_this_build_are_consistent_and_in_its_frames() -> None:
    assert versions.READS_FROM <= versions.WRITES <= versions.READS_TO
    frame = frames.pack(FrameKind.PEER, bytes(16), b"n1", 1, b"\x90")
    assert versions.OWN == frames.unpack(frame).wire
    assert versions.header_bytes(versions.OWN) == (frame[4], frame[7])
