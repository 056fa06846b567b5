"""A standalone cluster of Spark on this machine: a master and two workers, each of which plays a node of its own.

A worker has an address of its own (127.0.0.2, 127.0.0.3) and the environment of its node: there ``GROUPSVC_ADDRESS`` is
the daemon of that node. What a worker has in its environment its executors have, and their Python processes.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Self

import pyspark

from groupsvc.testing import LocalDomain
from groupsvc.testing.loopback_ports import PortBlock
from groupsvc.testing.undertaker import Undertaker

HOME = Path(pyspark.__file__).parent
READY_S = 150.0
"""Three JVMs start at once, beside everything else that the machine does."""


class Standalone:
    """Master and workers; a context manager."""

    def __init__(self, domain: LocalDomain, directory: Path, cores: int) -> None:
        self._domain, self._directory, self._cores = domain, directory, cores
        self._ports = PortBlock()
        self._undertaker = Undertaker(remove=None)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = f"spark://127.0.0.1:{self._ports.port}"

    def __enter__(self) -> Self:
        try:
            port = str(self._ports.port)
            self._spawn("master", ["master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0"], {})
            self._wait_for("master", "Starting Spark master")
            for number, node in enumerate(self._domain.names, start=1):
                here = f"127.0.0.{number + 1}"
                command = [
                    "worker.Worker", "--host", here, "--cores", str(self._cores), "--memory", "1g", "--webui-port", "0",
                    "--work-dir", str(self._directory / node), self.master,
                ]  # fmt: skip
                self._spawn(node, command, {"SPARK_LOCAL_IP": here, "GROUPSVC_ADDRESS": self._domain.address(node)})
            for node in self._domain.names:
                self._wait_for(node, "Successfully registered with master")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything."""
        for process in self._processes:
            process.kill()
            process.wait()
            self._undertaker.dead(process.pid)
        self._processes.clear()
        self._undertaker.close()
        self._ports.close()

    def _spawn(self, name: str, command: list[str], variables: dict[str, str]) -> None:
        with (self._directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{command[0]}", *command[1:]],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, "SPARK_HOME": str(HOME), **variables},
            )  # fmt: skip
        self._processes.append(process)
        self._undertaker.born(process.pid)

    def _wait_for(self, name: str, words: str) -> None:
        log = self._directory / f"{name}.log"
        self._domain.wait_until(
            lambda: words in log.read_text(errors="replace"), f"{log} says {words!r}", timeout=READY_S
        )
