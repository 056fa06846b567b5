"""Man pages: every command and option has its place, and groff reads them without a word."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from groupsvc.cli import roff
from groupsvc.cli.command_tree import tree_of
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.cli.main import whole_parser
from groupsvcd import config, man

PAGES = man.pages()


@pytest.mark.parametrize("name", PAGES)
def test_groff_has_nothing_to_say(name: str, tmp_path: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff on this machine")
    path = tmp_path / name
    path.write_text(PAGES[name], encoding="ascii")
    for device in ("utf8", "ascii"):
        ended = subprocess.run(
            ["groff", "-man", "-ww", f"-T{device}", str(path)], capture_output=True, text=True, timeout=30
        )
        assert (0, "") == (ended.returncode, ended.stderr)
        assert ended.stdout.strip()


def test_man_itself_shows_a_page(tmp_path: Path) -> None:
    if shutil.which("man") is None:
        pytest.skip("there is no man on this machine")
    path = tmp_path / "groupsvc.1"
    path.write_text(PAGES["groupsvc.1"])
    ended = subprocess.run(["man", "--warnings", "-l", str(path)], capture_output=True, text=True, timeout=30)
    if "minimized" in ended.stdout:
        pytest.skip("man is not whole on this machine")
    assert (0, "") == (ended.returncode, ended.stderr)
    assert "groupsvc-doctor(1)" in ended.stdout


def said(name: str) -> str:
    """The words of a page, without the language around them."""
    return re.sub(r"\\f[BIR]|\\&", "", PAGES[name]).replace(r"\-", "-").replace(r"\(aq", "'")


def test_every_command_and_each_of_its_options_is_explained() -> None:
    program = tree_of(whole_parser())
    assert {f"groupsvc-{one.words[0]}.1" for one in program.commands} <= set(PAGES)
    for command in program.commands:
        page = said(f"groupsvc-{command.words[0]}.1")
        for one in command.all():
            for option in one.options:
                assert all(flag in page for flag in option.flags), (command.name, option.flags)
                assert option.help.replace("`", "")[1:40] in page
        assert f"groupsvc-{command.words[0]}(1)" in said("groupsvc.1")


def test_every_exit_code_is_in_the_page_of_the_command() -> None:
    codes = re.findall(r"^\.TP\n(\d+)$", said("groupsvc.1"), flags=re.MULTILINE)
    assert [str(int(code)) for code in ExitCode] == codes
    assert ["0", "1", "2", "3", "4", "5"] == re.findall(r"^\.TP\n(\d+)$", said("groupsvcd.8"), flags=re.MULTILINE)


def test_the_page_of_the_configuration_has_every_option() -> None:
    heads = set(re.findall(r"^(\w+) = ", said("groupsvcd.toml.5"), flags=re.MULTILINE))
    assert set() == {key.rpartition(".")[2] for key in config.OPTIONS} - heads


def test_text_is_taken_as_it_is() -> None:
    assert r"\&.TH" == roff.escaped(".TH")
    assert r"\(aqtis" == roff.escaped("'tis")
    assert r"a\eb \-\-x ... \[u00E4]" == roff.escaped("a\\b --x … ä")
    assert r"say \fB\-x\fR now" == roff.marked("say `-x` now")


def test_the_pages_are_written_where_man_looks_for_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == man.main([str(tmp_path)])
    assert (tmp_path / "man1/groupsvc-lock.1").exists()
    assert (tmp_path / "man8/groupsvcd.8").exists()
    assert (tmp_path / "man5/groupsvcd.toml.5").exists()
    assert str(tmp_path / "man1/groupsvc.1") in capsys.readouterr().out
    assert 2 == man.main([])
