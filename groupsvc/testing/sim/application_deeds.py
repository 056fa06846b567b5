"""What simulated applications do, by chance: they come, propose, vote, speak, ask, expel one another, and go.

Every value and every message is unlike any other, so that a loss, a doubling, or an effect of something that was said
to have failed can be seen. Votes are everything a vote can be: for, against, for one more phase, an error of the code
that was asked, late, never, twice, in a phase that is not open; with another state value, a message, another default.

When the world is ``quiet`` nobody begins anything, and everybody votes for whatever is still to be decided.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from groupsvc.attributes import Batch, GroupAttributes, Phases
from groupsvc.errors import Failed, OutcomeUnknown
from groupsvc.machines import CHECKPOINT, Since
from groupsvc.positions import Position
from groupsvc.sansio import asking
from groupsvc.sansio.event_buffer import EventBuffer
from groupsvc.sansio.membership_machine import Membership
from groupsvc.voting import MANUAL, Answer, Proposal
from groupsvc.voting_words import Vote
from groupsvc.wire.limits import EVENTS_MAX

from .application import Application, Part, outcome_of
from .application_lines import text
from .application_ops import AT_BARRIERS
from .application_tables import SimulatedTable
from .application_votes import cast, cast_astray

if TYPE_CHECKING:
    from .applications import Applications

CALLS_MAX = 6
"""Calls that one application has open."""

BALLOTS = {"phases": None, "time_limit": None, "on_busy": "queue"}


class Deeds:
    """What all applications of a world do."""

    def __init__(self, applications: Applications, rng: random.Random) -> None:
        self.all = applications
        self.rng = rng
        habits = applications.habits
        self.kinds_rng = random.Random(f"{applications.world.seed}/kinds of groups of applications")
        self.attributes = {f"apps-{number}": self._draw_attributes() for number in range(habits.groups)}
        self.table_rng = random.Random(f"{applications.world.seed}/tables")
        self.tables = {name for name in self.attributes if self.table_rng.random() < habits.tables}
        self._deeds = (
            (20, self._propose_state), (6, self._send), (22, self._multicast), (6, self._flush), (5, self._leave),
            (3, self._goodbye), (3, self._expel), (4, self._change_attributes), (7, self._catch_up),
            (3, self._ask_outcome), (1, self._ask_groups), (2, self._ask_why), (3, self._submit_outside),
            (8, self._come), (2, self._close),
        )  # fmt: skip
        self._weights = [weight for weight, _ in self._deeds]

    def _draw_attributes(self) -> GroupAttributes:
        rng = self.rng
        durable = rng.random() < 0.15
        replicas = rng.choice([1, 2, 3, 3])

        def phases() -> Phases:
            return rng.choice([Phases.ONE, Phases.N])

        drawn: dict[str, Any] = {
            "batch": rng.choice([Batch.NONE, Batch.NONE, Batch.JOINS, Batch.LEAVES, Batch.BOTH]),
            "batch_window": rng.choice([0.02, 0.3]), "join_phases": phases(), "leave_phases": phases(),
            "failure_phases": phases(), "state_phases": phases(), "message_phases": phases(),
            "default_vote": rng.choice([Vote.APPROVE, Vote.APPROVE, Vote.REJECT]),
            "time_limit": rng.choice([0.7, 2.0, 5.0]),
            "replicas": replicas, "commit_k": rng.randint(1, replicas) if rng.random() < 0.3 else None,
            "checkpoint_every": rng.choice([3, 20, 50_000]), "durable": durable,
            "on_quorum_lost": None if durable else "dissolve",
        }  # fmt: skip
        return GroupAttributes(**{**drawn, **self._draw_kind(durable)})

    def _draw_kind(self, durable: bool) -> dict[str, Any]:
        """What else a group is; from a stream of its own, so that all other choices are what they were without."""
        rng, habits = self.kinds_rng, self.all.habits
        kind: dict[str, Any] = {}
        exclusive, fast, continues = (rng.random() for _ in range(3))
        if exclusive < habits.exclusive:
            kind["exclusive"] = True
        if fast < habits.fast and not durable:
            kind["delivery"] = "fast"
        if continues < habits.continues and not durable:
            kind["on_quorum_lost"] = "continue"
        return kind

    # --- The next deed ---

    def next(self, app: Application) -> None:
        """One deed, if its own clock lets it."""
        rng, machine = self.rng, app.machine
        if machine is None:
            app.open_session()
            return
        if self.all.quiet or not app.may_act or len(app.open_calls) - _beside(app) >= CALLS_MAX:
            return
        providers = [part for part in app.parts.values() if part.is_ready]
        if not providers:
            self._come(app, providers)
        else:
            deed = rng.choices(self._deeds, self._weights)[0][1]
            deed(app, providers)
        app.turn()

    def _timeout(self) -> float:
        return self.rng.choice([0.3, 1.0, 3.0, 6.0]) * (0.5 + self.rng.random())

    def _group(self) -> str:
        return f"apps-{self.rng.randrange(self.all.habits.groups)}"

    def _how(self) -> dict[str, Any]:
        rng = self.rng
        return {
            "phases": rng.choice([None, None, None, Phases.ONE, Phases.N, 2, 3]),
            "time_limit": rng.choice([None, None, None, 0.5, 3.0]),
            "on_busy": rng.choice(["queue", "queue", "queue", "fail"]),
        }

    @staticmethod
    def _in_words(how: dict[str, Any]) -> dict[str, Any]:
        phases = how["phases"]
        return {**how, "phases": phases.value if isinstance(phases, Phases) else phases}

    # --- Coming and going ---

    def _come(self, app: Application, providers: list[Part]) -> None:
        if self.rng.random() < self.all.habits.watch:
            self._subscribe(app)
        elif sum(part.is_provider and part.is_open for part in app.parts.values()) < self.all.habits.parts_max:
            self._join(app)

    def _buffer(self) -> EventBuffer:
        return EventBuffer(self.rng.choice([EVENTS_MAX, EVENTS_MAX, EVENTS_MAX, 40, 12]))

    def _join(self, app: Application) -> None:
        rng, machine, group = self.rng, app.machine, self._group()
        assert machine is not None
        votes = rng.choice(["itself", "read", "ask", "ask"])
        on_proposal = {"itself": None, "read": MANUAL, "ask": _asked}[votes]
        buffer = self._buffer()
        create = rng.choice([None, None, None, None, None, None, True, False])
        app.values += 1
        name, data = f"{app.name}#{app.values}", app.new_value()
        table, since = self._begins_with(app, group)
        kept = 0 if table is None else table.group
        # Every other one knows nothing of positions; that is as good, as long as its process lives.
        said = since.seq if isinstance(since, Position) and since.seq % 2 else since
        start = asking.join(
            machine, group, name=name, attributes=self.attributes[group], create=create, data=data,
            on_proposal=on_proposal, events=True, machine_of=table, since=said,
        )  # fmt: skip

        def ends(verdict: str, result: Any) -> dict[str, Any]:
            if isinstance(result, OutcomeUnknown):
                self.all.came_too_late.add(name)
            if isinstance(since, Position) and type(result) is Failed:
                self.all.mark("app-not-kept")
            if verdict != "ok":
                return {}
            assert isinstance(result, Membership)
            if kept:
                self.all.mark("app-table-goes-on")
            return app.began(app.enter(result, votes, buffer, table))

        args: dict[str, Any] = {"name": group, "as": name, "data": text(data), "votes": votes, "create": create}
        if isinstance(since, Position):
            args["since"], args["since_in"] = since.seq, since.numbering[0]
        elif since is not None:
            args["since"] = since if isinstance(since, int) else since.value
        if table is not None:
            args["table"] = kept
        app.call("join_group", start, args, self._timeout(), ends)

    def _begins_with(self, app: Application, group: str) -> tuple[SimulatedTable | None, Since | Position | int | None]:
        """The table that it brings, if any, and since when it wants to know; a kept one goes on where it stands."""
        rng = self.table_rng
        if group in self.tables:
            kept = app.kept_tables.pop(group, None) if rng.random() < 0.5 else None
            return (SimulatedTable(), None) if kept is None else (kept, kept.at)
        if rng.random() >= self.all.habits.earlier:
            return None, None
        return None, app.read_upto.get(group, CHECKPOINT) if rng.random() < 0.7 else CHECKPOINT

    def payload(self, part: Part, name: str) -> bytes:
        """A message of this part; if it keeps a table, a write."""
        return name.encode() if part.table is None else part.table.next_write(name, self.table_rng)

    def _subscribe(self, app: Application) -> None:
        machine, group = app.machine, self._group()
        assert machine is not None
        buffer = self._buffer()

        def ends(verdict: str, result: Any) -> dict[str, Any]:
            return app.began(app.enter(result, "", buffer)) if verdict == "ok" else {}

        start = asking.subscribe(machine, group, wait=self.rng.choice([0.0, 2.0]))
        app.call("subscribe_group", start, {"name": group}, self._timeout(), ends)

    def _leave(self, app: Application, providers: list[Part]) -> None:
        part, code = self.rng.choice(providers), self.rng.randrange(3)
        assert app.machine is not None
        start = asking.leave(app.machine, part.membership, code)
        app.call("leave_group", start, {"m": part.m, "code": code}, self._timeout(), outcome_of, group=part.group)

    def _goodbye(self, app: Application, providers: list[Part]) -> None:
        part = self.rng.choice([*providers, *app.parts.values()])
        assert app.machine is not None
        app.read_all()
        if not part.is_open:
            return
        start = asking.goodbye(app.machine, part.membership)
        app.call("say_goodbye", start, {"m": part.m}, self._timeout(), _nothing, group=part.group)

    def _close(self, app: Application, providers: list[Part]) -> None:
        if self.rng.random() < 0.3:
            app.close()

    # --- Proposals ---

    def _propose_state(self, app: Application, providers: list[Part]) -> None:
        rng, part, how = self.rng, self.rng.choice(providers), self._how()
        assert app.machine is not None
        value = app.new_value()
        version = None
        if rng.random() < 0.5:
            version = max(0, part.membership.view.state_version - (rng.random() < 0.1))
        start = asking.propose_state(app.machine, part.membership, value, version, **how)
        args = {"m": part.m, "value": text(value), "if_version": version, **self._in_words(how)}
        app.call("propose_state", start, args, self._timeout(), outcome_of, group=part.group)

    def _send(self, app: Application, providers: list[Part]) -> None:
        part, how, payload = self.rng.choice(providers), self._how(), app.new_value()
        assert app.machine is not None
        start = asking.send(app.machine, part.membership, payload, **how)
        args = {"m": part.m, "payload": text(payload), **self._in_words(how)}
        app.call("send_by_ballot", start, args, self._timeout(), outcome_of, group=part.group)

    def _expel(self, app: Application, providers: list[Part]) -> None:
        part = self.rng.choice(providers)
        assert app.machine is not None
        others = [one for one in part.membership.view.providers if one != part.membership.me]
        if not others:
            return
        target = self.rng.choice(others)
        start = asking.expel(app.machine, part.membership, (target.id,), "for the exercise", **BALLOTS)
        args = {"m": part.m, "targets": [target.id]}
        app.call("expel", start, args, self._timeout(), outcome_of, group=part.group)

    def _change_attributes(self, app: Application, providers: list[Part]) -> None:
        rng, part = self.rng, self.rng.choice(providers)
        assert app.machine is not None
        changes: dict[str, object] = rng.choice([
            {"time_limit": rng.choice([0.6, 1.5, 4.0])}, {"state_phases": rng.choice([Phases.ONE, Phases.N])},
            {"batch": rng.choice([Batch.NONE, Batch.JOINS, Batch.BOTH])},
        ])  # fmt: skip
        start = asking.change_attributes(app.machine, part.membership, changes)
        args = {"m": part.m, "changes": sorted(changes)}
        app.call("change_attributes", start, args, self._timeout(), outcome_of, group=part.group)

    # --- Messages and questions ---

    def _multicast(self, app: Application, providers: list[Part]) -> None:
        app.multicast(self.rng.choice(providers), 1 + self.rng.randrange(self.all.habits.burst))

    def _flush(self, app: Application, providers: list[Part]) -> None:
        app.flush(self.rng.choice(providers), self._timeout())

    def _submit_outside(self, app: Application, providers: list[Part]) -> None:
        assert app.machine is not None
        group, payload = self._group(), app.new_value()
        start = asking.submit(app.machine, group, payload)
        app.call("submit_outside", start, {"name": group, "payload": text(payload)}, self._timeout(), _nothing)

    def _catch_up(self, app: Application, providers: list[Part]) -> None:
        part = self.rng.choice([*providers, *(part for part in app.parts.values() if part.is_open)])
        assert app.machine is not None

        def ends(verdict: str, result: Any) -> dict[str, Any]:
            if verdict != "ok":
                return {}
            app.read_all()
            return {"seq": result, "version": part.membership.view.state_version}

        start = asking.sync(app.machine, part.membership)
        app.call("catch_up", start, {"m": part.m}, self._timeout(), ends, group=part.group)

    def _ask_outcome(self, app: Application, providers: list[Part]) -> None:
        part = self.rng.choice(providers)
        known = self.all.proposals.get(part.group)
        assert app.machine is not None
        if known:
            proposal = self.rng.choice(known)
            start = asking.outcome(app.machine, part.membership, proposal)
            args = {"m": part.m, "proposal": proposal}
            app.call("ask_outcome", start, args, self._timeout(), outcome_of, group=part.group)

    def _ask_groups(self, app: Application, providers: list[Part]) -> None:
        assert app.machine is not None
        app.call("ask_groups", asking.groups(app.machine), {}, self._timeout(), _nothing)

    def _ask_why(self, app: Application, providers: list[Part]) -> None:
        assert app.machine is not None
        group = self._group()
        app.call("ask_why", asking.why(app.machine, group), {"name": group}, self._timeout(), _nothing)

    # --- Votes ---

    def asked(self, app: Application, part: Part, proposal: Proposal) -> None:
        """A vote of this part is due: now, later, or never."""
        me = part.membership.me
        if me is None or me.id not in {one.id for one in proposal.electorate}:
            return
        rng = self.rng
        if self.all.quiet:
            self._vote(app, (part, proposal, Answer(Vote.APPROVE)))
            return
        if rng.random() < 0.04:
            return
        delay = 0.0 if rng.random() < 0.6 else rng.expovariate(2.0)
        if rng.random() < 0.04:
            delay = proposal.time_limit * (0.9 + 0.2 * rng.random())
        answer = None if rng.random() < 0.05 and part.votes == "ask" else self._answer(app)
        world = app.world
        world.push(world.t + delay, self._vote_later, (app, app.life), (part, proposal, answer))

    def _answer(self, app: Application) -> Answer:
        rng = self.rng
        vote = rng.choices([Vote.APPROVE, Vote.CONTINUE, Vote.REJECT], [80, 10, 10])[0]
        return Answer(
            vote,
            state=app.new_value() if rng.random() < 0.08 else None,
            message=app.new_value() if rng.random() < 0.08 else None,
            default_vote=rng.choice([Vote.APPROVE, Vote.REJECT]) if rng.random() < 0.04 else None,
        )

    def _vote_later(self, whose: tuple[Application, int], what: tuple[Part, Proposal, Answer | None]) -> None:
        app, life = whose
        if app.life != life or not what[0].is_open or app.machine is None:
            return
        if not app.may_act:
            app.world.push(app.world.t + 0.2, self._vote_later, whose, what)
            return
        self._vote(app, what)

    def _vote(self, app: Application, what: tuple[Part, Proposal, Answer | None]) -> None:
        part, proposal, answer = what
        if self.all.quiet and not app.may_act:
            app.world.push(app.world.t + 0.2, self._vote_later, (app, app.life), what)
            return
        cast(app, part, proposal, answer)
        if self.rng.random() < 0.1 and part.is_open and app.machine is not None and not self.all.quiet:
            ballot, phase = proposal.ballot, proposal.phase
            ballot, phase = self.rng.choice([(ballot, phase), (ballot, phase + 1), (max(ballot - 1, 0), phase)])
            cast_astray(app, part, ballot, phase, Answer(Vote.REJECT, state=app.new_value()))


def _asked(proposal: Proposal) -> object:
    raise AssertionError("the simulator asks itself")


def _nothing(verdict: str, result: Any) -> dict[str, Any]:
    return {}


def _beside(app: Application) -> int:
    """Calls that wait beside the others: multicasts, and at barriers."""
    multicasts = sum(len(part.sent) for part in app.parts.values())
    return multicasts + sum(op in AT_BARRIERS for op, _ in app.open_calls.values())
