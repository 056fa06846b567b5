"""One leader that was silent for four seconds of twenty: what its group has to show as availability."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from . import Case

AVAILABILITY = (20.0 - (4.0 - 1.0)) / 20.0
"""A second of silence is forgiven."""

GROUP = 20


def _write(place: Path) -> None:
    place.mkdir(parents=True)
    lines: list[bytes] = []

    def tell(at: float, op: str, **fields: Any) -> None:
        line = {"v": 1, "i": len(lines) + 1, "boot": "b1", "t": at, "wall_ns": int(at * 1e9), "node": "n1", "inc": 7}
        lines.append(json.dumps({**line, "op": op, **fields}).encode() + b"\n")

    tell(1000.0, "journal", args={"clock": "m1", "level": "full", "segment": 1, "version": "made"})
    tell(1000.0, "started", args={"formed": True, "state_id": "disk", "voter": True})
    view = {"base": 0, "fence": 30 << 20, "forced": False, "k": 1, "leader": "n1", "servers": [["n1", 7]]}
    tell(1010.0, "view_active", group=GROUP, epoch=30, args=view)
    for tick in range(1, 101):
        if not 50 < tick < 70:
            tell(1010.0 + tick / 5, "lease", epoch=1, args={"until": 1012.0 + tick / 5})
    (place / "n1.b1.000001.ndjson").write_bytes(b"".join(lines))


CASES = (Case(name="silent-leader", write=_write),)
