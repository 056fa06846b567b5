"""What the domain says about options, laid over what this node's own configuration says (MSG-13).

An operator who says once, at any node, that ten times as many clients may connect wants that everywhere, also on the
node that is down now. So the domain's word stands above the file, which nobody has touched for a year. Above the
domain's word stands the environment: who starts one daemon with ``GROUPSVC_LOG_LEVEL=debug`` to look at it means that
daemon, now. So, the strongest first:

    environment  >  domain  >  file  >  default

What is overruled is said in the log when that begins, with both values, and shown by ``groupsvc config``.

Not every option is the domain's business. Essential ones are compared when nodes meet, so they cannot change under a
running domain; where things are, and what a node is called, differs from node to node. ``ACQUIRABLE`` lists what is
left and can change in a running daemon.

The judge of a value is the judge of the file. It is asked where somebody sets an option, before that is ordered. The
daemon of another version may know fewer options, or judge more strictly: it keeps what it was told, does what its own
configuration says, and warns.
"""

from __future__ import annotations

import logging
from typing import Any

import attrs

from groupsvc.wire.option_messages import OPTION_PREFIX
from groupsvc.wire.table_lines import OptionKind, OptionLine

from ..core.domain.listed_keys import node_of
from ..observe.log import event
from .enrolled import Enrolled
from .judging import judge_names, judge_numbers
from .options import ACQUIRABLE, ESSENTIAL, OPTIONS, Config
from .problems import did_you_mean
from .values import fitting, parsed

OptionLines = tuple[tuple[str, str, int], ...]
"""(key with its prefix, value, version), as the engine and the state directory have them."""

ENVIRONMENT = "environment "
"""How the place of a value begins that is in a variable."""

log = logging.getLogger(__name__)


class Acquired:
    """What the domain says, as this node was last told; ``written`` is what file and environment say here."""

    def __init__(self, written: Config, told: OptionLines = ()) -> None:
        self.written = written
        self._told: dict[str, tuple[str, int]] = {}
        self._enrolled = Enrolled()
        self.tell(told)

    def tell(self, told: OptionLines) -> None:
        """From now on the domain says this; what is new and strange in it is logged."""
        before = self._told
        self._enrolled.tell(line for line in told if node_of(line[0]))
        self._told = {
            key.removeprefix(OPTION_PREFIX): (value, version) for key, value, version in told if not node_of(key)
        }
        for key, said in self._told.items():
            if said != before.get(key):
                self._log(key, *said)

    def in_force(self) -> Config:
        """The configuration of this daemon: the domain's word laid over its own."""
        config = self.written
        for key, (value, _) in sorted(self._told.items()):
            if value and self._counts(key, value):
                config = with_value(config, key, parsed(value, OPTIONS[key]))
        return self._enrolled.laid_over(config)

    def problem_with(self, key: str, value: str) -> str:
        """Why the domain cannot say this of option ``key``, or ""; an empty value withdraws what it says."""
        if key not in OPTIONS and key not in ESSENTIAL:
            return f"{key} is no option{did_you_mean(key, list(ACQUIRABLE))}"
        if key in ESSENTIAL:
            text = "is compared when nodes meet: change it in the configuration of all nodes, and start them all again"
            return f"{key} {text}"
        if key not in ACQUIRABLE:
            text = f"is each node's own: set it in its configuration; for the whole domain there are {_and(ACQUIRABLE)}"
            return f"{key} {text}"
        if not value:
            return ""
        found, problem = fitting(OPTIONS[key], parsed(value, OPTIONS[key]))
        if problem:
            return f"{key} {problem}"
        problems: list[str] = []

        def note(about: str, text: str) -> None:
            if about == key:
                problems.append(f"{key} {text}")

        for judge in (judge_names, judge_numbers):
            judge(with_value(self.written, key, found), note)
        return "; ".join(problems)

    def lines(self) -> tuple[OptionLine, ...]:
        """Every option with its value, where that comes from, and what the domain says."""
        config = self.in_force()
        return tuple(self._line(config, key) for key in sorted({*OPTIONS, *ESSENTIAL, *self._told}))

    # --- One option ---

    def _counts(self, key: str, value: str) -> bool:
        """Whether what the domain says of this option is done here."""
        return not self._is_in_environment(key) and not self.problem_with(key, value)

    def _is_in_environment(self, key: str) -> bool:
        return self.written.places.get(key, "").startswith(ENVIRONMENT)

    def _line(self, config: Config, key: str) -> OptionLine:
        value, version = self._told.get(key, ("", 0))
        if key not in OPTIONS and key not in ESSENTIAL:
            return OptionLine(key, "", "not known to this version", "domain", value, version)
        source = self.written.places.get(key, "default")
        if value and self._counts(key, value):
            source = "domain"
        return OptionLine(key, as_text(value_of(config, key)), source, kind_of(key), value, version)

    def _log(self, key: str, value: str, version: int) -> None:
        own = self.written.places.get(key)
        problem = self.problem_with(key, value)
        if problem:
            text = "the domain says %s = %s (version %d), and this daemon cannot: %s"
            about = event("option_impossible", key=key, value=value, version=version)
            log.warning(text, key, value, version, problem, extra=about)
        elif not value:
            about = event("option_left", key=key, version=version)
            log.info("the domain says nothing about %s (version %d)", key, version, extra=about)
        elif self._is_in_environment(key):
            text = "the domain says %s = %s (version %d), and is overruled here by %s"
            about = event("option_overruled", key=key, value=value, version=version)
            log.warning(text, key, value, version, own, extra=about)
        elif own is not None:
            text = "the domain says %s = %s (version %d), which overrules %s"
            about = event("option_said", key=key, value=value, version=version)
            log.info(text, key, value, version, own, extra=about)
        else:
            about = event("option_said", key=key, value=value, version=version)
            log.info("the domain says %s = %s (version %d)", key, value, version, extra=about)


def kind_of(key: str) -> OptionKind:
    """Whose business an option is."""
    return "essential" if key in ESSENTIAL else "domain" if key in ACQUIRABLE else "node"


def value_of(config: Config, key: str) -> Any:
    """The value of an option, whose name has its table before it."""
    table, _, name = key.rpartition(".")
    return getattr(getattr(config, table) if table else config, name)


def with_value(config: Config, key: str, value: Any) -> Config:
    """The same configuration but for one option."""
    table, _, name = key.rpartition(".")
    if table:
        return attrs.evolve(config, **{table: attrs.evolve(getattr(config, table), **{name: value})})
    return attrs.evolve(config, **{name: value})


def as_text(value: Any) -> str:
    """A value as one would write it into a variable."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ",".join(f"{name}={content}" for name, content in value.items())
    if isinstance(value, tuple):
        return ",".join(value)
    return "" if value is None else str(value)


def _and(words: tuple[str, ...]) -> str:
    return ", ".join(words[:-1]) + f" and {words[-1]}"
