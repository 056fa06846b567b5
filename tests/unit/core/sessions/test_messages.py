"""Ordered messages through sessions: of members, of strangers, and when everything has been told."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import (
    CatchUpAsk,
    CaughtUp,
    Done,
    JoinedAs,
    MessagesCame,
    Multicast,
    SubmitOutside,
    Subscribed,
)
from groupsvc.wire.limits import OUTSTANDING_BYTES_MAX, OUTSTANDING_MAX
from groupsvcd.core.peer_messages import Submit, Synced
from groupsvcd.core.sessions import outside

from .applications import Application, Applications


def _two() -> tuple[Applications, Application, Application]:
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join()
    b.join()
    return domain, a, b


def test_messages_of_all_come_in_one_order_everywhere_and_back_to_their_senders() -> None:
    """B4, B5, from session to session."""
    domain, a, b = _two()
    for number in range(10):
        a.multicast(b"a%d" % number, b"a%d again" % number)
        b.multicast(b"b%d" % number)
        domain.run(0.002)
    domain.run(0.2)
    assert 30 == len(a.payloads)
    assert a.payloads == b.payloads
    assert [b"b%d" % number for number in range(10)] == [one for one in a.payloads if one.startswith(b"b")]


def test_messages_in_a_row_of_one_sender_are_told_as_one() -> None:
    domain, a, b = _two()
    a.multicast(*(b"%d" % number for number in range(100)))
    domain.run(0.1)
    (came,) = b.kinds(MessagesCame)
    assert 100 == len(came.payloads)
    assert a.kinds(JoinedAs)[0].provider == came.sender


def test_a_large_run_is_told_in_parts_that_fit_into_frames() -> None:
    domain, a, b = _two()
    a.multicast(*(bytes([number]) * 50_000 for number in range(20)))
    domain.run(0.5)
    assert [bytes([number]) * 50_000 for number in range(20)] == b.payloads
    seqs = [seq for came in b.kinds(MessagesCame) for seq in range(came.seq, came.seq + len(came.payloads))]
    assert seqs == list(range(seqs[0], seqs[0] + 20))
    assert all(sum(map(len, came.payloads)) <= 128 * 1024 for came in b.kinds(MessagesCame))


def test_what_finds_no_room_waits_and_goes_out_in_order() -> None:
    """The window of the node is full; beyond what a provider may have on its way it is told so, and nothing is lost."""
    domain, a, b = _two()
    domain.lose(Submit, "E>D")
    names = ["second", "third"]
    for name in names:
        b.join(name=name)  # their joins wait, too
    for number in range(OUTSTANDING_MAX):
        b.multicast(b"%d" % number)
    refused = b.multicast(b"one too many")
    domain.run(0.1)
    assert ("failed", "full") == b.problem(refused)
    domain.heal()
    domain.run(5.0)
    assert [b"%d" % number for number in range(OUTSTANDING_MAX)] == a.payloads
    again = b.ask(Multicast, b.kinds(JoinedAs)[0].member, (b"now there is room",))
    domain.run(0.2)
    assert [] == b.answers(again)
    assert b"now there is room" == a.payloads[-1]


def test_what_a_provider_has_on_its_way_is_bounded_in_bytes() -> None:
    domain, a, b = _two()
    domain.lose(Submit, "E>D")
    large = b"x" * (OUTSTANDING_BYTES_MAX // 2)
    assert [[], []] == [b.answers(b.multicast(large)) for _ in range(2)]
    assert ("failed", "full") == b.problem(b.multicast(large))
    domain.heal()
    domain.run(3.0)
    assert [len(large)] * 2 == [len(one) for one in a.payloads]


def test_subscribers_are_told_no_messages() -> None:
    """GS-36."""
    domain, a, _ = _two()
    watcher = domain.opened("F")
    assert isinstance(watcher.answer(watcher.subscribe()), Subscribed)
    told = len(watcher.told)
    a.multicast(b"not for you")
    domain.run(0.2)
    assert told == len(watcher.told)


# --- Strangers ---


def test_who_is_no_member_submits_and_is_told_when_all_of_it_is_held() -> None:
    """SAM-03: from a node that does not carry the group, and from one that does."""
    domain, a, b = _two()
    for node in "GD":
        stranger = domain.opened(node)
        numbers = [stranger.ask(SubmitOutside, "db", (b"%s1" % node.encode(), b"%s2" % node.encode()), 5.0)]
        numbers.append(stranger.ask(SubmitOutside, "db", (b"%s3" % node.encode(),), 5.0))
        domain.run(0.5)
        assert [Done(number) for number in numbers] == [stranger.answer(number) for number in numbers]
    assert [b"G1", b"G2", b"G3", b"D1", b"D2", b"D3"] == a.payloads == b.payloads
    assert {("G", 0), ("D", 0)} == {(came.sender[0], came.sender[2]) for came in a.kinds(MessagesCame)}


def test_what_is_submitted_to_no_group_certainly_failed() -> None:
    domain, _, _ = _two()
    stranger = domain.opened("G")
    number = stranger.ask(SubmitOutside, "nowhere", (b"x",), 5.0)
    domain.run(1.0)
    assert ("failed", "no such group") == stranger.problem(number)


def test_what_was_submitted_from_outside_and_not_heard_of_is_not_known() -> None:
    domain, _, _ = _two()
    stranger = domain.opened("G")
    domain.lose(Submit, "G>D G>E")
    first = stranger.ask(SubmitOutside, "db", (b"x",), 1.0)
    domain.run(0.5)
    second = stranger.ask(SubmitOutside, "db", (b"y",), 0.2)
    domain.run(1.0)
    assert ("unknown", "timed out") == stranger.problem(first)
    assert ("failed", "timed out") == stranger.problem(second)


def test_what_was_on_its_way_to_a_group_that_ended_is_not_known() -> None:
    """It may have been ordered before the end."""
    domain, a, b = _two()
    stranger = domain.opened("G")
    stranger.ask(SubmitOutside, "db", (b"x",), 5.0)
    domain.run(0.5)
    domain.lose(Submit, "G>D G>E")
    number = stranger.ask(SubmitOutside, "db", (b"y",), 30.0)
    domain.run(0.2)
    a.end()
    b.end()
    domain.run(10.0)
    assert ("unknown", "lost") == stranger.problem(number)
    again = stranger.ask(SubmitOutside, "db", (b"z",), 5.0)
    domain.run(1.0)
    assert ("failed", "no such group") == stranger.problem(again)


def test_what_strangers_leave_waiting_on_a_node_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """X1: whatever groups it is for, there or not, and whoever waits for it; there is room again when it has gone."""
    monkeypatch.setattr(outside, "WAITING_BYTES_MAX", 1000)
    domain, a, _ = _two()
    stranger = domain.opened("G")
    domain.lose(Submit, "G>D G>E")
    numbers = [stranger.ask(SubmitOutside, name, (b"x" * 300,), 1.0) for name in ("db", "db", "db", "db", "nowhere")]
    domain.run(0.1)
    for refused in numbers[3:]:
        assert ("failed", "full") == stranger.problem(refused)
    domain.run(2.0)
    domain.heal()
    domain.run(3.0)
    again = stranger.ask(SubmitOutside, "db", (b"y" * 1500,), 5.0)  # alone it may be as large as any
    domain.run(1.0)
    assert Done(again) == stranger.answer(again)
    assert b"y" * 1500 == a.payloads[-1]


def test_a_stranger_that_becomes_a_member_meanwhile_is_answered_all_the_same() -> None:
    domain, a, _ = _two()
    stranger = domain.opened("G")
    numbers = []
    for number in range(20):
        numbers.append(stranger.ask(SubmitOutside, "db", (b"%d" % number,), 5.0))
        if number == 5:
            stranger.join(wait=0.0)
        domain.run(0.003)
    domain.run(1.0)
    assert [Done(number) for number in numbers] == [stranger.answer(number) for number in numbers]
    assert [b"%d" % number for number in range(20)] == a.payloads


# --- Catching up ---


def test_catching_up_is_answered_when_everything_before_it_was_told() -> None:
    domain, a, b = _two()
    a.multicast(b"before")
    number = b.ask(CatchUpAsk, b.member, 5.0)
    domain.run(0.2)
    answer = b.answer(number)
    assert isinstance(answer, CaughtUp)
    (came,) = b.kinds(MessagesCame)
    assert b.told.index(came) < b.told.index(answer)
    assert came.seq <= answer.seq


def test_catching_up_fails_if_nobody_confirms_it_in_time() -> None:
    domain, _, b = _two()
    domain.lose(Synced)
    number = b.ask(CatchUpAsk, b.member, 0.5)
    domain.run(0.6)
    assert ("failed", "timed out") == b.problem(number)
