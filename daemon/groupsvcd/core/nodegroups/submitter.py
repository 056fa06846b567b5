"""What this node has submitted to a group and not seen in its stream yet.

Every submission has the next number of this node's incarnation in this group, is sent to the leader, and sent again
until it is known to be stable: a member sees it delivered, anybody else is told ``Accepted``. A new leader gets all of
them once more; it numbers only what it does not have. ``known_seq``, how far we knew the stream to be when a submission
was *first* sent, goes with it for ever: a copy that turns up an age later is refused as too old.

When nobody on the node waits for it any more, because its users and strangers have left the group or lost it, what is
outstanding is given up. They were told that it is not known what becomes of it; sending it on, perhaps much later when
somebody on this node joins again, would help nobody. The numbers go on behind it.

The window bounds what one node can have on its way, and so what a leader has to take in at once.

A large payload is not sent to the leader but multicast, once; the leader gets its length and checksum. Only if the
leader asks for it, because not enough servers have it, is it multicast again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from zlib import crc32

from ..parameters import Timers
from ..peer_messages import Submit
from ..tally import add
from ..turn import Turn

OUTSTANDING_ENTRIES_MAX = 4_096
"""Submissions of one node on their way to one group. Far above what hides the latency of a round trip."""

PAYLOAD_BYTES_MAX = 4 * 1024 * 1024 + 64 * 1024
"""Of one submission: the largest payload of a client with what a command says besides; half of what a frame may be."""

OUTSTANDING_BYTES_MAX = 16 * 1024 * 1024
"""The same in bytes."""

REPEATS_BEFORE_RELAY = 3
"""So often a submission goes to the leader alone before a server is asked to pass it on."""

SUBMIT_BYTES_MAX = 224 * 1024
"""Of one Submit: small enough not to delay the liveness frames behind it."""

SUBMIT_ENTRIES_MAX = 1_024
"""The same in entries."""


class Submitter:
    """The outstanding submissions of this node to one group."""

    __slots__ = (
        "_bodies",
        "_bytes",
        "_first",
        "_gap_closed_at",
        "_known",
        "_large_upto",
        "_repeat_at",
        "_repeats",
        "_sent_upto",
        "_timers",
        "_to",
        "_wait",
        "ack",
        "disseminate",
        "given_up",
        "inline_bytes_max",
        "leader",
        "refused_because",
        "relays",
        "stream",
        "told",
        "turn",
    )  # a node has thousands

    def __init__(self, turn: Turn, stream: int, timers: Timers, inline_bytes_max: int, *, after: int = 0) -> None:
        self.turn = turn
        self.stream = stream
        self.disseminate: Callable[[int, bytes], None] = lambda n, payload: None  # how large payloads leave
        self.told: Callable[[int], None] | None = None  # who does not see entries delivered
        self.given_up: Callable[[], None] | None = None  # whom it concerns, too, if what is outstanding is given up
        self.inline_bytes_max = inline_bytes_max  # the same for all submissions to a group
        self._timers = timers
        self._bodies: deque[bytes] = deque()  # numbers first .. last
        self._bytes = 0
        self._large_upto = 0  # nothing beyond this number is large
        self._known: list[tuple[int, int]] = []  # (first number, how far we knew the stream when it was sent)
        self.relays: tuple[str, ...] = ()  # who passes on what does not reach the leader
        self._to = ""
        self._repeats = 0
        self._gap_closed_at = -math.inf
        self._first = after + 1
        self._sent_upto = after
        # Why the leader takes nothing at the moment. Only what is outstanding, and repeated, tells when that is over.
        self.refused_because = ""
        self.leader = ""
        self.ack = False  # whether somebody waits to hear that what is sent is held
        self._repeat_at = math.inf
        self._wait = timers.repeat_first

    @property
    def last(self) -> int:
        """The newest number given."""
        return self._first + len(self._bodies) - 1

    @property
    def accepted_upto(self) -> int:
        """The newest number that nothing more will be sent of."""
        return self._first - 1

    def is_outstanding(self, n: int) -> bool:
        """Whether it is not known what became of this number."""
        return self._first <= n <= self.last

    @property
    def outstanding(self) -> int:
        """How many are not known to be stable."""
        return len(self._bodies)

    @property
    def is_all_sent(self) -> bool:
        """Whether everything that was submitted has been sent at least once."""
        return self._sent_upto >= self.last

    def ask_where_it_stands(self) -> None:
        """Ask the leader how far the stream is, for who does not follow it."""
        if self.leader:
            self.turn.send(self.leader, Submit(self.stream, self.last + 1, 0, (), self._first - 1))

    def submit(self, bodies: Sequence[bytes]) -> int:
        """Take these in; returns the number of the first, 0 if the window is full; raises if one is too large."""
        waiting = self._bodies
        count = len(bodies)
        size = len(bodies[0]) if count == 1 else sum(map(len, bodies))
        first = self._first + len(waiting)
        if size > self.inline_bytes_max and max(map(len, bodies)) > self.inline_bytes_max:
            refuse_too_large(bodies)
            self._large_upto = first + count - 1
        if len(waiting) + count > OUTSTANDING_ENTRIES_MAX or self._bytes + size > OUTSTANDING_BYTES_MAX:
            return 0
        waiting.extend(bodies)
        self._bytes += size
        return first

    def submit_one(self, body: bytes) -> int:
        """The same for a single one: what programs that submit one by one do most."""
        waiting, size = self._bodies, len(body)
        count = len(waiting)
        if (
            size > self.inline_bytes_max
            or count >= OUTSTANDING_ENTRIES_MAX
            or self._bytes + size > OUTSTANDING_BYTES_MAX
        ):
            return self.submit((body,))
        waiting.append(body)
        self._bytes += size
        return self._first + count

    @property
    def has_unsent(self) -> bool:
        """Whether anything waits to be sent for the first time."""
        return self._sent_upto < self.last

    def send_new(self, known_seq: int) -> None:
        """Send what was not sent yet; ``known_seq`` is how far we know the stream to be."""
        if not self.leader or self._sent_upto >= self.last:
            return
        first = max(self._sent_upto + 1, self._first)
        self._known.append((first, known_seq))
        self._sent_upto = self.last
        self._disseminate(first)
        self._to = self.leader
        self._send(first, known_seq)
        if self._repeat_at == math.inf:
            self._wait = self._timers.repeat_first
            self._repeat_at = self.turn.now + self._wait

    def _disseminate(self, first: int) -> None:
        for n in range(first, min(self._sent_upto, self._large_upto) + 1):
            body = self._bodies[n - self._first]
            if len(body) > self.inline_bytes_max:
                self.disseminate(n, body)

    def disseminate_again(self, n: int) -> None:
        """Not enough servers have the payload with this number."""
        if self._first <= n <= self._sent_upto:
            add(self.turn.tally.retransmits, "payload")
            self.disseminate(n, self._bodies[n - self._first])

    def _send(self, first: int, known_seq: int, upto: int = 0) -> None:
        start = first - self._first
        end = (upto or self._sent_upto) - self._first + 1
        payloads = tuple(islice(self._bodies, start, end))
        if first > self._large_upto and len(payloads) <= SUBMIT_ENTRIES_MAX:
            if self._bytes <= SUBMIT_BYTES_MAX or sum(map(len, payloads)) <= SUBMIT_BYTES_MAX:
                self.turn.send(self._to, Submit(self.stream, first, known_seq, payloads, self._first - 1, self.ack))
                return
        chunk: list[bytes | tuple[int, int]] = []
        size = 0
        for payload in payloads:
            is_large = len(payload) > self.inline_bytes_max
            body = (len(payload), crc32(payload)) if is_large else payload
            if chunk and (size + len(body) > SUBMIT_BYTES_MAX or len(chunk) >= SUBMIT_ENTRIES_MAX):
                self.turn.send(self._to, Submit(self.stream, first, known_seq, tuple(chunk), self._first - 1, self.ack))
                first += len(chunk)
                chunk, size = [], 0
            chunk.append(body)
            size += len(body)
        if chunk:
            self.turn.send(self._to, Submit(self.stream, first, known_seq, tuple(chunk), self._first - 1, self.ack))

    def accepted(self, upto_n: int) -> None:
        """Everything up to this number is stable."""
        if upto_n < self._first:
            return
        self.refused_because = ""
        if self.told is not None:
            self.told(upto_n)
        if upto_n >= self.last:
            self._first += len(self._bodies)
            self._bodies.clear()
            self._bytes = 0
        else:
            for _ in range(upto_n - self._first + 1):
                self._bytes -= len(self._bodies.popleft())
            self._first = upto_n + 1
        while len(self._known) > 1 and self._known[1][0] <= self._first:
            del self._known[0]
        if not self._bodies:
            self._repeat_at = math.inf
        elif self._repeat_at < math.inf:
            self._wait = self._timers.repeat_first
            self._repeat_at = self.turn.now + self._wait
        self._repeats = 0

    def give_up(self) -> None:
        """Who submitted was told that it is not known what becomes of it, and nobody waits for it any more.

        Nothing of it is sent again. It may be ordered yet, from what is on its way. Its numbers are not used again:
        what is submitted next says that everything before is settled.
        """
        self.start_anew(self.last)

    def start_anew(self, after: int) -> None:
        """What is outstanding was left lying too long and is never numbered: go on behind it, and behind what was.

        No number is used again: a late copy, a second refusal, or a payload that servers still have under it, would be
        taken for something else. What is sent next says that the numbers before it are settled.
        """
        last = max(self.last, after)
        if last >= self._first:
            self.turn.journal("given_up", group=self.stream, n=last, first=self._first)
        self._bodies.clear()
        self._known.clear()
        self._bytes = 0
        self.refused_because = ""
        self._first, self._sent_upto = last + 1, last
        self._large_upto = 0
        self._repeat_at = math.inf

    def resend(self, after: int = 0) -> None:
        """Send everything beyond ``after`` again, to whoever leads now; to a server if that goes on without an echo."""
        if not self.leader:
            return
        self._to = self.leader
        if self._repeats >= REPEATS_BEFORE_RELAY and self.relays and self.leader != self.turn.node:
            ways = (*self.relays, self.leader)  # which may be reachable again, and knows of no relay
            self._to = ways[self._repeats % len(ways)]
        segments = list(self._known)
        for position, (first, known_seq) in enumerate(segments):
            upto = segments[position + 1][0] - 1 if position + 1 < len(segments) else self._sent_upto
            first = max(first, self._first, after + 1)
            if first <= upto:
                self.turn.mark("group-resubmit")
                add(self.turn.tally.retransmits, "submission")
                self._send(first, known_seq, upto)

    def close_gap(self, last_n: int) -> None:
        """The leader misses what was sent before. One answer to many complaints: they are all about the same gap."""
        if self.turn.now >= self._gap_closed_at + self._timers.repair_delay:
            self._gap_closed_at = self.turn.now
            self.resend(after=last_n)

    def follow(self, leader: str) -> None:
        """Somebody else leads, or the same one anew: it gets everything that is outstanding."""
        if leader != self.leader:
            self._repeats = 0
        self.leader = leader
        self.refused_because = ""
        if self._bodies:
            self._wait = self._timers.repeat_first
            self._repeat_at = self.turn.now + self._wait
            self.resend()

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When to send again."""
        return self._repeat_at if self.leader else math.inf

    def tick(self) -> None:
        """Send again what was not heard of."""
        if self.turn.now >= self._repeat_at and self.leader:
            self._wait = min(2 * self._wait, self._timers.repeat_max)
            self._repeat_at = self.turn.now + self._wait
            self._repeats += 1
            self.resend()


def refuse_too_large(bodies: Sequence[bytes]) -> None:
    """Raise if one of these is more than can be sent."""
    for body in bodies:
        if len(body) > PAYLOAD_BYTES_MAX:
            raise ValueError(f"a submission of {len(body)} bytes is more than the {PAYLOAD_BYTES_MAX} allowed")
