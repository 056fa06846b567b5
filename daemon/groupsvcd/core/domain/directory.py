"""The directory: which nodes there are and who may lead which group, as a function of the domain stream.

Every voter applies the same entries in the same order and so has the same directory, byte for byte; the
leader of the stream, the name server, answers from it. Nothing here knows of time, messages or disks, and
nothing depends on anything but the entries: no clock, no randomness, no order of a set.

Each command is judged when its turn comes, not when it was sent. A group leader that was replaced meanwhile,
a name server that was deposed, a command that was sent twice, an id of a group dropped long ago: all of them
meet a rule that does not hold any more and are refused with the record as it is now. What is refused
changes nothing. A command that asks for what is so already is answered as the first time.

This file has the rules for domain and nodes, one method per command; those for groups are in
``group_rules``. The tables behind them are in ``nodes``, ``groups``, ``settings`` and ``origins``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from groupsvc.errors import PeerProtocolError
from groupsvc.wire.codec import Reader

from ..peer_messages import NodeEntry
from ..records import NO_DOMAIN
from ..views import NodeId, Server
from .commands import (
    ActivateView,
    AnyCommand,
    ContinueGroup,
    DropGroup,
    FormDomain,
    FormGroup,
    NodeDown,
    NodeGone,
    NodeUp,
    ProposeView,
    SetConfig,
    ViewStarted,
    VoterReplaced,
    decode_command,
    shown,
)
from .group_rules import Answer, GroupRules, refused
from .groups import Group, GroupTable
from .limits import (
    ESSENTIALS_MAX,
    STATE_ID_CHARS_MAX,
    STATE_IDS_RETIRED_MAX,
    VOTERS_MAX,
)
from .listed_keys import node_of
from .nodes import GONE, UP, Node, NodeTable
from .nodes import problem_with_name as problem_with_node_name
from .origins import OriginRow, Origins, StoredOrigin
from .origins import problem_with as problem_with_origins
from .settings import Setting, Settings

SNAPSHOT_VERSION = 1


class DomainView(msgspec.Struct, frozen=True, array_like=True):
    """Who orders and who holds the domain stream itself; epoch 0 before the first name server."""

    epoch: int = 0
    leader: str = ""
    servers: tuple[Server, ...] = ()
    k: int = 0


class Snapshot(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The whole directory, every table sorted."""

    version: int
    applied: int
    domain: bytes
    generation: int
    essentials: dict[str, str]
    voters: tuple[tuple[str, str], ...]
    retired: tuple[str, ...]
    view: DomainView
    list_version: int
    nodes: tuple[Node, ...]
    groups: tuple[Group, ...]
    settings: tuple[tuple[str, str, int], ...]
    origins: tuple[StoredOrigin, ...]


EMPTY = Snapshot(
    version=SNAPSHOT_VERSION,
    applied=0,
    domain=NO_DOMAIN,
    generation=0,
    essentials={},
    voters=(),
    retired=(),
    view=DomainView(),
    list_version=0,
    nodes=(),
    groups=(),
    settings=(),
    origins=(),
)

_encoder = msgspec.msgpack.Encoder(order="deterministic")
_reader: Reader[Snapshot] = Reader(Snapshot, "snapshot of a directory")


class Directory:
    """Applies entries, answers questions, goes into a checkpoint and comes out of it."""

    def __init__(self, *, answers_kept: int = 64, stored: Snapshot = EMPTY) -> None:
        self.applied = stored.applied  # number of the last entry applied
        self.domain = stored.domain
        self.generation = stored.generation  # 1 from formation on
        self.essentials = dict(stored.essentials)
        self.voters = dict(stored.voters)  # name -> state id, "" if not known yet
        self.view = stored.view
        self.nodes = NodeTable(stored.nodes, stored.list_version)
        self.groups = GroupTable(self.nodes, stored.groups)
        self.settings = Settings(stored.settings)
        self._retired = stored.retired  # state ids of replaced voters, the newest last
        self._origins = Origins(answers_kept, stored.origins)
        rules = GroupRules(self.nodes, self.groups, lambda: self.view.leader)
        self._rules: dict[type, Callable[[int, Any], Answer]] = {
            FormDomain: self._form_domain,
            ViewStarted: self._view_started,
            NodeUp: self._node_up,
            NodeDown: self._node_down,
            NodeGone: self._node_gone,
            FormGroup: rules.form_group,
            ProposeView: rules.propose_view,
            ActivateView: rules.activate_views,
            ContinueGroup: rules.continue_group,
            DropGroup: rules.drop_group,
            VoterReplaced: self._voter_replaced,
            SetConfig: self._set_config,
        }

    # --- Entries ------------------------------------------------------------------------------------

    def apply_entry(self, seq: int, origin: NodeId, n: int, body: bytes) -> Answer:
        """Entry ``seq``, which is number ``n`` of ``origin``. Whatever the bytes are, there is an answer."""
        row = self._origins.rows.get(origin)
        if row is not None and n <= row.last_n:
            self._advance(seq)
            kept = self._origins.answer_for(origin, n)
            return kept or refused(f"number {n} was applied before and its answer is no longer kept")
        command = decode_command(body)
        if command is None:
            self._advance(seq)
            answer = refused(f"these {len(body)} bytes are no command")
        else:
            answer = self.apply(seq, command)
        if not self._is_past(origin):
            self._origins.record(origin, n, seq, answer)
        self._origins.make_room()
        return answer

    def apply(self, seq: int, command: AnyCommand) -> Answer:
        """What the command brings about as entry ``seq``; nothing is remembered about who sent it."""
        self._advance(seq)
        if not self.generation and not isinstance(command, FormDomain):
            return refused("the domain is not formed yet")
        return self._rules[type(command)](seq, command)

    def answer_for(self, origin: NodeId, n: int) -> Answer | None:
        """What was answered to number ``n`` of ``origin``, if it was applied and is still kept."""
        return self._origins.answer_for(origin, n)

    @property
    def origins(self) -> dict[NodeId, OriginRow]:
        """Origin → (last number, its entry); for reading only."""
        return self._origins.rows

    # --- Questions ----------------------------------------------------------------------------------

    @property
    def list_version(self) -> int:
        """Number of the entry that last changed the node list, or an option of the daemons, which travel with it."""
        return max(self.nodes.version, self.settings.options_version)

    def node_entries(self, since: int) -> tuple[NodeEntry, ...]:
        """Every line of the node list that changed after version ``since``, by name."""
        return tuple(node.entry() for node in self.nodes.changed_since(since))

    def group(self, name: str) -> Group | None:
        """The group that has this name now."""
        return self.groups.named(name)

    def config(self, key: str) -> Setting:
        """(value, version) of a setting; version 0 if it was never set."""
        return self.settings.get(key)

    def pending_grants(self) -> tuple[Group, ...]:
        """Every group whose pending view must be told to its leader until it is activated or replaced."""
        return self.groups.pending()

    # --- Checkpoints --------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything, as bytes; equal directories give equal bytes."""
        return _encoder.encode(
            Snapshot(
                version=SNAPSHOT_VERSION,
                applied=self.applied,
                domain=self.domain,
                generation=self.generation,
                essentials=self.essentials,
                voters=tuple((name, self.voters[name]) for name in sorted(self.voters)),
                retired=self._retired,
                view=self.view,
                list_version=self.nodes.version,
                nodes=self.nodes.all(),
                groups=self.groups.all(),
                settings=self.settings.stored(),
                origins=self._origins.stored(),
            )
        )

    def digest(self) -> int:
        """CRC-32 of the snapshot."""
        return zlib.crc32(self.snapshot())

    @classmethod
    def restore(cls, state: bytes, *, answers_kept: int = 64) -> Directory:
        """The directory a snapshot was taken of; raises ``PeerProtocolError`` with the reason if it is none."""
        stored = _reader.read(state)
        if stored.version != SNAPSHOT_VERSION:
            raise PeerProtocolError(f"snapshot has version {stored.version}; this daemon reads {SNAPSHOT_VERSION}")
        if problem := _problem_with_tables(stored):
            raise PeerProtocolError(f"{len(state)} bytes are no snapshot of a directory: {problem}")
        return cls(answers_kept=answers_kept, stored=stored)

    # --- The domain ---------------------------------------------------------------------------------

    def _form_domain(self, seq: int, command: FormDomain) -> Answer:
        if self.generation:
            if command.domain == self.domain:
                return {"ok": True, "domain": self.domain, "generation": self.generation}
            return refused("the domain is formed already", domain=self.domain, generation=self.generation)
        if problem := _problem_with_formation(command):
            return refused(problem, domain=self.domain, generation=self.generation)
        self.domain = command.domain
        self.generation = 1
        self.essentials = dict(command.essentials)
        self.voters = dict(command.voters)
        return {"ok": True, "domain": self.domain, "generation": self.generation}

    def _view_started(self, seq: int, command: ViewStarted) -> Answer:
        started = DomainView(command.epoch, command.leader, command.servers, command.k)
        if started == self.view:
            return {"ok": True, **self._view_answer()}
        if command.epoch <= self.view.epoch:
            problem = f"epoch {command.epoch} is not above {self.view.epoch}, in which the name server is another"
            return refused(problem, **self._view_answer())
        if command.leader not in self.voters:
            return refused(f"{shown(command.leader)} is no voter", **self._view_answer())
        if len(command.servers) > VOTERS_MAX or not 1 <= command.k <= len(command.servers):
            return refused("servers and k are those of no domain view", **self._view_answer())
        self.view = started
        return {"ok": True, **self._view_answer()}

    def _voter_replaced(self, seq: int, command: VoterReplaced) -> Answer:
        present = self.voters.get(command.name)
        if present is None:
            return refused(f"{shown(command.name)} is no voter", voter=None)
        voter = {"name": command.name, "state_id": present}
        if present == command.state_id:
            return {"ok": True, "voter": voter}
        if problem := self._problem_with_replacement(self.voters, command):
            return refused(problem, voter=voter)
        if present:
            self._retired = (*self._retired, present)[-STATE_IDS_RETIRED_MAX:]
        self.voters[command.name] = command.state_id
        return {"ok": True, "voter": {"name": command.name, "state_id": command.state_id}}

    def is_retired(self, state_id: str) -> bool:
        """Whether this state directory belonged to a voter and was replaced: it can never come back."""
        return state_id in self._retired

    def may_replace(self, voters: dict[str, str], command: VoterReplaced) -> bool:
        """Whether the command would take effect on these voters."""
        return command.name in voters and not self._problem_with_replacement(voters, command)

    def _problem_with_replacement(self, voters: dict[str, str], command: VoterReplaced) -> str:
        if not 1 <= len(command.state_id) <= STATE_ID_CHARS_MAX:
            return f"a state id has 1 to {STATE_ID_CHARS_MAX} characters"
        if command.state_id in self._retired:
            # It missed what its successor promised and held. Taken back by a late command, it would vote
            # as if it had all that.
            return "this state directory was replaced before and cannot come back; start with an empty one"
        if command.state_id in voters.values():
            return "this state directory is another voter's"
        return ""

    def _set_config(self, seq: int, command: SetConfig) -> Answer:
        if problem := self._problem_with_voter(command) or self.settings.problem_with(command):
            return refused(problem, version=self.settings.get(command.key).version)
        self.settings.set(command, seq)
        return {"ok": True, "version": seq}

    def _problem_with_voter(self, command: SetConfig) -> str:
        """Which keys a voter has is never the word of the directory, which is the word of the voters."""
        node = node_of(command.key)
        return f"{shown(node)} is a voter: its key stands in the files of all nodes" if node in self.voters else ""

    # --- Nodes --------------------------------------------------------------------------------------

    def _node_up(self, seq: int, command: NodeUp) -> Answer:
        known = self.nodes.get(command.name)
        if known is not None and _is_repeated(command, known):
            return {"ok": True, "node": known.as_answer()}
        if problem := self.nodes.problem_with(command):
            return refused(problem, node=self._node_answer(command.name))
        # Down and up are one entry, and an entry grants at most one view per group; so first both, then
        # the grants. A durable group gets its restarted server back in the same grant.
        failing = () if known is None or known.status != UP else self._groups_served(known)
        returning = self._groups_waiting_for((command.name, command.state_id))
        self.nodes.up(command, seq)
        self._origins.forget_older(command.name, command.incarnation)
        for group_id in sorted({group.id for group in (*failing, *returning)}):
            self._grant_to_survivors(group_id, seq)
        return {"ok": True, "node": self._node_answer(command.name)}

    def _node_down(self, seq: int, command: NodeDown) -> Answer:
        node = self.nodes.get(command.name)
        if node is None or command.incarnation > node.incarnation:
            return self._never_up(command.name, command.incarnation)
        if node.incarnation == command.incarnation and node.status == UP:
            failing = self._groups_served(node)
            self.nodes.down(node, seq)
            for group in failing:
                self._grant_to_survivors(group.id, seq)
        return {"ok": True, "node": self._node_answer(command.name)}

    def _node_gone(self, seq: int, command: NodeGone) -> Answer:
        node = self.nodes.get(command.name)
        if node is None or command.incarnation > node.incarnation:
            return self._never_up(command.name, command.incarnation)
        if node.incarnation == command.incarnation and node.status == UP:
            return refused(
                f"{node.name}/{node.incarnation} is up; only what is down can be gone", node=node.as_answer()
            )
        if not self.nodes.is_gone((command.name, command.incarnation)):
            self.nodes.gone(node, command.incarnation, seq)
        self._origins.forget((command.name, command.incarnation))
        return {"ok": True, "node": self._node_answer(command.name)}

    def _groups_served(self, node: Node) -> tuple[Group, ...]:
        """The groups with this incarnation, or its disk if they are durable, in the active or pending view."""
        return tuple(
            group
            for group in self.groups.served_by(node.name)
            if (node.name, node.state_id if group.durable else node.incarnation)
            in (*group.active.servers, *group.newest.servers)
        )

    def _groups_waiting_for(self, server: Server) -> tuple[Group, ...]:
        """The durable groups that lack servers and have this one, not up at the moment, in the active view."""
        return tuple(
            group
            for group in self.groups.served_by(server[0])
            if group.durable and server in group.active.servers and self.groups.lacks_servers(group)
        )

    def _grant_to_survivors(self, group_id: int, seq: int) -> None:
        group = self.groups.get(group_id)
        if group is not None:
            self.groups.grant_to_survivors(group, seq)

    # --- Small things -------------------------------------------------------------------------------

    def _advance(self, seq: int) -> None:
        if seq <= self.applied:
            raise ValueError(f"entry {seq} after entry {self.applied}: entries are applied once, in order")
        self.applied = seq

    def _is_past(self, origin: NodeId) -> bool:
        """Whether the origin can ask no more, so that no row may be made for it again."""
        node = self.nodes.get(origin[0])
        if node is None:
            return False
        return origin[1] < node.incarnation or (origin[1] == node.incarnation and node.status == GONE)

    def _never_up(self, name: str, incarnation: int) -> Answer:
        return refused(f"{shown(name)}/{incarnation} was never up", node=self._node_answer(name))

    def _node_answer(self, name: str) -> Answer | None:
        node = self.nodes.get(name)
        return None if node is None else node.as_answer()

    def _view_answer(self) -> Answer:
        return {
            "epoch": self.view.epoch,
            "leader": self.view.leader,
            "servers": [list(server) for server in self.view.servers],
            "k": self.view.k,
        }


def _is_repeated(command: NodeUp, node: Node) -> bool:
    """Whether the command says of an up node exactly what is known."""
    return node.status == UP and (
        command.incarnation, command.state_id, command.address, command.voter, command.pinned, command.priority
    ) == (node.incarnation, node.state_id, node.address, node.voter, node.pinned, node.priority)  # fmt: skip


def _problem_with_tables(stored: Snapshot) -> str:
    """Why no directory can have written these tables, or "": the indexes over them rely on what is unique."""
    tables: dict[str, Sequence[Any]] = {
        "voters": [name for name, _ in stored.voters],
        "nodes": [node.name for node in stored.nodes],
        "groups": [group.id for group in stored.groups],
        "settings": [key for key, _, _ in stored.settings],
        "origins": [(row.name, row.incarnation) for row in stored.origins],
    }
    for table, keys in tables.items():
        if any(former >= later for former, later in pairwise(keys)):
            return f"the table of {table} is not sorted, or has a line twice"
    if len(dict.fromkeys(group.name for group in stored.groups)) != len(stored.groups):
        return "two groups have the same name"
    return problem_with_origins(stored.origins)


def _problem_with_formation(command: FormDomain) -> str:
    names = [name for name, _ in command.voters]
    state_ids = [state_id for _, state_id in command.voters if state_id]
    if len(command.domain) != len(NO_DOMAIN) or command.domain == NO_DOMAIN:
        return f"a domain id has {len(NO_DOMAIN)} bytes, not all of them zero"
    if not 1 <= len(names) <= VOTERS_MAX:
        return f"a domain has 1 to {VOTERS_MAX} voters, not {len(names)}"
    if len(dict.fromkeys(names)) != len(names) or len(dict.fromkeys(state_ids)) != len(state_ids):
        return "a voter or a state directory stands twice among the voters"
    if any(len(state_id) > STATE_ID_CHARS_MAX for state_id in state_ids):
        return f"a state id has at most {STATE_ID_CHARS_MAX} characters"
    if len(command.essentials) > ESSENTIALS_MAX:
        return f"there are more than {ESSENTIALS_MAX} essential parameters"
    return next(filter(None, map(problem_with_node_name, names)), "")
