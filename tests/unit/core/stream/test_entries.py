"""A run is the same entries as its bodies one by one, wherever it is cut, and is never empty on the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupsvc.errors import PeerProtocolError
from groupsvcd.core.peer_messages import PEER_CODEC, Order
from groupsvcd.core.stream.entries import Piece, Run, behind, encode_entry, length_of, one_by_one, part_of, size_of

RUN = Run("D", 7, 5, (b"e", b"f", b"g"))
PIECES = st.lists(st.sampled_from((encode_entry("", 0, 0, b"own"), RUN, Run("E", 1, 1, (b"",)))), max_size=4)


def test_a_run_is_the_entries_that_its_bodies_are() -> None:
    """On disk and in a repair nobody can tell how they came."""
    expected = tuple(encode_entry("D", 7, n, body) for n, body in ((5, b"e"), (6, b"f"), (7, b"g")))
    assert expected == tuple(one_by_one((RUN,)))
    assert expected == tuple(one_by_one(RUN.part(position, position + 1) for position in range(3)))


@given(pieces=PIECES, count=st.integers(0, 10))
def test_what_is_behind_some_entries_is_the_rest_of_them(pieces: list[Piece], count: int) -> None:
    """Wherever that lies: between two pieces, in a run, or beyond all."""
    entries = tuple(one_by_one(pieces))
    assert sum(map(length_of, pieces)) == len(entries)
    assert entries[count:] == tuple(one_by_one(behind(pieces, count)))


def test_a_whole_run_is_not_copied() -> None:
    """As nearly always."""
    assert RUN is part_of(RUN, 0, 3)


def test_what_is_said_of_a_runs_size_is_not_less_than_what_it_takes() -> None:
    """Orders are cut by it, and must fit into a frame."""
    for size in (0, 200, 300, 70_000):
        bodies = (bytes(size),) * 50
        in_frame = len(PEER_CODEC.encode([Order(1, 1, 1, (Run("D", 7, 1, bodies),), 0)]))
        assert in_frame - 30 <= size_of(Run("D", 7, 1, bodies)) <= in_frame + 5 * 50


@pytest.mark.parametrize("run", [Run("", 0, 0, (b"own",)), Run("D", 7, 5, ())])
def test_a_run_of_nobody_or_of_nothing_is_refused(run: Run) -> None:
    """The leader's own entries change views and members, and are looked at one by one."""
    with pytest.raises(PeerProtocolError):
        PEER_CODEC.decode(PEER_CODEC.encode([Order(1, 1, 1, (run,), 0)]))
