"""Rules of who may do what: what is not allowed is forbidden, and whoever is refused is told what would allow it."""

from __future__ import annotations

import itertools
import re

import pytest

from groupsvcd.core.access import EVERYBODY, OPEN, TRUSTED, UNKNOWN, VERBS, Access, Principal, Rule, Verb, Who
from groupsvcd.core.audit import RECORDS_PER_S, REMEMBERED_MAX, Audit

ALICE = Principal(uid=1000, gids=frozenset({1000, 27}))
BOB = Principal(uid=1001, gids=frozenset({1001}))
REPORTS = Principal(key="reports")

RULES = Access((
    Rule((Who("user:alice", uid=1000),), ("db-*",), frozenset({"join", "send"})),
    Rule((Who("group:ops", gid=27),), ("*",), frozenset({"subscribe"})),
    Rule((Who("key:reports", key="reports"),), ("jobs", "_lock/*/x"), frozenset(VERBS)),
    Rule((Who(EVERYBODY),), ("lobby",), frozenset({"join"})),
))  # fmt: skip

CASES: list[tuple[Principal, Verb, str, bool]] = [
    (ALICE, "join", "db-1", True),
    (ALICE, "join", "db-", True),
    (ALICE, "join", "db", False),
    (ALICE, "join", "my-db-1", False),
    (ALICE, "create", "db-1", False),
    (ALICE, "subscribe", "anything/at.all", True),
    (ALICE, "admin", "", False),
    (BOB, "subscribe", "db-1", False),
    (BOB, "join", "lobby", True),
    (BOB, "send", "lobby", False),
    (REPORTS, "expel", "jobs", True),
    (REPORTS, "expel", "jobs2", False),
    (REPORTS, "create", "_lock/a/b/x", True),
    (REPORTS, "create", "_lock/x", False),
    (REPORTS, "admin", "", True),
    (UNKNOWN, "join", "lobby", True),
    (UNKNOWN, "join", "db-1", False),
    (Principal(key="alice"), "join", "db-1", False),
    (Principal(uid=0), "join", "db-1", False),
    (TRUSTED, "admin", "", True),
]


@pytest.mark.parametrize("principal, verb, group, allowed", CASES)
def test_what_no_rule_allows_is_forbidden(principal: Principal, verb: Verb, group: str, allowed: bool) -> None:
    assert allowed == RULES.allows(principal, verb, group)
    assert allowed == RULES.allows(principal, verb, group), "the second answer is remembered"


def test_without_rules_everything_is_allowed() -> None:
    assert all(Access().allows(UNKNOWN, verb, "db") for verb in VERBS)


def test_a_dot_or_a_bracket_in_a_pattern_is_only_itself() -> None:
    rule = Rule((Who(EVERYBODY),), ("a.b*", "[x]*"), frozenset({"join"}))
    assert [True, False, False] == [rule.concerns(group) for group in ("a.bc", "axbc", "x")]


@pytest.mark.parametrize("pattern", ["*", "", "a*", "*a", "a*a", "a*b*a", "*a*b*", "ab**ba", "a*ab*b"])
def test_patterns_match_as_regular_expressions_would(pattern: str) -> None:
    rule = Rule((Who(EVERYBODY),), (pattern,), frozenset({"join"}))
    expected = re.compile(".*".join(map(re.escape, pattern.split("*"))))
    for length in range(6):
        for letters in itertools.product("abc", repeat=length):
            group = "".join(letters)
            assert (expected.fullmatch(group) is not None) == rule.concerns(group), group


def test_who_may_do_anything_in_a_group_knows_of_it() -> None:
    assert [True, False, True] == [RULES.sees(BOB, "lobby"), RULES.sees(BOB, "jobs"), RULES.sees(ALICE, "jobs")]


def test_a_refusal_says_what_would_allow_it() -> None:
    text = RULES.refusal(ALICE, "create", "db-1")
    assert "no rule of this node allows user:alice to create in group 'db-1'" in text
    assert '[[access]] who = ["user:alice"] groups = ["db-1"] may = ["create"]' in text
    assert "user:1001" in RULES.refusal(BOB, "send", "db-1")
    assert '[[access]] who = ["key:reports"] may = ["admin"]' in RULES.refusal(REPORTS, "admin")


def test_where_there_are_no_rules_nobody_is_told_to_write_one_that_locks_others_out() -> None:
    text = OPEN.refusal(ALICE, "admin")
    assert "as long as this node has no rules that is for root and the user of the daemon" in text
    assert "who =" not in text


def test_a_flood_of_records_is_counted_and_not_written() -> None:
    now, written = 0.0, []
    audit = Audit(lambda: now, lambda op, args: written.append((op, args)))
    for _ in range(500):
        audit.record("access_denied", "key:a", verb="send")
    audit.record("access_denied", "key:b", verb="send")
    assert RECORDS_PER_S + 1 == len(written)
    now = 1.5
    audit.record("access_denied", "key:a", verb="join")
    assert ("access_denied", {"who": "key:a", "verb": "join", "missed": 500 - RECORDS_PER_S}) == written[-1]


def test_what_a_stranger_comes_with_is_shown_and_not_counted_by() -> None:
    """A fresh key for each connection is one stranger, and takes nothing from those whom the daemon knows."""
    now, written = 0.0, []
    audit = Audit(lambda: now, lambda op, args: written.append((op, args)))
    for _ in range(RECORDS_PER_S):
        audit.record("access_denied", "key:a", verb="send")
    for number in range(2 * REMEMBERED_MAX):
        audit.record_stranger("key_refused", f"key{number}", why="not listed")
    audit.record("access_denied", "key:a", verb="send")
    assert 2 * RECORDS_PER_S == len(written)
    assert ("key_refused", {"who": "key0", "why": "not listed"}) == written[RECORDS_PER_S]
    now = 1.5
    audit.record_stranger("key_refused", "last", why="not listed")
    missed = 2 * REMEMBERED_MAX - RECORDS_PER_S
    assert ("key_refused", {"who": "last", "why": "not listed", "missed": missed}) == written[-1]


def test_who_shows_the_same_again_and_again_is_recorded_once_a_minute() -> None:
    """A node whose key was revoked, and that nobody has stopped."""
    now, written = 0.0, []
    audit = Audit(lambda: now, lambda op, args: written.append((op, args)))
    for step in range(5 * 61):
        now = step / 5
        audit.record_stranger("key_refused", "of n4", why="not listed")
    assert [("key_refused", {"who": "of n4", "why": "not listed"})] == written[:1]
    assert [("key_refused", {"who": "of n4", "why": "not listed", "again": 299})] == written[1:]
    audit.record_stranger("key_refused", "of n5", why="not listed")
    assert 3 == len(written)


def test_more_principals_than_can_be_counted_apart_are_counted_as_one() -> None:
    now, written = 0.0, []
    audit = Audit(lambda: now, lambda op, args: written.append((op, args)))
    for _ in range(2 * RECORDS_PER_S):
        audit.record("access_denied", "key:a", verb="send")
    for number in range(3 * REMEMBERED_MAX):
        audit.record("access_denied", f"key:{number}", verb="send")
    audit.record("access_denied", "key:a", verb="send")
    assert 2 * RECORDS_PER_S + REMEMBERED_MAX - 1 == len(written)
    now = 1.5
    audit.record("access_denied", "key:late", verb="send")
    assert {"who": "key:late", "verb": "send"} == written[-1][1], "there is room again"
