"""Where peers reach a daemon: what such an address may look like and what follows from it.

A daemon binds two endpoints, and everybody must be able to tell the second from the first: the ROUTER at the
address itself, the XPUB for multicasts at the next port (``tcp://127.0.0.1:7400`` and ``:7401``) or, for ipc,
at the path with ``.pub`` behind it.

Frames are not encrypted yet, so a daemon keeps to addresses that do not leave the machine: ipc and loopback.
``problem_with_peer_address`` is asked for the configuration and again for every address that a peer announces.
"""

from __future__ import annotations

import ipaddress
import re

from groupsvc.addresses import SOCKET_PATH_BYTES_MAX

IPC = "ipc://"
TCP = "tcp://"
MULTICAST_SUFFIX = ".pub"
PORT_MAX = 65_534
"""The next port is needed for multicasts."""

_tcp = re.compile(r"tcp://(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


def problem_with_peer_address(address: str, *, insecure: bool) -> str | None:
    """Why no daemon may use ``address`` for its peers, or None."""
    if address.startswith(IPC):
        path = address.removeprefix(IPC)
        size = len(path.encode()) + len(MULTICAST_SUFFIX)
        if not path.startswith(("/", "@")) or len(path) < 2 or "\0" in path:
            return f"{address!r} names no socket: an absolute path must follow {IPC!r}"
        if size > SOCKET_PATH_BYTES_MAX:
            return f"its path and {MULTICAST_SUFFIX!r} have {size} bytes, the kernel takes {SOCKET_PATH_BYTES_MAX}"
        return None
    match = _tcp.fullmatch(address)
    if match is None:
        return f"{address!r} is neither tcp://HOST:PORT nor ipc:///PATH"
    host, port = match.group(1).strip("[]"), int(match.group(2))
    if not 1 <= port <= PORT_MAX:
        return f"port {port} is not between 1 and {PORT_MAX} (multicasts take the port after it)"
    if is_wildcard(host):
        return f"{host} is no place where peers could reach this node; name one of its addresses"
    if not insecure and not is_loopback(host):
        return f"{host} is not loopback and frames are not encrypted; write insecure = true if the network is trusted"
    return None


def multicast_address(address: str) -> str:
    """Where the daemon at ``address`` publishes its multicasts."""
    if address.startswith(IPC):
        return address + MULTICAST_SUFFIX
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + 1}"


def tcp_host_and_port(address: str) -> tuple[str, int]:
    """The two parts of a tcp address that has no problem."""
    host, _, port = address.removeprefix(TCP).rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether ``host`` certainly does not leave the machine; a name other than localhost might."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Whether ``host`` stands for every address of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
