"""Everything at once, from a seed: connections break, processes and nodes die, all join, propose, vote, speak.

Whatever happens: each request has one answer at most, and in the end exactly one if its session lives (K1); all who are
told of an entry are told the same of it (G1); messages come in one order, each once (B1, B4); and when all is quiet
everybody has the same state.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from groupsvc.wire.client_messages import (
    CastVote,
    ChangeStateAsk,
    GoodbyeAsk,
    JoinAsk,
    JoinedAs,
    LeaveAsk,
    MemberLost,
    MessagesCame,
    Multicast,
    OutcomeIs,
    Problem,
    SendAsk,
    SessionNews,
    SubscribeAsk,
    Subscribed,
    Told,
)
from groupsvc.wire.notices import AnyNotice, Left, PhaseOpened, StateChanged

from .applications import Application, Applications

STEPS = 400


class Storm:
    """Applications that do something at random, and what they were told."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.domain = Applications()
        self.alive = [self._start() for _ in range(5)]
        self.all = list(self.alive)
        self.said = 0
        self.answered_votes: set[tuple[int, int, int]] = set()

    def _start(self) -> Application:
        return self.domain.opened(self.rng.choice("DEFG"))

    def members(self, application: Application, kind: type[JoinedAs] | type[Subscribed] = JoinedAs) -> list[int]:
        """Those that it has, as far as it knows."""
        found = {one.member for one in application.told if isinstance(one, kind)}
        for one in application.told:
            if isinstance(one, MemberLost):
                found.discard(one.member)
            elif isinstance(one, Told) and isinstance(one.notice, Left):
                mine = [other for other in found if any(provider[2] == other for provider in one.notice.providers)]
                found.difference_update(other for other in mine if other == one.member)
        found -= {request.member for request in application.said if isinstance(request, GoodbyeAsk)}
        return sorted(found)

    def act(self) -> None:
        """One deed of somebody."""
        rng, one = self.rng, self.rng.choice(self.alive)
        if not one.connection:
            one.resume()
            return
        self.vote(one)
        members = self.members(one)
        deed = rng.random()
        if deed < 0.06:
            one.is_hearing = rng.random() < 0.5
            one.hang_up()
        elif deed < 0.08:
            one.end()
            self.alive.remove(one)
            fresh = self._start()
            self.alive.append(fresh)
            self.all.append(fresh)
        elif deed < 0.25 or not members:
            one.ask(JoinAsk, "db", str(rng.random()), b"", {"state_phases": "n", "time_limit": 2.0}, None, 5.0)
        elif deed < 0.3:
            one.ask(SubscribeAsk, "db", rng.choice([0.0, 1.0]), 5.0)
        elif deed < 0.35:
            one.ask(GoodbyeAsk, rng.choice(members))
        elif deed < 0.38:
            one.ask(LeaveAsk, rng.choice(members), 0, 5.0)
        elif deed < 0.5:
            timeout = rng.choice([0.1, 5.0])
            one.ask(ChangeStateAsk, rng.choice(members), -1, -1.0, rng.random() < 0.3, timeout, self.word(), -1)
        elif deed < 0.55:
            one.ask(SendAsk, rng.choice(members), -1, -1.0, False, 5.0, self.word())
        else:
            one.ask(Multicast, rng.choice(members), tuple(self.word() for _ in range(rng.randrange(1, 5))))

    def kill_node(self, node: str) -> None:
        """With all processes on it; the node comes back, and other processes start."""
        self.domain.die(node)
        for one in [one for one in self.alive if one.node == node]:
            one.is_running, one.connection = False, 0
            self.alive.remove(one)
        self.domain.run(0.5)
        self.domain.boot(node)
        self.domain.run(1.0)
        while len(self.alive) < 5:
            self.alive.append(self._start())
            self.all.append(self.alive[-1])

    def word(self) -> bytes:
        """One that was never said."""
        self.said += 1
        return b"%d" % self.said

    def vote(self, one: Application) -> None:
        """It answers what its members were asked."""
        for told in one.kinds(Told):
            notice = told.notice
            if isinstance(notice, PhaseOpened):
                key = (told.member, notice.ballot, notice.phase)
                mine = any(provider[2] == told.member for provider in notice.electorate)
                if mine and key not in self.answered_votes:
                    self.answered_votes.add(key)
                    vote = self.rng.choice(["approve"] * 4 + ["reject"])
                    one.ask(CastVote, told.member, notice.ballot, notice.phase, vote)

    # --- What must hold ---

    def check(self) -> None:
        """All of it."""
        notices: dict[tuple[int, int], tuple[AnyNotice, ...]] = {}
        payloads: dict[int, bytes] = {}
        for one in self.all:
            self._check_answers(one)
            for member in {told.member for told in one.kinds(JoinedAs)}:
                self._check_member(one, member, notices, payloads)
        orders = sorted(payloads.items())
        assert len({payload for _, payload in orders}) == len(orders)

    def _check_answers(self, one: Application) -> None:
        lives = one in self.alive and not any(news.state == "lost" for news in one.kinds(SessionNews))
        for request in one.said:
            answers = one.answers(request.id)  # type: ignore[attr-defined]
            assert len(answers) <= 1, (request, answers)
            if lives and not isinstance(request, Multicast):
                assert answers, request

    def _check_member(
        self, one: Application, member: int, notices: dict[Any, tuple[AnyNotice, ...]], payloads: dict[int, bytes]
    ) -> None:
        """Each entry is told as to everybody, each number once and in order."""
        joined = next(told for told in one.kinds(JoinedAs) if told.member == member)
        mine: dict[int, list[AnyNotice]] = {}
        last = 0
        for told in one.told:
            if isinstance(told, MessagesCame) and told.member == member:
                for seq, payload in enumerate(told.payloads, told.seq):
                    assert seq > last
                    last = seq
                    assert payload == payloads.setdefault(seq, payload)
            elif isinstance(told, Told) and told.member == member:
                assert told.notice.seq >= last
                last = told.notice.seq
                mine.setdefault(last, []).append(told.notice)
        first, newest = joined.view.seq, last
        for seq, heard in mine.items():
            if first < seq < newest:
                assert tuple(heard) == notices.setdefault((0, seq), tuple(heard)), seq


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_every_request_ends_once_and_all_are_told_the_same(seed: int) -> None:
    storm = Storm(seed)
    domain, rng = storm.domain, storm.rng
    for step in range(STEPS):
        storm.act()
        domain.run(rng.choice([0.0, 0.001, 0.01, 0.05]))
        if step == STEPS // 2 and seed % 2:
            domain.cut("D", "E")
        elif step == STEPS // 2 + 40:
            domain.heal()
        elif step == STEPS * 3 // 4 and seed % 3 == 0:
            storm.kill_node(rng.choice("DEFG"))
    for _ in range(40):
        for one in storm.alive:
            if not one.connection:
                one.resume()
            storm.vote(one)
        domain.run(0.3)
    storm.check()
    states = {tuple(one.value for one in application.notices(StateChanged, member)[-1:])
              for application in storm.alive for member in storm.members(application)}  # fmt: skip
    assert len(states - {()}) <= 1
    assert any(isinstance(told, OutcomeIs) for one in storm.all for told in one.told)
    assert not any(isinstance(told, Problem) and told.code == "usage" for one in storm.all for told in one.told)
