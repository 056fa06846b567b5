"""An event as a line for people and as an object for programs.

Both are functions of the event alone, so that what ``watch`` prints can be tested without watching anything.
"""

from __future__ import annotations

from .. import (
    Approved,
    AttributesChanged,
    Cause,
    Dissolved,
    Event,
    Failing,
    Joined,
    Left,
    Lost,
    Message,
    Overrun,
    PhaseEnded,
    Provider,
    Rejected,
    Responsive,
    Resumed,
    StateChanged,
    Suspended,
    Unresponsive,
    View,
)
from .colours import Style
from .group_questions import about, counted_object, outcome_object, provider_object, view_object
from .tables import in_json, one_line, shown


def first_line(view: View) -> str:
    """What there was when the watching began."""
    noun = "provider" if len(view.providers) == 1 else "providers"
    state = f"state {shown(view.state)}, version {view.state_version}"
    return one_line(f"{len(view.providers)} {noun}: {_names(view.providers)}; {state}")


def line_of(event: Event) -> str:
    """What happened, without when and where."""
    return one_line(_in_words(event))


def style_of(event: Event) -> Style | None:
    """How it is coloured."""
    match event:
        case Joined() | Resumed():
            return "good"
        case Left(cause=Cause.LEAVE | Cause.GOODBYE):
            return "doubtful"
        case Left() | Lost() | Overrun() | Failing() | Rejected():
            return "bad"
        case Suspended() | Dissolved() | Unresponsive():
            return "doubtful"
        case StateChanged() | AttributesChanged():
            return "new"
        case _:
            return None


def _in_words(event: Event) -> str:
    match event:
        case Joined(providers=providers):
            return f"joined: {_names(providers)}"
        case Left(providers=providers, cause=cause, code=code, reason=reason):
            more = (f", code {code}" if code else "") + (f", {reason}" if reason else "")
            return f"left: {_names(providers)} ({cause.name}{more})"
        case StateChanged(value=value, version=version):
            return f"state: {shown(value)}, version {version}"
        case AttributesChanged(changes=changes):
            return "attributes: " + ", ".join(f"{name} = {value!r}" for name, value in changes)
        case Suspended(reason=reason):
            return f"suspended: {reason or 'no word from the daemon'}"
        case Resumed():
            return "resumed: nothing was missed"
        case Lost(reason=reason):
            return f"lost: {reason}"
        case Dissolved(reason=reason):
            return f"dissolved: {reason or 'the last provider has left'}"
        case Overrun(missed=missed):
            return f"overrun: {missed} events were not read in time and are left out"
        case Failing(provider=provider, cause=cause):
            return f"failing: {_names((provider,))} ({cause.name})"
        case Message(sender=sender, payload=payload, origin=origin):
            return f"message from {origin if sender is None else _names((sender,))}: {shown(payload)}"
        case PhaseEnded(phase=phase, tally=tally):
            return f"phase {phase} has ended, another follows: {'; '.join(map(str, tally))}"
        case Approved(outcome=outcome) | Rejected(outcome=outcome):
            verdict = "approved" if outcome.approved else "rejected"
            return f"{verdict}: {about(outcome.proposal)}, {outcome.reason.name} in phase {outcome.phases}"
        case Unresponsive(provider=provider):
            return f"does not answer: {_names((provider,))}"
        case Responsive(provider=provider):
            return f"answers again: {_names((provider,))}"
        case _:
            return type(event).__name__.lower()


def first_object(group: str, view: View) -> dict[str, object]:
    """The first line of ``watch --json``."""
    return {"event": "view", "group": group, **view_object(view)}


def object_of(event: Event) -> dict[str, object]:
    """The other lines: ``event`` is the name of its class."""
    found: dict[str, object] = {"event": type(event).__name__, "group": event.group}
    seq = getattr(event, "seq", None)
    if seq is not None:
        found["seq"] = seq
    match event:
        case Joined(providers=providers, view=view):
            found |= {"providers": [provider_object(one) for one in providers], "fence": view.fence}
        case Left(providers=providers, cause=cause, code=code, reason=reason, view=view):
            found |= {"providers": [provider_object(one) for one in providers], "fence": view.fence}
            found |= {"cause": cause.name, "code": code, "reason": reason}
        case StateChanged(value=value, version=version):
            found |= {**in_json("state", value), "state_version": version}
        case AttributesChanged(changes=changes):
            found["changes"] = dict(changes)
        case Suspended(reason=reason) | Lost(reason=reason) | Dissolved(reason=reason):
            found["reason"] = reason
        case Overrun(missed=missed):
            found["missed"] = missed
        case Failing(provider=provider, cause=cause):
            found |= {"provider": provider_object(provider), "cause": cause.name}
        case Unresponsive(provider=provider) | Responsive(provider=provider):
            found["provider"] = provider_object(provider)
        case Message(sender=sender, payload=payload, origin=origin):
            found |= {"sender": None if sender is None else provider_object(sender), "origin": origin}
            found |= in_json("payload", payload)
        case PhaseEnded(phase=phase, tally=tally):
            found |= {"phase": phase, "tally": [counted_object(one) for one in tally]}
        case Approved(outcome=outcome) | Rejected(outcome=outcome):
            found["outcome"] = outcome_object(outcome)
    return found


def _names(providers: tuple[Provider, ...]) -> str:
    return ", ".join(f"{one.name or one.id} at {one.node}" for one in providers) or "none"
