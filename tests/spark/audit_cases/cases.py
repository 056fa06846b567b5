"""All cases there are."""

from __future__ import annotations

from . import Case, planted

CASES: tuple[Case, ...] = (*planted.CASES,)
