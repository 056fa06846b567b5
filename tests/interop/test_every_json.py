"""Every command that has --json prints objects with it, and nothing else: each is run, and what it prints is parsed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from groupsvc.cli import main
from groupsvc.cli.command_tree import tree_of
from groupsvc.cli.main import whole_parser
from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import environment
from groupsvc.testing.made_journals.story import Shape
from groupsvc.testing.made_journals.writing import make_journals
from tests.tidy.source_tree import ROOT
from tests.tidy.test_robustness_page import problem_with

from .typed_commands import command

Arguments = Callable[[LocalDomain, Path], list[str]]


def at(node: str, *typed: str) -> Arguments:
    """What is typed at this node."""
    return lambda domain, folder: [*typed, "--address", domain.address(node)]


def journals(folder: Path) -> Path:
    """A directory with some of a domain that never was."""
    make_journals(folder, Shape.of_events(2_000, nodes=2, groups=1, level="batch"))
    return folder


ONE_OBJECT: dict[str, Arguments] = {
    "status": at("n1"),
    "nodes": at("n1"),
    "statistics": at("n1"),
    "look-up": at("n1", "json"),
    "hand-over": lambda domain, folder: [
        next(name for name in ("n1", "n2") if name != domain.name_server()), "--address", domain.address("n1")
    ],
    "groups": at("n1"),
    "members": at("n1", "json"),
    "why": at("n1", "json"),
    "state": at("n1", "json", "green"),
    "send": at("n1", "json", "hello"),
    "expel": at("n1", "json", "bert"),
    "barrier": at("n1", "json/gate", "--parties", "1"),
    "keygen": lambda domain, folder: ["--out", str(folder), "--name", "n9"],
    "token": at("n1", "--list"),
    "doctor": at("n1"),
    "config list": at("n1"),
    "config get": at("n1", "log_level"),
    "config set": at("n1", "limits.clients_max", "777"),
    "config unset": at("n1", "limits.clients_max"),
    "journal check": lambda domain, folder: [str(journals(folder))],
    "drain": at("n3"),  # the last one: n3 is gone then
}  # fmt: skip
ONE_A_LINE: dict[str, Arguments] = {
    "watch": at("n1", "json", "--for", "0.2"),
    "join": at("n1", "json/join", "--for", "0.2"),
    "journal show": lambda domain, folder: sorted(map(str, journals(folder).glob("*.ndjson"))),
    "journal compact": lambda domain, folder: [str(journals(folder)), "--dry-run"],
}
ELSEWHERE = {
    "dev": "interop/test_every_json.py::test_a_domain_that_is_played_with_tells_of_itself_in_objects",
    "audit": "spark/test_audit.py::test_spark_submit_runs_it_and_hands_on_its_exit_code",
}
"""Those that need more than a domain, and which test parses what they print."""

WITHOUT = {"lock", "elect", "completion"}
"""Two print nothing but what their command prints, the third a script: docs/reference/commands.md says so."""


@pytest.fixture(scope="module")
def domain() -> Iterator[LocalDomain]:
    with (
        LocalDomain(nodes=3, keys=True, name="json") as made,
        made.connect("n1") as session, made.connect("n2") as other,
        session.join("json", name="anna"), other.join("json", name="bert"),
    ):  # fmt: skip
        yield made


@pytest.mark.parametrize("name", [*ONE_A_LINE, *ONE_OBJECT])
def test_what_a_command_prints_with_json_can_be_parsed(
    name: str, domain: LocalDomain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {**ONE_OBJECT, **ONE_A_LINE}[name](domain, tmp_path)
    code = main([*name.split(), *arguments, "--json"])
    told = capsys.readouterr()
    assert 0 == code, told.err
    texts = [told.out] if name in ONE_OBJECT else told.out.splitlines()
    assert texts
    assert all(isinstance(json.loads(text), dict) for text in texts), told.out


def test_a_domain_that_is_played_with_tells_of_itself_in_objects() -> None:
    with subprocess.Popen(
        command("dev", "--nodes", "1", "--json"), stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest = [json.loads(line) for line in process.stdout]
        assert 0 == process.wait(60)
    assert ("ready", "stopping") == (first["event"], rest[-1]["event"])


def test_every_command_has_json_or_the_reference_says_why_not() -> None:
    having, without = set(), set()
    for one in tree_of(whole_parser()).all():
        if not one.commands:
            (having if any("--json" in option.flags for option in one.options) else without).add(one.name)
    assert having == ONE_OBJECT.keys() | ONE_A_LINE.keys() | ELSEWHERE.keys()
    assert without == WITHOUT
    assert [] == [problem for named in ELSEWHERE.values() if (problem := problem_with(named))]
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    (said,) = [line for line in page.splitlines() if line.startswith("| `--json` |")]
    assert all(f"`{name}`" in said.partition("Without it are")[2] for name in WITHOUT)
