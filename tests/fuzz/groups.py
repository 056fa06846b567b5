"""What nodes submit to a process group: commands that can be read, and say what no node should ever say.

A daemon believes other daemons, and yet one that errs, or is of another version, must not end all that carry a group:
the same entry comes to every one of them, also after a restart.

There are two readers. One takes a list of entries, which are changed as any bytes are: most of what comes out of that
is no command. For the other one each byte is a choice, of the command, of its provider, of a number: so all of it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.commands import BY_DEFAULT, DYNAMIC
from groupsvcd.core.groups.process_group import ProcessGroup
from groupsvcd.core.groups.rules import RULES_BY_DEFAULT
from tests.fuzz.family import Family
from tests.unit.core.groups.assembly import Assembly

ENTRIES_MAX = 16
"""Of one input: longer stories are those of tests/property."""
READ_AGAIN_EVERY = 4
LATER_S = 1e6
"""Longer than any time limit that is kept."""


def apply_entries(data: bytes) -> None:
    """Entries as they are, or one that is all of it."""
    try:
        entries = msgspec.msgpack.decode(data, type=list[tuple[str, bytes]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        entries = [("A", data)]
    play(entries)


def apply_commands(data: bytes) -> None:
    """Commands only, of which each byte chooses something."""
    choices = iter(data)
    play([("ABC"[byte % 3], cmd.encode(_command(choices))) for byte in choices])


def play(entries: list[tuple[str, bytes]]) -> None:
    """All members go on alike, also one that has read the group from its disk in between; and so does the chair."""
    scene = Assembly(state_phases="n", message_phases="n", batch="both", state_machine=True)
    scene.join("A1", "B1")
    scene.wait(1.0)
    for number, (node, body) in enumerate(entries[:ENTRIES_MAX]):
        told, seq = len(scene.notices), scene.group.seq
        other = _read_again(scene.group) if number % READ_AGAIN_EVERY == 0 else None
        scene.raw(node, body)
        if other is not None:
            mine = other.apply(seq + 1, (node, 1), body)
            heard = scene.notices[told : told + len(mine)]
            assert msgspec.msgpack.encode(mine) == msgspec.msgpack.encode(heard)  # a NaN is not equal to itself
    scene.wait(LATER_S)
    scene.say("A1", b"hello")
    scene.group.scribe(max(1, scene.group.scribe_turns))
    _read_again(scene.group)


def _read_again(group: ProcessGroup) -> ProcessGroup:
    once = group.snapshot()
    other = ProcessGroup({})
    other.restore(once)
    assert once == other.snapshot()
    return other


NUMBERS = (0, 1, 2, 3, -1, -2, 7, 2**31, 2**63, 2**64 - 1, -(2**63))
SECONDS = (BY_DEFAULT, 0.5, 0, -3.0, float("inf"), float("nan"), 1e300)
TEXTS = ("", "gate", "A1", "x" * 300)
PAYLOADS = (b"", b"x", b"\xc1", bytes(5_000))
VALUES = (None, True, False, 0, -1, 2**64 - 1, 0.5, float("nan"), "n", "both", "reject", "x")
ATTRIBUTES = (
    *sorted(RULES_BY_DEFAULT),
    "durable",
    "exclusive",
    "state_machine",
    "checkpoint_every",
    "delivery",
    "",
    "x",
)


def _command(choices: Iterator[int]) -> cmd.AnyCommand:
    """The next one; what is not chosen is the first."""

    def one(of: tuple[Any, ...]) -> Any:
        return of[next(choices, 0) % len(of)]

    provider, number, at = one((1, 1, 2, *NUMBERS)), one(NUMBERS), one((4, *NUMBERS))
    proposal = (number, provider, one((BY_DEFAULT, 1, *NUMBERS)), one(SECONDS))
    other = (one(("A", "B", "C")), one((1, 1, *NUMBERS)), one((1, *NUMBERS)))
    busy = one((False, True))
    made: tuple[Callable[[], cmd.AnyCommand], ...] = (
        lambda: cmd.Join(*proposal, one(TEXTS), one(PAYLOADS)),
        lambda: cmd.Leave(*proposal, one(NUMBERS), busy),
        lambda: cmd.Expel(*proposal, (other, other), one(TEXTS), busy),
        lambda: cmd.ChangeState(*proposal, one(PAYLOADS), one(NUMBERS), busy),
        lambda: cmd.SendMessage(*proposal, one(PAYLOADS), busy),
        lambda: cmd.ChangeAttributes(*proposal, {one(ATTRIBUTES): one(VALUES)}, busy),
        lambda: cmd.Withdraw(number),
        lambda: cmd.ProvidersFailed(((provider, one(("failure", "goodbye", "overrun"))), (number, "failure"))),
        lambda: cmd.Responds(provider, busy),
        lambda: cmd.StoreBlock(provider, at, one(NUMBERS), one(PAYLOADS)),
        lambda: cmd.SealCheckpoint(provider, at, one(NUMBERS)),
        lambda: cmd.Bring(provider, one(TEXTS), number, one(PAYLOADS)),
    )
    found: cmd.AnyCommand = one(made)()
    return found


def _story(*entries: tuple[str, cmd.AnyCommand]) -> bytes:
    return msgspec.msgpack.encode([(node, cmd.encode(command)) for node, command in entries])


def _proposal(number: int, provider: int = 1, phases: int = BY_DEFAULT) -> tuple[int, int, int, float]:
    return number, provider, phases, BY_DEFAULT


STORIES = (
    _story(
        ("C", cmd.Join(*_proposal(1), "C1", b"data")),
        ("A", cmd.ChangeState(*_proposal(2, phases=DYNAMIC), b"red", 0)),
        ("C", cmd.ProvidersFailed(((1, "failure"),))),
        ("B", cmd.SendMessage(*_proposal(1), b"hello", fail_if_busy=True)),
        ("A", cmd.Withdraw(2)),
    ),
    _story(
        ("A", cmd.ChangeAttributes(*_proposal(1, phases=1), {"default_vote": "reject", "batch": "none"})),
        ("A", cmd.Expel(*_proposal(2, phases=1), (("B", 1, 1),), "slow")),
        ("B", cmd.Leave(*_proposal(1), 7)),
        ("A", cmd.Leave(*_proposal(3, phases=1), 7)),
    ),
    _story(
        ("A", cmd.StoreBlock(1, 2, 0, b"block")),
        ("A", cmd.SealCheckpoint(1, 2, 1)),
        ("B", cmd.Responds(1, does=False)),
        ("B", cmd.Bring(1, "gate", 1, b"payload")),
        ("B", cmd.Bring(1, "gate", 1, b"")),
    ),
    msgspec.msgpack.encode([("A", cmd.message_prefix(1) + b"hello"), ("Z", cmd.message_prefix(0) + b"hello")]),
)

GROUPS = Family(
    name="groups",
    about="commands of nodes, applied to a process group",
    decoders=("groupsvcd.core.groups.commands:decode_message", "groupsvcd.core.groups.commands:sender_of"),
    readers=((apply_entries, STORIES), (apply_commands, (bytes(range(200)), bytes(reversed(range(200)))))),
)
