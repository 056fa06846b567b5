"""Spark's own barrier, ``BarrierTaskContext.barrier()``, beside ours in the same tasks: see ``bench.spark_barriers``.

pyspark is half a gigabyte, so it is not installed for this. It is looked for in this Python, and then in the one of
``make spark``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..spark_session import HOW
from .peer import Peer, missing
from .results import ROOT

JOB_WAIT_S = 180.0
END_WAIT_S = 15.0
LOG_CHARS_SHOWN = 1000


def _pythons() -> list[str]:
    return [sys.executable, str(ROOT / ".venv" / "bin" / "python")]


def _with_pyspark() -> str | None:
    for python in _pythons():
        if Path(python).exists():
            found = subprocess.run([python, "-c", "import pyspark"], capture_output=True, check=False)
            if found.returncode == 0:
                return python
    return None


class Spark(Peer):
    """One job, with eight tasks in a barrier stage."""

    name = "spark"
    title = "Spark's own"
    client = "Python, pyspark"
    setting = "local[8]; groupsvc has one daemon beside it"
    rows = frozenset({"spark"})
    without = {"*": "a barrier of tasks is all it has"}
    promises = {"barrier": "counted by the driver, which every task asks once a second"}

    def why_not(self) -> str | None:
        if _with_pyspark() is None:
            return f"pyspark is not installed: {HOW}"
        return missing("java", package="apt install openjdk-17-jre-headless")

    def version(self) -> str:
        command = [_with_pyspark() or "", "-c", "import pyspark; print(pyspark.__version__)"]
        return f"pyspark {subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()}"

    def spark_barriers_ms(self) -> Mapping[str, float]:
        with tempfile.TemporaryDirectory(prefix="groupsvc-spark-") as directory:
            file = Path(directory) / "rows.json"
            log = Path(directory) / "log"
            command = [_with_pyspark() or "", "-m", "bench", "spark", "--quick", "--json", str(file)]
            with log.open("wb") as said:
                job = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, start_new_session=True)
            try:
                job.wait(JOB_WAIT_S)
            finally:
                _end(job)
            if not file.exists():
                raise RuntimeError(f"the Spark job found nothing: {log.read_text(errors='replace')[-LOG_CHARS_SHOWN:]}")
            ours, times_ours, _ = json.loads(file.read_text())
        return {"ours": ours["median"], self.name: ours["median"] * times_ours["median"]}


def _end(job: subprocess.Popen[bytes]) -> None:
    """Interrupted, it ends its daemon and Java; if it does not, they are killed with it."""
    if job.poll() is None:
        job.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(END_WAIT_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()
