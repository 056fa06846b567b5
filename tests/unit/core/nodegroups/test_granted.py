"""What is enough to take over a group's stream: whatever was stable must be in one of the logs that were reported."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.invariants import InvariantBroken
from groupsvcd.core.nodegroups.granted import Granted
from groupsvcd.core.peer_messages import Claim, Promised
from groupsvcd.core.views import Server, View

D, E, F, G = ("D", 1), ("E", 1), ("F", 1), ("G", 1)
P = View(7, "D", (D, E, F), 2)


def _granted(
    *servers: Server, base: View = P, forced: bool = False, up: str = "DEFGH", k: int = 1, me: str = "E",
    has_led: bool = False,
) -> Granted:  # fmt: skip
    view = View(9, me, servers, k, forced=forced, base=base.epoch)
    granted = Granted(3, me, view, base, is_up=lambda name: name in up, opened=lambda: None, has_led=has_led)
    for server in (*base.servers, *servers):
        granted.recognises(server)
    return granted


def _reports(names: str, accepted: int = 7) -> dict[str, Promised]:
    return {name: Promised(3, 9, accepted, 5, 5, 0) for name in names}


def test_enough_promises_meet_every_quorum_of_the_view_before() -> None:
    """L4. |S| - k + 1 of S: two of three when k is two, all of them when k is one, one when k is three."""
    for k, enough in [(1, 3), (2, 2), (3, 1)]:
        granted = _granted(E, F, base=View(7, "D", (D, E, F), k))
        for count in (1, 2, 3):
            answer = granted.counting(_reports("EFD"[:count]))
            assert (count >= enough) == (answer is not None), (k, count)


def test_who_led_the_view_before_needs_no_more_than_could_go_on_in_it() -> None:
    """L4, V7. It has all that was numbered; but who hears fewer than k does not take the group with it."""
    for k, enough in [(1, 1), (2, 2), (3, 1)]:
        granted = _granted(D, E, base=View(7, "D", (D, E, F), k), me="D", has_led=True)
        for count in (1, 2, 3):
            answer = granted.counting(_reports("DEF"[:count]))
            assert (count >= enough) == (answer is not None), (k, count)
    four = View(7, "D", (D, E, F, G), 2)
    assert _granted(D, base=four, me="D", has_led=True).counting(_reports("D")) is None
    assert _granted(D, base=four, me="D", has_led=True).counting(_reports("DG")) is not None
    assert _granted(D, base=four, me="D", has_led=False).counting(_reports("DG")) is None


@given(size=st.integers(1, 5), data=st.data())
def test_no_quorum_escapes_those_who_promised(size: int, data: st.DataObject) -> None:
    """L4. Whoever k servers held an entry, one of them is among the promises that were enough."""
    k = data.draw(st.integers(1, size))
    names = "ABCDE"[:size]
    base = View(7, "A", tuple((name, 1) for name in names), k)
    promised = data.draw(st.sets(st.sampled_from(names), min_size=1))
    me = min(promised)
    granted = _granted((me, 1), base=base, me=me)
    if granted.counting(_reports("".join(sorted(promised)))) is not None:
        for holders in itertools.combinations(names, k):
            assert promised & set(holders)


def test_without_the_log_of_the_view_before_no_number_of_promises_is_enough() -> None:
    """S2. All three promise, and nobody has what k of them must have held: disks are not what they were."""
    assert _granted(E, F).counting(_reports("EFD", accepted=6)) is None
    assert _granted(E, F).counting(_reports("EFD", accepted=0)) is None
    assert _granted(E, F).counting(_reports("EF", accepted=6) | _reports("D")) is not None


def test_promises_of_others_count_for_nothing() -> None:
    """However many there are: G and H never held what was stable in the view before."""
    granted = _granted(E, G, ("H", 1))
    assert granted.counting(_reports("EGH")) is None
    assert ["E", "G", "H", "F"] == granted.counting(_reports("EGHF"))


def test_another_incarnation_is_another_server() -> None:
    """A process that was started again has lost what it held, though it has the same name."""
    granted = _granted(E, ("F", 2), base=P)
    granted.recognises(("F", 2))
    assert granted.counting(_reports("EF")) is None
    granted.recognises(F)
    assert granted.counting(_reports("EF")) is not None


def test_a_stranger_is_not_recognised() -> None:
    """Neither in the base nor in the new view: its promise is not asked for, and not taken."""
    granted = _granted(E)
    assert not granted.recognises(G)
    assert not granted.recognises(("D", 2))
    assert ("D", "E", "F") == granted.asked()


def test_a_log_of_a_later_epoch_is_enough_by_itself() -> None:
    """Whoever opened it had asked enough of them before; that it was never active does not matter."""
    granted = _granted(E, F)
    reports = _reports("E") | {"F": Promised(3, 9, 8, 5, 5, 0)}
    assert ["E", "F"] == granted.counting(reports)
    granted = _granted(E, G)
    assert granted.counting(_reports("E") | {"G": Promised(3, 9, 8, 5, 5, 0)}) is not None


def test_nothing_is_enough_without_our_own_promise() -> None:
    """The leader promises first: it might have accepted entries of the view before while it counts."""
    assert _granted(E, F).counting(_reports("DF")) is None


def test_a_forced_grant_waits_for_everybody_who_is_up() -> None:
    """The quorum is lost, so no count is enough; but nobody who has something may be left out."""
    granted = _granted(E, base=P, forced=True, up="EF")
    assert granted.counting(_reports("E")) is None
    assert ["E", "F"] == granted.counting(_reports("EF"))
    assert ["E"] == _granted(E, base=P, forced=True, up="E").counting(_reports("E"))


def test_a_view_is_open_when_k_of_it_have_the_log_the_leader_among_them() -> None:
    """Servers of the view before that are not in the new one do not count."""
    granted = _granted(E, F, G, k=2)
    assert not granted.is_open({"E": 5})
    assert not granted.is_open({"F": 5, "G": 5})
    assert not granted.is_open({"E": 5, "D": 5})
    assert granted.is_open({"E": 5, "G": 5})


def test_the_claim_tells_the_view_and_goes_to_old_and_new_servers() -> None:
    """So that whoever gets it knows whether it will be told to open."""
    granted = _granted(E, G)
    assert Claim(3, 9, view=granted.granted) == granted.claim(is_chosen=False)
    assert (("D", "E", "F", "G"), ("E", "G")) == (granted.asked(), granted.opens())


def test_only_a_forced_grant_may_begin_with_nothing() -> None:
    """Somebody of the base has the stream, or a short cut was taken somewhere: stop instead."""
    assert () == _granted(E, forced=True).genesis()
    with pytest.raises(InvariantBroken, match="nobody of"):
        _granted(E).genesis()


def test_in_a_forced_grant_who_has_nothing_says_so() -> None:
    """All who are up are waited for: a server of the lost view that carries the group no longer would never answer."""
    assert [False, True] == [_granted(E, forced=forced).claim(is_chosen=False).from_all for forced in (False, True)]
