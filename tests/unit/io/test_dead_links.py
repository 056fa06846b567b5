"""Every socket over which others are reached is told to the kernel as one to be tried out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import zmq

from groupsvc.drivers.daemon_socket import DaemonSocket
from groupsvc.wire.limits import DEAD_LINK_MS, KEEPALIVE_S
from groupsvcd.io import sockets
from groupsvcd.io.sockets import Context, Socket

MADE: dict[str, Callable[[Context], Socket]] = {
    "what listens": lambda context: sockets.new_socket(context, zmq.ROUTER, send_queue=1, receive_queue=1),
    "what hears multicasts": sockets.new_subscriber,
    "what speaks to a node": lambda context: sockets.new_dealer(context, send_queue=1),
    "what speaks to a daemon": lambda context: DaemonSocket("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")._socket,
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE.keys())
def test_the_kernel_tries_out_the_connection_and_gives_it_up(
    context: Context, make: Callable[[Context], Socket]
) -> None:
    made = make(context)
    assert (1, KEEPALIVE_S, KEEPALIVE_S, DEAD_LINK_MS) == tuple(
        made.getsockopt(option)
        for option in (zmq.TCP_KEEPALIVE, zmq.TCP_KEEPALIVE_IDLE, zmq.TCP_KEEPALIVE_INTVL, zmq.TCP_MAXRT)
    )
    made.close(linger=0)
