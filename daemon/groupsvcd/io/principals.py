"""Who is at the other end of a connection: what the kernel says, or the key.

Three sources speak, and only two of them can be believed.

- ``Peer-Address``: when libzmq takes a connection it asks the kernel who is at the other end, and marks every frame of
  it: ``localhost:UID:GID:PID`` for a Unix socket, a number for tcp. A program cannot write this one, because libzmq
  wrote it first.
- The descriptor of the connection (``SRCFD``), which can be asked for the same and for the other groups of the user.
  But it may be closed by now, and belong to somebody else's connection.
- ``User-Id``: where keys are asked for, our own word (``keys.py``). Where none are, *the program may write what it
  likes there*, as in every field of its greeting.

So a user is believed if the first two agree, a key if keys are asked for where the connection came from; else nothing
is known. Who closes its connection before its first frame is read, so that another one has the descriptor, is nobody.
"""

from __future__ import annotations

import os
import socket
import struct

from ..core.access import UNKNOWN, Principal
from .sockets import borrowed

SO_PEERGROUPS = 59
"""Since Linux 4.13; the socket module does not know it."""
PEER_GROUPS_BYTES = 1024
"""Room for 256 groups, which is what Python gives. Of who has more only the first group is known."""

LOCAL_PEER = "localhost:"
"""How libzmq names the other end of a Unix socket, with user, group and process; over tcp it is a number."""

CREDENTIALS = struct.Struct("3i")
"""Process, user, group."""


def principal_of(fd: int, peer: str, key_name: str, *, asks_for_keys: bool) -> Principal:
    """Who has made the connection ``fd`` with this ``Peer-Address``."""
    if peer.startswith(LOCAL_PEER):
        return _user(fd, peer)
    if peer and asks_for_keys and key_name:
        return Principal(key=key_name)
    return UNKNOWN


def _user(fd: int, peer: str) -> Principal:
    try:
        with borrowed(fd) as connection:
            if connection.family != socket.AF_UNIX:
                return UNKNOWN
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
            pid, uid, gid = CREDENTIALS.unpack(raw)
            if peer != f"{LOCAL_PEER}{uid}:{gid}:{pid}":
                return UNKNOWN  # the descriptor belongs to another connection by now
            gids = frozenset((gid, *_other_groups(connection)))
    except OSError:
        return UNKNOWN
    return Principal(uid=uid, gids=gids, is_trusted=uid in (0, os.geteuid()))


def _other_groups(connection: socket.socket) -> tuple[int, ...]:
    """The supplementary groups, as they were when it connected."""
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, PEER_GROUPS_BYTES)
    except OSError:
        return ()
    return struct.unpack(f"{len(raw) // 4}I", raw)
