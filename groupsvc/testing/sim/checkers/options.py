"""C1: what the domain says about options of the daemons is the same for all who have the same list (MSG-13).

Options travel with the list of nodes, under its version, which is the number of a directory entry (``list_installed``).
So what a node has been told is a function of that number: of every option the newest value set at or before it.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from groupsvc.wire.enrolment_messages import NODE_KEY_PREFIX
from groupsvc.wire.history import HistoryEvent
from groupsvc.wire.option_messages import OPTION_PREFIX

from .enrolments import line_of, without_time
from .eras import Era
from .lives import LIFE_OPS, Lives
from .verdict import Violation

KNOWN_WITHIN_S = 2.0
"""From when an option was seen to be set until everybody has it, in a domain in which nothing is wrong."""


@attrs.frozen
class Known:
    """An option as an entry set it, and when that was first seen."""

    key: str
    value: str
    since: float


def c1(era: Era) -> Iterator[Violation]:
    """Options, in three parts.

    *One value*: an entry set one option to one value, whoever tells of it: a list, or the answer to who set it. What is
    listed for a node is such a value: who was told that it is enrolled is in every list from that entry on.

    *As of the list*: with version s a node has of each option the newest value set at or before s, and none set after.
    An entry that nobody ever told of is not missed.

    *In the end* of a converged run every running node has the newest of all, but for what was set in the last moment.
    """
    entries: dict[int, Known] = {}
    lists = list(era.of("list_installed"))
    for key, value, version, line in _told(era, lists):
        known = entries.setdefault(version, Known(key, value, line.t))
        if known.key != key or value not in (known.value, _as_answered(known)):
            text = f"entry {version} set {known.key} to {known.value!r}, and {key} to {value!r} as {line.node} has it"
            yield Violation("C1", text, line.i)
            return
        if line.t < known.since:
            entries[version] = attrs.evolve(known, since=line.t)
    for line in lists:
        has, due = _options(line), _as_of(entries, line.seq)
        if has != due:
            text = f"{line.node} has list version {line.seq} with options {has}, and {due} were set by then"
            yield Violation("C1", text, line.i)
            return
    if era.converged and era.events:
        yield from _at_the_end(era, entries)


def _as_answered(known: Known) -> str:
    """What the answer to who set it tells: of the key of a node not all."""
    return without_time(known.value) if known.key.startswith(NODE_KEY_PREFIX) else known.value


def _told(era: Era, lists: list[HistoryEvent]) -> Iterator[tuple[str, str, int, HistoryEvent]]:
    for line in lists:
        for key, (value, version) in _options(line).items():
            yield key, value, version, line
    for call in era.calls.values():
        if call.verdict != "ok" or call.carried or call.end is None:
            continue
        if call.invoke.op in ("enrol", "token_revoke"):
            args, version = call.invoke.args, int(call.end.result["version"])
            yield NODE_KEY_PREFIX + args["node"], line_of(args) if call.invoke.op == "enrol" else "", version, call.end
        if call.invoke.op != "config_set":
            continue
        key = str(call.invoke.args["key"])
        if key.startswith(OPTION_PREFIX):
            yield key, str(call.invoke.args["value"]), int(call.end.result["version"]), call.end


def _options(line: HistoryEvent) -> dict[str, tuple[str, int]]:
    return {key: (value, version) for key, (value, version) in line.args.get("options", {}).items()}


def _as_of(entries: dict[int, Known], seq: float, until: float = float("inf")) -> dict[str, tuple[str, int]]:
    """Of each option the newest value that an entry up to ``seq`` set, seen by ``until``."""
    found: dict[str, tuple[str, int]] = {}
    for version in sorted(entries):
        known = entries[version]
        if version <= seq and known.since <= until:
            found[known.key] = (known.value, version)
    return found


def _at_the_end(era: Era, entries: dict[int, Known]) -> Iterator[Violation]:
    lives = Lives()
    last: dict[str, HistoryEvent] = {}
    for line in era.of(*LIFE_OPS, "list_installed"):
        if line.op == "list_installed":
            last[line.node] = line
        else:
            lives.see(line)
            last.pop(line.node, None)
    due = _as_of(entries, float("inf"), until=era.events[-1].t - KNOWN_WITHIN_S)
    for node in lives.running():
        has = _options(last[node]) if node in last else {}
        behind = sorted(key for key, (_, version) in due.items() if has.get(key, ("", 0))[1] < version)
        if behind:
            yield Violation("C1", f"{node} ends without what was set of {', '.join(behind)}: it has {has}", era.end)
