"""The roll is a function of the stream: the same entries give the same members, origins and fence everywhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.nodegroups.controls import (
    AnyControl,
    NodeInserted,
    NodeRemoved,
    NodesFailed,
    ViewStarted,
    decode_control,
    encode_control,
)
from groupsvcd.core.nodegroups.roll import PRUNE_EVERY, Roll
from groupsvcd.core.stream.entries import Run
from groupsvcd.core.views import NodeId

LIFETIME = 10
D, E, F = ("D", 1), ("E", 1), ("F", 1)
VIEW = ViewStarted(7, "D", (D, E), 2, fence=7 << 20)


def _roll(*controls: AnyControl) -> Roll:
    roll = Roll(LIFETIME)
    for seq, control in enumerate(controls, 1):
        roll.apply(seq, control)
    return roll


nodes = st.sampled_from([(name, incarnation) for name in "DEF" for incarnation in (1, 2)])
controls: st.SearchStrategy[AnyControl] = st.one_of(
    st.builds(ViewStarted, st.integers(1, 9), st.sampled_from("DEF"), st.just((D, E)), st.just(2), st.integers(0, 9)),
    st.builds(NodeInserted, nodes, st.integers(1, 9), st.integers(0, 9)),
    st.builds(NodeRemoved, nodes),
    st.builds(NodesFailed, st.lists(nodes, min_size=1, max_size=2, unique=True).map(tuple)),
)


@given(ordered=st.lists(controls, max_size=30), cut=st.integers(0, 30))
def test_a_snapshot_in_the_middle_changes_nothing(ordered: list[AnyControl], cut: int) -> None:
    """GS-04. Who was inserted late has the roll from a snapshot, and is then like those who saw every entry."""
    whole = _roll(*ordered)
    before, restored = _roll(*ordered[:cut]), Roll(LIFETIME)
    restored.restore(before.snapshot())
    for seq, control in enumerate(ordered[cut:], len(ordered[:cut]) + 1):
        restored.apply(seq, control)
    assert whole.snapshot() == restored.snapshot()
    assert list(whole.members) == list(restored.members)
    assert (whole.servers, whole.k, whole.fence) == (restored.servers, restored.k, restored.fence)


@given(first=st.integers(1, 2 * PRUNE_EVERY), lengths=st.lists(st.integers(1, PRUNE_EVERY + 99), max_size=4))
def test_however_entries_come_together_the_roll_is_the_same(first: int, lengths: list[int]) -> None:
    """One node gets them in runs, another one by one out of a repair; who was silent is forgotten at the same one."""
    at_once, one_by_one = _roll(), _roll()
    at_once.origins[F] = one_by_one.origins[F] = (5, first - 1)
    runs = [Run(name, 1, 1, (b"",) * length) for name, length in zip("DEFG", lengths, strict=False)]
    at_once.note(first, runs)
    entries = [run.part(position, position + 1) for run in runs for position in range(len(run.bodies))]
    for seq, entry in enumerate(entries, first):
        one_by_one.note(seq, [entry])
    assert one_by_one.origins == at_once.origins


@given(control=controls)
def test_a_control_entry_is_read_as_it_was_written(control: AnyControl) -> None:
    """By members of every later version, too."""
    assert control == decode_control(encode_control(control))


def test_members_are_in_the_order_in_which_they_joined() -> None:
    """GS-04. Who leaves and comes back stands at the end."""
    roll = _roll(VIEW, NodeInserted(D, 1, 0), NodeInserted(E, 1, 0), NodeInserted(F, 1, 0), NodeRemoved(D))
    assert [E, F] == list(roll.members)
    roll.apply(6, NodeInserted(D, 2, 0))
    assert [E, F, D] == list(roll.members)


def test_a_view_says_who_leads_and_who_serves() -> None:
    """GS-09. Every member knows from the stream itself whom to submit to."""
    roll = _roll(VIEW)
    assert (7, "D", ("D", "E"), 2) == (roll.epoch, roll.leader, roll.server_names, roll.k)


def test_every_change_of_members_has_a_fence_of_its_own() -> None:
    """L6. It grows within a view, and the fence of the next view lies above all of them."""
    roll, fences = Roll(LIFETIME), []
    later = ViewStarted(9, "E", (E,), 1, fence=9 << 20)
    ordered: list[AnyControl] = [VIEW, NodeInserted(D, 1, 0), NodeRemoved(D), NodesFailed((E,)), later]
    for seq, control in enumerate(ordered, 1):
        roll.apply(seq, control)
        fences.append(roll.fence)
    assert [7 << 20, (7 << 20) + 1, (7 << 20) + 2, (7 << 20) + 3, 9 << 20] == fences


def test_the_numbers_of_a_new_member_follow_what_it_knows_of() -> None:
    """It submitted from outside before: nobody remembers it any more, and it does not begin at 1 again."""
    assert {D: (5, 1)} == _roll(NodeInserted(D, 1, last_n=5)).origins


def test_what_the_roll_knows_of_an_origin_outlasts_its_leaving() -> None:
    """B1. A late copy of what it had submitted must not be numbered a second time."""
    roll = _roll(NodeInserted(D, 1, 0))
    roll.origins[D] = (3, 2)
    roll.apply(3, NodeRemoved(D))
    roll.apply(4, NodeInserted(D, 2, last_n=0))
    assert (3, 2) == roll.origins[D]


def test_an_origin_that_failed_is_forgotten() -> None:
    """GS-08. Its incarnation submits nothing any more."""
    roll = _roll(NodeInserted(D, 1, 0), NodeInserted(E, 1, 0), NodesFailed((D,)))
    assert ([E], [E]) == (list(roll.members), list(roll.origins))


def test_who_is_unknown_may_be_removed_again() -> None:
    """A new leader may order what the one before it had ordered already."""
    roll = _roll(NodeInserted(D, 1, 0), NodeRemoved(D), NodeRemoved(D), NodesFailed((D, E)))
    assert {} == roll.members


def test_strangers_that_were_silent_for_a_lifetime_are_forgotten() -> None:
    """SAM-09. Members are not, however long they are silent."""
    roll = _roll(NodeInserted(D, 1, 0))
    roll.origins |= {E: (4, 5), F: (4, 6)}
    roll.prune(5 + LIFETIME)
    assert [D, E, F] == list(roll.origins)
    roll.prune(6 + LIFETIME)
    assert [D, F] == list(roll.origins)


def test_all_forget_at_the_same_entries() -> None:
    """Otherwise the next leader would know other origins than the one before."""
    roll = _roll()
    roll.origins[E] = (1, 1)
    roll.apply(PRUNE_EVERY - 1, NodeInserted(D, 1, 0))
    assert E in roll.origins
    roll.apply(PRUNE_EVERY, NodeInserted(F, 1, 0))
    assert E not in roll.origins


def test_a_snapshot_does_not_depend_on_the_order_of_the_origins() -> None:
    """Two members that met them in different ways have the same bytes."""
    one, other = Roll(LIFETIME), Roll(LIFETIME)
    rows: list[tuple[NodeId, tuple[int, int]]] = [(D, (1, 1)), (E, (2, 2))]
    one.origins, other.origins = dict(rows), dict(reversed(rows))
    assert one.snapshot() == other.snapshot()
