"""Keys: who may speak to whom, and the files they are kept in.

Node A has a *pair*: a secret key that only A has, and a public key that everybody may know. B lists A's public key and
lets in who proves to have the secret one; A lists B's, and so knows that it is really B whom it reached. That is all a
key means here: a name that cannot be borrowed, and frames that nobody else can read.

``groupsvc keygen --name a`` makes two files. ``a.pub`` has the public key, to be given away. ``a.key`` is for A alone:
it must be readable by its owner only, or it is refused. Both are TOML::

    public = "…"
    secret = "…"
    server = ["…"]

``server`` stands only in the file of a client: the public keys of the daemons that it connects to. Several, because a
daemon gets another key one day, and because one file may do for all daemons of a domain.

A key is 40 characters of Z85, which is how ZeroMQ writes its 32 bytes. Making one is the business of
``drivers/curve.py``: this file needs no ZeroMQ, so it checks form and permissions, and not whether a pair belongs
together.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from .addresses import TCP, stays_here
from .errors import Failed, UsageError
from .wire.limits import NODE_NAME_BYTES_MAX

KEYS_VARIABLE = "GROUPSVC_KEYS"
"""The key file of clients that name none."""

KEY_CHARS = 40
SERVERS_MAX = 16
"""Each is tried in turn, for some milliseconds, before a connection is given up."""

FILE_BYTES_MAX = 64 * 1024
"""A key file is short; whoever names another file by mistake is told so at once."""

SECRET_SUFFIX = ".key"
PUBLIC_SUFFIX = ".pub"

_z85 = re.compile(r"[0-9A-Za-z.\-:+=^!/*?&<>()\[\]{}@%$#]+")
_name = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def _as_tuple(given: Any) -> tuple[str, ...]:
    """One key, or several; what is neither is found by the check of each."""
    return tuple(given) if isinstance(given, list | tuple) else (given,)


@attrs.frozen
class Keys:
    """A pair of its own, and for a client the public keys of the daemons it may be answered by."""

    public: str
    secret: str = attrs.field(repr=False)
    servers: tuple[str, ...] = attrs.field(default=(), converter=_as_tuple)

    def __attrs_post_init__(self) -> None:
        for what, key in (("public", self.public), ("secret", self.secret), *(("server", one) for one in self.servers)):
            problem = problem_with_key(key)
            if problem is not None:
                raise UsageError(f"the {what} key {problem}")
        if len(self.servers) > SERVERS_MAX:
            raise UsageError(f"there are {len(self.servers)} server keys; at most {SERVERS_MAX} are tried")

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, server: str | tuple[str, ...] | None = None) -> Keys:
        """The keys in the file at ``path``; ``server`` stands in for what the file says of servers."""
        try:
            file = Path(path).expanduser()
        except RuntimeError as error:  # ~somebody who is not known here
            raise UsageError(f"{os.fspath(path)}: the key file cannot be read: {error}") from None
        found = _read_secret(file)
        return found if server is None else attrs.evolve(found, servers=server)


class KeysNeeded(UsageError):
    """Nothing was said about keys where they are needed."""


GivenKeys: TypeAlias = "Keys | str | os.PathLike[str] | Literal[False] | None"
"""What a caller may give: keys, the path of a key file, nothing, or False for none on purpose."""


def keys_for(address: str, given: GivenKeys) -> Keys | None:
    """The keys to use at ``address``, which has no problem; ``UsageError`` if it needs some, or cannot use these."""
    if not address.startswith(TCP):
        if given:
            raise UsageError(f"{address} is a socket of this machine, which needs no keys; leave them out")
        return None
    if given is None:
        given = os.environ.get(KEYS_VARIABLE) or None
    if given is None and not stays_here(address):
        advice = f"give keys=, the path of a key file, or set {KEYS_VARIABLE} (keys=False does without)"
        raise KeysNeeded(f"{address} may be on another machine, and there are no keys", advice=advice)
    if given is None or given is False:
        return None
    if not isinstance(given, str | os.PathLike | Keys):
        raise UsageError(f"keys is {type(given).__name__}; it must be the path of a key file, or groupsvc.Keys")
    keys = given if isinstance(given, Keys) else Keys.read(given)
    if not keys.servers:
        where = "in groupsvc.Keys(…, servers=…)" if isinstance(given, Keys) else f'in {os.fspath(given)}: server = "…"'
        raise UsageError(f"the public key of the daemon at {address} is not known; it must stand {where}")
    return keys


def problem_with_key(key: object) -> str | None:
    """Why ``key`` cannot be a key, or None. The key itself is not in the text: it may be a secret one."""
    if not isinstance(key, str):
        return f"must be text of {KEY_CHARS} characters, not {type(key).__name__}"
    if len(key) != KEY_CHARS:
        return f"has {len(key)} characters and not {KEY_CHARS}; copy it whole from the file of `groupsvc keygen`"
    if _z85.fullmatch(key) is None:
        return "has characters that no key has; copy it whole from the file of `groupsvc keygen`"
    return None


def is_key_name(name: str) -> bool:
    """Whether the owner of a key can be called so, and its files: as nodes are called, which own keys, too."""
    return _name.fullmatch(name) is not None and len(name) <= NODE_NAME_BYTES_MAX


def write_keys(directory: Path, name: str, keys: Keys) -> tuple[Path, Path]:
    """Write NAME.key and NAME.pub into ``directory``, which is there; nothing is ever written over."""
    secret, public = directory / (name + SECRET_SUFFIX), directory / (name + PUBLIC_SUFFIX)
    line = f'public = "{keys.public}"\n'
    whole = f"# For {name} alone: who has this file can be {name}.\n{line}" + f'secret = "{keys.secret}"\n'
    if keys.servers:
        whole += "server = [" + ", ".join(f'"{key}"' for key in keys.servers) + "]\n"
    if not directory.exists():  # none is made: a secret in a directory that was mistyped is found by nobody but others
        raise Failed(
            f"there is no directory {directory}, and none is made; make it with `mkdir -m 700`, or name another"
        )
    for path in (secret, public):
        if path.is_symlink() or path.exists():
            raise Failed(f"{path} is there already, and keys are not written over; take another name or directory")
    try:
        _write_new(secret, whole, 0o600)
        _write_new(public, f"# The public key of {name}: may be given to anybody.\n{line}", 0o644)
    except OSError as error:
        raise Failed(f"the keys cannot be written to {directory}: {error.strerror}") from None
    return secret, public


def public_key(text: str) -> str:
    """The public key that ``text`` is, or that is in the file it names."""
    if problem_with_key(text) is None:
        return text
    found = _parsed(Path(text), _bytes_of(Path(text))).get("public")
    problem = problem_with_key(found)
    if problem is not None:
        raise UsageError(f"{text}: public {problem}")
    return str(found)


# --- Reading ----------------------------------------------------------------------------------------


def _read_secret(path: Path) -> Keys:
    content = _parsed(path, _bytes_of(path, secret=True))
    unknown = sorted(content.keys() - {"public", "secret", "server"})
    if unknown:
        raise UsageError(f"{path}: {unknown[0]} is nothing that a key file has; it has public, secret and server")
    for word in ("public", "secret"):
        if word not in content:
            hint = "; it is the public file, the secret one ends in .key" if path.suffix == PUBLIC_SUFFIX else ""
            raise UsageError(f"{path}: there is no {word} key in it{hint}")
    try:
        return Keys(content["public"], content["secret"], content.get("server", ()))
    except UsageError as problem:
        raise UsageError(f"{path}: {problem}") from None


def _bytes_of(path: Path, *, secret: bool = False) -> bytes:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if secret and stat.S_IMODE(status.st_mode) & 0o077:
                text = f"mode {stat.S_IMODE(status.st_mode):04o} lets others read or change it; chmod 600 {path}"
                raise UsageError(f"{path}: {text}")
            return file.read(FILE_BYTES_MAX)
    except (OSError, ValueError) as error:  # the latter if there is a zero in the path
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path}: the key file cannot be read: {why}") from None


def _parsed(path: Path, raw: bytes) -> dict[str, Any]:
    import tomllib  # a program without keys needs none of it

    try:
        return tomllib.loads(raw.decode())
    except (ValueError, RecursionError):  # the reason might quote a secret
        raise UsageError(f"{path}: is no key file; `groupsvc keygen` makes one") from None


def _write_new(path: Path, text: str, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
