"""Fixtures of the tests about Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from groupsvc.testing import LocalDomain


@pytest.fixture(scope="session")
def two_nodes() -> Iterator[LocalDomain]:
    """Two daemons, n1 and n2, that play two nodes of a cluster."""
    with LocalDomain(nodes=2, voters=1, name="spark") as domain:
        yield domain


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here starts real daemons."""
    for item in items:
        if "/tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.interop)
