"""Orders for the disk of one daemon: how long a sync takes, and whether it fails. The other side is ``sync_shim.c``.

The kernel's own ways to make a disk bad (device mapper, fault injection) are not in every kernel. So a small library
is loaded into the daemon, which asks a file of numbers before each sync. What it counts there says whether harm was
done: a nemesis of syncs whose daemon never synced has tried nothing.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

_number = struct.Struct("=i")
_DELAY_MS, _FAILS, _CALLS, _DELAYED, _FAILED = range(0, 20, 4)
_BYTES = 20


class SyncOrders:
    """What the disk of one daemon is to do; the shim in its process finds them by ``GSF_SYNC_ORDERS``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(_BYTES))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _BYTES)

    def delay(self, seconds: float) -> None:
        """Each sync from now on takes so much longer; 0: none does."""
        self._set(_DELAY_MS, round(seconds * 1000))

    def fail(self) -> None:
        """Each sync from now on is answered EIO, and nothing is synced."""
        self._set(_FAILS, 1)

    def obey_the_disk(self) -> None:
        """Syncs are syncs again, and all counts are 0."""
        for place in (_DELAY_MS, _FAILS, _CALLS, _DELAYED, _FAILED):
            self._set(place, 0)

    @property
    def calls(self) -> int:
        """Syncs since the disk was last well."""
        return self._get(_CALLS)

    @property
    def delayed(self) -> int:
        """Of these: how many were made to wait."""
        return self._get(_DELAYED)

    @property
    def failed(self) -> int:
        """Of these: how many were answered EIO."""
        return self._get(_FAILED)

    def close(self) -> None:
        """No orders any more."""
        self._map.close()

    def _set(self, place: int, value: int) -> None:
        _number.pack_into(self._map, place, value)

    def _get(self, place: int) -> int:
        return int(_number.unpack_from(self._map, place)[0])
