"""All cases there are."""

from __future__ import annotations

from . import Case, planted, unusual

CASES: tuple[Case, ...] = (*planted.CASES, *unusual.CASES)
