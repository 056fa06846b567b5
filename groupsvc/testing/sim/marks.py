"""Marks: places that a sample of seeds must have been to, or it proves little.

An engine says ``Journal(op="mark", args={"name": …})`` where something rare happens; every other journal line is a
mark by its op, every nemesis that began is ``fault NAME``. The runner sums them over all seeds.
"""

from __future__ import annotations

from collections.abc import Mapping

from .applications import STUCK, TROUBLES
from .nemeses import BY_NAME

FAULT_MARKS: tuple[str, ...] = tuple(f"fault {name}" for name in BY_NAME)

ENGINE_MARKS: tuple[str, ...] = (
    "answered-again", "better-canvasses-at-once", "blank-voter-joins", "canvass",
    "checkpoint-fetched", "checkpoint-fetched-in-epoch", "checkpoint-taken", "claim-timed-out", "delivered",
    "domain-formed", "down-early", "down_learned", "enrolment-overtaken", "foreign-domain", "gap-repaired", "isolated",
    "leader-falls-silent", "leader-fetches-log", "leader-port-refused", "leader-silent", "leader-unanswered",
    "list_installed", "node_down", "node_gone", "node_up", "office", "old-incarnation",
    "options-acquired", "ordered", "promise",
    "recovered", "rejoined", "repair-answered", "restored", "stable",
    "view_installed", "voter-replaced", "yielded", "yields-to-pinned",
)  # fmt: skip
"""What the engines must have done at least once; grows with the protocol."""

GROUP_MARKS: tuple[str, ...] = (
    "fast-left-out", "fast-not-carried", "group-synced", "sync-converted", "group-backlog",
    "group-closed", "group-complaint", "group-continued", "group-dropped", "group-forced", "group-formed",
    "group-ghost", "group-given-up", "group-handover", "group-insert", "group-lagged", "group-leader-refused",
    "group-not-leader", "group-orphan", "group-prescreened", "group-promoted", "group-recovered", "group-relayed",
    "group-resubmit", "group-resynchronised", "group-sync-relayed", "given_up", "group-returns", "group-server-retires",
    "group-stays", "group-view-shrunk", "group_dropped", "group_lost", "joined", "large-ordered", "members",
    "payload-asked", "receiver-fetched-checkpoint", "receiver-follows-new-epoch", "view_active",
)  # fmt: skip
"""The same for groups."""

APPLICATION_MARKS: tuple[str, ...] = (
    *(f"fault {name}" for name in (*TROUBLES, STUCK)),
    "app-ballot-across-views", "app-batch-of-joins", "app-closed", "app-connected", "app-default-failed",
    "app-default-late", "app-default-raised", "app-default-unresponsive", "app-exclusive-gone",
    "app-join-withdrawn-after-approval",
    "app-late-vote", "app-left-expelled",
    "app-left-failure", "app-left-goodbye", "app-left-leave", "app-left-node_failure", "app-left-overrun", "app-lost",
    "app-missed", "app-not-kept", "app-not-resumed", "app-stray-vote", "app-suspended",
    "app-table-goes-on", "app-table-restored", "app-told-earlier", "app-unresponsive", "session-left-behind",
    "session-resumed", "session-resumed-before",
)  # fmt: skip
"""What must have befallen applications, and where their sessions must have been."""

BARRIER_MARKS: tuple[str, ...] = (
    "barrier-across-leaders", "barrier-broken-cancelled", "barrier-broken-failure", "barrier-broken-left",
    "barrier-broken-mismatch", "barrier-broken-timeout", "barrier-cancelled", "barrier-continued-without-dead",
    "barrier-kept", "barrier-not-kept", "barrier-passed-over", "barrier-released", "barrier-reset",
    "barrier-ruling-void", "barrier-waited-for-a-replacement", "barrier-without-who-was-replaced",
    "task-comes-back", "task-counted-before-it-died", "task-fenced", "task-gives-way", "task-replaced", "task-twice",
)  # fmt: skip
"""How rounds of barriers must have ended, and in whose way that was; and what must have befallen tasks there."""

RARE_MARKS: tuple[str, ...] = (
    "checkpoint-does-not-add-up", "checkpoint-fetch-given-up", "checkpoint-from-many", "chosen-log-lost",
    "gap-asked-on",
    "group-begin-refused", "group-cannot-serve", "group-damaged", "group-goes-back", "group-machine-late",
    "group-no-disk",
    "group-server-unable", "group-superseded", "group-tail-lost", "group-too-old",
    "payload-kept-no-longer", "receiver-follows-a-server", "receiver-had-it",
    "recovery-stuck",
)  # fmt: skip
"""Places that a sample of some hundred seeds need not come by; long runs and tests of their own do.

No seed comes by ``checkpoint-does-not-add-up``: the blocks that a server sends are not those whose checksum it told, so
its memory is damaged, and no nemesis does that; frames that are garbled on their way are refused. A test spoils
a memory (``tests/unit/core/nodegroups/test_catching_up.py``).
"""

REQUIRED: tuple[str, ...] = FAULT_MARKS + ENGINE_MARKS + GROUP_MARKS + APPLICATION_MARKS + BARRIER_MARKS


def missing(marks: Mapping[str, int], required: tuple[str, ...] = REQUIRED) -> list[str]:
    """The required marks that were not hit."""
    return [name for name in required if not marks.get(name)]
