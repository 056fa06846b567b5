"""Whatever a daemon says that can be decoded, in whatever order: it is taken, or refused as the daemon's fault.

No reply may bring the machine down in any other way, nor leave it in a state it cannot be in.
"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from groupsvc.errors import PeerProtocolError
from groupsvc.session_states import SessionState
from groupsvc.voting import MANUAL
from groupsvc.wire import client_messages as wire
from groupsvc.wire import notices
from tests.unit.client.daemon_in_memory import DaemonInMemory, Line
from tests.unit.client.scenes import events, join, new_machine, propose

small = st.integers(-1, 6)
seqs = st.integers(0, 12)
ids = st.tuples(st.sampled_from(["n1", "n2"]), st.sampled_from([7, 8]), st.integers(0, 3))
payloads = st.sampled_from([b"", b"x"])
votes: st.SearchStrategy[Any] = st.sampled_from(["approve", "continue", "reject"])
default_votes: st.SearchStrategy[Any] = st.sampled_from(["approve", "reject"])
causes: st.SearchStrategy[Any] = st.sampled_from(["leave", "failure", "goodbye", "overrun"])


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """A few of them."""
    return st.lists(strategy, max_size=2).map(tuple)


providers = st.builds(notices.Provider, ids, st.sampled_from(["", "a"]), payloads, seqs)
views = st.builds(notices.GroupView, seqs, seqs, some(providers), payloads, small, default_votes)
subjects = st.builds(
    notices.Subject,
    kind=st.sampled_from(["join", "leave", "failure", "expel", "state", "message", "attributes"]),
    proposals=some(ids), proposer=st.none() | ids, joining=some(providers), leaving=some(ids),
    cause=st.none() | causes, state=st.none() | payloads, payload=payloads,
)  # fmt: skip
cast = some(st.builds(notices.Cast, ids, votes, st.sampled_from(["", "failed", "late", "raised"])))
said = some(st.builds(notices.VoteMessage, ids, small, payloads))
outcomes = st.builds(
    notices.Outcome, ballot=seqs, subject=subjects, approved=st.booleans(), phases=small,
    reason=st.sampled_from(["explicit_approve", "time_limit", "one_phase"]), votes=cast, messages=said,
    left_out=some(ids), defaults=cast.map(lambda casts: tuple((1, one) for one in casts)),
)  # fmt: skip
any_notice = st.one_of(
    st.builds(notices.Joined, seqs, some(providers), seqs),
    st.builds(notices.Failing, seqs, ids, causes),
    st.builds(notices.Left, seqs, some(ids), causes, seqs),
    st.builds(notices.StateChanged, seqs, payloads, small),
    st.builds(notices.Message, seqs, ids, payloads),
    st.builds(
        notices.PhaseOpened, seqs, ballot=seqs, phase=small, subject=subjects, electorate=some(ids),
        time_limit=st.floats(0, 5), messages=said,
    ),
    st.builds(notices.PhaseClosed, seqs, ballot=seqs, phase=small, votes=cast, default_vote=default_votes),
    st.builds(notices.Ended, seqs, outcomes, default_votes),
    st.builds(notices.Refused, seqs, ids, st.sampled_from(["busy", "full"])),
    st.builds(notices.AttributesChanged, seqs, st.just((("time_limit", 3.0),))),
    st.builds(notices.Responsive, seqs, ids, st.booleans()),
    st.builds(notices.Emptied, seqs),
    st.builds(notices.Fenced, seqs, seqs, st.booleans()),
)  # fmt: skip
families: st.SearchStrategy[Any] = st.sampled_from(["failed", "unknown", "usage"])
replies = st.one_of(
    st.builds(wire.Done, small),
    st.builds(wire.Problem, small, families, st.sampled_from(["busy", "hello"]), st.just("")),
    st.builds(wire.SessionIs, small, small, payloads, small, st.floats()),
    st.builds(wire.SessionAliveAck, small, small, st.floats()),
    st.builds(wire.JoinedAs, small, small, ids, st.just({}), views),
    st.builds(wire.Subscribed, small, small, st.just({}), views),
    st.builds(wire.OutcomeIs, small, ids, seqs, outcomes),
    st.builds(wire.Told, small, any_notice),
    st.builds(wire.Told, st.just(1), any_notice),
    st.builds(wire.MessagesCame, st.just(1), seqs, ids, some(payloads)),
    st.builds(wire.MemberLost, small, st.booleans(), st.just("")),
    st.builds(wire.NoticesMissed, small, small, views),
    st.builds(wire.SessionNews, st.sampled_from(["suspended", "resumed", "lost"]), st.just("")),
    st.builds(wire.CaughtUp, small, seqs),
    st.builds(wire.GroupsAre, small, st.just(())),
    st.builds(wire.Welcome, small, small, st.just("n1"), small, st.just("")),
)  # fmt: skip


@given(frames=st.lists(st.lists(replies, max_size=6), max_size=8), asks=st.booleans(), manual=st.booleans())
def test_it_is_taken_or_refused(frames: list[list[wire.AnyClientReply]], asks: bool, manual: bool) -> None:
    line = Line(new_machine(), DaemonInMemory())
    line.connect()
    machine = line.machine
    membership = join(line, on_proposal=MANUAL if manual else None)
    calls = [propose(line, membership, b"x")(0.0, 5.0)] if asks else []
    for number, frame in enumerate(frames):
        try:
            machine.received(frame, 0.1 * number)
        except PeerProtocolError as problem:
            machine.lose(str(problem))
        machine.tick(0.1 * number)
    assert math.inf != membership.view.seq
    events(membership)
    assert not membership.has_ended or membership.number not in machine.members
    machine.end()
    assert SessionState.CLOSED is machine.state
    assert all(call.is_done for call in calls)
    assert {} == machine.members
