"""G1 to G5 and G10: every ballot recounted, from what each node that carries the group has written.

A ballot runs through phases; each node writes how a phase began (``phase``: who has a vote, for how long), how it ended
when another follows (``votes``), and the ``outcome``. The daemon of a voter writes what that voter said (``voted``). A
provider, ``[node, incarnation, number]``, is compared as that text.

Several daemons see a phase begin and end, each by its own clock; the one that presides, the leader of the group, saw it
begin first. So a vote is rightly called late if by anybody's clock the time was up.
"""

from __future__ import annotations

from .checks import Check, two_values
from .worktable import WorkTables

SLACK_S = 1e-6
"""By which two floats may differ that should be equal."""

BALLOT_LINES = """
    SELECT domain, run, stream, group, node, inc, lsn, seq, stay, era, era_here, is_hole, kind, entry AS ballot,
           double(get_json_object(args, '$.at')) AS at, int(get_json_object(args, '$.phase')) AS phase,
           int(get_json_object(args, '$.phases')) AS phases,
           double(get_json_object(args, '$.time_limit')) AS time_limit,
           from_json(get_json_object(args, '$.electorate'), 'ARRAY<STRING>') AS electorate,
           from_json(get_json_object(args, '$.votes'), 'ARRAY<ARRAY<STRING>>') AS votes,
           get_json_object(args, '$.approved') = 'true' AS approved,
           xxhash64(seq, get_json_object(args, '$.kind'), get_json_object(args, '$.proposals'),
                    get_json_object(args, '$.leaving')) AS what,
           xxhash64(seq, regexp_replace(args, '"at":[-+0-9.eE]+,?', '')) AS shown
    FROM {told} WHERE kind IN ('phase', 'votes', 'outcome')
"""
"""``shown`` is everything in a line but when its node saw it."""

BALLOTS = """
    SELECT *, max(CASE WHEN kind IN ('phase', 'outcome') THEN struct(
               lsn, kind, ballot, phase, phases, time_limit, electorate, at) END) OVER (
                   PARTITION BY run, stream, stay ORDER BY lsn ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
               ) AS before
    FROM {ballot_lines}
"""
"""Each line with the newest line before it that began a phase or ended a ballot."""

COUNTED = """
    SELECT domain, run, stream, group, node, inc, lsn, seq, stay, era, is_hole, ballot, at, votes, before.lsn AS
           phase_lsn, before.phase AS phase, before.phases AS phases, before.time_limit AS time_limit,
           before.electorate AS electorate, before.at AS began,
           CASE kind WHEN 'votes' THEN 'continues' ELSE if(approved, 'approved', 'rejected') END AS ended,
           CASE WHEN exists(votes, v -> v[1] = 'reject') THEN 'rejected'
                WHEN before.phases < 0 THEN 'not rejected' WHEN before.phases IS NULL THEN 'nothing'
                WHEN if(before.phases = 0, exists(votes, v -> v[1] = 'continue'), before.phase < before.phases)
                THEN 'continues' ELSE 'approved' END AS verdict
    FROM {ballots} WHERE kind IN ('votes', 'outcome') AND size(votes) > 0 AND before.kind = 'phase'
                     AND before.ballot = ballot
"""
"""The votes of a phase, as one node counted them, with the phase as it began there.

Of a ballot that has ended with the entry that began it its node does not know how many phases it would have had, and
writes -1: then all that can be said of the votes is whether anybody has rejected. That many always stand there.
"""

CAST = """
    SELECT c.domain, c.run, c.stream, c.group, c.node, c.inc, c.lsn, c.seq, c.stay, c.era, c.is_hole, c.ballot, c.phase,
           c.phase_lsn, c.at, c.began, c.time_limit, one[0] AS provider, one[1] AS vote, coalesce(one[2], '') AS why
    FROM {counted} c LATERAL VIEW explode(votes) AS one
"""
"""One row for each vote that was counted at each node."""

VOTED = """
    SELECT domain, run, stream, group, node, lsn, era, entry AS ballot, int(get_json_object(args, '$.phase')) AS phase,
           get_json_object(args, '$.provider') AS provider, get_json_object(args, '$.vote') AS vote
    FROM {told} WHERE kind = 'voted'
"""
"""What voters said, as their daemons took it."""

ANNOUNCED = """
    SELECT run, stream, stay, lsn, 'failed' AS why, true AS does, get_json_object(args, '$.provider') AS provider
    FROM {told} WHERE kind = 'provider_failing'
    UNION ALL
    SELECT run, stream, stay, lsn, 'unresponsive', get_json_object(args, '$.does') = 'false',
           get_json_object(args, '$.provider') FROM {told} WHERE kind = 'responsive'
"""

JOINED = """
    SELECT run, stream, stay, min(lsn) AS lsn, provider
    FROM (SELECT run, stream, stay, lsn, explode(from_json(get_json_object(args, '$.providers'), 'ARRAY<STRING>'))
                 AS provider FROM {told} WHERE kind = 'provider_joined')
    GROUP BY run, stream, stay, provider
"""

_side_by_side = two_values(
    "{ballot_lines}", ("stream", "era", "seq", "kind", "ballot"), "shown",
    "format_string('%s of ballot %d of group %d, entry %d, differs between %s and %s', a.kind, a.ballot, a.group,"
    " a.seq, a.node, b.node)",
    "kind != 'outcome' AND era IS NOT NULL",
)  # fmt: skip

_one_outcome = two_values(
    "{ballot_lines}", ("stream", "era", "ballot", "what"), "shown",
    "format_string('ballot %d of group %d has two outcomes, at %s and at %s', a.ballot, a.group, a.node, b.node)",
    "kind = 'outcome' AND era IS NOT NULL",
)  # fmt: skip

_left_out = """
    WITH told AS (
        SELECT domain, stream, group, era, seq, kind, ballot, min(run) AS run, min_by(lsn, run) AS lsn,
               min_by(node, run) AS node FROM {ballot_lines}
        WHERE era = era_here GROUP BY domain, stream, group, era, seq, kind, ballot
    ), seen AS (
        SELECT run, stream, stay, era, node, min(seq) AS first, max(seq) AS last FROM {ballot_lines}
        WHERE era = era_here GROUP BY run, stream, stay, era, node
    )
    SELECT t.domain, t.group, t.seq, format_string(
               '%s of ballot %d of group %d, entry %d, is in the journal of %s and not in that of %s', t.kind, t.ballot,
               t.group, t.seq, t.node, s.node) AS text,
           t.run AS a_run, t.lsn AS a_lsn, s.run AS b_run, m.lsn AS b_lsn
    FROM told t JOIN seen s ON s.stream = t.stream AND s.era = t.era AND s.first < t.seq AND s.last > t.seq
    LEFT JOIN {ballot_lines} m ON m.run = s.run AND m.stream = t.stream AND m.stay = s.stay AND m.seq = t.seq
                              AND m.kind = t.kind AND m.ballot = t.ballot
    WHERE m.run IS NULL
"""

_late = f"""
    WITH longest AS (
        SELECT stream, era, ballot, phase, max(at - began) AS seconds FROM {{counted}} GROUP BY 1, 2, 3, 4
    ), presided AS (
        SELECT DISTINCT stream, era, ballot, phase, node FROM {{counted}}
    ), late AS (
        SELECT c.domain, c.stream, c.group, c.era, c.ballot, c.phase, c.provider, max(c.time_limit) AS time_limit,
               min(c.run) AS run, min_by(c.lsn, c.run) AS lsn, min(c.seq) AS seq
        FROM {{cast_votes}} c WHERE c.why = 'late' AND c.era IS NOT NULL AND c.time_limit > 0
        GROUP BY c.domain, c.stream, c.group, c.era, c.ballot, c.phase, c.provider
    ), led AS (
        SELECT it.*, leader FROM (
            SELECT it, last(leader, true) OVER (PARTITION BY stream, era ORDER BY seq, it IS NOT NULL
                                                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS leader
            FROM (SELECT stream, era, seq, struct(l.*) AS it, NULL AS leader FROM late l
                  UNION ALL
                  SELECT stream, era, seq, NULL, get_json_object(args, '$.leader') FROM {{told}} WHERE kind = 'members')
        ) WHERE it IS NOT NULL
    )
    SELECT l.domain, l.group, l.seq, format_string('phase %d of ballot %d of group %d: %s is late after %.3f s, and had'
               ' %.3f s', l.phase, l.ballot, l.group, l.provider, g.seconds, l.time_limit) AS text,
           l.run AS a_run, l.lsn AS a_lsn, NULL AS b_run, NULL AS b_lsn
    FROM led l JOIN longest g ON g.stream = l.stream AND g.era = l.era AND g.ballot = l.ballot AND g.phase = l.phase
    JOIN presided p ON p.stream = l.stream AND p.era = l.era AND p.ballot = l.ballot AND p.phase = l.phase
                   AND p.node = l.leader
    WHERE g.seconds < l.time_limit - {SLACK_S}
    UNION ALL
    SELECT c.domain, c.group, min(c.seq), format_string('phase %d of ballot %d of group %d: %s is late, and had all the'
               ' time it wanted', c.phase, c.ballot, c.group, c.provider),
           min(c.run), min_by(c.lsn, c.run), NULL, NULL
    FROM {{cast_votes}} c WHERE c.why = 'late' AND NOT coalesce(c.time_limit > 0, false)
    GROUP BY c.domain, c.stream, c.group, c.era, c.ballot, c.phase, c.provider
"""
"""Where the journal of the one that presided does not tell of this phase nobody can tell; it may tell of others.
Without a time limit, which is written as 0, nobody is ever late.
"""

BALLOT_CHECKS = (
    Check(
        rule="G1", promise="one ballot at a time", level="batch", reads=("phase",),
        sql="""
            SELECT domain, group, seq, format_string('%s of ballot %d of group %d while ballot %d runs', kind, ballot,
                   group, before.ballot) AS text, run AS a_run, before.lsn AS a_lsn, run AS b_run, lsn AS b_lsn
            FROM {ballots} WHERE before.kind = 'phase' AND before.ballot != ballot AND (kind = 'phase'
                             OR size(votes) > 0)
        """,
    ),
    Check(
        rule="G1", promise="the same story everywhere", level="batch", nodes=2, reads=("phase|votes",),
        suspects=_side_by_side[0], sql=_side_by_side[1],
    ),
    Check(
        rule="G1", promise="nobody is left out of a ballot between two that it saw", level="batch", nodes=2,
        reads=("phase|outcome",), sql=_left_out,
    ),
    Check(
        rule="G2", promise="one outcome of a ballot", level="batch", nodes=2, reads=("outcome",),
        suspects=_one_outcome[0], sql=_one_outcome[1],
    ),
    Check(
        rule="G3", promise="the outcome follows from the votes", level="batch", reads=("counted",),
        sql="""
            SELECT domain, group, seq, format_string('phase %d of ballot %d of group %d: the votes say %s, and it is'
                   ' %s', phase, ballot, group, verdict, ended) AS text,
                   run AS a_run, phase_lsn AS a_lsn, run AS b_run, lsn AS b_lsn
            FROM {counted} WHERE verdict != ended AND NOT (verdict = 'not rejected' AND ended != 'rejected')
        """,
    ),
    Check(
        rule="G4", promise="who is counted is who had a vote, each once", level="batch", reads=("counted",),
        sql="""
            SELECT domain, group, seq, format_string('phase %d of ballot %d of group %d: who is counted is not who had'
                   ' a vote', phase, ballot, group) AS text,
                   run AS a_run, phase_lsn AS a_lsn, run AS b_run, lsn AS b_lsn
            FROM {counted} WHERE NOT (transform(votes, v -> v[0]) <=> electorate)
        """,
    ),
    Check(
        rule="G4", promise="a daemon takes one vote of a voter", level="batch", reads=("voted",),
        sql="""
            SELECT domain, group, ballot AS seq, format_string('phase %d of ballot %d of group %d: the daemon of %s has'
                   ' taken %d votes of it', phase, ballot, group, provider, count(*)) AS text,
                   min(run) AS a_run, min(lsn) AS a_lsn, max(run) AS b_run, max(lsn) AS b_lsn
            FROM {voted} WHERE era IS NOT NULL GROUP BY domain, stream, group, era, ballot, phase, provider
            HAVING count(*) > 1
        """,
    ),
    Check(
        rule="G4", promise="a vote is counted as it was cast", level="batch", reads=("counted", "voted"),
        sql="""
            SELECT c.domain, c.group, first(c.seq) AS seq, format_string(
                       'phase %d of ballot %d of group %d: %s has voted %s, and %s is counted', c.phase, c.ballot,
                       c.group, c.provider, coalesce(v.vote, 'nothing'), if(c.why = '', c.vote, 'an error')) AS text,
                   v.run AS a_run, v.lsn AS a_lsn, min(struct(c.run, c.lsn)).run AS b_run,
                   min(struct(c.run, c.lsn)).lsn AS b_lsn
            FROM {cast_votes} c JOIN {voted} v ON v.stream = c.stream AND v.era = c.era AND v.ballot = c.ballot
                                        AND v.phase = c.phase AND v.provider = c.provider
            WHERE c.why IN ('', 'raised') AND coalesce(v.vote, '') != if(c.why = '', c.vote, '')
            GROUP BY c.domain, c.group, c.phase, c.ballot, c.provider, v.vote, c.why, c.vote, v.run, v.lsn
        """,
    ),
    Check(
        rule="G4", promise="who is counted has voted", level="batch", reads=("counted", "voted"), whole=True,
        sql="""
            SELECT c.domain, c.group, c.seq, format_string('phase %d of ballot %d of group %d: %s is counted, and its'
                   ' daemon knows of no vote of it', c.phase, c.ballot, c.group, c.provider) AS text,
                   c.run AS a_run, c.lsn AS a_lsn, NULL AS b_run, NULL AS b_lsn
            FROM {cast_votes} c LEFT JOIN {voted} v ON v.run = c.run AND v.stream = c.stream AND v.ballot = c.ballot
                                             AND v.phase = c.phase AND v.provider = c.provider
            LEFT JOIN (SELECT DISTINCT run FROM {holes}) h ON h.run = c.run
            WHERE c.why IN ('', 'raised') AND v.run IS NULL AND h.run IS NULL
              AND get_json_object(c.provider, '$[0]') = c.node AND bigint(get_json_object(c.provider, '$[1]')) = c.inc
        """,
    ),
    Check(
        rule="G5", promise="who is passed over as failed or unresponsive was announced as that", level="batch",
        reads=("by_default",),
        sql="""
            SELECT c.domain, c.group, c.seq, format_string('phase %d of ballot %d of group %d: a vote is cast for %s as'
                   ' %s, which nobody has announced', c.phase, c.ballot, c.group, c.provider, c.why) AS text,
                   first(j.run) AS a_run, first(j.lsn) AS a_lsn, c.run AS b_run, c.lsn AS b_lsn
            FROM {cast_votes} c
            JOIN {provider_joined} j ON j.run = c.run AND j.stream = c.stream AND j.stay = c.stay
                                    AND j.provider = c.provider AND j.lsn < c.lsn
            LEFT JOIN {announced} a ON a.run = c.run AND a.stream = c.stream AND a.stay = c.stay
                                   AND a.provider = c.provider AND a.why = c.why AND a.lsn < c.lsn
            WHERE c.why IN ('failed', 'unresponsive')
            GROUP BY c.domain, c.group, c.seq, c.phase, c.ballot, c.provider, c.why, c.run, c.lsn, c.phase_lsn
            HAVING NOT coalesce(max_by(a.does, a.lsn) FILTER (WHERE a.lsn < c.phase_lsn), false)
               AND NOT coalesce(bool_or(a.does) FILTER (WHERE a.lsn > c.phase_lsn), false)
        """,
    ),
    Check(
        rule="G5", promise="who is called late had its time", level="batch", reads=("by_default",), sql=_late,
    ),
    Check(
        rule="G10", promise="who leaves leaves once", level="batch", reads=("provider_left",),
        suspects="""
            SELECT run, stream, stay, provider, min(lsn) AS low, max(lsn) AS high
            FROM (SELECT run, stream, stay, lsn, explode(from_json(get_json_object(args, '$.providers'),
                         'ARRAY<STRING>')) AS provider FROM {told} WHERE kind = 'provider_left')
            GROUP BY run, stream, stay, provider HAVING count(*) > 1
        """,
        sql="""
            SELECT t.domain, t.group, t.seq, format_string('%s leaves group %d twice', s.provider, t.group) AS text,
                   s.run AS a_run, s.low AS a_lsn, s.run AS b_run, s.high AS b_lsn
            FROM {suspects} s JOIN {told} t ON t.run = s.run AND t.lsn = s.high
        """,
    ),
    Check(
        rule="G10", promise="who leaves leaves with one entry", level="batch", nodes=2, reads=("provider_left",),
        suspects="""
            SELECT stream, era, provider, min(seq) AS low, max(seq) AS high
            FROM (SELECT stream, era, seq, explode(from_json(get_json_object(args, '$.providers'), 'ARRAY<STRING>'))
                         AS provider FROM {told} WHERE kind = 'provider_left' AND era IS NOT NULL)
            GROUP BY stream, era, provider HAVING min(seq) != max(seq)
        """,
        sql="""
            WITH lines AS (SELECT domain, stream, group, era, seq, kind, min(run) AS run, min_by(lsn, run) AS lsn
                           FROM {told} WHERE kind = 'provider_left' GROUP BY domain, stream, group, era, seq, kind)
            SELECT a.domain, a.group, s.high AS seq, format_string('%s leaves group %d with entries %d and %d',
                   s.provider, a.group, s.low, s.high) AS text,
                   a.run AS a_run, a.lsn AS a_lsn, b.run AS b_run, b.lsn AS b_lsn
            FROM {suspects} s JOIN lines a ON a.stream = s.stream AND a.era = s.era AND a.seq = s.low
            JOIN lines b ON b.stream = s.stream AND b.era = s.era AND b.seq = s.high
        """,
    ),
)  # fmt: skip


def ballot_tables(work: WorkTables) -> None:
    """What these checks read."""
    work.name("ballot_lines", BALLOT_LINES)
    work.make("ballots", BALLOTS)
    work.make("counted", COUNTED)
    work.name("cast_votes", CAST)
    work.name("voted", VOTED)
    work.name("announced", ANNOUNCED)
    work.name("provider_joined", JOINED)
