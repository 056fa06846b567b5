"""What a program may do in groups is judged by who it is, on its own node; a refusal changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupsvc.wire import client_messages as m
from groupsvc.wire.notices import Left, PhaseOpened, StateChanged
from groupsvcd.core.access import VERBS, Access, Principal, Rule, Verb, Who
from groupsvcd.core.events import ClientCame, LocalCall

from .applications import Application, Applications

ALICE, BOB = Principal(uid=1000), Principal(uid=1001)


def allowing(*verbs: Verb, group: str = "db", uid: int = 1001) -> Rule:
    return Rule((Who(f"user:{uid}", uid=uid),), (group,), frozenset(verbs))


ALICE_ALL = allowing(*VERBS, group="*", uid=1000)


class Users(Applications):
    """Every connection is of the user who is said to make the next ones."""

    principal = ALICE

    def new_connection(self, application: Application) -> int:
        number = super().new_connection(application)
        self.step(application.node, ClientCame(number, self.principal))
        return number

    def set_access(self, *rules: Rule) -> None:
        for node in "DEF":
            sessions = self.engines[node].sessions
            self.step(node, LocalCall(lambda sessions=sessions: sessions.set_access(Access(rules))))  # type: ignore[misc]

    def opened_by(self, principal: Principal, node: str) -> Application:
        self.principal = principal
        return self.opened(node)


@pytest.fixture
def domain() -> Users:
    made = Users()
    made.set_access(ALICE_ALL)
    return made


def denied(application: Application, number: int, verb: str) -> None:
    found = application.answer(number)
    assert isinstance(found, m.Problem)
    assert ("failed", "permission denied") == (found.family, found.code)
    assert f"to {verb}" in found.text


def test_who_is_allowed_nothing_gets_nowhere(domain: Users) -> None:
    alice, bob = domain.opened_by(ALICE, "D"), domain.opened_by(BOB, "E")
    alice.join()
    denied(bob, bob.join(), "join")
    denied(bob, bob.subscribe(), "subscribe")
    denied(bob, bob.subscribe("_hosts"), "subscribe")
    denied(bob, bob.ask(m.SubmitOutside, "db", (b"x",), 5.0), "send")
    denied(bob, bob.ask(m.WhyAsk, "db", 5.0), "subscribe")
    denied(bob, bob.ask(m.LookUpAsk, "db", True, 5.0), "create")
    denied(bob, bob.ask(m.LookUpAsk, "db", False, 5.0), "subscribe")
    denied(bob, bob.ask(m.ConfigSet, "key", "value", 0, 5.0), "administer")
    denied(bob, bob.ask(m.HandOverAsk, "A", 5.0), "administer")
    of_bob, of_alice = bob.ask(m.GroupsAsk, 5.0), alice.ask(m.GroupsAsk, 5.0)
    domain.run(0.5)
    assert m.GroupsAre(of_bob, ()) == bob.answer(of_bob)
    shown = alice.answer(of_alice)
    assert isinstance(shown, m.GroupsAre)
    assert ["db"] == [line.name for line in shown.groups]


AS_PROVIDER: dict[str, Callable[[Application], tuple[type[m.ClientRequest], tuple[Any, ...]]]] = {
    "send": lambda who: (m.Multicast, (who.member, (b"x",))),
    "propose": lambda who: (m.ChangeStateAsk, (who.member, 1, -1.0, False, 5.0, b"x", -1)),
    "expel": lambda who: (m.ExpelAsk, (who.member, 1, -1.0, False, 5.0, (("D", 1, 1),), "")),
}


@pytest.mark.parametrize("verb", AS_PROVIDER)
def test_a_provider_needs_a_right_for_what_it_does_to_others(domain: Users, verb: Verb) -> None:
    alice, bob = domain.opened_by(ALICE, "D"), domain.opened_by(BOB, "E")
    alice.join()
    domain.set_access(ALICE_ALL, allowing("join"))
    bob.join()
    assert bob.member
    kind, arguments = AS_PROVIDER[verb](bob)
    denied(bob, bob.ask(kind, *arguments), verb)
    domain.set_access(ALICE_ALL, allowing("join", verb))
    number = bob.ask(kind, *arguments)
    domain.run(0.5)
    assert not any(isinstance(one, m.Problem) and one.code == "permission denied" for one in bob.answers(number))


def test_voting_and_leaving_need_no_right_of_their_own(domain: Users) -> None:
    alice, bob = domain.opened_by(ALICE, "D"), domain.opened_by(BOB, "E")
    alice.join(state_phases="n")
    domain.set_access(ALICE_ALL, allowing("join"))
    bob.join()
    number = alice.propose_state(b"red")
    domain.run(0.3)
    alice.vote("approve")
    bob.vote("approve")
    domain.run(0.3)
    assert isinstance(alice.answer(number), m.OutcomeIs)
    left = bob.ask(m.LeaveAsk, bob.member, 0, 5.0)
    domain.run(0.5)
    assert isinstance(bob.answer(left), m.OutcomeIs)


SAID_WITH_A_VOTE: dict[str, tuple[Verb, dict[str, Any]]] = {
    "a state": ("propose", {"state": b"taken"}),
    "an empty state": ("propose", {"state": b""}),
    "a default vote": ("propose", {"default_vote": "reject"}),
    "a message": ("send", {"message": b"x"}),
}


@pytest.mark.parametrize("verb, said", SAID_WITH_A_VOTE.values(), ids=SAID_WITH_A_VOTE)
def test_what_is_said_with_a_vote_needs_the_right_to_say_it(domain: Users, verb: Verb, said: dict[str, Any]) -> None:
    """Else who may only join would change the state with its vote on its own leave."""
    alice, bob = domain.opened_by(ALICE, "D"), domain.opened_by(BOB, "E")
    alice.join(leave_phases="n")
    domain.set_access(ALICE_ALL, allowing("join"))
    bob.join()
    left = bob.ask(m.LeaveAsk, bob.member, 0, 5.0)
    domain.run(0.3)
    denied(bob, vote(bob, **said), verb)
    alice.vote("approve")
    domain.run(0.3)
    assert [] == bob.answers(left), "its vote was not counted, and is waited for"
    bare = vote(bob)
    domain.run(0.3)
    assert isinstance(bob.answer(bare), m.Done)
    answer = bob.answer(left)
    assert isinstance(answer, m.OutcomeIs)
    assert answer.outcome.approved
    assert (None, ()) == (answer.outcome.subject.state, answer.outcome.messages)
    assert [] == alice.notices(StateChanged)


@pytest.mark.parametrize("verb, said", SAID_WITH_A_VOTE.values(), ids=SAID_WITH_A_VOTE)
def test_with_the_right_it_is_said(domain: Users, verb: Verb, said: dict[str, Any]) -> None:
    alice, bob = domain.opened_by(ALICE, "D"), domain.opened_by(BOB, "E")
    alice.join(state_phases="n")
    domain.set_access(ALICE_ALL, allowing("join", verb))
    bob.join()
    number = alice.propose_state(b"red")
    domain.run(0.3)
    alice.vote("approve")
    cast = vote(bob, **said)
    domain.run(0.5)
    assert isinstance(bob.answer(cast), m.Done)
    answer = alice.answer(number)
    assert isinstance(answer, m.OutcomeIs)
    assert said.get("state", b"red") == answer.outcome.subject.state
    assert [said[name] for name in ("message",) if name in said] == [one.payload for one in answer.outcome.messages]


def vote(application: Application, **said: Any) -> int:
    opened = application.notices(PhaseOpened)[-1]
    return application.ask(m.CastVote, application.member, opened.ballot, opened.phase, "approve", **said)


@pytest.mark.parametrize("create", [None, True])
def test_who_may_not_create_joins_only_what_is_there(domain: Users, create: bool | None) -> None:
    domain.set_access(ALICE_ALL, allowing("join"))
    alice, bob = domain.opened_by(ALICE, "D"), domain.opened_by(BOB, "E")
    denied(bob, bob.join(create=create, wait=1.0), "create")
    alice.join()
    if create is None:
        assert isinstance(bob.answer(bob.join()), m.JoinedAs)


def test_another_user_does_not_resume_a_session_whose_secret_it_has(domain: Users) -> None:
    alice = domain.opened_by(ALICE, "D")
    domain.principal = BOB
    alice.resume()
    assert alice.session is None
    assert "lost" == [one for one in alice.not_counted if isinstance(one, m.Problem)][-1].code


def test_new_rules_take_out_who_may_not_be_there_any_more(domain: Users) -> None:
    domain.set_access(ALICE_ALL, allowing("join", "subscribe"))
    alice, bob, watcher = domain.opened_by(ALICE, "D"), domain.opened_by(BOB, "E"), domain.opened_by(BOB, "F")
    alice.join()
    bob.join()
    watcher.subscribe()
    domain.set_access(ALICE_ALL)
    domain.run(1.0)
    for gone in (bob, watcher):
        (lost,) = gone.kinds(m.MemberLost)
        assert "no rule of this node allows user:1001" in lost.reason
    assert 1 == len(alice.notices(Left))


@pytest.mark.parametrize("group", ["_hosts", "_groups"])
def test_new_rules_end_the_watching_of_what_is_always_there(domain: Users, group: str) -> None:
    domain.set_access(ALICE_ALL, allowing("subscribe", "join", group=group))
    alice, watcher = domain.opened_by(ALICE, "D"), domain.opened_by(BOB, "E")
    assert isinstance(watcher.answer(watcher.subscribe(group)), m.Subscribed)
    domain.set_access(ALICE_ALL)
    (lost,) = watcher.kinds(m.MemberLost)
    assert f"no rule of this node allows user:1001 to subscribe in group '{group}'" in lost.reason
    told = len(watcher.told)
    alice.join("new")
    domain.die("G")
    domain.run(4.0)
    assert told == len(watcher.told)
    denied(watcher, watcher.subscribe(group), "subscribe")


def test_new_rules_end_a_watching_that_has_not_begun(domain: Users) -> None:
    domain.set_access(ALICE_ALL, allowing("subscribe", group="_groups"))
    watcher = domain.opened_by(BOB, "E")
    number = watcher.subscribe("_groups", wait=0.0)
    domain.set_access(ALICE_ALL)
    denied(watcher, number, "subscribe")
    domain.run(1.0)
    assert [] == watcher.kinds(m.Subscribed)


def test_all_sessions_of_a_user_together_have_so_many_members() -> None:
    domain = Users()
    domain.engines["D"].sessions.desk.quota.members_max = 3
    one, two, other = domain.opened_by(BOB, "D"), domain.opened_by(BOB, "D"), domain.opened_by(ALICE, "D")
    for name in ("a", "b"):
        one.join(name)
    two.join("c")
    assert ("failed", "full") == two.problem(two.join("d"))
    assert isinstance(other.answer(other.join("d")), m.JoinedAs)
    one.ask(m.GoodbyeAsk, one.member)
    domain.run(0.3)
    assert isinstance(two.answer(two.join("e")), m.JoinedAs)


def test_groups_that_a_user_only_formed_count_as_well() -> None:
    """One client could fill the directory with groups that nobody joins: they stay as long as the node."""
    domain = Users()
    domain.engines["D"].sessions.desk.quota.members_max = 3
    one, other = domain.opened_by(BOB, "D"), domain.opened_by(ALICE, "D")
    formed = [one.ask(m.LookUpAsk, name, True, 5.0) for name in "abcde"]
    domain.run(0.5)
    assert 3 == sum(isinstance(one.answer(number), m.GroupRecord) for number in formed)
    assert [("failed", "full")] * 2 == [one.problem(number) for number in formed[3:]]
    domain.run(2.0)
    assert ("failed", "full") == one.problem(one.ask(m.LookUpAsk, "f", True, 5.0))
    assert ("failed", "full") == one.problem(one.join("f"))
    assert isinstance(other.answer(other.join("a")), m.JoinedAs)
    domain.run(1.5)
    number = one.ask(m.LookUpAsk, "f", True, 5.0)
    domain.run(0.5)
    assert isinstance(one.answer(number), m.GroupRecord), "a group that was joined is its providers'"


def test_who_hangs_up_or_has_no_patience_forms_no_more_groups_than_others() -> None:
    """What was sent to the name server happens: the group is carried here, and counted, whoever waits for it."""
    domain = Users()
    domain.engines["D"].sessions.desk.quota.members_max = 3
    hasty, gone, last = (domain.opened_by(BOB, "D") for _ in range(3))
    for name in "ab":
        hasty.ask(m.LookUpAsk, name, True, 0.0)
    gone.ask(m.LookUpAsk, "c", True, 5.0)
    gone.end()
    domain.run(2.0)
    assert 3 == domain.engines["D"].groups.statistics().roles["leader"]
    assert ("failed", "full") == last.problem(last.ask(m.LookUpAsk, "d", True, 5.0))
