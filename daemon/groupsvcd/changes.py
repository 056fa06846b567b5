"""Options that change while the daemon runs, whoever changes them: the domain, or a file that is read again.

A part that can take a new value says so once, when the daemon is put together::

    changes.add("log_level", apply=lambda config: logs.set_level(config.log_level))

``apply`` is called if any of its options has changed, in the thread of the reactor and between two steps of the engine,
with the whole configuration as it is to be. It must not wait, and must not fail for what a configuration can say: what
is wrong with one is found before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import attrs

from .config import OPTIONS, Config
from .config.acquired import value_of, with_value
from .observe.log import event

Apply = Callable[[Config], object]

FREE = ("voters", "node_keys", "client_keys", "keys", "access")
"""What is no single option: tables with names of the operator's, and what is in the key file. Not told to the log."""

NAMES = {"keys": "key_file"}
"""What an operator knows it by, if not the same."""

log = logging.getLogger(__name__)


@attrs.frozen
class Changed:
    """By option: what is so now, and what would be so after a restart."""

    applied: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


class Changes:
    """Knows which options can change, and who is to be told."""

    def __init__(self, config: Config) -> None:
        self.config = config  # as it is in force
        self._parts: list[tuple[frozenset[str], Apply]] = []

    def add(self, *options: str, apply: Apply) -> None:
        """``options`` can change, by this function; one in a table is written with it: ``limits.clients_max``."""
        unknown = [option for option in options if option not in OPTIONS and option not in FREE]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: no such option")
        self._parts.append((frozenset(options), apply))

    def take(self, new: Config) -> Changed:
        """What differs and can change does; the rest stays as it is until the daemon is started anew."""
        differing = [key for key in (*OPTIONS, *FREE) if value_of(new, key) != value_of(self.config, key)]
        applied: set[str] = set()
        for options, apply in self._parts:
            mine = options.intersection(differing)
            if mine and self._is_applied(apply, new, mine):
                applied |= mine
        for key in sorted(applied):
            self.config = with_value(self.config, key, value_of(new, key))
        done = tuple(key for key in differing if key in applied)
        for key in done:
            value = value_of(new, key) if key not in FREE else "another one"
            log.info("%s is %s now", key, value, extra=event("option_changed", key=key, value=value))
        left = dict.fromkeys(NAMES.get(key, key) for key in differing if key not in applied)
        return Changed(done, tuple(left))

    def _is_applied(self, apply: Apply, new: Config, options: frozenset[str]) -> bool:
        try:
            apply(new)
        except Exception:  # a mistake of ours: the daemon goes on as it was, and a restart reads the same
            keys = ", ".join(sorted(options))
            about = event("option_not_changed", keys=keys)
            log.exception("%s could not be changed in the running daemon", keys, extra=about)
            return False
        return True
