"""A process group by hand: entries in, notices out, and a chair that rules as a leader would.

    group = Assembly(state_phases="n")
    group.join("A1", "B1")
    group.propose_state("A1", b"red")
    group.vote(A1="approve", B1="reject")
    assert [False] == [ended.outcome.approved for ended in group.told(Ended)]

A process is named by the letter of its node and its number there. All nodes carry the group from the beginning. What a
node says of its processes that do not answer reaches the chair at once, unless the node is ``unheard``.
"""

from __future__ import annotations

from string import ascii_uppercase
from typing import TypeVar

from groupsvc.wire.notices import AnyNotice, Notice
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.chair import Chair
from groupsvcd.core.groups.commands import BY_DEFAULT, DYNAMIC, ProviderId
from groupsvcd.core.groups.papers import Paper, Silent
from groupsvcd.core.groups.process_group import ProcessGroup
from groupsvcd.core.nodegroups.controls import NodesFailed
from groupsvcd.core.views import AttributeValue, NodeId

N = TypeVar("N", bound=Notice)


def process(name: str) -> ProviderId:
    """The id of process ``A1``: number 1 on node A, which runs for the first time."""
    return (name[0], 1, int(name[1:]))


class Assembly:
    """One group, the notices so far, and its chair."""

    def __init__(self, **attributes: AttributeValue) -> None:
        self.group = ProcessGroup(attributes)
        self.group.nodes = {(node, 1): None for node in ascii_uppercase}
        self.notices: list[AnyNotice] = []
        self.now = 0.0
        self.rulings: list[bytes] = []
        self.gone: set[NodeId] | None = None  # nodes that are; None: all that are down
        self.chair = Chair(self.group, self.rulings.append, lambda node: self.gone is None or node in self.gone)
        self.unheard = ""  # nodes of whom nothing arrives
        self._papers: dict[str, dict[int, Paper]] = {}
        self._seq = 0
        self._number = 0

    # --- Entries ---

    def entry(self, node: str, command: cmd.AnyCommand) -> None:
        """A command of this node is delivered."""
        self.raw(node, cmd.encode(command))

    def raw(self, node: str, body: bytes) -> None:
        """An entry of this node is delivered."""
        self._seq += 1
        self.notices += self.group.apply(self._seq, (node, 1), body)
        self.look()

    def fail_nodes(self, *nodes: str) -> None:
        """These nodes are declared down."""
        self._seq += 1
        self.notices += self.group.control(self._seq, NodesFailed(tuple((node, 1) for node in nodes)))
        self.look()

    def look(self) -> None:
        """The chair looks, and what it orders is delivered."""
        self._say_who_is_silent()
        self.chair.look(self.now)
        while self.rulings:
            self._seq += 1
            self.notices += self.group.rule(self._seq, self.rulings.pop(0))
            self._papers = {}
            self._say_who_is_silent()
            self.chair.look(self.now)

    def _say_who_is_silent(self) -> None:
        ballot = self.group.ballot
        for (node, _, number), seq in self.group.unresponsive.items() if ballot is not None else ():
            if node not in self.unheard and number not in self._papers.get(node, {}):
                self.word(node, silent=((number, seq),))

    def word(self, node: str, *papers: Paper, silent: tuple[Silent, ...] = ()) -> None:
        """This node says something of the running phase, and the chair has not looked at it yet."""
        ballot = self.group.ballot
        assert ballot is not None
        self.chair.take((node, 1), ballot.id, ballot.phase, papers, silent)

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds
        self.look()

    # --- Proposals ---

    def _next(self) -> int:
        self._number += 1
        return self._number

    def join(self, *names: str) -> None:
        """These processes want to join, one after the other."""
        for name in names:
            self.entry(name[0], cmd.Join(self._next(), process(name)[2], BY_DEFAULT, BY_DEFAULT, name, b""))

    def leave(self, name: str, code: int = 0) -> None:
        """This one wants to leave."""
        self.entry(name[0], cmd.Leave(self._next(), process(name)[2], BY_DEFAULT, BY_DEFAULT, code))

    def expel(self, name: str, *targets: str, reason: str = "") -> None:
        """This one wants others removed."""
        ids = tuple(process(target) for target in targets)
        self.entry(name[0], cmd.Expel(self._next(), process(name)[2], BY_DEFAULT, BY_DEFAULT, ids, reason))

    def propose_state(
        self, name: str, value: bytes, *, if_version: int = -1, phases: int = BY_DEFAULT, fail_if_busy: bool = False
    ) -> None:
        """This one wants the state changed."""
        number = process(name)[2]
        self.entry(name[0], cmd.ChangeState(self._next(), number, phases, BY_DEFAULT, value, if_version, fail_if_busy))

    def send(self, name: str, payload: bytes) -> None:
        """This one sends a message by ballot."""
        self.entry(name[0], cmd.SendMessage(self._next(), process(name)[2], BY_DEFAULT, BY_DEFAULT, payload))

    def say(self, name: str, payload: bytes) -> None:
        """This one sends a plain message."""
        self.raw(name[0], cmd.message_prefix(process(name)[2]) + payload)

    def die(self, name: str) -> None:
        """This process ends."""
        self.entry(name[0], cmd.ProvidersFailed(((process(name)[2], "failure"),)))

    # --- Votes ---

    def vote(self, **votes: str) -> None:
        """These vote; what their nodes sent before is sent with it."""
        self.answer(**{name: Paper(process(name)[2], vote) for name, vote in votes.items()})  # type: ignore[arg-type]

    def answer(self, **papers: Paper) -> None:
        """The same with all that a vote may carry."""
        for name, paper in papers.items():
            self._papers.setdefault(name[0], {})[paper.provider] = paper
        for node in dict.fromkeys(name[0] for name in papers):
            if node not in self.unheard:
                self.word(node, *self._papers[node].values())
        self.look()

    # --- What came of it ---

    def told(self, kind: type[N]) -> list[N]:
        """Notices of one kind, oldest first."""
        return [notice for notice in self.notices if isinstance(notice, kind)]

    @property
    def names(self) -> str:
        """The providers, oldest first."""
        return " ".join(provider.name for provider in self.group.providers.values())


__all__ = ["DYNAMIC", "Assembly", "process"]
