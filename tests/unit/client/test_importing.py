"""What a program pays for ``import groupsvc``."""

from __future__ import annotations

import os
import subprocess
import sys


def test_importing_the_library_imports_neither_daemon_nor_spark_and_zeromq_only_when_it_connects() -> None:
    code = (
        "import sys, groupsvc; print(*sorted(m for m in sys.modules"
        " if m.split('.')[0] in ('groupsvcd', 'pyspark', 'asyncio', 'tenacity', 'tempfile', 'zmq')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60,
                           env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    assert "" == found.stdout.strip()


def test_what_is_for_spark_imports_it_only_when_it_is_used() -> None:
    code = (
        "import sys, groupsvc.spark; print(*sorted(m for m in sys.modules"
        " if m.split('.')[0] in ('groupsvcd', 'pyspark', 'pytest')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60,
                           env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    assert "" == found.stdout.strip()
