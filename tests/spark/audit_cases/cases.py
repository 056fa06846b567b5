"""All cases there are."""

from __future__ import annotations

from . import Case

CASES: tuple[Case, ...] = ()
