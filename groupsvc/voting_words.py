"""The words of a ballot: what can be voted, what about, and why it ended as it did.

They are those of the wire (``groupsvc.wire.notices``), as enums; each member's value is its word there.
"""

from __future__ import annotations

import enum


class Vote(enum.Enum):
    """APPROVE ends the ballot if all do; CONTINUE asks for one more phase; one REJECT ends it."""

    APPROVE = "approve"
    CONTINUE = "continue"
    REJECT = "reject"


class ProposalKind(enum.Enum):
    """What a ballot is about."""

    JOIN = "join"
    LEAVE = "leave"
    FAILURE = "failure"
    EXPEL = "expel"
    STATE = "state"
    MESSAGE = "message"
    ATTRIBUTES = "attributes"


class Cause(enum.Enum):
    """Why somebody is a provider no longer."""

    LEAVE = "leave"
    FAILURE = "failure"
    NODE_FAILURE = "node_failure"
    EXPELLED = "expelled"
    GOODBYE = "goodbye"
    SOURCE = "source"
    OVERRUN = "overrun"


class Reason(enum.Enum):
    """Why a ballot ended as it did."""

    EXPLICIT_APPROVE = "explicit_approve"
    EXPLICIT_REJECT = "explicit_reject"
    DEFAULT_APPROVE = "default_approve"
    DEFAULT_REJECT = "default_reject"
    TIME_LIMIT = "time_limit"
    ONE_PHASE = "one_phase"


class DefaultCast(enum.Enum):
    """Why the default vote was cast for a provider; NOT: it voted itself; RAISED: its code did, or gave no vote.

    UNRESPONSIVE: its program did not answer its daemon, and it had not voted when the others had.
    """

    NOT = ""
    FAILED = "failed"
    LATE = "late"
    RAISED = "raised"
    UNRESPONSIVE = "unresponsive"
