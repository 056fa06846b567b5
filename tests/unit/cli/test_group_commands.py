"""The commands about groups, against a daemon that says what the test wants."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from groupsvc.cli import main
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.cli.group_questions import member_lines
from groupsvc.testing.scripted_daemon import ScriptedDaemon, reply_frame
from groupsvc.views import View
from groupsvc.voting_words import Vote
from groupsvc.wire import client_messages as wire
from groupsvc.wire import notices
from groupsvc.wire.table_lines import GroupLine

ANNA = notices.Provider(("n1", 17, 1), "anna", b"", 3)
BERT = notices.Provider(("n2", 18, 4), "bert", b"port 8080", 5)
ME = notices.Provider(("n1", 17, 2), "groupsvc-cli", b"", 9)
VIEW = notices.GroupView(7, 1048583, (ANNA, BERT), b"green", 2, "approve")
WITH_ME = notices.GroupView(9, 1048584, (ANNA, BERT, ME), b"green", 2, "approve")

Answers = dict[type[wire.ClientRequest], Callable[[Any], wire.AnyClientReply]]

LINES = (GroupLine("db", 7, 9, "n1", ("n1", "n2"), {}), GroupLine("web/front", 8, 12, "n3", ("n3",), {}))
TALLY = (
    notices.Cast(ANNA.id, "approve"),
    notices.Cast(BERT.id, "reject"),
    notices.Cast(("n3", 19, 1), "approve", "failed"),
    notices.Cast(("n3", 19, 2), "approve", "late"),
)
REJECTED = notices.Outcome(
    ballot=12,
    subject=notices.Subject(kind="state", proposer=ANNA.id, state=b"red"),
    approved=False,
    phases=1,
    reason="explicit_reject",
    votes=TALLY,
    messages=(notices.VoteMessage(BERT.id, 1, b"my disk is full"),),
)
APPROVED = notices.Outcome(
    ballot=10,
    subject=notices.Subject(kind="state", proposer=ME.id, state=b"blue"),
    approved=True,
    phases=1,
    reason="one_phase",
)


def joined(request: wire.JoinAsk) -> wire.JoinedAs:
    return wire.JoinedAs(request.id, 1, ME.id, {}, WITH_ME)


COMMON: Answers = {
    wire.OpenSession: lambda request: wire.SessionIs(request.id, 5, b"secret", 0, 3.0, ("n1", 7, 0)),
    wire.SessionAlive: lambda request: wire.SessionAliveAck(request.id, 99, 3.0),
    wire.SubscribeAsk: lambda request: wire.Subscribed(request.id, 1, {}, VIEW),
    wire.JoinAsk: joined,
    wire.LeaveAsk: lambda request: wire.OutcomeIs(request.id, ("n1", 17, 9), 11, left()),
    wire.GoodbyeAsk: lambda request: wire.Done(request.id),
    wire.CloseSession: lambda request: wire.Done(request.id),
    wire.GroupsAsk: lambda request: wire.GroupsAre(request.id, LINES),
    wire.WhyAsk: lambda request: wire.OutcomesAre(request.id, ((10, APPROVED), (13, REJECTED)), VIEW),
}


def left() -> notices.Outcome:
    subject = notices.Subject(kind="leave", proposer=ME.id, leaving=(ME.id,), cause="leave")
    return notices.Outcome(ballot=11, subject=subject, approved=True, phases=1, reason="one_phase")


def refused(family: str, code: str) -> Callable[[Any], wire.AnyClientReply]:
    return lambda request: wire.Problem(request.id, family, code, "the daemon says why")  # type: ignore[arg-type]


def run(*arguments: str, **answers: Callable[[Any], wire.AnyClientReply]) -> tuple[int, list[wire.AnyClientRequest]]:
    """The exit code, and what the daemon was asked; ``answers`` by the name of the request."""
    table = {kind.__name__: answer for kind, answer in COMMON.items()} | answers
    with ScriptedDaemon(lambda request: reply_frame(table[type(request).__name__](request))) as daemon:
        code = main([*arguments, "--address", daemon.address, "--timeout", "5"])
    return code, daemon.requests


def test_groups_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run("groups")[0]
    expected = ["GROUP      LEADER  SERVERS", "db         n1      n1, n2", "web/front  n3      n3"]
    assert expected == capsys.readouterr().out.splitlines()


def test_groups_are_objects(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run("groups", "--json")[0]
    found = json.loads(capsys.readouterr().out)
    assert {"name": "db", "leader": "n1", "servers": ["n1", "n2"]} == found["groups"][0]


def test_no_groups_are_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run("groups", GroupsAsk=lambda request: wire.GroupsAre(request.id, ()))[0]
    assert "there are no groups\n" == capsys.readouterr().out


def test_members_are_a_table_with_the_oldest_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, requests = run("members", "db")
    assert ExitCode.OK == code
    assert not any(isinstance(request, wire.JoinAsk) for request in requests)
    head, columns, first, second = capsys.readouterr().out.splitlines()
    assert "db: 2 providers, state version 2, fence of the group 1048583" == head
    assert ["NAME", "NODE", "JOINED", "ID", "DATA"] == columns.split()
    assert ["anna", "n1", "3", "n1/17/1", "-"] == first.split()
    assert ["bert", "n2", "5", "n2/18/4", "'port", "8080'"] == second.split()


def test_members_say_that_the_group_may_lack_something() -> None:
    """on_quorum_lost="continue": an operator sees it, too."""
    view = View(9, 1048583, (), b"", 0, Vote.APPROVE, quorum_lost_seq=8)
    head, _ = member_lines("db", view)
    assert head.startswith(
        "db: 0 providers, state version 0, fence of the group 1048583; it went on without its quorum"
    )
    assert "at entry 8, and may lack" in head


def test_members_are_objects(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run("members", "db", "--json")[0]
    found = json.loads(capsys.readouterr().out)
    assert ("db", 7, 1048583, "green", 2) == tuple(
        found[name] for name in ("group", "seq", "fence", "state", "state_version")
    )
    assert "port 8080" == found["providers"][1]["data"]


@pytest.mark.parametrize("command", [["members", "db"], ["watch", "db"], ["state", "db"]])
def test_a_group_that_is_not_there_has_an_exit_code_of_its_own(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run(*command, SubscribeAsk=refused("failed", "no such group"))
    assert ExitCode.NOT_FOUND == code
    written = capsys.readouterr().err
    assert written.startswith("groupsvc: ")
    assert "Traceback" not in written


def test_why_says_who_voted_what_and_for_whom_a_default_was_cast(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run("why", "db")[0]
    expected = [
        "entry 10: a change of the state value to 'blue' (proposed by n1/17/2): one phase, nobody was asked",
        "entry 12: a change of the state value to 'red' (proposed by anna) was rejected in phase 1:"
        " somebody voted REJECT",
        "  PROVIDER  NODE  VOTE     CAST BY",
        "  anna      n1    APPROVE  itself",
        "  bert      n2    REJECT   itself",
        "  n3/19/1   n3    APPROVE  default vote: it has failed",
        "  n3/19/2   n3    APPROVE  default vote: it did not vote in time",
        "  bert (n2/18/4) said in phase 1: 'my disk is full'",
    ]
    assert expected == capsys.readouterr().out.splitlines()


def test_why_shows_default_votes_of_earlier_phases(capsys: pytest.CaptureFixture[str]) -> None:
    voted = (notices.Cast(ANNA.id, "approve"), notices.Cast(BERT.id, "approve"))
    outcome = replace(
        APPROVED, phases=2, reason="default_approve", votes=voted,
        defaults=((1, notices.Cast(BERT.id, "approve", "late")),),
    )  # fmt: skip

    def told(request: wire.WhyAsk) -> wire.OutcomesAre:
        return wire.OutcomesAre(request.id, ((13, outcome),), VIEW)

    assert ExitCode.OK == run("why", "db", WhyAsk=told)[0]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("was approved in phase 2: all voted APPROVE, some by default in an earlier phase")
    assert "  in phase 1 APPROVE was cast for bert (n2/18/4) (default vote: it did not vote in time)" == lines[-1]
    assert ExitCode.OK == run("why", "db", "--json", WhyAsk=told)[0]
    (found,) = json.loads(capsys.readouterr().out)["outcomes"]
    assert [(1, "LATE")] == [(one["phase"], one["default"]) for one in found["defaults"]]


@pytest.mark.parametrize("words", [("members", "db"), ("why", "db"), ("watch", "db", "--for", "0"), ("groups",)])
def test_names_that_forge_rows_are_shown_as_they_are(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    eve = replace(ANNA, name="eve\n\x1b[2Jbert")
    view = replace(VIEW, providers=(eve,))
    line = GroupLine("db\nweb", 7, 9, "n1", ("n1",), {})
    outcome = replace(REJECTED, votes=(notices.Cast(eve.id, "approve"),), messages=())
    code, _ = run(
        *words,
        SubscribeAsk=lambda request: wire.Subscribed(request.id, 1, {}, view),
        WhyAsk=lambda request: wire.OutcomesAre(request.id, ((13, outcome),), view),
        GroupsAsk=lambda request: wire.GroupsAre(request.id, (line,)),
    )
    assert ExitCode.OK == code
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert (r"db\nweb" if words == ("groups",) else r"eve\n\x1b[2Jbert") in printed
    assert not any(row.startswith(("bert", "web")) for row in printed.splitlines())


def test_why_is_objects_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run("why", "db", "--json")[0]
    found = json.loads(capsys.readouterr().out)["outcomes"][1]
    assert ("STATE", False, "EXPLICIT_REJECT") == (found["kind"], found["approved"], found["reason"])
    assert [None, None, "FAILED", "LATE"] == [one["default"] for one in found["tally"]]
    assert "my disk is full" == found["messages"][0]["payload"]


def test_why_of_a_group_without_ballots_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run("why", "db", WhyAsk=lambda request: wire.OutcomesAre(request.id, (), VIEW))[0]
    assert "db: nothing has been proposed, or it is too long ago\n" == capsys.readouterr().out


def test_state_without_a_value_only_looks(capsys: pytest.CaptureFixture[str]) -> None:
    code, requests = run("state", "db")
    assert ExitCode.OK == code
    assert "db: 'green', version 2\n" == capsys.readouterr().out
    assert not any(isinstance(request, wire.JoinAsk) for request in requests)


def test_a_state_change_joins_under_its_name_and_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    code, requests = run(
        "state", "db", "blue", "--if-version", "2",
        ChangeStateAsk=lambda request: wire.OutcomeIs(request.id, ("n1", 17, 8), 10, APPROVED),
    )  # fmt: skip
    assert ExitCode.OK == code
    assert capsys.readouterr().out.startswith("db: 'blue', version ")
    joins = [request for request in requests if isinstance(request, wire.JoinAsk)]
    assert [("db", "groupsvc-cli", False)] == [(one.group, one.name, one.create) for one in joins]
    changes = [request for request in requests if isinstance(request, wire.ChangeStateAsk)]
    assert [(b"blue", 2)] == [(one.value, one.if_version) for one in changes]
    assert any(isinstance(request, wire.LeaveAsk) for request in requests)


def test_a_rejected_state_change_says_by_whom_and_has_an_exit_code_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _ = run(
        "state", "db", "red",
        ChangeStateAsk=lambda request: wire.OutcomeIs(request.id, ("n1", 17, 8), 13, REJECTED),
    )  # fmt: skip
    assert ExitCode.REJECTED == code
    assert "bert (n2/18/4) REJECT" in capsys.readouterr().err


def test_a_rejected_join_has_the_same_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = run("send", "db", "hello", JoinAsk=lambda request: wire.OutcomeIs(request.id, ("n1", 1, 1), 13, REJECTED))
    assert ExitCode.REJECTED == code
    assert "could not join group 'db'" in capsys.readouterr().err


def test_another_version_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    code, requests = run("state", "db", "red", "--if-version", "1", ChangeStateAsk=refused("failed", "stale version"))
    assert ExitCode.FAILED == code
    assert capsys.readouterr().err.startswith("groupsvc: ")
    assert any(isinstance(request, wire.LeaveAsk) for request in requests), "it leaves in order, and has not failed"


def test_a_version_without_a_value_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.USAGE == run("state", "db", "--if-version", "1")[0]
    assert "groupsvc: --if-version is for proposing a VALUE\n" == capsys.readouterr().err


def test_send_says_how_many_it_was_sent_to(capsys: pytest.CaptureFixture[str]) -> None:
    sent = notices.Outcome(
        ballot=10, subject=notices.Subject(kind="message", payload=b"hello"), approved=True, phases=1,
        reason="one_phase",
    )  # fmt: skip
    code, requests = run(
        "send", "db", "hello", SendAsk=lambda request: wire.OutcomeIs(request.id, ("n1", 17, 8), 10, sent)
    )
    assert ExitCode.OK == code
    assert "db: sent, to 2 providers\n" == capsys.readouterr().out
    assert [b"hello"] == [request.payload for request in requests if isinstance(request, wire.SendAsk)]


def test_watch_ends_after_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run("watch", "db", "--for", "0")[0]
    line = capsys.readouterr().out
    assert "  entry 7  2 providers: anna at n1, bert at n2; state 'green', version 2\n" in line


def test_watch_prints_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run("watch", "db", "--for", "0", "--json")[0]
    (line,) = capsys.readouterr().out.splitlines()
    assert "view" == json.loads(line)["event"]


@pytest.mark.parametrize(
    "words",
    ["watch", "watch db --for -1", "watch db --for nan", "watch db --wait x", "state", "state db x --if-version -1",
     "send db", "members \udcff", "why"],
)  # fmt: skip
def test_a_wrong_command_line_is_refused(words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ExitCode.USAGE == ended.value.code


@pytest.mark.parametrize("command", ["members", "why", "watch", "state", "state x", "send x", "look-up"])
def test_a_name_that_no_group_can_have_is_a_sentence(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same one from every command, whether a daemon runs or not."""
    first, *rest = command.split()
    assert ExitCode.USAGE == main([first, "no blanks", *rest, "--address", "ipc:///nowhere"])
    assert "cannot name a group" in capsys.readouterr().err


# --- expel ---------------------------------------------------------------------------------------------------


def expelled(request: wire.ExpelAsk) -> wire.OutcomeIs:
    subject = notices.Subject(kind="expel", proposer=ME.id, leaving=request.targets, cause="expelled")
    outcome = notices.Outcome(ballot=12, subject=subject, approved=True, phases=1, reason="one_phase")
    return wire.OutcomeIs(request.id, ("n1", 17, 9), 12, outcome)


@pytest.mark.parametrize("word", ["bert", "n2/18/4"])
def test_providers_are_expelled_by_name_or_id(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, asked = run("expel", "db", word, word, "--reason", "its disk is full", ExpelAsk=expelled)
    assert ExitCode.OK == code
    (ask,) = [one for one in asked if isinstance(one, wire.ExpelAsk)]
    assert ((BERT.id,), "its disk is full") == (ask.targets, ask.reason)
    assert "db: expelled bert (n2/18/4)\n" == capsys.readouterr().out


def test_expel_as_object_names_who_had_to_go(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == run("expel", "db", "bert", "--json", ExpelAsk=expelled)[0]
    found = json.loads(capsys.readouterr().out)
    assert ("db", ["n2/18/4"]) == (found["group"], [one["id"] for one in found["expelled"]])


def test_nobody_is_expelled_by_a_name_that_nobody_or_several_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.FAILED == run("expel", "db", "cleo", ExpelAsk=expelled)[0]
    assert "has no provider 'cleo'; `groupsvc members db` lists" in capsys.readouterr().err
    both = notices.GroupView(9, 1048584, (ANNA, replace(BERT, name="anna"), ME), b"", 2, "approve")
    code, asked = run(
        "expel", "db", "anna", JoinAsk=lambda request: wire.JoinedAs(request.id, 1, ME.id, {}, both), ExpelAsk=expelled
    )
    assert ExitCode.FAILED == code
    assert (
        "2 providers of group 'db' are called 'anna': give the id of one, n1/17/1, n2/18/4" in capsys.readouterr().err
    )
    assert not [one for one in asked if isinstance(one, wire.ExpelAsk)]


def test_the_fence_of_a_line_is_not_taken_for_that_of_its_holder() -> None:
    view = View(7, 12, (), b"", 0, Vote.APPROVE)
    assert "who holds it has that of the moment when its turn came" in member_lines("_lock/x", view)[0]
    assert "db: 0 providers, state version 0, fence of the group 12" == member_lines("db", view)[0]
