"""``make docs`` is as strict as it says: a page with a link that leads nowhere is an error.

The target itself is run, in a directory with a few small pages, under the validation of our own ``mkdocs.yml``; so an
option that makes mkdocs blind for its own warnings, as ``--quiet`` does, is found here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.source_tree import ROOT

OTHER = "# Other\n\n## There\n\nText.\n"


def strictness() -> str:
    """What our own configuration says about links."""
    whole = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    found = re.findall(r"^strict: .*\n|^validation:\n(?:  .*\n)+", whole, re.M)
    assert 2 == len(found)
    return "".join(found)


def made(directory: Path, page: str) -> subprocess.CompletedProcess[str]:
    """``make docs`` with this page beside another one; nothing is installed for it."""
    (directory / "docs").mkdir()
    (directory / "docs/index.md").write_text(page)
    (directory / "docs/other.md").write_text(OTHER)
    (directory / "mkdocs.yml").write_text(f"site_name: small\nsite_dir: build/site\n{strictness()}")
    command = ["make", "--no-print-directory", f"--file={ROOT / 'Makefile'}", "--old-file=.venv/.installed", "docs"]
    command.append(f"BIN={Path(sys.executable).parent}")
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(
    "link, complaint",
    [
        ("other.md", ""),
        ("other.md#there", ""),
        ("nowhere.md", "'nowhere.md'"),
        ("other.md#nowhere", "'#nowhere'"),
    ],
)
def test_a_link_that_leads_nowhere_fails_and_is_named(tmp_path: Path, link: str, complaint: str) -> None:
    ended = made(tmp_path, f"# Home\n\n[Read on]({link}).\n")
    assert (complaint != "") is (ended.returncode != 0), ended.stderr
    assert complaint in ended.stderr
    if not complaint:
        assert "" == ended.stdout + ended.stderr, "what is well is not told"
