"""What the directory finds without looking at all it has is what a look at all of it finds.

A domain of a thousand nodes and ten thousand groups is asked the same small questions many times a second: what changed
in the list since version 17, which groups have a server that is gone.
"""

from __future__ import annotations

import random

import pytest

from groupsvcd.core.domain.commands import (
    ActivateView,
    FormDomain,
    FormGroup,
    NodeDown,
    NodeGone,
    NodeUp,
    ProposeView,
    ViewStarted,
)
from groupsvcd.core.domain.directory import Directory
from groupsvcd.core.views import NodeId

NAMES = ("A", "B", "C", "D", "E")


class Life:
    """A directory to which things happen at random."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.directory = Directory()
        self.seq = 0
        self.incarnations = dict.fromkeys(NAMES, 0)
        self.apply(FormDomain(b"d" * 16, (("A", "a"),), {}))
        self.apply(ViewStarted(1, "A", (("A", "a"),), 1))

    def apply(self, command: object) -> None:
        """The next entry."""
        self.seq += 1
        self.directory.apply(self.seq, command)  # type: ignore[arg-type]

    def happen(self) -> None:
        """One thing."""
        name = self.rng.choice(NAMES)
        incarnation = self.incarnations[name]
        deed = self.rng.randrange(6)
        if deed == 0:
            self.incarnations[name] += 1
            self.apply(NodeUp(name, incarnation + 1, self.rng.choice(["", name.lower()]), f"at:{name}", name == "A"))
        elif deed == 1:
            self.apply(NodeDown(name, incarnation, False))
        elif deed == 2:
            self.apply(NodeGone(name, self.rng.randint(1, incarnation + 1)))
        elif deed == 3:
            self.apply(FormGroup(f"g{self.seq}", name, incarnation, {}))
        else:
            self._change_a_view(name, incarnation)

    def _change_a_view(self, name: str, incarnation: int) -> None:
        groups = self.directory.groups.all()
        if not groups:
            return
        group = self.rng.choice(groups)
        if group.pending is not None:
            self.apply(ActivateView(((group.id, group.pending.epoch),)))
            return
        leader = group.active.leader
        servers = tuple(dict.fromkeys((*group.active.servers, (name, incarnation))))
        by: NodeId = (leader, self.incarnations[leader])
        self.apply(ProposeView(group.id, group.newest_epoch, leader, servers, 1, by))


@pytest.mark.parametrize("seed", range(10))
def test_what_is_found_by_index_is_what_is_there(seed: int) -> None:
    """GS-02: at every moment, and after a restart from the checkpoint, too."""
    life = Life(seed)
    gone_found = 0
    for _ in range(300):
        life.happen()
        for directory in (life.directory, Directory.restore(life.directory.snapshot())):
            since = life.rng.randint(0, life.seq)
            expected = [node for node in directory.nodes.all() if node.changed > since]
            assert expected == directory.nodes.changed_since(since)
            with_gone = tuple(group for group in directory.groups.all() if directory.groups.servers_gone(group))
            assert with_gone == directory.groups.with_servers_gone()
            gone_found += len(with_gone)
    assert gone_found > 0


def test_the_list_by_name_is_the_one_of_now() -> None:
    life = Life(1)
    for _ in range(200):
        life.happen()
        assert [node.name for node in life.directory.nodes.all()] == sorted(
            name for name in NAMES if life.directory.nodes.get(name) is not None
        )
        assert all(life.directory.nodes.get(node.name) is node for node in life.directory.nodes.all())
