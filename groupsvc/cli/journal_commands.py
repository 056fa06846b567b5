"""``groupsvc journal``: show, check and compact the event journals of daemons. It asks nobody and needs no daemon."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..journals.auditing import RULES, audit
from ..journals.findings import Findings
from ..journals.reading import SegmentLines
from ..wire.history import HistoryEvent, to_line
from .exit_codes import EXIT_CODES_TEXT, ExitCode
from .tables import one_line

if TYPE_CHECKING:
    from .options import Commands


def add(commands: Commands) -> None:
    """Add the parsers of these commands."""
    parser = commands.add_parser(
        "journal", help="show, check and compact event journals",
        description="Show, check and compact what daemons with a journal_directory have written.",
        epilog=f"example:\n  groupsvc journal check n1/ n2/ n3/\n\n{EXIT_CODES_TEXT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.set_defaults(command=lambda options: _incomplete(parser))
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    show = _verb(verbs, "show", "print journals, a line for each event", "groupsvc journal show n1.*.ndjson")
    show.add_argument("files", nargs="+", type=Path, metavar="FILE", help="segments, as lines or as Parquet")
    show.add_argument("--kind", action="append", default=[], metavar="KIND", help="only these; may be given again")
    show.add_argument("--group", type=_group_id, dest="group_id", metavar="ID", help="only lines about this group")
    show.add_argument("--json", action="store_true", help="print the lines as they are")
    show.set_defaults(command=_show, ends_unread=True)
    check = _verb(
        verbs, "check", "compare the journals of several nodes: order, views, ballots, barriers",
        "groupsvc journal check n1/ n2/ n3/",
    )  # fmt: skip
    check.add_argument("paths", nargs="+", type=Path, metavar="DIR", help="directories with journals, or segments")
    check.add_argument("--json", action="store_true", help="print an object for programs")
    check.add_argument("--quiet", action="store_true", help="do not tell what is being read")
    check.set_defaults(command=_check)
    compact = _verb(
        verbs, "compact", "turn segments that no daemon writes to into Parquet",
        "groupsvc journal compact /var/log/groupsvc",
    )  # fmt: skip
    compact.add_argument("directory", type=Path, metavar="DIR", help="where the journals are")
    compact.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: the same directory)")
    compact.add_argument("--keep", action="store_true", help="do not remove what was compacted")
    compact.add_argument("--dry-run", action="store_true", help="only tell what would be done")
    compact.add_argument("--json", action="store_true", help="print an object for each segment")
    compact.set_defaults(command=_compact)


def _group_id(text: str) -> int:
    """Journals have no names of groups in them: there may be several of one name, one after the other."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number; that of a group is told by `groupsvc look-up NAME`")
    return int(text)


def _verb(verbs: Commands, name: str, help: str, example: str) -> argparse.ArgumentParser:
    return verbs.add_parser(
        name, help=help, description=help[0].upper() + help[1:] + ".",
        epilog=f"example:\n  {example}\n\n{EXIT_CODES_TEXT}", formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip


def _incomplete(parser: argparse.ArgumentParser) -> ExitCode:
    parser.print_help(sys.stderr)
    return ExitCode.USAGE


# --- Show ---


def _show(options: argparse.Namespace) -> ExitCode:
    code = ExitCode.OK
    found: set[str] = set()
    groups: set[int] = set()
    for file in options.files:
        if file.is_dir():
            raise UsageError(f"{file} is a directory; show takes files, as in {file}/*.ndjson")
        if not file.is_file():
            raise UsageError(f"there is no file {file}")
        lines = SegmentLines(file)
        for _, line in lines:
            found.add(line.op)
            groups.add(line.group)
            if (not options.kind or line.op in options.kind) and options.group_id in (None, line.group):
                print(to_line(line).decode().rstrip() if options.json else in_words(line))
        for problem in lines.unreadable:
            print(one_line(f"groupsvc: {problem}"), file=sys.stderr)
            code = ExitCode.FAILED
        if lines.torn_bytes:
            print(f"groupsvc: {file}: the last {lines.torn_bytes} bytes are no whole line", file=sys.stderr)
    for kind in sorted(set(options.kind) - found):
        print(one_line(f"groupsvc: no line is of kind {kind!r}; there are {', '.join(sorted(found))}"), file=sys.stderr)
    if options.group_id is not None and options.group_id not in groups:
        numbers = ", ".join(map(str, sorted(groups)))
        print(f"groupsvc: no line is about group {options.group_id}; there are {numbers or 'none'}", file=sys.stderr)
    return code


def in_words(line: HistoryEvent) -> str:
    """One line for people: which, when (by its wall clock, UTC), who, what, about what."""
    when = datetime.fromtimestamp(line.wall_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"
    parts = [f"{line.i:>7} {when} {line.node} {line.op}"]
    for name in ("group", "epoch", "seq", "origin", "n", "crc"):
        value = getattr(line, name)
        if value:
            parts.append(f"{name}={value}")
    parts += [f"{name}={_brief(value)}" for name, value in line.args.items()]
    return one_line(" ".join(parts))


def _brief(value: Any) -> str:
    if isinstance(value, list):
        if value and isinstance(value[-1], int | str) and len(value) == 3 and isinstance(value[0], str):
            return "/".join(map(str, value))
        return "[" + " ".join(map(_brief, value)) + "]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# --- Check ---


def _check(options: argparse.Namespace) -> ExitCode:
    def tell(text: str) -> None:
        if not options.quiet:
            print(one_line(f"groupsvc: {text}"), file=sys.stderr)

    found = audit(options.paths, tell)
    if options.json:
        print(json.dumps(_in_json(found), sort_keys=True))
    else:
        for line in report(found):
            print(one_line(line))
    return ExitCode.CONTRADICTION if found.contradictions else ExitCode.OK


def report(found: Findings) -> Iterable[str]:
    """What was found, for people."""
    yield from map(str, found.contradictions)
    yield f"{found.lines} lines, {len(found.contradictions)} contradictions"
    yield "compared:"
    for rule, (_, text) in RULES.items():
        if found.compared[rule]:
            yield f"  {rule:<4} {found.compared[rule]:>8}  {text}"
    yield "not checked:"
    for rule, (_, text) in RULES.items():
        if not found.compared[rule]:
            yield f"  {rule:<4}           {text}: nothing here to compare"
    for why, count in found.unchecked.items():
        yield f"  {why}" + (f" ({count})" if count else "")


def _in_json(found: Findings) -> dict[str, Any]:
    return {
        "lines": found.lines,
        "contradictions": [
            {"rule": one.rule, "text": one.text, "places": [[str(at.file), at.line] for at in one.places]}
            for one in found.contradictions
        ],
        "compared": dict(found.compared),
        "unchecked": found.unchecked,
    }


# --- Compact ---


def _compact(options: argparse.Namespace) -> ExitCode:
    from ..journals.parquet import compact  # pyarrow is an extra

    code, are_none = ExitCode.OK, True
    for done in compact(options.directory, options.out, keep=options.keep, dry_run=options.dry_run):
        are_none = False
        if done.what == "unreadable":
            code = ExitCode.FAILED
        if options.json:
            about = {"file": str(done.file), "what": done.what, "rows": done.rows, "torn_bytes": done.torn_bytes}
            print(json.dumps(about | ({"problem": done.problem} if done.problem else {})), flush=True)
            continue
        text = f"{done.file.name}: {done.what}"
        text += f", {done.rows} lines" if done.what != "open" else ": a daemon writes to it"
        text += f"; the last {done.torn_bytes} bytes were no whole line" if done.torn_bytes else ""
        text += f"; left as it is: {done.problem}" if done.problem else ""
        print(one_line(text), flush=True)
    if are_none:
        print(one_line(f"groupsvc: there are no journals in {options.directory}"), file=sys.stderr)
    return code
