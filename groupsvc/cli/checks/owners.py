"""Whose a file is, and who may read it: the names behind an error that says only that this user may not."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path


def user_name(uid: int) -> str:
    """As the machine calls it; its number if it has no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    """The same of a group."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def closed_by(path: Path) -> Path | None:
    """What keeps this user from reading ``path``: a directory above it, or the file itself; None if nothing does."""
    whole = path.absolute()
    for above in reversed(whole.parents):
        if above.exists() and not os.access(above, os.X_OK):
            return above
    return whole if whole.exists() and not os.access(whole, os.R_OK) else None


def who_may_read(path: Path) -> str:
    """The users and groups that the mode of this file, or directory, lets in."""
    seen = path.stat()
    by_group, by_all = (0o010, 0o001) if stat.S_ISDIR(seen.st_mode) else (0o040, 0o004)
    if seen.st_mode & by_all:
        return "everybody"
    return f"user {user_name(seen.st_uid)}" + (
        f" and group {group_name(seen.st_gid)}" if seen.st_mode & by_group else ""
    )
