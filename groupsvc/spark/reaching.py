"""How a task reaches a daemon: the one of its node, or one that the driver names.

On machines that run groupsvcd a task finds it as every program does (``GROUPSVC_ADDRESS``, else the socket in the
runtime directory); Spark's workers have the environment of the Worker that started them. Elsewhere the driver makes a
``Via``, or ``embedded(spark)`` does, and it travels to the tasks with their function, as everything does that the
function refers to.
"""

from __future__ import annotations

import socket

import attrs

from ..addresses import TCP, checked_address, default_address, tcp_host_and_port
from ..errors import DaemonUnreachable, UsageError
from ..keys import Keys
from ..session import Session, connect

CONNECT_S = 20.0
"""A daemon that hundreds of tasks greet at the same moment needs some time."""


@attrs.frozen
class Via:
    """Where tasks find their daemon, and of which application they are; what is None they find out themselves.

    It has keys in it, if there are any: whoever can read the tasks of the application can read them.
    """

    address: str | None = None
    keys: Keys | None = None
    application: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.address is not None:
            checked_address(self.address)


def via_of(given: object) -> Via:
    """What was given as ``via=``: nothing, a ``Via``, or something that has one."""
    found = getattr(given, "via", given)
    if found is None:
        return Via()
    if not isinstance(found, Via):
        raise UsageError(f"via is {given!r:.60}; it must be a groupsvc.spark.Via, or what embedded(spark) gave")
    return found


def daemon_host(via: Via) -> str | None:
    """On which machine the daemon is; None if it is on this one, at a socket."""
    address = via.address or default_address()
    return tcp_host_and_port(address)[0] if address.startswith(TCP) else None


def session_of(via: Via, name: str, timeout: float) -> Session:
    """A session of its own for one task; ``DaemonUnreachable`` says which address was tried from which host."""
    address = via.address or default_address()
    try:
        return connect(address, name=name, keys=via.keys, timeout=min(CONNECT_S, timeout), default_timeout=timeout)
    except DaemonUnreachable as problem:
        text = f"{name} cannot reach a daemon: tried {address} from host {socket.gethostname()}: {problem.what}"
        advice = "start groupsvcd on every node of the cluster, or pass via=groupsvc.spark.embedded(spark)"
        if via.address is not None:
            advice = (
                "is that host and port open to the executors, and does the driver that started the daemon still run?"
            )
        raise DaemonUnreachable(text, advice=advice) from problem
