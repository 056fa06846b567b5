"""Lives of a node: its processes one after the other, and the disks under them.

Node A boots, crashes, boots again: two *boots*, one *disk*. If its machine burns and an empty one takes its
name, that is a new disk: whatever A once promised there nobody can hold it to any more, and the protocol must
not lean on it. Many rules are "per disk" (promises, accepted epochs) or "per boot" (deliveries, leases), so
every scan that needs one feeds the life lines to a ``Lives`` and asks it.

A boot brings a new disk if its line says ``lost_disk``, if its ``state_id`` is not that of the boot before, or
if the node is not ``durable`` at all; a node's first boot does, too.
"""

from __future__ import annotations

import attrs

from groupsvc.wire.history import HistoryEvent

LIFE_OPS = ("boot", "crash", "halted")


def record_kind(line: HistoryEvent) -> str:
    """What a ``persisted`` line is about: promise, append, open, checkpoint or node."""
    return str(line.args.get("record") or line.args.get("kind") or "")


@attrs.define
class Life:
    """The newest life of one node."""

    boot: int = 0  # how many times it has booted
    disk: int = 0  # how many disks it has had
    running: bool = False
    durable: bool = True
    rate: float = 1.0  # seconds of its own clock per second of the harness
    offset: float = 0.0  # its own clock when the harness' clock shows 0
    state_id: str = ""

    def harness_time(self, own: float) -> float:
        """When the node's own clock shows ``own``.

        The boot line tells how the two clocks go together; other lines may have been written later than the
        step they are about, by a process that stood still in between.
        """
        return (own - self.offset) / self.rate


class Lives:
    """The lives of all nodes, as far as the scan has come."""

    def __init__(self) -> None:
        self._by_node: dict[str, Life] = {}

    def __getitem__(self, node: str) -> Life:
        life = self._by_node.get(node)
        if life is None:
            life = self._by_node[node] = Life()
        return life

    def see(self, line: HistoryEvent) -> bool:
        """Take a life line in; true if the node now stands on a new disk."""
        life = self[line.node]
        if line.op != "boot":
            life.running = False
            return False
        state_id = str(line.args.get("state_id", ""))
        life.durable = bool(line.args.get("durable", True))
        life.rate = float(line.args.get("rate", 1.0))
        life.offset = line.local - life.rate * line.t
        new_disk = (
            life.boot == 0
            or bool(line.args.get("lost_disk", False))
            or not life.durable
            or (life.state_id != "" and state_id != "" and state_id != life.state_id)
        )
        life.boot += 1
        life.disk += new_disk
        life.running = True
        life.state_id = state_id or life.state_id
        return new_disk

    def running(self) -> list[str]:
        """The nodes whose process runs, sorted."""
        return sorted(node for node, life in self._by_node.items() if life.running)
