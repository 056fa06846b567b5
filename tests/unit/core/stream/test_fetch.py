"""A checkpoint in blocks from several servers: in parallel, within limits, and whatever happens to one of them."""

from __future__ import annotations

import math
from zlib import crc32

from groupsvcd.core.stream.checkpoints import Described
from groupsvcd.core.stream.fetch import IN_FLIGHT_EACH_MAX, IN_FLIGHT_MAX, Fetch

STATE = bytes(range(100))
WHOLE = Described(2000, len(STATE), crc32(STATE))


def _fetch(sources: str = "BC", described: Described = WHOLE, block_bytes: int = 10) -> Fetch:
    return Fetch(described, sources, block_bytes=block_bytes, patience=1.0)


def _answer(fetch: Fetch, asks: list[tuple[str, int, int]], state: bytes = STATE) -> None:
    for server, offset, size in asks:
        fetch.take(server, WHOLE, offset, state[offset : offset + size])


def _run(fetch: Fetch, now: float = 1.0) -> dict[str, int]:
    """Everybody answers at once; how many blocks each server gave."""
    given: dict[str, int] = {}
    while not fetch.is_whole:
        asks = fetch.next_asks(now)
        assert asks
        for server, _, _ in asks:
            given[server] = given.get(server, 0) + 1
        _answer(fetch, asks)
    return given


def test_different_blocks_are_asked_from_different_servers() -> None:
    """SAM-07, SAM-08. Each gives about as much as the others."""
    fetch = _fetch()
    assert {"B": 5, "C": 5} == _run(fetch)
    assert (STATE, {"B", "C"}) == (fetch.state, fetch.served)


def test_the_last_block_is_as_long_as_what_is_left() -> None:
    fetch = _fetch(block_bytes=30)
    assert [30, 30, 30, 10] == [size for _, _, size in fetch.next_asks(1.0)]


def test_only_so_many_are_on_their_way() -> None:
    assert 2 * IN_FLIGHT_EACH_MAX == len(_fetch().next_asks(1.0))
    many = _fetch("BCDEFGHI")
    assert IN_FLIGHT_MAX == len(many.next_asks(1.0))
    assert [] == many.next_asks(1.0)


def test_a_server_that_does_not_answer_is_left_out_and_the_others_give_its_blocks() -> None:
    """It died in the middle."""
    fetch = _fetch()
    asks = fetch.next_asks(1.0)
    _answer(fetch, [ask for ask in asks if ask[0] == "B"])
    assert 2.0 == fetch.deadline
    asks = fetch.next_asks(1.5)
    assert {"B"} == {server for server, _, _ in asks}
    _answer(fetch, asks)
    assert {"B"} == set(_run(fetch, 2.0))
    assert STATE == fetch.state


def test_a_server_that_has_it_no_longer_is_left_out() -> None:
    """It has taken newer ones, or never had this."""
    fetch = _fetch()
    asks = fetch.next_asks(1.0)
    fetch.take("C", Described(2000, 0, 0), 10, b"")
    _answer(fetch, [ask for ask in asks if ask[0] == "B"])
    assert {"B": 8} == _run(fetch)
    assert STATE == fetch.state


def test_a_server_with_another_state_after_the_same_entry_is_left_out() -> None:
    """Its machine depends on more than the entries; its bytes must not be mixed with the others'."""
    fetch = _fetch()
    asks = fetch.next_asks(1.0)
    fetch.take("C", Described(2000, len(STATE), 4711), 10, STATE[10:20])
    _answer(fetch, [ask for ask in asks if ask[0] == "B"])
    _run(fetch)
    assert ({"B"}, STATE) == (fetch.served, fetch.state)


def test_when_nobody_is_left_it_is_hopeless() -> None:
    fetch = _fetch()
    fetch.next_asks(1.0)
    assert [] == fetch.next_asks(2.0)
    assert fetch.is_hopeless
    assert math.inf == fetch.deadline


def test_a_block_that_comes_twice_or_late_changes_nothing() -> None:
    fetch = _fetch()
    asks = fetch.next_asks(1.0)
    fetch.next_asks(2.0)  # both were given up
    _answer(fetch, asks)
    _answer(fetch, asks)
    assert not fetch.is_whole
    assert set(range(0, 10 * len(asks), 10)) == set(fetch._blocks)


def test_blocks_that_do_not_add_up_are_fetched_anew_from_one_server() -> None:
    """Somebody's bytes are not what it says; nobody knows whose."""
    fetch = _fetch()
    while not fetch.is_whole:
        for server, offset, size in fetch.next_asks(1.0):
            fetch.take(server, WHOLE, offset, STATE[offset : offset + size] if server == "B" else bytes(size))
    assert fetch.state is None
    anew = fetch.from_one()
    assert anew is not None
    assert {"B": 10} == _run(anew)
    assert STATE == anew.state
    assert anew.from_one() is None


def test_an_empty_state_is_whole_at_once() -> None:
    fetch = _fetch(described=Described(7, 0, 0))
    assert (True, b"") == (fetch.is_whole, fetch.state)
