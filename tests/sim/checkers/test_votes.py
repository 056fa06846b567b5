"""G4 and G5 by hand: whose vote was counted, and for whom a default may be cast."""

from __future__ import annotations

from typing import Any

import pytest

from groupsvc.testing.sim.application_ops import digest
from groupsvc.testing.sim.checkers.application_stories import Stories
from groupsvc.testing.sim.checkers.ballots import Known, g3
from groupsvc.wire.history import HistoryEvent

GROUP, ME, OTHER = 7, "n1/1/1", "n2/1/1"
PROVIDERS = [[ME, "me", "", 3], [OTHER, "other", "", 4]]
PROPOSAL = {
    "ballot": 10, "about": "state", "proposal": "n1/1/9", "joining": [], "leaving": [], "cause": None, "proposer": ME,
    "state": "red", "payload": "", "changes": [],
}  # fmt: skip


class Tale:
    """What one application, that votes when it is asked, wrote down about two phases of one ballot."""

    def __init__(self) -> None:
        self.lines: list[HistoryEvent] = []
        self._line("join_group", "invoke", {"id": 1, "name": "db", "votes": "ask", "as": "me"})
        view = {"seq": 5, "fence": 1, "providers": PROVIDERS, "state": "", "version": 0, "default_vote": "approve"}
        result = {"m": 1, "group": GROUP, "provider": ME, "view": view, "attributes": {"batch": "none"}}
        self._line("join_group", "ok", {"id": 1}, result)

    def _line(
        self, op: str, type_: Any, args: dict[str, Any], result: dict[str, Any] | None = None, **more: Any
    ) -> None:
        self.lines.append(
            HistoryEvent(
                v=1, i=len(self.lines), t=float(len(self.lines)), who="app", node="n1", type=type_, op=op, group=GROUP,
                args=args, result=result or {}, **more,
            )
        )  # fmt: skip

    def told(self, seq: int, kind: str, full: dict[str, Any]) -> None:
        """It read this."""
        view = digest(PROVIDERS, "", 0, "approve")
        args = {"m": 1, "kind": kind, "full": full, "view": view, "fence": 1}
        self._line("told", "event", args, seq=seq, crc=digest(kind, full))

    def phase(self, number: int, seq: int) -> None:
        """A phase was opened."""
        opened = {"phase": number, "electorate": [ME, OTHER], "time_limit": 2.0, "messages": []}
        self.told(seq, "proposed", {**PROPOSAL, **opened})

    def vote(self, phase: int, vote: str | None, **more: Any) -> None:
        """It voted."""
        self._line("vote", "event", {"m": 1, "provider": ME, "ballot": 10, "phase": phase, "vote": vote, **more})

    def taken(self, phase: int) -> None:
        """Its daemon has the vote of the other one."""
        self._line("vote_taken", "event", {"m": 1, "provider": OTHER, "ballot": 10, "phase": phase})

    def rejected(self, seq: int, phases: int, *votes: list[str], state: str = "red") -> None:
        """The ballot ended."""
        ended = {
            "approved": False,
            "phases": phases,
            "reason": "",
            "votes": list(votes),
            "left_out": [],
            "state": state,
        }
        self.told(seq, "ended", {**PROPOSAL, **ended})

    def found(self, at: dict[int, float] | None = None, **known: tuple[int, int]) -> list[str]:
        """What the checker makes of it; ``known``: how far the leader knew the group, by the number of an entry.

        ``at``: when these entries were ordered and delivered; each line is a second after the one before it.
        """
        by_entry: Known = {(GROUP, int(seq[1:])): what for seq, what in known.items()}
        times = {(GROUP, seq): t for seq, t in (at or {}).items()}
        return [violation.invariant for violation in g3(Stories(self.lines), times, times, by_entry)]


def _second_phase() -> Tale:
    tale = Tale()
    tale.phase(1, 10)
    tale.vote(1, "continue")
    return tale


@pytest.mark.parametrize("counted, expected", [("approve", []), ("reject", []), ("continue", ["G4"])])
def test_a_vote_that_may_have_found_the_next_phase_open_counts_or_does_not(counted: str, expected: list[str]) -> None:
    """Its author does not know yet that the phase has begun, but its daemon may: then that vote was the first."""
    tale = _second_phase()
    tale.vote(2, "reject", early=True)
    votes = [[ME, "continue", ""], [OTHER, "approve", ""]]
    tale.told(11, "phase_ended", {"ballot": 10, "phase": 1, "votes": votes})
    tale.phase(2, 11)
    tale.vote(2, "approve")
    tale.rejected(12, 2, [ME, counted, ""], [OTHER, "reject", ""])
    assert expected == [one for one in tale.found() if one == "G4"]


@pytest.mark.parametrize("state, expected", [("red", []), ("blue", []), ("green", ["G6"])])
def test_which_of_two_votes_that_are_alike_was_counted_shows_in_what_came_with_it(
    state: str, expected: list[str]
) -> None:
    """Seed 940067."""
    tale = _second_phase()
    tale.vote(2, "reject", early=True, state="blue")
    votes = [[ME, "continue", ""], [OTHER, "approve", ""]]
    tale.told(11, "phase_ended", {"ballot": 10, "phase": 1, "votes": votes})
    tale.phase(2, 11)
    tale.vote(2, "reject")
    tale.rejected(12, 2, [ME, "reject", ""], [OTHER, "approve", ""], state=state)
    assert expected == tale.found()


@pytest.mark.parametrize("counted, expected", [("approve", []), ("reject", ["G4"])])
def test_of_two_votes_in_one_phase_the_first_counts(counted: str, expected: list[str]) -> None:
    tale = Tale()
    tale.phase(1, 10)
    tale.vote(1, "approve")
    tale.vote(1, "reject", stray=True)
    tale.rejected(11, 1, [ME, counted, ""], [OTHER, "reject", ""])
    assert expected == tale.found()


@pytest.mark.parametrize(
    "why, known, expected",
    [
        ("unresponsive", (11, 11), []),
        ("unresponsive", (10, 10), ["G5"]),
        ("unresponsive", (10, 11), []),
        ("late", (10, 10), []),
        ("late", (10, 11), []),
        ("late", (11, 11), ["G5"]),
    ],
)
def test_who_does_not_answer_is_not_waited_for_once_the_leader_knows(
    why: str, known: tuple[int, int], expected: list[str]
) -> None:
    """GS-27: entry 11 says it, the ruling is entry 12. What the leader did not know when it ruled it need not obey."""
    tale = Tale()
    tale.told(8, "responsive", {"provider": OTHER, "does": False})
    tale.told(9, "responsive", {"provider": OTHER, "does": True})
    tale.phase(1, 10)
    tale.vote(1, "reject")
    tale.told(11, "responsive", {"provider": OTHER, "does": False})
    tale.rejected(12, 1, [ME, "reject", ""], [OTHER, "approve", why])
    assert expected == tale.found(s12=known)


@pytest.mark.parametrize(
    "announced, ruled, expected",
    [
        (4.1, 4.2, ["G5"]),
        (3.9, 4.2, []),  # the vote came when everybody could have known
        (4.1, 5.0, []),  # the time was over: two seconds
    ],
)
def test_a_vote_that_was_cast_before_its_caster_was_said_not_to_answer_counts(
    announced: float, ruled: float, expected: list[str]
) -> None:
    """GS-27: its daemon took the vote at four; that it does not answer is entry 11, and the ruling 12."""
    tale = Tale()
    tale.phase(1, 10)
    tale.vote(1, "reject")
    tale.taken(1)
    tale.told(11, "responsive", {"provider": OTHER, "does": False})
    tale.rejected(12, 1, [ME, "reject", ""], [OTHER, "approve", "unresponsive"])
    assert expected == tale.found({10: 3.0, 11: announced, 12: ruled}, s12=(11, 11))


def test_that_somebody_does_not_answer_is_said_once() -> None:
    """GS-40."""
    tale = Tale()
    for seq in (6, 7):
        tale.told(seq, "responsive", {"provider": OTHER, "does": False})
    assert ["G5"] == tale.found()
