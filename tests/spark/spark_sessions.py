"""What all tests with Spark have in common.

One session of each kind, for all tests of a file: to start one takes as long as ten tests.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from bench import spark_session
from bench.spark_session import QUIET, end_jvm, session, why_not

__all__ = ["QUIET", "end_jvm", "environment", "needs_spark", "session"]

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""For a JVM that lives for a minute: to compile its code well would cost more than it saves. What is compiled simply is
held in 48 MB unless one asks for more, and once they are full nothing is compiled any more."""

needs_spark = [
    pytest.mark.skipif(why_not() is not None, reason=why_not() or ""),
    pytest.mark.filterwarnings("ignore"),  # pyspark has many, and they are not ours
    pytest.mark.timeout(300),  # the first test of a file waits for a JVM, the session, and the first worker
]


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """These are in the environment meanwhile, and what every JVM of the tests is told."""
    with spark_session.environment(JAVA_TOOL_OPTIONS=SHORT_LIVED, **variables):
        yield
