"""Every call of a client ends exactly once, and never with a lie about what happened."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from groupsvc.wire.client_messages import (
    ClientReply,
    ConfigAsk,
    ConfigSet,
    ConfigValue,
    Done,
    GroupRecord,
    HandOverAsk,
    LookUpAsk,
    Problem,
)
from groupsvcd.core.domain import requests as requests_module
from groupsvcd.core.domain.member import Member
from groupsvcd.core.domain.requests import Requests
from groupsvcd.core.domain.trouble import Trouble
from groupsvcd.core.effects import ReplyToClient, SendToPeer
from groupsvcd.core.identity import Identity
from groupsvcd.core.parameters import Parameters
from groupsvcd.core.peer_messages import (
    Answered,
    Ask,
    LeaderAlive,
    NodeEntry,
    NodeList,
    PeerMessage,
    Submit,
    SubmitRefused,
    Tell,
)
from groupsvcd.core.turn import Turn

ME = 4000


class Stage:
    """Node D, listed, with name server A that called a moment ago."""

    def __init__(self, *, listed: bool = True, called: bool = True) -> None:
        self.turn = Turn("D")
        self.turn.now = 10.0
        self.identity = Identity(ME, bytes(16))
        parameters = Parameters(node="D", voters=("A", "B", "C"), answers_kept=3)
        self.member = Member(self.turn, parameters, "", self.identity, Random(1), lambda known: None)
        trouble = Trouble(self.turn, parameters, self.member)
        self.requests = Requests(self.turn, parameters, self.identity, self.member, trouble)
        if listed:
            line = NodeEntry("D", ME, "up", "", "", False, 5)
            self.member.on_node_list(NodeList(7, 0, 5, (line,)))
        if called:
            self.call("A", 7)
        self.look()

    def call(self, leader: str, epoch: int) -> None:
        """A name server calls."""
        self.member.on_leader_alive(leader, LeaderAlive(epoch, 1, 5, 50), "")
        self.requests.on_leader()

    def look(self) -> tuple[list[tuple[str, PeerMessage]], list[ClientReply]]:
        """What left for others and for clients since the last look."""
        effects, self.turn.effects = self.turn.effects, []
        sent = [(effect.node, effect.message) for effect in effects if isinstance(effect, SendToPeer)]
        sent = [(node, message) for node, message in sent if isinstance(message, Submit | Ask)]
        return sent, [effect.message for effect in effects if isinstance(effect, ReplyToClient)]

    def sent(self) -> list[tuple[str, PeerMessage]]:
        """What left for others."""
        return self.look()[0]

    def replies(self) -> list[ClientReply]:
        """What left for clients."""
        return self.look()[1]

    def at(self, now: float) -> None:
        """Time passes; the name server goes on calling."""
        self.turn.now = now
        self.call("A", 7)
        self.requests.tick()

    def set(self, number: int, timeout: float = 5.0, client: int = 1) -> None:
        """A client sets a setting."""
        self.requests.on_config_set(client, ConfigSet(number, f"key-{number}", "value", 0, timeout))

    def get(self, number: int, timeout: float = 5.0) -> None:
        """A client reads a setting."""
        self.requests.on_config_ask(1, ConfigAsk(number, "color", timeout))

    def hand_over(self, number: int, to: str = "B", timeout: float = 5.0) -> None:
        """A client wants another name server."""
        self.requests.on_hand_over(1, HandOverAsk(number, to, timeout))

    def answered(self, n: int, to: int = ME, **answer: Any) -> None:
        """The name server has done a command."""
        self.requests.on_answered(Answered(to, 7, n, {"ok": True, "version": 60 + n, **answer}))

    def refused(self, n: int, reason: str) -> None:
        """The name server will not answer a command."""
        self.requests.on_submit_refused(SubmitRefused(0, ME, n, n - 1, reason))


def _problem(reply: ClientReply) -> tuple[str, str]:
    assert isinstance(reply, Problem), reply
    return reply.family, reply.code


def test_a_question_is_sent_repeated_and_answered_once() -> None:
    stage = Stage()
    stage.get(1)
    assert [("A", Ask(1, "config", "color"))] == stage.sent()
    stage.at(10.2)
    assert [("A", Ask(1, "config", "color"))] == stage.sent()
    for _ in range(2):
        stage.requests.on_tell(Tell(ME, 7, 1, {"value": "red", "version": 9}))
    assert [ConfigValue(1, "color", "red", 9)] == stage.replies()


def test_a_late_question_has_failed() -> None:
    """A read that was not answered did not happen; the text says who did not answer."""
    stage = Stage()
    stage.get(1, timeout=1.0)
    stage.at(11.0)
    (reply,) = stage.replies()
    assert ("failed", "timed out") == _problem(reply)
    assert isinstance(reply, Problem)
    assert "the name server A did not answer in time" in reply.text
    stage.requests.on_tell(Tell(ME, 7, 1, {"value": "red", "version": 9}))
    assert [] == stage.replies()


def test_commands_are_numbered_without_gaps_and_the_window_is_bounded() -> None:
    """No more than the answers that are kept; the next goes out when one is answered."""
    stage = Stage()
    for number in range(1, 6):
        stage.set(number)
    sent = [message for _, message in stage.sent() if isinstance(message, Submit)]
    assert [1, 2, 3] == [message.first_n for message in sent]
    stage.answered(2)
    effects, replies = stage.look()
    assert [4] == [message.first_n for _, message in effects if isinstance(message, Submit)]
    assert [ConfigValue(2, "key-2", "value", 62)] == replies


def test_a_command_is_not_sent_before_the_node_is_listed() -> None:
    """Its numbers would be nobody's."""
    stage = Stage(listed=False)
    stage.set(1)
    assert [] == stage.sent()


def test_a_command_that_was_never_sent_has_failed_at_its_deadline() -> None:
    stage = Stage(called=False)
    stage.set(1, timeout=1.0)
    stage.turn.now = 11.0
    stage.requests.tick()
    (reply,) = stage.replies()
    assert ("failed", "timed out") == _problem(reply)
    assert isinstance(reply, Problem)
    assert "it was not sent" in reply.text
    stage.call("A", 7)
    assert [] == stage.sent()


def test_a_command_that_was_sent_is_unknown_at_its_deadline_and_still_repeated() -> None:
    """Numbers leave no gaps: the ones after it would never be done."""
    stage = Stage()
    stage.set(1, timeout=1.0)
    stage.look()
    stage.at(11.0)
    sent, (reply,) = stage.look()
    assert ("unknown", "timed out") == _problem(reply)
    stage.at(12.5)
    assert [1] == [message.first_n for _, message in stage.sent() if isinstance(message, Submit)]
    assert sent
    stage.answered(1)
    assert [] == stage.replies()


def test_a_new_name_server_is_sent_everything_that_waits_at_once() -> None:
    stage = Stage()
    stage.get(1)
    stage.set(2)
    stage.look()
    stage.turn.now = 10.01
    stage.call("B", 8)
    assert ["B", "B"] == [node for node, _ in stage.sent()]


@pytest.mark.parametrize("reason, repeats", [("too old", True), ("forgotten", False)])
def test_a_refused_number_is_unknown_to_its_client(reason: str, repeats: bool) -> None:
    """Too old: an empty command takes its place, so that the next ones can be done. Forgotten: it was used."""
    stage = Stage()
    stage.set(1)
    stage.look()
    stage.refused(1, reason)
    assert [("unknown", reason)] == [_problem(reply) for reply in stage.replies()]
    stage.at(10.5)
    bodies = [message.bodies for _, message in stage.sent() if isinstance(message, Submit)]
    assert ([(b"",)] if repeats else []) == bodies


def test_a_gap_closes_by_itself() -> None:
    stage = Stage()
    stage.set(1)
    stage.look()
    stage.refused(1, "gap")
    assert [] == stage.replies()


def test_answers_for_another_incarnation_are_ignored() -> None:
    """S2."""
    stage = Stage()
    stage.get(1)
    stage.set(2)
    stage.look()
    stage.requests.on_tell(Tell(ME - 1, 7, 1, {"value": "wrong", "version": 1}))
    stage.answered(1, to=ME - 1)
    stage.requests.on_submit_refused(SubmitRefused(0, ME - 1, 1, 0, "too old"))
    assert [] == stage.replies()


def test_a_new_incarnation_tells_unknown_for_what_was_sent_and_sends_the_rest_under_new_numbers() -> None:
    stage = Stage()
    for number in range(1, 5):
        stage.set(number)
    stage.look()
    stage.identity.incarnation = ME + 1
    stage.requests.start_again()
    assert [("unknown", "declared down")] * 3 == [_problem(reply) for reply in stage.replies()]
    line = NodeEntry("D", ME + 1, "up", "", "", False, 6)
    stage.member.on_node_list(NodeList(7, 0, 6, (line,)))
    stage.call("A", 7)
    assert [1] == [message.first_n for _, message in stage.sent() if isinstance(message, Submit)]


def test_a_client_that_is_gone_is_told_nothing() -> None:
    stage = Stage()
    stage.get(1)
    stage.set(2)
    stage.set(3, client=2)
    stage.look()
    stage.requests.on_client_gone(1)
    stage.requests.on_tell(Tell(ME, 7, 1, {"value": "red", "version": 9}))
    stage.answered(1)
    stage.answered(2)
    assert [ConfigValue(3, "key-3", "value", 62)] == stage.replies()


@pytest.mark.parametrize(
    "answer, code",
    [({"version": 9, "problem": "version is 9"}, "stale"), ({"version": 0, "problem": "too long"}, "refused")],
)
def test_a_setting_that_was_not_set_has_failed_and_says_why(answer: dict[str, Any], code: str) -> None:
    stage = Stage()
    stage.set(1)
    stage.look()
    stage.answered(1, **{"ok": False, **answer})
    (reply,) = stage.replies()
    assert ("failed", code) == _problem(reply)
    assert isinstance(reply, Problem)
    assert answer["problem"] == reply.text


def test_a_group_that_is_not_there_is_an_answer_not_a_failure() -> None:
    stage = Stage()
    stage.requests.on_look_up(1, LookUpAsk(1, "orders", False, 5.0))
    stage.requests.on_tell(Tell(ME, 7, 1, {"group": None}))
    assert [GroupRecord(1, False, False, 0, "orders", 0, "", ())] == stage.replies()


def test_a_hand_over_is_done_when_the_new_one_calls() -> None:
    stage = Stage()
    stage.hand_over(1)
    stage.requests.on_tell(Tell(ME, 7, 1, {"yielded": True}))
    assert [] == stage.replies()
    stage.call("C", 8)
    assert [] == stage.replies()
    stage.call("B", 9)
    assert [Done(1)] == stage.replies()


@pytest.mark.parametrize("asked, family", [(1, "failed"), (2, "unknown")])
def test_a_hand_over_that_was_asked_twice_and_refused_is_unknown(asked: int, family: str) -> None:
    """The first name server may have done it."""
    stage = Stage()
    stage.hand_over(1)
    if asked == 2:
        stage.at(10.2)
    stage.look()
    stage.requests.on_tell(Tell(ME, 7, 1, {"yielded": False}, "B is not up"))
    assert [(family, "refused")] == [_problem(reply) for reply in stage.replies()]


@pytest.mark.parametrize("yielded", [False, True])
def test_a_late_hand_over_is_unknown(yielded: bool) -> None:
    stage = Stage()
    stage.hand_over(1, timeout=1.0)
    if yielded:
        stage.requests.on_tell(Tell(ME, 7, 1, {"yielded": True}))
    stage.at(11.0)
    assert [("unknown", "timed out")] == [_problem(reply) for reply in stage.replies()]


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused at once and certainly not done."""
    monkeypatch.setattr(requests_module, "WAITING_MAX", 2)
    stage = Stage(called=False)
    for number in (1, 2, 3):
        stage.set(number)
    assert [("failed", "busy")] == [_problem(reply) for reply in stage.replies()]


def _with_shares_of_three(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(requests_module, "WAITING_PER_PRINCIPAL_MAX", 3)
    stage = Stage()
    stage.requests.identity_of = lambda client: f"user:{client}"
    return stage


def test_nobody_takes_the_places_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """One program goes on asking while nobody answers; another one still has a place."""
    stage = _with_shares_of_three(monkeypatch)
    for number in range(1, 7):
        stage.set(number, client=1)
    replies = stage.replies()
    assert [("failed", "busy")] * 3 == [_problem(reply) for reply in replies]
    assert "programs of user:1 have as many calls waiting on this node as they may (3)" in str(replies[0])
    for number in range(1, 4):
        stage.set(number, client=2)
    assert [] == stage.replies()


@pytest.mark.parametrize("end", ["answered", "late", "gone"])
def test_a_share_is_free_again_when_calls_have_ended(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """After a moment: not for each call that is refused all are counted."""
    stage = _with_shares_of_three(monkeypatch)
    for number in range(1, 5):
        stage.get(number, timeout=1.0)
    assert [("failed", "busy")] == [_problem(reply) for reply in stage.replies()]
    if end == "answered":
        for number in (1, 2, 3):
            stage.requests.on_tell(Tell(ME, 7, number, {"value": "red", "version": 9}))
    elif end == "gone":
        stage.requests.on_client_gone(1)
    else:
        stage.at(11.0)
    stage.look()
    stage.turn.now += requests_module.RECOUNT_S
    for number in range(5, 9):
        stage.get(number)
    assert [("failed", "busy")] == [_problem(reply) for reply in stage.replies()]


def test_who_has_its_answers_soon_may_ask_as_often_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is how many wait, and not how many have come since anybody looked."""
    monkeypatch.setattr(requests_module, "WAITING_PER_PRINCIPAL_MAX", 100)
    stage = Stage()
    stage.requests.identity_of = lambda client: "user:1"
    for number in range(1, 5_001):
        stage.get(number)
        if number > 20:
            stage.requests.on_tell(Tell(ME, 7, number - 20, {"value": "red", "version": 9}))
    assert not [reply for reply in stage.replies() if isinstance(reply, Problem)]


def test_the_node_itself_always_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = _with_shares_of_three(monkeypatch)
    told: list[str] = []
    for _ in range(5):
        stage.requests.ask("config", "color", lambda answer: None)
        stage.requests.command("a test", lambda: b"", lambda answer: None, lambda *problem: told.append(problem[0]))
    assert ([], []) == (told, stage.replies())


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), 1e12, -5.0])
def test_a_strange_timeout_ends_all_the_same(timeout: float) -> None:
    """At the longest after the limit of the wire."""
    stage = Stage()
    stage.get(1, timeout)
    assert stage.requests.deadline < 10.0 + 3601
    stage.at(10.0 + 3600.0)
    assert 1 == len(stage.replies())


def test_an_option_is_judged_before_it_is_ordered() -> None:
    """MSG-13. Nobody else sees what would be refused; settings of programs are nobody's business."""
    stage = Stage()
    stage.requests.problem_with_option = lambda key, value: f"{key} = {value} will not do" if value != "good" else ""
    stage.requests.on_config_set(1, ConfigSet(1, "daemon/log_level", "bad", 0, 5.0))
    assert ([], [Problem(1, "usage", "bad option", "log_level = bad will not do")]) == stage.look()
    stage.requests.on_config_set(1, ConfigSet(2, "daemon/log_level", "good", 0, 5.0))
    stage.requests.on_config_set(1, ConfigSet(3, "log_level", "bad", 0, 5.0))
    assert 2 == len(stage.sent())


def test_who_is_too_late_is_told_the_present_version() -> None:
    stage = Stage()
    stage.set(1)
    stage.answered(1, ok=False, version=44, problem="it is at version 44, not 0")
    assert [Problem(1, "failed", "stale", "it is at version 44, not 0", version=44)] == stage.replies()
