"""An audit from its first file to its last finding.

Files are listed, read, typed and written once as Parquet (``lines``); from that follow the tables that the rules share
(``followed``); then every check is asked, some at a time, as most of them are short and leave cores idle. Nothing
of the data itself comes to the driver: of each check so many contradictions as ``FOUND_MAX``, and how many there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs

from ...errors import Failed
from . import completeness, followed
from .ballot_checks import BALLOT_CHECKS, ballot_tables
from .barrier_checks import BARRIER_CHECKS, barrier_tables
from .checks import Check
from .grounds import Evidence, Process
from .leader_checks import LEADER_CHECKS
from .lines import copies, keep, kept, read
from .lives import cuts_in
from .order_checks import ORDER_CHECKS
from .place import Place
from .program_checks import PROGRAM_CHECKS
from .sources import Sources, sources
from .unchecked import Unchecked, unchecked
from .view_checks import VIEW_CHECKS
from .worktable import WorkTables

CHECKS: tuple[Check, ...] = (
    *ORDER_CHECKS, *PROGRAM_CHECKS, *VIEW_CHECKS, *LEADER_CHECKS, *BALLOT_CHECKS, *BARRIER_CHECKS,
)  # fmt: skip

FOUND_MAX = 1_000
"""Contradictions of one check that are shown; one bug often breaks a promise at every line after it."""

LINE_BYTES = {"lines": 220, "parquet": 20}
"""About so long is a line in a file of each form."""

SMALL_LINES = 500_000
"""With fewer, plans are not made anew while they run: that would take longer than it saves."""

PARTITION_LINES = 150_000
"""Of what is read, for one partition of a shuffle."""

AT_ONCE = 4
"""Checks that run at a time."""

TELL_EVERY = 10
"""So many are answered before somebody is told again."""

END_S = 3.0
"""Who wrote in the last so many seconds of a domain's journals was there to the end."""

Progress = Callable[[str], None]


@attrs.frozen(kw_only=True)
class Violation:
    """Two lines, or one, that cannot both be if the service keeps its word."""

    invariant: str
    promise: str
    domain: str
    group: int
    sequence: int
    nodes: tuple[str, ...]
    text: str
    first: str  # where the line stands: node.boot:line
    second: str
    first_line: str
    second_line: str


@attrs.frozen(kw_only=True)
class Asked:
    """What became of one check."""

    check: Check
    lines: int  # that it has looked at
    violations: int
    why_not: str = ""  # "" if it was asked
    but: tuple[str, ...] = ()  # what it has not seen

    @property
    def verdict(self) -> str:
        """In words."""
        if self.why_not:
            return f"not checked: {self.why_not}"
        return "; ".join(("violated" if self.violations else "holds", *self.but))


@attrs.frozen(kw_only=True)
class Findings:
    """Of one audit."""

    violations: tuple[Violation, ...]
    asked: tuple[Asked, ...]
    unchecked: tuple[Unchecked, ...]
    sources: Sources
    lines: int
    seconds: dict[str, float]

    @property
    def is_sound(self) -> bool:
        """Whether nothing contradicts anything."""
        return not self.violations


class Audit:
    """One run; a context manager, as its tables live until it ends."""

    def __init__(
        self, spark: Any, paths: Iterable[str], work: Place, *, apart: bool = False, settled: bool = False,
        progress: Progress = lambda text: None,
    ) -> None:  # fmt: skip
        self.work = WorkTables(spark, work)
        self._spark, self._place, self._settled, self._progress = spark, work, settled, progress
        self._sources = sources(spark, paths, apart=apart)
        self._lines_about = sum(one.bytes // LINE_BYTES[one.form] for one in self._sources.files)
        self._partitions = max(2, min(2_000, self._lines_about // PARTITION_LINES))
        self.seconds: dict[str, float] = {}
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> Audit:
        for name, value in self._settings().items():
            self._before[name] = self._spark.conf.get(name, None)
            self._spark.conf.set(name, value)
        return self

    def __exit__(self, *_: object) -> None:
        self.work.close()
        for name, value in self._before.items():
            if value is None:
                self._spark.conf.unset(name)
            else:
                self._spark.conf.set(name, value)

    def findings(self) -> Findings:
        """Read everything, and compare."""
        self._timed(f"reading {len(self._sources.files)} files", "reading", self._read)
        self._timed("who delivered what, after what, among whom", "placing", self._place_all)
        found = self._timed(f"asking {len(CHECKS)} checks", "checking", self._ask_all)
        asked = tuple(one for one, _ in found)
        rows = [(one.check, row) for one, those in found for row in those]
        rows += self._of_the_files()
        violations = self._timed("looking up lines", "lines", lambda: self._with_lines(rows)) if rows else ()
        lines = self.work.sql("SELECT count(*) FROM {lines}").collect()[0][0]
        if not lines:
            raise Failed("not one line of these journals can be read here, so nothing was checked")
        return Findings(
            violations=violations, asked=asked, unchecked=unchecked(self.work, self._sources, asked), lines=lines,
            sources=self._sources, seconds=dict(self.seconds),
        )  # fmt: skip

    def _timed(self, words: str, name: str, what: Callable[[], Any]) -> Any:
        self._progress(words)
        began = time.monotonic()
        found = what()
        self.seconds[name] = round(time.monotonic() - began, 3)
        return found

    # --- Tables ---

    def _settings(self) -> dict[str, str]:
        """What is quick for so much data. Over few lines to plan a query takes longer than to run it."""
        return {
            "spark.sql.shuffle.partitions": str(self._partitions),
            "spark.sql.adaptive.enabled": str(self._lines_about >= SMALL_LINES).lower(),
            "spark.sql.constraintPropagation.enabled": "false",
            "spark.sql.ansi.enabled": "false",
            "spark.sql.maxConcurrentOutputFileWriters": "8",  # lines are written by class, and need not be sorted first
        }

    def _read(self) -> None:
        work, place = self.work, self._place.under("lines")
        keep(read(self._spark, self._sources).coalesce(self._partitions), place)  # many files can be very small
        cuts = cuts_in(kept(self._spark, place, {}))
        work.name_frame("every_line", kept(self._spark, place, cuts))
        work.name("lines", "SELECT * FROM {every_line} WHERE class NOT IN ('unreadable', 'other version')")
        work.name("unexpected", UNEXPECTED.replace("{torn}", self._torn()))
        work.make("control", "SELECT * FROM {lines} WHERE class = 'control' AND boot != ''")
        histories = [one.domain for one in self._sources.files if one.segment is None] or [" "]
        quoted = ", ".join(f"'{_quoted(name)}'" for name in dict.fromkeys(histories))
        work.make("numbered", completeness.NUMBERED.replace("{histories}", quoted))
        work.name("broken", completeness.BROKEN)
        work.make("holes", completeness.HOLES)
        work.name("bare_runs", completeness.RUNS)
        work.make("runs", completeness.WITH_CLOCKS.replace("{histories}", quoted))
        condition = "true" if self._settled else (
            "domain IN (SELECT domain FROM {every_line} WHERE class = 'program' AND kind = 'run'"
            " AND get_json_object(args, '$.converged') = 'true')"
        )  # fmt: skip
        work.name("settled", f"SELECT DISTINCT domain FROM {{runs}} WHERE {condition}")
        work.name("last_runs", LAST_RUNS)

    def _torn(self) -> str:
        """How many lines cannot be read because their file was cut off: one in each, at most."""
        torn: dict[str, int] = {}
        for one in self._sources.torn:
            torn[one.domain] = torn.get(one.domain, 0) + 1
        cases = " ".join(f"WHEN '{_quoted(domain)}' THEN {count}" for domain, count in torn.items())
        return f"CASE domain {cases} ELSE 0 END" if torn else "0"

    def _place_all(self) -> None:
        followed.tables(self.work)
        ballot_tables(self.work)
        barrier_tables(self.work)
        self._evidence = self._counted()

    def _counted(self) -> Evidence:
        """What is there for checks to look at."""
        lines: dict[str, dict[str, dict[str, int]]] = {}
        for row in self.work.sql(COUNTS).collect():
            for name in filter(None, (row["kind"], row["special"])):
                nodes = lines.setdefault(row["domain"], {}).setdefault(name, {})
                nodes[row["node"]] = nodes.get(row["node"], 0) + row["lines"]
        processes = [
            Process(domain=row["domain"], node=row["node"], boot=row["boot"], level=row["level"] or "",
                    clock=row["clock"] or "", is_whole=row["is_whole"])
            for row in self.work.sql(PROCESSES).collect()
        ]  # fmt: skip
        settled = frozenset(row["domain"] for row in self.work.sql("SELECT domain FROM {settled}").collect())
        return Evidence(domains=self._sources.domains, lines=lines, processes=processes, settled=settled)

    # --- Checks ---

    def _ask_all(self) -> list[tuple[Asked, list[Any]]]:
        done: list[tuple[Asked, list[Any]]] = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for one in pool.map(self._ask, range(len(CHECKS))):
                done.append(one)
                if len(done) % TELL_EVERY == 0:
                    self._progress(f"{len(done)} of {len(CHECKS)} checks are answered")
        return done

    def _ask(self, number: int) -> tuple[Asked, list[Any]]:
        check = CHECKS[number]
        grounds = self._evidence.grounds(check)
        asked = Asked(check=check, lines=grounds.lines, violations=0, why_not=grounds.why_not, but=grounds.but)
        if asked.why_not:
            return asked, []
        sql = check.sql
        if check.suspects:
            suspects = self.work.sql(f"SELECT * FROM ({check.suspects}) LIMIT {FOUND_MAX + 1}")
            few = suspects.collect()
            if not few:
                return asked, []
            name = f"suspects_{number}"
            if len(few) <= FOUND_MAX:
                self.work.name_rows(name, few, suspects.schema)
            else:
                self.work.make(name, check.suspects)
            sql = sql.replace("{suspects}", f"{{{name}}}")
        rows = self.work.sql(f"SELECT * FROM ({sql}) LIMIT {FOUND_MAX + 1}").collect()
        are_all = len(rows) <= FOUND_MAX
        rows = list(dict.fromkeys(rows))  # two lines may contradict each other in two ways
        count = len(rows)
        if not are_all:
            count = self.work.sql(f"SELECT count(*) FROM ({sql})").collect()[0][0]
        if count:
            self._progress(f"{check.rule}: {count} contradictions: {check.promise}")
        return attrs.evolve(asked, violations=count), rows[:FOUND_MAX]

    def _of_the_files(self) -> list[tuple[Check, Any]]:
        """J1: lines that cannot be read, are there twice, or differ between two copies."""
        found: list[tuple[Check, Any]] = []
        for check, sql in J1.items():
            if "{copies}" in sql:
                frame = copies(self._spark, self._sources)
                if frame is None:
                    continue
                self.work.name_frame("copies", frame)
            found += [(check, row) for row in self.work.sql(f"SELECT * FROM ({sql}) LIMIT {FOUND_MAX}").collect()]
        return found

    def _with_lines(self, rows: Sequence[tuple[Check, Any]]) -> tuple[Violation, ...]:
        places = {(row[f"{which}_run"], row[f"{which}_lsn"]) for _, row in rows for which in "ab"} - {(None, None)}
        wanted = [place for place in places if None not in place]
        texts: dict[tuple[int, int], Any] = {}
        if wanted:
            self.work.name_rows("wanted", wanted, "run BIGINT, lsn BIGINT")
            texts = {(row["run"], row["lsn"]): row for row in self.work.sql(AS_LINES).collect()}
        return tuple(
            sorted((_violation(check, row, texts) for check, row in rows),
                   key=lambda one: (one.invariant, one.domain, one.group, one.sequence))
        )  # fmt: skip


def _violation(check: Check, row: Any, texts: dict[tuple[int, int], Any]) -> Violation:
    both = [texts.get((row[f"{which}_run"], row[f"{which}_lsn"])) for which in "ab"]
    nodes = tuple(dict.fromkeys(one["node"] for one in both if one is not None))
    where = [f"{one['node']}.{one['boot']}:{one['lsn']}" if one is not None else "" for one in both]
    lines = [one["line"] if one is not None else "" for one in both]
    return Violation(
        invariant=check.rule, promise=check.promise, domain=row["domain"], group=row["group"] or 0,
        sequence=row["seq"] or 0, nodes=nodes, text=row["text"],
        first=where[0], second=where[1], first_line=lines[0], second_line=lines[1],
    )  # fmt: skip


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "{{").replace("}", "}}")


UNEXPECTED = """
    SELECT * FROM (
        SELECT domain, node, row_number() OVER (PARTITION BY domain ORDER BY lsn NULLS FIRST) AS place
        FROM {every_line} WHERE class = 'unreadable'
    ) WHERE place > {torn}
"""
"""Lines that cannot be read, but for as many as files were cut off in the middle of one."""

LAST_RUNS = f"""
    SELECT r.* FROM {{runs}} r JOIN (SELECT domain, max(clock_max) AS end FROM {{runs}} GROUP BY domain) d
      ON d.domain = r.domain
    JOIN (SELECT domain, node, max_by(run, clock_max) AS run FROM {{runs}} GROUP BY domain, node) l ON l.run = r.run
    WHERE r.clock_max > d.end - {END_S} AND r.domain IN (SELECT domain FROM {{settled}})
"""

COUNTS = """
    SELECT domain, node, kind, CASE WHEN kind = 'delivered' AND digest IS NOT NULL THEN 'digest'
                                    WHEN kind = 'delivered' AND first IS NULL
                                    THEN if(group > 0, 'entry', 'domain_entry')
                                    WHEN kind IN ('ordered', 'stable', 'held') AND group > 0 THEN concat('group_', kind)
                                    WHEN kind = 'view_installed' AND group = 0 THEN 'domain_view' END AS special,
           count(*) AS lines
    FROM {lines} GROUP BY 1, 2, 3, 4
    UNION ALL
    SELECT domain, node, 'counted', NULL, count(*) FROM {counted} GROUP BY domain, node
    UNION ALL
    SELECT domain, node, 'by_default', NULL, count(*) FROM {cast_votes} WHERE why NOT IN ('', 'raised')
    GROUP BY domain, node
"""
"""What the domain itself orders is written entry by entry at every level; so it is not what ``entry`` counts."""

PROCESSES = """
    SELECT u.domain, u.node, u.boot, u.level, u.clock, h.run IS NULL AS is_whole
    FROM {runs} u LEFT JOIN (SELECT DISTINCT run FROM {holes}) h ON h.run = u.run ORDER BY 1, 2, 3
"""

AS_LINES = """
    SELECT l.run, l.lsn, l.node, l.boot, to_json(named_struct(
        'v', l.v, 'i', l.lsn, 'boot', l.boot, 't', l.at, 'node', l.node, 'inc', l.inc, 'op', l.kind, 'group', l.group,
        'epoch', l.epoch, 'seq', l.seq, 'origin', l.origin, 'n', l.n, 'crc', l.crc, 'args', l.args)) AS line
    FROM {lines} l JOIN {wanted} w ON l.run = w.run AND l.lsn = w.lsn
"""

J1: dict[Check, str] = {
    Check(rule="J1", promise="every line can be read", level="batch", reads=(), sql=""): """
        SELECT domain, 0L AS group, 0L AS seq, concat('a line cannot be read, in the journals of ',
               coalesce(nullif(node, ''), 'somebody')) AS text, NULL AS a_run, NULL AS a_lsn, NULL AS b_run,
               NULL AS b_lsn
        FROM {unexpected}
    """,
    Check(rule="J1", promise="no line is there twice", level="batch", reads=(), sql=""): completeness.TWICE,
    Check(rule="J1", promise="copies of a journal are the same", level="batch", reads=(), sql=""): """
        SELECT domain, first(group) AS group, first(seq) AS seq, format_string('line %d of %s is not the same in two'
               ' copies of it', lsn, node) AS text, xxhash64(domain, node, boot) AS a_run, lsn AS a_lsn, NULL AS b_run,
               NULL AS b_lsn
        FROM {copies} GROUP BY domain, node, boot, lsn
        HAVING count(DISTINCT xxhash64(kind, inc, group, epoch, seq, origin, n, crc,
                                       regexp_replace(args, '[-+0-9.]+[eE][-+]?[0-9]+|0[.]0000[0-9]*', ''))) > 1
    """,
}
"""Very large and very small numbers are written as 1e-05 by one and as 0.00001 by another: they are left out of what is
compared of ``args``."""
