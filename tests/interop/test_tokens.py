"""A new machine gets its key listed by a token, and joins; a token is good for that, once, and for nothing else."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import groupsvc
from groupsvc import DaemonUnreachable, Failed, Keys, PermissionDenied, UsageError
from groupsvc.drivers.connection import DaemonConnection
from groupsvc.drivers.curve import new_keys, public_of
from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import environment
from groupsvc.testing.loopback_ports import PortBlock
from groupsvc.tokens import Token


@pytest.fixture(scope="module")
def keyed() -> Iterator[LocalDomain]:
    with LocalDomain(nodes=3, keys=True, name="tokens") as made:
        yield made


def typed(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """A command, as a process of its own."""
    command = [sys.executable, "-m", "groupsvc.cli", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, env=environment())


def token_for(domain: LocalDomain, node: str, *options: str, at: str = "n1") -> str:
    """The line that ``groupsvc token`` prints."""
    made = typed("token", "--node", node, "--address", domain.address(at), *options)
    assert (0, 1) == (made.returncode, len(made.stdout.splitlines())), made.stderr
    return made.stdout.strip()


def shown(line: str) -> Keys:
    """What a machine shows that has the token."""
    token = Token.parse(line)
    return Keys(public_of(token.secret), token.secret, (token.server,))


def enrol(line: str, node: str = "", public: str = "", at: str = "") -> Any:
    """Show a token, and say what node has which key."""
    token = Token.parse(line)
    with DaemonConnection(at or token.address, 5.0, keys=shown(line)) as connection:
        return connection.enrol(node or token.node, public or new_keys().public)


@contextmanager
def daemon(config: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The daemon of a file as it was written; only its socket is somewhere else."""
    own = {"GROUPSVC_CLIENT_ADDRESS": f"ipc://{config.parent}/s", "GROUPSVC_RUNTIME_DIRECTORY": str(config.parent)}
    with (config.parent / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "groupsvcd", "--config", str(config)], stdout=log, stderr=log,
            env={**environment(), **own},
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def is_up(domain: LocalDomain, name: str, at: str = "n1") -> bool:
    status = domain.status(at)
    return status is not None and any(node.name == name and node.status == "up" for node in status.nodes)


def listed(domain: LocalDomain, at: str) -> dict[str, str]:
    """By node, what the domain lists, as one daemon knows it."""
    with DaemonConnection(domain.address(at), 5.0) as connection:
        return {line.node: line.kind for line in connection.node_keys().lines if line.kind != "file"}


def test_a_fourth_node_joins_by_a_token_and_is_known_after_everybody_was_started_anew(
    keyed: LocalDomain, tmp_path: Path
) -> None:
    """The file that is written is the one its daemon starts with; nobody else's was touched."""
    block = PortBlock()
    try:
        line = token_for(keyed, "d4", at="n2")
        made = typed("keygen", "--join", "-", "--out", str(tmp_path), "--peer-address", block.address, "--json",
                     given=line)  # fmt: skip
        assert (0, "") == (made.returncode, made.stderr)
        found = json.loads(made.stdout)
        assert ("d4", "tokens", 0o600) == (
            found["name"], found["domain"], stat.S_IMODE(os.stat(found["secret_file"]).st_mode),
        )  # fmt: skip
        config = Path(found["config_file"])
        with daemon(config):
            keyed.wait_until(lambda: is_up(keyed, "d4"), f"d4 is up\n{(tmp_path / 'log').read_text()[-3000:]}")
            with (
                groupsvc.connect(f"ipc://{tmp_path}/s") as new, keyed.connect("n3") as old,
                new.join("with-d4", name="new") as here, old.join("with-d4", name="old", events=True) as there,
            ):  # fmt: skip
                here.send(b"hello")
                heard = next(event for event in there.events() if isinstance(event, groupsvc.Message))
                assert b"hello" == heard.payload
        for name in keyed.names:
            keyed.kill(name)
        for name in keyed.names:
            keyed.restart(name, wait=False)
        keyed.wait_until_up()
        with daemon(config):
            keyed.wait_until(lambda: is_up(keyed, "d4"), "d4 is up again")
        assert all(listed(keyed, name) == {"d4": "key"} for name in keyed.names)
    finally:
        block.close()


def test_who_uses_a_token_again_is_told_and_the_same_machine_is_told_yes(keyed: LocalDomain) -> None:
    line = token_for(keyed, "twice")
    key = new_keys().public
    first = enrol(line, public=key)
    in_file = keyed._node("n1").settings["node_keys"]
    assert isinstance(in_file, dict)
    assert {"n1", *in_file} == set(first.node_keys)  # and none that the domain lists, which somebody may revoke
    with pytest.raises(
        Failed, match="the token was used already, to enrol twice; if that was not you, have it revoked"
    ):
        enrol(line)
    assert first.version == enrol(line, public=key).version
    keyed.wait_until(lambda: listed(keyed, "n2").get("twice") == "key", "n2 knows of it")
    assert first.version == enrol(line, public=key, at=keyed.remote_address("n1")).version


def test_of_two_machines_at_once_one_is_enrolled(keyed: LocalDomain) -> None:
    line = token_for(keyed, "race")
    token = Token.parse(line)
    code = (
        "import sys\n"
        "from groupsvc import Failed, Keys\n"
        "from groupsvc.drivers.connection import DaemonConnection\n"
        "from groupsvc.drivers.curve import new_keys\n"
        "address, public, secret, server = sys.argv[1:]\n"
        "with DaemonConnection(address, 10.0, keys=Keys(public, secret, (server,))) as connection:\n"
        "    sys.stdin.readline()\n"
        "    try:\n"
        "        print('yes', connection.enrol('race', new_keys().public).version)\n"
        "    except Failed as error:\n"
        "        print('no', 'was used already' in str(error))\n"
    )
    keys = shown(line)
    command = [sys.executable, "-c", code, token.address, keys.public, keys.secret, token.server]
    machines = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
        for _ in range(4)
    ]
    for machine in machines:
        assert machine.stdin is not None
        machine.stdin.write("\n")
        machine.stdin.flush()
    said = sorted(machine.communicate(timeout=30)[0].split()[0] for machine in machines)
    assert ["no", "no", "no", "yes"] == said


def test_an_expired_token_is_refused_and_says_since_when(keyed: LocalDomain) -> None:
    line = token_for(keyed, "late", "--valid", "1")
    keyed.wait_until(lambda: time.time() > Token.parse(line).until + 0.1, "it has expired")
    with pytest.raises(Failed, match=r"the token expired \d+ s ago, by the clock of n1"):
        enrol(line)
    assert "audit token_expired" in keyed.logs("n1")


def test_a_token_is_for_one_name(keyed: LocalDomain, tmp_path: Path) -> None:
    line = token_for(keyed, "mine")
    with pytest.raises(Failed, match="not, or no longer, one for yours"):
        enrol(line, node="yours")
    refused = typed("keygen", "--join", "-", "--name", "yours", "--out", str(tmp_path), given=line)
    assert (2, []) == (refused.returncode, list(tmp_path.iterdir()))
    assert "the token is for a node that is called mine" in refused.stderr


def test_the_key_of_another_node_is_not_enrolled(keyed: LocalDomain) -> None:
    """It would be let in under the new name, and n2 locked out."""
    line = token_for(keyed, "thief")
    with pytest.raises(Failed, match="is the one of n2"):
        enrol(line, public=keyed._node_keys["n2"].public)
    with pytest.raises(Failed, match="a pair of its own"):
        enrol(line, public=shown(line).public)


@pytest.mark.parametrize("how", ["forged", "revoked", "replaced"])
def test_a_token_that_nobody_lists_is_not_let_in(keyed: LocalDomain, tmp_path: Path, how: str) -> None:
    line = token_for(keyed, f"x-{how}")
    if how == "revoked":
        done = typed("token", "--revoke", f"x-{how}", "--address", keyed.address("n1"))
        assert (0, "") == (done.returncode, done.stderr)
    elif how == "replaced":
        assert line != token_for(keyed, f"x-{how}")
    else:
        token = Token.parse(line)
        line = Token(token.node, token.domain, token.address, token.server, token.until, new_keys().secret).line()
    refused = typed("keygen", "--join", "-", "--out", str(tmp_path), given=line)
    assert (4, "", []) == (refused.returncode, refused.stdout, list(tmp_path.iterdir()))
    assert "does not know this token" in refused.stderr


def test_a_token_of_another_domain_is_not_let_in(keyed: LocalDomain, tmp_path: Path) -> None:
    with LocalDomain(nodes=1, keys=True, name="other") as other:
        line = token_for(other, "guest")
        with pytest.raises(DaemonUnreachable):
            enrol(line, at=keyed.remote_address("n1"))
        token = Token.parse(line)
    moved = Token("guest", "other", keyed.remote_address("n1"), token.server, token.until, token.secret).line()
    refused = typed("keygen", "--join", "-", "--out", str(tmp_path), given=moved)
    assert (4, []) == (refused.returncode, list(tmp_path.iterdir()))
    assert "is not the daemon that the token names" in refused.stderr


def test_no_token_for_a_node_that_is_there(keyed: LocalDomain) -> None:
    for name in ("n1", "n2"):
        refused = typed("token", "--node", name, "--address", keyed.address("n1"))
        assert (4, "") == (refused.returncode, refused.stdout)
        assert f"{name} is a voter; keys of voters stand in [node_keys]" in refused.stderr


def test_a_key_that_was_enrolled_is_taken_off_the_list(keyed: LocalDomain, tmp_path: Path) -> None:
    block = PortBlock()
    line = token_for(keyed, "gone")
    options = ["--out", str(tmp_path), "--peer-address", block.address]
    assert 0 == typed("keygen", "--join", "-", *options, given=line).returncode
    try:
        with daemon(tmp_path / "gone.toml"):
            keyed.wait_until(lambda: is_up(keyed, "gone"), "it is up")
            refused = typed("token", "--node", "gone", "--address", keyed.address("n1"))
            assert (4, True) == (refused.returncode, "gone is up, at" in refused.stderr)
            done = typed("token", "--revoke", "gone", "--address", keyed.address("n3"), "--json")
            assert "key" == json.loads(done.stdout)["revoked"]
            keyed.wait_until(lambda: not any("gone" in listed(keyed, name) for name in keyed.names), "all know")
            keyed.wait_until(lambda: not is_up(keyed, "gone"), "it is not heard any more")
            own, told = f"ipc://{tmp_path}/s", "trouble: the key of this node was revoked, or never listed, at n"
            keyed.wait_until(lambda: told in typed("status", "--address", own).stdout, "it knows why")
            assert "not listed: n" in (tmp_path / "log").read_text()
            assert "enrol it anew with a token" in typed("doctor", "--address", own).stdout
        public = Keys.read(tmp_path / "gone.key").public
        with daemon(tmp_path / "gone.toml"):
            refusal = f"audit key_refused who={public!r}"
            keyed.wait_until(lambda: all(refusal in keyed.logs(name) for name in keyed.names), "all refuse it")
            assert not is_up(keyed, "gone")
    finally:
        block.close()


def test_who_has_a_token_may_do_nothing_else(keyed: LocalDomain) -> None:
    line = token_for(keyed, "curious")
    address = Token.parse(line).address
    with pytest.raises(PermissionDenied):
        groupsvc.connect(address, keys=shown(line), timeout=5.0).close()
    with DaemonConnection(address, 5.0, keys=shown(line)) as connection:
        for deed in (
            connection.status, connection.statistics, connection.options, connection.survey, connection.node_keys,
            lambda: connection.look_up("g", form=True), lambda: connection.config_get("x"),
            lambda: connection.config_set("x", "1", if_version=0), lambda: connection.hand_over("n2"),
            lambda: connection.drain(1.0), lambda: connection.revoke("curious"),
            lambda: connection.token("another", new_keys().public, 60.0),
        ):  # fmt: skip
            with pytest.raises(PermissionDenied, match="a token is good for one thing"):
                deed()
        assert connection.enrol("curious", new_keys().public).version
    assert "audit token_refused" in keyed.logs("n1")


def test_who_has_no_token_enrols_nobody_and_a_program_makes_none(keyed: LocalDomain) -> None:
    """Without rules everybody may do everything in groups; nodes are another matter."""
    with DaemonConnection(keyed.remote_address("n1"), 5.0, keys=keyed.keys) as far:
        with pytest.raises(PermissionDenied, match="only who shows a token"):
            far.enrol("x", new_keys().public)
        for deed in (lambda: far.token("x", new_keys().public, 60.0), lambda: far.revoke("x"), far.node_keys):
            with pytest.raises(PermissionDenied, match=r"key:client may not .* for root and the user of the daemon"):
                deed()
        with pytest.raises(UsageError, match="listed by tokens"):
            far.config_set("daemon/keys/x", f"key {new_keys().public} {new_keys().public}", if_version=0)


def test_a_daemon_without_keys_says_that_tokens_need_some() -> None:
    with LocalDomain(nodes=1) as domain:
        refused = typed("token", "--node", "n2", "--address", domain.address("n1"))
    assert (4, "") == (refused.returncode, refused.stdout)
    assert "tokens need keys" in refused.stderr
