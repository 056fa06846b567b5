"""The search agrees with trying every order, on every small history."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from groupsvc.testing.sim.checkers.linearizability import Operation, obstacle


def possible(order: Sequence[Operation]) -> bool:
    """Whether the operations, in this order, respect real time and the register's rules."""
    holds = 0
    for place, op in enumerate(order):
        if any(later.ended < op.began for later in order[place + 1 :]):
            return False
        if not op.write:
            if op.version != holds:
                return False
        elif op.version <= holds or (op.replaces is not None and op.replaces != holds):
            return False
        else:
            holds = op.version
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Up to five overlapping operations, every moment used once."""
    count = draw(st.integers(0, 5))
    moments = draw(st.permutations(range(2 * count)))
    operations = []
    for number in range(count):
        began, ended = sorted(moments[2 * number : 2 * number + 2])
        write = draw(st.booleans())
        version = draw(st.integers(1 if write else 0, 3))
        replaces = draw(st.none() | st.integers(0, 2)) if write else None
        operations.append(Operation(began, ended, write=write, version=version, replaces=replaces))
    return operations


@given(histories())
def test_the_search_finds_an_order_exactly_when_there_is_one(operations: list[Operation]) -> None:
    assert any(map(possible, permutations(operations))) == (obstacle(operations) is None)


def test_hundreds_of_reads_at_a_time_cost_no_more_than_one_after_the_other() -> None:
    """All overlap with two writes, and one read is wrong: the search goes back over all of them and ends."""
    reads = [Operation(number, 1000 + number, write=False, version=number % 3) for number in range(300)]
    writes = [Operation(400, 500, write=True, version=1), Operation(401, 501, write=True, version=2)]
    assert obstacle([*reads, *writes]) is None
    wrong = Operation(600, 601, write=False, version=1)
    assert wrong == obstacle([*reads, *writes, wrong])
