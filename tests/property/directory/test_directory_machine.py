"""The directory under random entries: sensible, stale, repeated and meaningless ones.

Two directories get the same entries; the second is taken down and restored from its snapshot at random
points. After every entry both are byte-equal and the promises of ``groups`` hold. A small model that knows
nothing of the rules keeps what must be remembered: epochs, active views, answers and settings.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from groupsvcd.core.domain.commands import (
    ActivateView,
    AnyCommand,
    ContinueGroup,
    DropGroup,
    FormGroup,
    NodeDown,
    NodeGone,
    NodeUp,
    ProposeView,
    Server,
    ServerUnable,
    SetConfig,
    ViewStarted,
    decode_command,
    encode_command,
)
from groupsvcd.core.domain.directory import Directory
from groupsvcd.core.domain.groups import Group, View
from groupsvcd.core.domain.nodes import Node
from tests.property.directory import commands as c

ANSWERS_KEPT = 8


class DirectoryMachine(RuleBasedStateMachine):
    """Orders entries and compares."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Directory(answers_kept=ANSWERS_KEPT)
        self.twin = Directory(answers_kept=ANSWERS_KEPT)
        self.ordered: list[tuple[tuple[str, int], int, bytes]] = []
        self.answers: dict[tuple[tuple[str, int], int], dict[str, Any]] = {}
        self.views: dict[tuple[int, int], View] = {}  # (group, epoch) -> the view it was granted for
        self.settings: dict[str, tuple[str, int]] = {}

    # --- Ordering -----------------------------------------------------------------------------------

    def order(self, origin: tuple[str, int], n: int, body: bytes) -> dict[str, Any]:
        """The next entry, in both directories, with everything that one entry must keep to."""
        seq = self.directory.applied + 1
        before = {group.id: group for group in self.directory.groups.all()}
        state = self.directory.snapshot()
        row = self.directory.origins.get(origin)
        kept = self.directory.answer_for(origin, n)
        answer = self.directory.apply_entry(seq, origin, n, body)
        assert answer == self.twin.apply_entry(seq, origin, n, body)
        repeated = row is not None and n <= row.last_n
        if repeated:
            assert kept is None or answer == kept == self.answers[origin, n]
        elif self.directory.answer_for(origin, n) is not None:
            assert answer == self.directory.answer_for(origin, n)
            self.answers[origin, n] = answer
        self.ordered.append((origin, n, body))
        command = None if repeated else decode_command(body)
        self.check_refusal_changed_nothing(command, answer, state)
        self.check_groups(seq, command, before)
        self.check_settings(seq, command, answer)
        return answer

    def say(self, command: AnyCommand) -> dict[str, Any]:
        """A fresh command of an origin that never fails, so that the machine gets somewhere."""
        row = self.directory.origins.get(("sayer", 1))
        return self.order(("sayer", 1), 1 if row is None else row.last_n + 1, encode_command(command))

    @initialize(formed=st.integers(0, 9))
    def form(self, formed: int) -> None:
        """Most runs begin with a formed domain, a name server and nodes; some with nothing."""
        if not formed:
            return
        assert self.say(c.FORM)["ok"]
        assert self.say(ViewStarted(1, "a", c.VOTERS, 2))["ok"]
        for name in "abcd"[: formed // 2]:
            assert self.say(NodeUp(name, 1, f"d{name}1", "tcp://h:1", voter=False))["ok"]
            assert self.say(FormGroup("g", name, 1, {"durable": formed == 9}))["ok"]

    @rule(origin=c.node_ids, n=st.integers(1, 12), body=c.bodies)
    def anything(self, origin: tuple[str, int], n: int, body: bytes) -> None:
        """Any command of anyone, under any number."""
        self.order(origin, n, body)

    @rule(command=c.commands)
    def fresh(self, command: AnyCommand) -> None:
        """Any command, not a duplicate."""
        self.say(command)

    @precondition(lambda self: self.ordered)
    @rule(data=st.data(), anew=st.booleans())
    def again(self, data: st.DataObject, anew: bool) -> None:
        """Something old, under its old number or a new one."""
        origin, n, body = data.draw(st.sampled_from(self.ordered))
        command = decode_command(body)
        if anew and command is not None:
            self.say(command)
        else:
            self.order(origin, n, body)

    @rule(name=st.sampled_from("abcd"), new_disk=st.booleans())
    def node_up(self, name: str, new_disk: bool) -> None:
        """A node starts or restarts."""
        node = self.directory.nodes.get(name)
        incarnation = 1 if node is None else node.incarnation + 1
        disk = f"d{name}{2 if new_disk else 1}"
        self.say(NodeUp(name, incarnation, disk, "tcp://h:1", voter=False))

    @precondition(lambda self: self.directory.nodes.all())
    @rule(data=st.data(), gone=st.booleans())
    def node_fails(self, data: st.DataObject, gone: bool) -> None:
        """A node is down and perhaps gone."""
        node = data.draw(st.sampled_from(self.directory.nodes.all()))
        self.say(NodeDown(node.name, node.incarnation, early=False))
        if gone:
            self.say(NodeGone(node.name, node.incarnation))

    @precondition(lambda self: self.up_nodes())
    @rule(data=st.data(), name=st.sampled_from("gh"), attributes=c.attributes)
    def form_group(self, data: st.DataObject, name: str, attributes: dict[str, Any]) -> None:
        """A node that is up asks for a group."""
        node = data.draw(st.sampled_from(self.up_nodes()))
        self.say(FormGroup(name, node.name, node.incarnation, attributes))

    @precondition(lambda self: self.directory.groups.all() and self.up_nodes())
    @rule(data=st.data(), stale=st.booleans(), forced=st.booleans())
    def propose(self, data: st.DataObject, stale: bool, forced: bool) -> None:
        """A view of nodes that are up, from the newest base or an older one, by the leader as it is now."""
        group = data.draw(st.sampled_from(self.directory.groups.all()))
        up = {node.name: node for node in self.up_nodes()}
        picked = data.draw(st.lists(st.sampled_from(sorted(up)), min_size=1, unique=True))
        if data.draw(st.booleans()):
            picked = [name for name in dict.fromkeys([group.active.leader, *picked]) if name in up]
        chosen = [up[name] for name in picked]
        servers: tuple[Server, ...] = tuple(
            (node.name, node.state_id if group.durable else node.incarnation) for node in chosen
        )
        base = group.active.epoch if stale else group.newest_epoch
        if forced:
            self.say(ContinueGroup(group.id, base, chosen[0].name, servers))
            return
        leader = self.directory.nodes.get(group.active.leader)
        by = ("a", 1) if leader is None else (leader.name, leader.incarnation)
        self.say(ProposeView(group.id, base, chosen[0].name, servers, 1 + len(servers) // 2, by))

    @precondition(lambda self: self.directory.groups.all())
    @rule(data=st.data())
    def activate(self, data: st.DataObject) -> None:
        """Epochs of any group that were ever granted, the newest among them."""
        group = data.draw(st.sampled_from(self.directory.groups.all()))
        epochs = [epoch for group_id, epoch in self.views if group_id == group.id]
        epoch = data.draw(st.one_of(st.just(group.newest_epoch), st.sampled_from(epochs)))
        self.say(ActivateView(((group.id, epoch),)))

    @precondition(lambda self: self.directory.pending_grants())
    @rule()
    def leaders_come_too_late(self) -> None:
        """While a view is pending, its predecessor is activated once more and proposes from its own epoch."""
        group = self.directory.pending_grants()[0]
        leader = self.directory.nodes.get(group.active.leader)
        self.say(ActivateView(((group.id, group.active.epoch),)))
        if leader is not None:
            server: Server = (leader.name, leader.state_id if group.durable else leader.incarnation)
            by = (leader.name, leader.incarnation)
            self.say(ProposeView(group.id, group.active.epoch, leader.name, (server,), 1, by))

    @precondition(lambda self: self.directory.pending_grants())
    @rule(data=st.data())
    def unable(self, data: st.DataObject) -> None:
        """A server that the pending view asks for what it has has nothing."""
        group = data.draw(st.sampled_from(self.directory.pending_grants()))
        assert group.pending is not None
        server = data.draw(st.sampled_from((*group.pending.servers, *group.active.servers)))
        node = self.directory.nodes.get(self.directory.view.leader)
        by = (self.directory.view.leader, 1 if node is None else node.incarnation)
        self.say(ServerUnable(group.id, group.pending.epoch, server, by))

    @precondition(lambda self: self.directory.groups.all())
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        """The leader, as far as there is one, or the name server ends a group."""
        group = data.draw(st.sampled_from(self.directory.groups.all()))
        name = data.draw(st.sampled_from((group.active.leader, self.directory.view.leader)))
        node = self.directory.nodes.get(name)
        self.say(DropGroup(group.id, group.newest_epoch, (name, 1 if node is None else node.incarnation)))

    @rule(key=st.sampled_from("kl"), value=st.text(max_size=2))
    def set_config(self, key: str, value: str) -> None:
        """A set that wins."""
        answer = self.say(SetConfig(key, value, self.directory.config(key).version))
        assert answer["ok"] or not self.directory.generation

    @rule()
    def restore_twin(self) -> None:
        """The second voter restarts from its checkpoint."""
        self.twin = restore(self.twin.snapshot())

    def up_nodes(self) -> tuple[Node, ...]:
        """The lines of nodes that are up."""
        return tuple(node for node in self.directory.nodes.all() if node.status == "up")

    # --- What one entry must keep to ----------------------------------------------------------------

    def check_refusal_changed_nothing(self, command: AnyCommand | None, answer: dict[str, Any], state: bytes) -> None:
        """A refusal leaves everything as it was, apart from the entry's number and the table of origins."""
        assert isinstance(answer["ok"], bool)
        if answer["ok"]:
            return
        assert answer["problem"]
        if isinstance(command, ActivateView):
            return  # each activation is judged for itself
        assert essence(Directory.restore(state)) == essence(self.directory)

    def check_groups(self, seq: int, command: AnyCommand | None, before: dict[int, Group]) -> None:
        """Every way in which a record may differ from what it was one entry ago."""
        for group in self.directory.groups.all():
            old = before.get(group.id)
            if old is None:
                assert group.id == group.newest_epoch == group.active.epoch == seq
                self.remember(group, group.active)
                continue
            if group.active != old.active:
                assert isinstance(command, ActivateView)
                assert old.pending is not None
                assert group.active == msgspec.structs.replace(old.pending, activated=seq)
                self.views[group.id, group.active.epoch] = group.active
                assert old.newest_epoch == group.active.epoch
                assert (group.id, group.active.epoch) in command.activations
            if group.newest_epoch != old.newest_epoch:
                assert group.newest_epoch == seq
                assert group.pending is not None
                assert old.newest_epoch == group.pending.replaces
                assert isinstance(command, ProposeView | ContinueGroup | NodeUp | NodeDown | ServerUnable)
                if isinstance(command, ProposeView | ContinueGroup):
                    assert command.base_epoch == old.newest_epoch
                self.remember(group, group.pending)
            elif group.pending is not None:
                assert old.pending == group.pending
        for group_id in before.keys() - {group.id for group in self.directory.groups.all()}:
            assert isinstance(command, DropGroup)
            assert command.id == group_id

    def remember(self, group: Group, view: View) -> None:
        """A fresh grant: its epoch is new in the whole domain, its servers are up, its numbers make sense."""
        assert (group.id, view.epoch) not in self.views
        assert all(view.epoch >= epoch for _, epoch in self.views)
        assert all(self.directory.groups.is_server_up(group, server) for server in view.servers)
        assert 1 <= view.k <= len(view.servers)
        names = [name for name, _ in view.servers]
        assert view.leader in names
        assert sorted(set(names)) == sorted(names)
        if view.forced:
            assert self.directory.groups.servers_gone(group) >= group.active.k
            assert not group.durable
        self.views[group.id, view.epoch] = view

    def check_settings(self, seq: int, command: AnyCommand | None, answer: dict[str, Any]) -> None:
        """Compare-and-set, judged by a dictionary."""
        if isinstance(command, SetConfig) and self.directory.generation:
            present = self.settings.get(command.key, ("", 0))
            allowed = command.key in ("k", "l") and command.if_version == present[1]
            assert allowed == answer["ok"]
            if allowed:
                self.settings[command.key] = present = (command.value, seq)
            assert present[1] == answer["version"]
        assert self.settings == {key: self.directory.config(key) for key, _, _ in self.directory.settings.stored()}

    # --- What always holds --------------------------------------------------------------------------

    @invariant()
    def both_directories_are_byte_equal(self) -> None:
        """Also when one of them came out of a snapshot."""
        assert self.directory.snapshot() == self.twin.snapshot()
        assert self.directory.digest() == self.twin.digest()

    @invariant()
    def a_snapshot_round_trips(self) -> None:
        """Exactly, with the indices that are not in it."""
        state = self.directory.snapshot()
        restored = restore(state)
        assert state == restored.snapshot()
        assert self.directory.pending_grants() == restored.pending_grants()
        assert list(self.directory.origins.items()) == list(restored.origins.items())
        for name in c.NAMES:
            assert self.directory.groups.served_by(name) == restored.groups.served_by(name)

    @invariant()
    def records_make_sense(self) -> None:
        """The pending view is the newest grant, and its base is the active view."""
        for group in self.directory.groups.all():
            assert self.views[group.id, group.active.epoch] == group.active
            assert group.active.epoch <= group.newest_epoch <= self.directory.applied
            if group.pending is None:
                continue
            assert group.newest_epoch == group.pending.epoch > group.active.epoch
            assert group.active.epoch == group.pending.base
            assert all(self.directory.groups.is_server_up(group, server) for server in group.pending.servers)

    @invariant()
    def a_group_without_a_pending_view_has_its_leader_or_nobody(self) -> None:
        """Otherwise a NodeDown has forgotten to grant."""
        for group in self.directory.groups.all():
            up = [self.directory.groups.is_server_up(group, server) for server in group.active.servers]
            assert group.pending is not None or all(up) or not any(up)

    @invariant()
    def the_node_list_tells_every_change(self) -> None:
        """Its version is the newest change of any line, and nothing above it is told."""
        entries = self.directory.node_entries(0)
        version = self.directory.list_version
        assert version == max((entry.changed for entry in entries), default=0)
        assert () == self.directory.node_entries(version)

    @invariant()
    def origins_are_those_that_can_still_ask(self) -> None:
        """No row and no answer of an incarnation that is past."""
        for (name, incarnation), row in self.directory.origins.items():
            node = self.directory.nodes.get(name)
            assert node is None or (incarnation, node.status) >= (node.incarnation, "")
            assert node is None or incarnation != node.incarnation or node.status != "gone"
            assert row.seq <= self.directory.applied


def restore(state: bytes) -> Directory:
    """The directory in ``state``, with the same parameters as the others."""
    return Directory.restore(state, answers_kept=ANSWERS_KEPT)


def essence(directory: Directory) -> tuple[object, ...]:
    """Everything but the number of the last entry, origins and answers."""
    return (
        directory.domain,
        directory.essentials,
        directory.voters,
        directory.view,
        directory.list_version,
        directory.nodes.all(),
        directory.groups.all(),
        directory.settings.stored(),
    )


DirectoryMachine.TestCase.settings = settings(stateful_step_count=40)
TestDirectoryMachine = DirectoryMachine.TestCase
