"""S1 turns red when a client is told of what a majority of disks does not have."""

from __future__ import annotations

from .story import VOTERS, Story, honest, red, without


def test_s1_sees_an_answer_before_a_majority_has_synced() -> None:
    lines = without(
        honest(),
        lambda line: line.op == "persisted" and line.node in ("b", "c") and 0 < line.seq < 4 and line.epoch == 1,
    )
    assert {"S1"} == red(lines)


def test_s1_does_not_count_a_disk_that_was_lost_before() -> None:
    def story(*, lost: bool) -> set[str]:
        s = Story()
        for node in VOTERS:
            s.boot(node)
        s.promise(1, "a", "b", "c")
        s.open(1, "a", "b", "c")
        call = s.invoke("x", "config_set", key="k", value="x1", if_version=0)
        s.add("a", "ordered", epoch=1, seq=1, crc=1)
        s.persisted("b", "append", epoch=1, seq=1)
        s.crash("b")
        s.boot("b", disk=2 if lost else 1)
        s.persisted("a", "append", epoch=1, seq=1)
        s.end("x", "config_set", call, version=1)
        return red(s.lines, converged=False)

    assert {"S1"} == story(lost=True)
    assert set() == story(lost=False)


def test_s1_counts_what_a_lost_disk_had_said_to_hold_until_the_new_one_has_something() -> None:
    """b says that it holds the entry, and dies: nobody who leads can know that before its new process is heard."""

    def story(*, after: str) -> set[str]:
        s = Story()
        for node in VOTERS:
            s.boot(node)
        s.promise(1, "a", "b", "c")
        s.open(1, "a", "b", "c")
        call = s.invoke("x", "config_set", key="k", value="x1", if_version=0)
        s.add("a", "ordered", epoch=1, seq=1, crc=1)
        s.persisted("b", "append", epoch=1, seq=1)
        s.add("b", "held", epoch=1, seq=1)
        s.crash("b")
        s.boot("b", disk=2)
        if after == "the new disk has something":
            s.persisted("b", "open", epoch=1)
        if after == "a new epoch":
            s.promise(2, "a", "c")
            s.open(2, "a", "c")
            s.add("a", "ordered", epoch=2, seq=1, crc=1)
        s.persisted("a", "append", epoch=1, seq=1)
        s.end("x", "config_set", call, version=1)
        return red(s.lines, converged=False)

    assert set() == story(after="")
    assert "S1" in story(after="the new disk has something")
    assert "S1" in story(after="a new epoch")


def test_s1_lets_a_disk_die_while_the_answer_is_on_its_way() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.open(1, "a", "b", "c")
    call = s.invoke("x", "config_set", key="k", value="x1", if_version=0)
    s.order(1, 1, "a", "b")
    s.crash("b")
    s.boot("b", disk=2)
    s.end("x", "config_set", call, version=1)
    assert set() == red(s.lines, converged=False)


def _on_an_old_disk(*, leads: bool) -> Story:
    """b's disk was replaced by disk 2; then b is started on disk 1 and later on disk 2 again."""
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.open(1, "a", "b", "c")
    s.crash("b")
    s.boot("b", disk=2)
    s.persisted("b", "open", epoch=1)
    s.order(1, 1, "a", "b")
    s.crash("b")
    s.boot("b", disk=1, outdated=True)
    s.add("b", "promise", epoch=2)
    s.persisted("b", "promise", epoch=2)
    s.spoke("b", "Claim", 2)
    if leads:
        s.acknowledge("b", 2)
    s.crash("b")
    s.boot("b", disk=2)
    s.spoke("b", "Held", 1)
    s.order(1, 2, "a", "b")
    return s


def test_s1_sees_a_replaced_disk_that_leads() -> None:
    assert {"S1"} == red(_on_an_old_disk(leads=True).lines, converged=False)


def test_what_a_replaced_disk_writes_counts_for_nobody() -> None:
    """Neither its promise for the node's newer disk, nor the loss of it when the newer one is back."""
    assert set() == red(_on_an_old_disk(leads=False).lines, converged=False)
