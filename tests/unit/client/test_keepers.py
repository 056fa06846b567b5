"""Who keeps the line of a lock between turns: when it comes, and when it goes."""

from __future__ import annotations

from groupsvc.recipes.elections import election_line
from groupsvc.recipes.locks import lock_line
from groupsvc.sansio.contending import KEEP_S, KEEPS, Contender, Keeper
from groupsvc.wire import client_messages as wire
from groupsvc.wire import notices
from tests.unit.client.daemon_in_memory import Line
from tests.unit.client.scenes import begin


def contend(line: Line, name: str = "a") -> Contender:
    """Somebody stands in line."""
    contender = Contender(line.machine, lock_line(name))
    begin(line, contender.start)
    line.run()
    return contender


def kept(line: Line) -> list[str]:
    """The groups that the session keeps."""
    machine = line.machine
    names = [(one.group, one.me.name) for one in machine.members.values() if one.me is not None]
    return [group for group, name in names if name.endswith(KEEPS)]


def joins(line: Line) -> int:
    """How often it was asked to be let in."""
    return sum(isinstance(one, wire.JoinAsk) for one in line.daemon.requests)


def test_one_for_each_line_however_many_stand_in_it(line: Line) -> None:
    for _ in range(3):
        contend(line)
    contend(line, "b")
    assert ["_lock/a", "_lock/b"] == kept(line)
    assert 6 == joins(line)


def test_it_is_never_its_turn(line: Line) -> None:
    first = contend(line)
    second = contend(line)
    assert (True, False) == (first.has_turn(line.now), second.has_turn(line.now))
    first.withdraw()
    line.run()
    group = line.daemon.groups["_lock/a"]
    gone = group.providers[first.membership.number].id
    line.tell(wire.Told(second.membership.number, notices.Left(group.seq + 1, (gone,), "goodbye", group.fence + 1)))
    assert second.has_turn(line.now), "though the keeper came before"


def test_it_stays_while_somebody_is_there_and_for_a_while_after(line: Line) -> None:
    contender = contend(line)
    for _ in range(5):
        line.at(line.now + KEEP_S)
    assert ["_lock/a"] == kept(line)
    contender.withdraw()
    line.at(line.now + 0.5 * KEEP_S)
    assert ["_lock/a"] == kept(line)
    again = contend(line)
    again.withdraw()
    assert 3 == joins(line), "it was there already"
    line.at(line.now + 0.9 * KEEP_S)
    assert ["_lock/a"] == kept(line)
    line.at(line.now + KEEP_S)
    assert [] == kept(line) == line.machine.chores
    contend(line)
    assert ["_lock/a"] == kept(line)


def test_it_remembers_only_those_who_are_still_there(line: Line) -> None:
    """X1: a lock may be taken a thousand times a second, for months, and never be left alone for long."""
    there = contend(line)
    for _ in range(20):
        contend(line).withdraw()
    (keeper,) = line.machine.chores
    assert isinstance(keeper, Keeper)
    assert [there] == keeper._contenders[:-1]


def test_it_comes_again_with_the_next_turn_if_it_was_lost(line: Line) -> None:
    contend(line).withdraw()
    keeper = next(one for one in line.machine.members.values() if one.group == "_lock/a")
    keeper.lose("its node lost touch with the group")
    line.machine.members.pop(keeper.number)
    assert [] == kept(line)
    contend(line)
    assert ["_lock/a"] == kept(line)


def test_who_wants_to_lead_keeps_nothing(line: Line) -> None:
    contender = Contender(line.machine, election_line("a", b""))
    begin(line, contender.start)
    line.run()
    assert [] == kept(line)


def test_a_session_that_is_over_has_nothing_to_do_any_more(line: Line) -> None:
    contend(line)
    line.machine.lose("the daemon is gone")
    assert [] == line.machine.chores
