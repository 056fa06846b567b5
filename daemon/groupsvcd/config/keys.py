"""The options about keys: what may stand in them, and what must hold between them.

``key_file`` is this node's own pair. ``[node_keys]`` and ``[client_keys]`` say whose public key is whose::

    [node_keys]
    n1 = "…"
    n2 = ["…", "…"]

Two for one name, so that n2 can change its key without a moment in which nobody lets it in: first everybody lists both,
then n2 takes the new one, then the old one goes. With a key file everything but the local socket asks for keys, so the
voters must be listed; without one nothing does, and the daemon stays on its machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from groupsvc.drivers.curve import problem_with_pair
from groupsvc.errors import UsageError
from groupsvc.keys import Keys, problem_with_key

from ..io.addresses import problem_with_listening
from .problems import Note

if TYPE_CHECKING:
    from .options import Config

KEY_TABLES = ("node_keys", "client_keys")
KEYS_PER_NAME_MAX = 2
"""The old one and the new one."""

KeyTable = Mapping[str, tuple[str, ...]]


def table_of_keys(table: str, content: Any, note: Note) -> dict[str, tuple[str, ...]]:
    """The keys in ``content`` by name; what cannot be one is noted, and left out."""
    if not isinstance(content, dict):
        note(table, f'is a table; write name = "key" lines under [{table}]')
        return {}
    found = {}
    for name, value in content.items():
        keys = tuple(value) if isinstance(value, list) else (value,)
        problems = [problem for problem in map(problem_with_key, keys) if problem is not None]
        if isinstance(value, dict):  # n2.example = "…" is a table n2 to TOML
            note(f"{table}.{name}", "is a table; a name with a dot in it stands in quotes")
        elif problems:
            note(f"{table}.{name}", problems[0])
        elif not 1 <= len(keys) <= KEYS_PER_NAME_MAX:
            note(f"{table}.{name}", f"has {len(keys)} keys; one, or two while the key is being changed")
        else:
            found[name] = keys
    return found


def table_from_text(text: str) -> dict[str, list[str]]:
    """The table in a variable: NAME=KEY, with commas between; a name may come twice. No key has a comma in it."""
    found: dict[str, list[str]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, key = part.partition("=")
        found.setdefault(name.strip(), []).append(key.strip())
    return found


def read_key_file(config: Config, note: Note) -> Keys | None:
    """This node's own pair; what is wrong with its file is noted."""
    if config.key_file is None:
        return None
    try:
        keys = Keys.read(config.key_file)
    except UsageError as problem:
        note("key_file", str(problem))
        return None
    mixed = problem_with_pair(keys)
    if mixed is not None:
        note("key_file", f"{config.key_file}: {mixed}")
    return keys


def judge_keys(config: Config, note: Note) -> None:
    """What does not hold between the options about keys."""
    for table in KEY_TABLES:
        _judge_owners(table, getattr(config, table), note)
        if getattr(config, table) and config.key_file is None:
            note("key_file", f"is required: there are [{table}], and this node has nothing to show for itself")
    if config.listen_clients:
        problem = problem_with_listening(config.listen_clients, may_leave=config.may_leave)
        if problem is not None:
            note("listen_clients", problem)
    elif config.client_keys:
        note("listen_clients", "is required: there are [client_keys], and clients with keys connect to it")
    if config.key_file is not None:
        _judge_nodes(config, note)


def _judge_owners(table: str, keys: KeyTable, note: Note) -> None:
    owners: dict[str, str] = {}
    for name, its_keys in keys.items():
        for key in its_keys:
            other = owners.setdefault(key, name)
            if other != name:
                note(f"{table}.{name}", f"is the key of {other} as well; everybody has one of its own")


def _judge_nodes(config: Config, note: Note) -> None:
    missing = [voter for voter in config.voters if voter not in (config.node, *config.node_keys)]
    if missing:
        note("node_keys", f"has no key of {', '.join(missing)}: this node could not let in, or reach, a voter")
    listed = config.node_keys.get(config.node)
    if listed and config.keys is not None and config.keys.public not in listed:
        text = (
            f"does not have the key in {config.key_file}, {config.keys.public}: list it too, or take another key_file"
        )
        text += "; others whose files say the same do not let this node in"
        note(f"node_keys.{config.node}", text)
