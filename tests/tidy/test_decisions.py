"""The index of decisions lists every one of them, by its own title."""

from __future__ import annotations

from tests.tidy.source_tree import ROOT

DECISIONS = ROOT / "docs" / "decisions"


def test_every_decision_is_in_the_index_with_its_title() -> None:
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    expected = []
    for path in sorted(DECISIONS.glob("0*.md")):
        number, _, title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").partition(" · ")
        expected.append(f"| [{number}]({path.name}) | {title} |")
    assert expected == [line for line in index.splitlines() if line.startswith("| [0")]
