"""What every test of the house shares: options, Hypothesis profiles, nothing else.

``--rewrite`` lets the golden tests write the transcripts they would compare with; the difference is then
reviewed like code. ``--hypothesis-profile=long`` is for a night, the default is for a commit: the same examples
on every run, so that a red build is red again on the next machine.
"""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

# Whoever runs the tests in the background of a shell has it ignore Ctrl-C, and so would we and every process we start.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "commit",
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("commit")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    parser.addoption(
        "--rewrite",
        action="store_true",
        default=False,
        help="write golden transcripts instead of comparing with them",
    )


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden transcripts are to be written anew."""
    return bool(request.config.getoption("--rewrite"))
