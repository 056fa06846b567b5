"""Planted in what the domain says about options of its daemons."""

from __future__ import annotations

from typing import Any

import msgspec

from groupsvcd.core.domain import directory, member, settings

from .bug import Planted, property_of


def _only_the_newest(original: Any) -> Any:
    def _options_told(self: Any, message: Any) -> Any:
        return original(self, msgspec.structs.replace(message, have=0))

    return _options_told


def _forgotten_by_a_checkpoint(original: Any) -> Any:
    def init(self: Any, stored: Any = ()) -> None:
        original(self, stored)
        self.options_version = 0

    return init


OPTIONS = (
    Planted(
        "options-of-this-list-only", "a node keeps the options of the newest list only, which has what changed",
        "an option is forgotten when another is set", ("C1",), ((member.Member, "_options_told", _only_the_newest),),
        options=0.5,
    ),
    Planted(
        "options-do-not-count", "the version of the list is that of its nodes",
        "options reach nobody until a node comes or goes", ("C1",),
        ((directory.Directory, "list_version", property_of(lambda self: self.nodes.version)),), options=0.5,
    ),
    Planted(
        "options-older-than-the-checkpoint", "a directory from a checkpoint does not know when options were last set",
        "two lists under one version", ("C1", "V2", "V3"),
        ((settings.Settings, "__init__", _forgotten_by_a_checkpoint),), options=0.5, first_seed=10,
    ),
)  # fmt: skip
