"""K1: every call ends once, and its answer is true.

A configuration key is a versioned register: ``config_set`` writes if the version is the one named, ``config_get``
reads, and a version is the number of the directory entry. Every value is written by one call only (or again
after a call that failed), so a value tells who wrote it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator

import attrs

from .eras import Era
from .invocations import Call, CallKey, call_key
from .linearizability import Operation, Undecided, obstacle
from .lives import LIFE_OPS
from .verdict import Violation

NEVER = sys.maxsize
"""Later than any event."""


def k1(era: Era) -> Iterator[Violation]:
    """Calls, in four parts.

    *Ends*: no completion without an invoke, no second one, no number used twice; in a converged run none
    missing, except where the client's node went down after the invoke (B2 asks this of ``config_set`` and
    look-ups, here it is asked of the others).

    *Failed means it did not happen*: no read shows the value of a failed ``config_set``, or one nobody wrote; a
    group exists only after somebody asked to form it whose call has not failed.

    *Registers* are linearizable, key by key. ``info`` and unfinished writes may take effect at any later time or
    never: they are placed in the order only if a read showed their value. Failed calls and unfinished reads
    say nothing. A version that a write replaced but nobody was ever shown is not held against it.

    *Groups*: an id is formed for one asker only. Once a call that found an id under a name has ended, no call that
    begins later is told of an older one; that there is none, or of a newer one, only if a voter has applied its end
    (``group_dropped``) by then.

    Calls carried over from an earlier era may or may not have taken effect in this one.
    """
    calls = era.calls
    yield from _ends(era, calls)
    config: dict[str, list[Call]] = defaultdict(list)
    groups: dict[str, list[Call]] = defaultdict(list)
    for call in calls.values():
        if call.is_look_up:
            groups[call.name].append(call)
        elif call.invoke.op in ("config_get", "config_set"):
            config[str(call.invoke.args["key"])].append(call)
    for key in sorted(config):
        yield from _register(key, config[key])
    dropped: dict[int, int] = {}  # id -> position where a voter applied its end first
    for position, line in enumerate(era.events):
        if line.op == "group_dropped" and line.type == "event":
            dropped.setdefault(int(line.args["id"]), position)
    for name in sorted(groups):
        yield from _group(name, groups[name], dropped)


def _ends(era: Era, calls: dict[CallKey, Call]) -> Iterator[Violation]:
    went_down: dict[str, int] = {}
    for position, line in enumerate(era.events):
        if line.type == "event":
            if line.op in LIFE_OPS:
                went_down[line.node] = position
            continue
        call = calls.get(call_key(line))
        what = f"{line.op} {call_key(line)[1]} of {line.who}"
        if call is None:
            yield Violation("K1", f"{what} ended with {line.type} and had not begun", line.i)
        elif line.type == "invoke":
            if call.invoke is not line:
                yield Violation("K1", f"{what} began twice", line.i)
        elif call.end is not line:
            yield Violation("K1", f"{what} ended with {call.verdict} and again with {line.type}", line.i)
    if not era.converged:
        return
    for (client, number), call in calls.items():
        if call.end is not None or call.carried or call.is_look_up or call.invoke.op == "config_set":
            continue
        if went_down.get(call.invoke.node, -1) < call.began:
            yield Violation("K1", f"{call.invoke.op} {number} of {client} never ended", call.invoke.i)


def _register(key: str, calls: list[Call]) -> Iterator[Violation]:
    writer: dict[str, Call] = {}
    failed: set[str] = set()
    version_of: dict[str, int] = {}
    for call in calls:
        if call.invoke.op == "config_set":
            value = str(call.invoke.args["value"])
            if call.verdict == "fail":
                failed.add(value)
                continue
            if value in writer:
                yield Violation(
                    "K1", f"value {value!r} of {key} is set by two calls, which nobody can judge", call.invoke.i
                )
                return
            writer[value] = call
            if call.shown_seq and not call.carried:
                version_of[value] = call.shown_seq
    operations: list[Operation] = []
    for call in calls:
        if call.invoke.op != "config_get" or call.verdict != "ok" or call.carried or call.end is None:
            continue
        value, version, at = str(call.end.result.get("value", "")), call.shown_seq, call.end.i
        if version:
            source = writer.get(value)
            if source is None:
                reason = "setting it was reported as failed" if value in failed else "nobody set it"
                yield Violation("K1", f"{key} is read as {value!r}; {reason}", at)
                return
            if version_of.setdefault(value, version) != version:
                text = f"{key} is read as {value!r} in version {version}, elsewhere in version {version_of[value]}"
                yield Violation("K1", text, at)
                return
        operations.append(Operation(call.began, call.ended, write=False, version=version, at=at))
    operations.extend(_writes(writer, version_of))
    try:
        stuck = obstacle(operations)
    except Undecided:
        yield Violation("K1", f"{key}: too many possible orders, no verdict", calls[-1].invoke.i)
        return
    if stuck is not None:
        deed = "written" if stuck.write else "read"
        yield Violation("K1", f"{key}: no order of the calls explains version {stuck.version} {deed} here", stuck.at)


def _writes(writer: dict[str, Call], version_of: dict[str, int]) -> Iterator[Operation]:
    shown = {0, *version_of.values()}
    for value, call in writer.items():
        version = version_of.get(value)
        if version is None:
            continue  # unknown and never seen, or answered without a version: nothing depends on it
        replaces = call.invoke.args.get("if_version")
        known = replaces is not None and replaces in shown
        certain = call.verdict == "ok" and call.end is not None and not call.carried
        yield Operation(
            call.began,
            call.ended if certain else NEVER,
            write=True,
            version=version,
            replaces=int(replaces) if known and replaces is not None else None,
            at=call.end.i if call.end is not None else call.invoke.i,
        )


@attrs.define
class _Found:
    """One group of a name, as the answers tell of it."""

    found_at: int  # position where the first call that found it ended
    founder: str = ""


def _group(name: str, calls: list[Call], dropped: dict[int, int]) -> Iterator[Violation]:
    asked_from = min((call.began for call in calls if call.forms and call.verdict != "fail"), default=NEVER)
    known: dict[int, _Found] = {}
    answered = [call for call in calls if call.verdict == "ok" and call.end is not None and not call.carried]
    for call in sorted(answered, key=lambda call: call.ended):
        assert call.end is not None
        at, who, told = call.end.i, call.invoke.who, call.shown_seq
        for group, found in known.items():
            if call.began < found.found_at or group == told:
                continue
            if told and told < group:
                yield Violation("K1", f"group {name} is {group} and, for {who}, {told} again", at)
            elif dropped.get(group, NEVER) > call.ended:
                what = f"that group {name} is {told}" if told else f"there is no group {name}"
                yield Violation("K1", f"{who} is told {what}; it had been found before as {group}", at)
        if not told:
            continue
        if asked_from > call.ended:
            yield Violation("K1", f"{who} finds group {name}; nobody whose call may have worked had formed it", at)
        found = known.setdefault(told, _Found(call.ended))
        if call.end.result.get("formed"):
            # The node that formed it may be told so again; no other node ever is.
            leader = str(call.end.result.get("leader", ""))
            found.founder = found.founder or leader
            if leader != found.founder:
                yield Violation("K1", f"group {name} was formed by {found.founder} and, for {who}, a second time", at)
