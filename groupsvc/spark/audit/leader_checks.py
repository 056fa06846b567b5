"""L1, L2, L3, L5, L6: an epoch has one leader, is promised before it is used, and is over when it is over."""

from __future__ import annotations

from .checks import Check, two_values

_leading = """(
    SELECT domain, run, stream, group, node, inc, epoch, seq, lsn FROM {control}
    WHERE kind = 'view_active' OR (kind = 'office' AND get_json_object(args, '$.phase') = 'open')
    UNION ALL
    SELECT domain, run, stream, group, node, inc, epoch, seq_min AS seq, seq_min_lsn AS lsn FROM {spans}
    WHERE kind IN ('ordered', 'stable')
)"""

_one_leader = two_values(
    _leading, ("stream", "epoch"), "xxhash64(node, if(group = 0, run, inc))",
    "format_string('%s and %s both lead group %d in epoch %d', a.node, b.node, a.group, a.epoch)",
)  # fmt: skip
"""A name server that learns it was declared down goes on under a new incarnation, and may keep the office: that hangs
on its disk. Who led a group in memory may not.
"""

_reused = two_values(
    "{control}", ("stream", "epoch", "node"), "run",
    "format_string('%s uses epoch %d of group %d again after a restart', a.node, a.epoch, a.group)",
    "kind IN ('granted', 'recovered', 'view_active', 'office')",
)  # fmt: skip

_bound = """
    SELECT run, inc, stream, epoch, min(lsn) AS lsn FROM {control}
    WHERE kind IN ('promise', 'view_installed', 'members') GROUP BY run, inc, stream, epoch
    UNION ALL
    SELECT run, inc, stream, epoch, lsn_min FROM {spans} WHERE kind = 'delivered' AND group > 0
"""
"""From which line on a process is under an epoch."""


def _under(which: str, marks: str) -> str:
    """What a process did in an epoch of a group, with the highest epoch that it was under before it did so last."""
    return f"""
        SELECT it.*, top FROM (
            SELECT it, max(mark) OVER (PARTITION BY run, inc, stream ORDER BY place
                                       ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS top
            FROM (SELECT run, inc, stream, lsn_max AS place, struct(s.*) AS it, NULL AS mark FROM {{spans}} s
                  WHERE group > 0 AND {which}
                  UNION ALL
                  SELECT run, inc, stream, lsn, NULL, struct(epoch, lsn) FROM ({marks}))
        ) WHERE it IS NOT NULL
    """


_volatile = """
    SELECT DISTINCT stream FROM {control}
    WHERE kind = 'view_active' AND get_json_object(args, '$.servers[0][1]') RLIKE '^[0-9]+$'
"""
"""Streams that are in memory only: a server of a durable one is named by its disk. What that holds it says when it is
written, and it may have promised a higher epoch meanwhile.
"""

_held_late = """
    SELECT it.*, top, clock FROM (
        SELECT run, it, max(mark) OVER (PARTITION BY run, inc, stream ORDER BY place
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS top
        FROM (SELECT run, inc, stream, lsn_max AS place, struct(s.*) AS it, NULL AS mark
              FROM {spans} s WHERE kind = 'held'
              UNION ALL
              SELECT run, inc, stream, lsn, NULL, struct(epoch, lsn, at) FROM {control} WHERE kind = 'promise')
    ) JOIN {runs} u USING (run)
    WHERE it IS NOT NULL AND top.epoch > it.epoch AND u.clock != ''
"""
"""What a process held in an epoch when it had promised a higher one, with that promise and by which clock it came."""

GONE_SLACK_S = 0.1
"""A batch waits so long for others before it is written down, and bears the time at which it is."""

_fences = """
    SELECT domain, run, stream, group, node, lsn, seq, stay, kind = 'members' AS of_nodes,
           bigint(get_json_object(args, '$.fence')) AS fence
    FROM {told} WHERE kind IN ('members', 'provider_joined', 'provider_left', 'fenced')
"""

LEADER_CHECKS = (
    Check(
        rule="L1", promise="one process leads in an epoch", level="batch", reads=("view_active|office|ordered",),
        suspects=_one_leader[0], sql=_one_leader[1],
    ),
    Check(
        rule="L1", promise="a leader gives a number once", level="full", reads=("ordered",),
        suspects="""
            SELECT stream, epoch, seq, min(lsn) AS low, max(lsn) AS high FROM {lines}
            WHERE class = 'flow' AND kind = 'ordered' GROUP BY stream, epoch, run, seq HAVING count(*) > 1
        """,
        sql="""
            SELECT a.domain, a.group, a.seq, format_string('%s gives number %d of group %d twice in epoch %d', a.node,
                   a.seq, a.group, a.epoch) AS text, a.run AS a_run, s.low AS a_lsn, a.run AS b_run, s.high AS b_lsn
            FROM {lines} a JOIN {suspects} s
              ON a.stream = s.stream AND a.epoch = s.epoch AND a.seq = s.seq AND a.lsn = s.low
            WHERE a.class = 'flow' AND a.kind = 'ordered'
        """,
    ),
    Check(
        rule="L2", promise="who recovers an epoch has promised it before", level="batch",
        reads=("recovered", "promise"), whole=True,
        sql="""
            SELECT r.domain, r.group, r.seq, format_string('%s recovers epoch %d of group %d and has not promised it',
                   r.node, r.epoch, r.group) AS text, r.run AS a_run, r.lsn AS a_lsn, min(later.run) AS b_run,
                   min(later.lsn) AS b_lsn
            FROM {control} r
            LEFT JOIN {control} p ON p.kind = 'promise' AND p.run = r.run AND p.stream = r.stream
                                 AND p.epoch = r.epoch AND p.lsn < r.lsn
            LEFT JOIN {control} later ON later.kind = 'promise' AND later.run = r.run AND later.stream = r.stream
                                     AND later.epoch = r.epoch AND later.lsn > r.lsn
            LEFT JOIN {holes} h ON h.run = r.run
            WHERE r.kind = 'recovered' AND p.run IS NULL AND h.run IS NULL
            GROUP BY r.domain, r.group, r.seq, r.node, r.epoch, r.run, r.lsn
        """,
    ),
    Check(
        rule="L2", promise="an epoch is used by one process of a node", level="batch",
        reads=("recovered|view_active|office",), suspects=_reused[0], sql=_reused[1],
    ),
    Check(
        rule="L3", promise="who has promised an epoch installs no view below it", level="batch",
        reads=("promise", "view_installed"),
        sql="""
            SELECT domain, group, seq, format_string('%s has promised epoch %d of group %d and installs view %d', node,
                   top.epoch, group, epoch) AS text, run AS a_run, top.lsn AS a_lsn, run AS b_run, lsn AS b_lsn
            FROM (SELECT *, max(CASE WHEN kind = 'promise' THEN struct(epoch, lsn) END) OVER (
                             PARTITION BY run, inc, stream ORDER BY lsn
                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS top,
                         max(CASE WHEN kind = 'view_installed' THEN epoch END) OVER (
                             PARTITION BY run, inc, stream ORDER BY lsn
                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS installed
                  FROM {control} WHERE kind IN ('promise', 'view_installed'))
            WHERE kind = 'view_installed' AND epoch < top.epoch AND epoch >= coalesce(installed, 0)
        """,
    ),
    Check(
        rule="L3", promise="who has promised an epoch holds nothing of a lower one", level="full",
        reads=("promise", "group_held"),
        sql=f"""
            SELECT s.domain, s.group, s.seq_max AS seq, format_string(
                       '%s has promised epoch %d of group %d and holds %d in epoch %d', s.node, s.top.epoch, s.group,
                       s.seq_max, s.epoch) AS text,
                   s.run AS a_run, s.top.lsn AS a_lsn, s.run AS b_run, s.lsn_max AS b_lsn
            FROM ({_under("s.kind = 'held'", "SELECT * FROM {control} WHERE kind = 'promise'")}) s
            JOIN ({_volatile}) v ON v.stream = s.stream
            WHERE s.top.epoch > s.epoch
        """,
    ),
    Check(
        rule="L3", promise="who has promised an epoch takes nothing that is ordered later in a lower one", level="full",
        reads=("promise", "held", "ordered"), one_clock=True,
        sql=f"""
            SELECT s.domain, s.group, s.seq_max AS seq, format_string(
                       '%s has promised epoch %d of group %d and holds %d, which %s orders in epoch %d %.3f s later',
                       s.node, s.top.epoch, s.group, s.seq_max, o.node, s.epoch, o.at - s.top.at) AS text,
                   s.run AS a_run, s.top.lsn AS a_lsn, o.run AS b_run, o.lsn AS b_lsn
            FROM ({_held_late}) s
            JOIN (SELECT l.stream, l.epoch, l.seq, l.run, l.node, l.lsn, l.at, u.clock FROM {{lines}} l JOIN {{runs}} u
                  ON u.run = l.run WHERE l.class = 'flow' AND l.kind = 'ordered') o
              ON o.stream = s.stream AND o.epoch = s.epoch AND o.seq = s.seq_max AND o.clock = s.clock
            WHERE o.at > s.top.at
        """,
    ),
    Check(
        rule="L5", promise="who is under a higher epoch orders and announces nothing in a lower one", level="full",
        reads=("group_ordered|group_stable",),
        sql=f"""
            SELECT domain, group, seq_max AS seq, format_string(
                       '%s is under epoch %d of group %d, and still has %s %d in epoch %d', node, top.epoch, group,
                       kind, seq_max, epoch) AS text,
                   run AS a_run, top.lsn AS a_lsn, run AS b_run, lsn_max AS b_lsn
            FROM ({_under("s.kind IN ('ordered', 'stable')", _bound)}) WHERE top.epoch > epoch
        """,
    ),
    Check(
        rule="L5", promise="who has left the office orders nothing in it", level="batch", reads=("office", "ordered"),
        sql="""
            SELECT s.domain, s.group, s.seq_max AS seq, format_string(
                       '%s has left the office of epoch %d, and still orders %d', s.node, s.epoch, s.seq_max) AS text,
                   s.run AS a_run, min(o.lsn) AS a_lsn, s.run AS b_run, s.lsn_max AS b_lsn
            FROM {spans} s JOIN {control} o ON o.kind = 'office' AND o.run = s.run AND o.epoch = s.epoch
                            AND o.stream = s.stream AND o.lsn < s.lsn_max
                            AND get_json_object(o.args, '$.phase') = 'left'
            WHERE s.kind = 'ordered' AND s.group = 0
            GROUP BY s.domain, s.group, s.seq_max, s.node, s.epoch, s.run, s.lsn_max
        """,
    ),
    Check(
        rule="L5", promise="who is gone delivers, orders and holds nothing", level="batch",
        reads=("node_gone", "delivered"), one_clock=True,
        sql=f"""
            WITH gone AS (
                SELECT c.domain, u.clock, get_json_object(c.args, '$.name') AS name,
                       bigint(get_json_object(c.args, '$.inc')) AS inc, min(c.at) AS at, min_by(c.run, c.at) AS run,
                       min_by(c.lsn, c.at) AS lsn
                FROM {{control}} c JOIN {{runs}} u ON u.run = c.run WHERE c.kind = 'node_gone' AND u.clock != ''
                GROUP BY 1, 2, 3, 4
            )
            SELECT s.domain, s.group, s.seq_max AS seq, format_string(
                       '%s/%d is gone, and still has %s %d of group %d, %.3f s later', s.node, s.inc, s.kind, s.seq_max,
                       s.group, s.at_max - g.at) AS text,
                   g.run AS a_run, g.lsn AS a_lsn, s.run AS b_run, s.lsn_max AS b_lsn
            FROM {{spans}} s JOIN {{runs}} u ON u.run = s.run JOIN gone g
              ON g.domain = s.domain AND g.clock = u.clock AND g.name = s.node AND g.inc = s.inc
            WHERE s.group > 0 AND s.kind != 'digest' AND s.at_max > g.at + {GONE_SLACK_S}
        """,
    ),
    Check(
        rule="L6", promise="of two active views the later has the higher fence", level="batch", reads=("view_active",),
        sql="""
            SELECT domain, group, seq, format_string('view %d of group %d has fence %d, view %d had %d', epoch, group,
                   fence, before.epoch, before.fence) AS text,
                   before.run AS a_run, before.lsn AS a_lsn, run AS b_run, lsn AS b_lsn
            FROM (SELECT *, lag(struct(run, lsn, epoch, fence)) OVER (PARTITION BY stream ORDER BY epoch, lsn) AS before
                  FROM (SELECT *, bigint(get_json_object(args, '$.fence')) AS fence FROM {control}
                        WHERE kind = 'view_active'))
            WHERE fence IS NULL OR (epoch > before.epoch AND fence <= before.fence)
        """,
    ),
    Check(
        rule="L6", promise="fences that are handed out only grow", level="batch",
        reads=("members|provider_joined",),
        sql=f"""
            SELECT domain, group, seq, format_string('the fence of group %d is %d at %d, and was %d at %d', group,
                   fence, seq, before.fence, before.seq) AS text,
                   run AS a_run, before.lsn AS a_lsn, run AS b_run, lsn AS b_lsn
            FROM (SELECT *, lag(struct(lsn, seq, fence)) OVER (PARTITION BY run, stream, stay, of_nodes ORDER BY lsn)
                         AS before FROM ({_fences}))
            WHERE fence IS NULL OR fence < before.fence OR (fence = before.fence AND seq > before.seq)
        """,
    ),
)  # fmt: skip
