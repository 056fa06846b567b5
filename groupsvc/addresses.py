"""Where the daemon of this node listens for applications, if nobody says otherwise.

Client and daemon must come to the same answer without talking to each other, so both call this file:

1. ``GROUPSVC_ADDRESS`` in the environment (clients only),
2. the socket of the machine's daemon, ``/run/groupsvc/client.sock``, if it is there,
3. the socket of a daemon that this user started, in the user's runtime directory.

The address has the form that ZeroMQ uses, ``ipc://`` and a path. A path longer than the kernel's field for
it would be cut off or refused deep down with an unhelpful error, so ``problem_with_address`` says it first.
"""

from __future__ import annotations

import os
from pathlib import Path

from .errors import UsageError

ADDRESS_VARIABLE = "GROUPSVC_ADDRESS"
SYSTEM_SOCKET = Path("/run/groupsvc/client.sock")
SCHEME = "ipc://"

SOCKET_PATH_BYTES_MAX = 107
"""What ``sockaddr_un`` holds on Linux, less the closing zero; other systems have less, never more."""


def default_address() -> str:
    """The address an application uses when it names none."""
    return os.environ.get(ADDRESS_VARIABLE) or f"{SCHEME}{_present_or_own_socket()}"


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
    path = address.removeprefix(SCHEME)
    return "\0" + path[1:] if path.startswith("@") else path


def problem_with_address(address: str) -> str | None:
    """Why ``address`` cannot be that of a daemon's client socket, or None."""
    if not address.startswith(SCHEME):
        return f"{address!r} is no address of a daemon: it must begin with {SCHEME!r}"
    path = address.removeprefix(SCHEME)
    if not path or "\0" in path:
        return f"{address!r} names no socket: a path must follow {SCHEME!r}"
    size = len(path.encode())
    if size > SOCKET_PATH_BYTES_MAX:
        return f"the path of {address!r} has {size} bytes, the kernel takes at most {SOCKET_PATH_BYTES_MAX}"
    return None


def checked_address(address: str) -> str:
    """The address, if it can be one."""
    problem = problem_with_address(address)
    if problem is not None:
        raise UsageError(problem)
    return address


def _present_or_own_socket() -> Path:
    return SYSTEM_SOCKET if SYSTEM_SOCKET.exists() else runtime_socket()
