"""A directory that an audit writes to: on this machine, or wherever Hadoop writes to.

On a cluster the workers write the tables, each where it runs, so a directory of the driver's machine would get nothing,
and an audit that reads its own tables back would find them empty, and everything sound. There a place has to be named
by its address: ``hdfs://…``, or ``file://…`` for a directory that all machines share.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import UsageError


class Place:
    """One directory."""

    def __init__(self, spark: Any, name: str, option: str) -> None:
        self._spark, self._is_address = spark, "://" in name
        self.name = name.rstrip("/") if self._is_address else str(Path(name).absolute())
        if not self._is_address and not spark.sparkContext.master.startswith("local"):
            raise UsageError(
                f"{option}: {name} is a directory of this machine, and the workers of {spark.sparkContext.master} write"
                " there, too: name a place that all of them reach, as hdfs://HOST/DIR, or file:///DIR if they share it"
            )

    def under(self, name: str) -> str:
        """The address of what has this name in it."""
        return f"{self.name}/{name}" if self._is_address else f"{Path(self.name).as_uri()}/{name}"

    def put(self, name: str, text: str) -> None:
        """Write a file of text."""
        if not self._is_address:
            Path(self.name).mkdir(parents=True, exist_ok=True)
            (Path(self.name) / name).write_text(text, encoding="utf-8")
            return
        path = self._spark._jvm.org.apache.hadoop.fs.Path(self.under(name))
        stream = path.getFileSystem(self._spark._jsc.hadoopConfiguration()).create(path, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
