"""Processes that begin together.

Each is started, says through its end of a pipe that it is ready (``ready``), and waits; when all are, all are let go.
What they have found they send, and then wait to be killed: one that ended before would be seen to die by the others.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Any

WAIT_S = 60.0
"""For one of them to start, or to find what it is to find."""

_templates: list[str] = []


def begin_from(*modules: str) -> None:
    """From now on processes are forked from one that has imported these, and does nothing else.

    A program takes a third of a second to import what it needs, which is most of a measurement with 32 of them.
    """
    _templates[:] = modules


def process_context() -> SpawnContext | ForkServerContext:
    """How processes are started: each as a new program, unless there is one to begin from."""
    if not _templates:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_templates)
    return context


@contextlib.contextmanager
def together(work: Callable[..., None], arguments: Iterable[tuple[Any, ...]]) -> Iterator[list[Connection]]:
    """A process for each of these, which calls ``work`` with them and its end of a pipe; the other ends."""
    context = process_context()
    ends: list[Connection] = []
    processes = []
    try:
        for given in arguments:
            mine, its = context.Pipe()
            processes.append(context.Process(target=work, args=(*given, its), daemon=True))
            processes[-1].start()
            ends.append(mine)
        for end in ends:
            received(end)
        for end in ends:
            end.send(None)
        yield ends
    finally:
        for process in processes:
            process.kill()
            process.join()


def received(end: Connection) -> Any:
    """What the process at the other end says next."""
    if not end.poll(WAIT_S):
        raise TimeoutError("a process does not answer")
    return end.recv()


def ready(end: Connection) -> None:
    """Called by each of them: wait until all are."""
    end.send(None)
    end.recv()


def found(end: Connection, what: object) -> None:
    """Called by each of them at its end: send this, and wait to be killed."""
    end.send(what)
    end.poll(WAIT_S)
