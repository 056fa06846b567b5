"""What a program pays for ``import groupsvc``."""

from __future__ import annotations

import os
import subprocess
import sys


def imported_with(module: str, packages: tuple[str, ...]) -> str:
    """Which modules of these packages a fresh interpreter has after it has imported this one."""
    code = f"import sys, {module}; print(*sorted(m for m in sys.modules if m.split('.')[0] in {packages!r}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60,
                           env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    return found.stdout.strip()


def test_importing_the_library_imports_neither_daemon_nor_spark_and_zeromq_only_when_it_connects() -> None:
    unwanted = ("groupsvcd", "pyspark", "asyncio", "tenacity", "tempfile", "zmq")
    assert "" == imported_with("groupsvc", unwanted)


def test_what_is_for_spark_imports_it_only_when_it_is_used() -> None:
    assert "" == imported_with("groupsvc.spark", ("groupsvcd", "pyspark", "pytest"))
