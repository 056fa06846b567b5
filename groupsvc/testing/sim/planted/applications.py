"""Planted where applications meet groups: in ballots, in sessions, and in the client library.

Each checker of what applications are told has a bug here that it is the one to see. The stage is a small world with
half a dozen applications in one group.
"""

from __future__ import annotations

from typing import Any

import attrs
from msgspec.structs import replace

from groupsvc import machines, positions, tables
from groupsvc.sansio import asking, own_messages
from groupsvc.wire import notices
from groupsvc.wire.client_messages import CaughtUp, OutcomeIs
from groupsvcd.core.groups import (
    archive,
    ballot_box,
    chair,
    commands,
    local_group,
    process_group,
    process_groups,
    rules,
)
from groupsvcd.core.groups.ballots import Verdict
from groupsvcd.core.sessions import desk, inquiries, membership, proposals, sessions, subscription, tellings

from ..applications import ApplicationHabits
from ..plan import Plan
from .bug import Planted, Stage, instead, property_of
from .group_recovery import always


@attrs.frozen(kw_only=True)
class ApplicationStage(Stage):
    """A small world with applications, and nobody else."""

    applications: ApplicationHabits = ApplicationHabits(
        count=6, groups=1, think_s=0.15, burst=4, watch=0.1, trouble_s=6.0
    )

    def plan(self, seed: int, faults: tuple[str, ...]) -> Plan:
        """The plan of a seed on this stage."""
        plan = super().plan(seed, faults)
        nobody = attrs.evolve(plan.group_habits, groups=0, members=0, strangers=0)
        return attrs.evolve(plan, group_habits=nobody, application_habits=self.applications)


BUSY = ApplicationStage(nodes=4, seconds=12.0)
"""Applications that have troubles of their own."""

TABLES = attrs.evolve(BUSY, applications=attrs.evolve(BUSY.applications, tables=1.0))
"""Applications that keep a table."""

CALM = attrs.evolve(BUSY, applications=attrs.evolve(BUSY.applications, trouble_s=0.0))
"""And some that have none."""

FREEZING = attrs.evolve(
    BUSY, seconds=25.0, applications=attrs.evolve(BUSY.applications, trouble_s=4.0, troubles=("app-stop",))
)
"""And some that are stopped now and then, often for longer than it takes to be called unresponsive."""

EXCLUSIVE = attrs.evolve(FREEZING, applications=attrs.evolve(FREEZING.applications, exclusive=1.0))
"""The same, and each may hold something alone."""

STUCK = attrs.evolve(
    CALM, weather=attrs.evolve(CALM.weather, loss=0.3), applications=attrs.evolve(CALM.applications, stuck_s=0.5)
)
"""And some whose code that answers is stuck most of the time, in a network that loses much."""

COMING_AND_GOING = attrs.evolve(
    CALM,
    applications=attrs.evolve(CALM.applications, count=2, groups=1, parts_max=4, watch=0.6, think_s=0.05),
)
"""And two that come and go all the time, so that often nobody is left."""


# --- Ballots ---


def _another_view_at(node: str) -> Any:
    def wrong(original: Any, self: Any, notices_: list[Any]) -> None:
        if self._groups.me[0] == node:
            notices_ = [one for one in notices_ if not isinstance(one, notices.StateChanged)]
        original(self, notices_)

    return always(wrong)


def _one_more_phase(original: Any, session_: Any, ask: Any) -> None:
    part = proposals.provider_of(session_, ask.id, ask.member)
    if part is not None and part.local is not None:
        found = part.local.group.ledger.find(ask.proposal)
        if found is not None:
            seq, outcome = found
            told = replace(outcome, phases=outcome.phases + 1)
            session_.tell(OutcomeIs(ask.id, ask.proposal, seq, told))
            return
    original(session_, ask)


def _any_vote_counts(original: Any, self: Any, running: Any, node: Any, ballot: int, phase: int, paper: Any) -> Any:
    self._papers.pop(paper.provider, None)
    return original(self, running, node, ballot, phase, paper)


def _early_votes_are_kept(
    original: Any, self: Any, running: Any, node: Any, ballot: int, phase: int, paper: Any
) -> Any:  # fmt: skip
    if running is not None and (ballot, phase) == (running.id, running.phase + 1):
        self.early = {**getattr(self, "early", {}), (ballot, phase, paper.provider): paper}
    return original(
        self, running, node, ballot, phase, getattr(self, "early", {}).get((ballot, phase, paper.provider), paper)
    )


def _late_at_once(original: Any, self: Any, ballot: Any, *, is_late: bool) -> Any:
    return original(self, ballot, is_late=is_late or any(said.papers for said in self._said.values()))


def _nobody_is_silent(original: Any, self: Any, ballot: Any, *, is_late: bool) -> Any:
    silent, self._group.unresponsive = self._group.unresponsive, {}
    try:
        return original(self, ballot, is_late=is_late)
    finally:
        self._group.unresponsive = silent


def _was_ever_silent(original: Any, self: Any, provider: Any) -> bool:
    group = self._group
    group.ever_silent = {*getattr(group, "ever_silent", ()), *group.unresponsive}
    return provider in group.ever_silent


def _take_effect_when_opened(original: Any, self: Any, ballot: Any) -> None:
    original(self, ballot)
    if ballot.state is not None and ballot.phase == 1:
        self.state, self.state_version = ballot.state, self.state_version + 1
        self._told.append(notices.StateChanged(self.seq, self.state, self.state_version))


def _joins_first(original: Any, self: Any) -> None:
    while self.ballot is None:
        failing, self.failing = self.failing, {}
        joins = self._joins()
        self.failing = failing
        if joins:
            self._open_joins(joins)
        elif rest := self._rest():
            self._open_rest(rest)
        elif failures := self._failures():
            self._open_failure(failures)
        else:
            break
    if self.has_ended and not self._had_ended:
        self._told.append(notices.Emptied(self.seq))


def _watch_half(original: Any, self: Any, run: Any, group: Any) -> None:
    if group.state_version % 2 == 0:
        run = [notice for notice in run if not isinstance(notice, notices.StateChanged)]
    if run:
        original(self, run, group)


def _any_version(original: Any, self: Any, rest: list[Any]) -> None:
    first = rest[0]
    if isinstance(first.command, commands.ChangeState):
        first = attrs.evolve(first, command=replace(first.command, if_version=-1))
        self.queue[self.queue.index(rest[0])] = first
        rest = [first, *rest[1:]]
    original(self, rest)


def _ghosts_stay(original: Any, self: Any, number: int, cause: Any) -> None:
    if cause != "failure":
        original(self, number, cause)
    else:
        self._processes.pop(number, None)


def _left_again(original: Any, self: Any, subject: Any) -> None:
    original(self, subject)
    self._told += [one for one in self._told if isinstance(one, notices.Left)][-1:]


def _into_what_is_left(original: Any, self: Any, pending: Any) -> None:
    self.has_ended = False
    original(self, pending)


def _fence_of_the_view(original: Any, self: Any, subject: Any) -> None:
    before = self.fence
    original(self, subject)
    self.fence = before


# --- Sessions and the library ---


def _fails_when_late(original: Any, self: Any) -> None:
    self._call.fail("timed out", "not decided in time")


def _join_fails_when_late(original: Any, self: Any) -> None:
    self.end("goodbye")
    self._call.fail("timed out", "not approved in time")


def _tells_again(original: Any, self: Any, seen: int) -> None:
    original(self, max(self._counted, seen - 1))


def _says_first_what_came_last(original: Any, self: Any, member: int, next_id: Any) -> Any:
    return list(reversed(original(self, member, next_id)))


def _is_done_when_sent(original: Any) -> Any:
    return property(lambda self: not self._queue)


def _at_once(original: Any, session_: Any, ask: Any) -> None:
    part = session_.parts.get(ask.member)
    local = getattr(part, "local", None)
    if local is None:
        original(session_, ask)
    else:
        session_.tell(CaughtUp(ask.id, local.group.seq))


def _in_another_name(original: Any, self: Any, seq: int, run: Any, bodies: Any) -> None:
    other = next((one for one in self.group.providers if one[:2] == (run.origin, run.incarnation)), None)
    if other is not None:
        head = commands.message_prefix(other[2])
        bodies = [head + body[len(head) :] for body in bodies]
    original(self, seq, run, bodies)


def _rules_of_its_own(original: Any, self: Any, local: Any) -> Any:
    return {} if self.me[0] == "n2" else original(self, local)


# --- Tables, and what came before ---


def _without_the_last_row(original: Any, self: Any) -> Any:
    rows = dict(self._rows)
    self._rows = dict(sorted(rows.items())[:-1]) if len(rows) > 1 else rows
    blocks = list(original(self))
    self._rows = rows
    return blocks


def _one_too_few(original: Any, self: Any, seq: int) -> Any:
    return list(original(self, seq))[1:]


def _seal_without_dropping(original: Any, self: Any, seq: int, provider: Any, at: int, count: int) -> bool:
    tail, size = self._tail.copy(), self._bytes
    is_new = bool(original(self, seq, provider, at, count))
    if is_new:
        self._tail, self._bytes = tail, size
    return is_new


def _from_the_beginning(original: Any, self: Any, seq: int = 0) -> None:
    original(self)


APPLICATIONS = (
    Planted(
        "app-a-node-goes-by-other-rules", "one node takes every proposal for one of a single phase", "not one story",
        ("G1", "G3", "engine"), ((process_groups.ProcessGroups, "attributes_of", always(_rules_of_its_own)),),
        stage=CALM, first_seed=1,
    ),
    Planted(
        "app-the-dead-never-have-a-turn", "a death is announced, and never dealt with", "a provider that nobody is",
        ("V7",), ((process_group.ProcessGroup, "_failures", instead(lambda self: [])),), stage=BUSY,
    ),
    Planted(
        "app-a-node-keeps-things-to-itself", "one node tells its members only a part", "not one story for all",
        ("G1",), ((local_group.LocalGroup, "_tell", _another_view_at("n2")),), stage=CALM,
    ),
    Planted(
        "app-outcome-by-memory", "who asks how it ended is told something like it", "two outcomes of one ballot",
        ("G2",), ((inquiries, "outcome", always(_one_more_phase)),), stage=CALM,
    ),
    Planted(
        "app-tally-forgets-rejections", "a rejection counts as an approval", "approved against a vote",
        ("G3",), ((process_group, "verdict_of", instead(lambda votes, phase, phases: Verdict.APPROVED)),), stage=CALM,
    ),
    Planted(
        "app-last-vote-counts", "who votes twice has changed its mind", "a vote that nobody may cast is counted",
        ("G4",), ((ballot_box.BallotBox, "take", always(_any_vote_counts)),), stage=CALM, first_seed=1,
    ),
    Planted(
        "app-early-votes-count", "a vote for the next phase is kept until that is open", "it was cast in no phase",
        ("G4",), ((ballot_box.BallotBox, "take", always(_early_votes_are_kept)),), stage=CALM, first_seed=7,
    ),
    Planted(
        "app-first-votes-decide", "who has not voted when others have is late", "defaults before the time is over",
        ("G5",), ((chair.Chair, "_casts", always(_late_at_once)),), stage=CALM,
    ),
    Planted(
        "app-the-silent-are-waited-for", "who does not answer has until the time limit", "a hung program holds all up",
        ("G5",), ((chair.Chair, "_casts", always(_nobody_is_silent)),), stage=FREEZING,
    ),
    Planted(
        "app-silent-for-ever", "who did not answer once is never asked again", "somebody votes, and is not heard",
        ("G5",), ((chair.Chair, "_is_silent", always(_was_ever_silent)),), stage=FREEZING,
    ),
    Planted(
        "app-the-silent-have-not-voted", "who is said not to answer is voted for at once",
        "it had voted before, and that was lost on its way",
        ("G5",), ((chair.Chair, "_is_silent", instead(lambda self, provider: provider in self._group.unresponsive)),),
        stage=STUCK, first_seed=11,
    ),
    Planted(
        "app-state-before-approval", "a state is shown as soon as it is proposed", "it is shown, and then rejected",
        ("G6",), ((process_group.ProcessGroup, "_open_phase", always(_take_effect_when_opened)),), stage=CALM,
    ),
    Planted(
        "app-failures-wait", "the dead are dealt with when nobody else waits", "somebody joins among ghosts",
        ("G7",), ((process_group.ProcessGroup, "_take_turns", always(_joins_first)),), stage=BUSY, first_seed=73,
    ),
    Planted(
        "app-subscribers-miss-half", "a subscriber is told every other change", "it has another idea of the group",
        ("G8",), ((subscription.Subscription, "told", always(_watch_half)),),
        stage=attrs.evolve(CALM, applications=attrs.evolve(CALM.applications, watch=0.4)),
    ),
    Planted(
        "app-any-version-will-do", "a state is changed over whatever version there is", "a lost update",
        ("G9",), ((process_group.ProcessGroup, "_open_rest", always(_any_version)),), stage=CALM,
    ),
    Planted(
        "app-leaves-twice", "a leave is told once for the ballot and once for the list", "somebody leaves twice",
        ("G10",), ((process_group.ProcessGroup, "_remove", always(_left_again)),), stage=CALM,
    ),
    Planted(
        "app-the-end-is-not-the-end", "a group goes on if somebody comes before it is dropped",
        "who is in it is in one that has ended",
        ("G10",), ((process_group.ProcessGroup, "_propose", always(_into_what_is_left)),
                   (local_group.LocalGroup, "has_ended", property_of(lambda self: False))),
        stage=COMING_AND_GOING, first_seed=2,
    ),
    Planted(
        "app-ghosts-stay", "the end of a process is not told", "a provider that nobody is",
        ("G10", "V7"), ((local_group.LocalGroup, "is_no_more", always(_ghosts_stay)),), stage=BUSY,
    ),
    Planted(
        "app-late-is-failed", "what is not decided in time has failed", "it failed, and happens later",
        ("K1",), ((proposals.Proposing, "_is_late", always(_fails_when_late)),), stage=CALM,
    ),
    Planted(
        "app-late-join-has-failed", "a join that is withdrawn has failed", "it failed, and others saw it come and go",
        ("K1",), ((membership.Membership, "_is_late", always(_join_fails_when_late)),),
        faults=("isolate-one", "lost-multicasts"), stage=attrs.evolve(CALM, seconds=20.0), first_seed=1,
    ),
    Planted(
        "app-told-again", "a resumed session is told its last thing once more", "an entry is told twice",
        ("G1", "B1", "B5", "K1", "K2", "driver"), ((tellings.Tellings, "connect", always(_tells_again)),), stage=BUSY,
    ),
    Planted(
        "app-believes-for-ever", "a node vouches for its sessions whether it has a lease or not",
        "they act while others have taken over",
        ("K2",), ((desk.Desk, "good_for", property_of(lambda self: 60.0)),
                  (sessions.Sessions, "look", instead(lambda self: self.desk.hosts.look()))),
        faults=("isolate-one",), stage=attrs.evolve(CALM, seconds=20.0),
    ),
    Planted(
        "app-speaks-in-another-name", "a message is shown as of the oldest of its node", "somebody else said it",
        ("B1",), ((local_group.LocalGroup, "_hear", always(_in_another_name)),), stage=CALM,
    ),
    Planted(
        "app-last-first", "what gathers goes out in any order", "not as it was sent",
        ("B5",), ((own_messages, "FRAME_BYTES_USUAL", instead(20)),
                  (own_messages.OwnMessages, "requests", always(_says_first_what_came_last))),
        stage=attrs.evolve(CALM, applications=attrs.evolve(CALM.applications, burst=12)),
    ),
    Planted(
        "app-flush-is-sent", "a flush ends when everything was sent", "it may never come back",
        ("B5",), ((own_messages.OwnMessages, "is_idle", _is_done_when_sent),), stage=CALM,
    ),
    Planted(
        "app-catches-up-at-once", "a node believes that it has everything", "it has not what was ordered before",
        ("B5", "G9"), ((inquiries, "catch_up", always(_at_once)),),
        faults=("lost-multicasts", "isolate-one"), stage=CALM, first_seed=5,
    ),
    Planted(
        "app-fence-stays", "who leaves does not change the fence", "an old holder has the fence of the new one",
        ("L6",), ((process_group.ProcessGroup, "_remove", always(_fence_of_the_view)),), stage=CALM,
    ),
    Planted(
        "app-down-is-gone", "who failed with its node is out at once", "it held something alone, and does not know yet",
        ("L6",), ((rules.Rules, "exclusive", property_of(lambda self: False)),),
        faults=("kill", "kill-group-leader"), stage=EXCLUSIVE, first_seed=39,
    ),
    Planted(
        "app-checkpoint-without-a-row", "a checkpoint has all rows but one", "who begins with it lacks that row",
        ("G11",), ((tables.Rows, "snapshot", always(_without_the_last_row)),), stage=TABLES,
    ),
    Planted(
        "app-tail-begins-late", "the messages since a checkpoint begin with the second", "a write is not applied",
        ("G11",), ((archive.Archive, "since", always(_one_too_few)),), stage=TABLES,
    ),
    Planted(
        "app-tail-is-kept", "the messages that a checkpoint has are kept, in case", "memory without a bound",
        ("X1",), ((archive.Archive, "seal", always(_seal_without_dropping)),),
        stage=attrs.evolve(TABLES, seconds=20.0),
    ),
    Planted(
        "app-table-of-before", "an archive that begins anew forgets where", "a table has rows from before all had left",
        ("G11",), ((archive.Archive, "__init__", always(_from_the_beginning)),),
        stage=attrs.evolve(TABLES, applications=attrs.evolve(TABLES.applications, count=2)), first_seed=5,
    ),
    Planted(
        "app-table-of-another-group", "a number says by itself after which entry a table stands",
        "a table has rows of an earlier group of that name",
        ("G11",), ((machines.Homes, "of", instead(lambda self, machine: positions.NOT_KNOWN)),),
        stage=attrs.evolve(TABLES, applications=attrs.evolve(TABLES.applications, count=2)), first_seed=5,
    ),
    Planted(
        "app-number-of-another-group", "a number says by itself after which entry messages are wanted",
        "who was in an earlier group of that name skips what came first in this one",
        ("G1",), ((asking, "since_numbering", instead(lambda *_: positions.NOT_KNOWN)),),
        stage=attrs.evolve(BUSY, applications=attrs.evolve(BUSY.applications, count=2, watch=0.0, earlier=1.0)),
        first_seed=5,
    ),
    Planted(
        "app-earlier-messages-but-one", "who asks for earlier messages is told all but the first", "one is missing",
        ("G1",), ((local_group.LocalGroup, "messages_since", always(_one_too_few)),),
        stage=attrs.evolve(CALM, applications=attrs.evolve(CALM.applications, earlier=1.0)), first_seed=1,
    ),
)  # fmt: skip
