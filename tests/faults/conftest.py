"""Everything here strikes real daemons, wants root, and skips by the name of what a machine lacks."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here is about faults."""
    for item in items:
        if "/tests/faults/" in item.path.as_posix():
            item.add_marker(pytest.mark.faults)
