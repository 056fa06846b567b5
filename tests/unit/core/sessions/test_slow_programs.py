"""A program that is stopped, or reads too slowly, costs itself something, and nobody else anything (X1)."""

from __future__ import annotations

from typing import Any

import pytest

from groupsvc.wire.client_messages import MemberLost, NoticesMissed, SessionAliveAck, SessionNews
from groupsvc.wire.notices import Left, Responsive, StateChanged
from groupsvcd.core.peer_messages import Submit
from groupsvcd.core.sessions import session, tellings
from groupsvcd.core.sessions.session import Session
from groupsvcd.core.sessions.subscription import Subscription

from .applications import Application, Applications


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules with smaller numbers, so that a test is short."""
    limits = {
        "UNCOUNTED_ITEMS_MAX": 200, "UNCOUNTED_BYTES_MAX": 2_000_000, "WINDOW_ITEMS": 50, "WINDOW_BYTES": 1_000_000,
        "CROWDED_ITEMS": 100, "CROWDED_BYTES": 1_000_000,
    }  # fmt: skip
    for name, value in limits.items():
        monkeypatch.setattr(tellings, name, value)


def _session(domain: Applications, application: Application) -> Session:
    assert application.session is not None
    return domain.engines[application.node].sessions._by_number[application.session.session]


def _kept(domain: Applications, application: Application) -> Any:
    return _session(domain, application)._tellings


def _with_a_stopped_watcher() -> tuple[Applications, Application, Application]:
    """One provider, and one that watches and has just stopped counting."""
    domain = Applications()
    a, watcher = domain.opened("D"), domain.opened("E")
    a.join()
    watcher.subscribe()
    domain.run(1.0)
    watcher.is_running = False
    a.count_every = watcher.count_every = 20
    return domain, a, watcher


def test_no_more_is_sent_than_a_program_counts(small_limits: None) -> None:
    """What it leaves in the queues of its socket is bounded; it goes on when it counts."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("D")
    a.join(name="a")
    b.join(name="b")
    a.count_every = b.count_every = 20
    a.is_running = False
    heard = len(a.told)
    for number in range(120):
        b.multicast(b"%d" % number)
        domain.run(0.002)
    assert len(a.told) - heard <= 50
    assert 120 == len(b.payloads)
    a.is_running = True
    domain.run(3.0)
    assert [b"%d" % number for number in range(120)] == a.payloads


def test_who_may_hold_something_alone_is_out_when_it_knows_by_its_own_clock(small_limits: None) -> None:
    """L6: a stopped program loses its session because of what it is told, and does not know it while its lease runs."""
    domain = Applications()
    holder, other = domain.opened("D"), domain.opened("E")
    holder.count_every = other.count_every = 20
    holder.join(name="holder", exclusive=True)
    other.join(name="other")
    domain.run(1.0)
    holder.is_running = False
    lost = _session(domain, holder)
    while not lost.is_over:
        other.multicast(b"more")
        domain.run(0.001)
    assert lost.vouched_for > 0.5
    domain.run(lost.vouched_for - 0.1)
    assert [] == other.notices(Left)
    domain.run(0.3)
    assert ["overrun"] == [left.cause for left in other.notices(Left)]


@pytest.mark.parametrize("size", [1, 5_000], ids=["items", "bytes"])
def test_a_stopped_program_loses_its_session_and_nobody_else_anything(small_limits: None, size: int) -> None:
    """Two sessions on one node, one stopped: what is kept for it has an end, and so has its session."""
    domain = Applications()
    a, b, c = domain.opened("D"), domain.opened("D"), domain.opened("E")
    for name, application in zip("abc", (a, b, c), strict=True):
        application.count_every = 20
        application.join(name=name)
    stopped = _kept(domain, a)
    a.is_running = False
    most_items = most_bytes = 0
    for number in range(300):
        c.multicast(b"%d" % number * size)
        domain.run(0.01)
        most_items, most_bytes = max(most_items, len(stopped._kept)), max(most_bytes, stopped._bytes)
    assert most_items <= 201
    assert most_bytes <= 2_000_000 + 200_000
    for application in (b, c):
        assert ["overrun"] == [left.cause for left in application.notices(Left)]
        assert [b"%d" % number * size for number in range(300)] == application.payloads
    assert isinstance(a.told[-1], SessionNews)
    a.is_running = True
    a.resume()
    assert a.session is None


def test_a_slow_subscriber_misses_something_and_is_told_how_much(small_limits: None) -> None:
    """Its session goes on."""
    domain, a, watcher = _with_a_stopped_watcher()
    for number in range(300):
        a.propose_state(b"%d" % number)
        domain.run(0.01)
    watcher.is_running = True
    domain.run(2.0)
    (missed,) = watcher.kinds(NoticesMissed)
    told = watcher.notices(StateChanged)
    assert 300 == missed.missed + len(told)
    assert b"299" == missed.view.state
    a.propose_state(b"after")
    domain.run(0.2)
    assert b"after" == watcher.notices(StateChanged)[-1].value


def test_a_slow_subscriber_misses_an_entry_or_is_told_all_of_it(small_limits: None) -> None:
    """L6: who knew the half of an entry would see a group, and a fence, that nobody else ever saw."""
    domain, _, watcher = _with_a_stopped_watcher()
    (subscription,) = _session(domain, watcher).parts.values()
    assert isinstance(subscription, Subscription)
    assert subscription.local is not None
    before = len(_kept(domain, watcher)._kept)
    for seq in range(100, 135):
        run = [StateChanged(seq, b"%d" % number, number) for number in range(3)]
        subscription.told(run, subscription.local.group)
    told = [telling for telling, _ in _kept(domain, watcher)._kept][before:]
    assert 100 < before + len(told) < 105 - 2, "the last one that there was room for is told to its end"
    assert [2, 1, 0] * (len(told) // 3) == [2 - telling.notice.version for telling in told]
    assert [True, True, False] * (len(told) // 3) == [telling.more for telling in told]
    assert 3 * 35 - len(told) == subscription._missed


def _is_vouched_for_when_it_has_all(domain: Applications, a: Application, messages: int) -> None:
    """It is back, and says so again and again; it was away for so many messages, and the window is 50."""
    a.count_every = 20
    vouched: list[tuple[bool, bool]] = []  # whether it had all, and whether it was vouched for
    for _ in range(8):
        had = len(a.payloads)
        a.alive()
        (*_, acknowledged) = [one for one in a.not_counted if isinstance(one, SessionAliveAck)]
        vouched.append((had + 50 >= messages, acknowledged.good_for > 0.0))
        domain.run(0.001)
    assert (False, False) == vouched[0]
    assert (True, True) == vouched[-1]
    assert all(has_all == is_vouched for has_all, is_vouched in vouched)


def _away_for(messages: int, *, hangs_up: bool) -> tuple[Applications, Application, Application]:
    """A domain, a program that was stopped beyond its lease, or had no connection, and the one that spoke meanwhile."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join(name="a")
    b.join(name="b")
    domain.run(0.6)
    if hangs_up:
        a.hang_up()
    else:
        a.is_running = False
    _speak(domain, b, messages, every=0.005 if hangs_up else 0.03)
    return domain, a, b


def _speak(domain: Applications, application: Application, messages: int, *, every: float) -> None:
    for number in range(messages):
        application.multicast(b"%d" % number)
        domain.run(every)


def test_a_program_that_resumes_is_vouched_for_when_it_has_all_that_it_missed(small_limits: None) -> None:
    """K2: the answer goes past what waits for room, so it promises nothing as long as something does."""
    domain, a, _ = _away_for(120, hangs_up=True)
    a.resume()
    _is_vouched_for_when_it_has_all(domain, a, 120)


def test_so_is_a_program_that_was_stopped_and_kept_its_connection(small_limits: None) -> None:
    """It may have been expelled meanwhile, and its own ``Left`` is among what waits for room."""
    domain, a, _ = _away_for(120, hangs_up=False)
    _is_vouched_for_when_it_has_all(domain, a, 120)


def test_so_is_a_program_that_is_stopped_again_before_it_had_everything(small_limits: None) -> None:
    domain, a, b = _away_for(120, hangs_up=False)
    a.alive()
    _speak(domain, b, 70, every=0.03)
    _is_vouched_for_when_it_has_all(domain, a, 190)


def test_what_comes_when_it_is_back_does_not_count_as_missed(small_limits: None) -> None:
    """V7: under steady load there is always something that waits for room."""
    domain, a, b = _away_for(120, hangs_up=False)
    for _ in range(5):
        a.alive()
        _speak(domain, b, 50, every=0.001)
    assert _kept(domain, a)._unsent
    (*_, acknowledged) = [one for one in a.not_counted if isinstance(one, SessionAliveAck)]
    assert acknowledged.good_for > 0.0


def test_what_a_watcher_missed_may_be_too_much_to_be_told(small_limits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it has lost the group, and is told so."""
    domain, a, watcher = _with_a_stopped_watcher()
    for number in range(150):
        a.propose_state(b"%d" % number * 200)
        domain.run(0.01)
    monkeypatch.setattr(session, "TELLING_BYTES_MAX", 300)
    watcher.is_running = True
    domain.run(2.0)
    assert [] == watcher.kinds(NoticesMissed)
    (lost,) = watcher.kinds(MemberLost)
    assert "more than one frame holds" in lost.reason


def test_a_program_that_changes_its_mind_a_thousand_times_costs_one_entry_at_a_time() -> None:
    """X1, GS-27: whether it answers is said again when what was said before was ordered, and only if it is not so."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join()
    b.join()
    domain.lose(Submit, "E>D")
    for number in range(1001):
        b.is_responsive = number % 2 == 1
        b.alive()
    local = domain.engines["E"].processes.get("db")
    assert local is not None
    waiting = len(local._line) + dict(domain.engines["E"].groups._submitters.items())[local.id].outstanding
    assert waiting <= 1
    domain.heal()
    domain.run(2.0)
    assert [False] == [one.does for one in a.notices(Responsive)]
    b.is_responsive = True
    domain.run(1.0)
    assert [False, True] == [one.does for one in a.notices(Responsive)]


def test_a_program_that_answers_again_before_that_it_did_not_was_ordered_is_told_of_both_times() -> None:
    """GS-40: what was submitted cannot be taken back, and what is true in the end is said."""
    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    a.join()
    b.join()
    domain.lose(Submit, "E>D")
    for does in (False, True):
        b.is_responsive = does
        b.alive()
    domain.heal()
    domain.run(2.0)
    assert [False, True] == [one.does for one in a.notices(Responsive)]
