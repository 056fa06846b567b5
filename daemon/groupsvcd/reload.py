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
from .observe.log import event

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
            log.error("not reloaded: %s", problem, extra=event("not_reloaded"))
        return Reloaded(problems=problems)
    changed = take(written)
    done = ", ".join(changed.applied)
    text = f"{done} changed" if done else "nothing to change"
    log.info("configuration reloaded: %s", text, extra=event("reloaded", keys=done))
    for option in changed.needs_restart:
        text = "%s has changed in the configuration and needs a restart"
        log.warning(text, option, extra=event("needs_restart", key=option))
    for warning in written.warnings() if changed.applied or changed.needs_restart else ():
        log.warning("%s", warning, extra=event("config_warning"))
    return Reloaded(changed)
