"""Where peers reach a daemon: what such an address may look like and what follows from it.

A daemon binds two endpoints, and everybody must be able to tell the second from the first: the ROUTER at the
address itself, the XPUB for multicasts at the next port (``tcp://127.0.0.1:7400`` and ``:7401``) or, for ipc,
at the path with ``.pub`` behind it.

A daemon without keys keeps to addresses that do not leave the machine: ipc and loopback. With keys, or if it is told
to be ``insecure``, it goes beyond. ``problem_with_peer_address`` is asked for the configuration and again for every
address that a peer announces.
"""

from __future__ import annotations

from groupsvc.addresses import (
    IPC,
    SOCKET_PATH_BYTES_MAX,
    TCP,
    is_loopback,
    is_wildcard,
    problem_with_tcp_address,
    tcp_host_and_port,
)
from groupsvc.addresses import PORT_MAX as CLIENT_PORT_MAX

HTTP = "http://"
MULTICAST_SUFFIX = ".pub"
PORT_MAX = CLIENT_PORT_MAX - 1
"""The next port is needed for multicasts."""

NO_KEYS = (
    "is not loopback, and there are no keys: make them with `groupsvc keygen` and set key_file,"
    " or write insecure = true if everybody in the network is trusted"
)

OPEN_TO_ALL = (
    "is not loopback, and no key is asked for there: let something on this machine fetch the metrics,"
    " or write metrics_insecure = true if everybody who reaches the port may read them"
)


def problem_with_peer_address(address: str, *, may_leave: bool) -> str | None:
    """Why no daemon may use ``address`` for its peers, or None; ``may_leave``: it may be on other machines."""
    if address.startswith(IPC):
        path = address.removeprefix(IPC)
        size = len(path.encode()) + len(MULTICAST_SUFFIX)
        if not path.startswith(("/", "@")) or len(path) < 2 or "\0" in path:
            return f"{address!r} names no socket: an absolute path must follow {IPC!r}"
        if size > SOCKET_PATH_BYTES_MAX:
            return f"its path and {MULTICAST_SUFFIX!r} have {size} bytes, the kernel takes {SOCKET_PATH_BYTES_MAX}"
        return None
    if not address.startswith(TCP):
        return f"{address!r} is neither tcp://HOST:PORT nor ipc:///PATH"
    problem = problem_with_tcp_address(address, PORT_MAX, because=" (multicasts take the port after it)")
    if problem is not None:
        return problem
    host, _ = tcp_host_and_port(address)
    if is_wildcard(host):
        return f"{host} is no place where peers could reach this node; name one of its addresses"
    return _problem_with_leaving(host, may_leave=may_leave)


def problem_with_listening(address: str, *, may_leave: bool) -> str | None:
    """Why a daemon may not listen at ``address`` for clients of other machines, or None."""
    problem = problem_with_tcp_address(address)
    return problem or _problem_with_leaving(tcp_host_and_port(address)[0], may_leave=may_leave)


def problem_with_metrics_address(address: str, *, may_leave: bool) -> str | None:
    """Why a daemon may not show its metrics at ``address``, or None."""
    if not address.startswith(HTTP):
        return f"{address!r} is not {HTTP}HOST:PORT"
    if problem_with_tcp_address(TCP + address.removeprefix(HTTP)) is not None:
        return f"{address!r} is not {HTTP}HOST:PORT"
    host, _ = host_and_port(address)
    return None if may_leave or is_loopback(host) else f"{host} {OPEN_TO_ALL}"


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of where metrics are shown."""
    return tcp_host_and_port(TCP + address.removeprefix(HTTP))


def _problem_with_leaving(host: str, *, may_leave: bool) -> str | None:
    return None if may_leave or is_loopback(host) else f"{host} {NO_KEYS}"


def multicast_address(address: str) -> str:
    """Where the daemon at ``address`` publishes its multicasts."""
    if address.startswith(IPC):
        return address + MULTICAST_SUFFIX
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + 1}"
