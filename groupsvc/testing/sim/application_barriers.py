"""What simulated applications do at barriers: they come, wait, give up, and reset what has broken.

Every group has a few barriers, and all who come to one say the same about it; now and then somebody does not. What each
brings is unlike anything else, so that whoever is listed in a round is listed for one call. A call has its two lines;
its end says how the round ended, as the daemon told it. When the request reaches the daemon a line says how far that
had come in the group: since then the round is open for this party.

Of some barriers the group keeps the rounds (``on_failure="wait"``); who is there asks for one now and then, which may
be long over, or the next one.

Chance for all of this comes from sources of its own: a world without barriers is the same as ever, and so is one
without any whose rounds are kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

import attrs

from groupsvc.errors import Failed
from groupsvc.sansio import rounds
from groupsvc.sansio.asking import Start
from groupsvc.sansio.calls import Call
from groupsvc.sansio.rounds import BarrierTerms, OnFailure, Released
from groupsvc.views import text_of
from groupsvc.wire.client_messages import RoundIs
from groupsvcd.core.groups.round_over import CARRIED_BYTES_MAX

from .application import Application, Part
from .application_ops import ASK_ROUND, COME, RESET
from .carried_groups import carried
from .local_connection import LocalConnection

if TYPE_CHECKING:
    from .applications import Applications

TIMEOUTS_S = (0.3, 1.5, 4.0, 6.0, 6.0, 6.0)
"""For how long somebody waits, or up to 0.6 times longer; those who come are often so few that the longest are needed.
"""

CANCELS = 0.03
MISMATCHES = 0.01
RESETS = 0.9
"""How often somebody who waits gives up, says something else than the others, and resets what it knows to be broken."""

ASKS = 0.15
"""How often somebody who looks at a barrier asks for one of the rounds that are kept."""

ASK_S = 3.0
"""How long it waits for the answer."""

Then = Callable[[str, RoundIs | None], None]
"""Told how a call ended: ok, fail or info; and what its daemon had answered."""


NOTHING: Mapping[str, int] = {}


class Attendance:
    """What all applications of a world do at barriers."""

    def __init__(self, applications: Applications) -> None:
        self.all = applications
        habits = applications.habits
        self.rng = random.Random(f"{applications.world.seed}/barriers")
        self.kept_rng = random.Random(f"{applications.world.seed}/barriers whose rounds are kept")
        self.barriers = {
            f"apps-{group}": tuple(self._draw_terms(number) for number in range(habits.barriers))
            for group in range(habits.groups)
        }
        self.last = 0  # of the rounds at the end of a run, how many were held
        self._open: dict[tuple[str, int, int, str], tuple[int, Call]] = {}  # by application, life, part and barrier
        self._broken: set[tuple[str, int, int, str]] = set()  # as far as each knows
        self._newest: dict[tuple[int, str], int] = {}  # by group and barrier: the last round that anybody knows of

    def _draw_terms(self, number: int) -> BarrierTerms:
        parties = 0 if number == 0 else self.rng.choice([0, 2, 2, 3])
        on_failure: OnFailure = self.rng.choice(["break", "continue"])
        if self.kept_rng.random() < self.all.habits.keeps:
            on_failure = "wait"
        return BarrierTerms(f"b{number}", parties, on_failure)

    def begin(self, app: Application) -> None:
        """It comes to barriers, beside whatever else it does."""
        self._think(app)

    def _think(self, app: Application) -> None:
        pause = self.rng.expovariate(1.0 / self.all.habits.think_s)
        app.world.push(app.world.t + pause, self._next, app, app.life)

    def _next(self, app: Application, life: int) -> None:
        if app.life != life or self.all.quiet:
            return
        self._think(app)
        if not app.may_act:
            return
        providers = [part for part in app.parts.values() if part.is_ready and self.barriers.get(part.name)]
        for part in providers:
            for terms in self.barriers[part.name]:
                self._look_at(app, part, terms)
        app.turn()

    def _look_at(self, app: Application, part: Part, terms: BarrierTerms) -> None:
        rng, key = self.rng, (app.name, app.life, part.m, terms.name)
        if not app.may_act or not part.is_ready:
            return
        if terms.on_failure == "wait" and self.kept_rng.random() < ASKS:
            newest = self._newest.get((part.group, terms.name), 0)
            self.ask(app, part, terms.name, self.kept_rng.randint(max(1, newest - 4), newest + 1))
        if self._waits(app, key):
            if rng.random() < CANCELS:
                self._cancel(app, part, key)
        elif rng.random() < 0.6:
            resets = rng.random() < (RESETS if key in self._broken else 0.02)
            if rng.random() < MISMATCHES:
                terms = rng.choice([
                    attrs.evolve(terms, on_failure="break" if terms.on_failure == "continue" else "continue"),
                    attrs.evolve(terms, parties=terms.parties + 2),
                ])  # fmt: skip
            timeout = rng.choice(TIMEOUTS_S) * (1.0 + 0.6 * rng.random())
            self.come(app, part, terms, timeout, resets=resets)

    def _waits(self, app: Application, key: tuple[str, int, int, str]) -> bool:
        if key in self._open and self._open[key][0] not in app.open_calls:
            del self._open[key]
        return key in self._open

    def _cancel(self, app: Application, part: Part, key: tuple[str, int, int, str]) -> None:
        number, call = self._open.pop(key)
        assert app.machine is not None
        op, args = app.open_calls[number]
        app.machine.abandon(call)
        app.ended(number, op, args, "info", {"error": "cancelled"}, group=part.group)
        self.all.mark("barrier-cancelled")

    # --- One call ---

    def come(
        self, app: Application, part: Part, terms: BarrierTerms, timeout: float, *, resets: bool = False,
        last: int = 0, ends: str = "", says: Mapping[str, int] = NOTHING, then: Then | None = None,
    ) -> None:  # fmt: skip
        """Come to a barrier, or reset it. ``says``: what its line says beside; ``then``: told how it ended.

        ``last``: which of the rounds at the end of a run; ``ends``: how that must end, if nobody is to be released.
        """
        machine = app.machine
        assert machine is not None
        key = (app.name, app.life, part.m, terms.name)
        padding = b"." * self.rng.choice([0, 0, 0, 200, 2_000])
        payload = b"" if resets else app.new_value() + padding
        number = app.calls + 1
        answers: list[RoundIs] = []
        since = [0]

        def ended(verdict: str, result: Any) -> dict[str, Any]:
            if then is not None:
                then(verdict, answers[0] if answers else None)
            if not answers:
                return {}
            place = part.group, terms.name
            self._newest[place] = max(self._newest.get(place, 0), answers[0].round.number)
            (self._broken.add if answers[0].round.end == "broken" else self._broken.discard)(key)
            self._mark(app, part, answers[0], terms, since[0])
            return in_full(answers[0], result.payloads if isinstance(result, Released) else {})

        def arrives(connection: LocalConnection) -> None:
            seq = _applied(connection, part)
            if seq is not None and len(payload) <= CARRIED_BYTES_MAX:  # else it has not come yet
                since[0] = seq
                app.write("at_barrier", {"m": part.m, "call": number, "applied": seq}, group=part.group)

        args: dict[str, Any] = {
            "m": part.m, "barrier": terms.name, "parties": terms.parties, "on_failure": terms.on_failure,
            **says,
        }  # fmt: skip
        if not resets:
            args["payload"] = crc32(payload)
        if last:
            args["last"] = last
        if ends:
            args["ends"] = ends
        begin = rounds.come(machine, part.membership, terms, payload, timeout, resets=resets)

        def start(now: float, seconds: float) -> Call:
            call = _listening(begin, answers)(now, seconds)
            self._open[key] = number, call
            app.on_their_way[call.id] = arrives
            return call

        app.call(RESET if resets else COME, start, args, timeout, ended, group=part.group)

    def ask(self, app: Application, part: Part, barrier: str, round_: int, then: Then | None = None) -> None:
        """How that round ended, if the group keeps it; else its line says what may be the reason that it does not."""
        machine, number = app.machine, app.calls + 1
        assert machine is not None
        answers: list[RoundIs] = []

        def ended(verdict: str, result: Any) -> dict[str, Any]:
            if then is not None:
                then(verdict, answers[0] if answers else None)
            if answers:
                self.all.mark("barrier-kept")
                return in_full(answers[0], result.payloads)
            if type(result) is not Failed:
                return {}
            self.all.mark("barrier-not-kept")
            membership = part.membership
            is_fast = membership._attributes.get("delivery") == "fast"
            return {"not_kept": True, "lost_seq": membership.view.quorum_lost_seq, "is_fast": is_fast}

        def arrives(connection: LocalConnection) -> None:
            seq = _applied(connection, part)
            if seq is not None:
                app.write("at_barrier", {"m": part.m, "call": number, "applied": seq}, group=part.group)

        begin = rounds.past(machine, part.membership, barrier, round_)

        def start(now: float, seconds: float) -> Call:
            call = _listening(begin, answers)(now, seconds)
            app.on_their_way[call.id] = arrives
            return call

        app.call(ASK_ROUND, start, {"m": part.m, "barrier": barrier, "round": round_}, ASK_S, ended, group=part.group)

    def _mark(self, app: Application, part: Part, answer: RoundIs, terms: BarrierTerms, since: int) -> None:
        round_ = answer.round
        if round_.end == "broken":
            self.all.mark(f"barrier-broken-{round_.broken_by}")
        elif round_.end == "reset" and round_.arrived:
            self.all.mark("barrier-reset")
        elif round_.end == "released":
            self.all.mark("barrier-released")
            local = carried(app.node, part.name, part.group)
            if terms.on_failure != "break" and local is not None and since:
                if any(since < seq < answer.seq for seq, _ in local.group.rounds.deaths):
                    self.all.mark("barrier-continued-without-dead")


def in_full(answer: RoundIs, payloads: dict[str, bytes]) -> dict[str, Any]:
    """How a round ended, for the line of a call, with what the library says that each has brought."""
    round_ = answer.round
    return {
        "seq": answer.seq, "round": round_.number, "end": round_.end, "parties": round_.parties,
        "arrived": [[text_of(one), crc32(payloads.get(text_of(one), b""))] for one, _ in round_.arrived],
        "broken_by": round_.broken_by, "by": [text_of(one) for one in round_.who],
        "missing": [[text_of(one), responds] for one, responds in round_.missing],
    }  # fmt: skip


def _listening(start: Start, answers: list[RoundIs]) -> Start:
    """The same call; what the daemon answers is kept."""

    def begin(now: float, timeout: float) -> Call:
        call = start(now, timeout)
        convert = call._convert
        assert convert is not None

        def converted(answer: RoundIs) -> Any:
            answers.append(answer)
            return convert(answer)

        call._convert = converted
        return call

    return begin


def _applied(connection: LocalConnection, part: Part) -> int | None:
    """Up to which entry the daemon has applied the stream; nobody knows of one that stands still."""
    local = None if connection.node.paused else carried(connection.node, part.name, part.group)
    return None if local is None else local.group.seq
