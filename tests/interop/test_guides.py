"""Every guide is a program that runs and prints what its page says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from groupsvc.testing import LocalDomain
from tests.interop.guide_pages import MARK, blocks_of, program_of

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = [
    DOCS.parent / "README.md",
    *sorted(page for page in (DOCS / "guides").glob("*.md") if page.stem not in ("spark", "audit")),  # see tests/spark
]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_the_code_of_the_guide_prints_what_the_page_says(
    guide: Path, shared_domain: LocalDomain, tmp_path: Path
) -> None:
    blocks = blocks_of(guide.read_text())
    program = tmp_path / f"{guide.stem}_guide.py"
    program.write_text(program_of(blocks))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["GROUPSVC_ADDRESS"] = shared_domain.address("n1")
    began = time.monotonic()
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    printed = [piece.removeprefix("\n") for piece in ended.stdout.split(MARK)]
    for block, piece in zip(blocks, printed, strict=False):
        assert (block.line, block.prints) == (block.line, piece)
    assert "" == ended.stderr
    assert time.monotonic() - began < 40.0


def test_code_keeps_the_line_numbers_of_its_page() -> None:
    page = "# Title\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nwords\n\n```python\nfail()\n```\n"
    blocks = blocks_of(page)
    assert [(3, "1\n"), (13, "")] == [(block.line, block.prints) for block in blocks]
    assert "fail()" == program_of(blocks).splitlines()[13]


def test_output_that_no_code_prints_is_refused() -> None:
    with pytest.raises(ValueError, match="line 7: this output stands below no code"):
        blocks_of("```python\nprint(1)\n```\n\nwords\n\n```text\n1\n```\n")
