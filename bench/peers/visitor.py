"""A visit in a process of its own, so that nothing of it lives on when the next peer is measured.

Clients keep threads. One that was left in the process of the bench would look for its dead servers, some of them every
few milliseconds, and everybody who is visited later would pay for it. So each visit has a process, which says what it
finds and ends with all that it has started; who ends the bench ends it, too.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import attrs

from ..companions import begin_from
from .rows import Pace, visit
from .those import PEERS

END_WAIT_S = 20.0


@attrs.frozen
class FoundFigure:
    """A row has a figure."""

    peer: str
    row: str
    value: float


@attrs.frozen
class FailedRow:
    """A row has none; without a name it is all rows that were still to come."""

    row: str
    why: str


def visited(peer: str, rows: frozenset[str], pace: Pace) -> Iterator[FoundFigure | FailedRow]:
    """What is found, as it is found."""
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe(duplex=False)
    visitor = context.Process(target=_visitor, args=(peer, rows, pace, its))
    visitor.start()
    its.close()
    is_done = False
    try:
        while (said := _said(mine)) is not None:
            yield said
        is_done = True
    finally:
        if not is_done:
            visitor.terminate()
        visitor.join(END_WAIT_S)
        if visitor.exitcode is None:
            visitor.kill()
            visitor.join()
    if visitor.exitcode:
        yield FailedRow("", f"the visit ended with code {visitor.exitcode}")


def _said(connection: Connection) -> FoundFigure | FailedRow | None:
    try:
        said: FoundFigure | FailedRow = connection.recv()
    except EOFError:
        return None
    return said


def _visitor(name: str, rows: frozenset[str], pace: Pace, connection: Connection) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all servers are ended on the way out
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the bench itself says when
    begin_from("bench.peers.rows", "bench.peers.those")
    try:
        with tempfile.TemporaryDirectory(prefix=f"groupsvc-{name}-") as directory:
            visit(
                PEERS[name], rows, Path(directory), pace,
                lambda peer, row, value: connection.send(FoundFigure(peer, row, value)),
                lambda row, why: connection.send(FailedRow(row, why)),
            )  # fmt: skip
    except Exception as error:
        traceback.print_exc()
        connection.send(FailedRow("", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"))
    connection.close()
    os._exit(0)  # whatever threads the clients have left
