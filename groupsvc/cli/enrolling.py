"""``groupsvc keygen --join``: a new machine gets its key listed by a token, and the file its daemon starts with.

The pair is made and written first, then the domain is asked. If the answer is lost nobody knows whether the key is
listed; the same command again finds the pair, asks with the same key, and is told. Where it is certain that nothing
happened, a pair that was made for it is taken away again.

A token is a secret, so it is read from a file or from standard input: an argument everybody on the machine can read.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from ..addresses import TCP, problem_with_tcp_address, tcp_host_and_port
from ..errors import Failed, OutcomeUnknown, UsageError
from ..keys import SECRET_SUFFIX, Keys, write_keys
from ..tokens import LINE_CHARS_MAX, Token, looks_like_one
from ..wire.enrolment_messages import Enrolled
from .exit_codes import ExitCode
from .tables import one_line

PORT_OTHERWISE = 7400


def join(options: argparse.Namespace) -> ExitCode:
    """Enrol the node of the token that ``options.join`` names."""
    token = Token.parse(_read(options.join))
    name = token.node
    if options.name not in (None, name):
        raise UsageError(f"the token is for a node that is called {name}, not {options.name}")
    if options.peer_address is not None and (problem := problem_with_tcp_address(options.peer_address)):
        raise UsageError(problem)
    directory = options.out.expanduser().absolute()
    config = (options.config or directory / f"{name}.toml").expanduser().absolute()
    if config.is_symlink() or config.exists():
        raise Failed(f"{config} is there already, and is not written over; take another one with --config")
    keys, fresh = _pair(directory, name)
    try:
        enrolled = _enrolled(token, keys, options.timeout)
    except OutcomeUnknown as error:
        raise OutcomeUnknown(f"{error.what}; the same command again will tell") from None
    except (Failed, UsageError):
        if fresh:
            for path in fresh:
                path.unlink()
        raise
    address = options.peer_address or _own_address(token, enrolled)
    secret = directory / (name + SECRET_SUFFIX)
    _write(config, _settings(name, address, secret, enrolled))
    if options.json:
        said = {"name": name, "public": keys.public, "secret_file": str(secret), "config_file": str(config),
                "domain": enrolled.domain, "address": address, "version": enrolled.version}  # fmt: skip
        print(json.dumps(said))
    else:
        which = "" if fresh else ", which was there already"
        print(one_line(f"{name} is enrolled in domain {enrolled.domain}; its secret key is {secret}{which}"))
        print(one_line(f"it will be at {address} for the other nodes: look into {config}, then start it with"))
        print(f"\n    groupsvcd --config {config}")
    return ExitCode.OK


def _read(place: str) -> str:
    if looks_like_one(place):
        text = "a token is a secret, and everybody on this machine can read an argument"
        raise UsageError(f"{text}; give the file that it is in, or - and it on standard input")
    if place == "-":
        if sys.stdin.isatty():
            print("token: ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline(LINE_CHARS_MAX + 2)
    try:
        with open(place, encoding="utf-8") as file:
            return file.readline(LINE_CHARS_MAX + 2)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"{place}: the token cannot be read: {reason}") from None


def _pair(directory: Path, name: str) -> tuple[Keys, tuple[Path, ...]]:
    """The node's pair, and the files that were made for it now; one that is there is one that was asked about."""
    from ..drivers.curve import new_keys, problem_with_pair

    secret = directory / (name + SECRET_SUFFIX)
    if secret.exists():
        keys = Keys.read(secret)
        if mixed := problem_with_pair(keys):
            raise UsageError(f"{secret}: {mixed}")
        return keys, ()
    keys = new_keys()
    return keys, write_keys(directory, name, keys)


def _enrolled(token: Token, keys: Keys, timeout: float) -> Enrolled:
    from ..drivers.connection import DaemonConnection
    from ..drivers.curve import public_of
    from ..drivers.daemon_socket import NotItsKey, NotListed

    shown = Keys(public_of(token.secret), token.secret, (token.server,))
    try:
        with DaemonConnection(token.address, timeout, client="groupsvc keygen", keys=shown) as connection:
            if connection.welcome.domain != token.domain:
                text = f"the daemon at {token.address} is of domain {connection.welcome.domain}"
                raise Failed(f"{text}, and the token is one of {token.domain}")
            return connection.enrol(token.node, keys.public)
    except NotListed:
        text = f"the daemon at {token.address} does not know this token: it was revoked or replaced, or is of another"
        raise Failed(f"{text} domain; make another one with `groupsvc token --node {token.node}`") from None
    except NotItsKey:
        text = f"who listens at {token.address} is not the daemon that the token names, or has another key by now"
        raise Failed(f"{text}; make another one") from None


def _own_address(token: Token, enrolled: Enrolled) -> str:
    """Where the other nodes reach this machine: the address it reaches them from, and the port that they use."""
    ports = [tcp_host_and_port(address)[1] for address in enrolled.voters.values() if address.startswith(TCP)]
    port = ports[0] if ports else PORT_OTHERWISE
    try:
        with socket.create_connection(tcp_host_and_port(token.address), timeout=2.0) as reached:
            host = str(reached.getsockname()[0])
    except OSError:
        host = socket.getfqdn()
    return f"{TCP}[{host}]:{port}" if ":" in host else f"{TCP}{host}:{port}"


def _settings(name: str, address: str, secret: Path, enrolled: Enrolled) -> str:
    """The file of the daemon: what is its own, and what it was told."""
    others = {node: list(keys) for node, keys in enrolled.node_keys.items() if node != name}
    tables: dict[str, dict[str, object]] = {"voters": dict(enrolled.voters), "node_keys": dict(others)}
    for option, value in enrolled.options.items():
        table, _, key = option.partition(".")
        tables.setdefault(table, {})[key] = value
    lines = [
        f"# Made by `groupsvc keygen --join` for {name}. [voters], [timers] and [limits] are the same on all nodes.",
        "# Keys that the domain lists later need not be added here.",
        f"node = {_toml(name)}",
        f"domain = {_toml(enrolled.domain)}",
        f"address = {_toml(address)}",
        f"key_file = {_toml(str(secret))}",
        '# state_directory = "/var/lib/groupsvc"',
    ]
    for table, content in tables.items():
        lines += ["", f"[{table}]", *_lines_of(content)]
    return "\n".join(lines) + "\n"


def _lines_of(table: Mapping[str, object]) -> list[str]:
    return [f"{_toml(key)} = {_toml(value)}" for key, value in table.items()]


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror}; the key is listed"
        raise Failed(f"{text}, and the same command with another --config gives the same file") from None
