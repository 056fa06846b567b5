"""The pictures of the documentation are what their script draws, and can be read by everybody."""

from __future__ import annotations

import runpy
from xml.etree import ElementTree

import pytest

from tests.tidy.source_tree import ROOT

FOLDER = ROOT / "docs/pictures"
SVG = "{http://www.w3.org/2000/svg}"
BYTES_MAX = 40_000
"""A page is read over a slow line, too."""

CONTRAST_MIN = 4.5
"""Of text to what it stands on, as the guidelines for accessible pages (WCAG 2.2, AA) ask for."""

drawn = runpy.run_path(str(FOLDER / "draw.py"))
PICTURES = {name: draw() for name, draw in drawn["PICTURES"].items()}


@pytest.mark.parametrize("name", PICTURES)
def test_the_file_is_what_the_script_draws(name: str) -> None:
    assert PICTURES[name] == (FOLDER / name).read_text(encoding="utf-8"), "run python docs/pictures/draw.py"


def test_no_picture_is_without_its_script() -> None:
    assert set(PICTURES) == {path.name for path in FOLDER.glob("*.svg")}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_small_names_itself_and_fetches_nothing(name: str) -> None:
    assert len(PICTURES[name].encode()) <= BYTES_MAX
    picture = ElementTree.fromstring(PICTURES[name])
    assert picture.find(f"{SVG}title") is not None
    description = picture.find(f"{SVG}desc")
    assert description is not None
    assert len(str(description.text)) > 100
    assert {"image", "script", "style", "foreignObject"}.isdisjoint(
        element.tag.removeprefix(SVG) for element in picture.iter()
    )


def test_text_can_be_told_from_every_ground_it_may_stand_on() -> None:
    colours = drawn
    grounds = ("GROUND", "MACHINE", "DAEMON", "PROGRAM", "LIBRARY", "REACTOR", "ENGINE", "DISK")
    assert [] == [ground for ground in grounds if _contrast(colours["INK"], colours[ground]) < CONTRAST_MIN]
    for ink in ("FAINT", "LEADS", "WIRE"):
        assert _contrast(colours[ink], colours["MACHINE"]) >= CONTRAST_MIN, ink
    for fill in ("LEADS", "SERVES", "RECEIVES"):
        assert _contrast("#ffffff", colours[fill]) >= CONTRAST_MIN, fill


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
