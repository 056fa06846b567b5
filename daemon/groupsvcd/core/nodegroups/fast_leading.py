"""What the leader of a fast group does otherwise: nothing is told to anybody alone before it is stable.

Members deliver what they are sent, and see for themselves when it is stable. But who is inserted begins with an entry,
and who submits from outside is told that its entries are there: both must outlive the leader. So the roll that a new
member begins with is kept here until the entry behind it is stable, and so is the word to a stranger.

A leader that k servers have not answered for ``leader_silent`` numbers nothing more: others may lead by now, and what
it delivers would be contradicted.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ..identity import Sender
from ..peer_messages import Submit
from ..stream.fast_sequencer import FastSequencer
from ..stream.server import Server
from ..views import NodeId, View
from .controls import AnyControl
from .leading import Leading

if TYPE_CHECKING:
    from .node_group import NodeGroup


class FastLeading(Leading):
    """One active view of a fast group, from the side of its leader."""

    sequencer: FastSequencer

    def __init__(self, group: NodeGroup, server: Server, view: View) -> None:
        super().__init__(group, server, view)
        self._welcomes: dict[NodeId, tuple[int, bytes]] = {}  # the roll after an entry, until that is stable
        self._unstable: deque[tuple[int, NodeId, int]] = deque()  # number, origin outside, its own number

    def _new_sequencer(self) -> FastSequencer:
        return FastSequencer(
            self.server, self.view.epoch, self.view.k, self._origins, self._timers,
            window=self.group.settings.sync_window, seen_by_all=self._seen_by_all,
        )  # fmt: skip

    def _seen_by_all(self) -> int:
        seen, me = self.attendance.seen, self.station.me
        return min((seen.get(node, 0) for node in self.group.roll.members if node != me), default=0)

    def _order(self, control: AnyControl) -> None:
        self.sequencer.want_ack()
        super()._order(control)

    def on_submit(self, sender: Sender, submit: Submit) -> None:
        """A node submits entries; from outside, or if it says so, they are to be acknowledged."""
        if self.sequencer.is_unheard:
            return
        if submit.ack or (sender.name, sender.incarnation) not in self.group.roll.members:
            self.sequencer.want_ack()
        super().on_submit(sender, submit)

    def welcome(self, node: NodeId, seq: int) -> None:
        """Give a member what it needs to follow, once that cannot be lost."""
        if node not in self._welcomes:
            self._welcomes[node] = (seq, self.group.roll.snapshot())

    def flush(self) -> None:
        """Tell those who wait what is stable by now; send what was numbered."""
        stable = self.server.stable
        if self._welcomes:
            for node, (seq, roll) in list(self._welcomes.items()):
                if seq <= stable or node not in self.group.roll.members:
                    del self._welcomes[node]
                    if node in self.group.roll.members:
                        self._say_inserted(node, seq, roll)
        if self._accepted:
            self._unstable.extend((self.server.delivered, origin, n) for origin, n in self._accepted.items())
            self._accepted.clear()
        while self._unstable and self._unstable[0][0] <= stable:
            _, origin, n = self._unstable.popleft()
            self._accepted[origin] = n
        super().flush()
