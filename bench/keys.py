"""What keys cost: the same program on a domain without keys, on one with, and from another machine's side of it.

Three daemons, a provider at each. The first to join leads, and is not at the name server. The second, which sends,
counts what is delivered to itself. The domains stand side by side and take turns, so that whatever else the machine
does meets them alike. The rows are ratios to the domain without keys: encryption is the price of a network that is not
trusted. What is promised of it is the rate of small messages.
"""

from __future__ import annotations

import contextlib
import statistics
import time

import groupsvc
from groupsvc.testing import LocalDomain

from .row import Effort, Row, at_least, at_most

SINGLES = 200
PLAIN, KEYED, FAR = "without keys", "with keys", "with keys, program over tcp"
SIZES = {"100 B": 100, "10 kB": 10_000}
RATIO_MIN = {"100 B": 0.80}


def measure(effort: Effort) -> list[Row]:
    """One message at a time, and as many as go, in turns."""
    latencies: dict[str, list[float]] = {PLAIN: [], KEYED: [], FAR: []}
    rates: dict[str, dict[str, list[float]]] = {size: {PLAIN: [], KEYED: [], FAR: []} for size in SIZES}
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(LocalDomain(nodes=3))
        keyed = stack.enter_context(LocalDomain(nodes=3, keys=True))
        groups = {
            PLAIN: sender(stack, plain, "bench", far=False),
            KEYED: sender(stack, keyed, "bench", far=False),
            FAR: sender(stack, keyed, "bench-far", far=True),
        }
        for _ in range(effort.runs):
            for name, group in groups.items():
                latencies[name].append(_latency(group, effort.choose(SINGLES, 50)))
            for size, count in SIZES.items():
                for name, group in groups.items():
                    rates[size][name].append(rate(group, bytes(count), effort.choose(2, 1)))
    rows = []
    for name in (KEYED, FAR):
        ratios = [[with_keys / without] for with_keys, without in zip(latencies[name], latencies[PLAIN], strict=True)]
        note = f"{_ms(latencies[name])}, {PLAIN} {_ms(latencies[PLAIN])} (medians)"
        rows.append(at_most(f"{name}: one message", f"x {PLAIN}", ratios, note=note))
        for size, found in rates.items():
            ratios = [[with_keys / without] for with_keys, without in zip(found[name], found[PLAIN], strict=True)]
            note = f"{per_s(found[name])}, {PLAIN} {per_s(found[PLAIN])} (medians)"
            rows.append(
                at_least(f"{name}: rate of {size}", f"x {PLAIN}", ratios, median_min=RATIO_MIN.get(size), note=note)
            )
    return rows


def sender(stack: contextlib.ExitStack, domain: LocalDomain, group: str, *, far: bool) -> groupsvc.Group:
    """Providers at all three nodes; the one of the second, which sends."""
    joined = []
    name_server = domain.wait_for_name_server()
    for name in sorted(domain.names, key=lambda name: (name == name_server, name)):
        if far:
            session = groupsvc.connect(domain.remote_address(name), keys=domain.keys)
        else:
            session = domain.connect(name)
        joined.append(stack.enter_context(stack.enter_context(session).join(group, name=name)))
    return joined[1]


def _latency(group: groupsvc.Group, count: int) -> float:
    times = []
    for _ in range(count):
        began = time.monotonic()
        group.multicast(b"x" * 100)
        group.flush()
        times.append(time.monotonic() - began)
    return statistics.median(times)


def rate(group: groupsvc.Group, payload: bytes, seconds: float) -> float:
    """Messages per second, as many as go."""
    began, sent = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        for _ in range(50):
            group.multicast(payload)
        sent += 50
    group.flush()
    return sent / (time.monotonic() - began)


def _ms(latencies: list[float]) -> str:
    return f"{1000 * statistics.median(latencies):.2f} ms"


def per_s(rates: list[float]) -> str:
    """Their median, in words."""
    return f"{statistics.median(rates):,.0f} per s"
