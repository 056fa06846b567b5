"""Whatever requests a program sends, in whatever order: each has one answer at most, and the daemon goes on (X2, K1).

The requests are of the right types and make no sense otherwise: numbers of any size, members of others, phases that
never were, names of groups that are none. A second program does honest work meanwhile, and must not notice.
"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groupsvc.wire import client_messages as m
from groupsvc.wire.client_messages import JoinedAs, MessagesCame, Told
from tests.unit.core.sessions.applications import Application, Applications

numbers = st.sampled_from([-(2**63), -2, -1, 0, 1, 2, 3, 4, 5, 10**9, 2**63 - 1])
seconds = st.sampled_from([-1.0, 0.0, 0.01, 0.3, 5.0, 1e308, math.inf, -math.inf, math.nan])
names = st.sampled_from(["", "db", "other", "_hosts", "_groups", "_lock/a", "_x", "a b", "x" * 201, "\u00fc"])
data = st.sampled_from([b"", b"x", b"\0" * 5, b"x" * 70_000])
providers = st.tuples(st.sampled_from(["", "D", "E", "Z"]), numbers, numbers)
values = st.sampled_from([None, True, 0, 1, -1, 5.0, math.nan, "n", "one", "joins", "both", ["x"], "x" * 100])
attributes = st.dictionaries(
    st.sampled_from(["state_phases", "join_phases", "time_limit", "batch", "durable", "replicas", "machine", "colour"]),
    values, max_size=3,
)  # fmt: skip
proposal = (numbers, st.sampled_from([-2, -1, 0, 1, 2, 1000, 1001]), seconds, st.booleans(), seconds)
payloads = st.lists(data, max_size=3).map(tuple)
votes = st.sampled_from(["approve", "continue", "reject", None])

REQUESTS: list[st.SearchStrategy[tuple[Any, ...]]] = [
    st.tuples(st.just(kind), *fields)
    for kind, *fields in (
        (m.OpenSession, st.text(max_size=3)),
        (m.ResumeSession, numbers, data, numbers),
        (m.SessionAlive, numbers, st.booleans()),
        (m.JoinAsk, names, names, data, attributes, st.sampled_from([None, True, False]), seconds),
        (m.SubscribeAsk, names, seconds, seconds),
        (m.LeaveAsk, numbers, numbers, seconds),
        (m.GoodbyeAsk, numbers),
        (m.ChangeStateAsk, *proposal, data, numbers),
        (m.SendAsk, *proposal, data),
        (m.ExpelAsk, *proposal, st.lists(providers, max_size=2).map(tuple), names),
        (m.ChangeAttributesAsk, *proposal, attributes),
        (m.CastVote, numbers, numbers, numbers, votes, st.none() | data, st.none() | data),
        (m.Multicast, numbers, payloads),
        (m.SubmitOutside, names, payloads, seconds),
        (m.CatchUpAsk, numbers, seconds),
        (m.OutcomeAsk, numbers, providers),
        (m.GroupsAsk, seconds),
        (m.WhyAsk, names, seconds),
        (m.Overrun, numbers),
        (m.StatusAsk,),
        (m.StatisticsAsk,),
        (m.LookUpAsk, names, st.booleans(), seconds),
        (m.ConfigAsk, names, seconds),
    )
]


def _domain() -> tuple[Applications, Application]:
    domain = Applications(voters="A", others="D")
    honest = domain.opened("D")
    honest.join("db")
    return domain, honest


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.one_of(REQUESTS), st.sampled_from([0.0, 0.01, 0.5])), max_size=25), st.booleans())
def test_no_request_breaks_the_daemon_or_disturbs_another_program(
    requests: list[tuple[tuple[Any, ...], float]], closes: bool
) -> None:
    domain, honest = _domain()
    wild = domain.opened("D")
    asked: list[int] = []
    for (kind, *arguments), wait in requests:
        asked.append(wild.ask(kind, *arguments))
        domain.run(wait)
    if closes:
        asked.append(wild.ask(m.CloseSession))
    domain.run(0.5)
    for number in asked:
        assert len(wild.answers(number)) <= 1
    assert 1 == sum(isinstance(one, JoinedAs) for one in honest.told)
    honest.multicast(b"still here")
    domain.run(0.2)
    assert [b"still here"] == [
        payload
        for one in honest.kinds(MessagesCame)
        if one.sender == honest.kinds(JoinedAs)[0].provider
        for payload in one.payloads
    ]
    assert all(isinstance(one, Told | MessagesCame | JoinedAs) for one in honest.told)
