"""Small libraries in C that are loaded into a daemon: made where they are needed, by whatever compiler is here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from .wires import Missing

HERE = Path(__file__).parent


def compiler() -> str:
    """The C compiler; raises ``Missing``."""
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        raise Missing("there is no C compiler here (cc)")
    return found


def library(name: str, directory: Path) -> Path:
    """``name.c`` of this directory as a library, made in ``directory``."""
    source, made = HERE / f"{name}.c", directory / f"{name}.so"
    command = [compiler(), "-shared", "-fPIC", "-O1", "-o", str(made), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{source.name} cannot be compiled here: {done.stderr.strip()[-300:]}")
    return made
