"""All cases there are."""

from __future__ import annotations

from . import Case, measured, planted, rules, unusual

CASES: tuple[Case, ...] = (*measured.CASES, *planted.CASES, *rules.CASES, *unusual.CASES)
