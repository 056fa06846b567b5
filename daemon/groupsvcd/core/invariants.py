"""Checks that stay on in production.

A broken invariant means that this daemon no longer understands its own state; going on could tell a lie.
So it stops, with the reason; the operator's supervisor starts it again from what is on disk.
"""

from __future__ import annotations


class InvariantBroken(AssertionError):
    """A condition that every run must meet was not met: a bug in groupsvc, never the user's fault."""


def invariant(condition: bool, reason: str) -> None:
    """Raise ``InvariantBroken(reason)`` unless ``condition`` holds."""
    if not condition:
        raise InvariantBroken(reason)
