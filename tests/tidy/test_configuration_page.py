"""The page of options says what the example and the code say, of every option."""

from __future__ import annotations

from groupsvcd.config import OPTIONS
from groupsvcd.config.keys import KEY_TABLES
from groupsvcd.config.page import page
from tests.tidy.source_tree import ROOT

PAGE = ROOT / "docs" / "reference" / "configuration.md"
EXAMPLE = ROOT / "daemon" / "config" / "groupsvcd.example.toml"


def test_the_page_is_as_it_is_made() -> None:
    """MSG-13. If it is not: python -m groupsvcd.config.page daemon/config/groupsvcd.example.toml > the page."""
    assert page(EXAMPLE.read_text(encoding="utf-8")) == PAGE.read_text(encoding="utf-8")


def test_every_option_has_its_place_on_the_page() -> None:
    headings = [line[4:] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("### ")]
    listed = [key for heading in headings for key in heading.split(", ")]
    assert sorted({*OPTIONS, "voters"}) == sorted(listed)
    assert all(f"[{table}]" in PAGE.read_text(encoding="utf-8") for table in KEY_TABLES)
