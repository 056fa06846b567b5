"""C2: a token is used once, by somebody who showed it, and a key that was enrolled stays until it is revoked.

What is listed for a node is a line of words under its name (``groupsvcd.core.domain.listed_keys``), and comes with the
list of nodes as options do; that all are told the same of it is ``C1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from groupsvc.wire.enrolment_messages import NODE_KEY_PREFIX
from groupsvc.wire.history import HistoryEvent

from .eras import Era
from .verdict import Violation

Enrolment = tuple[str, str, str]
"""Node, its key, the token."""


@attrs.frozen
class Line:
    """What an entry has listed for a node, and the first event that tells of it."""

    node: str
    words: tuple[str, ...]  # none: nothing any more
    version: int
    seen: HistoryEvent

    @property
    def enrolment(self) -> Enrolment | None:
        """If it is one."""
        return (self.node, self.words[1], self.words[2]) if self.words[:1] == ("key",) else None


def line_of(args: dict[str, Any]) -> str:
    """What a call to enrol has listed, as far as who asked can know."""
    return f"key {args['key']} {args['token']}"


def without_time(line: str) -> str:
    """What is listed for a node but, of a key, for the time, which the daemon has added."""
    return " ".join(line.split(" ")[:3]) if line.startswith("key ") else line


def c2(era: Era) -> Iterator[Violation]:
    """Enrolments, in three parts.

    *Once*: of one token at most one key of one node is ever listed, or told to be.

    *By who showed it*: what is listed with a token somebody asked for, and was not told no each time; and for that node
    somebody had asked for that token.

    *Until it is revoked*: behind the line with a key there is, in the order of the entries, no line with another one or
    with a token, unless somebody asked to revoke it before that was seen.
    """
    lines = _lines(era)
    used: dict[str, Enrolment] = {}
    for line in lines:
        found = line.enrolment
        if found is not None and used.setdefault(found[2], found) != found:
            first = used[found[2]]
            text = f"token {found[2]} has enrolled {first[0]} with key {first[1]}, and {found[0]} with key {found[1]}"
            yield Violation("C2", text, line.seen.i)
            return
    yield from _by_who_showed_it(era, lines)
    yield from _until_revoked(era, lines)


def _lines(era: Era) -> list[Line]:
    """Every line that a list or an answer tells of, by version; of an entry with two the first, as ``C1`` sees that."""
    found: dict[tuple[str, int, str], Line] = {}

    def note(node: str, text: str, version: int, seen: HistoryEvent) -> None:
        words = tuple(text.split(" ")) if text else ()
        found.setdefault((node, version, text), Line(node, words, version, seen))

    for line in era.of("list_installed"):
        for key, (value, version) in line.args.get("options", {}).items():
            if key.startswith(NODE_KEY_PREFIX):
                note(key.removeprefix(NODE_KEY_PREFIX), without_time(value), version, line)
    for call in era.calls.values():
        if call.invoke.op == "enrol" and call.verdict == "ok" and not call.carried and call.end is not None:
            note(str(call.invoke.args["node"]), line_of(call.invoke.args), int(call.end.result["version"]), call.end)
    return sorted(found.values(), key=lambda line: (line.version, line.seen.i))


def _by_who_showed_it(era: Era, lines: list[Line]) -> Iterator[Violation]:
    asked: dict[Enrolment, int] = {}
    tokens: set[tuple[str, str]] = set()
    for call in era.calls.values():
        args = call.invoke.args
        if call.invoke.op == "enrol" and call.verdict != "fail":
            key = (str(args["node"]), str(args["key"]), str(args["token"]))
            asked[key] = min(call.invoke.i, asked.get(key, call.invoke.i))
        elif call.invoke.op == "token_make":
            tokens.add((str(args["node"]), str(args["token"])))
    for line in lines:
        found = line.enrolment
        if found is None:
            continue
        if asked.get(found, line.seen.i) >= line.seen.i:
            yield Violation(
                "C2", f"{found[0]} is listed with key {found[1]}; nobody who may be has enrolled it", line.seen.i
            )
        elif (found[0], found[2]) not in tokens:
            yield Violation("C2", f"{found[0]} was enrolled with {found[2]}, which is no token for it", line.seen.i)


def _until_revoked(era: Era, lines: list[Line]) -> Iterator[Violation]:
    revoking: dict[str, int] = {}
    for call in era.calls.values():
        if call.invoke.op == "token_revoke" and call.verdict != "fail":
            node = str(call.invoke.args["node"])
            revoking[node] = min(call.invoke.i, revoking.get(node, call.invoke.i))
    enrolled: dict[str, Line] = {}
    for line in lines:
        before = enrolled.get(line.node)
        if before is not None and line.version > before.version and line.words:
            if revoking.get(line.node, line.seen.i) >= line.seen.i:
                text = f"{line.node} was enrolled by entry {before.version}, and entry {line.version} lists"
                yield Violation("C2", f"{text} {' '.join(line.words)!r}, though nobody has revoked it", line.seen.i)
                return
        if line.enrolment is not None:
            enrolled[line.node] = line
        else:
            enrolled.pop(line.node, None)
