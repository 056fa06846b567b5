"""``groupsvc keygen``: two files, and words that can be copied into a configuration."""

from __future__ import annotations

import json
import re
import stat
import tomllib
from pathlib import Path

import pytest

from groupsvc.cli.main import main
from groupsvc.keys import Keys, public_key
from groupsvcd import config


def test_what_it_prints_is_a_good_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "keys").mkdir()
    assert 0 == main(["keygen", "--out", str(tmp_path / "keys"), "--name", "n1"])
    printed = capsys.readouterr().out
    file = tmp_path / "groupsvcd.toml"
    tables = re.findall(r"^    (.*)", printed, re.M)
    file.write_text('node = "n1"\nlisten_clients = "tcp://0.0.0.0:7500"\n' + "\n".join(tables[:-1]))
    made = config.load(file, {})
    keys = Keys.read(tmp_path / "keys" / "n1.key")
    assert (keys, (keys.public,), (keys.public,)) == (made.keys, made.node_keys["n1"], made.client_keys["n1"])
    assert keys.secret not in printed
    assert 0o600 == stat.S_IMODE((tmp_path / "keys" / "n1.key").stat().st_mode)


def test_a_name_with_a_dot_is_printed_as_toml_wants_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["keygen", "--out", str(tmp_path), "--name", "n1.example"])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith('    "n1'))
    assert ["n1.example"] == list(tomllib.loads(line))


def test_a_program_gets_the_keys_of_its_daemons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("n1", "n2"):
        assert 0 == main(["keygen", "--out", str(tmp_path), "--name", name, "--json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    servers = ["--server", found[0]["public"], "--server", found[1]["public_file"]]
    assert 0 == main(["keygen", "--out", str(tmp_path), "--name", "reports", *servers])
    assert (found[0]["public"], found[1]["public"]) == Keys.read(tmp_path / "reports.key").servers
    assert found[0]["public"] == public_key(found[0]["public_file"])


@pytest.mark.parametrize(
    "arguments, code, reason",
    [
        (["--name", "taken"], 4, "not written over"),
        (["--name", "../x"], 2, "is no name"),
        (["--name", "a", "--server", "nonsense"], 2, "cannot be read"),
        (["--name", "a", "--out", "taken.key"], 4, "cannot be written"),
        (["--name", "a", "--out", "mistyped"], 4, "and none is made"),
    ],
)
def test_what_cannot_be_made_is_a_sentence_and_an_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.key").write_text("precious")
    assert code == main(["keygen", *arguments])
    assert reason in capsys.readouterr().err
    assert ["taken.key"] == [path.name for path in tmp_path.iterdir()]
