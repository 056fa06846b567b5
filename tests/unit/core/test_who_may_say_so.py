"""What only a name server says is believed of nobody else, and of it only once: D and E are listed, and no voters."""

from __future__ import annotations

import pytest

from groupsvc.wire import versions
from groupsvcd.core.domain.listed_keys import NodeKey, setting_of
from groupsvcd.core.events import PeerFrame
from groupsvcd.core.peer_messages import NodeEntry, NodeList, Register, Unwelcome
from tests.unit.core.trio import Trio

A_KEY = NodeKey(f"k{9:039d}", f"t{9:039d}", 0)
FAR_AHEAD = 10**9


def forged(*options: tuple[str, str, int], have: int) -> NodeList:
    return NodeList(10**6, have, FAR_AHEAD, (), options)


def test_a_node_that_is_no_voter_lists_no_keys() -> None:
    """C2: whom the domain lists is decided by its directory."""
    trio = Trio.in_service(others="DE")
    line = (setting_of("evil"), A_KEY.line(), FAR_AHEAD)
    for to in "ABCE":
        trio.frame("D", to, forged(line, have=trio.engines[to].member.list_version))
    trio.run(5.0)
    assert [] == [name for name in "ABCE" if line[0] in trio.engines[name].member.options]
    assert [] == [name for name in "ABCE" if line[0] in {key for key, _, _ in trio.disks[name].options}]


def test_after_a_forged_list_true_ones_are_still_heard() -> None:
    """V7: all learn that E is down."""
    trio = Trio.in_service(others="DE")
    for to in "ABC":
        trio.frame("D", to, forged(have=trio.engines[to].member.list_version))
    trio.kill("E")
    trio.run(10.0)
    assert {"gone"} == {trio.engines[name].member.nodes["E"].status for name in "ABC"}


def test_a_node_that_is_no_voter_turns_nobody_away() -> None:
    """V7: E would end all its sessions and go on under another incarnation."""
    trio = Trio.in_service(others="DE")
    before = trio.engines["E"].incarnation
    trio.frame("D", "E", Unwelcome("too old", "incarnation", str(before + 5), str(before)))
    trio.run(1.0)
    assert before == trio.engines["E"].incarnation


def test_a_list_that_is_late_does_not_move_a_voter_back() -> None:
    """C has another machine now, and B knows it; then the list of before comes once more."""
    trio = Trio.in_service()
    b = trio.engines["B"]
    version, c = b.member.list_version, b.member.nodes["C"]
    before = NodeEntry(c.name, c.incarnation, "up", "at:C", c.state_id, True, version)
    moved = NodeEntry(c.name, c.incarnation, "up", "at:new-C", c.state_id, True, version + 1)
    trio.frame("A", "B", NodeList(1, version, version + 1, (moved,)))
    assert "at:new-C" == trio.addresses["B", "C"]
    trio.frame("A", "B", NodeList(1, 0, version, (before,)))
    assert "at:new-C" == b.member.nodes["C"].address
    assert "at:new-C" == trio.addresses["B", "C"]


def test_of_two_builds_that_are_deaf_to_each_other_one_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ask in one moment, before the directory has either; the name server understands both."""
    old, own, newer = (versions.wire_of(*numbers) for numbers in ((1, 1, 1), (1, 1, 2), (2, 1, 2)))
    monkeypatch.setattr(versions, "OWN", own)
    trio = Trio.in_service()
    a = trio.engines["A"]
    assert a.voter is not None
    assert a.voter.roster is not None
    for name in "ABC":
        a.voter.roster.note_wire(name, own)
    for name, wire in (("X", old), ("Y", newer)):
        register = Register(f"disk-{name}", f"at:{name}", False, 0, a.parameters.essentials())
        trio.step("A", PeerFrame(name, 5000, a.domain, (register,), wire))
    trio.run(1.5)
    assert ["X"] == [name for name in "XY" if a.voter.directory.nodes.get(name) is not None]
    assert {"Y"} == {line.args["name"] for line in trio.lines("unwelcome")}


def test_who_is_refused_and_asks_again_and_again_is_told_of_now_and_then() -> None:
    trio = Trio.in_service()
    a = trio.engines["A"]
    for number in range(60):
        essentials = a.parameters.essentials() | {"lease": "9.0" if number < 50 else "8.0"}
        register = Register("disk-Y", "at:Y", False, 0, essentials)
        trio.step("A", PeerFrame("Y", 5000, a.domain, (register,)))
        trio.run(0.2)
    reasons = [line.args["reason"] for line in trio.lines("unwelcome") if line.args["name"] == "Y"]
    assert 2 + 1 == len(reasons), "after 0, 5 and 10 s, where it is another one"
    assert reasons[0] == reasons[1] != reasons[2]
