"""The process groups that the daemon of a node carries, as the harness sees them from outside.

Applications cannot look there. The harness does, to write down what the checkers must know and nobody is told: whether
a daemon had opened a phase when a vote came, how far it had come in a stream, who leads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsvcd.core.groups.local_group import LocalGroup
from groupsvcd.core.groups.process_groups import ProcessGroups

if TYPE_CHECKING:
    from .node import Node


def processes_at(node: Node) -> ProcessGroups | None:
    """All of them; None if the daemon is down, or its engine is one that has none."""
    found = getattr(node.engine, "processes", None)
    return found if isinstance(found, ProcessGroups) else None


def carried(node: Node, name: str, group: int) -> LocalGroup | None:
    """The group with this name and id, if the daemon carries it; another one of that name is not meant."""
    processes = processes_at(node)
    local = None if processes is None else processes.get(name)
    return local if local is not None and local.id == group else None
