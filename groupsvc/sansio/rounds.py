"""Coming to a barrier as a request of the machine, and how a round ended as an application sees it.

What parties brought, if it is much, comes in parts before the end of the round, and is put together here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import attrs

from ..errors import BarrierBroken, Failed, UsageError
from ..views import Provider, text_of
from ..wire import client_messages as wire
from ..wire.limits import BARRIER_NAME_CHARS_MAX, BARRIER_PAYLOAD_BYTES_MAX, PROVIDERS_MAX, TIMEOUT_S_MAX
from ..wire.notices import ProviderId, Round
from . import arguments as check
from .asking import Start, check_member
from .calls import Call
from .membership_machine import Membership
from .session_machine import SessionMachine

OnFailure = Literal["break", "continue", "wait"]
"""wait: as continue, and the group keeps the rounds; for those who know who takes whose place."""

WORDS = {
    "timeout": "the time of {who} was up",
    "cancelled": "{who} did not want to wait any longer",
    "failure": "{who} died",
    "left": "{who} left the group",
    "mismatch": "{who} said something else about its parties or on_failure than the others",
    "too_large": "all payloads together are more than one round carries",
}


@attrs.frozen
class Released:
    """Everybody has come. ``payloads``: what each brought, by the id of the provider, the oldest first."""

    round: int
    payloads: dict[str, bytes] = attrs.field(repr=False)


YES, NO = b"\x01", b"\x00"


def of_root(released: Released, root: object, group: str) -> bytes:
    """What the root has brought: the provider with this id, or the oldest of those who came."""
    if root is None:
        return next(iter(released.payloads.values()))
    id = root.id if isinstance(root, Provider) else root
    if not isinstance(id, str) or id not in released.payloads:
        text = f"could not broadcast in group {group!r}: {root} has not come to round {released.round} of the barrier"
        raise Failed(f"{text}; name a provider that does", group=group)
    return released.payloads[id]


def approved(released: Released) -> bool:
    """Whether everybody has said yes."""
    return all(said == YES for said in released.payloads.values())


@attrs.frozen
class BarrierTerms:
    """What all who come to a barrier must agree on."""

    name: str
    parties: int  # 0: all providers
    on_failure: OnFailure


def terms(group: str, name: object, parties: object, on_failure: object) -> BarrierTerms:
    """The same, checked."""
    called = check.text(name, "a barrier's name", BARRIER_NAME_CHARS_MAX, group=group)
    count = 0
    if parties is not None:
        count = check.count(parties, "parties", PROVIDERS_MAX, group=group, or_else=", or None for all providers")
    if on_failure == "break":
        return BarrierTerms(called, count, "break")
    if on_failure == "continue":
        return BarrierTerms(called, count, "continue")
    raise UsageError(f"on_failure is {on_failure!r}; it must be 'break' or 'continue'", group=group)


def come(
    machine: SessionMachine, membership: Membership, barrier: BarrierTerms, payload: object, wait: float, *,
    resets: bool = False,
) -> Start:  # fmt: skip
    """Come to a barrier and wait so long for the end of the round; the call gives ``Released``."""
    group, number = membership.group, membership.number
    brought = check.payload(
        payload, group, most=BARRIER_PAYLOAD_BYTES_MAX, limit="limits.barrier_payload_bytes_max", advice=check.ELSEWHERE
    )
    where = f"barrier {barrier.name!r} of group {group!r}" if barrier.name else f"the barrier of group {group!r}"
    what = f"reset {where}" if resets else f"pass {where}"

    def start(now: float, timeout: float) -> Call:
        if membership.end_reason is not None:
            check_member(machine, membership, what)
        if timeout >= wait or timeout >= TIMEOUT_S_MAX:
            timeout = wait  # cut off for a daemon, which at barriers waits as long as it is asked to
        call = machine.ask(
            lambda id: wire.BarrierAsk(
                id, number, barrier.name, barrier.parties, barrier.on_failure, brought, resets, timeout
            ),
            wire.RoundIs, what, now=now, timeout=timeout, group=group,
            convert=lambda answer: _ended(answer, call.parts, membership, where, machine.now),
        )  # fmt: skip
        call.take_back = lambda id: wire.BreakAsk(id, number, barrier.name, call.id)
        return call

    return start


def _ended(
    answer: wire.RoundIs, parts: list[wire.RoundPart], membership: Membership, where: str, now: float
) -> Released:
    membership.saw(answer.round, answer.seq)
    if answer.round.end == "broken":
        raise broken(membership, where, answer.round, now)
    return _released(answer.round, parts)


def past(machine: SessionMachine, membership: Membership, barrier: str, round_: int) -> Start:
    """How a round ended that is over and kept; the call gives ``Released``, or fails if it is not kept."""
    what = f"ask for round {round_} of barrier {barrier!r} of group {membership.group!r}"

    def start(now: float, timeout: float) -> Call:
        check_member(machine, membership, what)
        call = machine.ask(
            lambda id: wire.RoundAsk(id, membership.number, barrier, round_), wire.RoundIs, what, now=now,
            timeout=timeout, group=membership.group, harmless=True,
            convert=lambda answer: _released(answer.round, call.parts),
        )  # fmt: skip
        return call

    return start


def _released(round_: Round, parts: list[wire.RoundPart]) -> Released:
    """With what each brought: little is in the end of the round, and what is much came before it."""
    arrived = {text_of(provider): payload for provider, payload in round_.arrived}
    for part in parts:
        arrived.update((text_of(provider), payload) for provider, payload in part.payloads)
    return Released(round_.number, arrived)


@attrs.frozen
class Missing:
    """Somebody who had not come; whether it still answers its daemon is the same for all who are told.

    What this program knows by itself: ``since`` is when it was told that the provider does not answer, by
    ``groupsvc.clock.now()``; None if it does, or was silent before this program joined. ``ever_came``: whether the
    provider was in a round of this barrier before; None if that is not known, as this program was not in all of them.
    """

    provider: Provider
    responds: bool
    since: float | None = None
    ever_came: bool | None = None

    def __str__(self) -> str:
        return self.in_words(None)

    def in_words(self, now: float | None) -> str:
        """Who it is, and what is known of it at that time."""
        words = [] if self.responds else ["does not respond"]
        if words and now is not None and self.since is not None:
            words = [f"has not responded for {max(0.0, now - self.since):.1f} s"]
        if self.ever_came is False:
            words.append("has come to no round yet")
        return f"{self.provider}, which {' and '.join(words)}" if words else f"{self.provider}"


SAID_SHOWN_MAX = 5
"""Of those who say something else than the first: the others most likely say the same once more."""


def disagreement(
    said: Sequence[tuple[Provider, int | None, str]],
    name_of: Callable[[Provider], str] = str,
    words: tuple[str, str] = ("parties=", "on_failure="),
) -> str:
    """Who said what, as far as it differs: the first one, and those who said something else."""
    parties, on_failure = ({one[place] for one in said} for place in (1, 2))

    def terms(how_many: int | None, on: str) -> str:
        found = [f"{words[0]}{how_many}"] if len(parties) > 1 else []
        return " and ".join([*found, f"{words[1]}{on}"] if len(on_failure) > 1 else found)

    told = [f"{name_of(one)} said {terms(how_many, on)}" for one, how_many, on in said[: SAID_SHOWN_MAX + 1]]
    rest = len(said) - len(told)
    return ", ".join(told) + (f" and {rest} more something else than the first" if rest else "")


def _missing(membership: Membership, barrier: str, id: ProviderId, *, responds: bool) -> Missing:
    provider, seen = membership.who(id), membership.attendance
    since = None if responds else seen.silent_since(id)
    return Missing(provider, responds, since, seen.ever_came(barrier, id, provider.joined_seq))


def broken(membership: Membership, where: str, round_: Round, now: float) -> BarrierBroken:
    """Why nobody was released."""
    who = tuple(membership.who(one) for one in round_.who)
    arrived = tuple(membership.who(one) for one, _ in round_.arrived)
    missing = tuple(_missing(membership, round_.barrier, one, responds=does) for one, does in round_.missing)
    gone = 0 if round_.broken_by not in ("failure", "left") else sum(one not in arrived for one in who)
    expected = round_.parties or len(arrived) + len(missing) + gone
    never_came = max(0, expected - len(arrived) - len(missing) - gone)
    said = tuple((membership.who(one), parties or None, on_failure) for one, parties, on_failure in round_.said)
    why = disagreement(said) if said else WORDS[round_.broken_by].format(who=", ".join(map(str, who)))
    text = f"{where} is broken in round {round_.number}: {why}; {len(arrived)} of {expected} had come"
    if round_.waited >= 0.001:
        text += f", the first {round_.waited:.3g} s before"
    if missing:
        text += f"; missing: {', '.join(one.in_words(now) for one in missing[:10])}" + (
            " and others" if len(missing) > 10 else ""
        )
    if never_came:
        text += f"; the group has {never_came} {'provider' if never_came == 1 else 'providers'} too few"
    text += "; all parties reset it before it is used again"
    return BarrierBroken(
        text, group=membership.group, round=round_.number, expected=expected, arrived=arrived, missing=missing,
        never_came=never_came, why=round_.broken_by, who=who, waited=round_.waited, said=said,
    )  # fmt: skip
