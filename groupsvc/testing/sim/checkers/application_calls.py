"""K1, K2, B1, B5, G9, L6 for applications: what they are answered is true, and they act only while it may be.

Every value and every message of an application is unlike any other, so each tells whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from groupsvc.wire.history import HistoryEvent

from .application_stories import Stories, Story
from .calls import NEVER
from .invocations import Call, CallKey, call_key
from .linearizability import Operation, Undecided, obstacle
from .verdict import Violation

LEGAL = {
    "suspended": {"connected", "lost", "closed"},
    "connected": {"suspended", "lost", "closed"},
    "lost": {"closed"},
    "closed": set[str](),
}
"""From which state of a session to which; a new one is suspended."""

PROPOSING = frozenset({
    "join_group", "leave_group", "propose_state", "send_by_ballot", "expel", "change_attributes"
})  # fmt: skip
"""Calls that make proposals."""

BEFORE_IT_IS_OPEN = frozenset({"open_session"})


def k1(stories: Stories, converged: bool, waiting: frozenset[str], lost: frozenset[int]) -> Iterator[Violation]:
    """Every call ends once; in a converged run each has ended. What failed had no effect, then or later.

    ``waiting`` and ``lost``: names and ids of groups that wait for their disks for ever.

    A join that came too late is taken back. If others saw it come, and go, it has not failed: its end is not known.
    """
    yield from _ends(stories, converged, waiting, lost)
    yield from _effects_of_failed(stories)
    yield from _named(stories)


def _ends(stories: Stories, converged: bool, waiting: frozenset[str], lost: frozenset[int]) -> Iterator[Violation]:
    ends: dict[CallKey, str] = {}
    for line in stories.lines:
        if line.type == "event":
            continue
        key = call_key(line)
        what = f"{line.op} {key[1]} of {line.who}"
        if line.type == "invoke":
            if key in ends:
                yield Violation("K1", f"{what} began twice", line.i)
            ends[key] = ""
        elif key not in ends:
            yield Violation("K1", f"{what} ended with {line.type} and had not begun", line.i)
        elif ends[key]:
            yield Violation("K1", f"{what} ended with {ends[key]} and again with {line.type}", line.i)
        else:
            ends[key] = line.type
    if converged:
        for key, end in ends.items():
            invoke = stories.calls[key].invoke
            if not end and invoke.group not in lost and invoke.args.get("name") not in waiting:
                yield Violation("K1", f"{invoke.op} {key[1]} of {invoke.who} never ended", invoke.i)


def _effects_of_failed(stories: Stories) -> Iterator[Violation]:
    failed: dict[str, Call] = {}
    for call in stories.calls.values():
        if call.verdict != "fail" or call.end is None:
            continue
        args, op = call.invoke.args, call.invoke.op
        if op == "propose_state":
            failed[str(args["value"])] = call
        elif op in ("send_by_ballot", "submit_outside"):
            failed[str(args["payload"])] = call
        elif op == "join_group":
            failed[str(args["as"])] = call
    for (group, seq, crc), line in stories.first_told.items():
        full, kind = stories.full[group, seq, crc], line.args["kind"]
        for value in _shown(kind, full):
            if value in failed:
                call = failed[value]
                text = f"{call.invoke.op} {call.invoke.args['id']} of {call.invoke.who} failed, and {value!r} is {kind}"
                yield Violation("K1", text, line.i)


def _named(stories: Stories) -> Iterator[Violation]:
    """A proposal whose end is not known is named: as it is called where it ended, if it did."""
    called: dict[str, str] = {}
    for full in stories.full.values():
        if "approved" in full and full["about"] == "message":
            called[str(full["payload"])] = full["proposal"]
    for call in stories.calls.values():
        if call.invoke.op not in PROPOSING or call.end is None or call.end.result.get("error") != "OutcomeUnknown":
            continue
        ids = call.end.result["ids"]
        what = f"{call.invoke.op} {call.invoke.args['id']} of {call.invoke.who}"
        if len(ids) != 1:
            yield Violation("K1", f"{what} is not known, and named {ids}", call.end.i)
        elif called.get(str(call.invoke.args.get("payload")), ids[0]) != ids[0]:
            known = called[str(call.invoke.args["payload"])]
            yield Violation("K1", f"{what} is not known, and named {ids[0]}; it ended as {known}", call.end.i)


def _shown(kind: str, full: dict[str, Any]) -> Iterator[str]:
    """Unique values that this shows to have had a turn."""
    if kind == "state":
        yield str(full["value"])
    elif kind == "message":
        yield str(full["payload"])
    elif kind == "joined":
        yield from (str(name) for _, name, _ in full["providers"])
    elif kind == "proposed" and full["phase"] == 1 and full["about"] == "state":
        yield str(full["state"])
    elif kind in ("proposed", "ended") and full["about"] == "message":
        yield str(full["payload"])


# --- K2 -----------------------------------------------------------------------------------------------------


def k2(stories: Stories, domain: Sequence[HistoryEvent]) -> Iterator[Violation]:
    """States of a session follow one another as they may, and nobody acts but while its session is connected.

    Nor does anybody act after the others were told that it is no more, with its node. A vote that is written down when
    it arrives was an act when it was sent.
    A node whose daemon was killed may be given up early: its applications find out by their own clocks, and until then
    go on in groups that do not wait for that.
    """
    states: dict[tuple[str, int], str] = {}
    now: dict[str, str] = {}
    early = _given_up_early(domain)
    taken_over: dict[str, HistoryEvent] = {}
    sent: set[tuple[str, int, int, int]] = set()  # votes: who, in which part, on which ballot, in which phase
    for line in stories.lines:
        if line.op == "session":
            key, state = (line.who, int(line.args["session"])), str(line.args["state"])
            before = states.get(key, "suspended")
            if state not in LEGAL[before]:
                yield Violation("K2", f"session {key[1]} of {line.who} is {state} after {before}", line.i)
            states[key] = now[line.who] = state
        elif line.op == "process_ended":
            now.pop(line.who, None)
        elif line.op == "told":
            if line.args["kind"] == "failing":
                full = stories.of(line)
                if full["cause"] == "node_failure":
                    taken_over.setdefault(str(full["provider"]), line)
        elif line.op == "vote" and line.args.get("arrived") and _vote_of(line) in sent:
            continue
        elif (line.type == "invoke" and line.op not in BEFORE_IT_IS_OPEN) or line.op in ("vote", "vote_sent"):
            if line.op == "vote_sent":
                sent.add(_vote_of(line))
            if now.get(line.who) != "connected":
                yield Violation("K2", f"{line.who} does {line.op} while it is {now.get(line.who)}", line.i)
            story = stories.by_key.get((line.who, int(line.args.get("m", 0))))
            if story is not None and story.provider in taken_over and story.ended is not None:
                node, inc, _ = story.provider.rsplit("/", 2)
                if (node, int(inc)) not in early and story.ended.i > line.i:
                    text = f"{story.title} does {line.op} after others were told that it is no more"
                    yield Violation("K2", text, line.i)


def _vote_of(line: HistoryEvent) -> tuple[str, int, int, int]:
    return (line.who, int(line.args["m"]), int(line.args["ballot"]), int(line.args["phase"]))


def _given_up_early(domain: Sequence[HistoryEvent]) -> set[tuple[str, int]]:
    """Incarnations of nodes that were declared down before their leases were over, or killed."""
    found = {(str(line.args["name"]), int(line.args["inc"])) for line in domain
             if line.op == "node_down" and line.args.get("early")}  # fmt: skip
    found |= {(line.node, line.inc) for line in domain if line.op in ("crash", "halted") and line.type == "event"}
    return found


# --- Messages -------------------------------------------------------------------------------------------------


def b1(stories: Stories) -> Iterator[Violation]:
    """Integrity of messages: only what was sent, in the name of who sent it, once."""
    sent: dict[str, HistoryEvent] = {}
    for line in stories.lines:
        if line.type == "invoke" and line.op in ("multicast", "send_by_ballot", "submit_outside"):
            sent[str(line.args["payload"])] = line
    place_of: dict[str, tuple[int, int]] = {}
    for (group, seq, _), line in stories.first_told.items():
        if line.args["kind"] != "message":
            continue
        full = stories.of(line)
        payload, sender = str(full["payload"]), str(full["sender"])
        invoke = sent.get(payload)
        if invoke is None or invoke.i > line.i:
            yield Violation("B1", f"{line.who} is told {payload!r}, which nobody had sent", line.i)
            continue
        if place_of.setdefault(payload, (group, seq)) != (group, seq):
            yield Violation("B1", f"{payload!r} is told as {place_of[payload]} and as {(group, seq)}", line.i)
        story = stories.by_key.get((invoke.who, int(invoke.args.get("m", 0))))
        if story is not None and (story.provider, story.group) != (sender, group):
            text = f"{payload!r} of {story.title} is told in the name of {sender} in group {group}"
            yield Violation("B1", text, line.i)


def b5(stories: Stories) -> Iterator[Violation]:
    """FIFO: of each sender's multicasts every listener is told one after the other, none left out, none twice.

    ``flush`` that ends well: all that were sent before it have come back. ``catch_up``: all that anybody had been told
    of when it began, and everything up to the number in its answer, has been told.
    """
    for story in stories.by_key.values():
        if story.provider:
            yield from _in_order(stories, story)
    came_back: set[CallKey] = set()
    sent: dict[tuple[str, int], list[CallKey]] = {}
    before: dict[CallKey, list[CallKey]] = {}
    told_to: dict[tuple[str, int], int] = {}
    newest: dict[int, int] = {}
    at_least: dict[CallKey, int] = {}
    for line in stories.lines:
        if line.op == "told":
            told_to[line.who, int(line.args["m"])] = line.seq
            if not stories.is_void(line):
                newest[line.group] = max(newest.get(line.group, 0), line.seq)
        elif line.op == "multicast":
            if line.type == "invoke":
                sent.setdefault((line.who, int(line.args["m"])), []).append(call_key(line))
            elif line.type == "ok":
                came_back.add(call_key(line))
        elif line.op == "flush":
            if line.type == "invoke":
                before[call_key(line)] = list(sent.get((line.who, int(line.args["m"])), ()))
            elif line.type == "ok" and not came_back.issuperset(before[call_key(line)]):
                whose = stories.by_key.get((line.who, int(line.args["m"])))
                if whose is not None and whose.missed_at >= 0:
                    continue  # they came back, and were not read
                missing = sorted(set(before[call_key(line)]) - came_back)
                yield Violation("B5", f"a flush of {line.who} ends well, and {missing} have not come back", line.i)
        elif line.op == "catch_up":
            if line.type == "invoke":
                at_least[call_key(line)] = newest.get(line.group, 0) if line.group else 0
            elif line.type == "ok":
                yield from _has_caught_up(stories, line, at_least[call_key(line)], told_to)


def _has_left_before(story: Story, line: HistoryEvent) -> bool:
    """Whether nothing more was told to it by then: what it asked before is answered all the same."""
    return story.ended is not None and story.ended.i < line.i


def _in_order(stories: Stories, story: Story) -> Iterator[Violation]:
    last: dict[str, int] = {}
    for told in story.whole:
        for line in told.lines:
            if line.args["kind"] != "message":
                continue
            payload = str(stories.of(line)["payload"])
            sender, _, number = payload.rpartition(":")
            if not sender:
                continue  # by ballot, or from outside
            expected = last.get(sender, int(number) - 1) + 1
            last[sender] = int(number)
            if int(number) != expected:
                text = f"{story.title} is told message {number} of {sender}, {expected} would have been next"
                yield Violation("B5", text, line.i)


def _has_caught_up(
    stories: Stories, line: HistoryEvent, at_least: int, told_to: dict[tuple[str, int], int]
) -> Iterator[Violation]:
    story = stories.by_key.get((line.who, int(line.args["m"])))
    if story is None or not story.group or story.missed_at >= 0 or _has_left_before(story, line):
        return
    if stories.is_void(line):
        return
    seq = int(line.result["seq"])
    if seq < at_least:
        text = f"{story.title} has caught up with {seq}; {at_least} had been told before it asked"
        yield Violation("B5", text, line.i)
    reached = told_to.get((story.who, story.m), int(story.view["seq"]))
    due = stories.newest_upto(story.group, seq, to_subscribers=not story.provider)
    if max(reached, int(story.view["seq"])) < due:
        yield Violation("B5", f"{story.title} has caught up with {seq}, and was told only up to {reached}", line.i)


# --- G9, L6 -----------------------------------------------------------------------------------------------------


def g9(stories: Stories) -> Iterator[Violation]:
    """The state value: a version has one value, and compare-and-set is linearizable.

    All calls that change it or have caught up with it can be put into one order.
    A version that came with a vote is nobody's call: it may have been written at any time. So is the empty value, which
    nobody proposes: with its last provider a group loses its value, perhaps more than once. It is told only with an
    entry by which somebody leaves, and nobody is left.
    """
    for group, _ in stories.groups():
        value_of: dict[int, str] = {}
        version_of: dict[str, int] = {}
        for (of, _, _), line in stories.first_told.items():
            if of != group or line.args["kind"] != "state":
                continue
            full = stories.of(line)
            version, value = int(full["version"]), str(full["value"])
            if value_of.setdefault(version, value) != value:
                text = f"version {version} of the state of group {group} is {value!r} and {value_of[version]!r}"
                yield Violation("G9", text, line.i)
            if not value and not _is_emptied(stories, line):
                text = f"version {version} of the state of group {group} is empty, though somebody is there"
                yield Violation("G9", text, line.i)
            if value and version_of.setdefault(value, version) != version:
                text = f"{value!r} is version {version} and {version_of[value]} of the state of group {group}"
                yield Violation("G9", text, line.i)
        yield from _register(stories, group, version_of, set(value_of))


def _is_emptied(stories: Stories, line: HistoryEvent) -> bool:
    """Whether this entry removed the last provider, as far as who was told of it knows."""
    story = stories.by_key.get((line.who, int(line.args["m"])))
    if story is None or story.missed_at >= 0:
        return True
    listed = {str(one[0]) for one in story.view["providers"]}
    for told in story.told:
        if told.seq > line.seq:
            break
        for one in told.lines:
            if one.i > line.i:
                break
            if one.args["kind"] == "joined":
                listed.update(str(provider[0]) for provider in stories.of(one)["providers"])
            elif one.args["kind"] == "left":
                listed.difference_update(stories.of(one)["providers"])
    return not listed


def _register(stories: Stories, group: int, version_of: dict[str, int], unclaimed: set[int]) -> Iterator[Violation]:
    operations: list[Operation] = []
    known = {0, *unclaimed}
    for call in stories.calls.values():
        invoke, end = call.invoke, call.end
        if invoke.group != group:
            continue
        if invoke.op == "propose_state":
            version = version_of.get(str(invoke.args["value"]))
            if version is None:
                continue
            unclaimed.discard(version)
            replaces = invoke.args["if_version"]
            certain = call.verdict == "ok" and end is not None and not stories.is_void(end)
            operations.append(
                Operation(
                    call.began, call.ended if certain else NEVER, write=True, version=version,
                    replaces=replaces if replaces in known else None, at=invoke.i,
                )
            )  # fmt: skip
        elif invoke.op == "catch_up" and call.verdict == "ok" and end is not None:
            version = int(end.result["version"])
            story = stories.by_key.get((end.who, int(end.args["m"])))
            is_told = story is not None and not _has_left_before(story, end) and not stories.is_void(end)
            if version in known and is_told:
                operations.append(Operation(call.began, call.ended, write=False, version=version, at=end.i))
    operations += [Operation(0, NEVER, write=True, version=version) for version in sorted(unclaimed)]
    try:
        stuck = obstacle(operations)
    except Undecided:
        return
    if stuck is not None:
        deed = "written" if stuck.write else "read"
        text = f"group {group}: no order of the calls explains that version {stuck.version} of the state is {deed} here"
        yield Violation("G9", text, stuck.at)


def l6(stories: Stories) -> Iterator[Violation]:
    """Fences: one for each entry, and they only grow.

    They do with every change of membership, and from a group to the next one of the same name.
    """
    highest: dict[str, tuple[int, int]] = {}  # by name: the highest fence so far, and of which group
    for group, those in stories.groups():
        fences: dict[int, int] = {}
        changes: set[int] = set()
        at: dict[int, int] = {}
        for story in those:
            if story.provider:
                fences.setdefault(int(story.view["seq"]), int(story.view["fence"]))
                at.setdefault(int(story.view["seq"]), story.began.i)
            for told in story.whole:
                for line in told.lines:
                    if line.args["kind"] == "message":
                        continue
                    fence = int(line.args["fence"])
                    at.setdefault(told.seq, line.i)
                    if told.seq > story.view["seq"] and fences.setdefault(told.seq, fence) != fence:
                        text = f"{story.title} is shown fence {fence} with {told.seq}, others {fences[told.seq]}"
                        yield Violation("L6", text, line.i)
                    if line.args["kind"] in ("joined", "left"):
                        changes.add(told.seq)
        name = those[0].name
        below, earlier = highest.get(name, (-1, 0))
        for seq, fence in sorted(fences.items()):
            if fence < below or (fence == below and (seq in changes or earlier != group)):
                what = f"group {earlier}" if earlier != group else "it"
                yield Violation("L6", f"group {group} has fence {fence} with {seq}, {what} had {below}", at[seq])
            if fence > below:
                below, earlier = fence, group
        highest[name] = (below, group)
