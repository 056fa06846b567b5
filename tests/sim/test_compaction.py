"""Servers killed while they write a checkpoint: nothing is lost, and nothing is numbered twice (SAM-09, SAM-11)."""

from __future__ import annotations

import pytest

from groupsvcd.core.events import LocalCall
from groupsvcd.core.stream.log import Log

from .test_durable_groups import Stage


@pytest.mark.parametrize("victim", ["n4", "n1", "n2"])
def test_a_server_killed_while_it_compacts_comes_back_and_every_word_is_there_once(victim: str) -> None:
    """The leader or another one; the write of the checkpoint is under way and never ends."""
    stage = Stage(group_checkpoint_every=5)
    names = ["n4", "n1", "n2"]
    stage.join(*names)
    for _ in range(4):
        sender = next(name for name in names if name != victim)
        before = _log(stage, victim).checkpoint_seq
        while not _compacts(stage, victim, before):
            _say(stage, sender)
            stage.world.run_until(lambda seq=before: _compacts(stage, victim, seq), within=0.05, every=0.0001)  # type: ignore[misc]
        assert _stored(stage, victim) < _log(stage, victim).checkpoint_seq
        stage.kill(victim)
        stage.submit(sender, 3)
        stage.run(1.0)
        stage.start(victim)
        stage.run(3.0)
        stage.join(victim)
    stage.run(2.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}
    words = stage.sent.split()
    assert len(set(words)) == len(words)


def _say(stage: Stage, name: str) -> None:
    groups, word = stage.engine(name).groups, f"{len(stage.sent)} "
    stage.sent += word
    stage.world.nodes[name].step(LocalCall(lambda: groups.submit("g", [word.encode()])))


def _compacts(stage: Stage, name: str, before: int) -> bool:
    return _log(stage, name).checkpoint_seq > before


def _log(stage: Stage, name: str) -> Log:
    group = stage.engine(name).groups._by_name["g"]
    assert group.seat is not None
    return group.seat.replica.log


def _stored(stage: Stage, name: str) -> int:
    """The checkpoint that the disk has."""
    return max(log.checkpoint_seq for log in stage.world.nodes[name].disk.logs.values() if log.about)
