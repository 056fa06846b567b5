"""Lives of a domain: where it was formed anew numbers begin again, and what was before says nothing of what follows.

A domain without disks, A, B and C, is stopped and started: its name servers come up without a memory, form a new
domain, and epoch 1 and group 8 are there again. Nothing was promised across that. So a domain's journals are cut where
the last voter with a memory starts without it, and what lies between two cuts is compared within itself only.

A process tells with ``started`` which state it has: another ``state_id`` than the node had before is a lost memory.
It has a memory when it has installed a view. That is two lines for each start of a daemon, so they are gathered at the
driver, in the order of their wall clocks.
"""

from __future__ import annotations

from typing import Any

Cuts = dict[str, list[float]]
"""By domain: since when, by the clock that people read, each later life has been going on."""


def cuts_in(lines: Any) -> Cuts:
    """Where the domains of these lines begin anew."""
    from pyspark.sql import functions

    told = lines.where("class = 'control' AND group = 0")
    told = told.where("kind = 'started' OR kind = 'view_installed'").selectExpr(
        "domain", "node", "boot", "kind", "clock_s AS since", "lsn",
        "get_json_object(args, '$.state_id') AS state_id", "get_json_object(args, '$.voter') AS voter",
    )  # fmt: skip
    first = told.groupBy("domain", "node", "boot", "kind").agg(
        functions.min_by(functions.struct("since", "lsn", "state_id", "voter"), "lsn").alias("it")
    )
    rows = first.select("domain", "node", "kind", "it.*").collect()
    found: Cuts = {}
    state_of: dict[tuple[str, str], str] = {}
    with_memory: dict[str, set[str]] = {}
    for row in sorted(rows, key=lambda row: (row["domain"], row["since"], row["lsn"])):
        domain, node, remembering = row["domain"], row["node"], with_memory.setdefault(row["domain"], set())
        if row["kind"] == "view_installed":
            remembering.add(node)
        elif row["voter"] == "true":
            before = state_of.get((domain, node), row["state_id"])
            state_of[domain, node] = row["state_id"]
            if before != row["state_id"] and node in remembering:
                remembering.discard(node)
                if not remembering:
                    found.setdefault(domain, []).append(row["since"])
    return found


def life_of(cuts: Cuts) -> Any:
    """The column with the number of the life that a line belongs to."""
    from pyspark.sql import functions

    text = "0"
    if cuts:
        cases = " ".join(
            f"WHEN domain = '{_quoted(domain)}' THEN {' + '.join(f'int(clock_s >= {cut!r}D)' for cut in those)}"
            for domain, those in cuts.items()
        )
        text = f"CASE {cases} ELSE 0 END"
    return functions.expr(text)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
