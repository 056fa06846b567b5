"""The bench beside others does what it says at every service that is installed here: a short visit to each.

A visit raises if a message is missing, doubled, or in another order elsewhere, and if somebody leaves a barrier before
all have come. How long anything takes is not looked at.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.peers.peer import Peer
from bench.peers.rows import Pace, visit
from bench.peers.those import PEERS

SHORT = Pace(seconds=0.2, rounds=0.02)
ROWS = frozenset({"barrier-2", "three"})
FAILURES = frozenset({"client", "silent"})

pytestmark = pytest.mark.interop


VISITED = [peer for peer in PEERS.values() if peer.rows >= ROWS]


@pytest.mark.parametrize("peer", VISITED, ids=lambda peer: peer.name)
def test_a_short_visit_finds_one_order_and_whole_rounds(peer: Peer, tmp_path: Path) -> None:
    why = peer.why_not()
    if why is not None:
        pytest.skip(why)
    found: dict[str, float] = {}
    visit(peer, ROWS, tmp_path, SHORT, lambda name, row, value: found.update({row: value}))
    assert set(found) == ROWS


def test_members_elsewhere_are_told_of_a_killed_client_and_of_a_paused_server(tmp_path: Path) -> None:
    found: dict[str, float] = {}
    visit(PEERS["ours"], FAILURES, tmp_path, SHORT, lambda name, row, value: found.update({row: value}))
    assert set(found) == FAILURES
