"""A connection ends every call in time, with the answer or an error of the right family."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from groupsvc.drivers import connection as module
from groupsvc.drivers.connection import DaemonConnection
from groupsvc.drivers.daemon_socket import why_refused
from groupsvc.errors import (
    DaemonUnreachable,
    Failed,
    NoSuchGroup,
    OutcomeUnknown,
    PeerProtocolError,
    StaleVersion,
    TimedOut,
    UsageError,
)
from groupsvc.testing.scripted_daemon import ScriptedDaemon, reply_frame
from groupsvc.wire import frames
from groupsvc.wire.client_messages import (
    REQUEST_CODEC,
    AnyClientReply,
    AnyClientRequest,
    ConfigSet,
    ConfigValue,
    Done,
    GroupRecord,
    HandOverAsk,
    LookUpAsk,
    Problem,
)
from groupsvc.wire.kinds import FrameKind

SHORT_S = 0.05


def found(request: AnyClientRequest) -> GroupRecord:
    return GroupRecord(request.id, True, False, 7, "db", 9, "n1", ("n1", "n2"))


def silent(request: AnyClientRequest) -> None:
    return None


@pytest.fixture(autouse=True)
def _no_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPLY_SLACK_S", 0.0)


class TestAnswers:
    """What a daemon that behaves says arrives as it was said."""

    def test_look_up_gives_the_record_and_tells_the_daemon_the_callers_time(self) -> None:
        with ScriptedDaemon(found) as daemon, DaemonConnection(daemon.address) as connection:
            assert connection.look_up("db", timeout=2.5).leader == "n1"
            (asked,) = daemon.requests
        assert isinstance(asked, LookUpAsk)
        assert (asked.group, asked.form, asked.timeout) == ("db", False, 2.5)

    def test_config_set_carries_the_expected_version(self) -> None:
        with (
            ScriptedDaemon(lambda request: ConfigValue(request.id, "hour", "3", 2)) as daemon,
            DaemonConnection(daemon.address) as connection,
        ):
            assert connection.config_set("hour", "3", if_version=1).version == 2
            (asked,) = daemon.requests
        assert isinstance(asked, ConfigSet)
        assert asked.if_version == 1

    def test_hand_over_returns_when_done(self) -> None:
        with ScriptedDaemon(lambda request: Done(request.id)) as daemon:
            with DaemonConnection(daemon.address) as connection:
                connection.hand_over("n2")
            assert [type(request) for request in daemon.requests] == [HandOverAsk]

    def test_a_late_answer_to_an_earlier_call_is_thrown_away(self) -> None:
        def late(request: AnyClientRequest) -> AnyClientReply | bytes | None:
            assert isinstance(request, LookUpAsk)
            return None if request.group == "slow" else reply_frame(Problem(request.id - 1, "failed", "", "late"))

        def then_right(request: AnyClientRequest) -> AnyClientReply | bytes | None:
            wrong = late(request)
            if wrong is None:
                return None
            return reply_frame(Problem(request.id - 1, "failed", "", "late"), found(request))

        with ScriptedDaemon(then_right) as daemon, DaemonConnection(daemon.address) as connection:
            with pytest.raises(TimedOut):
                connection.look_up("slow", timeout=SHORT_S)
            assert connection.look_up("db").group == 7


class TestProblems:
    """A problem becomes an error of its family, with the daemon's text."""

    @pytest.mark.parametrize(
        "family,code,expected",
        [
            ("failed", "whatever", Failed),
            ("failed", "stale", StaleVersion),
            ("failed", "no-such-group", NoSuchGroup),
            ("failed", "timed-out", TimedOut),
            ("unknown", "", OutcomeUnknown),
            ("usage", "", UsageError),
        ],
    )
    def test_family_and_text_arrive(self, family: str, code: str, expected: type[Exception]) -> None:
        def refuse(request: AnyClientRequest) -> Problem:
            assert family in ("failed", "unknown", "usage")
            return Problem(request.id, family, code, "because it is Sunday")  # type: ignore[arg-type]

        with (
            ScriptedDaemon(refuse) as daemon,
            DaemonConnection(daemon.address) as connection,
            pytest.raises(expected, match="because it is Sunday"),
        ):
            connection.look_up("db")

    def test_the_refusal_of_a_whole_frame_ends_the_call_in_hand(self) -> None:
        with (
            ScriptedDaemon(lambda request: Problem(0, "usage", "version", "other frame version")) as daemon,
            DaemonConnection(daemon.address) as connection,
            pytest.raises(UsageError, match="other frame version"),
        ):
            connection.look_up("db")

    def test_an_answer_of_the_wrong_kind_is_the_peers_fault(self) -> None:
        with (
            ScriptedDaemon(lambda request: Done(request.id)) as daemon,
            DaemonConnection(daemon.address) as connection,
            pytest.raises(PeerProtocolError, match="Done"),
        ):
            connection.look_up("db")

    @pytest.mark.parametrize(
        "garbage",
        [
            b"",
            b"no frame at all",
            bytes(64),
            reply_frame(Done(1))[:-1],
            frames.pack(FrameKind.CLIENT_REPLY, bytes(16), b"x", 1, b"\xc1"),
            frames.pack(FrameKind.CLIENT_REQUEST, bytes(16), b"x", 1, REQUEST_CODEC.encode([])),
        ],
        ids=["empty", "text", "zeros", "truncated", "bad body", "wrong kind of frame"],
    )
    def test_garbage_is_refused_with_a_reason(self, garbage: bytes) -> None:
        with (
            ScriptedDaemon(lambda request: garbage) as daemon,
            DaemonConnection(daemon.address) as connection,
            pytest.raises(PeerProtocolError),
        ):
            connection.look_up("db")


class TestSilence:
    """No answer never means waiting for ever, and never a wrong family."""

    def test_a_question_without_answer_certainly_did_nothing(self) -> None:
        with (
            ScriptedDaemon(silent) as daemon,
            DaemonConnection(daemon.address) as connection,
            pytest.raises(TimedOut),
        ):
            connection.status(timeout=SHORT_S)

    @pytest.mark.parametrize("what", ["form", "set", "hand over"])
    def test_a_change_without_answer_may_have_happened(self, what: str) -> None:
        with ScriptedDaemon(silent) as daemon, DaemonConnection(daemon.address) as connection:
            calls: dict[str, Callable[[], object]] = {
                "form": lambda: connection.look_up("db", form=True, timeout=SHORT_S),
                "set": lambda: connection.config_set("k", "v", if_version=0, timeout=SHORT_S),
                "hand over": lambda: connection.hand_over("n2", timeout=SHORT_S),
            }
            with pytest.raises(OutcomeUnknown):
                calls[what]()

    def test_a_process_that_does_not_greet_is_unreachable(self) -> None:
        with (
            ScriptedDaemon(silent, greets=False) as daemon,
            pytest.raises(DaemonUnreachable, match="stopped, overloaded, or no groupsvcd"),
        ):
            DaemonConnection(daemon.address, SHORT_S)

    def test_a_daemon_that_dies_ends_the_call_long_before_its_deadline(self) -> None:
        began = time.monotonic()
        with ScriptedDaemon(silent) as daemon, DaemonConnection(daemon.address) as connection:
            daemon.stop()
            with pytest.raises((DaemonUnreachable, UsageError)):
                connection.status(timeout=60.0)
            with pytest.raises(UsageError, match="make a new one"):
                connection.status()
        assert time.monotonic() - began < 30.0


class TestNoDaemon:
    """The error says what is there and how to start a daemon."""

    def test_no_socket(self, tmp_path: Path) -> None:
        with pytest.raises(DaemonUnreachable, match=r"no such socket.*groupsvc dev"):
            DaemonConnection(f"ipc://{tmp_path}/none.sock")

    def test_socket_left_behind_by_a_dead_daemon(self, tmp_path: Path) -> None:
        path = tmp_path / "old.sock"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        with pytest.raises(DaemonUnreachable, match="nobody listens"):
            DaemonConnection(f"ipc://{path}")

    def test_plain_file(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_text("hello")
        with pytest.raises(DaemonUnreachable, match="no socket"):
            DaemonConnection(f"ipc://{path}")

    def test_address_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with ScriptedDaemon(found) as daemon:
            monkeypatch.setenv("GROUPSVC_ADDRESS", daemon.address)
            with DaemonConnection() as connection:
                assert connection.welcome.node == "scripted"

    @pytest.mark.parametrize("address", ["", "n1", "tcp://127.0.0.1", "ipc://", "ipc://" + "x" * 108])
    def test_what_is_no_address_is_the_callers_mistake(self, address: str) -> None:
        with pytest.raises(UsageError):
            DaemonConnection(address)


class TestMisuse:
    """The caller's bugs are told as such."""

    @pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan"), float("inf"), 3601.0])
    def test_impossible_timeouts(self, timeout: float) -> None:
        with pytest.raises(UsageError, match="timeout"):
            DaemonConnection("ipc:///nowhere", timeout)

    def test_a_closed_connection_says_so(self) -> None:
        with ScriptedDaemon(found) as daemon:
            connection = DaemonConnection(daemon.address)
            connection.close()
            connection.close()
            with pytest.raises(UsageError, match="closed"):
                connection.status()

    def test_a_forked_child_may_not_use_its_parents_connection(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with ScriptedDaemon(found) as daemon, DaemonConnection(daemon.address) as connection:
            mine = os.getpid()
            monkeypatch.setattr(os, "getpid", lambda: mine + 1)
            with pytest.raises(UsageError, match="forked child"):
                connection.status()
            monkeypatch.undo()


def test_a_socket_that_vanishes_while_we_ask_why_it_refuses_is_no_crash(tmp_path: Path) -> None:
    """A daemon that starts again removes the socket of the one before, at any moment."""
    assert "its daemon has ended, and its socket is gone" == why_refused(str(tmp_path / "gone.sock"))
