"""The rules for groups: form, propose, activate, continue, drop.

Each method judges one command against the group as it is when the command's turn comes, and answers with
plain data: ``ok``, and if refused ``problem`` and the present record. The epochs themselves are given in
``groups``.

Three kinds of latecomers are the reason for most of what is checked. A *deposed leader* proposes from a
``base_epoch`` that is no longer the newest. A *leader that lost its grant* asks for an activation that is
not pending. A command for a *dropped group* names an id that is not there, even if its name was formed anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..views import NodeId, View
from .attributes import problem_with_attributes
from .commands import ActivateView, ContinueGroup, DropGroup, FormGroup, ProposeView, shown
from .groups import Group, GroupTable, problem_with_name
from .limits import ACTIVATIONS_MAX, GROUPS_MAX
from .nodes import NodeTable

Answer = dict[str, Any]


class GroupRules:
    """The commands about groups, over the tables of nodes and groups."""

    def __init__(self, nodes: NodeTable, groups: GroupTable, name_server: Callable[[], str]) -> None:
        self._nodes = nodes
        self._groups = groups
        self._name_server = name_server

    def form_group(self, seq: int, command: FormGroup) -> Answer:
        """No such name: the asker leads it from now on. Else the record."""
        asker = (command.asker, command.asker_incarnation)
        present = self._groups.named(command.name)
        if present is not None:
            # The asker that formed it may ask again, as long as nobody else was ever to lead it.
            formed = present.formed_by == asker and present.newest_epoch == present.id and self._nodes.is_up(asker)
            return {"ok": True, "formed": formed, "group": present.as_answer()}
        if problem := problem_with_name(command.name) or problem_with_attributes(command.attributes):
            return refused(problem, group=None)
        if not self._nodes.is_up(asker):
            return refused(f"{shown(command.asker)}/{command.asker_incarnation} is not up", group=None)
        server = self._groups.server_of(command.asker, durable=command.attributes.get("durable") is True)
        if server is None:
            return refused(f"a durable group needs a state directory, and {command.asker} has none", group=None)
        if len(self._groups) >= GROUPS_MAX:
            return refused(f"the domain has {GROUPS_MAX} groups; no more fit", group=None)
        group = Group(
            id=seq,
            name=command.name,
            attributes=dict(command.attributes),
            formed_by=asker,
            newest_epoch=seq,
            active=View(epoch=seq, leader=command.asker, servers=(server,), k=1, activated=seq),
            pending=None,
        )
        self._groups.put(group)
        return {"ok": True, "formed": True, "group": group.as_answer()}

    def propose_view(self, seq: int, command: ProposeView) -> Answer:
        """Granted to the leader of the active view, or to the name server when its servers complain."""
        group = self._groups.get(command.id)
        if group is None:
            return _no_such_group(command.id)
        if _is_granted(group, command):
            return {"ok": True, "epoch": group.newest_epoch, "group": group.as_answer()}
        if problem := self._problem_with_proposal(group, command):
            return refused(problem, group=group.as_answer())
        granted = self._groups.grant(group, seq, command.leader, command.servers, command.k, forced=False)
        return {"ok": True, "epoch": seq, "group": granted.as_answer()}

    def _problem_with_proposal(self, group: Group, command: ProposeView) -> str:
        if command.base_epoch != group.newest_epoch:
            return f"the newest epoch granted is {group.newest_epoch}, not {command.base_epoch}"
        by = command.by
        if not (self._groups.leads(group, by) or self._groups.is_to_lead(group, by) or self._is_name_server(by)):
            return (
                f"{shown(by[0])}/{by[1]} leads neither the active view nor the pending one, nor is it the name server"
            )
        if problem := self._groups.problem_with_servers(group, command.leader, command.servers):
            return problem
        if not 1 <= command.k <= len(command.servers):
            return f"k must be from 1 to {len(command.servers)}, not {command.k}"
        if not any(server in group.active.servers for server in command.servers):
            return "no server of the active view is among the servers; nobody would have the stream"
        return ""

    def activate_views(self, seq: int, command: ActivateView) -> Answer:
        """Each for itself: the newest grant becomes active, the active one is so already."""
        if len(command.activations) > ACTIVATIONS_MAX:
            return refused(f"one entry activates at most {ACTIVATIONS_MAX} views", activations=[])
        answers = [self._activate_view(seq, group_id, epoch) for group_id, epoch in command.activations]
        superseded = sum(1 for answer in answers if not answer["ok"])
        if superseded:
            return refused(f"{superseded} of {len(answers)} activations were refused", activations=answers)
        return {"ok": True, "activations": answers}

    def _activate_view(self, seq: int, group_id: int, epoch: int) -> Answer:
        which = {"id": group_id, "epoch": epoch}
        group = self._groups.get(group_id)
        if group is None:
            return {**_no_such_group(group_id), **which}
        if group.pending is not None and group.pending.epoch == epoch:
            group = self._groups.activate(group, seq)
        elif group.active.epoch != epoch:
            problem = f"epoch {epoch} is not the newest granted, {group.newest_epoch}, or was withdrawn"
            return {**refused(problem, group=group.as_answer()), **which}
        return {"ok": True, "activated": group.active.activated, **which}

    def continue_group(self, seq: int, command: ContinueGroup) -> Answer:
        """A forced grant, to whoever has something left of the stream."""
        group = self._groups.get(command.id)
        if group is None:
            return _no_such_group(command.id)
        if _is_continued(group, command):
            return {"ok": True, "epoch": group.newest_epoch, "group": group.as_answer()}
        if problem := self._problem_with_continuing(group, command):
            return refused(problem, group=group.as_answer())
        k = min(group.k_wanted, len(command.servers))
        granted = self._groups.grant(group, seq, command.leader, command.servers, k, forced=True)
        return {"ok": True, "epoch": seq, "group": granted.as_answer()}

    def _problem_with_continuing(self, group: Group, command: ContinueGroup) -> str:
        if command.base_epoch != group.newest_epoch:
            return f"the newest epoch granted is {group.newest_epoch}, not {command.base_epoch}"
        if group.on_quorum_lost != "continue":
            return f"the group's on_quorum_lost is {group.on_quorum_lost}"
        return self._problem_with_loss(group) or self._groups.problem_with_servers(
            group, command.leader, command.servers
        )

    def drop_group(self, seq: int, command: DropGroup) -> Answer:
        """By its leader when all have left; by the name server when its servers are lost and it may not wait."""
        group = self._groups.get(command.id)
        if group is None:
            return {"ok": True, "id": command.id}  # what was asked for is so already; ids are never used again
        problem = self._problem_with_drop(group, command)
        if problem and self._is_name_server(command.by):
            problem = self._problem_with_giving_up(group, command)
        if problem:
            return refused(problem, group=group.as_answer())
        self._groups.remove(group.id)
        self._groups.dropped.append(group.id)
        return {"ok": True, "id": group.id}

    def _problem_with_drop(self, group: Group, command: DropGroup) -> str:
        """Why the group's leader cannot end it, or ""."""
        if command.epoch != group.active.epoch:
            return f"the active epoch is {group.active.epoch}, not {command.epoch}"
        if group.pending is not None:
            return f"epoch {group.newest_epoch} is pending"
        if not self._groups.leads(group, command.by):
            return f"{shown(command.by[0])}/{command.by[1]} does not lead the active view"
        return ""

    def _problem_with_giving_up(self, group: Group, command: DropGroup) -> str:
        """Why the name server cannot end a group whose servers are lost, or "".

        Of a forced view that is pending, whoever is to lead it may have said that it cannot: the name server knows.
        """
        if command.epoch != group.newest_epoch:
            return f"the newest epoch granted is {group.newest_epoch}, not {command.epoch}"
        if group.on_quorum_lost == "wait":
            return "the group waits for its servers"
        all_gone = self._groups.servers_gone(group) == len(group.active.servers)
        may_be_led = group.pending is not None and not group.pending.forced
        if group.on_quorum_lost == "continue" and (may_be_led or not all_gone):
            return "the group may still continue"
        return self._problem_with_loss(group)

    def _problem_with_loss(self, group: Group) -> str:
        """Why the quorum of the active view is not lost for ever, or "".

        Its leader needs |S| - k + 1 promises of the servers S. They cannot come once k of S are gone.
        """
        gone = self._groups.servers_gone(group)
        if gone >= group.active.k:
            return ""
        return f"{gone} servers of the active view are gone; the quorum is lost only with {group.active.k}"

    def _is_name_server(self, by: NodeId) -> bool:
        return by[0] == self._name_server() and self._nodes.is_up(by)


def refused(problem: str, **present: Any) -> Answer:
    """The answer to a command that changed nothing."""
    return {"ok": False, "problem": problem, **present}


def _no_such_group(group_id: int) -> Answer:
    return refused(f"there is no group with id {group_id}", group=None)


def _is_granted(group: Group, command: ProposeView) -> bool:
    """Whether the newest grant is what this command asks for, made from the same base."""
    newest = group.newest
    return (newest.epoch, newest.replaces, newest.leader, newest.servers, newest.k, newest.forced) == (
        group.newest_epoch, command.base_epoch, command.leader, command.servers, command.k, False
    )  # fmt: skip


def _is_continued(group: Group, command: ContinueGroup) -> bool:
    """Whether the newest grant is the forced one this command asks for."""
    newest = group.newest
    return (newest.epoch, newest.replaces, newest.leader, newest.servers, newest.forced) == (
        group.newest_epoch, command.base_epoch, command.leader, command.servers, True
    )  # fmt: skip
