"""New and lagging members get a checkpoint in blocks from several servers, while traffic goes on (SAM-07, SAM-08)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groupsvcd.core.peer_messages import Beat, Block, BlockAsk, Order, Repair
from groupsvcd.core.stream import checkpoints
from groupsvcd.core.views import AttributeValue

from .carriers import GROUP, Carriers, Witness

SMALL = {"checkpoint_block_bytes": 40, "retention_margin": 2}


class Sum(Witness):
    """A machine: all that was ever submitted, as one text."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.restored_at: list[int] = []

    def delivered(self, first_seq: int, entries: Any) -> None:
        """Add the bodies."""
        super().delivered(first_seq, entries)
        self.text += "".join(entry.body.decode() + " " for entry in entries if entry.origin)

    def snapshot(self) -> bytes:
        """The text."""
        return self.text.encode()

    def restore(self, seq: int, state: bytes) -> None:
        """Become another's text."""
        self.restored_at.append(seq)
        self._next, self.text = seq + 1, state.decode()


def _join(nodes: Carriers, name: str, **attributes: AttributeValue) -> Sum:
    user = Sum()
    nodes.users[name, GROUP] = user
    nodes.act(name, lambda groups: groups.join(GROUP, attributes, user, user))
    return user


def _nodes(carriers: str = "DEF", history: int = 20) -> tuple[Carriers, list[Sum]]:
    """A group with machines, and a checkpoint of several blocks that is advertised."""
    nodes = Carriers(**SMALL)
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    sums = []
    for name in carriers:
        sums.append(_join(nodes, name, checkpoint_every=10, history_entries_max=history))
        nodes.run(0.3)
    for number in range(60):
        nodes.submit("E", f"before-{number}")
        nodes.run(0.02)
    nodes.run(1.0)
    nodes.forget_the_past()
    return nodes, sums


def _gave(nodes: Carriers, name: str) -> int:
    return sum(1 for block in nodes.messages(Block, name) if block.size)


def test_a_new_member_fetches_different_blocks_from_different_servers() -> None:
    """Not from the leader, which has enough to do; its state is that of the others in the end."""
    nodes, sums = _nodes()
    late = _join(nodes, "G")
    nodes.run_until(lambda: bool(nodes.messages(BlockAsk, "G")))
    nodes.submit("D", "meanwhile")
    nodes.run(1.0)
    assert {sums[0].text} == {one.text for one in (*sums, late)}
    assert 1 == len(late.restored_at)
    assert 2 <= _gave(nodes, "E")
    assert 2 <= _gave(nodes, "F")
    assert 0 == _gave(nodes, "D")


def test_a_server_that_dies_in_the_middle_is_done_without() -> None:
    nodes, sums = _nodes()
    nodes.lose(Block, "F>G")
    late = _join(nodes, "G")
    nodes.run(2.5)
    assert {sums[0].text} == {one.text for one in (*sums, late)}
    assert 0 < _gave(nodes, "E")


def test_servers_that_take_newer_checkpoints_in_the_middle_still_give_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SAM-08. Traffic does not make a slow fetch begin again and again; here a large state is only slow to come."""
    monkeypatch.setattr(checkpoints, "SMALL_KEPT", 2)
    monkeypatch.setitem(SMALL, "checkpoint_block_bytes", 10)
    nodes, sums = _nodes(history=200)
    nodes.delay = 0.02
    late = _join(nodes, "G")
    nodes.run_until(lambda: bool(nodes.messages(BlockAsk, "G")))
    wanted = nodes.messages(BlockAsk, "G")[0].seq
    for number in range(60):
        nodes.submit("E", f"meanwhile-{number}")
        nodes.run(0.02)
    nodes.run(1.5)
    assert wanted + 20 < nodes.seat("E").replica.checkpoints.advertised.seq
    assert [wanted] == late.restored_at
    assert {sums[0].text} == {one.text for one in (*sums, late)}


@pytest.mark.parametrize("name", ["E", "F"])
def test_bytes_that_do_not_add_up_are_dropped_and_fetched_from_one_server(name: str) -> None:
    """A server's memory is not what it says it is; if just that one was chosen, another one is."""
    nodes, sums = _nodes()
    spoil = nodes.seat(name).replica.checkpoints._kept
    spoil.update({seq: (described, bytes(len(state))) for seq, (described, state) in spoil.items()})
    late = _join(nodes, "G")
    nodes.run(3.0)
    assert {sums[0].text} == {one.text for one in (*sums, late)}
    assert any("do not add up" in line.args["text"] for line in nodes.lines("trouble"))


def test_a_member_that_lagged_goes_on_from_a_checkpoint_of_several_servers() -> None:
    """GS-12. Nobody waited for it beyond the history."""
    nodes, sums = _nodes("DEFG")
    nodes.loses = lambda sender, receiver, message: receiver == "G" and sender in "DEF"
    for number in range(60):
        nodes.submit("E", f"away-{number}")
        nodes.run(0.02)
    nodes.run(1.0)
    nodes.heal()
    nodes.run(3.0)
    assert {sums[0].text} == {one.text for one in sums}
    assert sums[3].restored_at
    assert [] == sums[3].losses


def test_what_nobody_fetches_and_nobody_has_is_said_so() -> None:
    """A late question for a checkpoint of long ago."""
    nodes, _ = _nodes()
    nodes.frame("G", "E", BlockAsk(nodes.id(), 7, 0, 10))
    (answer,) = nodes.messages(Block, "E", "G")
    assert (7, 0, b"") == (answer.seq, answer.size, answer.block)
    assert msgspec.structs.asdict(answer)["crc"] == 0


def test_payloads_of_entries_that_were_skipped_are_not_kept() -> None:
    """X1. F has the bytes and missed their number; the checkpoint it goes on from is behind that entry."""
    nodes, _ = _nodes(history=4)
    nodes.lose((Order, Beat, Repair), "D>F E>F")
    large = "x" * 20_000
    nodes.submit("D", large)
    nodes.run(0.05)
    payloads = nodes.seat("F").replica.library.payloads
    assert 1 == len(payloads.unordered)
    for number in range(12):
        nodes.submit("D", str(number))
        nodes.run(0.3)
    nodes.heal()
    nodes.run(3.0)
    assert nodes.seat("D").replica.delivered == nodes.seat("F").replica.delivered
    assert () == payloads.unordered
