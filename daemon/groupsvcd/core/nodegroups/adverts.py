"""Which checkpoint a group's leader advertises: the newest that enough of its servers have (SAM-05, SAM-07).

A leads, with B and C; ``checkpoint_k`` is 2. B reports the states after 1000 and 2000, C the one after 1000, A itself
has both: 2000 is at two servers, so A advertises it, with its length and checksum. C will come to it by itself.

Two servers with different states after the same entry have machines that depend on more than the entries. A says so
once per checkpoint; the one that enough servers agree upon is advertised, or none.

A leader waits for its servers as long as the history it may keep lasts. Then it advertises what it has alone: nothing
behind the last advertised checkpoint is dropped, and a server without its machine takes no more of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..stream.checkpoints import NONE, Described
from ..stream.server import Server
from ..views import View
from .group_settings import GroupSettings


def keeps_too_much(server: Server, settings: GroupSettings) -> bool:
    """Whether the log of ``server`` has grown beyond the history that its group may keep."""
    log = server.log
    kept_bytes = log.bytes + server.replica.library.payloads.bytes
    return kept_bytes > settings.history_bytes_max or log.count > settings.history_entries_max


class Adverts:
    """What the servers of one view have reported."""

    def __init__(self) -> None:
        self._reported: dict[str, tuple[Described, ...]] = {}
        self._disputed = 0

    def heard(self, server: str, checkpoints: Iterable[tuple[int, int, int]]) -> None:
        """``server`` has these, and no others worth mentioning."""
        self._reported[server] = tuple(Described(*one) for one in checkpoints)

    def newest(self, k: int) -> Described:
        """The newest that k servers have alike."""
        owners: dict[Described, int] = {}
        for checkpoints in self._reported.values():
            for described in checkpoints:
                owners[described] = owners.get(described, 0) + 1
        return max((described for described, count in owners.items() if count >= k), default=NONE)

    def advertise(self, server: Server, settings: GroupSettings, view: View) -> bool:
        """The leader of ``view`` advertises the newest that enough servers have; whether there is a newer one."""
        replica = server.replica
        k = min(settings.checkpoint_k or view.k, len(view.servers))
        if keeps_too_much(server, settings):
            k = 1  # the others have had a whole history's time
        if dispute := self.dispute():
            text = f"servers have different states after entry {dispute[0]}: {'; '.join(dispute[1])}"
            server.turn.journal("trouble", group=server.stream, text=text)
        newest, advertised = self.newest(k), replica.checkpoints.advertised
        replica.learn_advertised(newest)
        self.heard(server.turn.node, replica.checkpoints.offer(max(newest, advertised).seq))
        return newest.seq > advertised.seq

    def dispute(self) -> tuple[int, list[str]] | None:
        """A number after which servers have different states, and who has what; each is told once."""
        states: dict[int, dict[Described, list[str]]] = {}
        for server, checkpoints in self._reported.items():
            for described in checkpoints:
                states.setdefault(described.seq, {}).setdefault(described, []).append(server)
        found = [seq for seq, kinds in states.items() if len(kinds) > 1 and seq > self._disputed]
        if not found:
            return None
        self._disputed = max(found)
        kinds = states[self._disputed]
        return self._disputed, [
            f"{', '.join(servers)}: {described.size} bytes, CRC {described.crc:08x}"
            for described, servers in kinds.items()
        ]
