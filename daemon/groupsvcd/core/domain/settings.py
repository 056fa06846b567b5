"""The settings of the whole domain: key → value, changed by compare-and-set only.

The version of a value is the number of the entry that set it, 0 if it was never set. Of two nodes that both
read version 7 and both set, the one ordered first wins; the other is refused and told what is there now.
A repeated command is recognised by its number at its origin and not by its content: two nodes that set the
same value have not both won.

Settings under ``OPTION_PREFIX`` are options of the daemons. What they mean is not known here: which names there are and
what may be said of each differs from one version of the program to the next, and the directory must not. The
node at which somebody sets one judges it before it is ordered; here only how much there may be is judged. They go to
every node with the list of nodes, whose version is the number of the entry that last changed either. An empty value
is no value: the domain has withdrawn what it said, and each node does what its own configuration says. The key stays,
with its version, so that whoever has seen an older one still loses.

So are the keys of nodes that were enrolled by a token, and the tokens themselves (``listed_keys``), under a prefix of
their own and with a limit of their own. Of two machines that come with one key at the same moment, each to another
daemon, no daemon can know; so that a key is listed for one name only is judged here.
"""

from __future__ import annotations

from bisect import insort
from typing import NamedTuple

from groupsvc.wire.enrolment_messages import NODE_KEY_PREFIX
from groupsvc.wire.limits import CONFIG_KEY_CHARS_MAX, CONFIG_VALUE_BYTES_MAX
from groupsvc.wire.option_messages import OPTION_PREFIX

from .commands import SetConfig, shown
from .limits import CONFIG_BYTES_MAX, CONFIG_KEYS_MAX, NODE_KEYS_MAX, OPTION_VALUE_BYTES_MAX, OPTIONS_MAX
from .listed_keys import listed, node_of


class Setting(NamedTuple):
    """A value and the number of the entry that set it."""

    value: str
    version: int


UNSET = Setting("", 0)


class Settings:
    """All settings, and how many bytes they take."""

    def __init__(self, stored: tuple[tuple[str, str, int], ...] = ()) -> None:
        self._settings = {key: Setting(value, version) for key, value, version in stored}
        self._bytes = sum(_size(key, setting.value) for key, setting in self._settings.items())
        self._options = sorted(key for key in self._settings if key.startswith(OPTION_PREFIX))
        self._node_keys = sum(key.startswith(NODE_KEY_PREFIX) for key in self._options)
        self.options_version = max((self._settings[key].version for key in self._options), default=0)

    def get(self, key: str) -> Setting:
        """The setting; version 0 if there is none."""
        return self._settings.get(key, UNSET)

    def problem_with(self, command: SetConfig) -> str:
        """Why this cannot be set, or ""."""
        if not 1 <= len(command.key) <= CONFIG_KEY_CHARS_MAX:
            return f"a key has 1 to {CONFIG_KEY_CHARS_MAX} characters, not {len(command.key)}"
        if command.key.startswith("_"):
            return f"key {shown(command.key)} begins with _, which is reserved"
        if len(command.value.encode()) > CONFIG_VALUE_BYTES_MAX:
            return f"the value of {shown(command.key)} takes more than {CONFIG_VALUE_BYTES_MAX} bytes"
        present = self.get(command.key)
        if command.if_version != present.version:
            return f"{shown(command.key)} is at version {present.version}, not {command.if_version}"
        if present is UNSET and len(self._settings) >= CONFIG_KEYS_MAX:
            return f"the domain has {CONFIG_KEYS_MAX} settings; no more fit"
        if self._bytes_with(command) > CONFIG_BYTES_MAX:
            return f"all settings together would take more than {CONFIG_BYTES_MAX} bytes"
        return self._problem_with_option(command) if command.key.startswith(OPTION_PREFIX) else ""

    def _problem_with_option(self, command: SetConfig) -> str:
        if len(command.value.encode()) > OPTION_VALUE_BYTES_MAX:
            return f"the value of option {shown(command.key)} takes more than {OPTION_VALUE_BYTES_MAX} bytes"
        if problem := self._problem_with_node_key(command):
            return problem
        if self.get(command.key) is not UNSET:
            return ""
        if command.key.startswith(NODE_KEY_PREFIX):
            if self._node_keys < NODE_KEYS_MAX:
                return ""
            text = f"the domain has, or had, tokens or keys of {NODE_KEYS_MAX} nodes; no more names fit"
            return f"{text}: take the name of one that was revoked, or list the key in the files"
        if len(self._options) - self._node_keys >= OPTIONS_MAX:
            return f"the domain has {OPTIONS_MAX} options; no more fit"
        return ""

    def _problem_with_node_key(self, command: SetConfig) -> str:
        present = listed(command.value) if node_of(command.key) else None
        if present is None:
            return ""
        for key in self._options:  # a word of 40 characters without a space is a whole word, or none
            if key != command.key and node_of(key) and present.public in self._settings[key].value:
                return f"the key {present.public} is the one of {shown(node_of(key))}; make another pair"
        return ""

    def options_since(self, since: int) -> tuple[tuple[str, str, int], ...]:
        """(key, value, version) of every option of the daemons that was set after entry ``since``, by key."""
        return tuple((key, *self._settings[key]) for key in self._options if self._settings[key].version > since)

    def set(self, command: SetConfig, seq: int) -> None:
        """Entry ``seq`` sets the value."""
        if command.key.startswith(OPTION_PREFIX):
            self.options_version = seq
            if command.key not in self._settings:
                insort(self._options, command.key)
                self._node_keys += command.key.startswith(NODE_KEY_PREFIX)
        self._bytes = self._bytes_with(command)
        self._settings[command.key] = Setting(command.value, seq)

    def stored(self) -> tuple[tuple[str, str, int], ...]:
        """Everything, by key."""
        return tuple((key, *self._settings[key]) for key in sorted(self._settings))

    def _bytes_with(self, command: SetConfig) -> int:
        present = self._settings.get(command.key)
        freed = 0 if present is None else _size(command.key, present.value)
        return self._bytes - freed + _size(command.key, command.value)


def _size(key: str, value: str) -> int:
    return len(key.encode()) + len(value.encode())
