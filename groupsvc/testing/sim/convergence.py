"""Liveness: after everything is healed the domain must be whole again, in bounded time (V7, B2).

Whole means: every process runs, all of them name the same name server and none is suspended, each one's table has
exactly the running nodes up with their present incarnations, no voter is still blank, no call is open, a
look-up and a ``ConfigSet`` made now at every node succeed, every group is whole (see ``group_convergence``), and so is
what applications do in them (``application_convergence``).
"""

from __future__ import annotations

from typing import Any

from .application_convergence import applications_converge, open_application_calls
from .clients import Client
from .group_convergence import groups_converge, open_group_calls
from .world import World

WITHIN_S = 40.0
"""Leases, a few elections with back-off, and the replacement of a voter fit well into this."""

PROBE_TRIES = 3
"""A hand-over that was asked for earlier may still disturb one."""


def disagreement(world: World) -> str:
    """What is not whole yet, as a sentence; "" if all is well."""
    expected: dict[str, int] = {}
    for name in world.names:
        engine = world.nodes[name].engine
        if engine is None:
            return f"{name} is down"
        expected[name] = engine.incarnation
    first = ""
    for name in world.names:
        status = world.nodes[name].status()
        if status is None:
            return f"{name} stands still"
        if not status.name_server:
            return f"{name} knows no name server ({status.role}, {status.election}, {status.trouble or 'no trouble'})"
        first = first or status.name_server
        if status.name_server != first:
            return f"{name} follows {status.name_server}, {world.names[0]} follows {first}"
        if status.suspended:
            return f"{name} is suspended: {status.trouble or 'no reason given'}"
        if status.role == "blank voter":
            return f"{name} is still blank"
        up = {line.name: line.incarnation for line in status.nodes if line.status == "up"}
        if up != expected:
            wrong = sorted(set(up.items()) ^ set(expected.items()))
            return f"the list of {name} (version {status.list_version}) is wrong about {wrong[:6]}"
    return ""


def converge(world: World, *, within: float = WITHIN_S) -> bool:
    """Heal, wait, probe; a failure is recorded in the world. True if all is well."""
    world.clients.quiet = world.group_users.quiet = True
    world.heal()
    if not world.run_until(lambda: not _open_calls(world), within=within, every=0.25):
        if not world.failures:
            world.found("B2", f"{_open_calls(world)} calls are still open {within} s after everything was healed")
        return False
    if not world.run_until(lambda: not disagreement(world), within=within, every=0.25):
        if not world.failures:
            world.found("V7", f"{within:.0f} s after everything was healed {disagreement(world)}")
        return False
    if not _probe_everywhere(world) or not applications_converge(world, within=within):
        return False
    if not groups_converge(world, within=within):
        return False
    # What the probes changed is known everywhere, too, before the history ends.
    if not world.run_until(lambda: not disagreement(world), within=within, every=0.25):
        if not world.failures:
            world.found("V7", f"after the last calls {disagreement(world)}")
        return False
    end = world.t + within
    while world.t < end and not world.failures:
        before = _standing(world)
        world.run(until=world.t + 1.0)
        if before is not None and before == _standing(world):
            return not world.failures
    if not world.failures:
        world.found("B3", f"{within:.0f} s after the last call the domain does not come to rest")
    return False


def _open_calls(world: World) -> int:
    return world.clients.open_calls + open_group_calls(world) + open_application_calls(world)


def _standing(world: World) -> tuple[int, int] | None:
    """(epoch, last entry applied) if all agree: no change of the name server is under way."""
    statuses = [world.nodes[name].status() for name in world.names]
    epochs = {None if status is None else status.epoch for status in statuses}
    applied = {None if status is None or not status.role.endswith(("voter", "server")) else status.applied
               for name, status in zip(world.names, statuses, strict=True) if name in world.voters}  # fmt: skip
    epoch, last = (epochs.pop(), applied.pop()) if len(epochs) == len(applied) == 1 else (None, None)
    return None if epoch is None or last is None else (epoch, last)


def _probe_everywhere(world: World) -> bool:
    waiting: list[tuple[Client, str, dict[str, Any]]] = []
    for name in world.names:
        client = world.clients.client_at(world.nodes[name], f"probe-{name}")
        waiting.append((client, "form", {"group": f"probe-{name}"}))
        setter = world.clients.client_at(world.nodes[name], f"setter-{name}")
        waiting.append((setter, "config_set", {"key": f"probe-{name}", "value": f"{setter.name}:1", "if_version": 0}))
    for _ in range(PROBE_TRIES):
        for client, op, args in waiting:
            client.ask(op, dict(args), 5.0)
        clients = [client for client, _, _ in waiting]
        world.run_until(lambda asked=clients: all(client.call is None for client in asked), within=10.0)  # type: ignore[misc]
        if world.failures:
            return False
        waiting = [probe for probe in waiting if probe[0].last[0] != "ok"]
        # A value that was set although the answer was lost cannot be set once more.
        waiting = [probe for probe in waiting if probe[1] != "config_set" or probe[0].last[0] == "fail"]
        if not waiting:
            return True
    client, op, args = waiting[0]
    world.found("B2", f"{op} {args} at {client.node.name} failed in a whole domain: {client.last}")
    return False
