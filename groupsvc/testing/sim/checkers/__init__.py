"""Checkers: what must hold of every run, read from its history and nothing else.

``check(history, voters=..., converged=...)`` gives the broken promises of a run, in the order of the invariants.
Each checker is one pass over the lines of one era (see ``eras``), so a history of 100 000 lines is judged in about
a second; the exact rule of each stands in its docstring, with the legal executions that look alike.

``converged`` says that the harness healed everything, stopped the clients, waited for their calls and until no
entry was on its way, and expects a domain in order. V7, B2 and B3 speak only then.

``compare`` (X3) judges two runs of one seed and is therefore not in ``ALL``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from groupsvc.wire.history import HistoryEvent

from .calls import k1
from .determinism import compare
from .eras import LEASE_DEFAULT, Era, eras
from .leaders import l1, l2, l3, l4, l5
from .leases import l7
from .outdated import set_apart
from .storage import s1
from .streams import b1, b2, b3, b4, b6
from .verdict import Violation
from .views import v1, v2, v3, v4, v7

__all__ = ["ALL", "LEASE_DEFAULT", "VIOLATIONS_MAX", "Checker", "Era", "Violation", "check", "compare", "eras"]

Checker = Callable[[Era], Iterable[Violation]]

ALL: dict[str, Checker] = {
    "V1": v1, "V2": v2, "V3": v3, "V4": v4, "V7": v7,
    "B1": b1, "B2": b2, "B3": b3, "B4": b4, "B6": b6,
    "L1": l1, "L2": l2, "L3": l3, "L4": l4, "L5": l5, "L7": l7,
    "S1": s1,
    "K1": k1,
}  # fmt: skip

VIOLATIONS_MAX = 20
"""Per invariant and era; one bug often breaks a promise at every line after it."""


def check(
    history: Sequence[HistoryEvent], *, voters: tuple[str, ...], converged: bool, lease: float = LEASE_DEFAULT
) -> list[Violation]:
    """Every broken promise of a run; ``lease`` is the domain's ``timers.lease``."""
    pieces = eras(set_apart(history), voters, converged, lease)
    return [
        violation for checker in ALL.values() for era in pieces for violation in islice(checker(era), VIOLATIONS_MAX)
    ]
