"""docs/reference/metrics.md lists the metrics that there are, with their types, labels and meanings."""

from __future__ import annotations

from groupsvcd.observe.metrics import METRICS
from tests.tidy.source_tree import ROOT
from tests.tidy.test_protocol_document import rows_under

PAGE = ROOT / "docs" / "reference" / "metrics.md"


def test_the_page_and_the_code_agree_on_every_metric() -> None:
    """OPS-05."""
    said = rows_under(["metric", "type", "labels", "meaning"], PAGE.read_text(encoding="utf-8"))
    real = [[one.name, one.kind, "`, `".join(one.labels), one.help] for one in METRICS.values()]
    assert real == said


def test_every_label_has_its_values_on_the_page_or_is_a_name() -> None:
    named = {"group", "peer", "version", "python", "libzmq"}
    said = {
        row[0].split("`")[0].split()[0] for row in rows_under(["label", "values"], PAGE.read_text(encoding="utf-8"))
    }
    assert {label for metric in METRICS.values() for label in metric.labels} - named == said
