"""A node that is drained hands over what it has, tells its programs, and ends; and nothing that is stable is lost.

A, B and C are voters, A is name server; D, E and F carry the groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from groupsvc.wire.client_messages import (
    DrainAsk,
    DrainIs,
    GoodbyeAsk,
    LookUpAsk,
    OpenSession,
    Problem,
    SessionNews,
)
from groupsvc.wire.limits import DRAIN_S
from groupsvc.wire.notices import Left
from groupsvcd.core.drain import FINISH_S, SAID_S
from groupsvcd.core.events import LocalCall
from groupsvcd.core.nodegroups.node_groups import NodeGroups
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import NodeId
from tests.unit.core.sessions.applications import Application, Applications, three
from tests.unit.core.trio import Trio

PROMPT_S = 0.5
"""Nothing waits here: what has to be done takes a few messages."""


def drain(domain: Trio, node: str, timeout: float = DRAIN_S) -> None:
    """Somebody tells the daemon, as a signal does."""
    engine = domain.engines[node]
    domain.step(node, LocalCall(lambda: engine.drain.begin(timeout)))


def ask(application: Application, timeout: float = DRAIN_S) -> int:
    """A connection without a session asks for it, or how far it is."""
    return application.ask(DrainAsk, timeout)


def causes(application: Application) -> list[str]:
    """Why others have left."""
    return [notice.cause for notice in application.notices(Left)]


# --- What it does ------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", "DEF")
def test_providers_say_goodbye_the_group_goes_on_and_the_daemon_ends(node: str) -> None:
    """The leader, and whoever serves."""
    domain, applications = three()
    others = [one for one in applications if one.node != node]
    drain(domain, node)
    domain.run(PROMPT_S)
    assert {node: "drained"} == domain.stopped
    assert [["goodbye"], ["goodbye"]] == [causes(one) for one in others]
    others[0].multicast(b"on we go")
    domain.run(0.2)
    assert [[b"on we go"]] * 2 == [one.payloads for one in others]


def test_the_leader_hands_over_before_it_goes_and_nobody_is_declared_down_for_it() -> None:
    domain, (_, b, _c) = three()
    assert "leader" == domain.roles("D", "db")[0]
    domain.forget_the_past()
    drain(domain, "D")
    domain.run(PROMPT_S)
    at = next(line.at for line in domain.journal if line.op == "drain" and line.args["stage"] == "drained")
    active = [line for line in domain.journal if line.op == "view_active"]
    assert active[0].at <= at
    assert active[0].node != "D"
    assert ["goodbye"] == causes(b)


def test_the_office_goes_to_another_voter_first() -> None:
    domain = Trio.in_service()
    assert ["A"] == domain.leaders
    drain(domain, "A")
    domain.run(PROMPT_S)
    assert {"A": "drained"} == domain.stopped
    assert ["B"] == domain.leaders
    reasons = [line.args.get("reason") for line in domain.journal if line.op == "office" and line.node == "A"]
    assert ["yields to B"] == reasons


def test_programs_are_told_why_and_where_to_go() -> None:
    domain, (a, _, _c) = three()
    drain(domain, "D")
    domain.run(PROMPT_S)
    (news,) = a.kinds(SessionNews)
    assert "lost" == news.state
    assert news.reason.startswith(
        "node D is being drained and begins nothing new: use the daemon of another node (A, B"
    )


def test_what_is_under_way_is_answered_before_the_sessions_end() -> None:
    domain, (a, b, _) = three(state_phases="n")
    number = a.propose_state(b"red")
    domain.run(0.05)
    drain(domain, "D")
    domain.run(0.5)
    assert not domain.stopped
    for application in (a, b, _):
        application.vote("approve")
    domain.run(PROMPT_S)
    assert a.answer(number).outcome.approved  # type: ignore[union-attr]
    assert {"D": "drained"} == domain.stopped


def test_messages_that_were_taken_come_back_before_the_sessions_end() -> None:
    domain, (a, b, _) = three()
    a.multicast(b"one", b"two")
    drain(domain, "D")
    domain.run(PROMPT_S)
    assert [b"one", b"two"] == a.payloads == b.payloads
    assert {"D": "drained"} == domain.stopped


def test_a_request_that_may_wait_for_ever_is_not_waited_for() -> None:
    """Its program is told that it is not known; the vote goes on, and the drain with it."""
    domain, (a, b, _) = three(state_phases="n", time_limit=5.0)
    number = a.propose_state(b"x", timeout=60.0)
    drain(domain, "D")
    domain.run(FINISH_S - 0.1)
    assert not a.answers(number)
    domain.run(1.0)
    assert ("unknown", "lost") == a.problem(number)
    assert not domain.stopped
    domain.run(3.0)
    assert {"D": "drained"} == domain.stopped
    assert ["goodbye"] == causes(b)


# --- What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["join", "subscribe", "state", "multicast"])
def test_nothing_new_is_begun_in_a_session(what: str) -> None:
    domain, (a, _, _c) = three(state_phases="n", time_limit=60.0)
    a.propose_state(b"x", timeout=60.0)  # keeps it at finishing
    drain(domain, "D")
    number = {
        "join": lambda: a.join("other", wait=0.1),
        "subscribe": lambda: a.subscribe("db", wait=0.1),
        "state": lambda: a.propose_state(b"y"),
        "multicast": lambda: a.multicast(b"more"),
    }[what]()
    assert ("failed", "draining") == a.problem(number)


def test_who_is_in_may_still_leave() -> None:
    domain, (a, b, _c) = three(state_phases="n", time_limit=60.0)
    a.propose_state(b"x", timeout=60.0)
    drain(domain, "D")
    a.ask(GoodbyeAsk, a.member)
    domain.run(0.1)
    assert not any(isinstance(one, Problem) and one.code == "draining" for one in a.told)
    assert b.member


def test_there_is_no_new_session_and_no_new_group() -> None:
    domain, (a, _, _c) = three(state_phases="n", time_limit=60.0)
    a.propose_state(b"x", timeout=60.0)
    drain(domain, "D")
    late = Application(domain, "D")
    late.connect()
    for number in (late.ask(OpenSession, "late"), late.ask(LookUpAsk, "new", True, 5.0)):
        assert ("failed", "draining") == late.problem(number)
    (first,) = [one for one in late.not_counted if isinstance(one, Problem)][:1]
    assert "use the daemon of another node" in first.text


# --- Who waits for it --------------------------------------------------------------------------------


def test_who_asks_is_told_how_far_it_is_and_has_the_last_word() -> None:
    domain, (a, _, _c) = three(state_phases="n", time_limit=3.0)
    a.propose_state(b"x", timeout=60.0)
    operator = Application(domain, "D")
    operator.connect()
    first = ask(operator)
    domain.run(0.5)
    told = operator.answer(first)
    assert isinstance(told, DrainIs)
    assert ("D", "finishing", 1, 1) == (told.node, told.stage, told.sessions, told.groups)
    assert DRAIN_S - 1 < told.time_left < DRAIN_S
    assert told.left
    while "D" not in domain.stopped:
        last = ask(operator)
        domain.run(0.3)
    told = operator.answer(last)
    assert isinstance(told, DrainIs)
    assert ("drained", ()) == (told.stage, told.left)
    assert {"D": "drained"} == domain.stopped


def test_the_last_word_waits_for_who_has_just_been_answered() -> None:
    domain = Applications(voters="A", others="")
    a, operator = domain.opened("A"), Application(domain, "A")
    a.join(exclusive=True)
    operator.connect()
    answered = ask(operator)
    while not operator.answers(answered):
        domain.run(0.01)
    while not domain.stopped and domain.engines["A"].groups.all:
        domain.run(0.01)
    domain.run(0.1)
    assert not domain.stopped
    last = ask(operator)
    domain.run(0.01)
    assert "drained" == operator.answer(last).stage  # type: ignore[union-attr]
    assert not domain.stopped  # it gets the time to read that
    domain.run(SAID_S)
    assert {"A": "drained"} == domain.stopped


def test_an_operator_who_does_not_ask_again_is_not_waited_for_long() -> None:
    domain, _ = three(exclusive=True)
    operator = Application(domain, "D")
    operator.connect()
    ask(operator)
    domain.run(4.0)
    assert {"D": "drained"} == domain.stopped


def test_an_operator_who_goes_away_does_not_stop_it() -> None:
    domain, _ = three()
    operator = Application(domain, "D")
    operator.connect()
    ask(operator)
    operator.hang_up()
    domain.run(PROMPT_S)
    assert {"D": "drained"} == domain.stopped


def test_asked_twice_it_is_one_drain_and_the_shorter_time_counts() -> None:
    domain, _ = three()
    domain.cut("D", *"ABCEFG")
    domain.run(4.0)  # it has no lease any more
    drain(domain, "D", 20.0)
    domain.run(1.0)
    drain(domain, "D", 60.0)
    drain(domain, "D", 5.0)
    domain.run(4.5)
    assert not domain.stopped
    domain.run(1.0)
    assert "the time for the drain is over" in domain.stopped["D"]


# --- What must hold ----------------------------------------------------------------------------------


def test_a_domain_of_one_has_nobody_to_hand_over_to_and_ends_at_once() -> None:
    domain = Applications(voters="A", others="")
    a = domain.opened("A")
    a.join()
    drain(domain, "A")
    domain.run(PROMPT_S)
    assert {"A": "drained"} == domain.stopped


def test_a_node_that_was_never_let_in_ends_at_once() -> None:
    trio = Trio("ABC")
    trio.boot("A")
    trio.run(1.0)
    drain(trio, "A")
    trio.run(PROMPT_S)
    assert {"A": "drained"} == trio.stopped


def test_the_last_of_three_voters_ends_and_the_others_find_everything_when_they_are_back() -> None:
    trio = Trio.in_service()
    for name in "ABC":
        drain(trio, name)
        trio.run(PROMPT_S)
    trio.run(DRAIN_S)
    assert ["A", "B", "C"] == sorted(trio.stopped)
    trio.boot(*"ABC")
    trio.run(4.0)
    assert 1 == len(trio.leaders)


def test_without_a_majority_it_waits_for_one_and_then_says_what_was_left() -> None:
    """D has a group and no lease: it cannot leave in good order, and does not pretend to."""
    domain, _ = three()
    domain.kill("B", "C")
    domain.run(6.0)
    drain(domain, "D", 8.0)
    domain.run(7.0)
    assert not domain.stopped
    domain.run(1.5)
    assert "groups: 'db'" in domain.stopped["D"]
    assert "no name server answers" in domain.stopped["D"]


def test_a_majority_that_comes_back_in_time_lets_it_end_in_good_order() -> None:
    domain, (_, b, _c) = three()
    domain.kill("B", "C")
    domain.run(6.0)
    drain(domain, "D", 20.0)
    domain.run(3.0)
    domain.boot("B", "C")
    domain.run(6.0)
    assert {"D": "drained"} == domain.stopped
    assert ["goodbye"] == causes(b)


@pytest.mark.parametrize("milliseconds", range(0, 40, 2))
@pytest.mark.parametrize("victim", ["A", "D", "E"])
def test_whoever_dies_meanwhile_what_is_stable_is_not_lost(victim: str, milliseconds: int) -> None:
    """The name server, the leader that hands over, or the one who gets it, at any moment of it."""
    domain, (a, b, c) = three()
    a.multicast(b"before")
    domain.run(0.2)
    c.multicast(b"meanwhile")
    drain(domain, "D")
    domain.run(milliseconds / 1000)
    if victim in domain.engines:
        domain.kill(victim)
        domain.refuse(victim, *(name for name in domain.engines if name != victim))
    domain.run(8.0)
    c.multicast(b"after")
    domain.run(1.0)
    survivors = [one for one in (b, c) if one.node != victim]
    assert [[b"before", b"meanwhile", b"after"]] * len(survivors) == [one.payloads for one in survivors]
    assert "D" not in domain.engines


@pytest.mark.parametrize("together", ["DE", "DEF", "AD"])
def test_several_nodes_at_once(together: str) -> None:
    domain, applications = three()
    for node in together:
        drain(domain, node)
    domain.run(8.0)
    assert sorted(together) == sorted(domain.stopped)
    staying = [one for one in applications if one.node not in together]
    for one in staying[:1]:
        one.multicast(b"on")
    domain.run(1.0)
    assert all([b"on"] == one.payloads for one in staying)


def test_what_a_durable_group_keeps_outlives_the_drain_of_all_its_nodes() -> None:
    """Were its last provider to say goodbye, the group would end with what it has kept."""
    domain, applications = three(durable=True)
    applications[0].propose_state(b"precious")
    domain.run(0.5)
    for node in "DEF":
        drain(domain, node)
        domain.run(PROMPT_S)
    assert ["D", "E", "F"] == sorted(domain.stopped)
    assert {"drained"} == set(domain.stopped.values())
    domain.boot(*"DEF")
    domain.run(4.0)
    again = domain.opened("D")
    number = again.join(wait=1.0)
    assert b"precious" == again.answer(number).view.state  # type: ignore[union-attr]


def test_a_durable_group_goes_on_when_its_leader_was_drained() -> None:
    domain, (_, b, c) = three(durable=True)
    drain(domain, "D")
    domain.run(2.0)
    assert {"D": "drained"} == domain.stopped
    assert ["node_failure"] == causes(b)
    c.multicast(b"on")
    domain.run(1.0)
    assert [b"on"] == b.payloads


def test_who_holds_something_alone_knows_that_it_is_lost_before_anybody_else_has_it() -> None:
    """Its program may not have read it yet: the next one waits until nobody vouches for the session any more."""
    domain, (a, b, _c) = three(exclusive=True)
    domain.run(1.0)
    a.is_hearing = a.is_running = False  # it stands still, and believes what it was told last
    (session,) = domain.engines["D"].sessions._by_number.values()
    believes_until = domain.now + session.vouched_for
    assert believes_until > domain.now + 0.5
    drain(domain, "D")
    domain.run(believes_until - domain.now - 0.01)
    assert [] == causes(b)
    assert not domain.stopped
    domain.run(PROMPT_S)
    assert ["goodbye"] == causes(b)
    assert {"D": "drained"} == domain.stopped


def test_a_drained_voter_does_not_take_the_office_again() -> None:
    trio = Trio.in_service(of={"A": {"pinned": True}})
    trio.hang_disk("C")
    drain(trio, "A", 3.0)
    trio.run(0.3)
    won = [line.node for line in trio.journal if line.op == "office" and line.args["phase"] == "won"]
    assert "A" not in won


def test_programs_inside_the_daemon_leave_their_groups() -> None:
    domain = Applications()
    domain.assemble("DEF")
    drain(domain, "D")
    domain.run(PROMPT_S)
    assert {"D": "drained"} == domain.stopped
    domain.submit("E", "on")
    domain.run(0.2)
    assert ["on"] == domain.texts("F")


def test_a_group_that_only_a_command_formed_does_not_keep_the_node() -> None:
    domain = Applications()
    operator = Application(domain, "D")
    operator.connect()
    operator.ask(LookUpAsk, "new", True, 5.0)
    domain.run(0.3)
    drain(domain, "D")
    domain.run(PROMPT_S)
    assert {"D": "drained"} == domain.stopped


def test_nothing_of_it_survives_a_restart() -> None:
    domain, (a, _b, _c) = three()
    drain(domain, "D")
    domain.kill("D")
    domain.boot("D")
    domain.run(4.0)
    again = domain.opened("D")
    number = again.join(wait=1.0)
    assert not isinstance(again.answer(number), Problem)
    assert not domain.stopped
    assert a.node == "D"


class ComesAgain:
    """A program inside the daemon that joins its group again as soon as it has lost it."""

    def __init__(self, groups: NodeGroups) -> None:
        self._groups = groups
        self.times = 0

    def come(self) -> None:
        self.times += 1
        self._groups.join("inside", {}, self)

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None: ...

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None: ...

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None: ...

    def lost(self, reason: str) -> None:
        self.come()


@pytest.mark.timeout(30)
def test_who_comes_again_whenever_it_is_sent_away_does_not_keep_the_node_from_ending() -> None:
    """It was sent away, and came, and was sent away, within one step that never ended."""
    domain = three()[0]
    program = ComesAgain(domain.engines["D"].groups)
    domain.step("D", LocalCall(program.come))
    domain.run(0.5)
    drain(domain, "D", timeout=2.0)
    domain.run(4.0)
    assert 1 < program.times < 100
    assert ["D"] == list(domain.stopped)
