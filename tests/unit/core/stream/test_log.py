"""The log behaves like a plain list of which the oldest part may be gone."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from groupsvcd.core.invariants import InvariantBroken
from groupsvcd.core.records import StoredStream
from groupsvcd.core.stream.entries import Piece, Run, one_by_one, size_of
from groupsvcd.core.stream.log import Log

WORD = st.binary(min_size=1, max_size=5)
RUN = st.builds(Run, st.just("D"), st.just(1), st.integers(1, 9), st.lists(WORD, min_size=1, max_size=5).map(tuple))
PIECES = st.lists(WORD | RUN, max_size=5).map(tuple)


class LogMachine(RuleBasedStateMachine):
    """The model keeps every entry ever; the log may forget those up to its base."""

    def __init__(self) -> None:
        super().__init__()
        self.log = Log()
        self.model: list[bytes] = []
        self.base = 0

    @rule(pieces=PIECES)
    def append(self, pieces: tuple[Piece, ...]) -> None:
        self.log.append(pieces)
        self.model.extend(one_by_one(pieces))

    @rule(pieces=PIECES, data=st.data())
    def switch(self, pieces: tuple[Piece, ...], data: st.DataObject) -> None:
        keep = data.draw(st.integers(max(self.base, self.log.checkpoint_seq), len(self.model)))
        epoch = self.log.accepted + 1
        self.log.switch(epoch, keep, pieces)
        self.model[keep:] = one_by_one(pieces)
        assert epoch == self.log.accepted

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def take_a_checkpoint(self, data: st.DataObject) -> None:
        seq = data.draw(st.integers(self.log.checkpoint_seq, len(self.model)))
        drop = data.draw(st.integers(0, seq))
        self.log.set_checkpoint(seq, b"state", drop)
        self.base = max(self.base, drop)

    @rule(ahead=st.integers(1, 5))
    def skip_to_a_checkpoint_of_another(self, ahead: int) -> None:
        seq = len(self.model) + ahead
        self.log.set_checkpoint(seq, b"theirs", seq)
        self.model += [b"unseen"] * ahead
        self.base = seq

    @rule(first=st.integers(1, 30), upto=st.integers(0, 30), bytes_max=st.integers(0, 40))
    def slice(self, first: int, upto: int, bytes_max: int) -> None:
        wanted = self.model[max(first - 1, self.base) : max(upto, self.base)]
        found = list(self.log.slice(first, upto, bytes_max))
        assert wanted[: len(found)] == found
        assert bool(wanted) == bool(found)
        if len(found) > 1:
            assert bytes_max >= sum(map(len, found))
        if len(found) < len(wanted):
            assert bytes_max < sum(map(len, wanted[: len(found) + 1]))

    @rule(data=st.data())
    def between(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(self.base + 1, len(self.model) + 1))
        upto = data.draw(st.integers(first - 1, len(self.model)))
        assert self.model[first - 1 : upto] == self.log.between(first, upto)

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert len(self.model) == self.log.last
        assert self.base == self.log.base
        assert self.model[self.base :] == self.log.entries
        assert self.base <= self.log.checkpoint_seq or self.base == 0
        for seq in range(self.base + 1, len(self.model) + 1):
            assert self.model[seq - 1] == self.log.entry(seq)

    @invariant()
    def counts_what_it_holds(self) -> None:
        assert len(self.model) - self.base == self.log.count
        assert sum(map(size_of, self.log.pieces(self.base + 1, self.log.last))) == self.log.bytes


TestLog = LogMachine.TestCase


def test_a_log_continues_what_was_stored() -> None:
    """``base + 1`` is the first entry that is kept."""
    stored = StoredStream(promised=9, accepted=7, base=3, entries=(b"d", b"e"), checkpoint_seq=4, checkpoint=b"state")
    log = Log(stored)
    assert (7, 3, 5, 4, b"state") == (log.accepted, log.base, log.last, log.checkpoint_seq, log.checkpoint)
    assert b"e" == log.entry(5)


@pytest.mark.parametrize("keep", [2, 6])
def test_nothing_is_kept_that_is_not_there(keep: int) -> None:
    """Neither what was dropped already nor what never was."""
    log = Log(StoredStream(base=3, entries=(b"d", b"e"), checkpoint_seq=3))
    with pytest.raises(InvariantBroken, match=f"cannot keep up to {keep}"):
        log.switch(2, keep, ())


def test_no_entry_after_the_checkpoint_is_dropped() -> None:
    """It could not be rebuilt."""
    with pytest.raises(InvariantBroken, match="cannot drop"):
        Log(StoredStream(entries=(b"a", b"b"))).set_checkpoint(1, b"state", 2)
