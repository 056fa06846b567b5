"""What is written down once more elsewhere: the version, the attributes of groups, and which measures there are."""

from __future__ import annotations

import re
import tomllib

import attrs

import groupsvc
from bench.__main__ import MEASURES
from groupsvc.attributes import GroupAttributes
from groupsvcd.core.domain.attributes import ATTRIBUTES
from groupsvcd.core.groups.rules import CHANGEABLE
from tests.tidy.source_tree import ROOT
from tests.tidy.test_protocol_document import rows_under

FIELDS = {name for name, field in attrs.fields_dict(GroupAttributes).items() if field.init}


def _named_in(cells: list[str]) -> set[str]:
    return {name for cell in cells for name in re.findall(r"[a-z_]+", cell)}


def test_the_version_is_the_same_everywhere_and_is_the_one_that_the_changelog_works_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == groupsvc.__version__
    newest = re.search(r"^## (\S+)( \(not released yet\))?$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    version, is_open = newest.groups()
    assert version + (".dev0" if is_open else "") == groupsvc.__version__


def test_the_protocol_lists_every_attribute_and_says_which_the_library_does_not_have() -> None:
    text = (ROOT / "docs/PROTOCOL.md").read_text()
    assert set(ATTRIBUTES) == _named_in([row[0] for row in rows_under(["attribute", "value", "default"], text)])
    assert {"machine", "processes", "sync_window"} == set(ATTRIBUTES) - FIELDS
    assert set() == FIELDS - set(ATTRIBUTES)
    assert "has all but three. `machine` and `processes` a daemon sets by itself" in text


def test_the_reference_explains_attributes_that_there_are_and_every_word_for_a_lost_quorum() -> None:
    text = (ROOT / "docs/reference/groups.md").read_text()
    rows = rows_under(["attribute", "what it decides"], text)
    assert set() == _named_in([row[0] for row in rows]) - FIELDS
    (lost,) = (row[1] for row in rows if row[0] == "on_quorum_lost")
    assert ["continue", "dissolve", "wait"] == re.findall(r'`"(\w+)"`', lost)
    changed = {name for name in CHANGEABLE if not name.endswith("_phases")}
    said = re.search(r"Changed can be (.*?) and those", text)
    assert said is not None
    assert changed == set(re.findall(r"`(\w+)`", said[1]))


def test_every_measure_of_the_bench_has_its_place_among_what_was_measured_and_nothing_else_has() -> None:
    rows = rows_under(
        ["measure", "what", "bound", "median measured", "holds", "from"], (ROOT / "docs/measured.md").read_text()
    )
    assert set(MEASURES) == {row[0] for row in rows}
