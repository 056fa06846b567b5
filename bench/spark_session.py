"""A Spark session on this machine: for what is measured there, and for the tests.

Spark needs pyspark and Java. Where one of them is missing ``why_not`` says so, and how to get it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.task.killTimeout": "100ms",  # a cancelled task is gone after one second, not after four
    "spark.task.maxFailures": "4",
}

HOW = "`make spark` installs it"


def why_not() -> str | None:
    """What is missing for Spark, and how to get it; None if nothing is."""
    if importlib.util.find_spec("pyspark") is None:
        return f"pyspark is not installed: {HOW}, or pip install '.[spark]'"
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin/java").exists()):
        return f"there is no Java: {HOW} as root, or apt install openjdk-17-jre-headless"
    return None


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """These are in the environment meanwhile; workers use this Python, and find what it finds."""
    places = os.pathsep.join(dict.fromkeys(filter(None, sys.path)))
    variables = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": places, "SPARK_LOCAL_IP": "127.0.0.1", **variables}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def session(master: str, directory: Path, **settings: str) -> Iterator[Any]:
    """A Spark session, stopped at the end."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("groupsvc")
    for name, value in {**QUIET, "spark.sql.warehouse.dir": str(directory / "warehouse"), **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()
        end_jvm()


def end_jvm() -> None:
    """The next session of this process gets a JVM of its own: one that runs has the environment it was started with."""
    from pyspark import SparkContext

    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=30)
