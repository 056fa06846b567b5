"""What a newcomer sees who types the name of a thing: words, and not an address in memory."""

from __future__ import annotations

import enum
import os
import sys
import typing

import pytest

import groupsvc
from groupsvc import aio, program
from groupsvc.recipes.turns import Attempt, Trial, Turn
from groupsvc.sansio.rounds import disagreement
from groupsvc.views import Provider

ANNA = Provider("n1/17/1", "n1", "anna", b"", 1)
BERT = Provider("n2/18/1", "n2", "bert", b"", 2)


def classes() -> list[type]:
    """Everything public that an object can be of."""
    found = [getattr(module, name) for module in (groupsvc, aio) for name in module.__all__]
    return [
        one for one in found
        if isinstance(one, type) and not issubclass(one, enum.Enum) and not getattr(one, "_is_protocol", False)
    ]  # fmt: skip


@pytest.mark.parametrize("cls", [*classes(), aio.Entering, Attempt, Trial, Turn], ids=lambda cls: cls.__name__)
def test_everything_public_can_be_shown(cls: type) -> None:
    assert cls.__repr__ is not object.__repr__, f"{cls} shows itself as an address in memory"


@pytest.mark.parametrize(
    "run,shown",
    [("/usr/bin/report.py", "report.py"), ("", "python"), ("-c", "python"), ("/x/pkg/__main__.py", "pkg"),
     ("/x/a\nb", "python"), ("x" * 100, "x" * 60)],
)  # fmt: skip
def test_a_program_without_a_name_is_known_by_what_was_run(
    run: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [run])
    assert f"{shown}[{os.getpid()}]" == program.program_name()


def test_a_program_without_arguments_has_a_name_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [])
    assert program.program_name().startswith("python[")


Said = tuple[Provider, int | None, str]


@pytest.mark.parametrize(
    "said,words",
    [
        ([(ANNA, 2, "break"), (BERT, 3, "break")], "anna said parties=2, bert said parties=3"),
        ([(ANNA, 2, "break"), (BERT, 2, "wait")], "anna said on_failure=break, bert said on_failure=wait"),
        ([(ANNA, None, "break"), (BERT, 3, "continue")],
         "anna said parties=None and on_failure=break, bert said parties=3 and on_failure=continue"),
    ],
)  # fmt: skip
def test_who_said_what_about_a_barrier_is_told_as_far_as_it_differs(said: list[Said], words: str) -> None:
    assert words == disagreement(said, lambda one: one.name)


def test_of_many_who_say_something_else_some_are_named() -> None:
    many: typing.Sequence[Said] = [(ANNA, 2, "break"), *[(BERT, 3, "break")] * 9]
    assert disagreement(many, lambda one: one.name).endswith(
        "bert said parties=3 and 4 more something else than the first"
    )
