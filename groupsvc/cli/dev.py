"""``groupsvc dev``: a whole domain in the foreground, to try things out in a second terminal.

At a terminal the table of nodes is drawn anew in its place; into a pipe or file one line is written for
every change, so that it can be read by whoever reads the log afterwards; for programs there are objects.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

from ..testing import LocalDomain
from ..wire.client_messages import Status
from .exit_codes import ExitCode
from .node_table import headline, is_serving, lines_of, node_object
from .tables import one_line

REDRAW_S = 0.25
_CLEAR_LINE = "\x1b[K"


def run(
    nodes: int, *, is_json: bool = False, output: TextIO | None = None, stop: threading.Event | None = None
) -> ExitCode:
    """Run a domain until Ctrl-C, SIGTERM or ``stop``."""
    out = output or sys.stdout
    ended = stop or threading.Event()
    began = time.monotonic()
    with _ends_on_signals(ended), LocalDomain(nodes=nodes) as domain:
        took = time.monotonic() - began
        print(json.dumps(_ready(domain, took)) if is_json else _introduction(domain, took), file=out, flush=True)
        view = _Objects(out) if is_json else _Drawing(out) if out.isatty() else _Log(out)
        while not ended.is_set():
            view.show(_best_view(domain))
            ended.wait(REDRAW_S)
        print(json.dumps({"event": "stopping"}) if is_json else "stopping", file=out, flush=True)
    return ExitCode.OK


@contextlib.contextmanager
def _ends_on_signals(ended: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM set ``ended``, so that the daemons are stopped in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _introduction(domain: LocalDomain, took: float) -> str:
    daemons = "1 daemon" if len(domain.names) == 1 else f"{len(domain.names)} daemons"
    lines = [f"a domain of {daemons}, ready after {took:.1f} s; Ctrl-C ends it", ""]
    lines += [f"  {name}  process {domain.pid(name)}  {domain.address(name)}" for name in domain.names]
    lines += [
        "",
        "talk to it from another terminal:",
        f"  export GROUPSVC_ADDRESS={domain.address(domain.names[0])}",
        "  groupsvc status",
    ]
    if len(domain.names) > 1:  # whoever is asked stays: the answers come from there
        lines += [f"  groupsvc hand-over {domain.voters[-1]}", f"  kill -9 {domain.pid(domain.names[-1])}"]
    return "\n".join([*lines, ""])


def _ready(domain: LocalDomain, took: float) -> dict[str, object]:
    """The first line for programs."""
    nodes = [{"name": name, "pid": domain.pid(name), "address": domain.address(name)} for name in domain.names]
    return {"event": "ready", "seconds": round(took, 3), "nodes": nodes}


def _best_view(domain: LocalDomain) -> Status | None:
    """What the name server says, else whoever answers."""
    leader = domain.name_server()
    if leader is not None:
        return domain.status(leader)
    return next((found for name in domain.names if (found := domain.status(name)) is not None), None)


class _Drawing:
    """Draws over its own last picture."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._height = 0

    def show(self, status: Status | None) -> None:
        width = shutil.get_terminal_size().columns  # a line that wraps would spoil the count of lines
        lines = ["no daemon answers"] if status is None else [line[:width] for line in lines_of(status)]
        up = f"\x1b[{self._height}A" if self._height else ""
        blank = [""] * (self._height - len(lines))
        self._out.write(up + "".join(f"{line}{_CLEAR_LINE}\n" for line in [*lines, *blank]))
        self._out.flush()
        self._height = max(self._height, len(lines))


class _Log:
    """Writes a line when something changed."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last = ""

    def show(self, status: Status | None) -> None:
        line = "no daemon answers" if status is None else _summary(status)
        if line != self._last:
            print(line, file=self._out, flush=True)
            self._last = line


class _Objects:
    """Writes an object when something changed."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last: dict[str, object] = {}

    def show(self, status: Status | None) -> None:
        found: dict[str, object] = {"event": "status", "answers": status is not None}
        if status is not None:
            found |= {"asked": status.node, "name_server": status.name_server, "epoch": status.epoch}
            found |= {"serving": is_serving(status), "trouble": status.trouble}
            found["nodes"] = [node_object(node) for node in status.nodes]
        if found != self._last:
            print(json.dumps(found), file=self._out, flush=True)
            self._last = found


def _summary(status: Status) -> str:
    nodes = ", ".join(f"{node.name} {node.status}" for node in status.nodes)
    if is_serving(status):
        start = headline(status).rpartition(",")[0]  # without the lease, which changes all the time
        found = f"{start}: {nodes}"
    else:  # what it knew of the others may be wrong by now
        found = f"asked {status.node} ({status.role}): no name server" if not status.name_server else headline(status)
        found += f"; nodes as last known there, which may be old: {nodes}" if nodes else ""
    return one_line(found + (f"; trouble: {status.trouble}" if status.trouble else ""))
