"""What the daemon needs of its machine: a socket that may be opened, a state directory, a disk, descriptors.

Nothing is changed. The lock of the state directory is looked up in the list of the kernel and never tried: a daemon
that starts in that moment would be refused. The disk is measured with a file that has no name, so that nothing is left
behind however this ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import stat
import struct
import time
from pathlib import Path

from ...addresses import IPC, socket_path
from .configuration import Judged
from .findings import Finding, fail, ok, warn
from .owners import group_name, user_name

SOCKET = "socket"
STATE = "state directory"
DISK = "disk"
DESCRIPTORS = "descriptors"

FREE_BYTES_MIN = 64 * 1024 * 1024
"""Below it a checkpoint may not find room: a daemon whose disk is full serves nobody."""
FREE_BYTES_FEW = 1024 * 1024 * 1024

SYNCS = 12
SYNC_BYTES = 4096
SLOW_SYNC_S = 0.05
"""What is acknowledged waits for it on a majority of voters."""

PER_PEER = 5
PER_CLIENT = 2
AT_LEAST = 128
"""Descriptors: of one peer, of one client (its connection and its process), and of the daemon itself."""

_SQLITE_MAGIC = b"SQLite format 3\0"
_USER_VERSION_AT = 60


# --- The socket ----------------------------------------------------------------------------------------------


def look_at_socket(address: str) -> list[Finding]:
    """Whether it is there, and who may open it."""
    if not address.startswith(IPC):
        return []
    path = socket_path(address)
    if path.startswith("\0"):
        return [ok(SOCKET, f"{address} has no file: every process of this machine may open it")]
    try:
        seen = os.stat(path)
    except FileNotFoundError:
        return [
            fail(SOCKET, f"{path} is not there: no daemon has made it", "start the daemon, or name another --address")
        ]
    except OSError as error:
        return [
            fail(SOCKET, f"{path} cannot be looked at: {error.strerror}", "ask as a user who may enter its directory")
        ]
    if not stat.S_ISSOCK(seen.st_mode):
        return [
            fail(SOCKET, f"{path} is no socket", "another file is in its place: move it away, and start the daemon")
        ]
    mode = stat.S_IMODE(seen.st_mode)
    who = f"{path} (mode {mode:04o}) may be opened by {_who_may(seen, mode)}"
    if not os.access(path, os.R_OK | os.W_OK):
        group = group_name(seen.st_gid)
        advice = (
            "ask as one of them"
            if group == "root"
            else f"become one of them: `usermod -aG {group} USER`, and log in again"
        )
        return [fail(SOCKET, f"{who}, and not by this user", advice)]
    if mode & 0o002:
        return [warn(SOCKET, who, f"chmod o-w {path}, unless everybody of this machine is to use it")]
    return [ok(SOCKET, who)]


def _who_may(seen: os.stat_result, mode: int) -> str:
    if mode & 0o002:
        return "everybody"
    return f"user {user_name(seen.st_uid)}" + (f" and group {group_name(seen.st_gid)}" if mode & 0o020 else "")


# --- The state directory -------------------------------------------------------------------------------------


def look_at_state(judged: Judged, *, runs: bool) -> list[Finding]:
    """Whether it is usable, in use by the daemon that answers, and of this version; ``runs``: whether one answers."""
    content = judged.content
    if content is None:
        return []
    directory = judged.text("state_directory")
    if not directory:
        return [ok(STATE, "none: this node keeps everything in memory")]
    path = Path(directory)
    if not path.exists():
        where = next(parent for parent in path.absolute().parents if parent.exists())
        if not os.access(where, os.W_OK):
            return [warn(STATE, f"{path} is not there, and this user may not make it in {where}",
                         "the user of the daemon must be able to, or it has to be made for it")]  # fmt: skip
        return [warn(STATE, f"{path} is not there yet: the daemon makes it at its first start")]
    if not path.is_dir():
        return [fail(STATE, f"{path} is no directory", "name another one as state_directory")]
    if not os.access(path, os.R_OK | os.X_OK):
        return [warn(STATE, f"this user may not look into {path}", "ask as root, or as the user of the daemon")]
    found = [_room(path), *_format(path / content["state_file"], content["state_format"])]
    found += _mode(path)
    found.append(_lock(path / content["state_lock"], runs=runs))
    return found


def _room(path: Path) -> Finding:
    there = os.statvfs(path)
    free = there.f_bavail * there.f_frsize
    text = f"{path} has {free / 2**20:,.0f} MiB of free space"
    if free < FREE_BYTES_MIN:
        return fail(STATE, text, "make room: a voter whose disk is full cannot promise anything")
    return warn(STATE, text, "make room before it is full") if free < FREE_BYTES_FEW else ok(STATE, text)


def _mode(path: Path) -> list[Finding]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o022:
        return [warn(STATE, f"{path} has mode {mode:04o}: others may change what this node has promised",
                     f"chmod 700 {path}")]  # fmt: skip
    return []


def _format(file: Path, known: int) -> list[Finding]:
    try:
        with file.open("rb") as opened:
            header = opened.read(100)
    except FileNotFoundError:
        return [ok(STATE, f"{file.parent} holds no state yet")]
    except OSError as error:
        return [warn(STATE, f"{file} cannot be read: {error.strerror}", "ask as root, or as the user of the daemon")]
    if len(header) < 100 or not header.startswith(_SQLITE_MAGIC):
        advice = (
            f"if its content is lost, move {file.parent} away and start anew: the other voters let the node in again"
        )
        return [fail(STATE, f"{file} is damaged, or no state of groupsvc", advice)]
    (version,) = struct.unpack_from(">I", header, _USER_VERSION_AT)
    if version != known:
        advice = "use the release that wrote it, or one that converts it"
        return [fail(STATE, f"{file} has format {version}, and this groupsvcd knows {known}", advice)]
    return [ok(STATE, f"{file} has format {version}, the one that this groupsvcd knows")]


def _lock(file: Path, *, runs: bool) -> Finding:
    holder = holder_of(file)
    if holder is None:
        if runs:
            text = f"{file} is not locked, though a daemon answers: that one uses another state directory"
            return warn(STATE, text, "see that --config is the configuration of the daemon at this address")
        return ok(STATE, f"{file.parent} is not in use")
    who = f"process {holder}" if holder > 0 else "a process"
    if not runs:
        advice = f"look at its log; if it hangs, end process {holder}" if holder > 0 else "find and end it"
        return warn(STATE, f"{file.parent} is in use by {who}, and no daemon answers", advice)
    return ok(STATE, f"{file.parent} is in use by {who}")


def holder_of(file: Path) -> int | None:
    """The process that has locked it, 0 if nobody can say which, None if none has."""
    try:
        seen, locks = file.stat(), Path("/proc/locks").read_text()
    except OSError:
        return None
    for line in locks.splitlines():
        match = re.match(r"\d+: FLOCK\s+\S+\s+WRITE\s+(-?\d+)\s+[0-9a-f]+:[0-9a-f]+:(\d+)\s", line)
        if match is not None and int(match.group(2)) == seen.st_ino:
            return max(0, int(match.group(1)))
    return None


# --- The disk ------------------------------------------------------------------------------------------------


def look_at_disk(judged: Judged) -> list[Finding]:
    """How long it takes until something is safe."""
    directory = judged.text("state_directory")
    if not directory or not os.access(directory, os.W_OK | os.X_OK):
        return []
    try:
        times = sorted(sync_times(directory))
    except OSError as error:
        return [
            warn(DISK, f"nothing can be written to {directory}: {error.strerror}", "see dmesg, and the file system")
        ]
    middle, worst = times[len(times) // 2], times[-1]
    text = f"a write to {directory} is safe after {middle * 1000:.1f} ms (slowest of {SYNCS}: {worst * 1000:.1f} ms)"
    silent_s = float((judged.content or {}).get("leader_silent_s", 1.0))
    if worst >= silent_s:
        return [fail(DISK, text, f"the others give up a node whose disk takes {silent_s:g} s: take a faster disk")]
    if middle >= SLOW_SYNC_S:
        return [warn(DISK, text, "everything that is acknowledged waits for it: take a faster disk, or one of its own")]
    return [ok(DISK, text)]


def sync_times(directory: str) -> list[float]:
    """Of some small writes, in seconds; to a file without a name."""
    fd = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)
    try:
        found = []
        for _ in range(SYNCS):
            began = time.perf_counter()
            os.write(fd, bytes(SYNC_BYTES))
            os.fsync(fd)
            found.append(time.perf_counter() - began)
        return found
    finally:
        os.close(fd)


# --- Descriptors ---------------------------------------------------------------------------------------------


def look_at_descriptors(judged: Judged, nodes: int) -> list[Finding]:
    """Whether the daemon may open as many files as it would need with all its clients and ``nodes`` others."""
    content = judged.content
    if content is None:
        return []
    directory = judged.text("state_directory")
    holder = holder_of(Path(directory) / content["state_lock"]) if directory else None
    limit, whose = resource.getrlimit(resource.RLIMIT_NOFILE)[1], "a process of this user"
    if holder:
        with contextlib.suppress(OSError, ValueError):
            limit, whose = _limit_of(holder), f"the daemon, process {holder},"
    if limit == resource.RLIM_INFINITY:
        return [ok(DESCRIPTORS, f"{whose} may open any number of files")]
    needed = AT_LEAST + PER_PEER * nodes + PER_CLIENT * int(content["clients_max"])
    text = f"{whose} may open {limit} files; {nodes} other nodes and {content['clients_max']} clients need {needed}"
    if limit < needed:
        return [warn(DESCRIPTORS, text, f"LimitNOFILE={2 * needed} in its unit, or a smaller clients_max")]
    return [ok(DESCRIPTORS, text)]


def _limit_of(pid: int) -> int:
    line = next(one for one in Path(f"/proc/{pid}/limits").read_text().splitlines() if one.startswith("Max open files"))
    most = line.split()[4]
    return resource.RLIM_INFINITY if most == "unlimited" else int(most)
