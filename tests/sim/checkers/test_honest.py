"""Legal executions that look like a broken promise, and none is reported."""

from __future__ import annotations

import time

from groupsvc.testing.sim.checkers import ALL, check

from .story import VOTERS, Story, honest, red


def test_an_honest_history_passes_all_checkers() -> None:
    assert [] == check(honest(), voters=VOTERS, converged=True)


def test_every_prefix_of_an_honest_history_passes() -> None:
    lines = honest()
    assert all(not red(lines[:length], converged=False) for length in range(len(lines)))


def test_an_empty_history_passes() -> None:
    assert set() == red([])


def test_every_invariant_of_the_domain_has_a_checker() -> None:
    expected = "V1 V2 V3 V4 V7 B1 B2 B3 B4 B6 L1 L2 L3 L4 L5 L7 S1 K1 C1 C2"
    assert expected == " ".join(ALL)


def test_two_nodes_may_claim_the_same_epoch_as_long_as_one_wins() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.persisted("a", "promise", epoch=1)
    s.spoke("a", "Claim", 1)
    s.promise(1, "b", "c")
    assert set() == red(s.lines, converged=False)


def test_a_blank_replacement_begins_anew_with_a_checkpoint() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.open(1, "a", "b", "c")
    for seq in range(1, 5):
        s.order(1, seq, "a", "b", "c")
    s.crash("c")
    s.boot("c", disk=2)
    s.add("c", "restored", epoch=1, seq=3)
    s.add("c", "view_installed", epoch=1, seq=4, args={"leader": "a", "members": list(VOTERS), "k": 2})
    s.persisted("c", "checkpoint", epoch=1, seq=3)
    s.persisted("c", "open", epoch=1, seq=4)
    s.spoke("c", "Opened", 1)
    s.deliver(1, 4, "c")
    s.order(1, 5, "a", "b", "c")
    assert set() == red(s.lines, converged=False)


def test_a_blank_voter_delivers_again_what_it_followed_from_outside() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b")
    s.open(1, "a", "b", last=1)  # the first entry of the domain is not ordered but recovered
    s.deliver(1, 1, "a", "b")
    s.order(1, 2, "a", "b")
    s.deliver(1, 1, "c")
    s.deliver(1, 2, "c")
    s.add("c", "restored", epoch=1, seq=0)
    s.deliver(1, 1, "c")
    s.deliver(1, 2, "c")
    assert set() == red(s.lines, converged=False)


def test_an_epoch_installed_in_memory_only_may_be_forgotten_by_a_crash() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b")
    s.promise(2, "b", "a")
    s.open(2, "b", "a")
    s.add("c", "view_installed", epoch=2, args={"leader": "b", "members": list(VOTERS), "k": 2})
    s.crash("c")
    s.boot("c")
    s.add("c", "view_installed", epoch=1, args={"leader": "a", "members": list(VOTERS), "k": 2})
    assert set() == red(s.lines, converged=False)


def test_a_memory_only_domain_of_one_starts_again_after_a_restart() -> None:
    s = Story()
    for first in (10, 4):
        s.boot("d", durable=False)
        call = s.invoke("x", "config_set", node="d", key="k", value=f"x{first}", if_version=0)
        for seq in (first, first + 1):
            s.add("d", "view_installed", epoch=seq, args={"leader": "d", "members": ["d"], "k": 1})
            s.add("d", "ordered", epoch=first, seq=seq, crc=first)
            s.add("d", "stable", epoch=first, seq=seq)
            s.add("d", "delivered", epoch=first, seq=seq, crc=first)
        s.end("x", "config_set", call, node="d", version=first)
        s.crash("d")
    assert set() == red(s.lines, converged=False, voters=("d",))


def test_an_old_leader_may_announce_late_what_the_new_one_has_recovered() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.open(1, "a", "b", "c")
    s.order(1, 1, "a", "b", "c")
    s.add("a", "ordered", epoch=1, seq=2, crc=0xABC002)
    for node in ("a", "b"):
        s.persisted(node, "append", epoch=1, seq=2)
    s.add("b", "held", epoch=1, seq=2)
    s.promise(2, "b", "c")
    s.open(2, "b", "c", base=1, last=2)
    s.add("a", "stable", epoch=1, seq=2)
    assert set() == red(s.lines, converged=False)


def test_a_slow_winner_may_recover_less_than_a_later_leader_has_delivered() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.promise(2, "b", "c")
    s.open(2, "b", "c")
    s.order(2, 1, "b", "c")
    s.add("a", "recovered", epoch=1, args={"last": 0, "base": 0, "tail": []})
    assert set() == red(s.lines, converged=False)


def test_one_sync_may_cover_a_promise_and_the_held_before_it() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.open(1, "a", "b", "c")
    s.persisted("c", "append", epoch=1, seq=0)
    s.persisted("c", "promise", epoch=2)
    s.add("c", "held", epoch=1, seq=0)
    s.spoke("c", "Promised", 2)
    assert set() == red(s.lines, converged=False)


def test_a_long_history_is_judged_in_linear_time() -> None:
    """Ten times the guarded time on a slow machine; a quadratic scan would need hours."""
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.open(1, "a", "b", "c")
    version = 0
    for seq in range(1, 5_001):
        call = s.invoke("x", "config_set", key="k", value=f"x{seq}", if_version=version) if seq % 5 == 0 else 0
        s.order(1, seq, "a", "b", "c")
        if call:
            s.end("x", "config_set", call, version=seq)
            version = seq
    began = time.perf_counter()
    assert set() == red(s.lines, converged=False)
    assert time.perf_counter() - began < 10.0
