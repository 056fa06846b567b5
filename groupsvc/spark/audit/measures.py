"""What journals tell about how well the service ran: who led when, how long it was gone, how long things took.

Times are differences by one clock where there is one: a ballot or a barrier is measured within one journal. What lies
between two nodes, a change of leaders for instance, is measured by the clock that people read, and is as good as that.

*Availability* of a group is the share of the time since its first view in which a view was active whose leader gave a
sign of life within the last second: a line about the group, or a lease of its node that was lengthened.
"""

from __future__ import annotations

from .worktable import WorkTables

SIGN_S = 1.0
"""A leader that was silent for longer is not there."""

LEADERSHIPS = """
    WITH active AS (
        SELECT domain, stream, group, epoch, node AS leader, run, min(clock_s) AS since,
               max(get_json_object(args, '$.forced')) = 'true' AS forced
        FROM {control} WHERE kind = 'view_active' GROUP BY domain, stream, group, epoch, node, run
        UNION ALL
        SELECT domain, stream, group, epoch, node, run, min(clock_s), false
        FROM {control} WHERE kind = 'office' AND get_json_object(args, '$.phase') = 'open'
        GROUP BY domain, stream, group, epoch, node, run
    ), left AS (
        SELECT run, stream, epoch, min(clock_s) AS at FROM {control}
        WHERE kind = 'view_left' OR (kind = 'office' AND get_json_object(args, '$.phase') = 'left')
        GROUP BY run, stream, epoch
    ), followed_by AS (
        SELECT a.*, lead(a.since) OVER (PARTITION BY a.stream ORDER BY a.epoch) AS next,
               lag(a.leader) OVER (PARTITION BY a.stream ORDER BY a.epoch) AS leader_before,
               lag(a.run) OVER (PARTITION BY a.stream ORDER BY a.epoch) AS run_before FROM active a
    )
    SELECT f.domain, f.stream, f.group, f.epoch, f.leader, f.run, f.leader_before, f.run_before, f.forced, f.since,
           least(coalesce(l.at, u.clock_max), coalesce(f.next, u.clock_max), u.clock_max) AS until
    FROM followed_by f JOIN {runs} u ON u.run = f.run
    LEFT JOIN left l ON l.run = f.run AND l.stream = f.stream AND l.epoch = f.epoch
"""

SIGNS = """
    SELECT run, stream, max(clock_s) AS at FROM {lines} WHERE class IN ('delivery', 'flow')
    GROUP BY run, stream, floor(clock_s * 4)
    UNION ALL
    SELECT run, stream, max(clock_s) FROM {control} GROUP BY run, stream, floor(clock_s * 4)
"""
"""Signs of life in each quarter of a second."""

AVAILABILITY = f"""
    WITH leases AS (
        SELECT run, clock_s AS at FROM {{control}} WHERE kind = 'lease'
        UNION ALL
        SELECT run, clock_min FROM {{runs}}
        UNION ALL
        SELECT run, clock_max FROM {{runs}}
    ), quiet AS (
        SELECT run, at AS until, before AS since
        FROM (SELECT run, at, lag(at) OVER (PARTITION BY run ORDER BY at) AS before FROM leases)
        WHERE at - before > {SIGN_S}
    ), doubtful AS (
        SELECT l.stream, l.epoch, l.run, greatest(l.since, q.since) AS since, least(l.until, q.until) AS until
        FROM {{leaderships}} l JOIN quiet q ON q.run = l.run AND q.since < l.until AND q.until > l.since
    ), own AS (
        SELECT d.stream, d.epoch, d.since, s.at FROM doubtful d JOIN {{signs}} s
          ON s.run = d.run AND s.stream = d.stream AND s.at >= d.since AND s.at <= d.until
        UNION ALL
        SELECT stream, epoch, since, since FROM doubtful
        UNION ALL
        SELECT stream, epoch, since, until FROM doubtful
    ), pauses AS (
        SELECT stream, greatest(0D, at - lag(at) OVER (PARTITION BY stream, epoch, since ORDER BY at) - {SIGN_S})
               AS silent FROM own
    ), led AS (
        SELECT domain, stream, group, sum(greatest(0D, until - since)) AS led, min(since) AS since,
               count(*) AS views FROM {{leaderships}} GROUP BY domain, stream, group
    ), ends AS (
        SELECT domain, max(clock_max) AS end FROM {{runs}} GROUP BY domain
    ), dropped AS (
        SELECT domain, bigint(get_json_object(args, '$.id')) AS group, min(clock_s) AS at FROM {{control}}
        WHERE kind = 'group_dropped' GROUP BY 1, 2
    )
    SELECT l.domain, l.group, l.views, l.since, least(e.end, coalesce(d.at, e.end)) AS until, l.led,
           coalesce(p.silent, 0D) AS silent_s, CASE WHEN least(e.end, coalesce(d.at, e.end)) > l.since
               THEN least(1D, greatest(0D, (l.led - coalesce(p.silent, 0D))
                    / (least(e.end, coalesce(d.at, e.end)) - l.since))) END AS availability
    FROM led l JOIN ends e ON e.domain = l.domain
    LEFT JOIN (SELECT stream, sum(silent) AS silent FROM pauses GROUP BY stream) p ON p.stream = l.stream
    LEFT JOIN dropped d ON d.domain = l.domain AND d.group = l.group
"""
"""A lease is a sign for all groups of its node, some times a second; so only where there were none for a while are the
signs of each group looked at."""

FAIL_OVERS = """
    WITH changes AS (
        SELECT l.domain, l.group, l.epoch, l.leader_before, l.leader, l.since, max(s.at) AS last_sign
        FROM {leaderships} l JOIN {signs} s ON s.run = l.run_before AND s.stream = l.stream AND s.at < l.since
        WHERE l.leader_before IS NOT NULL AND l.run_before != l.run
        GROUP BY l.domain, l.group, l.epoch, l.leader_before, l.leader, l.since
    ), downs AS (
        SELECT domain, get_json_object(args, '$.name') AS name, clock_s AS at FROM {control}
        WHERE kind = 'node_down'
        UNION ALL
        SELECT domain, get_json_object(args, '$.leader'), clock_s FROM {control} WHERE kind = 'leader_lost'
    )
    SELECT c.domain, c.group, c.epoch, c.leader_before, c.leader, c.last_sign, c.since AS active,
           min(d.at) AS detected, greatest(0D, c.since - c.last_sign) AS fail_over_s,
           greatest(0D, min(d.at) - c.last_sign) AS detection_s
    FROM changes c LEFT JOIN downs d ON d.domain = c.domain AND d.name = c.leader_before
                                    AND d.at >= c.last_sign AND d.at <= c.since + 1
    GROUP BY c.domain, c.group, c.epoch, c.leader_before, c.leader, c.last_sign, c.since
"""
"""From the last sign of the leader before to the next active view; detected is who is down, if it was."""

BALLOT_TIMES = """
    SELECT e.domain, e.group, e.ballot, max(e.at - b.at) AS seconds, max(e.approved) AS approved
    FROM {ballot_lines} e JOIN {ballot_lines} b ON b.run = e.run AND b.stream = e.stream AND b.stay = e.stay
                                              AND b.ballot = e.ballot AND b.kind = 'phase' AND b.phase = 1
    WHERE e.kind = 'outcome' GROUP BY e.domain, e.group, e.stream, e.era, e.ballot
"""

BARRIER_TIMES = """
    SELECT c.domain, c.group, c.barrier, c.round, max(o.at - c.at) AS longest_s, min(o.at - c.at) AS shortest_s
    FROM {came} c JOIN {rounds_over} o ON o.run = c.run AND o.stream = c.stream AND o.barrier = c.barrier
                                     AND o.round = c.round AND o.lsn > c.lsn
    GROUP BY c.domain, c.group, c.stream, c.barrier, c.round
"""
"""How long the first and the last one to come waited for the end of a round."""

DEFAULT_VOTES = """
    SELECT domain, group, get_json_object(provider, '$[0]') AS node, provider, why, count(*) AS votes FROM (
        SELECT DISTINCT domain, stream, group, era, ballot, phase, provider, why FROM {cast_votes} WHERE why != ''
    ) GROUP BY domain, group, provider, why
"""

RATES = """
    SELECT domain, node, date_format(timestamp_seconds(floor(clock_s / 3600) * 3600), 'yyyy-MM-dd HH:00') AS hour,
           sum(seq - since + 1) AS delivered,
           sum(seq - since + 1) / greatest(1D, max(clock_s) - min(clock_s)) AS per_second
    FROM {followed} WHERE kind = 'delivered' AND group > 0 GROUP BY domain, node, floor(clock_s / 3600)
"""

MEASURES = {
    "leaderships": LEADERSHIPS,
    "availability": AVAILABILITY,
    "fail_overs": FAIL_OVERS,
    "ballot_times": BALLOT_TIMES,
    "barrier_times": BARRIER_TIMES,
    "default_votes": DEFAULT_VOTES,
    "rates": RATES,
}
"""Tables of the report."""


def measure(work: WorkTables) -> None:
    """Make them all."""
    work.make("leaderships", LEADERSHIPS)
    work.make("signs", SIGNS)
    for name, text in MEASURES.items():
        if name != "leaderships":
            work.make(name, text)


LATENCIES = {
    "ballots": ("ballot_times", "seconds"),
    "barriers, the first to come": ("barrier_times", "longest_s"),
    "barriers, the last to come": ("barrier_times", "shortest_s"),
    "fail-over: the leader was lost": ("fail_overs", "CASE WHEN detected IS NOT NULL THEN fail_over_s END"),
    "hand-over: it was not": ("fail_overs", "CASE WHEN detected IS NULL THEN fail_over_s END"),
    "detection": ("fail_overs", "detection_s"),
}
"""What is shown as percentiles and as a distribution."""


def latencies(work: WorkTables) -> dict[str, dict[str, float]]:
    """Of each, how many, and by percentile, in seconds."""
    parts = [
        f"SELECT '{what}' AS what, count({value}) AS count,"
        f" percentile_approx({value}, array(0.5, 0.9, 0.99, 1.0), 10000) AS at FROM {{{table}}}"
        for what, (table, value) in LATENCIES.items()
    ]
    found: dict[str, dict[str, float]] = {}
    for row in work.sql(" UNION ALL ".join(parts)).collect():
        if row["count"]:
            found[row["what"]] = {
                "count": row["count"],
                **dict(zip(("p50", "p90", "p99", "max"), row["at"], strict=True)),
            }
    return found


def distributions(work: WorkTables) -> dict[str, list[tuple[float, int]]]:
    """Of each, how many took how long: by the upper end of each interval, four to a factor of ten."""
    parts = [
        f"SELECT '{what}' AS what, pow(10D, ceil(log10(greatest({value}, 0.0001D)) * 4) / 4) AS upto, count(*) AS count"
        f" FROM {{{table}}} WHERE {value} IS NOT NULL GROUP BY 2"
        for what, (table, value) in LATENCIES.items()
    ]
    found: dict[str, list[tuple[float, int]]] = {}
    for row in work.sql(" UNION ALL ".join(parts)).collect():
        found.setdefault(row["what"], []).append((float(row["upto"]), int(row["count"])))
    return {what: sorted(those) for what, those in found.items()}
