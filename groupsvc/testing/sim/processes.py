"""Simulated processes in process groups: they join, propose, vote, speak, leave and die, and compare what they hear.

Each process is told what happened in its group, entry by entry. Two processes that are told of the same entry must be
told the same, and neither may be left out of an entry between two that it was told of (G1, G2). The outcome of a ballot
is computed once more from the votes, by a rule that is written down here and knows nothing of the core (G3). Nobody
leaves twice, or without having joined (G10, GS-30). When everything is healed and everybody votes, every ballot ends,
every proposal is decided and nobody is left waiting.

The groups dissolve when their quorum is lost for ever: so no entry that a process was told of is ever taken back.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from groupsvc.wire.notices import AnyNotice, Ended, Joined, Left, Message, PhaseOpened, ProviderId, Refused
from groupsvcd.core.engine import Engine
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.commands import BY_DEFAULT
from groupsvcd.core.groups.local_group import LocalGroup
from groupsvcd.core.groups.papers import Paper
from groupsvcd.core.groups.process_group import ProcessGroup
from groupsvcd.core.groups.process_groups import ProcessGroups

if TYPE_CHECKING:
    from .node import Node
    from .world import World

SETTLED_WITHIN_S = 60.0
"""After everything was healed: longer than the time limit of a phase, for votes that nobody will ever cast."""


@attrs.frozen(kw_only=True)
class ProcessHabits:
    """What the processes of a world do."""

    processes: int = 8
    groups: int = 2
    think_s: float = 0.3
    phases: str = "n"
    time_limit: float = 5.0
    batch: str = "none"


def processes_of(node: Node) -> ProcessGroups:
    """The process groups of a node that runs the production engine."""
    engine = node.engine
    assert isinstance(engine, Engine)
    return engine.processes


class SimProcess:
    """One process: on one node, in one group at a time."""

    def __init__(self, storm: Storm, name: str, node: Node) -> None:
        self.storm, self.name, self.node = storm, name, node
        self.daemon = -1  # the process of the node that it is connected to
        self.group = ""
        self.group_id = 0
        self.number = 0
        self.is_provider = False
        self.part = 0  # how often it has begun to take part
        self.open = 0  # proposals of this part that are not decided
        self.heard_of: dict[int, list[AnyNotice]] = {}
        self.in_part: set[int] = set()  # the entries with which it joined and left: it is told what lies between
        self.asked: PhaseOpened | None = None

    @property
    def is_in(self) -> bool:
        """Whether it takes part in a group, or wants to."""
        return self.group != "" and self.daemon == self.node.process

    def forget(self) -> None:
        """Its part in the group has ended."""
        self.storm.compare(self)
        self.part += 1
        self.group, self.group_id, self.is_provider, self.open, self.asked = "", 0, False, 0, None
        self.heard_of, self.in_part = {}, set()

    # --- What it is told ---

    def told(self, notice: AnyNotice, group: ProcessGroup) -> None:
        """The next thing that happened in the group."""
        local = self.local
        assert local is not None
        self.group_id = local.id
        self.heard_of.setdefault(notice.seq, []).append(notice)
        me = self.id
        if isinstance(notice, Joined) and any(provider.id == me for provider in notice.providers):
            self.is_provider = True
            self.in_part.add(notice.seq)
        elif isinstance(notice, PhaseOpened) and me in notice.electorate:
            self.asked = notice
        elif isinstance(notice, Ended) and notice.outcome.votes:
            self.storm.check_tally(notice)
        elif isinstance(notice, Left) and me in notice.providers:
            self.in_part.add(notice.seq)
            self.forget()

    def heard(self, seq: int, sender: ProviderId, payloads: Sequence[bytes]) -> None:
        """Plain messages in a row: a notice each."""
        local = self.local
        assert local is not None
        self.group_id = local.id
        for number, payload in enumerate(payloads, seq):
            self.heard_of.setdefault(number, []).append(Message(number, sender, payload))

    def is_scribe(self, seq: int) -> None:
        """These have no machines."""

    def lost(self, reason: str) -> None:
        """Nothing more comes."""
        self.forget()

    def _decided(self) -> Callable[[Ended | Refused | None], None]:
        """What to do when a proposal has ended; one of an earlier part concerns nobody."""
        part = self.part
        return lambda how: self._was_decided(how) if part == self.part else None

    def _was_decided(self, how: Ended | Refused | None) -> None:
        self.open -= 1
        joins = isinstance(how, Ended) and how.outcome.subject.kind == "join"
        is_rejected = isinstance(how, Refused) or (isinstance(how, Ended) and not how.outcome.approved)
        if self.group and not self.is_provider and is_rejected and (joins or isinstance(how, Refused)):
            self.forget()

    # --- What it does ---

    @property
    def local(self) -> LocalGroup | None:
        """Its daemon's part in its group."""
        return processes_of(self.node).get(self.group) if self.node.engine is not None and self.group else None

    @property
    def id(self) -> ProviderId:
        """Its id as a provider."""
        assert self.node.engine is not None
        return (self.node.name, self.node.engine.incarnation, self.number)

    def act(self) -> None:
        """One deed, within a step of its daemon."""
        rng = self.storm.rng
        if self.group and self.daemon != self.node.process:
            self.forget()
        if not self.group:
            if not self.storm.quiet:
                self._join()
            return
        local = self.local
        if local is None or not self.is_provider:
            return
        if self.asked is not None and (self.storm.quiet or rng.random() < 0.9):
            self._vote(local)
        elif not self.storm.quiet:
            deed = rng.random()
            if deed < 0.25:
                self._propose(
                    local, lambda n: cmd.ChangeState(n, self.number, self._phases(), BY_DEFAULT, self._value())
                )
            elif deed < 0.3:
                self._propose(local, lambda n: cmd.Leave(n, self.number, BY_DEFAULT, BY_DEFAULT, 0))
            elif deed < 0.33:
                local.is_no_more(self.number, "failure")
                self.forget()
            elif deed < 0.36:
                others = [one for one in local.group.providers if one != self.id]
                if others:
                    target = rng.choice(others)
                    self._propose(local, lambda n: cmd.Expel(n, self.number, BY_DEFAULT, BY_DEFAULT, (target,), ""))
            elif deed < 0.7:
                local.say(self.number, [self._value()])

    def _join(self) -> None:
        processes = processes_of(self.node)
        habits, rng = self.storm.habits, self.storm.rng
        self.daemon = self.node.process
        self.group = f"procs-{rng.randrange(habits.groups)}"
        self.number = processes.next_number()
        self.part += 1
        self.open = 1
        local = processes.take_part(self.group, self.storm.attributes)
        local.join(self, self.number, self.name, b"", self._decided())

    def _propose(self, local: LocalGroup, command: Callable[[int], cmd.AnyProposal]) -> None:
        self.open += 1
        local.propose(command(processes_of(self.node).next_proposal()), self._decided())

    def _phases(self) -> int:
        return self.storm.rng.choice([BY_DEFAULT, BY_DEFAULT, 1, 2])

    def _value(self) -> bytes:
        self.storm.values += 1
        return b"%s:%d" % (self.name.encode(), self.storm.values)

    def _vote(self, local: LocalGroup) -> None:
        rng, asked = self.storm.rng, self.asked
        assert asked is not None
        votes: list[Any] = ["approve"] if self.storm.quiet else ["approve"] * 6 + ["continue", "reject", None]
        paper = Paper(self.number, rng.choice(votes), self._value() if rng.random() < 0.1 else None)
        local.vote(asked.ballot, asked.phase, paper)
        self.asked = None


class Storm:
    """All processes of a world, and what they found out together."""

    def __init__(self, world: World, habits: ProcessHabits) -> None:
        self.world = world
        self.habits = habits
        self.rng = random.Random(f"{world.seed}/processes")
        self.quiet = False
        self.values = 0
        self.outcomes = 0
        self.told: dict[tuple[int, int], tuple[AnyNotice, ...]] = {}
        self.parts: list[tuple[str, tuple[int, int], tuple[AnyNotice, ...]]] = []
        self.numbers: dict[int, set[int]] = {}
        self.left: dict[tuple[int, ProviderId], int] = {}
        phases = {f"{what}_phases": habits.phases for what in ("join", "leave", "failure", "state", "message")}
        self.attributes: dict[str, Any] = {
            **phases, "time_limit": habits.time_limit, "batch": habits.batch, "on_quorum_lost": "dissolve",
            "default_vote": self.rng.choice(["approve", "reject"]),
        }  # fmt: skip
        self.processes = [
            SimProcess(self, f"process-{number}", world.nodes[self.rng.choice(world.names)])
            for number in range(habits.processes)
        ]
        for process in self.processes:
            self._think(process)

    def _think(self, process: SimProcess) -> None:
        pause = self.rng.expovariate(1.0) * self.habits.think_s
        self.world.push(self.world.t + pause, self._next, process, None)

    def _next(self, process: SimProcess, _: object) -> None:
        node = process.node
        if node.running and not node.paused and node.engine is not None:
            node.call(process.act)
        self._think(process)

    # --- What must hold ---

    def compare(self, process: SimProcess) -> None:
        """What it was told of each entry is what others were told, and it was told of each."""
        group = process.group_id
        for seq, notices in process.heard_of.items():
            mine = tuple(one for one in notices if not isinstance(one, Message))
            if seq in process.in_part:
                self.parts.append((process.name, (group, seq), mine))
                continue
            theirs = self.told.setdefault((group, seq), mine)
            if mine != theirs:
                self.world.found("G1", f"{process.name} is told {mine} of entry {seq} of {group}, others {theirs}")
            self._check_once(group, seq, mine)
        known = self.numbers.setdefault(group, set())
        if process.heard_of:
            first, last = min(process.heard_of), max(process.heard_of)
            missed = sorted(seq for seq in known if first < seq < last and seq not in process.heard_of)
            if missed:
                self.world.found(
                    "G1", f"{process.name} was told of {first} to {last} of {group}, and not of {missed[:5]}"
                )
            known.update(seq for seq in process.heard_of if self.told.get((group, seq)))

    def compare_parts(self) -> None:
        """Who joined or left with an entry was told a part of it, without a gap; some of them while others were in."""
        for name, entry, mine in self.parts:
            theirs = self.told.get(entry)
            starts = range(len(theirs) - len(mine) + 1) if theirs is not None else ()
            if theirs is not None and all(theirs[start : start + len(mine)] != mine for start in starts):
                self.world.found("G1", f"{name} is told {mine} of entry {entry[1]} of {entry[0]}, others {theirs}")

    def _check_once(self, group: int, seq: int, notices: tuple[AnyNotice, ...]) -> None:
        """G10: everybody who leaves has joined, and leaves once. Entries are looked at when they are first heard of."""
        for notice in notices:
            if isinstance(notice, Left):
                for gone in notice.providers:
                    if self.left.setdefault((group, gone), seq) != seq:
                        self.world.found("G10", f"{gone} leaves {group} with {seq} and with {self.left[group, gone]}")
            elif isinstance(notice, Joined):
                for provider in notice.providers:
                    if self.left.get((group, provider.id), seq) < seq:
                        self.world.found("G10", f"{provider.id} joins {group} with {seq} after it had left")

    def check_tally(self, ended: Ended) -> None:
        """G3: any REJECT rejects, else any CONTINUE goes on, unless the number of phases was fixed."""
        outcome = ended.outcome
        self.outcomes += 1
        votes = [cast.vote for cast in outcome.votes]
        if outcome.approved == ("reject" in votes):
            self.world.found("G3", f"ballot {outcome.ballot} ended {outcome.approved} with {votes}")

    # --- The end ---

    @property
    def is_settled(self) -> bool:
        """Whether nobody waits for anything."""
        for node in self.world.nodes.values():
            if node.engine is None:
                return False
            for local in processes_of(node)._by_name.values():
                group = local.group
                if group.ballot is not None or group.queue or group.failing or len(local._line):
                    return False
        return all(process.open == 0 for process in self.processes if process.is_in)

    def settle(self) -> bool:
        """Everything is healed and nothing new is proposed: whether all that is under way ends in time."""
        self.quiet = True
        settled = self.world.run_until(lambda: self.is_settled, within=SETTLED_WITHIN_S, every=0.2)
        for process in self.processes:
            if process.group:
                self.compare(process)
        self.compare_parts()
        return settled
