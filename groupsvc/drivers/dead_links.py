"""Connections over TCP whose other end cannot be reached any more: the kernel notices, and ends them.

A and B are connected, and the network between them is cut. If B says nothing, A never hears of it; if A says something,
TCP tries for a quarter of an hour. So the kernel asks once a second whether B is there, and gives up when nothing that
was sent, asked, or offered to a full window was acknowledged for four seconds. Then ZeroMQ connects anew.

ZeroMQ has heartbeats of its own for that, and they must not be used. While the queue of a connection is full nothing is
read from it, so no answer is seen either; then libzmq (as of 4.3.5) ends a connection that is
well, or one that has ended already once more, and meets an assertion of its own: the whole process is aborted. A
program that does not read for a second is enough.

Between a program and a daemon there may be something that answers the kernel in the place of the daemon, and passes
nothing on: a proxy, or a daemon that is stopped. So a session asks as well, and gives up a connection over which no
answer comes for half a minute: before that the answer may be behind a large message on a slow link. Over a Unix socket
it waits: nothing can be between, and a daemon that goes on has forgotten nothing.
"""

from __future__ import annotations

import math

import zmq

from ..addresses import TCP
from ..wire.limits import DEAD_LINK_MS, KEEPALIVE_S, SILENT_LINK_S

PROBES = DEAD_LINK_MS // (1_000 * KEEPALIVE_S)
"""Where the kernel has no time limit for a connection, so many without an answer are one."""


def end_dead_links(socket: zmq.Socket[bytes]) -> None:
    """Before it connects or binds."""
    for option, value in (
        (zmq.TCP_KEEPALIVE, 1),
        (zmq.TCP_KEEPALIVE_IDLE, KEEPALIVE_S),
        (zmq.TCP_KEEPALIVE_INTVL, KEEPALIVE_S),
        (zmq.TCP_KEEPALIVE_CNT, PROBES),
        (zmq.TCP_MAXRT, DEAD_LINK_MS),
    ):
        socket.setsockopt(option, value)


def silence_s_max(address: str) -> float:
    """For how long the daemon there may answer nothing before the connection is given up."""
    return SILENT_LINK_S if address.startswith(TCP) else math.inf
