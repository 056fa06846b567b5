"""Every call of the API as a request of the machine: what is sent, what is expected, and what it becomes.

Both drivers use these, so that a blocking call and an awaited one are the same call. Each takes the arguments as the
application gave them, refuses wrong ones, and returns a function ``start(now, timeout) -> Call``. The driver starts it
(again, if the time is longer than a daemon waits) and waits in its own way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from ..attributes import GroupAttributes, attributes_of, changed, stated
from ..errors import JoinRejected, NotAMember, OutcomeUnknown, TimedOut, UsageError
from ..machines import Since, checked_machine, homes, since_number, since_numbering
from ..positions import Position
from ..session_states import IS_OVER
from ..views import id_of, provider_of, stranger
from ..voting import MANUAL, Outcome, outcome_of
from ..wire import client_messages as wire
from . import arguments as check
from .applying import Applying
from .calls import Call
from .membership_machine import Membership
from .session_machine import SessionMachine

Start = Callable[[float, float], Call]

ASK_S = 10.0
"""For questions whose answer the daemon has at hand."""


@attrs.frozen
class GroupInfo:
    """One line of the table of groups; ``leader`` and ``servers`` are nodes."""

    name: str
    id: int
    epoch: int
    leader: str
    servers: tuple[str, ...]
    attributes: GroupAttributes


@attrs.frozen
class NodeInfo:
    """One line of the table of nodes."""

    name: str
    incarnation: int
    status: str
    address: str
    is_voter: bool
    is_name_server: bool


@attrs.frozen
class DomainStatus:
    """What the node's daemon knows of its domain. ``trouble`` says in words what is missing, "" if nothing."""

    node: str
    incarnation: int
    domain: str
    role: str
    name_server: str
    is_suspended: bool
    trouble: str
    nodes: tuple[NodeInfo, ...]


# --- Of a session --------------------------------------------------------------------------------------------


def join(
    machine: SessionMachine,
    group: str,
    *,
    name: str | None,
    attributes: GroupAttributes | None,
    create: bool | None,
    data: bytes,
    on_proposal: object,
    events: bool,
    machine_of: object = None,
    since: Since | Position | int | None = None,
    may_be_reserved: bool = False,
) -> Start:
    """Become a provider; the call gives the ``Membership``. Recipes join groups whose names are reserved for them."""
    check.group_name(group, may_be_reserved=may_be_reserved)
    called, shown = check.provider_name(name, group), check.provider_data(data, group)
    _check_join(group, attributes, create, on_proposal)
    wanted = {} if attributes is None else stated(attributes)
    if wanted.pop("state_machine", False) and machine_of is None:
        raise UsageError("a group with state_machine is joined with machine=, and that is enough", group=group)
    brought = checked_machine(machine_of, group)
    begins = since_number(since, has_machine=brought is not None, group=group)
    reads = events or (brought is None and begins != wire.SINCE_NOW)  # who asks for what came before wants to read it
    what = f"join group {group!r}"

    def entered(answer: wire.JoinedAs | wire.OutcomeIs) -> Membership:
        if isinstance(answer, wire.OutcomeIs):
            outcome = outcome_of(group, answer.outcome, stranger, None)
            raise JoinRejected(f"could not {what}: {outcome.in_words}", outcome, group=group)
        if brought is not None and begins >= 0:
            homes.enter(brought, answer.numbering)  # it goes on with the state that it has
        membership = Membership(
            machine, group, answer.member, answer.attributes, answer.view, my_id=answer.provider,
            on_proposal=on_proposal, buffer=machine.buffer_for_new(reads=reads),
            applying=None if brought is None else Applying(brought, answer.numbering),
            catches_up=begins != wire.SINCE_NOW, numbering=answer.numbering,
        )  # fmt: skip
        if brought is not None:
            homes.occupy(brought, membership)
        return machine.enter(membership)

    def start(now: float, timeout: float) -> Call:
        _check_name_is_free(machine, group, called)
        if brought is not None:
            homes.check_free(brought, group)
        since_in = since_numbering(since, brought, machine.numberings, group)
        return machine.ask(
            lambda id: wire.JoinAsk(
                id, group, called, shown, wanted, create, timeout, brought is not None, begins, since_in
            ),
            (wire.JoinedAs, wire.OutcomeIs), what, now=now, timeout=timeout, group=group, convert=entered,
            proposes=True,
        )  # fmt: skip

    return start


def not_caught_up(membership: Membership, wait: float) -> OutcomeUnknown:
    """What came before could not be taken in, or not in time: the others saw it come, and go."""
    why = f"what came before was not taken in within {wait:g} s" if not membership.has_ended else membership.end_reason
    text = f"could not stay in group {membership.group!r}: {why}; it was approved, and left again"
    return OutcomeUnknown(text, group=membership.group)


def check_may_wait(where: str, group: str, *, is_callback: bool) -> None:
    """Raise in a callback: while it waits nobody votes for this program, and whom it waits for may wait for that."""
    if is_callback:
        text = f"a callback cannot wait {where}: this program would not vote meanwhile; wait elsewhere"
        raise UsageError(text, group=group)


def check_may_wait_for_machine(membership: Membership, what: str, *, is_callback: bool) -> None:
    """Raise in a callback that would wait for itself."""
    if is_callback and membership.applying is not None:
        text = (
            f"could not {what} in group {membership.group!r}: inside a callback it would wait for the state machine,"
            " which only this thread can run; do it elsewhere, or send a message with multicast"
        )
        raise UsageError(text, group=membership.group)


def no_room_in_time(group: str) -> TimedOut:
    """Why a message was not sent."""
    text = f"could not send a message to group {group!r}: those before it do not come back"
    return TimedOut(text, group=group, advice="look at session.state, and try again")


def not_flushed(membership: Membership, wait: float, ids: tuple[str, ...]) -> OutcomeUnknown:
    """Why messages that were sent are not known to be delivered, or, with no ``ids``, not to be applied."""
    group = membership.group
    what = f"{len(ids)} messages to group {group!r} have not come back"
    if not ids:
        what = f"all messages to group {group!r} were delivered, and its state machine has not applied them"
    return OutcomeUnknown(f"after {wait:g} s {what}", ids, group=group, advice="flush again")


def not_synced(group: str) -> TimedOut:
    """What was asked for came, and the machine is behind."""
    text = f"could not catch up with group {group!r}: its state machine has not applied everything yet"
    return TimedOut(text, group=group, advice="sync again")


def _check_join(group: str, attributes: object, create: object, on_proposal: object) -> None:
    if not (attributes is None or isinstance(attributes, GroupAttributes)):
        raise UsageError(f"attributes are GroupAttributes, not a {type(attributes).__name__}", group=group)
    if create not in (None, True, False):
        raise UsageError(f"create is {create!r}; it must be None, True or False", group=group)
    if not (on_proposal is None or on_proposal is MANUAL or callable(on_proposal)):
        raise UsageError("on_proposal is a function, groupsvc.MANUAL or None", group=group)


def _check_name_is_free(machine: SessionMachine, group: str, name: str) -> None:
    for other in machine.members.values():
        if other.group == group and other.me is not None and other.me.name == name:
            known_as = f"under the name {name!r}" if name else "without a name"
            text = f"this session is in group {group!r} already, {known_as}"
            raise UsageError(text, group=group, advice="give another name" if name else "give the second one a name")


def subscribe(machine: SessionMachine, group: str, *, wait: float) -> Start:
    """Watch a group; the call gives the ``Membership``."""
    check.group_name(group, may_be_reserved=True)
    patience = check.patience(wait)

    def entered(answer: wire.Subscribed) -> Membership:
        buffer = machine.buffer_for_new(reads=True)
        return machine.enter(
            Membership(
                machine, group, answer.member, answer.attributes, answer.view, buffer=buffer,
                numbering=answer.numbering,
            )
        )  # fmt: skip

    def start(now: float, timeout: float) -> Call:
        return machine.ask(
            lambda id: wire.SubscribeAsk(id, group, min(patience, timeout), timeout), wire.Subscribed,
            f"subscribe to group {group!r}", now=now, timeout=timeout, group=group, convert=entered,
        )  # fmt: skip

    return start


def submit(machine: SessionMachine, group: str, payload: bytes) -> Start:
    """A message of somebody who is no member."""
    check.group_name(group)
    payloads = (check.payload(payload, group),)
    return lambda now, timeout: machine.ask(
        lambda id: wire.SubmitOutside(id, group, payloads, timeout), wire.Done, f"send a message to group {group!r}",
        now=now, timeout=timeout, group=group,
    )  # fmt: skip


def groups(machine: SessionMachine) -> Start:
    """All groups of the domain."""

    def listed(answer: wire.GroupsAre) -> tuple[GroupInfo, ...]:
        return tuple(
            GroupInfo(line.name, line.group, line.epoch, line.leader, line.servers, attributes_of(line.attributes))
            for line in answer.groups
        )

    return lambda now, timeout: machine.ask(
        lambda id: wire.GroupsAsk(id, timeout), wire.GroupsAre, "list the groups",
        now=now, timeout=timeout, harmless=True, convert=listed,
    )  # fmt: skip


def status(machine: SessionMachine) -> Start:
    """What the daemon knows of the domain."""

    def told(found: wire.Status) -> DomainStatus:
        nodes = tuple(
            NodeInfo(one.name, one.incarnation, one.status, one.address, one.voter, one.name_server)
            for one in found.nodes
        )
        return DomainStatus(
            found.node, found.incarnation, found.domain, found.role, found.name_server, found.suspended,
            found.trouble, nodes,
        )  # fmt: skip

    return lambda now, timeout: machine.ask(
        wire.StatusAsk, wire.Status, "ask for the status", now=now, timeout=timeout, harmless=True, convert=told
    )


def why(machine: SessionMachine, group: str) -> Start:
    """How the newest proposals of a group ended, the oldest first."""
    check.group_name(group, may_be_reserved=True)

    def told(answer: wire.OutcomesAre) -> tuple[Outcome, ...]:
        known = {one.id: provider_of(one) for one in answer.view.providers}
        for _, found in answer.outcomes:  # who came and left since is known by its name from its own join
            known.update((one.id, provider_of(one)) for one in found.subject.joining if one.id not in known)
        return tuple(
            outcome_of(group, found, lambda id: known.get(id) or stranger(id), None) for _, found in answer.outcomes
        )

    return lambda now, timeout: machine.ask(
        lambda id: wire.WhyAsk(id, group, timeout), wire.OutcomesAre, f"ask how proposals of group {group!r} ended",
        now=now, timeout=timeout, harmless=True, group=group, convert=told,
    )  # fmt: skip


def close(machine: SessionMachine) -> Start:
    """The session ends."""
    return lambda now, timeout: machine.ask(
        wire.CloseSession, wire.Done, "close the session", now=now, timeout=timeout, harmless=True
    )


# --- Of a membership ------------------------------------------------------------------------------------------


def check_member(machine: SessionMachine, membership: Membership, what: str) -> None:
    """Raise if it takes no part any more."""
    if membership.has_ended:
        text = f"could not {what} in group {membership.group!r}: no longer a member ({membership.end_reason})"
        advice = "connect and join again" if machine.state in IS_OVER else "join again"
        raise NotAMember(text, group=membership.group, advice=advice)


def _propose(
    machine: SessionMachine, membership: Membership, what: str, make: Callable[[int, float], wire.AnyClientRequest]
) -> Start:
    def ended(answer: wire.OutcomeIs) -> Outcome:
        return membership.outcome(answer.outcome, answer.seq)

    def start(now: float, timeout: float) -> Call:
        check_member(machine, membership, what)
        return machine.ask(
            lambda id: make(id, timeout), wire.OutcomeIs, f"{what} in group {membership.group!r}",
            now=now, timeout=timeout, group=membership.group, convert=ended, proposes=True,
        )  # fmt: skip

    return start


def propose_state(
    machine: SessionMachine, membership: Membership, value: bytes, if_version: int | None, **how: Any
) -> Start:
    """A new state value."""
    group, number = membership.group, membership.number
    state = check.payload(value, group, what="a state value", advice=check.ELSEWHERE)
    expected = check.version(if_version, group)
    phases, limit, fails = _how(group, **how)
    return _propose(
        machine, membership, "change the state",
        lambda id, timeout: wire.ChangeStateAsk(id, number, phases, limit, fails, timeout, state, expected),
    )  # fmt: skip


def send(machine: SessionMachine, membership: Membership, payload: bytes, **how: Any) -> Start:
    """A message by ballot."""
    group, number = membership.group, membership.number
    message = check.payload(payload, group)
    phases, limit, fails = _how(group, **how)
    return _propose(
        machine, membership, "send a message",
        lambda id, timeout: wire.SendAsk(id, number, phases, limit, fails, timeout, message),
    )  # fmt: skip


def expel(
    machine: SessionMachine, membership: Membership, providers: tuple[object, ...], reason: str, **how: Any
) -> Start:
    """These are to leave."""
    group, number = membership.group, membership.number
    targets, why = check.providers(providers, group), check.reason(reason, group)
    phases, limit, fails = _how(group, **how)
    return _propose(
        machine, membership, f"expel {', '.join(str(one) for one in providers)}",
        lambda id, timeout: wire.ExpelAsk(id, number, phases, limit, fails, timeout, targets, why),
    )  # fmt: skip


def change_attributes(machine: SessionMachine, membership: Membership, changes: dict[str, object], **how: Any) -> Start:
    """Other attributes."""
    number, plain = membership.number, changed(changes)
    phases, limit, fails = _how(membership.group, **how)
    return _propose(
        machine, membership, f"change {', '.join(changes)}",
        lambda id, timeout: wire.ChangeAttributesAsk(id, number, phases, limit, fails, timeout, plain),
    )  # fmt: skip


def _how(
    group: str, *, phases: object = None, time_limit: object = None, on_busy: object = "queue"
) -> tuple[int, float, bool]:
    return check.phases(phases, group), check.time_limit(time_limit, group), check.fails_if_busy(on_busy, group)


def leave(machine: SessionMachine, membership: Membership, code: int) -> Start:
    """Propose that this provider leaves."""
    number, with_code = membership.number, check.whole(code, "code", membership.group)
    return _propose(
        machine, membership, "leave", lambda id, timeout: wire.LeaveAsk(id, number, with_code, timeout)
    )  # fmt: skip


def goodbye(machine: SessionMachine, membership: Membership) -> Start:
    """Leave at once: nothing is told after it."""

    def start(now: float, timeout: float) -> Call:
        check_member(machine, membership, "say goodbye")
        call = machine.ask(
            lambda id: wire.GoodbyeAsk(id, membership.number), wire.Done, f"say goodbye to group {membership.group!r}",
            now=now, timeout=timeout, group=membership.group,
        )  # fmt: skip
        machine.part(membership, "it said goodbye")
        return call

    return start


def goodbye_of(machine: SessionMachine, membership: Membership) -> wire.GoodbyeAsk:
    """The same for who does not wait for the answer."""
    machine.part(membership, "it said goodbye")
    return wire.GoodbyeAsk(machine.next_id(), membership.number)


def sync(machine: SessionMachine, membership: Membership) -> Start:
    """Until everything ordered before has been told here."""

    def start(now: float, timeout: float) -> Call:
        check_member(machine, membership, "catch up")
        return machine.ask(
            lambda id: wire.CatchUpAsk(id, membership.number, timeout), wire.CaughtUp,
            f"catch up with group {membership.group!r}", now=now, timeout=timeout, harmless=True,
            group=membership.group, convert=lambda answer: answer.seq,
        )  # fmt: skip

    return start


def outcome(machine: SessionMachine, membership: Membership, proposal: object) -> Start:
    """How a proposal ended."""
    id_there = id_of(proposal) if isinstance(proposal, str) else None
    if id_there is None:
        text = f"{proposal!r} is no id of a proposal (node/incarnation/number), as in outcome.proposal.id"
        raise UsageError(text, group=membership.group)

    def start(now: float, timeout: float) -> Call:
        check_member(machine, membership, "ask for an outcome")
        return machine.ask(
            lambda id: wire.OutcomeAsk(id, membership.number, id_there), wire.OutcomeIs,
            f"ask how proposal {proposal} in group {membership.group!r} ended", now=now, timeout=timeout, harmless=True,
            group=membership.group, convert=lambda answer: membership.outcome(answer.outcome, answer.seq),
        )  # fmt: skip

    return start
