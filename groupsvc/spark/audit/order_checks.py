"""B1 to B6: one log, the same everywhere, in the order of its senders, never taken back.

What every node has delivered is compared by number within an era. At level batch that is done by digests: two that
began behind the same entry are equal at the same number, or something before it is not the same. At level full it is
done entry by entry.
"""

from __future__ import annotations

from .checks import Check, two_values

_digests = two_values(
    "{followed}", ("stream", "era", "base", "seq"), "digest",
    "format_string('what %s and %s have delivered of group %d from %d to %d differs', a.node, b.node, a.group,"
    " a.base + 1, a.seq)",
    "digest IS NOT NULL AND era IS NOT NULL",
)  # fmt: skip

OF_ONE_DIGEST = "substr(low, 9) = substr(high, 9)"
"""The second half of a digest is for order: if that is the same, bytes differ."""

_contents = """
    SELECT stream, era, seq FROM {log} GROUP BY stream, era, seq HAVING min(content) != max(content_max)
"""

_two_entries = """
    WITH told AS (
        SELECT f.*, row_number() OVER (PARTITION BY f.stream, f.era, f.seq, f.content ORDER BY f.run, f.lsn) AS place,
               dense_rank() OVER (PARTITION BY f.stream, f.era, f.seq ORDER BY f.content) AS which
        FROM {{followed}} f JOIN {{suspects}} s ON f.stream = s.stream AND f.era = s.era AND f.seq = s.seq
        WHERE f.kind = 'delivered' AND f.is_entry
    )
    SELECT a.domain, a.group, a.seq, format_string('entry %d of group %d is {words} at %s and at %s', a.seq, a.group,
           a.node, b.node) AS text, a.run AS a_run, a.lsn AS a_lsn, b.run AS b_run, b.lsn AS b_lsn
    FROM told a JOIN told b ON a.stream = b.stream AND a.era = b.era AND a.seq = b.seq AND a.which = 1 AND b.which = 2
    WHERE a.place = 1 AND b.place = 1 AND {condition}
"""

UNDER_WAY_S = 60.0
"""After so long nothing that was submitted is still on its way: what was given up before that is not delivered yet."""

_missing = """
    SELECT stream, era, seq FROM (
        SELECT stream, era, seq, lag(seq) OVER (PARTITION BY stream, era, seq DIV 250000 ORDER BY seq) AS before
        FROM {log}
    ) WHERE seq > before + 1
    UNION ALL
    SELECT stream, era, first FROM (
        SELECT stream, era, first, lag(last) OVER (PARTITION BY stream, era ORDER BY piece) AS before
        FROM (SELECT stream, era, seq DIV 250000 AS piece, min(seq) AS first, max(seq) AS last FROM {log}
              GROUP BY stream, era, seq DIV 250000)
    ) WHERE first > before + 1
"""
"""Entries before which there are some that no journal here has, one by one."""

_given_up = """
    SELECT stream, xxhash64(concat(node, '/', inc)) AS source,
           coalesce(bigint(get_json_object(args, '$.first')), n) AS first, n AS last
    FROM {control} WHERE kind = 'given_up'
"""

_by_sender = """
    WITH entries AS (
        SELECT domain, stream, group, era, source, seq, min(n) AS n, seq DIV 250000 AS piece
        FROM {log} WHERE NOT is_own GROUP BY domain, stream, group, era, source, seq
    ), ends AS (
        SELECT stream, era, source, piece, last(n_last, true) OVER (
                   PARTITION BY stream, era, source ORDER BY piece ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
               ) AS n_before, last(seq_last, true) OVER (
                   PARTITION BY stream, era, source ORDER BY piece ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
               ) AS seq_before
        FROM (SELECT stream, era, source, piece, max_by(n, seq) AS n_last, max(seq) AS seq_last FROM entries
              GROUP BY stream, era, source, piece)
    ), followed AS (
        SELECT e.*, coalesce(lag(e.n) OVER (PARTITION BY e.stream, e.era, e.source, e.piece ORDER BY e.seq),
                             b.n_before) AS n_before,
               coalesce(lag(e.seq) OVER (PARTITION BY e.stream, e.era, e.source, e.piece ORDER BY e.seq),
                        b.seq_before) AS seq_before
        FROM entries e JOIN ends b
          ON e.stream = b.stream AND e.era = b.era AND e.source = b.source AND e.piece = b.piece
    )
    SELECT * FROM followed WHERE n != n_before + 1
"""
"""Entries whose sender had sent another one next."""

_not_given_up = f"""
    WITH clipped AS (
        SELECT w.stream, w.era, w.source, w.seq, greatest(g.first, w.n_before + 1) AS first,
               least(g.last, w.n - 1) AS last
        FROM {{suspects}} w JOIN ({_given_up}) g ON g.stream = w.stream AND g.source = w.source
        WHERE g.last > w.n_before AND g.first < w.n
    ), given_up AS (
        SELECT stream, era, source, seq, sum(greatest(0L, last - greatest(first - 1, coalesce(upto, 0L)))) AS given_up
        FROM (SELECT *, max(last) OVER (PARTITION BY stream, era, source, seq ORDER BY first, last
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS upto FROM clipped)
        GROUP BY stream, era, source, seq
    ), home AS (
        SELECT w.stream, w.era, w.source, w.seq, w.seq_before, t.run, max(h.lsn) AS hole,
               min(CASE WHEN h.why = 'before the first' THEN u.at_min + {UNDER_WAY_S}
                        WHEN h.why IS NULL THEN double('-inf') END) AS told_from,
               max(h.why IS NOT NULL AND h.why != 'before the first') AS has_holes
        FROM {{suspects}} w JOIN {{spans}} t ON t.stream = w.stream AND xxhash64(concat(t.node, '/', t.inc)) = w.source
                                     AND t.kind = 'delivered' AND t.seq_max >= w.seq
        JOIN {{runs}} u ON u.run = t.run
        LEFT JOIN {{holes}} h ON h.run = t.run
        WHERE w.n > w.n_before
        GROUP BY w.stream, w.era, w.source, w.seq, w.seq_before, t.run
    ), told AS (
        SELECT DISTINCT o.stream, o.era, o.source, o.seq
        FROM home o LEFT JOIN {{followed}} f ON f.run = o.run AND f.stream = o.stream AND f.kind = 'delivered'
                                     AND f.since <= o.seq_before AND f.seq >= o.seq_before AND f.at >= o.told_from
        WHERE NOT o.has_holes AND (o.hole IS NULL OR f.run IS NOT NULL)
    ), judged AS (
        SELECT w.* FROM {{suspects}} w JOIN told t
          ON t.stream = w.stream AND t.era = w.era AND t.source = w.source AND t.seq = w.seq
        LEFT JOIN given_up g ON g.stream = w.stream AND g.era = w.era AND g.source = w.source AND g.seq = w.seq
        LEFT ANTI JOIN ({_missing}) m
          ON m.stream = w.stream AND m.era = w.era AND m.seq > w.seq_before AND m.seq <= w.seq
        WHERE w.n - w.n_before - 1 > coalesce(g.given_up, 0L)
    )
    SELECT * FROM {{suspects}} WHERE n <= n_before UNION ALL SELECT * FROM judged
"""
"""Of these, what is certainly wrong.

What a sender has given up may be missing, and its own journal alone tells that: so a gap is judged only if that journal
is here, goes on until the entry behind the gap is delivered there, and has no holes; the first of its lines, if those
before are gone, must be so old that what was given up before it is not in the gap. And it is judged only if all entries
between are known: what is in none of the journals may be what is missing.
"""

_lines_of_both = """
    SELECT s.domain, s.group, s.seq, format_string({text}) AS text, b.run AS a_run, b.lsn AS a_lsn,
           a.run AS b_run, a.lsn AS b_lsn
    FROM {{suspects}} s
    JOIN (SELECT stream, era, seq, origin, min(run) AS run, min_by(lsn, run) AS lsn FROM {{followed}}
          WHERE kind = 'delivered' AND is_entry GROUP BY stream, era, seq, origin) a
      ON a.stream = s.stream AND a.era = s.era AND a.seq = s.seq
    JOIN (SELECT stream, era, seq, min(run) AS run, min_by(lsn, run) AS lsn FROM {{followed}}
          WHERE kind = 'delivered' AND is_entry GROUP BY stream, era, seq) b
      ON b.stream = s.stream AND b.era = s.era AND b.seq = s.seq_before
"""

_two_places = """
    SELECT domain, stream, group, era, source, n, min(seq) AS seq_before, max(seq) AS seq
    FROM {log} WHERE NOT is_own AND n > 0 GROUP BY domain, stream, group, era, source, n HAVING min(seq) != max(seq)
"""

_led = """
    WITH ranges AS (
        SELECT o.stream, o.epoch, min(o.seq_min) AS first, max(o.seq_max) AS last, count(DISTINCT o.run) AS runs,
               max(h.run IS NOT NULL) AS has_holes
        FROM {spans} o LEFT JOIN (SELECT DISTINCT run FROM {holes}) h ON h.run = o.run
        WHERE o.kind = 'ordered' GROUP BY o.stream, o.epoch
    ), given AS (
        SELECT stream, epoch, seq, min(run) AS run, min(lsn) AS lsn, min(xxhash64(origin, n, crc)) AS content
        FROM {lines} WHERE class = 'flow' AND kind = 'ordered' AND first IS NULL GROUP BY stream, epoch, seq
    )
    SELECT d.domain, d.stream, d.group, d.era, d.seq, d.epoch, o.run, o.lsn, o.content
    FROM {log} d
    JOIN ranges r ON d.stream = r.stream AND d.epoch = r.epoch AND d.seq >= r.first AND d.seq <= r.last
    LEFT JOIN given o ON d.stream = o.stream AND d.epoch = o.epoch AND d.seq = o.seq
    WHERE r.runs = 1 AND ((o.content IS NULL AND NOT r.has_holes) OR d.content_max != o.content
                          OR d.content != o.content)
"""

_not_led = """
    SELECT s.domain, s.group, s.seq, CASE WHEN s.content IS NULL
               THEN format_string('%s delivers %d of group %d, a number that the leader of epoch %d gave to nothing',
                                  f.node, s.seq, s.group, s.epoch)
               ELSE format_string('%s delivers under %d of group %d something else than the leader of epoch %d ordered',
                                  f.node, s.seq, s.group, s.epoch) END AS text,
           s.run AS a_run, s.lsn AS a_lsn, f.run AS b_run, f.lsn AS b_lsn
    FROM {suspects} s
    JOIN (SELECT *, row_number() OVER (PARTITION BY stream, epoch, seq, content ORDER BY run, lsn) AS place
          FROM {followed} WHERE kind = 'delivered' AND is_entry) f
      ON f.stream = s.stream AND f.epoch = s.epoch AND f.seq = s.seq AND f.place = 1
    WHERE s.content IS NULL OR f.content != s.content
"""

_recovered = """
    SELECT c.domain, c.run, c.stream, c.group, c.node, c.lsn, c.epoch,
           coalesce(bigint(get_json_object(c.args, '$.last')), 0L) AS last,
           bigint(get_json_object(c.args, '$.base')) AS base, from_json(get_json_object(c.args, '$.tail'),
           'ARRAY<ARRAY<BIGINT>>') AS tail, CASE WHEN c.group = 0 THEN 0L ELSE m.era END AS era
    FROM {control} c
    LEFT JOIN (SELECT run, stream, epoch, max(bigint(get_json_object(args, '$.era'))) AS era FROM {control}
               WHERE kind = 'members' GROUP BY run, stream, epoch) m
      ON m.run = c.run AND m.stream = c.stream AND m.epoch = c.epoch
    WHERE c.kind = 'recovered'
"""
"""Logs that new leaders have chosen; the era is that of their view, if it became active."""

_not_recovered = f"""
    WITH reached AS (
        SELECT stream, era, epoch, max(seq) AS seq, max_by(run, seq) AS run, max_by(lsn, seq) AS lsn,
               max_by(node, seq) AS node
        FROM {{followed}} WHERE kind = 'delivered' AND era IS NOT NULL GROUP BY stream, era, epoch
    ), placed AS (
        SELECT r, max(d) OVER (PARTITION BY stream, era ORDER BY epoch
                               RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d
        FROM (SELECT stream, era, epoch, struct(seq, run, lsn, node, epoch) AS d, NULL AS r FROM reached
              UNION ALL
              SELECT stream, era, epoch, NULL, struct(domain, group, run, lsn, node, epoch, last) FROM ({_recovered})
              WHERE era IS NOT NULL)
    )
    SELECT r.domain, r.group, d.seq, format_string(
               '%s recovers epoch %d of group %d up to %d, and %s had delivered %d in epoch %d', r.node, r.epoch,
               r.group, r.last, d.node, d.seq, d.epoch) AS text,
           d.run AS a_run, d.lsn AS a_lsn, r.run AS b_run, r.lsn AS b_lsn
    FROM placed WHERE r IS NOT NULL AND d.seq > r.last
"""

_changed_when_recovered = f"""
    WITH tail AS (SELECT stream, group, era, epoch, node, run, lsn, one[0] AS seq, one[1] AS crc
                  FROM ({_recovered}) LATERAL VIEW explode(tail) AS one)
    SELECT d.domain, d.stream, d.group, d.era, d.seq, d.epoch AS epoch_before, t.epoch, t.node, t.run, t.lsn
    FROM {{log}} d JOIN tail t ON d.stream = t.stream AND d.era = t.era AND d.seq = t.seq AND d.epoch < t.epoch
    WHERE d.crc != t.crc AND d.content = d.content_max
"""

AT_REST_S = 0.5
"""So long before the first of those who are there in the end has written its last line, an entry must have come."""

_short_in_the_end = f"""
    WITH rest AS (
        SELECT domain, min(clock_max) - {AT_REST_S} AS until FROM {{last_runs}} GROUP BY domain
    ), reached AS (
        SELECT f.domain, f.stream, f.group, f.era, f.run, f.node, f.stay, max(f.seq) AS seq,
               max_by(f.lsn, f.seq) AS lsn, max(CASE WHEN f.clock_s <= r.until THEN struct(f.seq, f.lsn) END) AS due
        FROM {{followed}} f JOIN rest r ON r.domain = f.domain WHERE f.kind = 'delivered' AND f.era IS NOT NULL
        GROUP BY f.domain, f.stream, f.group, f.era, f.run, f.node, f.stay
    ), newest AS (
        SELECT stream, max(era) AS era FROM reached GROUP BY stream
    ), top AS (
        SELECT r.stream, r.era, max(r.due.seq) AS seq, max_by(r.run, r.due.seq) AS run,
               max_by(r.due.lsn, r.due.seq) AS lsn, max_by(r.node, r.due.seq) AS node
        FROM reached r JOIN newest n ON r.stream = n.stream AND r.era = n.era WHERE r.due IS NOT NULL
        GROUP BY r.stream, r.era
    ), here AS (
        SELECT r.* FROM reached r JOIN {{last_runs}} u ON r.run = u.run
        LEFT JOIN {{stays}} s ON s.run = r.run AND s.stream = r.stream AND s.stay > r.stay
        LEFT JOIN (SELECT DISTINCT stream, node AS voter FROM {{control}}
                   WHERE group = 0 AND kind = 'view_installed') v ON v.stream = r.stream AND v.voter = r.node
        WHERE s.run IS NULL AND (r.group > 0 OR v.voter IS NOT NULL)
    )
    SELECT h.domain, h.group, t.seq, format_string('%s has delivered group %d up to %d, %s is there and has only %d',
               t.node, h.group, t.seq, h.node, h.seq) AS text,
           t.run AS a_run, t.lsn AS a_lsn, h.run AS b_run, h.lsn AS b_lsn
    FROM here h JOIN top t ON h.stream = t.stream AND h.era = t.era AND h.seq < t.seq
"""
"""Where the journals end at rest: the last stay of each process that was there to the end has what anybody has.

Daemons are stopped one after the other. The others hear of it and say so in their log, which who has ended does not
have any more; and who is left alone gets nothing more. So only what was delivered shortly before the first of them
ended must be everywhere. Clocks of different machines differ by less than that.
"""

ORDER_CHECKS = (
    Check(
        rule="B1", promise="nothing is delivered twice in one stay", level="batch", reads=("delivered",),
        sql="""
            SELECT domain, group, seq, format_string('%s delivers %d of group %d again, after %d', node, since, group,
                   position_before) AS text, run AS a_run, position_lsn_before AS a_lsn, run AS b_run, lsn AS b_lsn
            FROM {followed} WHERE kind = 'delivered' AND position_before >= 0 AND since <= position_before
        """,
    ),
    Check(
        rule="B1", promise="one number has the same bytes everywhere: one body in 64", level="batch", nodes=2,
        reads=("digest",), suspects=f"SELECT * FROM ({_digests[0]}) WHERE {OF_ONE_DIGEST}", sql=_digests[1],
    ),
    Check(
        rule="B1", promise="one number has the same bytes everywhere", level="full", nodes=2,
        reads=("entry|domain_entry",),
        suspects=_contents,
        sql=_two_entries.format(words="not of the same bytes", condition="a.source = b.source AND a.n = b.n"),
    ),
    Check(
        rule="B1", promise="only what the leader of an epoch ordered is delivered in it", level="full",
        reads=("entry|domain_entry", "ordered"), whole=True, suspects=_led, sql=_not_led,
    ),
    Check(
        rule="B1", promise="a message is delivered under one number", level="full", reads=("entry|domain_entry",),
        suspects=_two_places,
        sql=_lines_of_both.format(
            text="'message %d of %s is %d and %d of group %d', s.n, a.origin, s.seq_before, s.seq, s.group"
        ),
    ),
    Check(
        rule="B3", promise="what anyone delivered all who are there in the end deliver", level="batch", nodes=2,
        reads=("delivered",), sql=_short_in_the_end, settled=True,
    ),
    Check(
        rule="B4", promise="nothing is left out", level="batch", reads=("delivered",),
        sql="""
            SELECT domain, group, since AS seq, format_string('%s delivers %d of group %d after %d', node, since, group,
                   position_before) AS text, run AS a_run, position_lsn_before AS a_lsn, run AS b_run, lsn AS b_lsn
            FROM {followed} WHERE kind = 'delivered' AND position_before >= 0 AND since > position_before + 1
        """,
    ),
    Check(
        rule="B4", promise="the same in the same order everywhere: by digests", level="batch", nodes=2,
        reads=("digest",), suspects=f"SELECT * FROM ({_digests[0]}) WHERE NOT {OF_ONE_DIGEST}", sql=_digests[1],
    ),
    Check(
        rule="B4", promise="one number is one entry everywhere", level="full", nodes=2, reads=("entry|domain_entry",),
        suspects=_contents,
        sql=_two_entries.format(words="not the same", condition="NOT (a.source = b.source AND a.n = b.n)"),
    ),
    Check(
        rule="B5", promise="what one origin submits comes in its order, and without a gap", level="full",
        reads=("entry",), suspects=_by_sender,
        sql=_lines_of_both.format(
            text="'message %d of %s is delivered after its %d, in group %d', s.n, a.origin, s.n_before, s.group"
        ).replace("{suspects}", f"({_not_given_up})"),
    ),
    Check(
        rule="B6", promise="a new leader's log has all that was delivered", level="batch",
        reads=("recovered", "delivered"), sql=_not_recovered,
    ),
    Check(
        rule="B6", promise="a new leader's log has it with the same bytes", level="full",
        reads=("recovered", "entry|domain_entry"), suspects=_changed_when_recovered,
        sql="""
            SELECT s.domain, s.group, s.seq, format_string(
                       'the log that %s recovers for epoch %d of group %d has other bytes at %d than were delivered',
                       s.node, s.epoch, s.group, s.seq) AS text,
                   f.run AS a_run, f.lsn AS a_lsn, s.run AS b_run, s.lsn AS b_lsn
            FROM {suspects} s JOIN (
                SELECT stream, era, epoch, seq, min(run) AS run, min_by(lsn, run) AS lsn FROM {followed}
                WHERE kind = 'delivered' AND is_entry GROUP BY stream, era, epoch, seq) f
              ON f.stream = s.stream AND f.era = s.era AND f.epoch = s.epoch_before AND f.seq = s.seq
        """,
    ),
)  # fmt: skip
