"""A number is one of one group: who asks for the messages after it is told if the group is another one by now."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import groupsvc
from groupsvc import CHECKPOINT, Position
from groupsvc.errors import Failed, UsageError
from groupsvc.positions import ADDRESSES_KNOWN_MAX, NAMES_KNOWN_MAX, NOT_KNOWN, Numbering, Numberings, known_at
from groupsvc.sansio import asking
from groupsvc.sansio.membership_machine import Membership
from groupsvc.sansio.session_machine import SessionMachine
from groupsvc.tables import Table
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_in_memory import DaemonInMemory, Line
from tests.unit.client.scenes import begin, done, events

HERE: Numbering = (77, 0)
NEXT: Numbering = (91, 0)


def _start(line: Line, **arguments: Any) -> asking.Start:
    given = {"name": "a", "attributes": None, "create": None, "data": b"", "on_proposal": None, "events": True}
    return asking.join(line.machine, "db", **{**given, **arguments})


def _enters(line: Line, numbering: Numbering, name: str) -> Membership:
    """It joins a group with these numbers."""

    def answer(ask: wire.AnyClientRequest) -> list[wire.AnyClientReply] | None:
        first, *rest = line.daemon.answers(ask)
        return [replace(first, numbering=numbering), *rest] if isinstance(first, wire.JoinedAs) else [first, *rest]

    line.daemon.script = answer
    membership = done(line, _start(line, name=name))
    assert isinstance(membership, Membership)
    return membership


def _says(line: Line, since: Any, **arguments: Any) -> tuple[int, Numbering]:
    """What the daemon is told when somebody wants to begin there; nobody answers."""
    line.daemon.script = lambda ask: []
    begin(line, _start(line, name="late", since=since, **arguments))
    line.run()
    ask = line.daemon.requests[-1]
    assert isinstance(ask, wire.JoinAsk)
    return ask.since, ask.since_in


def _another_session(numberings: Numberings) -> Line:
    line = Line(SessionMachine("test", lambda *vote: None, numberings), DaemonInMemory())
    line.connect()
    return line


def test_a_number_is_of_the_group_that_the_program_was_in(line: Line) -> None:
    """GS-12: nobody skips entries silently. The daemon compares, and refuses if the group is another one."""
    _enters(line, HERE, "a")
    assert (50, HERE) == _says(line, 50)


def test_it_is_so_also_after_the_session_was_lost() -> None:
    numberings = Numberings()
    _enters(_another_session(numberings), HERE, "a")
    assert (50, HERE) == _says(_another_session(numberings), 50)


def test_of_two_groups_of_one_name_a_number_does_not_say_which(line: Line) -> None:
    _enters(line, HERE, "a")
    _enters(line, NEXT, "b")
    before = len(line.daemon.requests)
    with pytest.raises(Failed, match="in two groups of that name"):
        begin(line, _start(line, name="late", since=50))
    assert before == len(line.daemon.requests)
    assert (50, HERE) == _says(line, Position(50, HERE))


def test_who_wants_everything_needs_no_group(line: Line) -> None:
    _enters(line, HERE, "a")
    _enters(line, NEXT, "b")
    assert (0, NOT_KNOWN) == _says(line, 0)
    assert (-2, NOT_KNOWN) == _says(line, CHECKPOINT)


def test_for_a_number_from_elsewhere_the_program_answers(line: Line) -> None:
    assert (50, NOT_KNOWN) == _says(line, 50)


def test_who_only_watched_knows_the_group_too(line: Line) -> None:
    _enters(line, HERE, "a")
    other = _another_session(Numberings())
    other.daemon.script = lambda ask: [
        wire.Subscribed(ask.id, 5, {}, line.daemon.groups["db"].view, NEXT)  # type: ignore[union-attr]
    ]
    watching = done(other, asking.subscribe(other.machine, "db", wait=0.0))
    assert NEXT == watching.view.position.numbering
    assert (3, NEXT) == _says(other, 3)


def test_every_event_has_its_position(line: Line) -> None:
    """It is that of the entry, whatever has come since; and it can be kept as text."""
    membership = _enters(line, HERE, "a")
    line.tell(wire.MessagesCame(membership.number, 40, ("n2", 3, 1), (b"one", b"two")))
    line.tell(wire.MessagesCame(membership.number, 42, ("n2", 3, 1), (b"three",)))
    read = [event for event in events(membership) if isinstance(event, groupsvc.Message)]
    assert [Position(seq, HERE) for seq in (40, 41, 42)] == [event.view.position for event in read]
    text = str(read[0].view.position)
    assert ("77/0/40", read[0].view.position) == (text, Position.parse(text + "\n"))
    assert (40, HERE) == _says(line, Position.parse(text))


def test_views_with_the_same_number_are_equal_whoever_joined_when(line: Line) -> None:
    """A member that was in before a quorum was lost counts as one that came after it."""
    view = _enters(line, HERE, "a").view
    assert view == groupsvc.View(
        view.seq, view.fence, view.providers, view.state, view.state_version, view.default_vote, (77, 5)
    )


@pytest.mark.parametrize("text", ["", "50", "1/2", "1/2/3/4", "a/b/c", "-1/0/3", "1/0/9999999999999999999", 5, None])
def test_what_is_no_position_is_refused(text: Any) -> None:
    with pytest.raises(UsageError):
        Position.parse(text)


def test_a_position_of_what_nobody_can_join_is_refused(line: Line) -> None:
    with pytest.raises(UsageError, match="no group that can be joined"):
        begin(line, _start(line, since=Position(5, NOT_KNOWN)))


def test_a_machine_goes_on_only_where_its_state_is_from(line: Line) -> None:
    """A state that was read from a file is of the group that its position names."""
    assert (50, HERE) == _says(line, Position(50, HERE), machine_of=Table())
    table = Table()
    groupsvc.machines.homes.enter(table, NEXT)
    with pytest.raises(UsageError, match="another group than the state"):
        begin(line, _start(line, since=Position(50, HERE), machine_of=table))


def test_what_a_program_remembers_is_bounded() -> None:
    numberings = Numberings()
    for number in range(NAMES_KNOWN_MAX + 5):
        numberings.note(f"g{number}", HERE)
    assert (NAMES_KNOWN_MAX, NOT_KNOWN) == (len(numberings._known), numberings.of_a_number("g0", 5))
    kept = known_at("ipc://a")
    assert kept is known_at("ipc://a") is not known_at("ipc://b")
    for number in range(ADDRESSES_KNOWN_MAX):
        known_at(f"ipc://{number}")
    assert kept is not known_at("ipc://a")
