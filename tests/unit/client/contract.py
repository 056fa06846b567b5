"""The contract with applications: every name they rely on, with arguments and defaults. More may come; these stay.

It is written as the code of an API that does nothing, because that is how people read signatures. A property is written
as one. Both drivers are compared with it; what only one of them has is in ``NOT_IN_AIO``, with the reason.
"""

from __future__ import annotations

# ruff: noqa: D101
from typing import Any

CONNECT_S, DEFAULT_TIMEOUT_S = 10.0, 30.0


def connect(
    address: Any = None,
    *,
    name: Any = None,
    keys: Any = None,
    timeout: Any = CONNECT_S,
    default_timeout: Any = DEFAULT_TIMEOUT_S,
) -> None: ...


class Session:
    @property
    def state(self) -> None: ...
    @property
    def node(self) -> None: ...
    @property
    def id(self) -> None: ...
    def on_state(self, callback: Any) -> None: ...
    def join(
        self,
        group: Any,
        *,
        name: Any = None,
        attributes: Any = None,
        create: Any = None,
        data: Any = b"",
        on_proposal: Any = None,
        events: Any = False,
        machine: Any = None,
        since: Any = None,
        timeout: Any = None,
    ) -> None: ...
    def subscribe(self, group: Any, *, wait: Any = 0.0, timeout: Any = None) -> None: ...
    def multicast(self, group: Any, payload: Any) -> None: ...
    def groups(self) -> None: ...
    def status(self) -> None: ...
    def events(self) -> None: ...
    def lock(self, name: Any, *, reentrant: Any = False) -> None: ...
    def rwlock(self, name: Any) -> None: ...
    def semaphore(self, name: Any, permits: Any) -> None: ...
    def election(self, name: Any) -> None: ...
    def counter(self, name: Any) -> None: ...
    def latch(self, name: Any, count: Any) -> None: ...
    def party(self, name: Any, *, data: Any = b"") -> None: ...
    def fileno(self) -> None: ...
    def dispatch(self, timeout: Any = 0) -> None: ...
    def close(self) -> None: ...


class Known:
    @property
    def name(self) -> None: ...
    @property
    def attributes(self) -> None: ...
    @property
    def view(self) -> None: ...
    @property
    def providers(self) -> None: ...
    @property
    def state(self) -> None: ...
    @property
    def state_version(self) -> None: ...
    @property
    def fence(self) -> None: ...
    def events(self, timeout: Any = None) -> None: ...
    def next_event(self, timeout: Any = None) -> None: ...


class Subscription(Known):
    def close(self) -> None: ...


class Barrier:
    @property
    def name(self) -> None: ...
    @property
    def parties(self) -> None: ...
    def wait(self, payload: Any = b"", *, timeout: Any = None) -> None: ...
    def all_gather(self, payload: Any, *, timeout: Any = None) -> None: ...
    def broadcast(self, payload: Any = b"", *, root: Any = None, timeout: Any = None) -> None: ...
    def reduce(self, payload: Any, function: Any, *, timeout: Any = None) -> None: ...
    def vote(self, approve: Any, *, timeout: Any = None) -> None: ...
    def reset(self, *, timeout: Any = None) -> None: ...


class Lock:
    @property
    def fence(self) -> None: ...
    @property
    def valid_for(self) -> None: ...
    @property
    def lost(self) -> None: ...
    @property
    def suspended(self) -> None: ...
    @property
    def is_held(self) -> None: ...
    def check(self) -> None: ...
    def acquire(self, timeout: Any = None) -> None: ...
    def try_acquire(self, timeout: Any = None) -> None: ...
    def release(self) -> None: ...


class Semaphore(Lock):
    @property
    def permits(self) -> None: ...


class ReadWriteLock:
    def read(self) -> None: ...
    def write(self) -> None: ...


class Election:
    def run(self, function: Any, *, timeout: Any = None) -> None: ...
    def leader(self, *, timeout: Any = None) -> None: ...
    def candidates(self, *, timeout: Any = None) -> None: ...


class Counter:
    def next(self, *, timeout: Any = None) -> None: ...
    def take(self, count: Any, *, timeout: Any = None) -> None: ...
    def close(self) -> None: ...


class Latch:
    @property
    def count(self) -> None: ...
    def count_down(self, *, timeout: Any = None) -> None: ...
    def left(self, *, timeout: Any = None) -> None: ...
    def wait(self, timeout: Any = None) -> None: ...
    def close(self) -> None: ...


class Party:
    def enter(self, *, timeout: Any = None) -> None: ...
    def members(self, *, timeout: Any = None) -> None: ...
    def fence(self, *, timeout: Any = None) -> None: ...
    def wait_for(self, count: Any, timeout: Any = None) -> None: ...
    def close(self) -> None: ...


class Group(Known):
    @property
    def me(self) -> None: ...
    @property
    def oldest(self) -> None: ...
    @property
    def is_oldest(self) -> None: ...
    def propose_state(
        self,
        value: Any,
        *,
        if_version: Any = None,
        phases: Any = None,
        time_limit: Any = None,
        on_busy: Any = "queue",
        timeout: Any = None,
    ) -> None: ...
    def send(
        self, payload: Any, *, phases: Any = None, time_limit: Any = None, on_busy: Any = "queue", timeout: Any = None
    ) -> None: ...
    def multicast(self, payload: Any) -> None: ...
    def multicast_nowait(self, payload: Any) -> None: ...
    def flush(self, timeout: Any = None) -> None: ...
    def expel(
        self,
        *providers: Any,
        reason: Any = "",
        phases: Any = None,
        time_limit: Any = None,
        on_busy: Any = "queue",
        timeout: Any = None,
    ) -> None: ...
    def change_attributes(
        self, *, phases: Any = None, on_busy: Any = "queue", timeout: Any = None, **changes: Any
    ) -> None: ...
    def outcome(self, proposal_id: Any) -> None: ...
    def sync(self, timeout: Any = None) -> None: ...
    def barrier(self, name: Any = "", *, parties: Any = None, on_failure: Any = "break") -> None: ...
    def held(self, fence: Any) -> None: ...
    def leave(self, *, code: Any = 0, timeout: Any = None) -> None: ...
    def goodbye(self) -> None: ...


class Held:
    @property
    def valid_for(self) -> None: ...
    def check(self) -> None: ...


class Proposal:
    def vote(self, vote: Any) -> None: ...


class Outcome:
    def require(self) -> None: ...


class StateMachine:
    def apply(self, entry: Any) -> None: ...
    def snapshot(self) -> None: ...
    def restore(self, blocks: Any) -> None: ...


NOT_IN_AIO = {
    ("Session", "fileno"): "a program with a loop of its own has the loop of asyncio here",
    ("Session", "dispatch"): "as fileno",
}

ONLY_IN_AIO = {
    ("Session", name): {"on_lost": "a task can be cancelled, a thread cannot"}
    for name in ("lock", "rwlock", "semaphore", "election")
}
"""Arguments."""

# --- Values: the names of their fields, in order where they are given by position ------------------------------

FIELDS = {
    "Provider": "id node name data joined_seq",
    "View": "seq fence providers state state_version default_vote",
    "Answer": "vote state message default_vote",
    "VoteMessage": "provider phase payload",
    "Proposal": """id group kind phase proposer joining leaving cause code reason state if_version payload attributes
        messages electorate time_limit deadline""",
    "Outcome": "proposal approved phases reason tally messages state view",
    "Joined": "providers",
    "Failing": "provider cause",
    "Left": "providers cause code reason",
    "StateChanged": "value version",
    "Message": "sender payload",
    "Proposed": "proposal",
    "PhaseEnded": "",
    "Approved": "outcome",
    "Rejected": "outcome",
    "AttributesChanged": "",
    "Unresponsive": "provider",
    "Responsive": "provider",
    "Suspended": "",
    "Resumed": "",
    "Lost": "reason",
    "Dissolved": "reason",
    "Overrun": "missed",
}

NOT_OF_THE_STREAM = {"Suspended", "Resumed", "Lost", "Dissolved", "Overrun"}
"""All other events have ``seq`` and ``view``."""

EVENTS = list(FIELDS)[list(FIELDS).index("Joined") :]

ATTRIBUTES = {
    "client_version": "",
    "batch": "NONE",
    "batch_window": 0.05,
    "join_phases": "ONE",
    "leave_phases": "ONE",
    "failure_phases": "ONE",
    "state_phases": "ONE",
    "message_phases": "ONE",
    "default_vote": "APPROVE",
    "time_limit": 30.0,
    "replicas": 3,
    "data_k": None,
    "commit_k": None,
    "checkpoint_k": None,
    "checkpoint_every": None,
    "logical_lifetime": None,
    "inline_bytes_max": None,
    "delivery": "safe",
    "durable": False,
    "on_quorum_lost": None,
    "exclusive": False,
    "source_group": None,
    "history_entries_max": None,
    "history_bytes_max": None,
}
"""What a program that says nothing wants; None leaves it to the service."""

WORDS = {
    "SessionState": "CONNECTED SUSPENDED LOST CLOSED",
    "Vote": "APPROVE CONTINUE REJECT",
    "Phases": "ONE N",
    "Batch": "NONE JOINS LEAVES BOTH",
    "ProposalKind": "JOIN LEAVE FAILURE EXPEL STATE MESSAGE ATTRIBUTES",
    "Cause": "LEAVE FAILURE NODE_FAILURE EXPELLED GOODBYE SOURCE OVERRUN",
    "Reason": "EXPLICIT_APPROVE EXPLICIT_REJECT DEFAULT_APPROVE DEFAULT_REJECT TIME_LIMIT ONE_PHASE",
    "Since": "NOW CHECKPOINT",
}

ERRORS = {
    "UsageError": "GroupServiceError",
    "PeerProtocolError": "GroupServiceError",
    "Failed": "GroupServiceError",
    "OutcomeUnknown": "GroupServiceError",
    "JoinRejected": "Failed",
    "Rejected": "Failed",
    "Busy": "Failed",
    "Draining": "Failed",
    "StaleVersion": "Failed",
    "NoSuchGroup": "Failed",
    "GroupExists": "Failed",
    "AttributesMismatch": "Failed",
    "NotAMember": "Failed",
    "PermissionDenied": "Failed",
    "WouldBlock": "Failed",
    "BarrierBroken": "Failed",
    "LockLost": "Failed",
    "DaemonUnreachable": "Failed",
    "TimedOut": "Failed",
}

OTHER_NAMES = ("MANUAL", "NOW", "CHECKPOINT", "GroupInfo", "DomainStatus", "MessageId", "limits", "GroupAttributes")

LIMITS = ("outstanding_max", "events_max")
"""In ``groupsvc.limits``."""
