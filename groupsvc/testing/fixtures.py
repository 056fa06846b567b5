"""Pytest fixtures; use them with ``from groupsvc.testing.fixtures import …`` in a ``conftest.py``.

``local_domain`` is a fresh domain of three for one test. ``shared_domain`` is started once per run and healed
before every test that asks for it: the paused go on, the dead are restarted, and all nodes are up.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .local_domain import LocalDomain


@pytest.fixture
def local_domain() -> Iterator[LocalDomain]:
    """Three daemons for this test alone."""
    with LocalDomain(nodes=3) as domain:
        yield domain


@pytest.fixture(scope="session")
def domain_of_the_run() -> Iterator[LocalDomain]:
    """The domain behind ``shared_domain``; ask for that one instead."""
    with LocalDomain(nodes=3, name="shared") as domain:
        yield domain


@pytest.fixture
def shared_domain(domain_of_the_run: LocalDomain) -> Iterator[LocalDomain]:
    """Three daemons that other tests have used before, all up."""
    domain_of_the_run.heal()
    yield domain_of_the_run
    domain_of_the_run.check_for_crashes()
