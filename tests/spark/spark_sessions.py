"""What all tests with Spark have in common.

One session of each kind, for all tests of a file: to start one takes as long as ten tests.
"""

from __future__ import annotations

import pytest

from bench.spark_session import QUIET, end_jvm, environment, session, why_not

__all__ = ["QUIET", "end_jvm", "environment", "needs_spark", "session"]

needs_spark = [
    pytest.mark.skipif(why_not() is not None, reason=why_not() or ""),
    pytest.mark.filterwarnings("ignore"),  # pyspark has many, and they are not ours
    pytest.mark.timeout(300),  # the first test of a file waits for a JVM, the session, and the first worker
]
