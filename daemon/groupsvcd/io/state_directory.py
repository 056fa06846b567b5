"""The state directory: whose it is, who may use it, and when to keep one's hands off.

What is in it are promises given to other nodes. Losing them, mixing them with another node's, or letting two
processes write them breaks the domain, so every doubt ends in a refusal that changes nothing on the disk:

- A directory that is not empty and has no state of ours in it is somebody else's.
- State of another format version is for another program.
- State with another node's name was copied or mounted wrongly.
- A directory under another process's lock is in use (an flock, so a dead process holds none).

The state is one SQLite file, ``state.db``. It is made under another name, closed and renamed, so it either
exists whole or not at all; its header says by fixed bytes whose it is before SQLite is asked anything.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path

from groupsvc.errors import Failed

APPLICATION_ID = 0x47535643  # "GSVC", in the header of the file
FORMAT_VERSION = 3
DATABASE = "state.db"
DATABASE_NEW = "state.db.new"
LOCK = "lock"

_SQLITE_MAGIC = b"SQLite format 3\0"
_USER_VERSION_AT = 60
_APPLICATION_ID_AT = 68
_HEADER_BYTES = 100
_HARMLESS = frozenset({LOCK, "mark", "lost+found"})
"""May be there before there is a state: a lock of a start that was refused, the root of a file system."""


class StateRefused(Failed):
    """The state directory must not be used; nothing in it was changed. The text says why and what to do."""


class StateDirectory:
    """A directory that is ours, under lock until ``close``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_new = False
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._refuse_foreign()
            self._lock_fd = self._lock()
        except OSError as error:
            raise StateRefused(f"state directory {path} cannot be used: {error.strerror}") from None
        try:
            self._refuse_foreign()  # again: only now does nobody else change it
            self.is_new = not self.database.exists()
            if self.is_new:
                self._remove_half_made()
            else:
                self._refuse_other_format()
        except BaseException:
            self.close()
            raise

    @property
    def database(self) -> Path:
        """The file with the state."""
        return self.path / DATABASE

    @property
    def database_new(self) -> Path:
        """The name under which the file is made."""
        return self.path / DATABASE_NEW

    def publish_new(self) -> None:
        """The new database is complete: give it its name, and make the name as durable as the content."""
        if self.database.exists():
            raise StateRefused(f"{self.database} has appeared while a new one was being made")
        self.database_new.rename(self.database)
        self.is_new = False
        for directory in (self.path, self.path.parent):
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def close(self) -> None:
        """Let another process have it."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _refuse_foreign(self) -> None:
        if self.database.exists():
            return
        foreign = [
            name for name in os.listdir(self.path) if name not in _HARMLESS and not name.startswith(DATABASE_NEW)
        ]
        if foreign:
            shown = ", ".join(sorted(foreign)[:3]) + (", …" if len(foreign) > 3 else "")
            raise StateRefused(
                f"directory {self.path} is not empty ({shown}) and holds no groupsvc state;"
                " name an empty one, or one that does not exist yet"
            )

    def _lock(self) -> int:
        fd = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise StateRefused(f"state directory {self.path} is in use by pid {holder}") from None
            raise
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        return fd

    def _remove_half_made(self) -> None:
        """A first start that was killed left a file that nobody has ever relied on."""
        for leftover in self.path.glob(DATABASE_NEW + "*"):
            leftover.unlink()

    def _refuse_other_format(self) -> None:
        try:
            with self.database.open("rb") as file:
                header = file.read(_HEADER_BYTES)
        except OSError as error:
            raise StateRefused(f"{self.database} cannot be read: {error.strerror}") from None
        if len(header) < _HEADER_BYTES or not header.startswith(_SQLITE_MAGIC):
            raise StateRefused(f"{self.database} is damaged or no groupsvc state: it is not an SQLite file. {ADVICE}")
        (version,) = struct.unpack_from(">I", header, _USER_VERSION_AT)
        (application,) = struct.unpack_from(">I", header, _APPLICATION_ID_AT)
        if application != APPLICATION_ID:
            raise StateRefused(f"{self.database} is an SQLite file of another program, not groupsvc state")
        if version != FORMAT_VERSION:
            raise StateRefused(
                f"{self.database} has state format {version}, this groupsvcd knows {FORMAT_VERSION};"
                " use the release that wrote it, or one that converts it"
            )


ADVICE = (
    "If it is lost, move the directory away and start with an empty one:"
    " the node then counts as blank until the other voters have let it in again"
)
