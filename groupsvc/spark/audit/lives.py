"""Lives of a domain: where it was formed anew numbers begin again, and what was before says nothing of what follows.

A domain without disks, A, B and C, is stopped and started: its name servers come up without a memory, form a new
domain, and epoch 1 and group 8 are there again. Nothing was promised across that, so each life is compared within
itself only. A process belongs to one life, with all of its lines: it would have to be started again to be let into
another one.

What tells lives apart is their first entry: it names the domain by a random number, so its checksum is another one in
each, and every name server that was there from the beginning has delivered it. Clocks would not do: that of C is a
second behind, and what it writes in the new life would seem to be of the old one, while A was still there. They only
place the processes of which the first entry is not known, those of other nodes for instance: by when they came to
the domain, and, as that may be before it was formed by a clock that is behind, by where most of their lines are.

Two first entries are no proof by themselves, as they can be a contradiction, too. A domain was formed anew if one of
those that formed it had been in it before and has lost its state, and none who was there before goes on as if nothing
had happened.
"""

from __future__ import annotations

from statistics import median_low
from typing import Any

import attrs

CLOCKS_S = 10.0
"""By which wall clocks of two nodes may differ."""

ENTERED = ("view_installed", "list_installed", "joined", "rejoined", "lease")
"""What a process tells for the first time when it comes to a domain, however long it was up and asked before."""


@attrs.frozen
class Life:
    """One of a domain, but the first."""

    since: float  # for lines that no daemon wrote: by the one clock of a history
    runs: frozenset[int]


Cuts = dict[str, list[Life]]
"""By domain: its later lives, in their order."""


@attrs.frozen(kw_only=True)
class _Server:
    """One process of a name server."""

    node: str
    run: int
    since: float
    until: float  # the last that it has delivered of the domain's own stream
    first_entry: int | None  # the checksum of the entry that formed the domain; None: it was not there, or that is lost
    state_id: str
    is_blank: bool
    formed_it: bool  # it has installed the first view of a domain


@attrs.frozen(kw_only=True)
class _Process:
    """Any process of a domain that has several lives."""

    node: str
    run: int
    entered: float
    until: float
    state_id: str


@attrs.frozen(kw_only=True)
class _Formed:
    """When a domain was formed anew, and the name servers that have delivered its first entry."""

    at: float
    runs: frozenset[int]


def cuts_in(lines: Any) -> Cuts:
    """Which processes of the domains of these lines belong to a later life than the first."""
    servers = _servers(lines)
    formed = {domain: found for domain, those in servers.items() if (found := _formed(those))}
    processes = _processes(lines, sorted(formed)) if formed else {}
    return {domain: _lives(servers[domain], formed[domain], processes[domain]) for domain in formed}


def _servers(lines: Any) -> dict[str, list[_Server]]:
    """By domain: those that tell of its own stream, in the order in which each node has started them."""
    delivered = lines.where("class = 'delivery' AND kind = 'delivered' AND group = 0 AND boot != ''")
    told = delivered.groupBy("domain", "node", "run").agg(*_expressions(
        "min(clock_s) AS since", "max(clock_s) AS until", "min(CASE WHEN seq = 1 THEN crc END) AS first_entry",
    ))  # fmt: skip
    control = lines.where("class = 'control' AND group = 0 AND kind IN ('started', 'view_installed')")
    states = control.groupBy("run").agg(*_expressions(
        f"coalesce({_started('state_id')}, '') AS state_id",
        f"coalesce({_started('formed')}, 'true') = 'false' AS is_blank",
        "coalesce(min(CASE WHEN kind = 'view_installed' THEN seq END) <= 1, false) AS formed_it",
    ))  # fmt: skip
    found: dict[str, list[_Server]] = {}
    rows = told.join(states, "run", "left").na.fill({"state_id": "", "is_blank": False, "formed_it": False}).collect()
    for row in sorted(rows, key=lambda row: (row["domain"], row["node"], row["since"])):
        fields = row.asDict()
        found.setdefault(fields.pop("domain"), []).append(_Server(**fields))
    return found


def _started(name: str) -> str:
    return f"max(CASE WHEN kind = 'started' THEN get_json_object(args, '$.{name}') END)"


def _formed(servers: list[_Server]) -> list[_Formed]:
    """Each time that the domain was formed anew."""
    by_entry: dict[tuple[int, int], list[_Server]] = {}
    newest: dict[str, _Server] = {}
    times: dict[tuple[str, int], int] = {}
    lost: set[int] = set()
    for one in servers:
        before = newest.get(one.node)
        if before is not None and (one.state_id != before.state_id if before.state_id else one.is_blank):
            lost.add(one.run)
        if one.first_entry is not None:
            again = one.run in lost and one.formed_it
            times[one.node, one.first_entry] = times.get((one.node, one.first_entry), -1 if again else 0) + again
            by_entry.setdefault((one.first_entry, max(0, times[one.node, one.first_entry])), []).append(one)
        newest[one.node] = one
    found: list[_Formed] = []
    placed: set[int] = set()
    for at, those in sorted(((_formed_at(those), those) for those in by_entry.values()), key=lambda it: it[0]):
        runs = frozenset(one.run for one in those)
        since = {one.node: one.since for one in reversed(those)}
        before_it = [
            one for one in servers
            if one.run in placed or (one.first_entry is None and one.since < since.get(one.node, at - CLOCKS_S))
        ]  # fmt: skip
        were_there = {one.node for one in before_it} & {one.node for one in those if one.run in lost}
        if were_there and not any(one.until > at + CLOCKS_S for one in before_it):
            found.append(_Formed(at=at, runs=runs))
        elif found:
            found[-1] = attrs.evolve(found[-1], runs=found[-1].runs | runs)
        placed |= runs
    return found


def _formed_at(servers: list[_Server]) -> float:
    """By the clock of most of those that have formed it."""
    return median_low({one.node: one.since for one in reversed(servers)}.values())


def _processes(lines: Any, domains: list[str]) -> dict[str, list[_Process]]:
    """All processes of these domains."""
    kinds = ", ".join(f"'{kind}'" for kind in ENTERED)
    told = lines.where("boot != ''").where(lines["domain"].isin(domains)).groupBy("domain", "node", "run").agg(
        *_expressions(
            f"coalesce(min(CASE WHEN kind IN ({kinds}) THEN clock_s END), min(clock_s)) AS entered",
            "max(clock_s) AS until", f"coalesce({_started('state_id')}, '') AS state_id",
        )
    )  # fmt: skip
    found: dict[str, list[_Process]] = {domain: [] for domain in domains}
    for row in told.collect():
        fields = row.asDict()
        found[fields.pop("domain")].append(_Process(**fields))
    return found


def _lives(servers: list[_Server], formed: list[_Formed], processes: list[_Process]) -> list[Life]:
    """Every process in its life: by the first entry, by the state that it shares with one of which that is known."""
    known = {one.run: 0 for one in servers if one.first_entry is not None}
    known |= {run: number for number, those in enumerate(formed, 1) for run in those.runs}
    of_state = {(one.node, one.state_id): known[one.run] for one in processes if one.state_id and one.run in known}
    lives: list[set[int]] = [set() for _ in range(len(formed) + 1)]
    for one in processes:
        number = known.get(one.run, of_state.get((one.node, one.state_id)))
        lives[_by_clock(one, formed) if number is None else number].add(one.run)
    since = {one.run: one.since for one in servers}
    return [
        Life(min(since[run] for run in those.runs), frozenset(lives[number])) for number, those in enumerate(formed, 1)
    ]


def _by_clock(one: _Process, formed: list[_Formed]) -> int:
    """The life that a process came to, though its clock may be behind."""
    return sum(
        one.entered >= those.at
        or (one.entered >= those.at - CLOCKS_S and one.until - those.at > those.at - one.entered)
        for those in formed
    )


def life_of(cuts: Cuts) -> Any:
    """The column with the number of the life that a line belongs to."""
    from pyspark.sql import functions

    return functions.expr(f"CASE {' '.join(map(_case, cuts.items()))} ELSE 0 END" if cuts else "0")


def _case(item: tuple[str, list[Life]]) -> str:
    domain, lives = item
    by_clock = " + ".join(f"int(clock_s >= {life.since!r}D)" for life in lives)
    by_run = " ".join(
        f"WHEN run IN ({', '.join(f'{run}L' for run in sorted(life.runs))}) THEN {number}"
        for number, life in enumerate(lives, 1)
    )
    return f"WHEN domain = '{_quoted(domain)}' THEN CASE WHEN boot = '' THEN {by_clock} {by_run} ELSE 0 END"


def _expressions(*texts: str) -> list[Any]:
    from pyspark.sql import functions

    return [functions.expr(text) for text in texts]


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
