"""Simulated applications: they use the library's own machine, live and die, and do no more than they may."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import attrs
import pytest

from groupsvc.sansio import asking, counting
from groupsvc.sansio.session_machine import StateDue, VoteDue
from groupsvc.session_states import SessionState
from groupsvc.testing.sim.application import Application, Part, outcome_of
from groupsvc.testing.sim.application_votes import cast_astray
from groupsvc.testing.sim.applications import ApplicationHabits
from groupsvc.testing.sim.bounds import left_over
from groupsvc.testing.sim.checkers import check
from groupsvc.testing.sim.checkers.application_stories import Stories
from groupsvc.testing.sim.checkers.group_streams import split
from groupsvc.testing.sim.convergence import converge
from groupsvc.testing.sim.plan import Plan, draw, draw_domain
from groupsvc.testing.sim.planted.applications import BUSY, CALM
from groupsvc.testing.sim.trial import run_plan, run_seed
from groupsvc.testing.sim.world import World
from groupsvc.voting import Answer
from groupsvc.voting_words import Vote
from groupsvc.wire.client_messages import JoinedAs
from groupsvc.wire.history import HistoryEvent
from groupsvc.wire.limits import GRACE_S
from groupsvc.wire.notices import GroupView
from groupsvcd.core.sessions import tellings
from groupsvcd.core.sessions.session import Session

FAULTS = ("kill", "isolate-one", "kill-group-leader")

ENEMIES = (
    "kill", "pause", "isolate-one", "halves", "one-way", "flap", "kill-group-leader", "isolate-group-leader",
    "pause-group-leader", "lost-multicasts", "bad-weather", "kill-group-servers", "power-loss-one",
)  # fmt: skip


def _lines(world: World) -> list[HistoryEvent]:
    return split(world.history.events()).applications


def test_every_call_has_exactly_one_end_whatever_befalls_its_process() -> None:
    """K1."""
    world, trial = run_plan(BUSY.plan(3, FAULTS))
    assert () == trial.failures
    calls = [line for line in _lines(world) if line.type != "event"]
    begun = Counter((line.who, line.args["id"]) for line in calls if line.type == "invoke")
    ended = Counter((line.who, line.args["id"]) for line in calls if line.type != "invoke")
    assert begun == ended
    assert {1} == set(begun.values())
    assert {"invoke", "ok", "fail", "info"} == {line.type for line in calls}


@pytest.mark.parametrize("seed", range(12))
def test_all_are_told_the_same_and_every_ballot_ends(seed: int) -> None:
    """G1-G7, G10, GS-26, GS-30; what is proposed is decided, whoever dies meanwhile."""
    enemies = tuple(ENEMIES[(seed * 7 + number * 3) % len(ENEMIES)] for number in range(3))
    habits = attrs.evolve(BUSY.applications, groups=1 + seed % 2, think_s=(0.1, 0.3, 0.6)[seed % 3])
    world, trial = run_plan(attrs.evolve(BUSY, nodes=5, gap_s=2.0, applications=habits).plan(seed, enemies))
    assert () == trial.failures
    assert trial.converged
    assert any(line.op == "told" and line.args["kind"] == "ended" for line in _lines(world))


def test_who_watches_changes_nothing() -> None:
    """G8: the same run with and without subscribers has the same ballots, told in the same words."""
    plan = _scripted(5)
    told = []
    for watchers in (0, 3):
        world = World(plan.seed, 3, voters=3, drift=False)
        told.append(_ballots(world, watchers))
    assert told[0] == told[1]
    assert any("ended" in one for one in told[0])


def _scripted(seed: int) -> Plan:
    return attrs.evolve(draw_domain(seed), voters=3, nodes=3, faults=(), parameters_of={})


def _ballots(world: World, watchers: int) -> list[tuple[object, ...]]:
    """Two applications propose by a script; so many others watch, on the same nodes."""
    apps = world.applications
    apps.deeds.attributes["apps-0"] = attrs.evolve(apps.deeds.attributes["apps-0"], durable=False)
    world.run(until=2.0)
    actors = [apps.at(world.nodes[name], f"actor-{name}") for name in ("n1", "n2")]
    watching = [apps.at(world.nodes["n1"], f"watcher-{number}") for number in range(watchers)]
    chance = random.Random(7)
    for app in (*actors, *watching):
        app.open_session()
    world.run(until=3.0)
    for app in actors:
        _as_script(world, lambda app=app: apps.deeds._join(app), chance)  # type: ignore[misc]
        world.run(until=world.t + 1.0)
    for app in watching:
        apps.deeds.rng = random.Random("watching")
        apps.deeds._subscribe(app)
        app.turn()
    world.run(until=6.0)
    for _ in range(20):
        app = actors[chance.randrange(2)]
        providers = [part for part in app.parts.values() if part.is_provider and part.is_open]
        if providers and app.may_act:
            _as_script(world, lambda: apps.deeds._propose_state(app, providers), chance)  # noqa: B023
            app.turn()
        world.run(until=round(world.t + 0.5, 3))
    stories = Stories(_lines(world))
    found = []
    for line in stories.lines:
        if line.op == "told" and line.who == "actor-n1":  # but for ids: subscriptions are numbered, too
            full = stories.of(line)
            votes = [vote[1:] for vote in full.get("votes", ())]
            found.append((line.seq, str(line.args["kind"]), full.get("state"), full.get("approved"), votes))
    return found


def _as_script(world: World, deed: object, chance: random.Random) -> None:
    """A deed whose chances do not depend on what others draw; votes are cast at once."""
    deeds = world.applications.deeds
    deeds.rng = random.Random(chance.randrange(1 << 30))
    world.applications.quiet = True
    assert callable(deed)
    deed()


def _in_its_first_phase(monkeypatch: pytest.MonkeyPatch) -> tuple[World, Application, Part, int]:
    """An application that proposed a state, and has not voted on it yet; last its ballot."""
    world = World(5, 3, voters=3, drift=False)
    apps = world.applications
    apps.deeds.attributes["apps-0"] = attrs.evolve(apps.deeds.attributes["apps-0"], durable=False, time_limit=5.0)
    monkeypatch.setattr(apps.deeds, "asked", lambda *_: None)
    world.run(until=2.0)
    app = apps.at(world.nodes["n1"], "actor")
    app.open_session()
    world.run(until=3.0)
    monkeypatch.setattr(apps.deeds, "rng", _Reader())
    apps.deeds._join(app)
    app.turn()
    world.run(until=5.0)
    (part,) = app.parts.values()
    assert app.machine is not None
    how: dict[str, Any] = {"phases": 2, "time_limit": 5.0, "on_busy": "queue"}
    app.call("propose_state", asking.propose_state(app.machine, part.membership, b"x", None, **how), {
        "m": part.m, "value": "x", "if_version": None, **how
    }, 5.0, outcome_of, group=part.group)  # fmt: skip
    app.turn()
    world.run(until=6.0)
    running = part.membership._proposal
    assert running is not None
    return world, app, part, running.ballot


def test_a_vote_past_the_library_in_an_open_phase_is_no_stray_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """G4: it names the phase that runs and is its provider's first there, so it is counted, and written down so."""
    world, app, part, ballot = _in_its_first_phase(monkeypatch)
    cast_astray(app, part, ballot, 2, Answer(Vote.REJECT))
    cast_astray(app, part, ballot, 1, Answer(Vote.REJECT))
    world.run(until=7.0)
    cast = [line.args for line in _lines(world) if line.op == "vote"]
    votes = [(paper["phase"], [word for word in ("early", "stray") if word in paper]) for paper in cast]
    assert [(1, []), (2, ["stray"])] == votes, "the second is written when it arrives, and phase 1 is open then"
    (ended,) = (line for line in _lines(world) if line.op == "propose_state" and line.type == "ok")
    assert [vote[1:] for vote in ended.result["votes"]] == [["reject", ""]]


def test_a_vote_that_lingers_was_cast_when_it_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """K2: the connection breaks, and it arrives when the session has been suspended by its own clock."""
    world, app, part, ballot = _in_its_first_phase(monkeypatch)
    assert app.connection is not None
    app.connection.break_off(process_after=9.0, daemon_after=4.5, lingers=True)
    cast_astray(app, part, ballot, 2, Answer(Vote.REJECT))
    world.run(until=12.0)
    lines = [line for line in _lines(world) if line.op in ("session", "vote_sent", "vote")]
    assert ["session", "vote_sent", "session", "vote"] == [line.op for line in lines]
    assert "suspended" == lines[2].args["state"]
    found = check(world.history.events(), voters=("n1", "n2", "n3"), converged=False)
    assert [] == [one for one in found if one.invariant == "K2"]


def test_nobody_votes_before_it_is_told_that_its_session_is_connected_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """K2: the answers to two questions came in one frame, the first too late for its question, a vote between them."""
    world, app, part, _ = _in_its_first_phase(monkeypatch)
    monkeypatch.undo()
    machine, proposal = app.machine, part.membership._proposal
    assert machine is not None
    assert proposal is not None
    world.applications.quiet = True
    machine.due.append(StateDue(SessionState.SUSPENDED))
    machine.due.append(VoteDue(part.membership, proposal))
    machine.due.append(StateDue(SessionState.CONNECTED))
    app.turn()
    world.run(until=7.0)
    lines = [line for line in _lines(world) if line.op in ("session", "vote")]
    assert ["connected", "suspended", "connected", 1, 2] == [
        line.args["state"] if line.op == "session" else line.args["phase"] for line in lines
    ]


class _Reader(random.Random):
    """Joins as one that votes when it has read."""

    def choice(self, seq: Any) -> Any:
        return "read" if "read" in seq else seq[0]


def test_nobody_is_asked_to_speak_on_a_connection_that_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """B2: what it says there is lost, and if it notices too late its session is over; so it must have noticed first."""
    world = World(5, 3, voters=3, drift=False)
    apps = world.applications
    apps.deeds.attributes["apps-0"] = attrs.evolve(apps.deeds.attributes["apps-0"], durable=False)
    world.run(until=2.0)
    app = apps.at(world.nodes["n1"], "actor")
    app.open_session()
    world.run(until=3.0)
    monkeypatch.setattr(apps.deeds, "rng", _Reader())
    apps.deeds._join(app)
    app.turn()
    world.run(until=5.0)
    assert app.connection is not None
    assert app.parts
    app.connection.break_off(process_after=GRACE_S + 1.5, daemon_after=0.0, lingers=False)
    apps._think(app)
    assert converge(world), world.failures
    assert 2 == app.session
    assert [] == [line.type for line in _lines(world) if line.op == "flush" and line.type != "ok"]


def test_a_session_that_its_program_has_given_up_is_over_when_its_grace_is() -> None:
    """X1: nobody sees it who only watches, and its end is waited for nevertheless."""
    world = _one_gave_its_session_up()
    assert converge(world), world.failures
    assert [] == list(left_over(world))


def test_a_grace_without_an_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """V7: waiting for it excuses nobody who keeps a session for ever."""
    monkeypatch.setattr(Session, "disconnect", lambda session: setattr(session, "connection", 0))
    world = _one_gave_its_session_up()
    assert not converge(world)
    assert ["V7"] == [failure.invariant for failure in world.failures]
    assert "n1 still keeps session 1 of watcher, which has another one" in world.failures[0].text


def _one_gave_its_session_up() -> World:
    """Its connection broke, and before it noticed its own clock told it that nobody vouches for it any more."""
    world = World(5, 3, voters=3, drift=False)
    apps = world.applications
    world.run(until=2.0)
    app = apps.at(world.nodes["n1"], "watcher")
    app.open_session()
    world.run(until=3.0)
    apps.deeds._subscribe(app)
    app.turn()
    world.run(until=5.0)
    assert app.connection is not None
    assert app.machine is not None
    app.machine.lose("its lease is over")
    app.turn()
    apps._think(app)
    return world


def test_who_comes_and_goes_within_one_step_is_known_to_have_been_in_its_group() -> None:
    """B1: its daemon had much to catch up with, and has no part for it any more when it says that it has joined."""
    world = World(5, 3, voters=3, drift=False)
    world.run(until=2.0)
    app = world.applications.at(world.nodes["n1"], "guest")
    app.open_session()
    assert app.connection is not None
    view = GroupView(3, 1 << 20, (), b"", 0, "approve")
    joined = JoinedAs(1, 14, ("n1", 1, 14), {}, view, numbering=(94, 0))
    world.applications.replied(app.node, app.connection.number, joined, world.t)
    assert 94 == world.applications.group_of(app, 14)


@pytest.mark.parametrize("seed", [300725, 300780])
def test_breaks_that_were_noticed_after_the_healing_stay_green(seed: int) -> None:
    """B2, the check: app-2 was to speak on a connection that it alone believed in."""
    assert () == run_seed(seed).failures


def test_a_stopped_program_costs_its_session_and_nobody_else_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """X1, with limits that a short run can reach; programs that run count often enough for them."""
    monkeypatch.setattr(tellings, "UNCOUNTED_ITEMS_MAX", 200)
    monkeypatch.setattr(tellings, "CROWDED_ITEMS", 60)
    monkeypatch.setattr(counting, "COUNT_EVERY_ITEMS", 5)
    habits = attrs.evolve(BUSY.applications, troubles=("app-stop",), trouble_s=3.0, watch=0.3)
    ended: list[str] = []
    for seed in range(6):
        world, trial = run_plan(attrs.evolve(BUSY, applications=habits).plan(seed, ()))
        assert () == trial.failures
        ended += [str(line.args["why"]) for line in _lines(world) if line.op == "member_ended"]
    assert any("UNCOUNTED" in why for why in ended), "no program was stopped for long enough"


def test_an_entry_is_shown_as_a_whole_however_it_is_cut_into_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """L6, G1: programs that are never sent more than seven things ahead see the same groups as any other."""
    monkeypatch.setattr(tellings, "WINDOW_ITEMS", 7)
    monkeypatch.setattr(counting, "COUNT_EVERY_ITEMS", 3)
    habits = attrs.evolve(BUSY.applications, watch=0.3)
    for seed in range(4):
        _, trial = run_plan(attrs.evolve(BUSY, applications=habits).plan(seed, ()))
        assert () == trial.failures


def test_applications_come_on_top_of_the_plans_of_before() -> None:
    """A seed has the same domain, nodes and enemies as without them."""
    with_them = [draw(seed) for seed in range(40)]
    assert 20 < sum(plan.application_habits.count > 0 for plan in with_them) < 36
    without = attrs.evolve(with_them[3], application_habits=ApplicationHabits())
    assert draw(3).faults == without.faults
    assert draw(3).group_habits == without.group_habits


def test_stories_tell_who_was_told_what() -> None:
    """The checkers read the same groups, members and entries that the applications were in."""
    world, trial = run_plan(CALM.plan(1, ()))
    assert () == trial.failures
    stories = Stories(_lines(world))
    assert 1 <= len([group for group, _ in stories.groups()])
    assert [] == [story.title for story in stories.by_key.values() if not story.group]
    longest = max(stories.by_key.values(), key=lambda story: len(story.told))
    assert len(longest.told) > 50
