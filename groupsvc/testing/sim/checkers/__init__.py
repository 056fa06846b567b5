"""Checkers: what must hold of every run, read from its history and nothing else.

``check(history, voters=..., converged=...)`` gives the broken promises of a run, in the order of the invariants, those
of groups after those of the domain.
Each checker is one pass over the lines of one era (see ``eras``), so a history of 100 000 lines is judged in about
a second; the exact rule of each stands in its docstring, with the legal executions that look alike.

``converged`` says that the harness healed everything, stopped the clients, waited for their calls and until no
entry was on its way, and expects a domain in order. V7, B2 and B3 speak only then.

The streams of groups are judged one by one, by rules of their own under the same names (``GROUPS``), and so are the
calls of the programs that use them. What applications called and were told is judged from their own lines
(``APPLICATIONS``).

``compare`` (X3) judges two runs of one seed and is therefore not in ``ALL``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from groupsvc.wire.history import HistoryEvent

from . import group_calls, group_leaders, group_logs, group_syncs, group_views
from .applications import APPLICATIONS, Audience
from .barriers import REPLY_SLACK_S
from .calls import k1
from .determinism import compare
from .disks import s2, s3, s4
from .enrolments import c2
from .eras import LEASE_DEFAULT, Era, eras
from .group_streams import GroupStream, split
from .leaders import l1, l2, l3, l4, l5
from .leases import l7
from .options import c1
from .outdated import set_apart
from .storage import s1
from .streams import b1, b2, b3, b4, b6
from .verdict import Violation
from .views import v1, v2, v3, v4, v7

__all__ = [
    "ALL",
    "APPLICATIONS",
    "GROUPS",
    "LEASE_DEFAULT",
    "VIOLATIONS_MAX",
    "WHOLE",
    "Checker",
    "Era",
    "GroupChecker",
    "GroupStream",
    "Violation",
    "check",
    "compare",
    "eras",
]

Checker = Callable[[Era], Iterable[Violation]]
GroupChecker = Callable[[GroupStream], Iterable[Violation]]

ALL: dict[str, Checker] = {
    "V1": v1, "V2": v2, "V3": v3, "V4": v4, "V7": v7,
    "B1": b1, "B2": b2, "B3": b3, "B4": b4, "B6": b6,
    "L1": l1, "L2": l2, "L3": l3, "L4": l4, "L5": l5, "L7": l7,
    "S1": s1,
    "K1": k1,
    "C1": c1, "C2": c2,
}  # fmt: skip

GROUPS: dict[str, GroupChecker] = {
    "V1": group_views.v1, "V2": group_views.v2, "V3": group_views.v3, "V4": group_views.v4, "V5": group_views.v5,
    "V6": group_views.v6, "V7": group_views.v7,
    "B1": group_logs.b1, "B2": group_logs.b2, "B3": group_logs.b3, "B4": group_logs.b4, "B5": group_logs.b5,
    "B6": group_logs.b6,
    "L1": group_leaders.l1, "L2": group_leaders.l2, "L3": group_leaders.l3, "L4": group_leaders.l4,
    "L5": group_leaders.l5, "L6": group_views.l6,
    "S1": group_leaders.s1, "S2": s2,
    "K2": group_syncs.k2,
}  # fmt: skip

WHOLE: dict[str, Callable[[Sequence[HistoryEvent]], Iterable[Violation]]] = {"S3": s3, "S4": s4}
"""Those that read everything at once, of the domain and of groups."""

VIOLATIONS_MAX = 20
"""Per invariant, and per era or group; one bug often breaks a promise at every line after it."""


def check(
    history: Sequence[HistoryEvent], *, voters: tuple[str, ...], converged: bool, lease: float = LEASE_DEFAULT,
    history_entries_max: int = 0, reply_slack_s: float = REPLY_SLACK_S,
) -> list[Violation]:  # fmt: skip
    """Every broken promise of a run; ``lease`` and ``history_entries_max`` are those of the domain's configuration.

    Calls of real processes may be answered so many seconds late (``reply_slack_s``), those of simulated ones are not.
    """
    pieces = split(set_apart(history))
    periods = eras(pieces.domain, voters, converged, lease)
    found = [
        violation for checker in ALL.values() for era in periods for violation in islice(checker(era), VIOLATIONS_MAX)
    ]
    end = history[-1].i if history else 0
    streams = pieces.streams(
        converged_from=periods[-1].start if converged else None, end=end, lease=lease,
        history_entries_max=history_entries_max,
    )  # fmt: skip
    for group_checker in GROUPS.values():
        for stream in streams:
            for violation in islice(group_checker(stream), VIOLATIONS_MAX):
                text = f"group {stream.id}: {violation.text}"
                found.append(Violation(violation.invariant, text, violation.at))
    for whole in WHOLE.values():
        found += islice(whole(history), VIOLATIONS_MAX)
    found += islice(group_calls.k1(pieces.calls), VIOLATIONS_MAX)
    if converged:
        waiting = frozenset(str(line.args["name"]) for line in history if line.op == "disks_lost")
        found += islice(group_calls.b2(pieces.calls, pieces.domain, waiting), VIOLATIONS_MAX)
    if pieces.applications:
        audience = Audience.of(pieces, streams, converged=converged, reply_slack_s=reply_slack_s)
        for application_checker in APPLICATIONS.values():
            found += islice(application_checker(audience), VIOLATIONS_MAX)
    return found
