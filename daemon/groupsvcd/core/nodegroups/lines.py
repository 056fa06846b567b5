"""What waits at the leader until a large payload is held.

C submits a large payload as its number 5, and a small one as 6. The large one gets its place in the stream when enough
servers have the bytes; 6 waits behind it, in C's *line*, because the order of one origin is kept. If C gives up,
because who had submitted it is gone, the bytes may never come: whatever C sends next says so, and the line is shorter.
The same if 5 is ordered already, by another leader of which this one has not heard; then 6 stays, and is the next.
"""

from __future__ import annotations

from collections import deque

from ..views import NodeId

Line = deque[tuple[int, bytes | tuple[int, int], float]]
"""What one origin submitted behind a large payload: number, body or (length, CRC-32), since when."""


def drop_settled(lines: dict[NodeId, Line], origin: NodeId, settled: int) -> None:
    """The origin sends nothing up to this number any more, though it was not ordered."""
    line = lines.get(origin)
    while line and line[0][0] <= settled:
        line.popleft()
    if line is not None and not line:
        del lines[origin]
