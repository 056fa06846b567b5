"""The running digest of what is delivered: the same for the same entries, however they came together."""

from __future__ import annotations

from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.effects import Journal
from groupsvcd.core.peer_messages import Order
from groupsvcd.core.records import StoredStream
from groupsvcd.core.stream.carrier import Carrier
from groupsvcd.core.stream.digests import SAMPLED_EVERY, RunningDigest
from groupsvcd.core.stream.entries import Run, encode_entry
from groupsvcd.core.stream.receiver import Receiver
from groupsvcd.core.turn import Turn
from tests.unit.core.stream.list_host import ListHost, drain, entries, replica_of, state_after

Said = tuple[str, int, int, bytes]


def digest_of(said: list[Said], base: int = 0, cuts: tuple[int, ...] = ()) -> str:
    """Of entries one by one, or with the runs of one origin that follow one another put together up to the cuts."""
    digest = RunningDigest(base)
    seq = base + 1
    start = 0
    for end in (*sorted({cut for cut in cuts if 0 < cut < len(said)}), len(said)):
        runs: list[Run] = []
        for origin, incarnation, n, body in said[start:end]:
            last = runs[-1] if runs else None
            if (
                last is not None and origin and cuts
                and (last.origin, last.incarnation, last.n + len(last.bodies)) == (origin, incarnation, n)
            ):  # fmt: skip
                runs[-1] = Run(origin, incarnation, last.n, (*last.bodies, body))
            else:
                runs.append(Run(origin, incarnation, n, (body,)))
        digest.add(seq, runs)
        seq += end - start
        start = end
    return digest.text


def by_the_book(said: list[Said], base: int = 0) -> str:
    """As docs/reference/journal.md says it."""
    places, checksum = 0, 0
    for seq, (origin, incarnation, n, body) in enumerate(said, base + 1):
        places += (crc32(f"{origin}/{incarnation}".encode()) | 1) * seq * (n + 1)
        if not origin or seq % 64 == 0:
            checksum = crc32(body, checksum)
    return f"{checksum:08x}{places % 2**32:08x}"


some_entries = st.lists(
    st.tuples(st.sampled_from(["", "a", "b"]), st.integers(1, 2), st.integers(0, 3), st.binary(max_size=4)), max_size=80
)


@given(said=some_entries, base=st.integers(0, 100), cuts=st.lists(st.integers(0, 80), max_size=6))
def test_it_hangs_on_the_entries_and_not_on_how_they_came_together(
    said: list[Said], base: int, cuts: list[int]
) -> None:
    expected = by_the_book(said, base)
    assert expected == digest_of(said, base) == digest_of(said, base, (*cuts, 1))


def test_a_long_run_has_the_digest_of_its_entries() -> None:
    said: list[Said] = [("a", 7, n, f"{n}".encode()) for n in range(5, 505)]
    assert by_the_book(said, 3) == digest_of(said, 3, (250,))


def test_two_entries_that_have_changed_places_are_noticed() -> None:
    """B4, of one origin as of two, though their bodies are the same."""
    for other in ("a", "b"):
        said: list[Said] = [("a", 1, 1, b"x"), (other, 1, 2, b"x"), ("a", 1, 3, b"x")]
        assert digest_of(said) != digest_of([said[1], said[0], said[2]])


def test_another_body_is_noticed_in_what_is_sampled_and_in_what_the_leader_orders() -> None:
    said: list[Said] = [("a", 1, n, b"x") for n in range(SAMPLED_EVERY)]
    assert digest_of(said) != digest_of([*said[:-1], ("a", 1, SAMPLED_EVERY - 1, b"y")])
    assert digest_of([("", 0, 0, b"x")]) != digest_of([("", 0, 0, b"y")])


class GroupLike(Carrier):
    """As for a group whose journal has digests."""

    delivers_batches = True
    journals_entries = False
    journals_digests = True


def test_the_lines_of_two_members_agree_wherever_batches_of_both_end() -> None:
    """One has everything from the beginning; one begins behind a checkpoint, and agrees after the next view."""
    before = (encode_entry("E", 1, n, b"x") for n in range(1, 6))
    after = (encode_entry("F", 1, n, b"y") for n in (1, 2, 3))
    said = (*before, *entries("v"), *after)
    lines = []
    for batches, checkpoint in (((5, 7, 9), 0), ((6, 9), 0), ((8, 9), 3)):
        turn = Turn("D")
        turn.now = 1.0
        receiver = Receiver(replica_of(turn, ListHost(), StoredStream(), "ABC", carrier=GroupLike))
        if checkpoint:
            receiver.replica.skip_to(checkpoint, state_after(entries("abc")), 7)
        for upto in batches:
            receiver.on_order("A", Order(0, 7, 1, said[:upto], upto))
        told = [effect for effect in drain(turn) if isinstance(effect, Journal) and effect.op == "delivered"]
        lines.append({(line.args["base"], line.seq): line.args["digest"] for line in told})
    assert [[(0, 5), (0, 6), (6, 7), (6, 9)], [(0, 6), (6, 9)], [(3, 6), (6, 8), (6, 9)]] == [
        list(one) for one in lines
    ]
    first, second, third = lines
    assert first[0, 6] == second[0, 6]
    assert first[6, 9] == second[6, 9] == third[6, 9]
    assert first[0, 6] != third[3, 6]
