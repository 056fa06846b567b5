"""B2 and the second half of B5: what programs submitted, where a history tells it.

Journals tell what daemons did. That a sender is not left without its message, and that what it sends after it has seen
something comes behind that, can be seen only if what programs called is told, too: in histories of the simulator.
"""

from __future__ import annotations

from .checks import Check

PROGRAM_CHECKS = (
    Check(
        rule="B2", promise="what a program was told is in the stream is delivered", level="history",
        reads=("submit",), settled=True,
        sql="""
            SELECT p.domain, p.group, p.seq, format_string('%s at %s was told that its %d is in group %d, and nobody'
                   ' delivers it', p.who, p.node, p.n, p.group) AS text,
                   p.run AS a_run, p.lsn AS a_lsn, NULL AS b_run, NULL AS b_lsn
            FROM {lines} p LEFT JOIN {log} d
              ON d.stream = p.stream AND d.source = xxhash64(concat(p.node, '/', p.inc)) AND d.n = p.n
            WHERE p.class = 'program' AND p.kind = 'submit' AND p.type = 'ok' AND d.stream IS NULL AND p.n > 0
              AND p.domain IN (SELECT domain FROM {settled})
        """,
    ),
    Check(
        rule="B5", promise="what is sent after something was delivered comes behind it", level="history",
        reads=("submit",),
        sql="""
            WITH sent AS (
                SELECT p.domain, p.stream, p.group, p.node, p.inc, p.n, p.run, min(p.lsn) AS lsn FROM {lines} p
                WHERE p.class = 'program' AND p.kind = 'submit' AND p.type = 'invoke' AND p.n > 0
                GROUP BY p.domain, p.stream, p.group, p.node, p.inc, p.n, p.run
            ), known AS (
                SELECT stream, node, inc, lsn, it.n, it.run, top FROM (
                    SELECT *, max(delivered) OVER (PARTITION BY stream, node, inc ORDER BY lsn
                                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS top
                    FROM (SELECT stream, node, inc, lsn, struct(n, run) AS it, NULL AS delivered FROM sent
                          UNION ALL
                          SELECT stream, node, inc, lsn, NULL, struct(seq, run, lsn, era) FROM {followed}
                          WHERE kind = 'delivered')
                ) WHERE it IS NOT NULL
            )
            SELECT d.domain, d.group, d.seq, format_string('message %d of %s/%d is entry %d of group %d, and when it'
                   ' was sent %d was delivered there', k.n, k.node, k.inc, d.seq, d.group, k.top.seq) AS text,
                   k.top.run AS a_run, k.top.lsn AS a_lsn, k.run AS b_run, k.lsn AS b_lsn
            FROM known k JOIN {log} d ON d.stream = k.stream AND d.era = k.top.era AND d.n = k.n
                                     AND d.source = xxhash64(concat(k.node, '/', k.inc))
            WHERE d.seq <= k.top.seq
        """,
    ),
)  # fmt: skip
