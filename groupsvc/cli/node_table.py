"""A daemon's status as a table for people.

NODE  ROLE         STATUS  INCARNATION       ADDRESS
n1    name server  up      1763261234567890  tcp://127.0.0.1:15000
n2    voter        up      1763261234567911  tcp://127.0.0.1:15003
n4    node         down    1763261234599999  tcp://127.0.0.1:15009
"""

from __future__ import annotations

from ..wire.client_messages import Status
from ..wire.table_lines import NodeStatus
from .tables import aligned, one_line

_COLUMNS = ("NODE", "ROLE", "STATUS", "INCARNATION", "ADDRESS")


def is_serving(status: Status) -> bool:
    """Whether applications at this node can work."""
    return not status.suspended and status.name_server != ""


def headline(status: Status) -> str:
    """Who answers, and how it is."""
    server = f"name server is {status.name_server}" if status.name_server else "no name server"
    state = "suspended" if status.suspended else f"lease {status.lease_left:.1f} s"
    return f"asked {status.node} ({status.role}): {server}, epoch {status.epoch}, {state}"


def lines_of(status: Status) -> list[str]:
    """The whole status: headline, nodes, trouble."""
    found = [headline(status)]
    if status.nodes and not is_serving(status):
        found.append("the nodes as last known here, which may be old:")
    found += aligned([_COLUMNS, *(_row(node) for node in status.nodes)])
    if status.trouble:
        found.append(f"trouble: {status.trouble}")
    return [one_line(line) for line in found]


def roles_of(node: NodeStatus) -> str:
    """The role of one line of the list."""
    if node.name_server:
        return "name server"
    return "voter" if node.voter else "node"


def _row(node: NodeStatus) -> tuple[str, ...]:
    return (node.name, roles_of(node), node.status, str(node.incarnation or "-"), node.address or "-")
