"""Tables of one audit: each has a name by which SQL finds it, and those that are read often are kept as Parquet.

``make`` writes a table under the audit's own directory, so that it is computed once, and so that Spark knows how large
it is and sends small ones to all workers instead of shuffling the large one that they are joined with. Names are put in
front of those of this audit, so several can share a session.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from .place import Place


class WorkTables:
    """By name."""

    def __init__(self, spark: Any, place: Place) -> None:
        self.spark = spark
        self._place = place
        self._prefix = f"audit_{uuid.uuid4().hex[:12]}_"
        self._names: dict[str, str] = {}

    def sql(self, text: str) -> Any:
        """The rows of a query, in which tables stand in braces."""
        return self.spark.sql(text.format_map(self._names))

    def name(self, name: str, text: str) -> None:
        """From now on ``{name}`` is this query, computed whenever it is asked."""
        self.name_frame(name, self.sql(text))

    def name_frame(self, name: str, frame: Any) -> None:
        """From now on ``{name}`` is this."""
        frame.createOrReplaceTempView(self._prefix + name)
        self._names[name] = self._prefix + name

    def make(self, name: str, text: str) -> None:
        """From now on ``{name}`` is what this query gives now."""
        place = self._place.under(name)
        frame = self.sql(text)
        frame.write.mode("overwrite").option("compression", "snappy").parquet(place)
        self.name_frame(name, self.spark.read.schema(frame.schema).parquet(place))

    def name_rows(self, name: str, rows: Sequence[Any], schema: Any) -> None:
        """From now on ``{name}`` is these rows, which are few: every worker gets all of them."""
        from pyspark.sql import functions

        self.name_frame(name, functions.broadcast(self.spark.createDataFrame(rows, schema)))

    def close(self) -> None:
        """Forget the names."""
        for name in self._names.values():
            self.spark.catalog.dropTempView(name)
        self._names.clear()
