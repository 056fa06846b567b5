"""Which events an operator wants to read in the log, and in which words.

The event journal has everything, for programs; the log has what a person would want to be told: who leads, who came
and went, and what is wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ..core.effects import Journal
from .log import RESERVED, event

log = logging.getLogger(__name__)

Words = Callable[[Journal], str]

AUDIT = {
    "client_admitted": logging.INFO,
    "client_refused": logging.WARNING,
    "key_admitted": logging.INFO,
    "key_refused": logging.WARNING,
    "access_denied": logging.WARNING,
    "expel_asked": logging.INFO,
    "token_pending": logging.INFO,
    "token_made": logging.INFO,
    "token_used": logging.INFO,
    "token_shown_again": logging.INFO,
    "token_refused": logging.WARNING,
    "token_expired": logging.WARNING,
    "token_revoked": logging.INFO,
}
"""Records for an audit, which all have the same form."""

_OFFICE = {
    "won": "elected name server in epoch {epoch}, now completing the directory",
    "open": "name server in epoch {epoch}",
    "left": "no longer name server (epoch {epoch}): {reason}",
}

_DRAIN = {
    "finishing": "draining: nothing new is begun here",
    "leaving": "draining: sessions end and groups are left:",
    "drained": "drained: nothing is left to hand over",
    "gave up": "the time for the drain is over; left are",
}

NOTABLE: dict[str, tuple[int, Words]] = {
    "office": (logging.INFO, lambda e: _OFFICE[e.args["phase"]].format(epoch=e.epoch, reason=e.args.get("reason", ""))),
    "leader_known": (logging.INFO, lambda e: f"{e.args['leader']} is name server in epoch {e.epoch}"),
    "leader_lost": (logging.WARNING, lambda e: f"the name server {e.args['leader']} is silent or gone"),
    "node_up": (logging.INFO, lambda e: f"{e.args['name']} is up, incarnation {e.args['inc']}"),
    "node_down": (logging.WARNING, lambda e: f"{e.args['name']} is down, incarnation {e.args['inc']}"),
    "node_gone": (logging.INFO, lambda e: f"{e.args['name']} is gone, incarnation {e.args['inc']}"),
    "isolated": (logging.WARNING, lambda e: "suspended: this node has no lease any more"),
    "rejoined": (logging.INFO, lambda e: "in the domain, with a lease"),
    "down_learned": (logging.WARNING, lambda e: "the others declared this node down; going on as a new incarnation"),
    "quorum_lost": (
        logging.WARNING,
        lambda e: (
            f"group {e.args['name']!r} had lost its quorum and goes on with what was left of it:"
            f" entries before {e.seq} that were delivered may be missing"
        ),
    ),
    "unwelcome": (logging.WARNING, lambda e: f"{e.args['name']} may not join: {e.args['reason']}"),
    "drain": (logging.INFO, lambda e: " ".join(filter(None, (_DRAIN[e.args["stage"]], "; ".join(e.args["left"]))))),
    "trouble": (logging.WARNING, lambda e: str(e.args["text"])),
    **{op: (level, lambda e: _record(e)) for op, level in AUDIT.items()},
}
"""Journal op → (log level, the sentence)."""


def _record(effect: Journal) -> str:
    return " ".join((f"audit {effect.op}", *(f"{name}={value!r}" for name, value in effect.args.items())))


def tell(effect: Journal) -> None:
    """Log the event if it is one for people."""
    found = NOTABLE.get(effect.op)
    if found is not None and log.isEnabledFor(found[0]):
        log.log(found[0], "%s", found[1](effect), extra=event(effect.op, **fields_of(effect)))


def fields_of(effect: Journal) -> dict[str, Any]:
    """What belongs to the event, for programs; ``text`` they have already."""
    places = {"group": effect.group, "epoch": effect.epoch, "seq": effect.seq}
    args = {name: value for name, value in effect.args.items() if name not in RESERVED}
    return {name: value for name, value in places.items() if value} | args
