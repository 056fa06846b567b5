"""A node that submits to a group it does not carry (the open group, SAM-03).

D is no member of "jobs". It looks up who leads it, submits, and is told ``Accepted`` once its entries are stable: it
does not see them delivered. When the leader does not answer, or is none any more, D looks it up again and submits the
same once more, under the same numbers; whoever leads by then numbers what is not numbered yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

from ..links import outside
from ..peer_messages import Accepted, Data, DataAsk, NotLeader, SubmitRefused
from .group_settings import GroupSettings
from .station import Station
from .submitter import Submitter

NO_SUCH_GROUP = "there is no such group"
HAS_ENDED = "the group has ended: what became of it is not known"


class Stranger(Protocol):
    """Who submits from outside."""

    def accepted(self, upto_n: int) -> None:
        """Everything up to this number is stable."""

    def failed(self, reason: str) -> None:
        """Nothing that is outstanding will be heard of again; whether it was done is not known."""


LAY_TOO_LONG = "it lay too long: what became of it is not known"


class Outsider:
    """What this node submits to one group from outside."""

    def __init__(
        self, station: Station, name: str, stranger: Stranger, *, known_as: Callable[[int, Outsider], Submitter],
        over: Callable[[Outsider], None], is_carried: Callable[[int], bool],
    ) -> None:  # fmt: skip
        self.station = station
        self.turn = station.turn
        self.name = name
        self.id = 0
        self.stranger = stranger
        self.submitter: Submitter | None = None
        self._known_as = known_as
        self._over = over
        self._is_carried = is_carried
        self._waiting: list[bytes] = []
        self.last_n = 0  # of what was submitted here
        self._known_seq = 0
        self._told_at = -math.inf
        self._heard_at = self.turn.now
        self._no_disk_since = math.inf  # refused so long by whoever leads; another may take over
        self._servers: tuple[str, ...] = ()
        self.find()

    def submit(self, bodies: tuple[bytes, ...]) -> bool:
        """Take these in; False if too much is on its way already."""
        if self.submitter is None:
            if self._waiting:
                return False
            self._waiting.extend(bodies)
            return True
        first = self.submitter.submit(bodies)
        if not first:
            return False
        self.last_n = first + len(bodies) - 1
        if self._known_seq and self.turn.now - self._told_at <= self.station.parameters.timers.repeat_first:
            self.submitter.send_new(self._known_seq)
        else:
            self.submitter.ask_where_it_stands()
        return True

    def find(self) -> None:
        """Ask who leads the group."""
        self._heard_at = self.turn.now
        self.station.requests.ask("find", self.name, self._found)

    def _found(self, answer: dict[str, Any]) -> None:
        record = answer.get("group")
        if record is None or self.id not in (0, record["id"]):
            self.give_up(HAS_ENDED if self.id else NO_SUCH_GROUP)
            return
        if not self.id:
            self.id = record["id"]
            self.submitter = self._known_as(self.id, self)
            settings = GroupSettings(record["attributes"], self.station.parameters)
            self.submitter.inline_bytes_max = settings.inline_bytes_max
            self.submitter.told = lambda upto_n: self.stranger.accepted(upto_n)
            self.submitter.given_up = lambda: self.give_up(LAY_TOO_LONG)
        self._servers = tuple(name for name, _ in record["active"]["servers"])
        self._follow(record["active"]["leader"])
        self._submit_what_waits()

    def _submit_what_waits(self) -> None:
        """What was taken before the leader was known; the window may be full of what others have given up."""
        if self._waiting and self.submit(tuple(self._waiting)):
            self._waiting = []

    def _follow(self, leader: str) -> None:
        assert self.submitter is not None
        if self._is_carried(self.id):
            return  # this node has become a member, which sees to it
        names = {*self._servers, leader}
        self.station.links.need(outside(self.id), self.station.addresses(tuple(sorted(names))), listen=False)
        self.submitter.disseminate = self._disseminate
        self.submitter.relays = tuple(name for name in self._servers if name not in (leader, self.turn.node))
        self.submitter.follow(leader)

    def _disseminate(self, n: int, payload: bytes) -> None:
        """A large payload goes to each server; the receivers get it from them."""
        data = Data(self.id, *self.station.me, n, payload)
        for name in self._servers:
            self.turn.send(name, data)

    def on_data_ask(self, message: DataAsk) -> None:
        """The leader finds that not enough servers have a payload of ours."""
        for name, incarnation, n in message.payloads:
            if (name, incarnation) == self.station.me and self.submitter is not None:
                self.submitter.disseminate_again(n)

    def on_accepted(self, message: Accepted) -> None:
        """The leader says what is stable."""
        if message.to == self.station.identity.incarnation and self.submitter is not None:
            self._heard_at = self.turn.now
            self._told_at = self.turn.now
            self._no_disk_since = math.inf
            self._known_seq = max(self._known_seq, message.seq)
            self.submitter.accepted(message.upto_n)
            self._submit_what_waits()
            self.submitter.send_new(self._known_seq)

    def on_submit_refused(self, message: SubmitRefused) -> None:
        """A gap closes by sending again; what is too old is not known any more."""
        if message.to != self.station.identity.incarnation or self.submitter is None:
            return
        if message.first_n <= self.submitter.accepted_upto:
            return  # it has been ordered since
        if message.reason == "gap":
            self.submitter.close_gap(message.last_n)
        elif not self.submitter.outstanding:
            return  # it comes late: another leader has ordered what it speaks of
        elif message.reason == "no disk":
            self._no_disk_since = min(self._no_disk_since, self.turn.now)
            if self.turn.now - self._no_disk_since >= 2 * self.station.parameters.timers.lease:
                self.give_up("the leader of the group cannot write: its disk is full or hangs")
        elif self.submitter.is_outstanding(message.first_n):
            self.submitter.start_anew(message.last_n)
            self.give_up(LAY_TOO_LONG)

    def on_not_leader(self, message: NotLeader) -> None:
        """Somebody else leads."""
        if message.leader and self.submitter is not None and message.leader != self.submitter.leader:
            self._follow(message.leader)
        elif self.turn.now - self._heard_at > self.station.parameters.timers.repeat_first:
            self.find()

    def give_up(self, reason: str) -> None:
        """Nothing more is sent; what is outstanding is not known."""
        self.station.links.forget(outside(self.id))
        if self.submitter is not None:
            self.submitter.told = self.submitter.given_up = None
        self._over(self)
        self.stranger.failed(reason)

    @property
    def deadline(self) -> float:
        """When to send again, or to look up again."""
        if self.submitter is None or not self.submitter.outstanding:
            return math.inf
        return min(self.submitter.deadline, self._heard_at + self.station.parameters.timers.repeat_max)

    def tick(self) -> None:
        """Time has passed."""
        if self.submitter is None or not self.submitter.outstanding:
            return
        self.submitter.tick()
        if not self.submitter.is_all_sent:
            self.submitter.ask_where_it_stands()
        if self.turn.now >= self._heard_at + self.station.parameters.timers.repeat_max:
            self.find()
