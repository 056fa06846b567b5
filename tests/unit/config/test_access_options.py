"""Rules in the configuration: what may stand in them, and what the operator is told."""

from __future__ import annotations

import grp
import pwd
from pathlib import Path

import pytest

from groupsvcd.core.access import VERBS, Access, Principal, Who
from tests.unit.config.test_config import loaded, problems

ROOT, GROUP = pwd.getpwuid(0).pw_name, grp.getgrgid(0).gr_name


def test_names_become_numbers_once(tmp_path: Path) -> None:
    who = f'who = ["user:{ROOT}", "group:{GROUP}", "user:1234", "*"]'
    text = f'[[access]]\n{who}\ngroups = "db-*"\nmay = ["join", "send"]\n'
    (rule,) = loaded(tmp_path, text + '[[access]]\nwho = "user:5"\nmay = "admin"\n').access[:1]
    expected = (Who(f"user:{ROOT}", uid=0), Who(f"group:{GROUP}", gid=0), Who("user:1234", uid=1234), Who("*"))
    assert expected == rule.who
    assert (("db-*",), {"join", "send"}) == (rule.groups, rule.may)


def test_a_star_is_every_right(tmp_path: Path) -> None:
    (rule,) = loaded(tmp_path, '[[access]]\nwho = "user:5"\ngroups = "*"\nmay = "*"\n').access
    assert set(VERBS) == rule.may
    assert Access((rule,)).allows(Principal(uid=5), "admin")


def test_no_rules_is_the_default(tmp_path: Path) -> None:
    assert () == loaded(tmp_path, "").access


@pytest.mark.parametrize(
    "text, reason",
    [
        ("[access]\nwho = []", "write each rule under [[access]]"),
        ("access = 3", "write each rule under [[access]]"),
        ('[[access]]\ngroups = ["a"]\nmay = ["join"]', "rule 1: who is a list of texts"),
        ('[[access]]\nwho = ["*"]\nmay = ["join"]', "rule 1: groups is a list of texts"),
        ('[[access]]\nwho = ["*"]\ngroups = ["a"]', "rule 1: may is a list of texts"),
        ('[[access]]\nwho = ["*"]\ngroups = [3]\nmay = ["join"]', "rule 1: groups is a list of texts"),
        ('[[access]]\nwho = ["*"]\ngroups = ["a"]\nmay = ["jion"]', "did you mean join?"),
        ('[[access]]\nwho = ["alice"]\ngroups = ["a"]\nmay = ["join"]', "write user:NAME, group:NAME, key:NAME or *"),
        ('[[access]]\nwho = ["user:nobody-is-so-called"]\ngroups = ["a"]\nmay = ["join"]', "knows no such user"),
        ('[[access]]\nwho = ["group:nothing-is-so-called"]\ngroups = ["a"]\nmay = ["join"]', "knows no such group"),
        ('[[access]]\nwho = ["key:reports"]\ngroups = ["a"]\nmay = ["join"]', "is not in [client_keys]"),
        ('[[access]]\nwho = ["*"]\ngroup = ["a"]\ngroups = ["a"]\nmay = ["join"]', "did you mean groups?"),
    ],
)
def test_what_cannot_be_a_rule_is_said(tmp_path: Path, text: str, reason: str) -> None:
    found = problems(tmp_path, text)
    assert any(reason in problem for problem in found), found


def test_over_tcp_without_keys_everybody_is_nobody(tmp_path: Path) -> None:
    text = 'listen_clients = "tcp://127.0.0.1:7500"\n[[access]]\nwho = ["*"]\ngroups = ["a"]\nmay = ["join"]\n'
    assert any("nobody but *" in warning for warning in loaded(tmp_path, text).warnings())
