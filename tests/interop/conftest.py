"""Fixtures of the tests with real daemons."""

from __future__ import annotations

import pytest

from groupsvc.testing.fixtures import domain_of_the_run, local_domain, shared_domain

__all__ = ["domain_of_the_run", "local_domain", "shared_domain"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here starts real daemons."""
    for item in items:
        if "/tests/interop/" in item.path.as_posix():
            item.add_marker(pytest.mark.interop)
