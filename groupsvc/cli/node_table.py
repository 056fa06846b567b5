"""A daemon's status as a table for people, and its list of nodes as another.

NODE  ROLE         STATUS  INCARNATION       ADDRESS
n1    name server  up      1763261234567890  tcp://127.0.0.1:15000
n2    voter        up      1763261234567911  tcp://127.0.0.1:15003
n4    node         down    1763261234599999  tcp://127.0.0.1:15009

An incarnation is usually the time at which a node was started, in microseconds by its own clock; so the table of nodes
can say since when each of them runs.
"""

from __future__ import annotations

from datetime import UTC, datetime

from ..wire.client_messages import Status
from ..wire.table_lines import NodeStatus
from .colours import Paint, Style, plain
from .tables import one_line, painted

_COLUMNS = ("NODE", "ROLE", "STATUS", "INCARNATION", "ADDRESS")
_NODE_COLUMNS = ("", "NODE", "ROLE", "STATUS", "STARTED", "INCARNATION", "ADDRESS")
_STYLES: dict[str, Style] = {"up": "good", "down": "bad", "gone": "faint"}

_FIRST_TIME_US = 10**15
"""In 2001. A smaller incarnation was counted, and is no time."""
_LAST_TIME_US = 10**16
"""In 2286."""


def is_serving(status: Status) -> bool:
    """Whether applications at this node can work."""
    return not status.suspended and status.name_server != ""


def headline(status: Status) -> str:
    """Who answers, and how it is."""
    server = f"name server is {status.name_server}" if status.name_server else "no name server"
    state = "suspended" if status.suspended else f"lease {status.lease_left:.1f} s"
    return f"asked {status.node} ({status.role}): {server}, epoch {status.epoch}, {state}"


def lines_of(status: Status, paint: Paint = plain) -> list[str]:
    """The whole status: headline, nodes, trouble."""
    rows = [
        [(node.name, _style_of(node)), (roles_of(node), _style_of(node)), (node.status, _STYLES.get(node.status)),
         (str(node.incarnation or "-"), None), (node.address or "-", None)]
        for node in status.nodes
    ]  # fmt: skip
    return [*_above(status, paint), *painted([_head(_COLUMNS), *rows], paint), *_below(status, paint)]


def node_lines(status: Status, paint: Paint = plain) -> list[str]:
    """The nodes alone, each with since when it runs; a star marks the name server."""
    rows = [
        [("*" if node.name_server else "", _style_of(node)), (node.name, _style_of(node)),
         (roles_of(node), _style_of(node)), (node.status, _STYLES.get(node.status)),
         (started_at(node, " ") or "-", None), (str(node.incarnation or "-"), None), (node.address or "-", None)]
        for node in status.nodes
    ]  # fmt: skip
    above = _old(status, paint)
    return [*above, *painted([_head(_NODE_COLUMNS), *rows], paint), *_below(status, paint)]


def node_object(node: NodeStatus) -> dict[str, object]:
    """A node for programs; ``started`` is null if nobody knows."""
    return {
        "name": node.name,
        "role": roles_of(node),
        "status": node.status,
        "incarnation": node.incarnation,
        "started": started_at(node),
        "address": node.address,
        "voter": node.voter,
        "name_server": node.name_server,
    }


def started_at(node: NodeStatus, between: str = "T") -> str | None:
    """When this incarnation began, by the clock of its machine, in UTC; None if its number does not tell."""
    if not _FIRST_TIME_US <= node.incarnation < _LAST_TIME_US:
        return None
    at = datetime.fromtimestamp(node.incarnation / 1_000_000, UTC)
    return at.strftime(f"%Y-%m-%d{between}%H:%M:%SZ")


def roles_of(node: NodeStatus) -> str:
    """The role of one line of the list."""
    if node.name_server:
        return "name server"
    return "voter" if node.voter else "node"


def _above(status: Status, paint: Paint) -> list[str]:
    head = one_line(headline(status))
    return [paint(head, None if is_serving(status) else "bad"), *_old(status, paint)]


def _old(status: Status, paint: Paint) -> list[str]:
    if not status.nodes or is_serving(status):
        return []
    return [paint("the nodes as last known here, which may be old:", "doubtful")]


def _below(status: Status, paint: Paint) -> list[str]:
    return [paint(one_line(f"trouble: {status.trouble}"), "bad")] if status.trouble else []


def _head(columns: tuple[str, ...]) -> list[tuple[str, Style | None]]:
    return [(name, "faint") for name in columns]


def _style_of(node: NodeStatus) -> Style | None:
    return "strong" if node.name_server else None
