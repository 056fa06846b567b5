"""R1 to R3: nobody is released from a barrier before all who count have come, and every round has one end.

The node of a party writes when the party comes (``barrier_entered``: to which round, after which entry), every node
that carries the group writes how a round ended (``barrier_over``). Who counts for a round has come to it, or to an
earlier one that passed it over; and its own node has written that before it wrote the end.

A round that was released in a tail that was lost is held again, and may end otherwise: of two rounds of different eras
neither says anything about the other.
"""

from __future__ import annotations

from .checks import Check, two_values
from .worktable import WorkTables

OVER = """
    SELECT domain, run, stream, group, node, inc, lsn, at, seq, stay, era, is_hole,
           get_json_object(args, '$.barrier') AS barrier, bigint(get_json_object(args, '$.round')) AS round,
           get_json_object(args, '$.end') AS end,
           from_json(get_json_object(args, '$.arrived'), 'ARRAY<STRING>') AS arrived, xxhash64(seq, args) AS shown
    FROM {told} WHERE kind = 'barrier_over'
"""

CAME = """
    SELECT t.domain, t.run, t.stream, t.group, t.node, t.inc, t.lsn, t.at, t.seq, t.era, u.clock,
           get_json_object(t.args, '$.barrier') AS barrier, bigint(get_json_object(t.args, '$.round')) AS round,
           get_json_object(t.args, '$.provider') AS provider
    FROM {told} t JOIN {runs} u ON u.run = t.run WHERE t.kind = 'barrier_entered'
"""


def _behind(came: str, over: str) -> str:
    """Whether a coming is behind the end of a round: in a later era, or by its number, if they can be compared."""
    return (
        f"(coalesce({came}.era > {over}.era, false)"
        f" OR (coalesce({came}.era = {over}.era, true) AND {came}.seq > {over}.seq))"
    )


COUNTS = f"""
    WITH listed AS (
        SELECT o.*, u.clock FROM (
            SELECT domain, run, stream, group, node, inc, lsn, at, seq, stay, era, is_hole, barrier, round, end,
                   explode(arrived) AS provider
            FROM {{rounds_over}} WHERE coalesce(end, '') != 'broken'
        ) o JOIN {{runs}} u ON u.run = o.run
    ), both AS (
        SELECT struct(*) AS it, stream, barrier, provider, round, NULL AS came FROM listed
        UNION ALL
        SELECT NULL, stream, barrier, provider, round, struct(lsn, round, seq, run, at, clock, era)
        FROM {{came}}
    ), newest AS (
        SELECT it, last(came, true) OVER (PARTITION BY stream, barrier, provider ORDER BY round, it IS NOT NULL,
                   came.lsn ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS came
        FROM both
    ), earlier AS (
        SELECT n.it.run, n.it.lsn, n.it.provider,
               max(struct(c.lsn, c.round, c.seq, c.run, c.at, c.clock, c.era)) AS came
        FROM newest n JOIN {{came}} c ON c.stream = n.it.stream AND c.barrier = n.it.barrier
                                     AND c.provider = n.it.provider AND c.round <= n.it.round
                                     AND NOT {_behind("c", "n.it")}
        WHERE {_behind("n.came", "n.it")} GROUP BY n.it.run, n.it.lsn, n.it.provider
    ), matched AS (
        SELECT n.it.*, coalesce(e.came, n.came) AS coming
        FROM newest n LEFT JOIN earlier e ON e.run = n.it.run AND e.lsn = n.it.lsn AND e.provider = n.it.provider
        WHERE n.it IS NOT NULL
    )
    SELECT m.*, h.run IS NOT NULL AS is_told_at_home, coalesce(g.lsn > m.coming.lsn, false) AS is_before_hole
    FROM matched m LEFT JOIN (SELECT run, max(lsn) AS lsn FROM {{holes}} GROUP BY run) g ON g.run = m.coming.run
    LEFT JOIN (SELECT DISTINCT stream, barrier, round, node, inc, true AS run FROM {{rounds_over}}) h
      ON h.stream = m.stream AND h.barrier = m.barrier AND h.round = m.round
     AND h.node = get_json_object(m.provider, '$[0]') AND h.inc = bigint(get_json_object(m.provider, '$[1]'))
"""
"""Every party that a node counts for a round, with its last coming to that round or an earlier one: the last that is
not behind the end of the round, if there is one. Behind it lines may be missing.

``newest`` goes through the rounds of a party once. Only where it came to the same round again after the end, which it
had not heard of, are all its comings looked at.
"""

_one_end = two_values(
    "{rounds_over}", ("stream", "era", "barrier", "round"), "shown",
    "format_string('round %d of barrier %s of group %d has ended in two ways, at %s and at %s', a.round, a.barrier,"
    " a.group, a.node, b.node)",
    "era IS NOT NULL",
)  # fmt: skip

_where = "format_string('round %d of barrier %s of group %d', c.round, c.barrier, c.group)"

BARRIER_CHECKS = (
    Check(
        rule="R1", promise="who is counted has come, by the word of its own daemon", level="batch",
        reads=("barrier_over",), whole=True,
        sql=f"""
            SELECT c.domain, c.group, c.seq, concat({_where}, ': ', c.provider, ' is counted, and its daemon has not'
                   ' seen it come') AS text, c.run AS a_run, c.lsn AS a_lsn, NULL AS b_run, NULL AS b_lsn
            FROM {{counts}} c LEFT JOIN (SELECT DISTINCT run FROM {{holes}}) h ON h.run = c.run
            WHERE c.coming IS NULL AND NOT c.is_hole AND h.run IS NULL
              AND get_json_object(c.provider, '$[0]') = c.node AND bigint(get_json_object(c.provider, '$[1]')) = c.inc
        """,
    ),
    Check(
        rule="R1", promise="no round ends before all who count have come", level="batch",
        reads=("barrier_over", "barrier_entered"),
        sql=f"""
            SELECT c.domain, c.group, c.seq, concat({_where}, ' ends with entry ', c.seq, ' at ', c.node, ', before ',
                   c.provider, ' has come') AS text,
                   c.coming.run AS a_run, c.coming.lsn AS a_lsn, c.run AS b_run, c.lsn AS b_lsn
            FROM {{counts}} c
            WHERE (c.is_told_at_home OR c.coming.round = c.round) AND NOT c.is_before_hole
              AND ((coalesce(c.coming.era = c.era, true) AND c.coming.seq > c.seq)
                   OR (c.coming.run = c.run AND c.coming.lsn > c.lsn)
                   OR (c.clock != '' AND c.coming.clock = c.clock AND c.coming.at > c.at))
        """,
    ),
    Check(
        rule="R2", promise="one end of a round", level="batch", nodes=2, reads=("barrier_over",),
        suspects=_one_end[0], sql=_one_end[1],
    ),
    Check(
        rule="R3", promise="who has come to a round that is over counts for no later one", level="batch",
        reads=("barrier_over", "barrier_entered"),
        sql=f"""
            SELECT c.domain, c.group, c.seq, concat({_where}, ': ', c.provider, ' is counted at ', c.node, ', and had'
                   ' come to round ', min(o.round), ', which is over') AS text,
                   c.coming.run AS a_run, c.coming.lsn AS a_lsn, c.run AS b_run, c.lsn AS b_lsn
            FROM {{counts}} c JOIN {{rounds_over}} o ON o.stream = c.stream AND o.era = c.era AND o.barrier = c.barrier
                 AND o.round >= c.coming.round AND o.round < c.round
                 AND (coalesce(o.end, '') != 'released' OR array_contains(o.arrived, c.provider))
            WHERE c.is_told_at_home AND c.coming.round < c.round AND NOT c.is_before_hole
            GROUP BY c.domain, c.group, c.seq, c.round, c.barrier, c.provider, c.node, c.run, c.lsn, c.coming
        """,
    ),
)  # fmt: skip


def barrier_tables(work: WorkTables) -> None:
    """What these checks read."""
    work.name("rounds_over", OVER)
    work.name("came", CAME)
    work.make("counts", COUNTS)
