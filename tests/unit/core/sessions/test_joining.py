"""Joining, subscribing and leaving from a session: what comes of it, and what never does."""

from __future__ import annotations

from groupsvc.wire.client_messages import JoinedAs, OutcomeIs
from groupsvc.wire.notices import Joined

from .applications import Applications


def test_who_joins_gets_the_view_and_then_its_own_joined() -> None:
    """GS-32: the first event is one's own."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    one, two = a.join(name="first"), b.join(name="second", data=b"x")
    for application, number in ((a, one), (b, two)):
        answer = application.answer(number)
        assert isinstance(answer, JoinedAs)
        position = application.told.index(answer)
        following = application.told[position + 1]
        assert [answer.provider] == [provider.id for provider in following.notice.providers]  # type: ignore[union-attr]
        assert answer.view.seq == following.notice.seq  # type: ignore[union-attr]
    joined = b.answer(two)
    assert isinstance(joined, JoinedAs)
    assert ["first", "second"] == [provider.name for provider in joined.view.providers]
    assert 2 == len(a.notices(Joined))
    assert "one" == joined.attributes["join_phases"]


def test_a_vote_in_two_sessions_decides() -> None:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(state_phases="n")
    b.join()
    number = a.propose_state(b"red")
    domain.run(0.1)
    a.vote("approve")
    b.vote("approve")
    domain.run(0.1)
    answer = a.answer(number)
    assert isinstance(answer, OutcomeIs)
    assert answer.outcome.approved
