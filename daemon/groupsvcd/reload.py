"""SIGHUP: the configuration is read again, and what can change in a running daemon does.

Which options those are, and who takes them, is said in ``changes``; what the domain says stands above the file as
before. A file with a mistake changes nothing at all, and every problem of it is logged.

Everything else is decided at the start: what nodes compare (the domain, its voters, times and limits of streams), where
things are, and this node's own key. If such an option has changed, it is named in the log, each time, until the daemon
is started anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import attrs

from .changes import Changed
from .config import BadConfig, Config

log = logging.getLogger(__name__)


@attrs.frozen
class Reloaded:
    """What came of it: what has changed, or why nothing did."""

    changed: Changed = Changed()
    problems: tuple[str, ...] = ()


def read_again(reread: Callable[[], Config], take: Callable[[Config], Changed]) -> Reloaded:
    """Give ``take`` what file and environment say now, if nothing is wrong with it."""
    try:
        written = reread()
    except BadConfig as bad:
        problems = tuple(str(problem) for problem in bad.problems)
        for problem in problems:
            log.error("not reloaded: %s", problem)
        return Reloaded(problems=problems)
    changed = take(written)
    done = ", ".join(changed.applied)
    log.info("configuration reloaded: %s", f"{done} changed" if done else "nothing to change")
    for option in changed.needs_restart:
        log.warning("%s has changed in the configuration and needs a restart", option)
    for warning in written.warnings() if changed.applied or changed.needs_restart else ():
        log.warning("%s", warning)
    return Reloaded(changed)
