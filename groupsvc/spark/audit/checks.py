"""What a check is: a rule, what it needs, and the SQL that finds where the rule is broken.

The SQL of a check gives one row for each contradiction: domain, group, sequence number, a sentence, and the two lines
that contradict each other, as (run, line); the second is empty where one line breaks the rule by itself. ``suspects``,
where a check has them, is a cheaper question that comes first and mostly has no answer, and then the check is done:
which keys have two values, for instance, before the lines are looked for that have them. They are ``{suspects}`` in the
SQL.

``reads`` says which kinds of lines the check looks at, ``a|b`` that one of two is enough: if there are none it has
checked nothing, and says so (``grounds``). A check of level ``full`` needs a line for every entry. One of level
``history`` needs more than daemons write into journals: what programs called, or what the harness saw.
"""

from __future__ import annotations

from typing import Literal

import attrs

Level = Literal["batch", "full", "history"]

LEVEL_WORDS = {
    "batch": "journals of any level",
    "full": "journals of level full",
    "history": "histories with what programs called and were told",
}


@attrs.frozen(kw_only=True)
class Check:
    """One way in which a rule can be broken."""

    rule: str
    promise: str
    level: Level
    reads: tuple[str, ...]
    sql: str
    suspects: str = ""
    nodes: int = 1  # so many nodes must have written such lines: a comparison needs two
    settled: bool = False  # asked only if the domain was at rest when the journals ended
    one_clock: bool = False  # compares times of several nodes, so they must have been told by one clock
    whole: bool = False  # passes over processes of which lines are missing


def two_values(table: str, keys: tuple[str, ...], value: str, text: str, where: str = "true") -> tuple[str, str]:
    """Suspects and SQL of a check that everybody says the same ``value`` about the same ``keys``."""
    by = ", ".join(keys)
    same = " AND ".join(f"t.{key} = s.{key}" for key in keys)
    both = " AND ".join(f"a.{key} = b.{key}" for key in keys)
    suspects = f"""
        SELECT {by}, min(it) AS low, max(it) AS high FROM (SELECT {by}, {value} AS it FROM {table} WHERE {where})
        GROUP BY {by} HAVING min(it) != max(it)
    """
    sql = f"""
        WITH both AS (
            SELECT t.*, s.low, s.high, row_number() OVER (
                PARTITION BY {", ".join(f"s.{key}" for key in keys)}, t.it ORDER BY t.run, t.lsn) AS place
            FROM (SELECT *, {value} AS it FROM {table} WHERE {where}) t JOIN {{suspects}} s ON {same}
            WHERE t.it = s.low OR t.it = s.high
        )
        SELECT a.domain, a.group, a.seq, {text} AS text, a.run AS a_run, a.lsn AS a_lsn, b.run AS b_run, b.lsn AS b_lsn
        FROM both a JOIN both b ON {both} AND a.it = a.low AND b.it = b.high
        WHERE a.place = 1 AND b.place = 1
    """
    return suspects, sql
