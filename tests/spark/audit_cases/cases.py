"""All cases there are."""

from __future__ import annotations

from . import Case, measured, planted, unusual

CASES: tuple[Case, ...] = (*measured.CASES, *planted.CASES, *unusual.CASES)
