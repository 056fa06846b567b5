"""Checkpoints in blocks: whatever is lost, doubled or comes from elsewhere, what comes out is one whole checkpoint."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.peer_messages import Repair, RepairAsk
from groupsvcd.core.stream.assembly import Assembly

STATES = {
    ("B", 10): b"the state after ten, as B has it",
    ("B", 12): b"the state after twelve, as B has it; longer",
    ("C", 10): b"C wrote the same state in another form",
}


def _block(server: str, seq: int, offset: int, size: int) -> Repair:
    state = STATES[server, seq]
    return Repair(0, 1, seq, seq + 1, (), seq, offset, len(state), state[offset : offset + size])


BLOCKS = st.tuples(st.sampled_from(sorted(STATES)), st.integers(0, 30), st.integers(1, 20))


@given(blocks=st.lists(BLOCKS, max_size=60))
def test_what_comes_out_is_always_one_whole_checkpoint(blocks: list[tuple[tuple[str, int], int, int]]) -> None:
    """Blocks of three checkpoints in any order: never a mixture, never a piece."""
    assembly = Assembly()
    for (server, seq), offset, size in blocks:
        state = assembly.take(server, _block(server, seq, offset, size))
        assert state in (None, STATES[server, seq])


@given(noise=st.lists(BLOCKS, max_size=20), size=st.integers(1, 50), server=st.sampled_from(["B", "C"]))
def test_asking_for_the_next_block_gets_to_the_end(
    noise: list[tuple[tuple[str, int], int, int]], size: int, server: str
) -> None:
    """Whatever came before, a server that answers what it is asked for brings it to an end (SAM-07)."""
    assembly = Assembly()
    for (other, seq), offset, length in noise:
        assembly.take(other, _block(other, seq, offset, length))
    newest = max(seq for name, seq in STATES if name == server)
    for _ in range(100):
        ask = assembly.ask(server, 0, 5, 20)
        offset = ask.checkpoint_offset if ask.checkpoint_seq == newest else 0
        state = assembly.take(server, _block(server, newest, offset, size))
        if state is not None:
            break
        assert assembly.grew
    assert STATES[server, newest] == state


def test_the_first_ask_names_no_checkpoint() -> None:
    """The server may still have the entries."""
    assert RepairAsk(0, 5, 9) == Assembly().ask("B", 0, 5, 9)


def test_a_block_that_came_before_brings_nothing_new() -> None:
    """Or every doubled frame would cause another ask."""
    assembly = Assembly()
    for grew in (True, False):
        assembly.take("B", _block("B", 10, 0, 8))
        assert grew == assembly.grew
    assert RepairAsk(0, 5, 9, 10, 8) == assembly.ask("B", 0, 5, 9)
    assert RepairAsk(0, 5, 9) == assembly.ask("C", 0, 5, 9)
