"""A checkpoint on its way: blocks from one server, put together in order.

Checkpoints may be larger than a frame, and a large frame would hold up the liveness frames behind it. So they come
in blocks, each asked for when the one before has arrived (SAM-07). If the answering server has taken a newer
checkpoint meanwhile, or another server answers, it begins anew.
"""

from __future__ import annotations

from ..peer_messages import Repair, RepairAsk


class Assembly:
    """The blocks of one checkpoint from one server."""

    def __init__(self) -> None:
        self.grew = False  # whether the block taken last was a new one
        self._source = ""
        self._seq = 0
        self._blocks = bytearray()

    def ask(self, source: str, stream: int, first: int, upto: int) -> RepairAsk:
        """What to ask ``source`` for: the entries, and the next block if a checkpoint is on its way from there."""
        if source != self._source:
            return RepairAsk(stream, first, upto)
        return RepairAsk(stream, first, upto, self._seq, len(self._blocks))

    def give_up(self) -> None:
        """Nothing more came for a while: whoever answers next begins anew."""
        self._source, self._seq = "", 0
        self._blocks.clear()

    def take(self, sender: str, repair: Repair) -> bytes | None:
        """Use a block; returns the whole checkpoint once it is complete."""
        self.grew = False
        if (sender, repair.checkpoint_seq) != (self._source, self._seq):
            if repair.checkpoint_offset != 0:
                return None
            self._source, self._seq = sender, repair.checkpoint_seq
            self._blocks.clear()
        if repair.checkpoint_offset != len(self._blocks):
            return None
        self._blocks += repair.checkpoint
        self.grew = True
        if len(self._blocks) < repair.checkpoint_bytes:
            return None
        state = bytes(self._blocks)
        self.give_up()
        return state
