"""A run told like a play: who says what to whom, what each writes down, what befalls them.

Used by ``replay --log`` and by the golden scripts. What repeats for ever (beats, leases) is shown the first time
a node says it to a peer in an epoch and then left out. Long things are named, not quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from groupsvc.wire.history import EventType
from groupsvcd.core.peer_messages import Alive, AliveAck, Beat, LeaderAlive, PeerMessage

if TYPE_CHECKING:
    from .node import Node

STEADY = (LeaderAlive, Alive, AliveAck, Beat)
"""What is said again and again while all is well."""

STEADY_OPS = frozenset({"lease"})
SILENT_OPS = frozenset({"spoke", "acknowledged"})
"""The messages themselves are shown already."""


class Play:
    """Turns what happens into lines; ``write`` gets each one when it is complete.

    The same words to several peers at one moment are one line, so the newest line waits for its last peer:
    whoever reads along calls ``release`` first.
    """

    def __init__(self, write: Callable[[str], None], *, steady: bool = False) -> None:
        self.write = write
        self.steady = steady
        self.said: set[tuple[str, str, str, int]] = set()
        self._front, self._peers, self._words = "", [""], ""

    def release(self) -> None:
        """Write the line that waits."""
        if self._front:
            self.write(f"{self._front} -> {', '.join(self._peers)}: {self._words}")
            self._front = ""

    def line(self, text: str) -> None:
        """Write a line, after the one that waits."""
        self.release()
        self.write(text)

    def sent(self, node: Node, peer: str, messages: Sequence[PeerMessage]) -> None:
        """A frame leaves."""
        words = ", ".join(say(message) for message in messages if self._is_news(node.name, peer, message))
        if not words:
            return
        front = f"{node.world.t:8.3f} {node.name}"
        if (front, words) == (self._front, self._words):
            self._peers.append(peer)
            return
        self.release()
        self._front, self._peers, self._words = front, [peer], words

    def _is_news(self, name: str, peer: str, message: PeerMessage) -> bool:
        if self.steady or not isinstance(message, STEADY):
            return True
        return self._is_first(name, peer, type(message).__name__, message.epoch)

    def _is_first(self, *what: Any) -> bool:
        if what in self.said:
            return False
        self.said.add(what)
        return True

    def happened(self, node: Node, op: str, group: int, epoch: int, seq: int, args: dict[str, Any]) -> None:
        """A node did something."""
        if op in SILENT_OPS or (op in STEADY_OPS and not self.steady and not self._is_first(node.name, "", op, epoch)):
            return
        parts = [f"{name}={value}" for name, value in (("group", group), ("epoch", epoch), ("seq", seq)) if value]
        parts += [f"{name}={brief(value)}" for name, value in args.items() if (name, value) != ("seen", True)]
        self.line(f"{node.world.t:8.3f} {node.name} [{op}{' ' if parts else ''}{' '.join(parts)}]")

    def called(
        self, who: str, node: str, type_: EventType, op: str, args: dict[str, Any], result: dict[str, Any]
    ) -> None:
        """A client asked or was answered."""
        parts = " ".join(f"{name}={brief(value)}" for name, value in (args if type_ == "invoke" else result).items())
        arrow = "asks" if type_ == "invoke" else f"hears {type_} from"
        self.line(f"         {who} {arrow} {node}: {op} {parts}".rstrip())

    def fault(self, t: float, name: str, phase: str, args: dict[str, Any]) -> None:
        """The harness interfered."""
        self.line(f"{t:8.3f} *** {name} {phase} {args.get('target', '')}".rstrip())


def say(message: PeerMessage) -> str:
    """A message in words."""
    fields = ", ".join(f"{name}={brief(getattr(message, name))}" for name in message.__struct_fields__)
    return f"{type(message).__name__}({fields})"


def brief(value: Any) -> str:
    """A value, short enough to read on."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, dict):
        return f"<{len(value)} settings>" if len(value) > 6 else "{" + _pairs(value) + "}"
    if isinstance(value, tuple | list):
        if len(value) == 1:
            return f"({brief(value[0])})"
        return "(" + ", ".join(brief(item) for item in value) + ")"
    if hasattr(value, "__struct_fields__"):
        return "/".join(brief(getattr(value, name)) for name in value.__struct_fields__)
    return str(value)


def _pairs(value: dict[Any, Any]) -> str:
    return ", ".join(f"{name}: {brief(item)}" for name, item in value.items())
