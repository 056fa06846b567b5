"""Tokens: used once, wherever they are shown and whoever dies meanwhile, and good for nothing else."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import (
    ClientRequest,
    ConfigAsk,
    GroupsAsk,
    OpenSession,
    Problem,
    ResumeSession,
    StatusAsk,
)
from groupsvc.wire.enrolment_messages import (
    EnrolAsk,
    Enrolled,
    NodeKeysAre,
    NodeKeysAsk,
    RevokeAsk,
    Revoked,
    TokenAsk,
    TokenIs,
)
from groupsvcd.core.access import OPEN, TOKEN_MARK, TRUSTED, UNKNOWN, Access, Principal, Rule, Who
from groupsvcd.core.domain.commands import SetConfig, encode_command
from groupsvcd.core.domain.enrolment import TOLD_AGAIN_S, Door
from groupsvcd.core.domain.limits import NODE_KEYS_MAX, OPTIONS_MAX
from groupsvcd.core.domain.listed_keys import NodeKey, Token, listed, setting_of
from groupsvcd.core.events import ClientCame, ClientFrame, ClientGone
from groupsvcd.core.peer_messages import DOMAIN_STREAM, Answered, Ask, NodeList, Submit
from tests.unit.core.trio import Trio
from tests.unit.directory.scene import Scene

T1, T2 = f"t{1:039d}", f"t{2:039d}"
K1, K2 = f"k{1:039d}", f"k{2:039d}"
NOW = 1_700_000_000


class Town(Trio):
    """Daemons with open doors, and people who come to them."""

    last = 1_000

    def furnish(self, *names: str, wall_s: float = NOW) -> None:
        """What the driver knows of each."""
        for name in names or tuple(self.engines):
            enrolment = self.engines[name].enrolment
            enrolment.door = lambda: Door(problem="", domain="town", in_file={"F": (K2,)}, node_keys={"F": (K2,)})
            enrolment.wall_s = lambda: wall_s

    def ask(self, node: str, who: Principal, request: ClientRequest) -> int:
        """Somebody connects and asks; the number of the reply is that of the request."""
        Town.last += 1
        self.step(node, ClientCame(Town.last, who))
        self.step(node, ClientFrame(Town.last, request))
        return request.id  # type: ignore[attr-defined, no-any-return]

    def make(self, id: int, *, node: str = "A", name: str = "new", token: str = T1, valid_s: float = 60.0) -> int:
        return self.ask(node, TRUSTED, TokenAsk(id, name, token, valid_s, 20.0))

    def enrol(self, id: int, *, node: str = "A", name: str = "new", token: str = T1, key: str = K1) -> int:
        return self.ask(node, Principal(key=TOKEN_MARK + token), EnrolAsk(id, name, key, 20.0))

    def told(self, id: int) -> str:
        """Why not, or "" if it was done."""
        reply = self.replies[id]
        return reply.text if isinstance(reply, Problem) else ""


@pytest.fixture
def town() -> Town:
    made = Town.in_service(others="D")
    made.furnish()
    return made


def test_a_token_becomes_the_key_of_a_node_everywhere(town: Town) -> None:
    town.make(1, node="D")
    town.run(1.0)
    made = town.replies[1]
    assert isinstance(made, TokenIs)
    assert (NOW + 60, False) == (made.until, made.replaced)
    assert [Token(T1, NOW + 60)] * 4 == [
        listed(town.engines[name].member.options[setting_of("new")][0]) for name in "ABCD"
    ]
    town.enrol(2, node="B")
    town.run(1.0)
    enrolled = town.replies[2]
    assert isinstance(enrolled, Enrolled)
    line = (NodeKey(K1, T1, NOW + TOLD_AGAIN_S).line(), enrolled.version)
    assert [line] * 4 == [town.engines[name].member.options[setting_of("new")] for name in "ABCD"]
    assert line[0] == {key: value for key, value, _ in town.disks["D"].options}[setting_of("new")]


def test_who_makes_a_token_is_answered_when_this_node_lets_it_in(town: Town) -> None:
    """Else a machine that is quick would be refused at the door."""
    town.make(1, node="D")
    town.run_until(lambda: 1 in town.replies)
    assert setting_of("new") in town.engines["D"].member.options


def test_of_two_machines_with_one_token_the_second_is_told(town: Town) -> None:
    town.make(1)
    town.run(1.0)
    town.enrol(2, node="B", key=K1)
    town.enrol(3, node="C", key=f"k{3:039d}")
    town.run(1.0)
    assert [True, False] == sorted("used already" in town.told(id) for id in (2, 3))[::-1]
    assert any("enrolment-overtaken" == line.args.get("name") for line in town.lines("mark"))


def test_a_machine_whose_answer_was_lost_asks_again_and_is_told_yes(town: Town) -> None:
    town.make(1)
    town.run(1.0)
    town.loses = lambda sender, receiver, message: isinstance(message, Answered)
    town.enrol(2, node="B")
    town.run(1.0)
    assert 2 not in town.replies
    town.kill("A")
    town.heal()
    town.run(6.0)
    first, again = town.replies[2], town.enrol(3, node="C")
    town.run(1.0)
    second = town.replies[again]
    assert isinstance(first, Enrolled)
    assert isinstance(second, Enrolled)
    assert first.version == second.version


def test_a_token_that_was_replaced_or_revoked_enrols_nobody_who_was_let_in_before(town: Town) -> None:
    """What counts is what is listed when the entry is ordered, not when the connection was made."""
    town.make(1, token=T1)
    town.run(1.0)
    town.make(2, token=T2)
    town.run(1.0)
    town.enrol(3, token=T1)
    town.run(1.0)
    assert town.replies[2].replaced  # type: ignore[attr-defined]
    assert "not, or no longer, one for new" in town.told(3)
    town.ask("B", TRUSTED, RevokeAsk(4, "new", 5.0))
    town.run(1.0)
    assert isinstance(town.replies[4], Revoked)
    town.enrol(5, token=T2)
    town.run(1.0)
    assert "not, or no longer, one for new" in town.told(5)


def test_a_token_that_is_revoked_while_a_machine_shows_it_enrols_or_is_revoked(town: Town) -> None:
    """Whichever is ordered first; the other decides anew."""
    town.make(1)
    town.run(1.0)
    town.enrol(2, node="B")
    town.ask("C", TRUSTED, RevokeAsk(3, "new", 5.0))
    town.run(2.0)
    assert isinstance(town.replies[3], Revoked)
    assert "" == town.engines["A"].member.options[setting_of("new")][0]


def test_the_deadline_is_held_against_the_clock_of_the_node_where_it_is_shown(town: Town) -> None:
    town.furnish("A", wall_s=NOW)
    town.furnish("B", wall_s=NOW + 61)
    town.furnish("C", wall_s=NOW - 300)
    town.make(1, node="A")
    town.run(1.0)
    town.enrol(2, node="B")
    town.run(1.0)
    assert "the token expired 1 s ago, by the clock of B" in town.told(2)
    assert ["new"] == [line.args["name"] for line in town.lines("token_expired")]
    town.enrol(3, node="C")
    town.run(1.0)
    assert "" == town.told(3)


@pytest.mark.parametrize(
    "name, reason",
    [("D", "D is up"), ("F", "stands in [node_keys] of A"), ("a name", "node name 'a name' must be")],
)
def test_no_token_for_a_name_that_is_taken_or_none(town: Town, name: str, reason: str) -> None:
    town.make(1, name=name)
    town.run(1.0)
    assert reason in town.told(1)


def test_a_name_that_came_up_meanwhile_is_not_enrolled_again(town: Town) -> None:
    town.kill("D")
    town.run(6.0)
    town.make(1, name="D")
    town.run(1.0)
    assert isinstance(town.replies[1], TokenIs)
    town.boot("D")
    town.run(3.0)
    town.enrol(2, name="D")
    town.run(1.0)
    assert "D is up" in town.told(2)


@pytest.mark.parametrize("key, reason", [(K2, "is the one of F"), (T1, "a pair of its own"), ("short", "is no key")])
def test_a_key_that_is_another_s_is_not_enrolled(town: Town, key: str, reason: str) -> None:
    town.make(1)
    town.run(1.0)
    town.enrol(2, key=key)
    town.run(1.0)
    assert reason in town.told(2)


def test_a_node_that_is_enrolled_gets_no_token_until_it_is_revoked(town: Town) -> None:
    town.make(1)
    town.run(1.0)
    town.enrol(2)
    town.run(1.0)
    town.make(3, token=T2)
    town.run(1.0)
    assert "revoke that first" in town.told(3)
    town.ask("A", TRUSTED, RevokeAsk(4, "new", 5.0))
    town.run(1.0)
    assert "key" == town.replies[4].what  # type: ignore[attr-defined]
    town.ask("A", TRUSTED, RevokeAsk(5, "new", 5.0))
    town.make(6, token=T2)
    town.run(1.0)
    assert "neither a token nor a key" in town.told(5)
    assert isinstance(town.replies[6], TokenIs)


@pytest.mark.parametrize("valid_s", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_a_token_is_valid_for_a_time_that_ends(town: Town, valid_s: float) -> None:
    town.make(1, valid_s=valid_s)
    assert "a token is valid for 1 to" in town.told(1)


@pytest.mark.parametrize(
    "request_",
    [
        StatusAsk(9), ConfigAsk(9, "x", 1.0), OpenSession(9, "me"), ResumeSession(9, 1, b"", 0), GroupsAsk(9, 1.0),
        TokenAsk(9, "more", T2, 60.0, 1.0), RevokeAsk(9, "new", 1.0), NodeKeysAsk(9),
    ],
    ids=lambda request: type(request).__name__,
)  # fmt: skip
def test_who_shows_a_token_can_say_nothing_else(town: Town, request_: ClientRequest) -> None:
    town.make(1)
    town.run(1.0)
    town.ask("A", Principal(key=TOKEN_MARK + T1), request_)
    town.run(1.0)
    assert "a token is good for one thing" in town.told(9)
    assert "permission denied" == town.replies[9].code  # type: ignore[attr-defined]


def test_no_rule_gives_a_token_more() -> None:
    everything = Access((Rule((Who("*"),), ("*",), frozenset({"admin", "join"})),))
    for access in (OPEN, everything):
        assert not access.allows(Principal(key=TOKEN_MARK + T1), "admin")
        assert not access.allows(Principal(key=TOKEN_MARK + T1), "join", "g")


def test_without_a_rule_only_who_is_trusted_says_which_nodes_there_are(town: Town) -> None:
    for id, who in enumerate((UNKNOWN, Principal(uid=1000), Principal(key="far")), 1):
        town.ask("A", who, TokenAsk(id, "new", T1, 60.0, 5.0))
        assert "as long as this node has no rules" in town.told(id)
    town.engines["A"].sessions.set_access(Access((Rule((Who("key:far", key="far"),), (), frozenset({"admin"})),)))
    town.ask("A", Principal(key="far"), TokenAsk(4, "new", T1, 60.0, 5.0))
    town.run(1.0)
    assert isinstance(town.replies[4], TokenIs)


def test_without_a_token_nobody_is_enrolled_and_without_keys_there_is_none() -> None:
    town = Town.in_service()
    town.ask("A", TRUSTED, EnrolAsk(1, "new", K1, 5.0))
    town.make(2)
    assert "only who shows a token" in town.told(1)
    assert "tokens need keys" in town.told(2)


def test_what_is_listed_is_shown_with_what_stands_in_the_file(town: Town) -> None:
    town.make(1)
    town.run(1.0)
    town.ask("B", TRUSTED, NodeKeysAsk(2))
    shown = town.replies[2]
    assert isinstance(shown, NodeKeysAre)
    assert [("F", "file"), ("new", "token")] == [(line.node, line.kind) for line in shown.lines]


def test_who_cannot_be_answered_in_time_is_told_what_is_known(town: Town) -> None:
    """Before anything was sent it did not happen; afterwards nobody knows."""
    town.loses = lambda sender, receiver, message: isinstance(message, Ask)
    town.ask("B", TRUSTED, TokenAsk(1, "new", T1, 60.0, 1.0))
    town.run(2.0)
    town.loses = lambda sender, receiver, message: isinstance(message, Answered)
    town.ask("B", TRUSTED, TokenAsk(2, "new", T1, 60.0, 1.0))
    town.run(2.0)
    assert ["failed", "unknown"] == [town.replies[id].family for id in (1, 2)]  # type: ignore[attr-defined]


def test_keys_of_nodes_are_bounded_and_apart_from_options() -> None:
    scene = Scene()
    for number in range(NODE_KEYS_MAX):
        assert scene.order(SetConfig(setting_of(f"node-{number}"), Token(f"x{number:039d}", 1).line(), 0))["ok"]
    assert "no more names fit" in scene.order(SetConfig(setting_of("one-more"), Token(T1, 1).line(), 0))["problem"]
    for number in range(OPTIONS_MAX):
        assert scene.order(SetConfig(f"daemon/strange-{number}", "1", 0))["ok"]
    assert "no more fit" in scene.order(SetConfig("daemon/strange", "1", 0))["problem"]


@pytest.mark.parametrize(
    "line", ["", "token", f"token {T1}", f"token {T1} -1", f"token {T1} ²", f"key {K1} x 1", f"key {K1} {T1}", "é"]
)
def test_a_line_that_is_none_lists_nothing(line: str) -> None:
    assert listed(line) is None


# --- Who does not ask a daemon but the directory ---


def test_the_directory_lists_no_key_for_a_voter() -> None:
    """D is listed, no voter, and was taken over: with a key for A it would speak as A."""
    town = Town.in_service(others="D")
    d = town.engines["D"]
    command = encode_command(SetConfig(setting_of("A"), NodeKey(K1, T1, 0).line(), 0))
    town.frame("D", "A", Submit(DOMAIN_STREAM, d.requests._last_n + 1, d.member.known_seq, (command,)))
    town.run(2.0)
    assert [] == [name for name in "ABCD" if setting_of("A") in town.engines[name].member.options]
    refusal = Scene().order(SetConfig(setting_of("a"), NodeKey(K1, T1, 0).line(), 0))
    assert (False, 0) == (refusal["ok"], refusal["version"])
    assert "'a' is a voter" in refusal["problem"]


@pytest.mark.parametrize("line", [NodeKey(K1, T2, 9).line(), Token(K1, 9).line(), Token(T1, 9).line()])
def test_the_directory_lists_a_key_for_one_name(line: str) -> None:
    """Nor is the token of one the key of another. The same name may have it again, and anybody once it is revoked."""
    scene = Scene()
    first = scene.order(SetConfig(setting_of("x"), NodeKey(K1, T1, 9).line(), 0))["version"]
    assert "is the one of 'x'" in scene.order(SetConfig(setting_of("y"), line, 0))["problem"]
    again = scene.order(SetConfig(setting_of("x"), NodeKey(K1, T1, 10).line(), first))["version"]
    assert scene.order(SetConfig(setting_of("x"), "", again))["ok"]
    assert scene.order(SetConfig(setting_of("y"), line, 0))["ok"]


def test_of_two_names_with_one_key_one_is_told_no(town: Town) -> None:
    """At two daemons in the same moment; neither knows of the other. Nothing is listed for the second."""
    town.make(1, name="x", token=T1)
    town.make(2, name="y", token=T2)
    town.run(1.0)
    town.enrol(3, node="B", name="x", token=T1)
    town.enrol(4, node="C", name="y", token=T2)
    town.run(1.0)
    winner, loser = ("x", 4) if isinstance(town.replies[3], Enrolled) else ("y", 3)
    assert f"the key {K1} is the one of {winner!r}; make another pair" == town.told(loser)
    assert {Token, NodeKey} == {type(listed(town.engines["A"].member.options[setting_of(name)][0])) for name in "xy"}
    assert 1 == len(town.lines("token_refused"))


# --- Records ---


def names_in(town: Town, op: str) -> list[str]:
    return [line.args["name"] for line in town.lines(op)]


def test_a_token_used_by_somebody_who_hung_up_is_recorded_and_so_is_who_comes_again(town: Town) -> None:
    town.make(1)
    town.run(1.0)
    town.enrol(2, node="B")
    town.run_until(lambda: bool(town.engines["B"].requests._sent))
    assert ["token_made", "token_used"] == [line.args["deed"] for line in town.lines("token_pending")]
    town.step("B", ClientGone(Town.last, process_ended=False))
    town.run(2.0)
    assert isinstance(listed(town.engines["A"].member.options[setting_of("new")][0]), NodeKey)
    assert ["new"] == names_in(town, "token_used")
    town.enrol(3, node="B")
    town.run(1.0)
    assert isinstance(town.replies[3], Enrolled)
    assert (["new"], ["new"]) == (names_in(town, "token_used"), names_in(town, "token_shown_again"))


def test_a_token_made_for_somebody_without_patience_is_recorded(town: Town) -> None:
    """Told "unknown", it happens later."""
    town.loses = lambda sender, receiver, message: isinstance(message, Answered)
    town.ask("B", TRUSTED, TokenAsk(1, "new", T1, 60.0, 0.5))
    town.run(1.0)
    town.heal()
    town.run(3.0)
    assert "unknown" == town.replies[1].family  # type: ignore[attr-defined]
    assert ["new"] == names_in(town, "token_made")


def test_what_is_known_by_the_answer_alone_is_recorded_once(town: Town) -> None:
    """The list comes late; then it is the same deed, and no other."""
    town.loses = lambda sender, receiver, message: isinstance(message, NodeList) and receiver == "B"
    town.make(1, node="B")
    town.run(1.0)
    assert ["new"] == names_in(town, "token_made")
    town.heal()
    town.run(2.0)
    assert isinstance(town.replies[1], TokenIs)
    assert ["new"] == names_in(town, "token_made")


def test_what_was_refused_is_not_recorded_as_done(town: Town) -> None:
    town.make(1)
    town.run(1.0)
    town.enrol(2, node="B", key=K1)
    town.enrol(3, node="C", key=f"k{3:039d}")
    town.run(2.0)
    assert (["new"], ["new"]) == (names_in(town, "token_used"), names_in(town, "token_refused"))


# --- A token that was used ---


@pytest.mark.parametrize("node", ["A", "B"])
def test_who_has_enrolled_a_node_is_told_so_again_for_a_while(town: Town, node: str) -> None:
    """Then it is told what everybody is told who shows it; which key was enrolled nobody is told."""
    town.make(1)
    town.run(1.0)
    town.enrol(2)
    town.run(1.0)
    town.enrol(3, node=node, key=f"k{3:039d}")
    town.run(1.0)
    town.furnish(wall_s=NOW + TOLD_AGAIN_S)
    town.enrol(4, node=node)
    town.run(1.0)
    assert "the token was used already, to enrol new" in town.told(3)
    assert K1 not in town.told(3)
    assert town.told(3) == town.told(4)


def test_what_a_new_node_gets_for_its_file_is_what_no_revoking_concerns(town: Town) -> None:
    """The keys that the domain lists it is told by the voters, as long as they are listed."""
    listed_and_in_file = {"F": (K2,), "enrolled": (f"k{3:039d}",)}
    town.engines["A"].enrolment.door = lambda: Door(problem="", node_keys=listed_and_in_file, handed_out={"F": (K2,)})
    town.make(1)
    town.run(1.0)
    town.enrol(2)
    town.run(1.0)
    enrolled = town.replies[2]
    assert isinstance(enrolled, Enrolled)
    assert {"F": (K2,)} == enrolled.node_keys
