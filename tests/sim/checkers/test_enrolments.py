"""C2 turns red, alone, where a token was good for more than it may be."""

from __future__ import annotations

from typing import Any

from .story import VOTERS, Lines, Story, red

NODE = "daemon/keys/new"
ENROLLED = "key k1 t1"


def told(listed: str, *, before: str = "", node: str = NODE) -> Lines:
    """An operator makes token t1 for *new*; machine m1 shows it and says key k1; lists then have ``listed``."""
    s = Story()
    for voter in VOTERS:
        s.boot(voter)
    s.promise(1, "a", "b", "c")
    s.open(1, "a", "b", "c")
    make = _says(s, "operator", "token_make", token="t1", valid=10.0)
    s.order(1, 1, "a", "b", "c")
    s.end("operator", "token_make", make, until=10)
    if before:
        _ask(s, "m0", before)
    show = _says(s, "m1", "enrol", token="t1", key="k1")
    s.order(1, 2, "a", "b", "c")
    _list(s, 2, {node: [listed, 2]})
    s.end("m1", "enrol", show, version=2) if listed == ENROLLED else s.end("m1", "enrol", show, "info")
    return s.lines


def _says(s: Story, who: str, op: str, **args: Any) -> int:
    """A call about the node *new*, at c."""
    s.calls += 1
    s.add("c", op, type="invoke", who=who, args={"id": s.calls, "node": "new", **args})
    return s.calls


def _ask(s: Story, who: str, line: str) -> None:
    _, key, token = line.split()
    call = _says(s, who, "enrol", token=token, key=key)
    s.end(who, "enrol", call, "fail", code="refused")


def _list(s: Story, version: int, options: dict[str, Any]) -> None:
    table = {node: [s.inc[node], "up"] for node in VOTERS}
    for node in VOTERS:
        s.add(node, "list_installed", epoch=1, seq=version, args={"nodes": table, "options": options})


def then(lines: Lines, listed: str, *, revoked: bool = False) -> Lines:
    """Behind that, entry 3 lists something else for the same node."""
    s = Story()
    s.lines, s.t, s.inc, s.calls = list(lines), lines[-1].t, dict.fromkeys(VOTERS, 1), 100
    revoke = _says(s, "operator", "token_revoke") if revoked else 0
    again = _says(s, "m2", "enrol", token="t1", key="k2") if listed else 0
    s.order(1, 3, "a", "b", "c")
    _list(s, 3, {NODE: [listed, 3]})
    if revoke:
        s.end("operator", "token_revoke", revoke, version=3)
    if again:
        s.end("m2", "enrol", again, "info")
    return s.lines


def found(lines: Lines) -> set[str]:
    return red(lines, converged=False)


def test_c2_is_green_when_a_token_became_the_key_that_was_said() -> None:
    assert set() == found(told(ENROLLED))


def test_c2_is_green_when_somebody_was_refused_before() -> None:
    assert set() == found(told(ENROLLED, before="key k0 t1"))


def test_c2_is_green_when_a_revoked_key_is_gone() -> None:
    assert set() == found(then(told(ENROLLED), "", revoked=True))


def test_c2_sees_one_token_enrol_two_keys() -> None:
    assert {"C2"} == found(then(told(ENROLLED), "key k2 t1"))


def test_c2_sees_a_key_that_nobody_has_said() -> None:
    assert {"C2"} == found(told("key k9 t1"))


def test_c2_sees_a_key_whose_enrolment_was_refused() -> None:
    """It was told no, and is listed."""
    assert {"C2"} == found(told("key k0 t1", before="key k0 t1"))


def test_c2_sees_a_token_that_was_made_for_another_node() -> None:
    assert {"C2"} == found([line for line in told(ENROLLED) if line.op != "token_make"])


def test_c2_sees_a_key_that_was_replaced_though_nobody_revoked_it() -> None:
    assert {"C2"} == found(then(told(ENROLLED), "token t2 99"))
