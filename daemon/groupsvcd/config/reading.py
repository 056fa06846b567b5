"""Reading a configuration: every problem of a bad file at once.

Values come from three places, the later ones win: the default, the TOML file, the environment (and between the last
two, once this node has been in a domain, what that says: ``acquired``). An option
``lease`` in the table ``timers`` is ``GROUPSVC_TIMERS_LEASE`` in the environment, ``node`` is ``GROUPSVC_NODE``.
One name is an exception: ``GROUPSVC_ADDRESS`` tells *clients* where the daemon is, so the address for peers is
``GROUPSVC_PEER_ADDRESS``.

Whoever has made three mistakes should not need three starts to find them. So nothing here stops at the first
problem: a value that does not fit is noted with its key and line, its default takes its place, and the checks
go on. ``daemon/config/groupsvcd.example.toml`` says what each option means.
"""

from __future__ import annotations

import os
import re
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from groupsvc.addresses import IPC, runtime_socket
from groupsvc.wire.limits import NODE_NAME_BYTES_MAX

from ..core.access import Rule
from ..core.parameters import Timers
from .access import judge_access, rules_of
from .judging import judge_addresses, judge_names, judge_numbers
from .keys import KEY_TABLES, judge_keys, read_key_file, table_from_text, table_of_keys
from .lines import lines_of_keys
from .options import ENVIRONMENT_PREFIX, OPTIONS, TABLES, TOP, Config, Limits, environment_name
from .problems import BadConfig, Problem, did_you_mean
from .values import fitting, parsed

CLIENT_VARIABLES = frozenset(
    f"GROUPSVC_{name}"
    for name in (
        "ADDRESS", "CONFIG", "KEYS", "LOCK", "ELECTION", "FENCE", "BARRIER", "PARTIES", "RANK"
    )
)  # fmt: skip
"""Variables that begin like ours and are meant for others: clients, the command line, and what that runs."""


def load(path: Path | None, environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration from the file at ``path`` (None: defaults) and ``environment``, or ``BadConfig``."""
    reader = _Reader(path)
    if path is not None:
        reader.read_file(path)
    reader.read_environment(environment)
    return reader.config(environment)


class _Reader:
    """Collects values and problems; ``config`` makes the one or raises the other."""

    def __init__(self, path: Path | None) -> None:
        self._file = "" if path is None else str(path)
        self._base = Path.cwd() if path is None else path.absolute().parent
        self._lines: dict[str, int] = {}
        self._from_environment: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self._voters: dict[str, str] = {}
        self._keys: dict[str, dict[str, tuple[str, ...]]] = {table: {} for table in KEY_TABLES}
        self._access: tuple[Rule, ...] = ()
        self._problems: list[Problem] = []

    def read_file(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else f"it is not UTF-8 ({error.reason})"
            raise BadConfig([Problem("", str(path), f"cannot be read: {reason}")]) from None
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            where = f"{path}:{line.group(1)}" if line else str(path)
            raise BadConfig([Problem("", where, f"is no valid TOML: {error}")]) from None
        except RecursionError:
            raise BadConfig([Problem("", str(path), "is no valid TOML: it is nested too deep")]) from None
        self._lines = lines_of_keys(text)
        for key, value in content.items():
            if key == "voters":
                self._read_voters(value)
            elif key in KEY_TABLES:
                self._keys[key] = table_of_keys(key, value, self._problem)
            elif key == "access":
                self._access = rules_of(value, self._problem)
            elif key in TABLES:
                self._read_table(key, value)
            elif key in TOP:
                self._take(key, value)
            else:
                self._unknown(key, [*TOP, *TABLES, "voters", "access", *KEY_TABLES])

    def _read_table(self, table: str, content: Any) -> None:
        if not isinstance(content, dict):
            self._problem(table, f"is a table; write its options under [{table}]")
            return
        for name, value in content.items():
            if name in TABLES[table]:
                self._take(f"{table}.{name}", value)
            else:
                self._unknown(f"{table}.{name}", list(OPTIONS))

    def _read_voters(self, content: Any) -> None:
        if not isinstance(content, dict):
            self._problem("voters", 'is a table; write name = "address" lines under [voters]')
            return
        for name, address in content.items():
            if isinstance(address, str):
                self._voters[name] = address
            else:
                self._problem(f"voters.{name}", f"must be the voter's address as text, not {address!r}")

    def read_environment(self, environment: Mapping[str, str]) -> None:
        known = {environment_name(key): key for key in OPTIONS}
        voters_name = environment_name("voters")
        of_keys = {environment_name(table): table for table in KEY_TABLES}
        for name in sorted(environment):
            if not name.startswith(ENVIRONMENT_PREFIX) or name in CLIENT_VARIABLES:
                continue
            if name == voters_name:
                self._voters_from_environment(environment[name], name)
            elif name in of_keys:
                content = table_from_text(environment[name])
                self._from_environment |= {f"{of_keys[name]}.{one}": name for one in content}
                self._keys[of_keys[name]] = table_of_keys(of_keys[name], content, self._problem)
            elif name in known:
                self._from_environment[known[name]] = name
                self._take(known[name], parsed(environment[name], OPTIONS[known[name]]))
            else:
                text = "is the variable of no option" + did_you_mean(name, [*known, voters_name, *of_keys])
                self._problems.append(Problem("", f"environment {name}", text))

    def _voters_from_environment(self, text: str, name: str) -> None:
        self._voters = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            voter, equals, address = part.partition("=")
            self._voters[voter.strip()] = address.strip()
            self._from_environment[f"voters.{voter.strip()}"] = name
            if not equals:
                self._problem(f"voters.{voter.strip()}", "must be NAME=ADDRESS, several with commas between them")

    def _take(self, key: str, value: Any) -> None:
        kind = OPTIONS[key]
        if kind is Path and isinstance(value, str):
            if value:
                self._take_path(key, value)
            return
        fits, problem = fitting(kind, value)
        if problem:
            self._problem(key, problem)
        elif key == "client_address":
            self._values[key] = self._beside_the_file(fits)
        else:
            self._values[key] = fits

    def _beside_the_file(self, address: str) -> str:
        """A socket is a file as well; one of Linux's without a file (``ipc://@NAME``) is not."""
        path = address.removeprefix(IPC)
        is_path = address.startswith(IPC) and path and not path.startswith("@") and "\0" not in path
        return f"{IPC}{self._base / path}" if is_path else address

    def _take_path(self, key: str, value: str) -> None:
        if "\0" in value:
            self._problem(key, "must be a path, and there is no character zero in those")
            return
        try:
            self._values[key] = self._base / Path(value).expanduser()
        except RuntimeError:
            self._problem(key, f"is {value}, and this machine knows no such user")

    def config(self, environment: Mapping[str, str]) -> Config:
        values = {key: value for key, value in self._values.items() if key in TOP}
        node = values.setdefault("node", _host_name())
        if "runtime_directory" in values:
            directory = values["runtime_directory"]
        elif environment.get("RUNTIME_DIRECTORY"):  # systemd makes it; several are separated by colons
            directory = Path(environment["RUNTIME_DIRECTORY"].partition(":")[0])
        else:
            directory = runtime_socket().parent
        values["runtime_directory"] = directory
        values.setdefault("client_address", f"ipc://{directory / runtime_socket().name}")
        if not values.get("address") and node in self._voters:
            values["address"] = self._voters[node]
        timers, limits = Timers(**self._in_table("timers")), Limits(**self._in_table("limits"))
        values |= self._keys
        config = Config(
            voters=self._voters, timers=timers, limits=limits, file=self._file, places=self._places(),
            access=self._access, **values,
        )  # fmt: skip
        config = attrs.evolve(config, keys=read_key_file(config, self._problem))
        for judge in (judge_names, judge_addresses, judge_keys, judge_access, judge_numbers):
            judge(config, self._problem)
        if self._problems:
            raise BadConfig(self._problems)
        return config

    def _places(self) -> dict[str, str]:
        """Where each option stands that is not left at its default."""
        places = {key: self._place(key) for key in self._values}
        if self._voters:
            name = next((self._from_environment.get(f"voters.{voter}") for voter in self._voters), None)
            places["voters"] = self._place("voters") if name is None else f"environment {name}"
        return places

    def _in_table(self, table: str) -> dict[str, Any]:
        return {name: self._values[f"{table}.{name}"] for name in TABLES[table] if f"{table}.{name}" in self._values}

    # --- Noting ---------------------------------------------------------------------------------------

    def _unknown(self, key: str, known: list[str]) -> None:
        self._problem(key, "is no option" + did_you_mean(key, known))

    def _problem(self, key: str, text: str) -> None:
        self._problems.append(Problem(key, self._place(key), text))

    def _place(self, key: str) -> str:
        if key in self._from_environment:
            return f"environment {self._from_environment[key]}"
        return f"{self._file}:{self._lines[key]}" if key in self._lines else self._file


def _host_name() -> str:
    """The host name, cut to its first label if it is too long whole."""
    whole = socket.gethostname()
    return whole if len(whole.encode()) <= NODE_NAME_BYTES_MAX else whole.partition(".")[0]
