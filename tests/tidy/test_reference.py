"""The reference explains every name that applications may import."""

from __future__ import annotations

import re
from pathlib import Path

import groupsvc
from groupsvc import aio, errors, events, spark, testing

PAGES = Path(__file__).parents[2] / "docs/reference"
WHOLE_MODULES = {"groupsvc.errors": errors, "groupsvc.events": events}
NO_PAGE = {"__version__"}


def documented() -> set[str]:
    """Every name that a page asks the reference for."""
    found = {name for page in PAGES.glob("*.md") for name in re.findall(r"^::: ([\w.]+)", page.read_text(), re.M)}
    for module, content in WHOLE_MODULES.items():
        if module in found:
            found |= {f"groupsvc.{name}" for name in vars(content) if getattr(groupsvc, name, None) is not None}
    return found


def test_every_public_name_has_its_place_in_the_reference() -> None:
    public = {f"groupsvc.{name}" for name in groupsvc.__all__ if name not in NO_PAGE}
    public |= {f"groupsvc.aio.{name}" for name in aio.__all__}
    public |= {f"groupsvc.testing.{name}" for name in testing.__all__}
    public |= {f"groupsvc.spark.{name}" for name in spark.__all__}
    assert set() == public - documented()
