"""What is wrong with a request, before anything is done about it (X2).

Whatever a program sends, it is answered with a sentence and nothing has changed: a name that is none, a number out of
its range, more bytes than a stream takes. What only the group can judge (whose turn it is, who has a vote) is judged
there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from groupsvc.wire.client_messages import (
    SINCE_CHECKPOINT,
    SINCE_NOW,
    AnyClientRequest,
    BarrierAsk,
    BreakAsk,
    CastVote,
    ChangeAttributesAsk,
    ChangeStateAsk,
    ExpelAsk,
    JoinAsk,
    Multicast,
    OpenSession,
    ProposalAsk,
    RoundAsk,
    SendAsk,
    StoreBlock,
    SubmitOutside,
    SubscribeAsk,
    WhyAsk,
)
from groupsvc.wire.limits import (
    BARRIER_NAME_CHARS_MAX,
    BARRIER_PAYLOAD_BYTES_MAX,
    CHECKPOINT_BLOCK_BYTES_MAX,
    OUTSTANDING_BYTES_MAX,
    OUTSTANDING_MAX,
    PAYLOAD_BYTES_MAX,
    PROVIDER_DATA_BYTES_MAX,
    PROVIDER_NAME_CHARS_MAX,
    PROVIDERS_MAX,
    REASON_CHARS_MAX,
    SESSION_NAME_CHARS_MAX,
    VOTE_MESSAGES_BYTES_MAX,
)

from ..domain.attributes import problem_with_attributes
from ..domain.groups import problem_with_name
from ..domain.limits import TIME_LIMIT_S_MAX
from ..groups.rules import CHANGEABLE
from .attributes import OURS

PHASES_MAX = 1_000
"""Phases that a proposer can fix; as many as the votes ask for are not limited."""

RESERVED = ("_hosts", "_groups")
"""Groups that are always there and that nobody can join."""

Found = tuple[str, str] | None
"""A code, and the sentence; None if nothing is wrong."""


def problem_with(request: AnyClientRequest) -> Found:
    """What is wrong with this request on the face of it."""
    check = _CHECKS.get(type(request))
    found = check(request) if check is not None else None
    if found is None and isinstance(request, ProposalAsk):
        found = _problem_with_proposal(request)
    return found


def _usage(text: str) -> Found:
    return ("usage", text) if text else None


def _too_large(what: str, size: int, limit: int, name: str) -> Found:
    if size <= limit:
        return None
    return "too large", f"{what} of {size} bytes is more than the {limit} allowed ({name}); send less at a time"


def _first(found: Iterable[Found]) -> Found:
    return next((one for one in found if one is not None), None)


def _name(group: str) -> Found:
    if group in RESERVED:
        return _usage(f"{group!r} is a group of the service itself: it can be subscribed to, and nothing else")
    return _usage(problem_with_name(group))


def _open(ask: OpenSession) -> Found:
    if len(ask.name) > SESSION_NAME_CHARS_MAX:
        return _usage(f"a session's name has at most {SESSION_NAME_CHARS_MAX} characters, not {len(ask.name)}")
    return None


def _join(ask: JoinAsk) -> Found:
    name = len(ask.name)
    return _first((
        _name(ask.group),
        _usage(f"a provider's name has at most {PROVIDER_NAME_CHARS_MAX} characters, not {name}"
               if name > PROVIDER_NAME_CHARS_MAX else ""),
        _too_large("provider data", len(ask.data), PROVIDER_DATA_BYTES_MAX, "PROVIDER_DATA_BYTES_MAX"),
        _usage("; ".join(f"attribute {name} is not for applications" for name in sorted(OURS & ask.attributes.keys()))),
        _usage(problem_with_attributes(ask.attributes)),
        _usage("state_machine is no attribute to be stated: who brings a machine says so by bringing it"
               if "state_machine" in ask.attributes else ""),
        _usage(f"since is the number of an entry, {SINCE_NOW} for now or {SINCE_CHECKPOINT} for the newest checkpoint,"
               f" not {ask.since}" if ask.since < SINCE_CHECKPOINT else ""),
        _usage("a state machine cannot begin with what comes now: it begins with the newest checkpoint, or after an"
               " entry that it has applied" if ask.has_machine and ask.since == SINCE_NOW else ""),
    ))  # fmt: skip


def _block(ask: StoreBlock) -> Found:
    if ask.index < 0 or ask.at < 0:
        return _usage(f"block {ask.index} of a checkpoint after entry {ask.at}: neither is below 0")
    return _too_large(
        "a block of a checkpoint", len(ask.block), CHECKPOINT_BLOCK_BYTES_MAX, "CHECKPOINT_BLOCK_BYTES_MAX"
    )


def _subscribe(ask: SubscribeAsk) -> Found:
    return None if ask.group in RESERVED else _usage(problem_with_name(ask.group))


def _payloads(payloads: tuple[bytes, ...]) -> Found:
    if not payloads:
        return _usage("there is no message in it")
    if len(payloads) > OUTSTANDING_MAX:
        return _usage(f"{len(payloads)} messages at once are more than {OUTSTANDING_MAX} (OUTSTANDING_MAX)")
    largest, together = max(map(len, payloads)), sum(map(len, payloads))
    return _first((
        _too_large("a message", largest, PAYLOAD_BYTES_MAX, "PAYLOAD_BYTES_MAX"),
        _too_large("messages", together, OUTSTANDING_BYTES_MAX, "OUTSTANDING_BYTES_MAX"),
    ))  # fmt: skip


def _outside(ask: SubmitOutside) -> Found:
    return _first((_name(ask.group), _payloads(ask.payloads)))


def _state(ask: ChangeStateAsk) -> Found:
    if ask.if_version < -1:
        return _usage(f"if_version is a version, or -1 for whatever there is, not {ask.if_version}")
    return _too_large("a state value", len(ask.value), PAYLOAD_BYTES_MAX, "PAYLOAD_BYTES_MAX")


def _expel(ask: ExpelAsk) -> Found:
    if not ask.targets:
        return _usage("nobody is named who is to be expelled")
    if len(ask.targets) > PROVIDERS_MAX:
        return _usage(f"{len(ask.targets)} are more providers than a group can have ({PROVIDERS_MAX})")
    if len(ask.reason) > REASON_CHARS_MAX:
        return _usage(f"a reason has at most {REASON_CHARS_MAX} characters, not {len(ask.reason)} (REASON_CHARS_MAX)")
    return None


def _attributes(ask: ChangeAttributesAsk) -> Found:
    settled = sorted(set(ask.changes) - CHANGEABLE)
    if not ask.changes:
        return _usage("no attribute is named that is to change")
    if settled:
        return _usage(
            f"{', '.join(settled)}: settled when the group is formed; {', '.join(sorted(CHANGEABLE))} can change"
        )
    return _usage(problem_with_attributes(ask.changes))


def _vote(ask: CastVote) -> Found:
    return _first((
        _too_large("a state value", len(ask.state or b""), PAYLOAD_BYTES_MAX, "PAYLOAD_BYTES_MAX"),
        _too_large(
            "a message with a vote", len(ask.message or b""), VOTE_MESSAGES_BYTES_MAX, "VOTE_MESSAGES_BYTES_MAX"
        ),
    ))  # fmt: skip


def _barrier(ask: BarrierAsk) -> Found:
    if len(ask.barrier) > BARRIER_NAME_CHARS_MAX:
        return _barrier_name(ask.barrier)
    if not 0 <= ask.parties <= PROVIDERS_MAX:
        text = f"parties is how many a barrier takes, 1 to {PROVIDERS_MAX}, or 0 for all providers, not {ask.parties}"
        return _usage(text)
    size = len(ask.payload)
    if size <= BARRIER_PAYLOAD_BYTES_MAX:
        return None
    return _too_large("what a party brings", size, BARRIER_PAYLOAD_BYTES_MAX, "BARRIER_PAYLOAD_BYTES_MAX")


def _barrier_name(name: str) -> Found:
    if len(name) <= BARRIER_NAME_CHARS_MAX:
        return None
    return _usage(f"a barrier's name has at most {BARRIER_NAME_CHARS_MAX} characters, not {len(name)}")


def _problem_with_proposal(ask: ProposalAsk) -> Found:
    if not -1 <= ask.phases <= PHASES_MAX:
        return _usage(
            f"phases is -1 (as the group has it), 0 (as many as needed) or 1 to {PHASES_MAX}, not {ask.phases}"
        )
    if ask.time_limit != -1 and not 0 <= ask.time_limit <= TIME_LIMIT_S_MAX:
        return _usage(f"time_limit is -1 (as the group has it) or 0 to {TIME_LIMIT_S_MAX:g} s, not {ask.time_limit}")
    return None


_CHECKS: dict[type, Callable[[Any], Found]] = {
    OpenSession: _open,
    JoinAsk: _join,
    SubscribeAsk: _subscribe,
    WhyAsk: lambda ask: _name(ask.group),
    Multicast: lambda ask: _payloads(ask.payloads),
    SubmitOutside: _outside,
    ChangeStateAsk: _state,
    SendAsk: lambda ask: _too_large("a message", len(ask.payload), PAYLOAD_BYTES_MAX, "PAYLOAD_BYTES_MAX"),
    ExpelAsk: _expel,
    ChangeAttributesAsk: _attributes,
    CastVote: _vote,
    StoreBlock: _block,
    BarrierAsk: _barrier,
    BreakAsk: lambda ask: _barrier_name(ask.barrier),
    RoundAsk: lambda ask: _barrier_name(ask.barrier),
}
