"""Where daemons listen for applications, and where the one of this node does if nobody says otherwise.

Client and daemon must come to the same answer without talking to each other, so both call this file:

1. ``GROUPSVC_ADDRESS`` in the environment (clients only),
2. the socket of the machine's daemon, ``/run/groupsvc/client.sock``, if it is there,
3. the socket of a daemon that this user started, in the user's runtime directory.

The address has the form that ZeroMQ uses, ``ipc://`` and a path. A path longer than the kernel's field for
it would be cut off or refused deep down with an unhelpful error, so ``problem_with_address`` says it first.

The daemon of another machine is reached at ``tcp://HOST:PORT``, with keys (``keys.py``): only what certainly does not
leave the machine goes without.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from .errors import UsageError

ADDRESS_VARIABLE = "GROUPSVC_ADDRESS"
SYSTEM_SOCKET = Path("/run/groupsvc/client.sock")
IPC = "ipc://"
TCP = "tcp://"
PORT_MAX = 65_535

SOCKET_PATH_BYTES_MAX = 107
"""What ``sockaddr_un`` holds on Linux, less the closing zero; other systems have less, never more."""


def default_address() -> str:
    """The address an application uses when it names none."""
    return os.environ.get(ADDRESS_VARIABLE) or f"{IPC}{_present_or_own_socket()}"


def runtime_socket() -> Path:
    """The socket that a daemon started by this user makes when its configuration names none."""
    if os.geteuid() == 0:
        return SYSTEM_SOCKET
    own = os.environ.get("XDG_RUNTIME_DIR")
    if own:
        return Path(own) / "groupsvc" / "client.sock"
    import tempfile  # seldom needed, and dear

    return Path(tempfile.gettempdir()) / f"groupsvc-{os.getuid()}" / "client.sock"


def socket_path(address: str) -> str:
    """The path behind an ``ipc://`` address; a leading ``@`` stands for the abstract name space of Linux."""
    path = address.removeprefix(IPC)
    return "\0" + path[1:] if path.startswith("@") else path


def problem_with_address(address: str) -> str | None:
    """Why ``address`` cannot be where a client reaches a daemon, or None."""
    if not address.startswith(TCP):
        return problem_with_local_address(address)
    problem = problem_with_tcp_address(address)
    if problem is not None:
        return problem
    host, _ = tcp_host_and_port(address)
    if is_wildcard(host):
        return f"{host} is every address of a machine; name one at which its daemon can be reached"
    return None


def problem_with_local_address(address: str) -> str | None:
    """Why ``address`` cannot be that of a daemon's socket for its own machine, or None."""
    if not address.startswith(IPC):
        return f"{address!r} is no address of a daemon: it must begin with {IPC!r}, or {TCP!r} on other machines"
    path = address.removeprefix(IPC)
    if not path or "\0" in path:
        return f"{address!r} names no socket: a path must follow {IPC!r}"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:  # bytes of a shell that are no text; ZeroMQ takes text only
        return f"the path of {address!r} is no text in UTF-8"
    if size > SOCKET_PATH_BYTES_MAX:
        return f"the path of {address!r} has {size} bytes, the kernel takes at most {SOCKET_PATH_BYTES_MAX}"
    return None


def stays_here(address: str) -> bool:
    """Whether what is sent to ``address``, which has no problem, certainly does not leave the machine."""
    return not address.startswith(TCP) or is_loopback(tcp_host_and_port(address)[0])


_tcp = re.compile(r"tcp://(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


def problem_with_tcp_address(address: str, port_max: int = PORT_MAX, because: str = "") -> str | None:
    """Why ``address`` is not tcp, a host and a port up to ``port_max``, or None; ``because``: why not up to more."""
    if _tcp.fullmatch(address) is None:
        return f"{address!r} is not {TCP}HOST:PORT"
    _, port = tcp_host_and_port(address)
    return None if 1 <= port <= port_max else f"port {port} is not between 1 and {port_max}{because}: {address!r}"


def tcp_host_and_port(address: str) -> tuple[str, int]:
    """The two parts of a tcp address that has no problem."""
    match = _tcp.fullmatch(address)
    assert match is not None, address
    return match.group(1).strip("[]"), int(match.group(2))


def is_loopback(host: str) -> bool:
    """Whether ``host`` certainly does not leave the machine; a name other than localhost might."""
    import ipaddress  # only needed where there is a network

    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Whether ``host`` stands for every address of the machine."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def checked_address(address: str) -> str:
    """The address, if it can be one."""
    problem = problem_with_address(address)
    if problem is not None:
        raise UsageError(problem)
    return address


def _present_or_own_socket() -> Path:
    return SYSTEM_SOCKET if SYSTEM_SOCKET.exists() else runtime_socket()
