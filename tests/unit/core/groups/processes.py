"""Processes on real engines: they join groups, propose, vote, die; and each remembers what it was told.

nodes = Processes()
a = nodes.start("D", "db", state_phases="n")     # a process on node D joins
b = nodes.start("E", "db")
a.propose_state(b"red")
for process in (a, b):
    process.vote("approve")
nodes.run(0.1)
assert b"red" == b.view.state
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from groupsvc.wire.notices import (
    AnyNotice,
    Ended,
    GroupView,
    Message,
    Notice,
    PhaseOpened,
    ProviderId,
    Refused,
)
from groupsvcd.core.events import LocalCall
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.commands import BY_DEFAULT
from groupsvcd.core.groups.local_group import LocalGroup
from groupsvcd.core.groups.papers import Paper
from groupsvcd.core.groups.process_group import ProcessGroup
from groupsvcd.core.groups.process_groups import ProcessGroups
from groupsvcd.core.views import AttributeValue
from tests.unit.core.nodegroups.carriers import Carriers

N = TypeVar("N", bound=Notice)


class Process:
    """One process on one node, in one group."""

    def __init__(self, nodes: Processes, node: str, group: str) -> None:
        self.nodes, self.node, self.group = nodes, node, group
        self.number = 0
        self.notices: list[AnyNotice] = []
        self.losses: list[str] = []
        self.decided: list[Ended | Refused | None] = []
        self.views: list[GroupView] = []

    # --- What it is told ---

    def told(self, run: Sequence[AnyNotice], group: ProcessGroup) -> None:
        """The next entry: never an older one, nor the same again."""
        assert not self.notices or self.notices[-1].seq < run[0].seq
        assert {group.seq} == {notice.seq for notice in run}
        self.notices.extend(run)
        self.views.extend([group.view] * len(run))

    def heard(self, seq: int, sender: ProviderId, payloads: Sequence[bytes]) -> None:
        """Messages in a row: each is a notice of its own, as far as tests are concerned."""
        for number, payload in enumerate(payloads, seq):
            assert not self.notices or self.notices[-1].seq < number
            self.notices.append(Message(number, sender, payload))

    def is_scribe(self, seq: int) -> None:
        """These have no machines."""

    def lost(self, reason: str) -> None:
        """Nothing more comes."""
        self.losses.append(reason)

    def kinds(self, kind: type[N]) -> list[N]:
        """Notices of one kind."""
        return [notice for notice in self.notices if isinstance(notice, kind)]

    @property
    def view(self) -> GroupView:
        """The newest."""
        return self.views[-1]

    @property
    def names(self) -> str:
        """The providers, oldest first."""
        return " ".join(provider.name for provider in self.view.providers)

    @property
    def story(self) -> list[tuple[int, str]]:
        """Numbers and kinds of all it was told."""
        return [(notice.seq, type(notice).__name__) for notice in self.notices]

    # --- What it does ---

    def act(self, action: Callable[[LocalGroup, ProcessGroups], Any]) -> None:
        """Within a step of its daemon."""
        processes = self.nodes.engines[self.node].processes

        def do() -> None:
            local = processes.get(self.group)
            assert local is not None
            action(local, processes)

        self.nodes.step(self.node, LocalCall(do))

    def propose_state(self, value: bytes, *, phases: int = BY_DEFAULT) -> None:
        """Wants the state to be this."""

        def propose(local: LocalGroup, processes: ProcessGroups) -> None:
            command = cmd.ChangeState(self.nodes.next_proposal(), self.number, phases, BY_DEFAULT, value)
            local.propose(command, self.decided.append)

        self.act(propose)

    def leave(self) -> None:
        """Wants to leave."""

        def propose(local: LocalGroup, processes: ProcessGroups) -> None:
            command = cmd.Leave(self.nodes.next_proposal(), self.number, BY_DEFAULT, BY_DEFAULT, 0)
            local.propose(command, self.decided.append)

        self.act(propose)

    def vote(self, vote: cmd.Vote, **more: Any) -> None:
        """Answers what it was asked last."""
        opened = self.kinds(PhaseOpened)[-1]
        self.act(lambda local, _: local.vote(opened.ballot, opened.phase, Paper(self.number, vote, **more)))

    def say(self, *payloads: bytes) -> None:
        """Plain messages."""
        self.act(lambda local, _: local.say(self.number, payloads))

    def die(self) -> None:
        """Its daemon sees it end."""
        self.act(lambda local, _: local.is_no_more(self.number, "failure"))


class Processes(Carriers):
    """A domain whose nodes have processes."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._last_proposal = 0
        self.boot(*self.names)
        self.run(2.0)

    def next_proposal(self) -> int:
        """A number for a proposal, which in earnest its session would have."""
        self._last_proposal += 1
        return self._last_proposal

    def start(self, node: str, group: str = "db", *, wait: float = 0.3, **attributes: AttributeValue) -> Process:
        """A process on this node joins; ``wait`` for what comes of it."""
        process = Process(self, node, group)
        processes = self.engines[node].processes

        def join() -> None:
            process.number = processes.next_number()
            local = processes.take_part(group, attributes)
            name = f"{node}{process.number}"
            command = cmd.Join(self.next_proposal(), process.number, BY_DEFAULT, BY_DEFAULT, name, b"")
            local.join(process, command, process.decided.append)

        self.step(node, LocalCall(join))
        self.run(wait)
        return process

    def watch(self, node: str, group: str = "db") -> Process:
        """A process on this node subscribes."""
        process = Process(self, node, group)
        processes = self.engines[node].processes

        def subscribe() -> None:
            process.number = processes.next_number()
            processes.take_part(group, {}).subscribe(process, process.number)

        self.step(node, LocalCall(subscribe))
        self.run(0.3)
        return process
