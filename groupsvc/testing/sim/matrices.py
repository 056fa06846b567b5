"""Every way to cut the one-way links between three voters, all sixty-four.

None may leave a domain without a name server that could have one. Two voters that reach each other in both
directions are a majority that can elect. Whoever has such a partner is a possible leader; without any such pair
nobody can lead, and nobody must.
"""

from __future__ import annotations

from collections.abc import Iterator

from .world import ENGINE, World

VOTERS = ("n1", "n2", "n3")
LINKS: tuple[tuple[str, str], ...] = tuple((a, b) for a in VOTERS for b in VOTERS if a != b)

Matrix = frozenset[tuple[str, str]]
"""The links that are cut."""

WITHIN_S = 30.0
"""From the cut to a name server that keeps its office."""

KEEPS_S = 5.0
"""So long the same one must stay in office to count."""


def matrices() -> Iterator[Matrix]:
    """All sixty-four, from no cut to all cut."""
    for bits in range(1 << len(LINKS)):
        yield frozenset(link for i, link in enumerate(LINKS) if bits >> i & 1)


def possible_leaders(matrix: Matrix) -> tuple[str, ...]:
    """The voters that are connected with another one in both directions."""
    return tuple(a for a in VOTERS if any((a, b) not in matrix and (b, a) not in matrix for b in VOTERS if b != a))


def leader_under(matrix: Matrix, *, seed: int = 0, engine: str = ENGINE) -> tuple[str | None, World]:
    """Form a domain, cut it, and see who ends up leading (None: nobody keeps the office)."""
    world = World(seed, VOTERS, voters=3, engine=engine)
    formed = world.run_until(lambda: world.name_server() is not None, within=WITHIN_S)
    if not formed:
        if not world.failures:
            world.found("V7", "three connected voters formed no domain")
        return None, world
    world.run(until=world.t + 2.0)
    world.network.cut(sorted(matrix))
    end = world.t + WITHIN_S
    while world.t < end and not world.failures:
        leader = world.name_server()
        since = world.t
        while world.name_server() == leader and not world.failures and world.t < end + KEEPS_S:
            if leader is not None and world.t - since >= KEEPS_S:
                return leader, world
            world.run(until=world.t + 0.1)
    return None, world


def problem_under(matrix: Matrix, *, seed: int = 0, engine: str = ENGINE) -> str | None:
    """What is wrong with the outcome under a matrix, or None."""
    leader, world = leader_under(matrix, seed=seed, engine=engine)
    cuts = " ".join(f"{a}>{b}" for a, b in sorted(matrix)) or "nothing"
    if world.failures:
        return f"with {cuts} cut: {world.failures[0].text}"
    possible = possible_leaders(matrix)
    if possible and leader is None:
        return f"with {cuts} cut nobody leads, though {', '.join(possible)} could"
    if leader is not None and leader not in possible:
        return f"with {cuts} cut {leader} leads, which cannot reach a majority"
    return None
