"""A configuration for programs: whether it is good, and what it comes to (``groupsvcd --check-config --json``).

``groupsvc doctor`` runs that command, because clients do not have the daemon's code: so there is one judgement of a
configuration, and it is the daemon's. No secret is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..io.state_directory import DATABASE, FORMAT_VERSION, LOCK
from .options import Config
from .problems import Problem


def of_config(config: Config) -> dict[str, object]:
    """What a good one comes to."""
    return {
        "good": True,
        "problems": [],
        "warnings": config.warnings(),
        "node": config.node,
        "domain": config.domain,
        "voter": config.is_voter,
        "voters": config.voters,
        "address": config.address,
        "client_address": config.client_address,
        "listen_clients": config.listen_clients,
        "clients_max": config.limits.clients_max,
        "insecure": config.insecure,
        "key_file": _text(config.key_file),
        "public_key": None if config.keys is None else config.keys.public,
        "node_keys": {name: list(keys) for name, keys in config.node_keys.items()},
        "state_directory": _text(config.state_directory),
        "state_file": DATABASE,
        "state_lock": LOCK,
        "state_format": FORMAT_VERSION,
        "journal_directory": _text(config.journal_directory),
        "leader_silent_s": config.timers.leader_silent,
    }


def of_problems(problems: Sequence[Problem]) -> dict[str, object]:
    """What is wrong with a bad one."""
    found = [{"key": one.key, "where": one.where, "text": one.text} for one in problems]
    return {"good": False, "problems": found, "warnings": []}


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
