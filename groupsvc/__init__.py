"""Coordination for programs that must stay up: what applications import.

Every node runs one daemon, ``groupsvcd``; an application talks to the one on its own node:

    import groupsvc

    with groupsvc.connect() as session:
        with session.join("db") as group:
            for event in group.events():
                ...

This package is the application's half and never imports the daemon's. ``groupsvc.aio`` has the same names for asyncio,
``groupsvc.testing`` domains for tests and the simulator, ``groupsvc.cli`` the command ``groupsvc``.
"""

from __future__ import annotations

import logging

from . import limits
from .attributes import Batch, GroupAttributes, Phases
from .barriers import Barrier, Missing, Released
from .errors import (
    AttributesMismatch,
    BarrierBroken,
    Busy,
    DaemonUnreachable,
    Draining,
    Failed,
    GroupExists,
    GroupServiceError,
    JoinRejected,
    LockLost,
    Lost,
    NoSuchGroup,
    NotAMember,
    OutcomeUnknown,
    PeerProtocolError,
    PermissionDenied,
    Rejected,
    StaleVersion,
    Suspended,
    TimedOut,
    UsageError,
    WouldBlock,
)
from .events import (
    Approved,
    AttributesChanged,
    Dissolved,
    Event,
    Failing,
    Joined,
    Left,
    Message,
    Overrun,
    PhaseEnded,
    Proposed,
    Responsive,
    Resumed,
    StateChanged,
    Unresponsive,
)
from .groups import Group, Subscription
from .holding import Held, HeldInTurn
from .keys import Keys
from .machines import CHECKPOINT, NOW, Since, StateMachine
from .positions import Position
from .recipes.counters import Counter
from .recipes.elections import Election
from .recipes.latches import Latch
from .recipes.locks import Lock
from .recipes.parties import Party
from .recipes.rwlocks import ReadWriteLock
from .recipes.semaphores import Semaphore
from .sansio.asking import DomainStatus, GroupInfo, NodeInfo
from .sansio.own_messages import MessageId
from .session import Session, connect
from .session_states import SessionState
from .views import Provider, View
from .voting import MANUAL, Answer, Counted, Outcome, Proposal, VoteMessage
from .voting_words import Cause, DefaultCast, ProposalKind, Reason, Vote

__version__ = "0.2.0.dev0"

# A library is silent unless the program has set up logging.
logging.getLogger("groupsvc").addHandler(logging.NullHandler())

__all__ = [
    "CHECKPOINT",
    "MANUAL",
    "NOW",
    "Answer",
    "Approved",
    "AttributesChanged",
    "AttributesMismatch",
    "Barrier",
    "BarrierBroken",
    "Batch",
    "Busy",
    "Cause",
    "Counted",
    "Counter",
    "DaemonUnreachable",
    "DefaultCast",
    "Dissolved",
    "DomainStatus",
    "Draining",
    "Election",
    "Event",
    "Failed",
    "Failing",
    "Group",
    "GroupAttributes",
    "GroupExists",
    "GroupInfo",
    "GroupServiceError",
    "Held",
    "HeldInTurn",
    "JoinRejected",
    "Joined",
    "Keys",
    "Latch",
    "Left",
    "Lock",
    "LockLost",
    "Lost",
    "Message",
    "MessageId",
    "Missing",
    "NoSuchGroup",
    "NodeInfo",
    "NotAMember",
    "Outcome",
    "OutcomeUnknown",
    "Overrun",
    "Party",
    "PeerProtocolError",
    "PermissionDenied",
    "PhaseEnded",
    "Phases",
    "Position",
    "Proposal",
    "ProposalKind",
    "Proposed",
    "Provider",
    "ReadWriteLock",
    "Reason",
    "Rejected",
    "Released",
    "Responsive",
    "Resumed",
    "Semaphore",
    "Session",
    "SessionState",
    "Since",
    "StaleVersion",
    "StateChanged",
    "StateMachine",
    "Subscription",
    "Suspended",
    "TimedOut",
    "Unresponsive",
    "UsageError",
    "View",
    "Vote",
    "VoteMessage",
    "WouldBlock",
    "__version__",
    "connect",
    "limits",
]
