"""A check that had nothing to look at has not held, and what it has not seen is said beside its verdict."""

from __future__ import annotations

import attrs

from groupsvc.spark.audit.checks import Check
from groupsvc.spark.audit.grounds import Evidence, Grounds, Process

ENTRIES = Check(
    rule="B4", promise="one number is one entry", level="full", nodes=2, reads=("entry|domain_entry",), sql=""
)
BALLOTS = Check(rule="G1", promise="the same story", level="batch", nodes=2, reads=("phase|votes",), sql="")


def process(node: str, *, domain: str = "", level: str = "full", clock: str = "m1", is_whole: bool = True) -> Process:
    return Process(domain=domain, node=node, boot="1", level=level, clock=clock, is_whole=is_whole)


def evidence(*processes: Process, settled: bool = True, **lines: dict[str, int]) -> Evidence:
    domains = tuple(dict.fromkeys(one.domain for one in processes))
    return Evidence(
        domains=domains, lines=dict.fromkeys(domains, lines), processes=processes,
        settled=frozenset(domains if settled else ()),
    )  # fmt: skip


def test_what_all_nodes_have_written_entry_by_entry_is_compared() -> None:
    whole = evidence(process("a"), process("b"), entry={"a": 5, "b": 4})
    assert Grounds(lines=9) == whole.grounds(ENTRIES)


def test_the_domains_own_entries_are_not_those_of_groups() -> None:
    """Journals of any level have the domain's own stream; that says nothing of the groups."""
    batch = evidence(process("a", level="batch"), process("b", level="batch"), domain_entry={"a": 5, "b": 5})
    assert Grounds(
        lines=10, but=("only of the domain's own stream: no journal has a line for every entry of a group",)
    ) == batch.grounds(ENTRIES)
    assert "needs journals of level full" == batch.grounds(attrs.evolve(ENTRIES, reads=("entry",))).why_not


def test_a_kind_that_every_level_has_is_not_enough_for_a_check_that_needs_full() -> None:
    check = Check(rule="V3", promise="one table", level="full", reads=("list_installed",), sql="")
    lists = {"list_installed": {"a": 5, "b": 5}}
    assert "needs journals of level full" == evidence(process("a", level="batch"), **lists).grounds(check).why_not
    assert "" == evidence(process("a"), **lists).grounds(check).why_not


def test_nodes_whose_level_is_lower_are_named() -> None:
    mixed = evidence(process("a"), process("b"), process("c", level="batch"), entry={"a": 5, "b": 5})
    assert ("not entry by entry of c.1, whose level is not full",) == mixed.grounds(ENTRIES).but


def test_a_comparison_needs_two_nodes_in_one_domain() -> None:
    """Two domains of one node each have nobody to compare with."""
    apart = Evidence(
        domains=("x", "y"), processes=(process("a", domain="x"), process("b", domain="y")),
        lines={"x": {"phase": {"a": 5}}, "y": {"phase": {"b": 5}}}, settled=frozenset(),
    )  # fmt: skip
    assert "there are journals of one node only" == apart.grounds(BALLOTS).why_not


def test_where_it_was_not_asked_is_counted() -> None:
    some = Evidence(
        domains=("x", "y"), processes=(process("a", domain="x"), process("b", domain="x"), process("a", domain="y")),
        lines={"x": {"phase": {"a": 5, "b": 5}}, "y": {}}, settled=frozenset(),
    )  # fmt: skip
    assert Grounds(
        lines=10, but=("not in 1 of 2 domains: there are no lines about it (phase or votes)",)
    ) == some.grounds(BALLOTS)


def test_either_of_two_kinds_is_enough() -> None:
    assert "" == evidence(process("a"), process("b"), votes={"a": 1, "b": 1}).grounds(BALLOTS).why_not


def test_times_of_clocks_of_their_own_are_not_compared() -> None:
    check = attrs.evolve(BALLOTS, one_clock=True)
    lines = {"phase": {"a": 5, "b": 5}}
    apart = evidence(process("a"), process("b", clock="m2"), **lines)
    assert "needs journals of several nodes by one clock" == apart.grounds(check).why_not
    assert "" == evidence(process("a"), process("b"), **lines).grounds(check).why_not


def test_processes_of_which_lines_are_missing_are_named() -> None:
    check = attrs.evolve(BALLOTS, whole=True)
    lines = {"phase": {"a": 5, "b": 5}}
    some = evidence(process("a"), process("b", is_whole=False), **lines)
    assert ("not of b.1, of which lines are missing",) == some.grounds(check).but
    none = evidence(process("a", is_whole=False), process("b", is_whole=False), **lines)
    assert "of every journal lines are missing" == none.grounds(check).why_not


def test_what_is_asked_only_at_rest_is_asked_of_domains_that_are() -> None:
    check = attrs.evolve(BALLOTS, settled=True)
    lines = {"phase": {"a": 5, "b": 5}}
    assert "at rest" in evidence(process("a"), process("b"), settled=False, **lines).grounds(check).why_not
    assert "" == evidence(process("a"), process("b"), **lines).grounds(check).why_not
