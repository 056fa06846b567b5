"""All peers, in the order of the table; those that are installed here, and why the others are not there."""

from __future__ import annotations

from collections.abc import Sequence

from .corosync import Corosync, Tuned
from .etcd import Etcd
from .floor import Floor
from .nats import Nats
from .ours import Durable, Ours
from .peer import Peer
from .redis import Redis
from .spark import Spark
from .zookeeper import ZooKeeper

ALWAYS = ("floor", "ours")
"""What all are divided by."""

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (Floor(), Ours(), Durable(), Corosync(), Tuned(), Redis(), Nats(), Etcd(), ZooKeeper(), Spark())
}


def chosen(names: Sequence[str] | None) -> tuple[list[Peer], dict[str, str]]:
    """Those of ``names`` (default: all) that can be measured here, and what the others lack."""
    wanted = [peer for peer in PEERS.values() if names is None or peer.name in names or peer.name in ALWAYS]
    missing = {peer.name: why for peer in wanted if (why := peer.why_not()) is not None}
    return [peer for peer in wanted if peer.name not in missing], missing
