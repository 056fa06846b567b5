"""The page beside others says what the file of results says, and why each aim that is not met is not."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from bench.peers.aims import AIMS
from bench.peers.chart import chart
from bench.peers.page import PAGE, PICTURE, filled, newest
from bench.peers.results import FILE
from tests.tidy.source_tree import ROOT

ROUNDS_MIN = 5
BYTES_MAX = 80_000

RESULTS = newest()
measured = pytest.mark.skipif(RESULTS is None, reason="nothing was measured yet: make bench-peers")


@measured
def test_the_tables_are_those_of_the_results() -> None:
    assert RESULTS is not None
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, RESULTS) == page, "run make bench-peers PEERS_OPTIONS=--page"


@measured
def test_the_chart_is_that_of_the_results_is_small_and_can_be_read_aloud() -> None:
    assert RESULTS is not None
    picture = PICTURE.read_text(encoding="utf-8")
    assert chart(RESULTS) == picture, "run make bench-peers PEERS_OPTIONS=--page"
    assert len(picture.encode()) <= BYTES_MAX
    description = ElementTree.fromstring(picture).find("{http://www.w3.org/2000/svg}desc")
    assert description is not None
    assert len(str(description.text)) > 100


@measured
def test_every_aim_was_measured_in_enough_rounds_and_says_why_if_it_is_not_met() -> None:
    assert RESULTS is not None
    for aim in AIMS:
        found = aim.found(RESULTS)
        assert found is not None, aim
        assert found.count >= ROUNDS_MIN, aim
        if not aim.is_met(found):
            linked = re.findall(r"\((decisions/[^)#]+)", aim.why)
            assert linked, aim
            assert all((ROOT / "docs" / path).exists() for path in linked), aim


def test_the_page_has_no_place_of_the_machine_it_was_measured_on() -> None:
    said = "".join(path.read_text(encoding="utf-8") for path in (PAGE, FILE) if path.exists())
    assert [] == re.findall(r"/(?:tmp|home|root|work)/\S*", said)
