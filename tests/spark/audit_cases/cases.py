"""All cases there are."""

from __future__ import annotations

from . import Case, measured

CASES: tuple[Case, ...] = (*measured.CASES,)
