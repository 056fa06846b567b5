"""The users of groups in a golden script: they join, submit and leave, and say aloud what they are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupsvc.testing.sim import World
from groupsvc.testing.sim.node import Node
from groupsvcd.core.nodegroups.group_status import GroupStatus
from groupsvcd.core.nodegroups.node_groups import NodeGroups
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import AttributeValue, NodeId
from tests.golden.group_play import GroupPlay, in_words


class GroupUser:
    """Takes part in one group on one node, or submits to it from outside."""

    def __init__(self, node: Node, group: str, play: GroupPlay) -> None:
        self.node = node
        self.group = group
        self.play = play

    def says(self, text: str) -> None:
        """A line of the play."""
        self.play.user(self.node.world.t, self.node.name, self.group, text)

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """This node carries the group."""
        self.says(f"joined group {group} after entry {seq}, members {in_words(members)}")

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """The next entries; those about views and members are seen in what changed."""
        told = [f"{seq} {in_words(entry.body)}" for seq, entry in enumerate(entries, first_seq) if entry.origin]
        if told:
            self.says(f"delivered {', '.join(told)}")

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Who carries the group now."""
        self.says(f"members after entry {seq}: {in_words(members)}")

    def lost(self, reason: str) -> None:
        """Nothing more comes."""
        self.says(f"lost the group: {reason}")

    def accepted(self, upto_n: int) -> None:
        """From outside: what was sent is stable."""
        self.says(f"accepted up to #{upto_n}")

    def failed(self, reason: str) -> None:
        """From outside: nothing more is known of what was sent."""
        self.says(f"failed: {reason}")


class MachineUser(GroupUser):
    """One with a state: all that was ever submitted, as one text."""

    def __init__(self, node: Node, group: str, play: GroupPlay) -> None:
        super().__init__(node, group, play)
        self.text = ""

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """Add the bodies."""
        super().delivered(first_seq, entries)
        self.text += "".join(entry.body.decode() + " " for entry in entries if entry.origin)

    def snapshot(self) -> bytes:
        """The text."""
        return self.text.encode()

    def restore(self, seq: int, state: bytes) -> None:
        """Become another member's."""
        self.text = state.decode()
        self.says(f'has the state after entry {seq}: "{self.text.strip()}"')


class GroupUsers:
    """The commands of a script that are about groups."""

    def __init__(self, world: World, play: GroupPlay) -> None:
        self.world = world
        self.play = play
        self._users: dict[tuple[str, str], GroupUser] = {}
        play.begin()

    def join(self, words: list[str]) -> None:
        """``join n4 jobs replicas=2``: a user on n4 takes part; with ``machine=yes`` it has a state."""
        name, group, *settings = words
        attributes = dict(_setting(setting) for setting in settings)
        if attributes.pop("machine", False):
            machine = self._users[name, group] = MachineUser(self.world.nodes[name], group, self.play)
            machine.says(f"joins {' '.join(settings)}".rstrip())
            self._act(name, lambda groups: groups.join(group, attributes, machine, machine))
            return
        user = self._users[name, group] = GroupUser(self.world.nodes[name], group, self.play)
        user.says(f"joins {' '.join(settings)}".rstrip())
        self._act(name, lambda groups: groups.join(group, attributes, user))

    def leave(self, words: list[str]) -> None:
        """``leave n4 jobs``: the user that joined takes part no longer."""
        name, group = words
        user = self._users[name, group]
        user.says("leaves")
        self._act(name, lambda groups: groups.leave(group, user))

    def submit(self, words: list[str]) -> None:
        """``submit n4 jobs "a" "b"``: the user that joined submits."""
        name, group, *bodies = words
        user = self._users[name, group]

        def act(groups: NodeGroups) -> None:
            first = groups.submit(group, [body.encode() for body in bodies])
            user.says(f"submits {_quoted(bodies)} as #{first}" if first else f"cannot submit {_quoted(bodies)} now")

        self._act(name, act)

    def send(self, words: list[str]) -> None:
        """``send n7 jobs "x"``: somebody on n7 submits without taking part."""
        name, group, *bodies = words
        user = self._users.setdefault((name, group), GroupUser(self.world.nodes[name], group, self.play))

        def act(groups: NodeGroups) -> None:
            taken = groups.send(group, [body.encode() for body in bodies], user)
            user.says(f"sends {_quoted(bodies)} from outside" if taken else f"cannot send {_quoted(bodies)} now")

        self._act(name, act)

    def _act(self, name: str, action: Any) -> None:
        node = self.world.nodes[name]
        node.call(lambda: action(node.engine.groups))  # type: ignore[union-attr]

    def status(self) -> list[str]:
        """What every process says of its groups."""
        lines = []
        for name, node in self.world.nodes.items():
            if node.engine is None or node.paused:
                lines.append(f"  {name}: {'stands still' if node.running else 'down'}")
                continue
            lines += [f"  {name}: {_status(status)}" for status in node.engine.groups.status()]  # type: ignore[attr-defined]
        return lines


def _status(status: GroupStatus) -> str:
    text = f"{status.name} {status.phase} as {status.role}, epoch {status.epoch} led by {status.leader or 'nobody'}"
    text += f", servers {' '.join(status.servers)}, members {' '.join(name for name, _ in status.members)}"
    text += f", last {status.last}, stable {status.stable}, delivered {status.delivered}"
    return f"{text}, outstanding {status.outstanding}" if status.outstanding else text


def _setting(text: str) -> tuple[str, AttributeValue]:
    key, value = text.split("=", 1)
    if value in ("yes", "no"):
        return key, value == "yes"
    return key, int(value) if value.isdigit() else value


def _quoted(bodies: list[str]) -> str:
    return " ".join(f'"{body}"' for body in bodies)
