"""``groupsvc config``: what a daemon does and why, and what the domain is to say."""

from __future__ import annotations

import json

import pytest

from groupsvc.cli import main
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.testing.scripted_daemon import ScriptedDaemon
from groupsvc.wire.client_messages import (
    AnyClientReply,
    AnyClientRequest,
    ConfigAsk,
    ConfigSet,
    ConfigValue,
    OptionsAre,
    OptionsAsk,
    Problem,
)
from groupsvc.wire.table_lines import OptionLine

LINES = (
    OptionLine("limits.clients_max", "5", "/etc/groupsvc.toml:3", "domain"),
    OptionLine("log_level", "error", "environment GROUPSVC_LOG_LEVEL", "domain", "debug", 41),
    OptionLine("timers.lease", "2.0", "default", "essential"),
)


class Domain:
    """A daemon of a domain that says something about one option."""

    def __init__(self, value: str = "debug", version: int = 41) -> None:
        self.value, self.version = value, version
        self.asked: list[AnyClientRequest] = []

    def __call__(self, request: AnyClientRequest) -> AnyClientReply:
        self.asked.append(request)
        match request:
            case OptionsAsk():
                return OptionsAre(request.id, "n1", LINES)
            case ConfigAsk():
                return ConfigValue(request.id, request.key, self.value, self.version)
            case ConfigSet() if request.value == "loud":
                return Problem(request.id, "usage", "bad option", "log_level 'loud' is none of debug, info")
            case ConfigSet(key="daemon/timers.lease"):
                return Problem(request.id, "usage", "bad option", "timers.lease is compared when nodes meet")
            case ConfigSet() if request.if_version != self.version:
                text = f"it is at version {self.version}, not {request.if_version}"
                return Problem(request.id, "failed", "stale", text, version=self.version)
            case ConfigSet():
                self.value, self.version = request.value, self.version + 1
                return ConfigValue(request.id, request.key, self.value, self.version)
        raise AssertionError(request)

    def run(self, *arguments: str) -> int:
        """The exit code of this command."""
        with ScriptedDaemon(self) as daemon:
            return main(["config", *arguments, "--address", daemon.address, "--timeout", "5"])


def test_list_shows_every_option_its_value_where_it_comes_from_and_whose_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ExitCode.OK == Domain().run("list")
    out = capsys.readouterr().out
    assert "options of n1:" in out
    assert "limits.clients_max  5      /etc/groupsvc.toml:3            the domain may decide" in out
    assert "timers.lease        2.0    default                         same on all nodes" in out
    assert "the domain says log_level = debug, version 41; here it is environment GROUPSVC_LOG_LEVEL" in out


def test_get_without_a_key_shows_what_the_domain_may_decide(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == Domain().run("get", "--json")
    shown = json.loads(capsys.readouterr().out)
    assert ["limits.clients_max", "log_level"] == [line["key"] for line in shown["options"]]


def test_get_of_one_shows_value_place_and_what_the_domain_says_now(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == Domain("info", 44).run("get", "log_level")
    first, second = capsys.readouterr().out.splitlines()
    assert "log_level = error  (environment GROUPSVC_LOG_LEVEL)" == first
    assert "the domain says info, version 44" == second


def test_get_as_an_object_has_the_version_of_now(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.OK == Domain("info", 44).run("get", "log_level", "--json")
    shown = json.loads(capsys.readouterr().out)
    assert ("n1", "error", "info", 44) == (shown["node"], shown["value"], shown["domain_value"], shown["version"])


def test_get_of_what_is_no_option_is_a_mistake_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.USAGE == Domain().run("get", "loglevel")
    assert "there is no option loglevel; did you mean log_level?" in capsys.readouterr().err


def test_get_without_its_table_is_told_in_which_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.USAGE == Domain().run("get", "lease")
    assert "there is no option lease; did you mean timers.lease?" in capsys.readouterr().err


def test_set_goes_over_the_version_that_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    domain = Domain()
    assert ExitCode.OK == domain.run("set", "log_level", "info")
    assert "the domain says log_level = info, version 42\n" == capsys.readouterr().out
    asked = domain.asked[-1]
    assert isinstance(asked, ConfigSet)
    assert ("daemon/log_level", "info", 41) == (asked.key, asked.value, asked.if_version)


def test_set_again_says_nothing_new(capsys: pytest.CaptureFixture[str]) -> None:
    domain = Domain()
    assert ExitCode.OK == domain.run("set", "log_level", "debug", "--json")
    assert {"key": "log_level", "value": "debug", "version": 41} == json.loads(capsys.readouterr().out)
    assert not any(isinstance(request, ConfigSet) for request in domain.asked)


def test_set_over_another_version_certainly_did_not_happen(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.FAILED == Domain().run("set", "log_level", "info", "--if-version", "40")
    assert "version 41, not 40; `groupsvc config get log_level` shows it" in capsys.readouterr().err


def test_a_value_that_will_not_do_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.USAGE == Domain().run("set", "log_level", "loud")
    assert "is none of debug, info" in capsys.readouterr().err


def test_set_of_what_is_no_option_is_a_mistake_with_a_hint_and_nothing_is_set(
    capsys: pytest.CaptureFixture[str],
) -> None:
    domain = Domain()
    assert ExitCode.USAGE == domain.run("set", "loglevel", "info")
    assert "there is no option loglevel; did you mean log_level?" in capsys.readouterr().err
    assert not any(isinstance(request, ConfigSet) for request in domain.asked)


def test_unset_leaves_it_to_the_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    domain = Domain()
    assert ExitCode.OK == domain.run("unset", "log_level")
    assert "the domain says nothing about log_level, version 42\n" == capsys.readouterr().out
    assert "" == domain.value


def test_unset_of_what_is_no_option_is_a_mistake_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.USAGE == Domain("", 0).run("unset", "loglevel")
    told = capsys.readouterr()
    assert ("", True) == (told.out, "there is no option loglevel; did you mean log_level?" in told.err)


def test_unset_of_what_the_domain_cannot_decide_is_a_mistake_like_set(capsys: pytest.CaptureFixture[str]) -> None:
    for typed in (("set", "timers.lease", "3"), ("unset", "timers.lease")):
        assert ExitCode.USAGE == Domain("", 0).run(*typed)
        assert "timers.lease is compared when nodes meet" in capsys.readouterr().err


def test_unset_again_says_nothing_new(capsys: pytest.CaptureFixture[str]) -> None:
    domain = Domain("", 42)
    assert ExitCode.OK == domain.run("unset", "log_level")
    assert "the domain says nothing about log_level, version 42\n" == capsys.readouterr().out
    assert not any(isinstance(request, ConfigSet) for request in domain.asked)


def test_config_alone_shows_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.USAGE == main(["config"])
    assert "groupsvc config set log_level debug" in capsys.readouterr().out
