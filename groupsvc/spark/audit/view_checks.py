"""V1 to V6: who is in, who leads, and that all who go together have seen the same.

``view_installed`` is written by each server that accepts a view, ``view_active`` by its leader once it was confirmed,
``members`` by every node as it delivers a change of the list. An epoch of the domain's own stream, group 0, is a view,
too: of its voters.
"""

from __future__ import annotations

from .checks import Check, two_values

_views = """(
    SELECT domain, run, stream, group, node, lsn, seq, epoch, xxhash64(
               get_json_object(args, '$.leader'), get_json_object(args, '$.k'),
               sort_array(CASE WHEN kind = 'view_active'
                    THEN transform(from_json(get_json_object(args, '$.servers'), 'ARRAY<ARRAY<STRING>>'), s -> s[0])
                    ELSE from_json(get_json_object(args, '$.members'), 'ARRAY<STRING>') END)) AS shown
    FROM {control} WHERE kind IN ('view_installed', 'view_active')
)"""

_one_view = two_values(
    _views, ("stream", "epoch"), "shown",
    "format_string('view %d of group %d is not the same at %s and at %s', a.epoch, a.group, a.node, b.node)",
)  # fmt: skip

_one_list = two_values(
    "{told}", ("stream", "era", "seq"), "xxhash64(get_json_object(args, '$.members'))",
    "format_string('the members of group %d after entry %d are not the same at %s and at %s', a.group, a.seq, a.node,"
    " b.node)",
    "kind = 'members' AND era IS NOT NULL",
)  # fmt: skip

_one_table = two_values(
    "(SELECT c.* FROM {control} c JOIN {runs} u ON u.run = c.run AND u.level = 'full')", ("stream", "seq"),
    "xxhash64(get_json_object(args, '$.nodes'))",
    "format_string('list %d of nodes is not the same at %s and at %s', a.seq, a.node, b.node)",
    "kind = 'list_installed' AND coalesce(get_json_object(args, '$.nodes'), '') NOT IN ('{{}}', '[]')",
)  # fmt: skip

_one_recovery = two_values(
    "{control}", ("stream", "epoch"), "xxhash64(node, inc)",
    "format_string('%s and %s have both recovered epoch %d of group %d', a.node, b.node, a.epoch, a.group)",
    "kind = 'recovered'",
)  # fmt: skip

_among = two_values(
    "{followed}", ("stream", "era", "seq"), "list_before",
    "format_string('%s and %s deliver entry %d of group %d among different members', a.node, b.node, a.seq, a.group)",
    "kind = 'delivered' AND era IS NOT NULL AND list_before != 0",
)[1]  # fmt: skip

_batch_lists = """
    SELECT stream, era, seq, min(list_before) AS low, max(list_before) AS high FROM {followed}
    WHERE kind = 'delivered' AND NOT is_entry AND era IS NOT NULL AND list_before != 0 GROUP BY stream, era, seq
"""

_same_list = f"""
    SELECT b.stream, b.era, b.seq, least(b.low, min(l.list)) AS low, greatest(b.high, max(l.list_max)) AS high
    FROM ({_batch_lists}) b LEFT JOIN {{log}} l ON l.stream = b.stream AND l.era = b.era AND l.seq = b.seq
    GROUP BY b.stream, b.era, b.seq, b.low, b.high
    HAVING least(b.low, min(l.list)) != greatest(b.high, max(l.list_max))
"""
"""Batches that ended with one number, and the entry of that number where journals are full."""

_active = """
    SELECT domain, run, stream, group, node, inc, lsn, at, epoch, seq, bigint(get_json_object(args, '$.base')) AS base,
           bigint(get_json_object(args, '$.fence')) AS fence, int(get_json_object(args, '$.k')) AS k,
           get_json_object(args, '$.forced') = 'true' AS forced,
           from_json(get_json_object(args, '$.servers'), 'ARRAY<ARRAY<STRING>>') AS servers
    FROM {control} WHERE kind = 'view_active'
"""

_chain = f"""
    WITH chain AS (
        SELECT *, lag(epoch, 1, 0L) OVER (PARTITION BY stream ORDER BY epoch) AS before,
               lag(run) OVER (PARTITION BY stream ORDER BY epoch) AS run_before,
               lag(lsn) OVER (PARTITION BY stream ORDER BY epoch) AS lsn_before
        FROM (SELECT *, row_number() OVER (PARTITION BY stream, epoch ORDER BY run, lsn) AS place FROM ({_active}))
        WHERE place = 1
    )
    SELECT domain, group, seq, format_string('view %d of group %d goes on from %d, and %d was active before it', epoch,
           group, base, before) AS text, run_before AS a_run, lsn_before AS a_lsn, run AS b_run, lsn AS b_lsn
    FROM chain WHERE base IS NULL OR (run_before IS NOT NULL AND (base < before OR base >= epoch))
"""

_majorities = """
    WITH views AS (
        SELECT domain, stream, group, epoch, min(run) AS run, min_by(lsn, run) AS lsn, min(seq) AS seq,
               from_json(min_by(get_json_object(args, '$.members'), run), 'ARRAY<STRING>') AS members
        FROM {control} WHERE kind = 'view_installed' AND group = 0 GROUP BY domain, stream, group, epoch
    ), pairs AS (
        SELECT *, lag(struct(run, lsn, epoch, members)) OVER (PARTITION BY stream ORDER BY epoch) AS before FROM views
    )
    SELECT domain, group, seq, format_string('views %d and %d of the domain share no majority', before.epoch, epoch)
           AS text, before.run AS a_run, before.lsn AS a_lsn, run AS b_run, lsn AS b_lsn
    FROM pairs WHERE before IS NOT NULL
      AND (2 * size(array_intersect(members, before.members)) <= size(members)
           OR 2 * size(array_intersect(members, before.members)) <= size(before.members))
"""

_from_enough = f"""
    WITH active AS ({_active}), recovered AS (
        SELECT c.run, c.stream, c.node, c.inc, c.lsn, c.at, c.epoch, u.clock FROM {{control}} c JOIN {{runs}} u
          ON u.run = c.run WHERE c.kind = 'recovered' AND c.group > 0
    ), asked AS (
        SELECT a.domain, a.stream, a.group, a.epoch, r.run, r.lsn, r.at, r.clock, b.epoch AS base, b.run AS base_run,
               b.lsn AS base_lsn, explode(b.servers) AS server, CASE WHEN b.node = r.node AND b.inc = r.inc
               THEN least(b.k, size(b.servers) - b.k + 1) ELSE size(b.servers) - b.k + 1 END AS needed,
               size(b.servers) AS servers
        FROM active a JOIN recovered r ON r.stream = a.stream AND r.epoch = a.epoch AND r.run = a.run
        JOIN active b ON b.stream = a.stream AND b.epoch = a.base
        WHERE NOT coalesce(a.forced, false)
    ), promised AS (
        SELECT stream, node, max(epoch) AS epoch FROM {{control}} WHERE kind = 'promise' GROUP BY stream, node
    ), refusing AS (
        SELECT DISTINCT q.stream, q.epoch, q.server
        FROM asked q JOIN {{runs}} u ON u.domain = q.domain AND u.node = q.server[0] AND u.clock = q.clock
             AND u.clock != '' AND u.at_min < q.at AND u.at_max > q.at + 1.0
        WHERE NOT EXISTS (SELECT 1 FROM promised p
                          WHERE p.stream = q.stream AND p.node = q.server[0] AND p.epoch >= q.epoch)
          AND NOT EXISTS (SELECT 1 FROM {{holes}} h WHERE h.run = u.run)
    ), ahead AS (
        SELECT stream, epoch, max(above) AS above FROM (
            SELECT kind, stream, epoch, max(CASE WHEN kind = 'view_installed' THEN epoch END) OVER (
                       PARTITION BY run, stream ORDER BY lsn ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS above
            FROM {{control}} WHERE kind IN ('promise', 'view_installed')
        ) WHERE kind = 'promise' GROUP BY stream, epoch
    )
    SELECT first(q.domain) AS domain, first(q.group) AS group, 0L AS seq, format_string(
               'epoch %d of group %d is recovered with at most %d promises of the servers of %d, and needs %d', q.epoch,
               first(q.group), first(q.servers) - count(DISTINCT r.server), q.base, first(q.needed)) AS text,
           first(q.base_run) AS a_run, first(q.base_lsn) AS a_lsn, first(q.run) AS b_run, first(q.lsn) AS b_lsn
    FROM asked q JOIN refusing r ON r.stream = q.stream AND r.epoch = q.epoch AND r.server = q.server
    LEFT JOIN ahead h ON h.stream = q.stream AND h.epoch = q.epoch AND h.above > q.base
    WHERE h.stream IS NULL
    GROUP BY q.stream, q.epoch, q.base HAVING first(q.servers) - count(DISTINCT r.server) < first(q.needed)
"""
"""A server that certainly has not promised: its journal goes on for a second by the same clock, and tells nothing."""

_ordered_early = """
    WITH active AS (
        SELECT run, group, epoch, min(lsn) AS lsn, min(at) AS at FROM {control}
        WHERE kind = 'view_active' OR (kind = 'office' AND get_json_object(args, '$.phase') = 'open')
        GROUP BY run, group, epoch
    )
    SELECT o.domain, o.group, o.seq_min AS seq, format_string('%s orders %d of group %d in epoch %d %s', o.node,
               o.seq_min, o.group, o.epoch, if(a.run IS NULL, 'and that view is never active',
               'before that view is active')) AS text,
           o.run AS a_run, o.seq_min_lsn AS a_lsn, a.run AS b_run, a.lsn AS b_lsn
    FROM {spans} o LEFT JOIN active a ON a.run = o.run AND a.group = o.group AND a.epoch = o.epoch
    LEFT JOIN (SELECT run, min(lsn) AS lsn FROM {holes} GROUP BY run) h ON h.run = o.run
    WHERE o.kind = 'ordered' AND ((o.lsn_min < a.lsn AND o.at_min < a.at)
                                  OR (a.run IS NULL AND (h.run IS NULL OR h.lsn > o.lsn_min)))
"""
"""The leader itself writes that its view is active; the domain's own stream has an office that is open instead. Behind
a hole nobody knows: the view may have been active before the first line that is here. By group and not by stream, as a
process may outlive the life of its domain in which it was made a leader.
"""

_together = """
    WITH parts AS (
        SELECT domain, run, stream, group, node, stay, era, list_seq_before AS since, is_entry,
               count(*) AS lines, sum(seq - coalesce(first, seq) + 1) AS entries,
               bit_xor(CASE WHEN is_entry THEN xxhash64(seq, content) ELSE 0L END) AS shown,
               max(seq) AS upto, max(lsn) AS lsn
        FROM {followed}
        WHERE kind = 'delivered' AND list_seq_before > 0 AND list_lsn_before >= stay AND group > 0
        GROUP BY domain, run, stream, group, node, stay, era, list_seq_before, is_entry
    ), whole AS (
        SELECT p.*, lead(since) OVER (PARTITION BY run, stream, stay ORDER BY since) AS next,
               lead(era) OVER (PARTITION BY run, stream, stay ORDER BY since) AS era_next
        FROM parts p
    )
    SELECT domain, run, stream, group, node, lsn, upto AS seq, era, since, next, what,
           CASE what WHEN 'how many' THEN entries ELSE shown END AS shown
    FROM whole LATERAL VIEW explode(if(is_entry, array('how many', 'which'), array('how many'))) AS what
    WHERE next IS NOT NULL AND era IS NOT NULL AND era = era_next
"""
"""Which entries lie between two lists is compared where journals are full, and how many they are everywhere. Which ones
a batch has in it is told by digests, which are compared by number (B4).
"""

_synchronous = two_values(
    f"({_together})", ("stream", "era", "since", "next", "what"), "shown",
    "format_string('%s and %s go together from the list of entry %d of group %d to that of %d, and have not delivered"
    " the same between', a.node, b.node, a.since, a.group, a.next)",
)  # fmt: skip

VIEW_CHECKS = (
    Check(
        rule="V1", promise="who installs a view is in it", level="batch", reads=("view_installed",),
        sql="""
            SELECT domain, group, seq, format_string('%s installs view %d of group %d and is not in it', node, epoch,
                   group) AS text, run AS a_run, lsn AS a_lsn, NULL AS b_run, NULL AS b_lsn
            FROM {control} WHERE kind = 'view_installed'
              AND NOT coalesce(array_contains(
                      from_json(get_json_object(args, '$.members'), 'ARRAY<STRING>'), node), false)
        """,
    ),
    Check(
        rule="V1", promise="who leads a view is in it", level="batch", reads=("view_active",),
        sql=f"""
            SELECT domain, group, seq, format_string('%s leads view %d of group %d and is not in it', node, epoch,
                   group) AS text, run AS a_run, lsn AS a_lsn, NULL AS b_run, NULL AS b_lsn
            FROM ({_active}) WHERE NOT coalesce(exists(servers, s -> s[0] = node), false)
        """,
    ),
    Check(
        rule="V2", promise="the views that a process installs only grow", level="batch", reads=("view_installed",),
        sql="""
            SELECT domain, group, seq, format_string('%s installs view %d of group %d after view %d', node, epoch,
                   group, top.epoch) AS text, run AS a_run, top.lsn AS a_lsn, run AS b_run, lsn AS b_lsn
            FROM (SELECT *, max(struct(epoch, lsn)) OVER (PARTITION BY run, inc, stream ORDER BY lsn
                         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS top
                  FROM {control} WHERE kind = 'view_installed')
            WHERE epoch < top.epoch
        """,
    ),
    Check(
        rule="V2", promise="the epochs that a process delivers in only grow", level="batch", reads=("delivered",),
        sql="""
            SELECT domain, group, seq, format_string('%s delivers %d of group %d in epoch %d after epoch %d', node, seq,
                   group, epoch, epoch_before) AS text, run AS a_run, epoch_lsn_before AS a_lsn, run AS b_run,
                   lsn AS b_lsn
            FROM {followed} WHERE kind = 'delivered' AND epoch < epoch_before
        """,
    ),
    Check(
        rule="V2", promise="the lists of nodes that a process installs only grow", level="batch",
        reads=("list_installed",),
        sql="""
            SELECT domain, group, seq, format_string('%s has list %d of nodes after list %d', node, seq, top.seq)
                   AS text, run AS a_run, top.lsn AS a_lsn, run AS b_run, lsn AS b_lsn
            FROM (SELECT *, max(struct(seq, lsn)) OVER (PARTITION BY run, inc, stream ORDER BY lsn
                         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS top
                  FROM {control} WHERE kind = 'list_installed')
            WHERE seq < top.seq
        """,
    ),
    Check(
        rule="V3", promise="one view, one leader, one list of servers", level="batch", nodes=2,
        reads=("view_installed",), suspects=_one_view[0], sql=_one_view[1],
    ),
    Check(
        rule="V3", promise="one list of members after one entry", level="batch", nodes=2, reads=("members",),
        suspects=_one_list[0], sql=_one_list[1],
    ),
    Check(
        rule="V3", promise="one table of nodes under one version", level="full", nodes=2, reads=("list_installed",),
        suspects=_one_table[0], sql=_one_table[1],
    ),
    Check(
        rule="V4", promise="one process recovers the log of an epoch", level="batch", reads=("recovered",),
        suspects=_one_recovery[0], sql=_one_recovery[1],
    ),
    Check(
        rule="V4", promise="active views form one chain", level="batch", reads=("view_active",), sql=_chain,
    ),
    Check(
        rule="V4", promise="views of the domain that follow share a majority", level="batch",
        reads=("domain_view",), sql=_majorities,
    ),
    Check(
        rule="V4", promise="a log is recovered from enough servers of the view before", level="batch",
        reads=("recovered", "view_active"), one_clock=True, whole=True, sql=_from_enough,
    ),
    Check(
        rule="V4", promise="nobody orders in a view that is not active", level="full", reads=("ordered",),
        sql=_ordered_early,
    ),
    Check(
        rule="V5", promise="who goes from one list to the next together has delivered the same", level="batch",
        nodes=2, reads=("members",), suspects=_synchronous[0], sql=_synchronous[1],
    ),
    Check(
        rule="V6", promise="batches that end with one number are delivered among the same members", level="batch",
        nodes=2, reads=("digest",), suspects=_same_list, sql=_among,
    ),
    Check(
        rule="V6", promise="an entry is delivered among the same members everywhere", level="full", nodes=2,
        reads=("entry",),
        suspects="SELECT stream, era, seq, min(list) AS low, max(list_max) AS high FROM {log}"
        " GROUP BY stream, era, seq HAVING min(list) != max(list_max)",
        sql=_among,
    ),
    Check(
        rule="V6", promise="the first entry of an epoch is its leader's own", level="full", reads=("group_ordered",),
        whole=True,
        sql="""
            SELECT domain, group, seq_min AS seq, format_string(
                       'the first entry of epoch %d of group %d, %d, comes from %s', epoch, group, seq_min,
                       origin_first) AS text, run AS a_run, seq_min_lsn AS a_lsn, NULL AS b_run, NULL AS b_lsn
            FROM {spans} s WHERE kind = 'ordered' AND group > 0 AND origin_first != ''
              AND NOT EXISTS (SELECT 1 FROM {holes} h WHERE h.run = s.run)
        """,
    ),
)  # fmt: skip
