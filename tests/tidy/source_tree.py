"""The Python files of the project, with the module name each is imported under."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]

# Folder that is on the import path -> what in it is ours.
_PACKAGES = {ROOT: "groupsvc", ROOT / "daemon": "groupsvcd"}
_SCRIPTS = ("tests", "examples", "bench")


@attrs.frozen
class SourceFile:
    """One file: where it is, what it is called, and its text."""

    path: Path
    module: str
    is_package: bool
    text: str

    @property
    def name(self) -> str:
        """The path as people write it."""
        return str(self.path.relative_to(ROOT))


def package_files() -> Iterator[SourceFile]:
    """Every module of the two packages that are shipped."""
    for base, package in _PACKAGES.items():
        yield from _files(base, package)


def script_files() -> Iterator[SourceFile]:
    """Every Python file that is not shipped: tests, examples, bench."""
    for folder in _SCRIPTS:
        yield from _files(ROOT, folder)


def _files(base: Path, folder: str) -> Iterator[SourceFile]:
    for path in sorted((base / folder).rglob("*.py")):
        parts = list(path.relative_to(base).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        if is_package:
            parts.pop()
        yield SourceFile(
            path=path, module=".".join(parts), is_package=is_package, text=path.read_text(encoding="utf-8")
        )
