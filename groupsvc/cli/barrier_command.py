"""``groupsvc barrier``: scripts on several nodes wait for each other, and go on together.

It joins the group NAME, comes to the barrier of that group which has no name, and leaves again. So a program can be one
of the parties: ``session.join(NAME).barrier(parties=3).wait(...)``.

Who comes to a barrier of a shell has joined its group a moment ago; who has not come is in no list that anybody could
ask. Only who was told whom to expect (``--expect``) can name the missing.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from .. import BarrierBroken, Group, Joined, Provider, Released, TimedOut, UsageError, connect
from ..drivers.connection import TIMEOUT_S
from ..sansio.arguments import group_name
from ..sansio.rounds import disagreement
from ..views import id_of, stranger
from ..wire.limits import PROVIDERS_MAX
from .child_process import check_program, replace_us
from .exit_codes import ExitCode
from .front import say
from .lock_commands import environment
from .options import count, readable, running, timeout_argument
from .tables import aligned, in_json, shown

if TYPE_CHECKING:
    from .options import Commands

_BARRIER = """\
Wait until N have come to the barrier NAME; then print who they are, or become COMMAND, which finds in its environment
GROUPSVC_BARRIER, GROUPSVC_PARTIES, and in GROUPSVC_RANK its own number, from 0 on: no two of the parties have the same.

If not all come, nobody goes on: when the time of one is up, or it dies or is interrupted, all of them end."""

_WHY = {
    "timeout": "the time of {who} was up",
    "cancelled": "{who} did not want to wait any longer",
    "failure": "{who} died",
    "left": "{who} left",
    "mismatch": "{who} said another number of parties than the others, or another --on-failure",
    "too_large": "all payloads together are more than one round carries",
}


def add(commands: Commands) -> None:
    """Add the parser of this family."""
    barrier = running(
        commands, "barrier", _barrier, help="wait until so many have come, then run a command",
        usage="NAME (--parties N | --expect NAMES) [options] [-- COMMAND [ARGUMENT ...]]",
        example="groupsvc barrier load --parties 3 --timeout 60 -- ./load.sh",
        description=_BARRIER,
    )  # fmt: skip
    barrier.add_argument("--parties", type=count, metavar="N", help="how many have to come")
    barrier.add_argument(
        "--expect", type=_names, metavar="NAMES",
        help="instead of --parties: who has to come, as in web1,web2,db; so who is missing can be named",
    )  # fmt: skip
    barrier.add_argument(
        "--as",
        type=readable,
        dest="as_name",
        metavar="NAME",
        help="what the others see of this party (default: host:process)",
    )
    barrier.add_argument("--payload", default="", metavar="TEXT", help="something for the others, who are shown it")
    timeout_argument(barrier, "end with exit code 124, all of them, if not everybody comes")
    barrier.add_argument(
        "--on-failure", choices=("break", "continue"), default="break",
        help="when one who had come dies: end with exit code 123, all of them (break, the default), or wait for another"
        " one in its place (continue)",
    )  # fmt: skip
    barrier.add_argument("--json", action="store_true", help="print an object for programs, also before COMMAND is run")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(readable(name.strip()) for name in text.split(","))
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError("a name stands there twice")
    return names


@attrs.frozen
class Met:
    """A round that ended well: who came, the oldest first, with what each brought."""

    name: str
    round: int
    parties: tuple[tuple[Provider, bytes], ...]
    me: str

    @property
    def rank(self) -> int:
        """My place among them."""
        return [provider.id for provider, _ in self.parties].index(self.me)


def _barrier(options: argparse.Namespace) -> int:
    group_name(options.name)
    parties = parties_of(options)
    if options.argv:
        check_program(options.argv)
    met = _meet(options, parties)
    if not isinstance(met, Met):
        return met
    if options.json:
        print(json.dumps(met_object(met), indent=2), flush=True)
    elif not options.argv:
        print("\n".join(met_lines(met)))
    if options.argv:
        variables = environment(options, barrier=met.name, parties=len(met.parties), rank=met.rank)
        replace_us(options.argv, variables)
    return ExitCode.OK


def parties_of(options: argparse.Namespace) -> int:
    """How many it takes."""
    if options.expect is not None and options.parties not in (None, len(options.expect)):
        raise UsageError(
            f"--expect names {len(options.expect)}, and --parties says {options.parties}; give one of them"
        )
    found = options.parties if options.expect is None else len(options.expect)
    if found is None:
        raise UsageError("how many have to come is missing: --parties N, or --expect NAMES")
    if options.expect is not None and options.as_name not in options.expect:
        who = f"--as {options.as_name} is none of them" if options.as_name else "which of them this is says --as NAME"
        raise UsageError(f"--expect names who has to come ({', '.join(options.expect)}), and {who}")
    if not 1 <= found <= PROVIDERS_MAX:
        raise UsageError(f"--parties is {found}; it must be 1 to {PROVIDERS_MAX}")
    return int(found)


def _meet(options: argparse.Namespace, parties: int) -> Met | ExitCode:
    name = options.as_name or f"{socket.gethostname()}:{os.getpid()}"
    session = connect(options.address, name=name, keys=options.keys, timeout=TIMEOUT_S, default_timeout=TIMEOUT_S)
    with session, session.join(options.name, name=name, events=True) as group:
        known = {one.id: one for one in group.view.providers}
        barrier = group.barrier(parties=parties, on_failure=options.on_failure)
        wait = max(options.timeout, SOON_S)
        try:
            released = barrier.wait(options.payload.encode(errors="surrogateescape"), timeout=wait)
        except BarrierBroken as broken:
            _look_who_came(group, known)
            _tell_broken(options, broken, known)
            return ExitCode.LATE if broken.why == "timeout" else ExitCode.BROKEN
        except TimedOut:
            say(f"barrier {options.name!r}: the time was up just when others had come")
            return ExitCode.LATE
        _look_who_came(group, known)
        met = met_of(options.name, released, known, group.me.id)
    missing = missing_at(met, options.expect)
    if not missing:
        return met
    if options.json:
        print(json.dumps(met_object(met) | {"released": False, "missing": missing}, indent=2), flush=True)
    came = ", ".join(provider.name for provider, _ in met.parties)
    say(f"barrier {options.name!r} is broken: {came} came, and {', '.join(missing)} did not")
    return ExitCode.BROKEN


SOON_S = 0.001
"""At the barrier for at least so long: a daemon waits for no shorter time."""


def _look_who_came(group: Group, known: dict[str, Provider]) -> None:
    """Who is gone already has been there: all who came to a round joined before its end."""
    while (event := group.next_event(timeout=0)) is not None:
        if isinstance(event, Joined):
            known.update((one.id, one) for one in event.providers)


def met_of(name: str, released: Released, known: Mapping[str, Provider], me: str) -> Met:
    """A round as it is told."""
    return Met(name, released.round, tuple((_who(id, known), brought) for id, brought in released.payloads.items()), me)


def missing_at(met: Met, expect: Sequence[str] | None) -> list[str]:
    """Who was expected, and somebody else came in its place; all who expect the same find the same."""
    came = {provider.name for provider, _ in met.parties}
    if "" in came:  # a stranger to us, whose name was not told
        return []
    return [name for name in expect or () if name not in came]


def _who(id: str, known: Mapping[str, Provider]) -> Provider:
    found = known.get(id)
    if found is not None:
        return found
    parts = id_of(id)
    assert parts is not None, f"{id!r} is the id of a provider"
    return stranger(parts)


def met_lines(met: Met) -> list[str]:
    """Who was there, for people."""
    noun = "party" if len(met.parties) == 1 else "parties"
    rows = [
        (str(rank), provider.name or provider.id, provider.node, shown(brought) if brought else "-")
        for rank, (provider, brought) in enumerate(met.parties)
    ]
    return [
        f"{met.name}: round {met.round}, {len(met.parties)} {noun}, this one is {met.rank}",
        *aligned([("RANK", "NAME", "NODE", "PAYLOAD"), *rows]),
    ]


def met_object(met: Met) -> dict[str, object]:
    """The same for programs."""
    rows = [_party_object(provider) | in_json("payload", brought) for provider, brought in met.parties]
    return {"barrier": met.name, "released": True, "round": met.round, "rank": met.rank, "parties": rows}


def _party_object(provider: Provider) -> dict[str, Any]:
    return {"id": provider.id, "name": provider.name, "node": provider.node}


# --- When not all come ---------------------------------------------------------------------------------------


def _tell_broken(options: argparse.Namespace, broken: BarrierBroken, known: Mapping[str, Provider]) -> None:
    arrived = tuple(known.get(one.id, one) for one in broken.arrived)
    who = tuple(known.get(one.id, one) for one in broken.who)
    missing = missing_of(broken, arrived, options.expect)
    if options.json:
        found = {
            "barrier": options.name, "released": False, "round": broken.round, "why": broken.why,
            "who": [_party_object(one) for one in who], "expected": broken.expected,
            "arrived": [_party_object(one) for one in arrived], "missing": missing,
        }  # fmt: skip
        print(json.dumps(found, indent=2), flush=True)
    say(broken_line(options.name, broken, who, arrived, missing))


def missing_of(broken: BarrierBroken, arrived: Sequence[Provider], expect: Sequence[str] | None) -> list[str]:
    """The names of those who have not come, as far as anybody can know them."""
    if expect is not None:
        names = {one.name for one in arrived}
        return [name for name in expect if name not in names]
    return [one.provider.name or one.provider.id for one in broken.missing]


def broken_line(
    name: str, broken: BarrierBroken, who: Sequence[Provider], arrived: Sequence[Provider], missing: Sequence[str]
) -> str:
    """What happened, who had come, and who had not."""
    why = _WHY[broken.why].format(who=" and ".join(_called(one) for one in who) or "somebody")
    if broken.said:
        known = {one.id: one for one in (*arrived, *who)}
        said = [(known.get(one.id, one), parties, on_failure) for one, parties, on_failure in broken.said]
        why = disagreement(said, _called, ("--parties ", "--on-failure "))
    text = f"barrier {name!r} is broken: {why}; {len(arrived)} of {broken.expected} had come"
    if arrived:
        text += f" ({', '.join(_called(one) for one in arrived)})"
    nameless = broken.expected - len(arrived) - len(missing)
    if missing:
        text += f"; missing: {', '.join(missing)}"
    if nameless > 0:
        text += f"; {nameless} never came"
    return text


def _called(provider: Provider) -> str:
    return f"{provider.name or provider.id} at {provider.node}"
