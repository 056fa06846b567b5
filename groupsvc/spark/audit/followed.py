"""What every node delivered, with what must be known to compare it: the stay, the era, what came before, among whom.

A *stay* is one node in one group without a break: it begins with the first line about the group, anew with ``restored``
or a second ``joined``, behind ``group_lost``, and behind a hole in the journal. An *era* is what lies between two views
that may have lost entries; within one a number means one entry everywhere. Both are intervals, of lines and of numbers,
made from the few lines of control that begin them; each line about an entry finds its own by a join with these.

What came before a line in its journal is a matter of windows. A hot group would make one window of millions of rows, so
journals are cut into pieces of ``LINES_AT_ONCE`` lines, each piece is gone through by itself, and begins with what the
pieces before it ended with: that is one row for each piece.
"""

from __future__ import annotations

from .worktable import WorkTables

LINES_AT_ONCE = 250_000
"""Of one journal in one window."""

BREAKS = """
    SELECT run, stream, lsn, kind, seq FROM {control} WHERE kind IN ('restored', 'joined', 'group_lost')
    UNION ALL
    SELECT h.run, s.stream, h.lsn, 'hole', 0L
    FROM {holes} h JOIN (SELECT DISTINCT run, stream FROM {lines} WHERE class IN ('delivery', 'control')) s
      ON h.run = s.run
"""
"""Lines that begin or end a stay; ``lsn`` of a hole is that of the first line behind it."""

STAYS = """
    WITH bounds AS (
        SELECT run, stream, CASE kind WHEN 'group_lost' THEN lsn + 1 ELSE lsn END AS stay, kind IN ('hole') AS is_hole
        FROM (SELECT *, lag(kind) OVER (PARTITION BY run, stream ORDER BY lsn) AS before FROM {breaks})
        WHERE kind IN ('restored', 'group_lost', 'hole') OR (kind = 'joined' AND before = 'joined')
        UNION ALL
        SELECT DISTINCT run, stream, 0L, false FROM {control} WHERE group > 0 OR kind = 'restored'
    ), starts AS (SELECT run, stream, stay, max(is_hole) AS is_hole FROM bounds GROUP BY run, stream, stay)
    SELECT run, stream, stay, is_hole, coalesce(
        lead(stay) OVER (PARTITION BY run, stream ORDER BY stay), 9223372036854775807L) AS until
    FROM starts
"""

ERAS = """
    WITH told AS (
        SELECT c.run, c.stream, s.stay, c.seq, c.lsn, bigint(get_json_object(c.args, '$.era')) AS era
        FROM {control} c JOIN {stays} s ON c.run = s.run AND c.stream = s.stream AND c.lsn >= s.stay AND c.lsn < s.until
        WHERE c.kind IN ('joined', 'members') AND c.group > 0
    ), changes AS (
        SELECT *, lag(era) OVER (PARTITION BY run, stream, stay ORDER BY lsn) AS before FROM told WHERE era IS NOT NULL
    )
    SELECT run, stream, stay, seq AS since, era, coalesce(
        lead(seq) OVER (PARTITION BY run, stream, stay ORDER BY lsn), 9223372036854775807L) AS upto
    FROM changes WHERE before IS NULL OR before != era
"""
"""From entry ``since`` on, up to before ``upto``, a stay is in an era."""

PIECES = """
    SELECT run, stream, group, lsn, lsn DIV {piece} AS piece, kind, epoch, seq,
           CASE WHEN kind IN ('delivered', 'restored', 'joined') THEN seq
                WHEN kind IN ('group_lost', 'hole') THEN -1L END AS position,
           CASE WHEN kind IN ('delivered', 'restored', 'joined', 'group_lost', 'hole') THEN lsn END AS position_lsn,
           CASE WHEN kind IN ('delivered', 'restored', 'members') THEN epoch END AS epoch_before,
           CASE WHEN kind IN ('delivered', 'restored', 'members') THEN lsn END AS epoch_lsn,
           CASE kind WHEN 'members' THEN xxhash64(get_json_object(args, '$.members'))
                WHEN 'restored' THEN 0L WHEN 'group_lost' THEN 0L WHEN 'hole' THEN 0L END AS list,
           CASE WHEN kind IN ('members', 'restored', 'group_lost', 'hole') THEN lsn END AS list_lsn,
           CASE kind WHEN 'members' THEN seq WHEN 'restored' THEN -1L WHEN 'group_lost' THEN -1L
                WHEN 'hole' THEN -1L END AS list_seq,
           domain, node, inc, at, clock_s, origin, n, crc, first, base, digest
    FROM (
        SELECT run, stream, group, lsn, kind, epoch, seq, '' AS args, domain, node, inc, at, clock_s, origin, n, crc,
               first, base, digest
        FROM {lines} WHERE class = 'delivery'
        UNION ALL
        SELECT run, stream, group, lsn, kind, epoch, seq, args, domain, node, inc, at, clock_s, origin, n, crc,
               first, base, digest
        FROM {control} WHERE kind IN ('restored', 'joined', 'members', 'group_lost')
        UNION ALL
        SELECT run, stream, 0L, lsn - 1, kind, 0L, 0L, '', '', '', 0L, 0D, 0D, '', 0L, 0L,
               NULL, NULL, NULL
        FROM {breaks} WHERE kind = 'hole'
    )
"""

CARRIED = ("position", "position_lsn", "epoch_before", "epoch_lsn", "list", "list_lsn", "list_seq")
"""What the line before has said, and is still true."""


def edges() -> str:
    """What each piece ends with, as the pieces behind it begin."""
    last = ", ".join(f"max_by({name}, lsn) FILTER (WHERE {name} IS NOT NULL) AS {name}" for name in CARRIED)
    before = ", ".join(
        f"last({name}, true) OVER (PARTITION BY run, stream ORDER BY piece"
        f" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS {name}"
        for name in CARRIED
    )
    return f"""
        SELECT run, stream, piece, {before}
        FROM (SELECT run, stream, piece, {last} FROM {{pieces}} GROUP BY run, stream, piece)
    """


def followed() -> str:
    """Every line about what was delivered, with what came before it, its stay and its era."""
    before = ", ".join(
        f"coalesce(last(p.{name}, true) OVER (PARTITION BY p.run, p.stream, p.piece ORDER BY p.lsn"
        f" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), e.{name}) AS {_before(name)}"
        for name in CARRIED
    )
    return f"""
        WITH placed AS (
            SELECT p.domain, p.run, p.stream, p.group, p.node, p.inc, p.lsn, p.at, p.clock_s, p.kind, p.epoch, p.seq,
                   p.origin, p.n, p.crc, p.first, p.base, p.digest, {before}
            FROM {{pieces}} p LEFT JOIN {{edges}} e ON p.run = e.run AND p.stream = e.stream AND p.piece = e.piece
        )
        SELECT p.*, p.first IS NULL AS is_entry, coalesce(p.first, p.seq) AS since, coalesce(s.stay, 0L) AS stay,
               CASE WHEN p.group = 0 THEN 0L ELSE r.era END AS era,
               xxhash64(p.origin, p.n, p.crc) AS content, xxhash64(p.origin) AS source
        FROM placed p
        LEFT JOIN {{stays}} s ON p.run = s.run AND p.stream = s.stream AND p.lsn >= s.stay AND p.lsn < s.until
        LEFT JOIN {{eras}} r ON p.run = r.run AND p.stream = r.stream AND r.stay = s.stay
                            AND p.seq >= r.since AND p.seq < r.upto
        WHERE p.kind IN ('delivered', 'digest')
    """


def _before(name: str) -> str:
    return name if name.endswith("_before") else f"{name}_before"


LOG = """
    SELECT domain, stream, group, era, seq, epoch, min(content) AS content, max(content) AS content_max,
           min(source) AS source, min(n) AS n, min(crc) AS crc, count(*) AS nodes,
           min(CASE WHEN list_before != 0 THEN list_before END) AS list,
           max(CASE WHEN list_before != 0 THEN list_before END) AS list_max, min(origin = '') AS is_own
    FROM {followed} WHERE kind = 'delivered' AND is_entry AND era IS NOT NULL
    GROUP BY domain, stream, group, era, seq, epoch
"""
"""The log that all nodes together have delivered, entry by entry, and by the epoch that they delivered it in."""

TOLD = """
    WITH numbered AS (
        SELECT *, CASE WHEN kind IN ('phase', 'votes', 'outcome', 'voted')
                       THEN bigint(get_json_object(args, '$.ballot')) ELSE seq END AS entry
        FROM {control} WHERE kind IN (
            'members', 'joined', 'phase', 'votes', 'outcome', 'voted', 'provider_joined', 'provider_failing',
            'provider_left', 'responsive', 'fenced', 'state', 'barrier_entered', 'barrier_over')
    )
    SELECT c.domain, c.run, c.stream, c.group, c.node, c.inc, c.lsn, c.at, c.clock_s, c.kind, c.epoch, c.seq, c.crc,
           c.args, c.entry, coalesce(s.stay, 0L) AS stay, coalesce(s.is_hole, false) AS is_hole, r.era,
           h.era AS era_here
    FROM numbered c
    LEFT JOIN {stays} s ON c.run = s.run AND c.stream = s.stream AND c.lsn >= s.stay AND c.lsn < s.until
    LEFT JOIN {eras} r ON c.run = r.run AND c.stream = r.stream AND r.stay = s.stay
                      AND c.entry >= r.since AND c.entry < r.upto
    LEFT JOIN {eras} h ON c.run = h.run AND c.stream = h.stream AND h.stay = s.stay
                      AND c.seq >= h.since AND c.seq < h.upto
"""
"""What nodes say about members, ballots and barriers; ``era`` is that of the ballot, ``era_here`` that of the entry."""

SPANS = """
    SELECT domain, run, stream, group, node, inc, epoch, kind, count(*) AS lines, min(lsn) AS lsn_min,
           max(lsn) AS lsn_max, min(at) AS at_min, max(at) AS at_max, max(seq) AS seq_max,
           max_by(lsn, seq) AS seq_max_lsn, min(seq) AS seq_min, min_by(lsn, seq) AS seq_min_lsn,
           min_by(origin, seq) AS origin_first
    FROM {lines} WHERE class IN ('delivery', 'flow')
    GROUP BY domain, run, stream, group, node, inc, epoch, kind
"""
"""Since when and until when one process delivered, ordered, announced and held in one epoch: a few rows for each."""


def tables(work: WorkTables) -> None:
    """Make all of this, in their order."""
    work.name("breaks", BREAKS)
    work.make("stays", STAYS)
    work.make("eras", ERAS)
    work.name("pieces", PIECES.replace("{piece}", str(LINES_AT_ONCE)))
    work.name("edges", edges())
    work.make("followed", followed())
    work.make("log", LOG)
    work.make("told", TOLD)
    work.make("spans", SPANS)
