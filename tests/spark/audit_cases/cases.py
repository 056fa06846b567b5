"""All cases there are."""

from __future__ import annotations

from . import Case, rules

CASES: tuple[Case, ...] = (*rules.CASES,)
