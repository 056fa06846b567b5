"""Whatever is asked and wherever connections break: everything happens once, in order, and nobody misses anything.

Hypothesis writes the story: calls, messages, things told unasked, connections that break after so many requests and so
many replies, time that passes. At the end a connection that holds lets both sides say all, and the books are compared.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from groupsvc.errors import Suspended
from groupsvc.events import Event, Message, Resumed, StateChanged
from groupsvc.sansio import asking
from groupsvc.sansio.calls import Call
from groupsvc.sansio.membership_machine import Membership
from groupsvc.session_states import SessionState
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_in_memory import DaemonInMemory, Line
from tests.unit.client.scenes import begin, events, join, multicast, new_machine, propose


class AnyBreaks(RuleBasedStateMachine):
    """One session, one group, one other member."""

    def __init__(self) -> None:
        super().__init__()
        self.line = Line(new_machine(), DaemonInMemory(good_for=1000.0))
        self.membership: Membership
        self.calls: list[Call] = []
        self.asked: list[bytes] = []
        self.sent: list[bytes] = []
        self.heard: list[Event] = []
        self.is_connected = True

    @initialize()
    def opens(self) -> None:
        """Everything begins with a join."""
        self.line.connect()
        self.membership = join(self.line)

    @rule()
    def proposes(self) -> None:
        """A change of the state."""
        value = b"v%d" % len(self.asked)
        self.asked.append(value)
        self.calls.append(begin(self.line, propose(self.line, self.membership, value), 1000.0))

    @rule(count=st.integers(1, 5))
    def sends(self, count: int) -> None:
        """Messages."""
        payloads = [b"m%d" % (len(self.sent) + number) for number in range(count)]
        self.sent.extend(payloads)
        multicast(self.line, self.membership, *payloads)

    @rule()
    def asks(self) -> None:
        """A question."""
        self.calls.append(begin(self.line, asking.sync(self.line.machine, self.membership), 1000.0))

    @rule(arrives=st.booleans())
    def other_speaks(self, arrives: bool) -> None:
        """Something unasked, which may be lost on its way."""
        group = self.line.daemon.groups["db"]
        group.seq += 1
        told = self.line.daemon.tell(wire.MessagesCame(self.membership.number, group.seq, ("n2", 1, 1), (b"other",)))
        if arrives and self.is_connected and not self.line.machine.outbox:
            self.line.machine.received(told, self.line.now)
        else:
            self.breaks(0, 0)

    @rule()
    def all_is_carried(self) -> None:
        """A while without trouble."""
        self._connect()
        self.line.run()

    @rule(up=st.integers(0, 6), down=st.integers(0, 12))
    def breaks(self, up: int, down: int) -> None:
        """So much gets through, and no more."""
        self.line.run(up=up, down=down)
        self.line.machine.disconnected(self.line.now)
        self.is_connected = False

    @rule(up=st.integers(0, 2), down=st.integers(0, 12))
    def breaks_while_resuming(self, up: int, down: int) -> None:
        """The same, before the new connection has settled."""
        if not self.is_connected:
            self.line.machine.connected(self.line.now)
            self.line.run(up=up, down=down)

    @rule()
    def time_passes(self) -> None:
        """A little; nothing is given up."""
        self.line.now += 0.7
        self._connect()
        self.line.machine.tick(self.line.now)

    @rule()
    def reads(self) -> None:
        """What has come so far."""
        self.heard.extend(events(self.membership))

    def _connect(self) -> None:
        if not self.is_connected:
            self.is_connected = True
            self.line.connect()

    @invariant()
    def is_alive(self) -> None:
        """No break of a connection is the end of a session that is resumed in time."""
        assert SessionState.LOST is not self.line.machine.state

    def teardown(self) -> None:
        """The books."""
        if not hasattr(self, "membership"):
            return
        self._connect()
        self.line.run()
        self.reads()
        requests = self.line.daemon.requests
        assert self.asked == [one.value for one in requests if isinstance(one, wire.ChangeStateAsk)]
        assert self.sent == [payload for one in requests if isinstance(one, wire.Multicast) for payload in one.payloads]
        assert all(call.is_done and call.error is None for call in self.calls)
        assert self.membership.own.is_idle
        assert self.asked == [event.value for event in self.heard if isinstance(event, StateChanged)]
        assert self.sent == [
            event.payload for event in self.heard if isinstance(event, Message) and event.origin == "n1/7/1"
        ]
        of_the_stream = [event for event in self.heard if not isinstance(event, Suspended | Resumed)]
        numbers = sorted({event.seq for event in of_the_stream if event.seq is not None})  # type: ignore[union-attr]
        assert list(range(1, self.line.daemon.groups["db"].seq + 1)) == numbers


TestAnyBreaks = AnyBreaks.TestCase
