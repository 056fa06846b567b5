"""Users' mistakes, and what a shell can do to a command: always a sentence and an exit code, never a stack trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from groupsvc.addresses import problem_with_address
from groupsvc.cli import main
from groupsvc.cli.command_tree import tree_of
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.cli.main import whole_parser
from groupsvc.testing.scripted_daemon import ScriptedDaemon, reply_frame
from groupsvc.wire import client_messages as wire
from groupsvc.wire import notices

NEEDED = {
    "look-up": ["g"], "hand-over": ["n2"], "members": ["g"], "why": ["g"], "watch": ["g"], "state": ["g"],
    "send": ["g", "text"], "expel": ["g", "p"], "lock": ["x"], "elect": ["x"], "barrier": ["x", "--parties", "2"],
    "token": ["--list"],
}  # fmt: skip
RUNNING = ("lock", "elect", "barrier")


def asking() -> list[list[str]]:
    """Every command that asks a daemon, with what it needs."""
    found = []
    for command in (one for one in tree_of(whole_parser()).all() if not one.commands):
        flags = {flag for option in command.options for flag in option.flags}
        arguments = ["x" for one in command.arguments if not one.is_optional]
        if {"--address", "--keys"} <= flags and command.words[0] not in ("completion", "doctor"):
            found.append([*command.words, *NEEDED.get(command.words[0], arguments)])
    return found


def complete(command: list[str], *options: str) -> list[str]:
    return [*command, *options, *(["--", "true"] if command[0] in RUNNING else [])]


def typed(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """As a process of its own: what is wrong with its streams, or its locale, is not that of the test."""
    common = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = subprocess.run(
        [sys.executable, "-m", "groupsvc.cli", *arguments], capture_output=True, text=True, errors="replace",
        timeout=60, env={**common, **environment},
    )  # fmt: skip
    assert "Traceback" not in ended.stderr + ended.stdout, ended.stderr
    return ended


# --- Addresses and keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", asking(), ids=" ".join)
def test_every_command_refuses_what_is_no_address(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert ExitCode.USAGE == main(complete(command, "--address", "nonsense"))
    assert "groupsvc: 'nonsense' is no address of a daemon" in capfd.readouterr().err


@pytest.mark.parametrize("command", asking(), ids=" ".join)
def test_every_command_says_that_nobody_is_there(
    command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ExitCode.UNREACHABLE == main(complete(command, "--address", f"ipc://{tmp_path}/none"))
    assert "there is no such socket" in capfd.readouterr().err


@pytest.mark.parametrize("address", ["", "ipc://", "ipc://" + "x" * 200, "ipc://\udcff", "ipc://a\0b", "tcp://host",
                                     "tcp://h:0", "tcp://h:99999", "tcp://0.0.0.0:7402", "tcp://\udcff:1"])  # fmt: skip
def test_bad_addresses_have_a_sentence_each(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Among them bytes that are no text, which were a stack trace."""
    assert problem_with_address(address)
    assert ExitCode.USAGE == main(["status", "--address", address, "--keys", "none"])
    assert capsys.readouterr().err.startswith("groupsvc: ")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b'{"public": 3}', b"public = 3\nsecret = 4\n", b"public = 'x'"])
def test_what_is_no_key_file_is_refused_in_words(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.key"
    path.write_bytes(content)
    path.chmod(0o600)
    arguments = ["--address", "tcp://127.0.0.1:1", "--keys", str(path)]
    assert ExitCode.USAGE == main(["status", *arguments])
    assert ExitCode.USAGE == main(["groups", *arguments])
    assert ExitCode.USAGE == main(["keygen", "--out", str(tmp_path / "new"), "--server", str(path)])
    assert 3 == capsys.readouterr().err.count(f"groupsvc: {path}: ")


@pytest.mark.parametrize(
    "mistyped, meant",
    [
        (["stauts"], "groupsvc status"),
        (["confg", "list"], "groupsvc config"),
        (["config", "lst"], "groupsvc config list"),
    ],
)
def test_a_mistyped_command_is_told_what_was_meant(
    mistyped: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(mistyped)
    assert ExitCode.USAGE == ended.value.code
    assert f"did you mean `{meant}`?" in capsys.readouterr().err


def test_a_command_like_none_is_answered_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["zzzzzzzz"])
    assert "invalid choice" in capsys.readouterr().err


def test_a_key_pair_for_nobody_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty name, as from a variable that is not set, was taken for the name of this host."""
    assert ExitCode.USAGE == main(["keygen", "--name", "", "--out", str(tmp_path)])
    assert "is no name" in capsys.readouterr().err
    assert [] == os.listdir(tmp_path)


# --- Rights --------------------------------------------------------------------------------------------------


def test_who_may_not_open_the_socket_is_told_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with ScriptedDaemon(lambda request: wire.Done(request.id)) as daemon:
        path = Path(daemon.address.removeprefix("ipc://"))
        path.chmod(0o600)
        path.parent.chmod(0o755)
        child = os.fork()
        if not child:
            code = 99
            try:
                if os.getuid() == 0:
                    os.setuid(65534)
                else:
                    path.chmod(0o000)
                code = main(["status", "--address", daemon.address])
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
    assert ExitCode.UNREACHABLE == os.waitstatus_to_exitcode(status)
    assert "this user may not open" in capfd.readouterr().err


# --- Streams and locales -------------------------------------------------------------------------------------

ANNA = notices.Provider(("n1", 17, 1), "ännä…", b"", 3)


def answer(request: wire.AnyClientRequest) -> bytes:
    match request:
        case wire.OpenSession():
            return reply_frame(wire.SessionIs(request.id, 5, b"secret", 0, 3.0, ("n1", 7, 0)))
        case wire.SessionAlive():
            return reply_frame(wire.SessionAliveAck(request.id, 99, 3.0))
        case wire.SubscribeAsk():
            view = notices.GroupView(7, 1048583, (ANNA,), "grün".encode(), 2, "approve")
            return reply_frame(wire.Subscribed(request.id, 1, {}, view))
        case _:
            return reply_frame(wire.Done(request.id))


@pytest.mark.parametrize("coding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_lacks_letters_is_shown_the_rest(coding: str) -> None:
    with ScriptedDaemon(answer) as daemon:
        ended = typed("members", "db", "--address", daemon.address, PYTHONIOENCODING=f"{coding}:strict")
    assert ExitCode.OK == ended.returncode
    assert ("ännä…" if coding == "utf-8" else "\\u2026") in ended.stdout


def test_errors_do_not_go_to_standard_output_when_there_is_nowhere_else(tmp_path: Path) -> None:
    common = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "groupsvc.cli", "status", "--address", f"ipc://{tmp_path}/none"]
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *command], stdout=subprocess.PIPE, text=True, timeout=60, env=common
    )
    assert (ExitCode.UNREACHABLE, "") == (ended.returncode, ended.stdout)


def test_a_closed_standard_output_is_no_reason_to_break() -> None:
    common = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with ScriptedDaemon(answer) as daemon:
        for words in (["members", "db"], ["watch", "db", "--for", "0.1"], ["state", "db"]):
            command = [sys.executable, "-m", "groupsvc.cli", *words, "--address", daemon.address]
            ended = subprocess.run(
                ["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, timeout=60, env=common
            )
            assert (ExitCode.OK, "") == (ended.returncode, ended.stderr)


@pytest.mark.parametrize("words", [["members", "db"], ["watch", "db"], ["completion", "bash"]])
def test_a_full_disk_behind_any_command_has_its_exit_code(words: list[str]) -> None:
    common = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with ScriptedDaemon(answer) as daemon, open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "groupsvc.cli", *words, "--address", daemon.address]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, env=common)
    assert ExitCode.OUTPUT == ended.returncode
    assert "groupsvc: the answer could not be written: No space left on device\n" == ended.stderr


# --- The doctor and garbage ----------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"\xff\xfe", b"node = ", b"node = 3\n", b"[[voters]]\n", None])
def test_the_doctor_is_not_put_off_by_garbage(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "groupsvcd.toml"
    if content is not None:
        path.write_bytes(content)
    code = main(["doctor", "--config", str(path), "--address", f"ipc://{tmp_path}/none"])
    assert ExitCode.UNHEALTHY == code
    assert f"FAIL  configuration  {path}" in capsys.readouterr().out
