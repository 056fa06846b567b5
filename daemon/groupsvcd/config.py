"""The configuration: one frozen class, and every problem of a bad file at once.

Values come from three places, the later ones win: the default, the TOML file, the environment. An option
``lease`` in the table ``timers`` is ``GROUPSVC_TIMERS_LEASE`` in the environment, ``node`` is ``GROUPSVC_NODE``.
One name is an exception: ``GROUPSVC_ADDRESS`` tells *clients* where the daemon is, so the address for peers is
``GROUPSVC_PEER_ADDRESS``.

Whoever has made three mistakes should not need three starts to find them. So nothing here stops at the first
problem: a value that does not fit is noted with its key and line, its default takes its place, and the checks
go on. ``daemon/config/groupsvcd.example.toml`` says what each option means.
"""

from __future__ import annotations

import math
import os
import re
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from groupsvc.addresses import problem_with_local_address, runtime_socket
from groupsvc.errors import UsageError
from groupsvc.keys import Keys, is_key_name
from groupsvc.wire.limits import NODE_NAME_BYTES_MAX

from .core.parameters import Parameters, Timers
from .io.addresses import multicast_address, problem_with_peer_address
from .key_options import KEY_TABLES, judge_keys, read_key_file, table_from_text, table_of_keys

ENVIRONMENT_PREFIX = "GROUPSVC_"
CLIENT_VARIABLES = frozenset(
    f"GROUPSVC_{name}"
    for name in (
        "ADDRESS", "CONFIG", "KEYS", "LOCK", "ELECTION", "FENCE", "BARRIER", "PARTIES", "RANK"
    )
)  # fmt: skip
"""Variables that begin like ours and are meant for others: clients, the command line, and what that runs."""

LOG_LEVELS = ("debug", "info", "warning", "error")
JOURNAL_LEVELS = ("batch", "full")

TIMER_S_MIN = 0.001
"""No protocol runs faster than a scheduler lets it."""

TIMER_S_MAX = 3600.0
"""Who waits an hour for a lease to end does not need a daemon for it."""

NUMBER_MAX = 2**40
"""Far beyond any use, and still a number that every part can carry."""

PREFERENCE_MAX = 1000
"""More voters than that there never are, so each could have its own."""


@attrs.frozen(kw_only=True)
class Limits:
    """How much of everything; what the engine compares between nodes (MSG-13) must be the same on all."""

    checkpoint_every: int = 1_000  # directory entries between two checkpoints
    retention_margin: int = 200  # entries kept before a checkpoint for a node that lags a little
    answers_kept: int = 64  # answers per origin, for repeated commands
    logical_lifetime: int = 100_000  # entries after which an unrepeated submission is forgotten
    clients_max: int = 1_000  # connections of applications
    peer_queue_frames_max: int = 96  # frames waiting for one peer; 96 x 256 KiB + 8 MiB = 32 MiB, see io/peers.py
    client_queue_frames_max: int = 1_000  # frames waiting for one client; beyond it it is given up
    journal_file_bytes_max: int = 64 * 1024 * 1024  # size at which the event journal begins a new file
    journal_files_max: int = 4  # files of the event journal kept for one run


@attrs.frozen(kw_only=True)
class Config:
    """Everything an operator can decide about one daemon."""

    node: str
    domain: str = "groupsvc"
    address: str = ""
    voters: dict[str, str] = attrs.field(factory=dict)
    candidate: bool = True
    pinned: bool = False
    preference: int = 0
    form_without: tuple[str, ...] = ()
    state_directory: Path | None = None
    runtime_directory: Path
    client_address: str
    journal_directory: Path | None = None
    journal_level: str = "batch"
    log_level: str = "info"
    insecure: bool = False
    key_file: Path | None = None
    keys: Keys | None = None  # what is in the key file
    node_keys: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    client_keys: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    listen_clients: str = ""
    timers: Timers = Timers()
    limits: Limits = Limits()

    @property
    def is_voter(self) -> bool:
        """Whether this node holds the directory."""
        return not self.voters or self.node in self.voters

    @property
    def may_leave(self) -> bool:
        """Whether frames may leave the machine."""
        return self.insecure or self.key_file is not None

    def parameters(self, *, measured: int, started_ms: int) -> Parameters:
        """What the engine must know of all this."""
        return Parameters(
            node=self.node,
            domain=self.domain,
            address=self.address,
            voters=tuple(sorted(self.voters)),
            voter_addresses=dict(self.voters),
            durable=self.state_directory is not None,
            candidate=self.candidate,
            pinned=self.pinned,
            preference=self.preference,
            measured=measured,
            form_without=self.form_without,
            started_ms=started_ms,
            timers=self.timers,
            checkpoint_every=self.limits.checkpoint_every,
            retention_margin=self.limits.retention_margin,
            answers_kept=self.limits.answers_kept,
            logical_lifetime=self.limits.logical_lifetime,
            journal_full=self.journal_level == "full",
        )

    def warnings(self) -> list[str]:
        """What is allowed and still worth a second thought."""
        found = []
        if len(self.voters) == 2:
            found.append(
                "two voters are both needed: if one is gone the other suspends;"
                " a third voter without clients (a witness) gives fail-over"
            )
        elif len(self.voters) % 2 == 0 and self.voters:
            found.append(f"{len(self.voters)} voters survive no more failures than {len(self.voters) - 1} would")
        if self.insecure and self.keys is not None:
            found.append("insecure = true says nothing beside key_file: keys are asked for; remove it")
        elif self.insecure:
            found.append("insecure = true: frames travel in clear and anybody who reaches a port may send some")
        if self.listen_clients and self.keys is None and not self.insecure:
            found.append("listen_clients without keys: every user of this machine may connect to it")
        if self.form_without:
            found.append(f"form_without = {', '.join(self.form_without)}: remove it after the first formation")
        return found


@attrs.frozen
class Problem:
    """One thing wrong: which option, where it stands, and why it cannot be."""

    key: str
    where: str
    text: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.key, self.text) if part)


class BadConfig(UsageError):
    """The configuration cannot be used; ``problems`` has every reason."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


# --- The options ------------------------------------------------------------------------------------

_TOP: dict[str, type] = {
    "node": str,
    "domain": str,
    "address": str,
    "candidate": bool,
    "pinned": bool,
    "preference": int,
    "form_without": list,
    "state_directory": Path,
    "runtime_directory": Path,
    "client_address": str,
    "journal_directory": Path,
    "journal_level": str,
    "log_level": str,
    "insecure": bool,
    "key_file": Path,
    "listen_clients": str,
}
_TABLES: dict[str, dict[str, type]] = {
    "timers": {field.name: float for field in attrs.fields(Timers)},
    "limits": {field.name: int for field in attrs.fields(Limits)},
}
OPTIONS: dict[str, type] = _TOP | {
    f"{table}.{name}": kind for table, names in _TABLES.items() for name, kind in names.items()
}
"""Every option but the free tables, those of voters and of keys, as written with its table; the type of its value."""

_WORDS: dict[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number of seconds",
    list: "a list of texts",
}
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def environment_name(key: str) -> str:
    """The variable that sets option ``key``."""
    if key == "address":
        return ENVIRONMENT_PREFIX + "PEER_ADDRESS"
    return ENVIRONMENT_PREFIX + key.replace(".", "_").upper()


def load(path: Path | None, environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration from the file at ``path`` (None: defaults) and ``environment``, or ``BadConfig``."""
    reader = _Reader(path)
    if path is not None:
        reader.read_file(path)
    reader.read_environment(environment)
    return reader.config(environment)


# --- Reading ----------------------------------------------------------------------------------------


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
        self._lines = lines_of_keys(text)
        for key, value in content.items():
            if key == "voters":
                self._read_voters(value)
            elif key in KEY_TABLES:
                self._keys[key] = table_of_keys(key, value, self._problem)
            elif key in _TABLES:
                self._read_table(key, value)
            elif key in _TOP:
                self._take(key, value)
            else:
                self._unknown(key, [*_TOP, *_TABLES, "voters", *KEY_TABLES])

    def _read_table(self, table: str, content: Any) -> None:
        if not isinstance(content, dict):
            self._problem(table, f"is a table; write its options under [{table}]")
            return
        for name, value in content.items():
            if name in _TABLES[table]:
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
                self._take(known[name], _parsed(environment[name], OPTIONS[known[name]]))
            else:
                text = "is the variable of no option" + _did_you_mean(name, [*known, voters_name, *of_keys])
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
        if kind is float and type(value) is int:
            value = float(value)
        if kind is Path and isinstance(value, str):
            if value:
                self._values[key] = self._base / Path(value).expanduser()
            return
        if kind is list and isinstance(value, list) and all(isinstance(part, str) for part in value):
            self._values[key] = tuple(value)
        elif kind is not list and type(value) is kind and not (isinstance(value, float) and not math.isfinite(value)):
            self._values[key] = value
        else:
            self._problem(key, f"must be {_WORDS.get(kind, 'a path as text')}, not {value!r}")

    # --- Judging --------------------------------------------------------------------------------------

    def config(self, environment: Mapping[str, str]) -> Config:
        values = {key: value for key, value in self._values.items() if key in _TOP}
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
        config = Config(voters=self._voters, timers=timers, limits=limits, **values)
        config = attrs.evolve(config, keys=read_key_file(config, self._problem))
        self._judge_names(config)
        self._judge_addresses(config)
        judge_keys(config, self._problem)
        self._judge_numbers(config)
        if self._problems:
            raise BadConfig(self._problems)
        return config

    def _in_table(self, table: str) -> dict[str, Any]:
        return {name: self._values[f"{table}.{name}"] for name in _TABLES[table] if f"{table}.{name}" in self._values}

    def _judge_names(self, config: Config) -> None:
        names = [("node", config.node), ("domain", config.domain)]
        names += [(f"voters.{voter}", voter) for voter in config.voters]
        names += [(f"{table}.{name}", name) for table in KEY_TABLES for name in getattr(config, table)]
        for key, name in names:
            if not is_key_name(name):
                text = f"{name!r} is no name: 1 to {NODE_NAME_BYTES_MAX} letters, digits, '.', '_' or '-'"
                self._problem(key, text)
        for missing in config.form_without:
            if missing == config.node:
                self._problem("form_without", f"names this node itself, {missing}")
            elif missing not in config.voters:
                hint = _did_you_mean(missing, list(config.voters))
                self._problem("form_without", f"{missing!r} is not in [voters]{hint}")
        for key, level, levels in (
            ("log_level", config.log_level, LOG_LEVELS),
            ("journal_level", config.journal_level, JOURNAL_LEVELS),
        ):
            if level not in levels:
                self._problem(key, f"{level!r} is none of {', '.join(levels)}")
        if len(config.voters) > 1 and config.is_voter and config.state_directory is None:
            text = f"is required: {config.node} is one of {len(config.voters)} voters and must not forget its promises"
            self._problem("state_directory", text)

    def _judge_addresses(self, config: Config) -> None:
        for voter, address in config.voters.items():
            self._note(f"voters.{voter}", problem_with_peer_address(address, may_leave=config.may_leave))
        self._judge_clashes(config.voters)
        if config.node in config.voters:
            if config.address != config.voters[config.node]:
                text = f"{config.address} differs from voters.{config.node} = {config.voters[config.node]}"
                self._problem("address", text)
        elif config.address:
            self._note("address", problem_with_peer_address(config.address, may_leave=config.may_leave))
        elif config.voters:
            text = f"is required: {config.node} is not in [voters], so the others cannot know where it is"
            self._problem("address", text)
        self._note("client_address", problem_with_local_address(config.client_address))

    def _judge_clashes(self, voters: Mapping[str, str]) -> None:
        """Each voter needs two endpoints that no other uses."""
        users: dict[str, str] = {}
        for voter, address in voters.items():
            if problem_with_peer_address(address, may_leave=True) is not None:
                continue
            for endpoint in (address, multicast_address(address)):
                other = users.setdefault(endpoint, voter)
                if other != voter:
                    self._problem(
                        f"voters.{voter}", f"{endpoint} is used by {other} as well (multicasts take PORT + 1)"
                    )

    def _judge_numbers(self, config: Config) -> None:
        for sentence in config.timers.problems(len(config.voters) or 1):
            key, _, text = sentence.partition(" ")
            self._problem(key, text)
        for field in attrs.fields(Timers):
            if not TIMER_S_MIN <= getattr(config.timers, field.name) <= TIMER_S_MAX:
                text = f"= {getattr(config.timers, field.name)!r} must be {TIMER_S_MIN} to {TIMER_S_MAX:.0f} seconds"
                self._problem(f"timers.{field.name}", text)
        for field in attrs.fields(Limits):
            if not 1 <= getattr(config.limits, field.name) <= NUMBER_MAX:
                text = f"= {getattr(config.limits, field.name)} must be 1 to {NUMBER_MAX}"
                self._problem(f"limits.{field.name}", text)
        if not 0 <= config.preference <= PREFERENCE_MAX:
            self._problem("preference", f"= {config.preference} must be 0 to {PREFERENCE_MAX}")

    # --- Noting ---------------------------------------------------------------------------------------

    def _unknown(self, key: str, known: list[str]) -> None:
        self._problem(key, "is no option" + _did_you_mean(key, known))

    def _note(self, key: str, text: str | None) -> None:
        if text is not None:
            self._problem(key, text)

    def _problem(self, key: str, text: str) -> None:
        if key in self._from_environment:
            where = f"environment {self._from_environment[key]}"
        elif key in self._lines:
            where = f"{self._file}:{self._lines[key]}"
        else:
            where = self._file
        self._problems.append(Problem(key, where, text))


_table_line = re.compile(r"\s*\[\s*([A-Za-z0-9_.\-\"' ]+?)\s*\]\s*(?:#.*)?")
_key_line = re.compile(r"\s*([A-Za-z0-9_.\-\"' ]+?)\s*=")


def lines_of_keys(text: str) -> dict[str, int]:
    """The line on which each key of a valid TOML file stands; tables are keys, too."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        head = _table_line.fullmatch(line)
        if head is not None:
            table = _plain(head.group(1))
            found.setdefault(table, number)
            continue
        pair = _key_line.match(line)
        if pair is not None:
            key = _plain(pair.group(1))
            found.setdefault(f"{table}.{key}" if table else key, number)
    return found


def _plain(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _parsed(text: str, kind: type) -> Any:
    """What ``text`` from the environment means for an option of ``kind``; the text itself if nothing."""
    try:
        if kind is int:
            return int(text)
        if kind is float:
            return float(text)
    except ValueError:
        return text
    if kind is bool:
        return _TRUTHS.get(text.strip().lower(), text)
    if kind is list:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _did_you_mean(word: str, known: list[str]) -> str:
    import difflib  # only needed when something is wrong

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _host_name() -> str:
    """The host name, cut to its first label if it is too long whole."""
    whole = socket.gethostname()
    return whole if len(whole.encode()) <= NODE_NAME_BYTES_MAX else whole.partition(".")[0]
