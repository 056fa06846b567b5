"""Whether journals are whole: lines are numbered by one, so what is missing is seen, and what is there twice, too.

Lines are counted by pieces of each journal, and only where the count and the sum of the numbers of a piece are not what
they should be is it looked at line by line. Behind a hole nobody knows what was before, so it ends every stay of its
process; and the audit tells it, instead of passing what it did not see.

Histories number the lines of all processes together; there nothing can be told.
"""

from __future__ import annotations

NUMBERED = """
    SELECT run, lsn DIV 65536 AS piece, count(*) AS lines, min(lsn) AS first, max(lsn) AS last, sum(lsn) AS total
    FROM {lines} WHERE class != 'program' AND domain NOT IN ({histories}) GROUP BY run, lsn DIV 65536
"""

BROKEN = """
    SELECT run, piece FROM {numbered}
    WHERE lines != last - first + 1 OR total * 2 != (first + last) * lines
"""

HOLES = """
    WITH closely AS (
        SELECT n.run, n.lsn, lag(n.lsn) OVER (PARTITION BY n.run, b.piece ORDER BY n.lsn) AS before
        FROM {lines} n JOIN {broken} b ON n.run = b.run AND n.lsn DIV 65536 = b.piece
        WHERE n.class != 'program'
    ), between AS (
        SELECT run, first AS lsn, lag(last) OVER (PARTITION BY run ORDER BY piece) AS before FROM {numbered}
    )
    SELECT run, lsn, lsn - before - 1 AS missing, 'missing' AS why FROM closely WHERE lsn > before + 1
    UNION ALL
    SELECT run, lsn, lsn - before - 1, 'missing' FROM between WHERE lsn > before + 1
    UNION ALL
    SELECT run, first, first - 1, 'before the first' FROM (SELECT run, min(first) AS first FROM {numbered} GROUP BY run)
    WHERE first > 1
    UNION ALL
    SELECT run, lsn, bigint(get_json_object(args, '$.lines')), 'could not be written'
    FROM {lines} WHERE class = 'control' AND kind = 'journal_lost'
"""
"""``lsn`` is that of the first line behind what is missing."""

TWICE = """
    SELECT n.domain, n.group, n.seq, 'a journal has a line of this number twice' AS text, n.run AS a_run,
           n.lsn AS a_lsn, n.run AS b_run, n.lsn AS b_lsn
    FROM {lines} n JOIN {broken} b ON n.run = b.run AND n.lsn DIV 65536 = b.piece
    WHERE n.class != 'program'
    GROUP BY n.domain, n.group, n.seq, n.run, n.lsn HAVING count(*) > 1
"""

RUNS = """
    SELECT run, domain, node, boot, min(lsn) AS lsn_min, max(lsn) AS lsn_max, min(at) AS at_min, max(at) AS at_max,
           min(clock_s) AS clock_min, max(clock_s) AS clock_max, count(*) AS lines,
           max(CASE WHEN kind = 'journal' THEN get_json_object(args, '$.level') END) AS level,
           max(CASE WHEN kind = 'journal' THEN get_json_object(args, '$.clock') END) AS clock,
           max(CASE WHEN kind = 'journal' THEN get_json_object(args, '$.version') END) AS version
    FROM {lines} WHERE class != 'program' AND boot != '' GROUP BY run, domain, node, boot
"""
"""One row for each process. In histories one clock is everybody's, and a line for every entry is there."""

WITH_CLOCKS = """
    SELECT run, domain, node, boot, lsn_min, lsn_max, at_min, at_max, clock_min, clock_max, lines, version,
           CASE WHEN domain IN ({histories}) THEN concat('harness of ', domain) ELSE coalesce(clock, '') END AS clock,
           CASE WHEN domain IN ({histories}) THEN 'full' ELSE coalesce(level, '') END AS level
    FROM {bare_runs}
"""
