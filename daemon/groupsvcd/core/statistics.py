"""What an engine says of itself in numbers, when it is asked: each part of it one frozen value.

To gather them costs a look at every group and session, and nothing before that. What only grows is in the ``Tally``;
everything else is as it is at this moment. No number here decides anything.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from .tally import Measured, Tally

Sees = Callable[[str], bool]
"""Whether who is shown the numbers may know that there is a group of this name."""


@attrs.frozen(kw_only=True)
class DomainStatistics:
    """This node in the domain."""

    has_leader: bool  # whether it hears a name server
    is_name_server: bool
    is_suspended: bool
    lease_left: float  # seconds
    epoch: int
    nodes: dict[str, int]  # by status, as this node has the list
    directory_applied: int  # entries; 0 at who is no voter


@attrs.frozen(kw_only=True)
class NodeGroupStatistics:
    """The streams that this node carries."""

    roles: dict[str, int]  # groups by what this node is in them
    kept_bytes: int  # of entries in memory
    outstanding: int  # entries of this node that are on their way


@attrs.frozen(kw_only=True)
class ProcessGroupStatistics:
    """The process groups that this node carries."""

    groups: int
    members: int  # of all of them
    members_by_group: dict[str, int]  # of some, which the asker may see
    unresponsive: int
    failing: int
    proposals_waiting: int
    ballots_running: int


@attrs.frozen(kw_only=True)
class SessionStatistics:
    """What programs of this node have."""

    connected: int
    in_grace: int  # without a connection
    unresponsive: int
    memberships: int  # and subscriptions
    opened: int  # since the daemon started


@attrs.frozen(kw_only=True)
class Counted:
    """The tally, as it is now."""

    ordered_entries: int
    ordered_bytes: int
    delivered_entries: int
    leader_changes: int
    view_changes: int
    retransmits: dict[str, int]
    marks: dict[str, int]
    votes: dict[tuple[str, str], int]
    default_votes: dict[str, int]
    ballots: dict[tuple[str, str], int]
    refused_proposals: dict[str, int]
    barrier_rounds: dict[str, int]
    protocols: dict[str, Measured]


@attrs.frozen(kw_only=True)
class EngineStatistics:
    """All of it."""

    domain: DomainStatistics
    node_groups: NodeGroupStatistics
    process_groups: ProcessGroupStatistics
    sessions: SessionStatistics
    counted: Counted


def counted(tally: Tally) -> Counted:
    """A copy that does not change any more."""
    return Counted(
        ordered_entries=tally.ordered_entries,
        ordered_bytes=tally.ordered_bytes,
        delivered_entries=tally.delivered_entries,
        leader_changes=tally.leader_changes,
        view_changes=tally.view_changes,
        retransmits=dict(tally.retransmits),
        marks=dict(tally.marks),
        votes=dict(tally.votes),
        default_votes=dict(tally.default_votes),
        ballots=dict(tally.ballots),
        refused_proposals=dict(tally.refused_proposals),
        barrier_rounds=dict(tally.barrier_rounds),
        protocols={kind: histogram.measured() for kind, histogram in tally.protocols.items()},
    )
