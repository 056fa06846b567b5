"""A newcomer that fetches for long does not stop the group that is to take it in as a server."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Data, PeerMessage
from tests.unit.core.nodegroups.carriers import Carriers


def test_who_could_not_open_in_time_is_tried_again_when_it_has_caught_up() -> None:
    """V7, SAM-08. E gets one payload in 0.3 s and lacks forty. D waits for it once, and then when E has them."""
    nodes = Carriers.with_group("D", parameters={"inline_bytes_max": 64}, replicas=2)
    came_at = [0.0]

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        if not isinstance(message, Data) or receiver != "E":
            return False
        is_too_soon = nodes.now - came_at[0] < 0.3
        came_at[0] = came_at[0] if is_too_soon else nodes.now
        return is_too_soon

    nodes.loses = loses
    nodes.join("E")
    nodes.run_until(lambda: ["receiver"] == nodes.roles("E"))
    nodes.submit("D", *(f"{number}".ljust(500, ".") for number in range(40)))
    waits = []
    for number in range(200):
        nodes.submit("D", f"small {number}")
        since = nodes.now
        nodes.run_until(lambda text=f"small {number}": text in nodes.texts("D"))  # type: ignore[misc]
        waits.append(nodes.now - since)
        nodes.run(0.1)
    assert [] == [wait for wait in waits if wait > 3.0]
    assert 2 >= sum(wait > 0.5 for wait in waits)
    assert ["leader", "server"] == nodes.roles("DE")
    assert nodes.texts("D") == nodes.texts("E")
