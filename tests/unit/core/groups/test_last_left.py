"""The end of a process group, as everybody sees it who has applied the same entries."""

from __future__ import annotations

from groupsvc.wire.notices import Emptied, Refused
from groupsvcd.core.groups import commands as cmd

from .assembly import Assembly


def test_nothing_that_is_ordered_behind_the_last_left_means_anything() -> None:
    """Who joins, speaks or proposes then does so in a group that has ended, also after a checkpoint of it."""
    group = Assembly()
    group.join("A1")
    group.leave("A1")
    group.group.restore(group.group.snapshot())
    told = len(group.notices)
    group.join("B1")
    group.propose_state("A1", b"red")
    group.say("A1", b"boo")
    group.raw("C", cmd.message_prefix(0) + b"from outside")
    group.fail_nodes("A", "B")
    assert [("B", "ended"), ("A", "not_a_member")] == [
        (refused.proposal[0], refused.why) for refused in group.notices[told:] if isinstance(refused, Refused)
    ]
    assert (2, "") == (len(group.notices) - told, group.names)
    assert group.group.has_ended


def test_who_waits_to_join_when_the_last_one_leaves_keeps_the_group_alive() -> None:
    """It has its turn with the same entry: nobody is told of an end."""
    group = Assembly(exclusive=True)
    group.gone = set()
    group.join("A1")
    group.propose_state("A1", b"red")
    group.fail_nodes("A")
    group.join("B1")
    assert "A1" == group.names
    group.gone = {("A", 1)}
    group.wait(2.0)
    assert ("B1", []) == (group.names, group.told(Emptied))
    assert (b"", 2) == (group.group.state, group.group.state_version)
