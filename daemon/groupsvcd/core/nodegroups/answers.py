"""What others answer to this node's part in a group: leaders to what it asked for, the name server to what it said.

Messages about the stream itself are its seat's business; these concern whether and how the node takes part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..identity import Sender
from ..peer_messages import Accepted, GroupIs, Inserted, InsertRefused, Left, NotLeader, SubmitRefused, Synced
from .node_group import NodeGroup
from .phases import Phase
from .user import HAS_ENDED

LAY_TOO_LONG = "submissions lay too long: what became of them is not known"


def on_left(group: NodeGroup, sender: Sender, message: Left) -> None:
    """We are no member. That we are no server either, only a view without us can say."""
    mine = (message.to, message.term) == (group.station.identity.incarnation, group.key)
    if mine and group.phase is Phase.LEAVING and not group.is_counted_on:
        group.end("left")


def on_group_is(group: NodeGroup, sender: Sender, message: GroupIs) -> None:
    """The name server corrects our view of the group."""
    if message.active is None:
        group.end(HAS_ENDED)
    elif group.seat is not None:
        group.seat.superseded_by(message.active)


def on_synced(group: NodeGroup, sender: Sender, message: Synced) -> None:
    """How far the stream was when we asked."""
    if group.confirmations is not None:
        group.confirmations.on_synced(message)


def on_not_leader(group: NodeGroup, sender: Sender, message: NotLeader) -> None:
    """We asked the wrong one."""
    if group.phase in (Phase.INSERTING, Phase.RETURNING):
        group.entrance.on_not_leader(message)
    elif group.is_leaving or (not message.leader and group.seat is not None and group.seat.is_following):
        group.entrance.look_up_again()


def on_inserted(group: NodeGroup, sender: Sender, message: Inserted) -> None:
    """We are a member."""
    group.entrance.on_inserted(sender, message)


def on_insert_refused(group: NodeGroup, sender: Sender, message: InsertRefused) -> None:
    """We are none, because of where a user wants to begin."""
    group.entrance.on_insert_refused(message)


def on_accepted(group: NodeGroup, sender: Sender, message: Accepted) -> None:
    """What we submitted is stable; for who is no member."""
    if group.submitter is not None and message.to == group.station.identity.incarnation:
        group.submitter.accepted(message.upto_n)


def on_submit_refused(group: NodeGroup, sender: Sender, message: SubmitRefused) -> None:
    """A gap: the leader misses what was sent before. Too old: what became of it is no longer known.

    What was refused may have been ordered since, and then it says nothing of now: nothing would take it back.
    """
    submitter = group.submitter
    if submitter is None or message.to != group.station.identity.incarnation:
        return
    if message.reason == "gap":
        submitter.close_gap(message.last_n)
    elif not submitter.is_outstanding(message.first_n):
        return
    elif message.reason == "no disk":
        group.turn.mark("group-no-disk")
        submitter.refused_because = f"{sender.name} leads the group, and its disk is full or hangs"
    else:
        group.turn.mark("group-too-old")
        group.hand_up()
        group.forget_questions()  # what is settled now was not accepted
        submitter.start_anew(message.last_n)
        group.forsake(LAY_TOO_LONG)
        if submitter.given_up is not None:
            submitter.given_up()  # some of it was sent from outside, before this node became a member


ANSWERS: dict[type, Callable[[NodeGroup, Sender, Any], None]] = {
    Accepted: on_accepted,
    SubmitRefused: on_submit_refused,
    NotLeader: on_not_leader,
    GroupIs: on_group_is,
    Inserted: on_inserted,
    InsertRefused: on_insert_refused,
    Left: on_left,
    Synced: on_synced,
}
