"""Planted in how a token becomes the key of a node."""

from __future__ import annotations

from typing import Any

from groupsvc.wire.enrolment_messages import NODE_KEY_PREFIX
from groupsvcd.core.domain import enrolment, requests, settings
from groupsvcd.core.domain.listed_keys import NodeKey, Token

from .bug import Planted

_NEVER = 1 << 40


def _used_counts_as_unused(original: Any) -> Any:
    def listed(line: str) -> Any:
        found = original(line)
        return Token(found.token, _NEVER) if isinstance(found, NodeKey) else found

    return listed


def _over_any_version(original: Any) -> Any:
    def problem_with(self: Any, command: Any) -> Any:
        problem = original(self, command)
        return "" if command.key.startswith(NODE_KEY_PREFIX) and "is at version" in problem else problem

    return problem_with


def _before_it_is_ordered(original: Any) -> Any:
    def command_of(self: Any, client: int, deadline: float, about: str, body: Any, answered: Any, failed: Any) -> None:
        original(self, client, deadline, about, body, lambda answer: None, lambda family, code, text: None)
        answered({"ok": True, "version": self._member.known_seq + 1})

    return command_of


ENROLMENTS = (
    Planted(
        "token-used-again", "a token is looked up by its key, used or not", "two machines are the same node", ("C2",),
        ((enrolment, "listed", _used_counts_as_unused),), operators=2,
    ),
    Planted(
        "token-set-over-anything", "what is listed for a node is set without a look at its version",
        "of two machines with one token both are enrolled", ("C2",),
        ((settings.Settings, "problem_with", _over_any_version),), operators=2,
    ),
    Planted(
        "enrolled-before-it-is-ordered", "who enrols is answered when that was sent", "an enrolment is lost",
        ("C1", "C2"), ((requests.Requests, "command_of", _before_it_is_ordered),), operators=2,
    ),
)  # fmt: skip
