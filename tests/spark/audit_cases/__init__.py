"""Small domains for the audit, each with what it must find there, and nothing else.

A case is a directory of journals: sound ones that are unusual (a domain that was formed anew, a collector that has
missed an hour), which must be called sound, and ones with one contradiction, which one check must find. One audit reads
them all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs


@attrs.frozen(kw_only=True)
class Case:
    """One domain."""

    name: str  # of its directory
    write: Callable[[Path], None]
    finds: tuple[str, ...] = ()
    """Rules, or rules with the promise of the one check that finds it, as in "G4: a daemon takes one vote"."""
