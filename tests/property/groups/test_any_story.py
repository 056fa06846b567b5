"""Any sequence of joins, proposals, votes, deaths and changes of the leader: what must hold of process groups.

The tally is checked against a model of its own that knows nothing of the core. A second copy of the group is thrown
away at any moment and restored from a snapshot of the first: it must be told the same from there on.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from groupsvc.wire.notices import AnyNotice, Ended, Failing, Joined, Left, PhaseOpened, Refused, StateChanged
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.chair import Chair
from groupsvcd.core.groups.commands import BY_DEFAULT, Cast, ProviderId
from groupsvcd.core.groups.papers import Paper
from groupsvcd.core.groups.process_group import ProcessGroup
from groupsvcd.core.nodegroups.controls import NodeInserted, NodeRemoved, NodesFailed

NODES = "ABC"
VOTES = st.sampled_from(["approve", "approve", "continue", "reject", None])
PHASES = st.sampled_from([BY_DEFAULT, 0, 1, 2, 3])

STEPS = st.one_of(
    st.tuples(st.just("join"), st.sampled_from(NODES)),
    st.tuples(st.just("join"), st.sampled_from(NODES)),
    st.tuples(st.just("leave"), st.integers(0, 9)),
    st.tuples(st.just("expel"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("state"), st.integers(0, 9), PHASES, st.booleans(), st.integers(-1, 3)),
    st.tuples(st.just("send"), st.integers(0, 9)),
    st.tuples(st.just("say"), st.integers(0, 9)),
    st.tuples(st.just("die"), st.integers(0, 9)),
    st.tuples(st.just("node fails"), st.sampled_from(NODES)),
    st.tuples(st.just("node leaves"), st.sampled_from(NODES)),
    st.tuples(st.just("late join"), st.sampled_from(NODES)),
    st.tuples(st.just("vote"), st.integers(0, 9), VOTES, st.booleans()),
    st.tuples(st.just("vote"), st.integers(0, 9), VOTES, st.booleans()),
    st.tuples(st.just("all vote"), VOTES),
    st.tuples(st.just("time"), st.sampled_from([0.06, 31.0])),
    st.tuples(st.just("another leads"),),
    st.tuples(st.just("restore"),),
)  # fmt: skip

ATTRIBUTES = st.fixed_dictionaries(
    {
        "batch": st.sampled_from(["none", "joins", "leaves", "both"]),
        "default_vote": st.sampled_from(["approve", "reject"]),
        **{
            f"{what}_phases": st.sampled_from(["one", "n"]) for what in ("join", "leave", "failure", "state", "message")
        },
    }
)


def decided(votes: Sequence[str], phase: int, phases: int) -> str:
    """The rules of voting once more, written down by themselves."""
    if votes.count("reject"):
        return "rejected"
    if phases == 0:
        return "goes on" if votes.count("continue") else "approved"
    return "approved" if phase >= phases else "goes on"


class Story:
    """Two copies of one group, the leader's chair, and everything that was told."""

    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        self.now = 0.0
        self.number = 0
        self.incarnations = dict.fromkeys(NODES, 1)
        self.ever: set[ProviderId] = set()
        self.form()

    def node(self, name: str) -> tuple[str, int]:
        """As it runs now."""
        return name, self.incarnations[name]

    def form(self) -> None:
        """A group of that name, with nobody in it."""
        self.group = ProcessGroup(self.attributes)
        self.other = ProcessGroup(self.attributes)
        self.rulings: list[bytes] = []
        self.chair = Chair(self.group, self.rulings.append)
        self.seq = 0
        self.papers: dict[tuple[str, int], dict[int, Paper]] = {}
        self.listed: list[ProviderId] = []
        self.failing: set[ProviderId] = set()
        self.carrying: set[tuple[str, int]] = set()
        self.version = 0
        self.asked: dict[tuple[int, int], PhaseOpened] = {}

    def deliver(self, what: str, *arguments: object) -> None:
        """One entry, to both copies; then the chair looks."""
        self.seq += 1
        had_ended = self.group.has_ended
        told = getattr(self.group, what)(self.seq, *arguments)
        assert not had_ended or all(isinstance(notice, Refused) for notice in told), "something happens after the end"
        assert told == getattr(self.other, what)(self.seq, *arguments)
        assert self.group.snapshot() == self.other.snapshot()
        self.check(told)
        self.look()

    def look(self) -> None:
        """What the chair orders is delivered, sooner or later."""
        self.chair.look(self.now)
        if self.rulings:
            self.papers = {}
            self.deliver("rule", self.rulings.pop(0))

    def check(self, told: list[AnyNotice]) -> None:
        """GS-30, G3, G6, G10."""
        for notice in told:
            if isinstance(notice, Joined):
                ids = [provider.id for provider in notice.providers]
                assert not self.ever & set(ids)  # nobody joins twice under one id
                assert self.carrying >= {id[:2] for id in ids}  # and nobody of whom nobody would say that it is gone
                self.ever |= set(ids)
                self.listed += ids
            elif isinstance(notice, Failing):
                assert notice.provider in self.listed
                assert notice.provider not in self.failing
                self.failing.add(notice.provider)
            elif isinstance(notice, Left):
                for provider in notice.providers:
                    self.listed.remove(provider)  # raises if it was not shown joining, or left before
                    self.failing.discard(provider)
            elif isinstance(notice, StateChanged):
                self.version += 1
                assert self.version == notice.version
            elif isinstance(notice, PhaseOpened):
                assert set(notice.electorate) <= set(self.listed) - self.failing
                assert notice.electorate
                self.asked[notice.ballot, notice.phase] = notice
            elif isinstance(notice, Ended) and notice.outcome.votes:
                self.check_tally(notice)
        assert self.listed == list(self.group.providers)
        assert self.failing == set(self.group.failing)

    def check_tally(self, ended: Ended) -> None:
        outcome = ended.outcome
        asked = self.asked[outcome.ballot, outcome.phases]
        assert asked.electorate == tuple(cast.provider for cast in outcome.votes)
        phases = self.phases_of(asked)
        expected = "approved" if outcome.approved else "rejected"
        assert expected == decided([cast.vote for cast in outcome.votes], outcome.phases, phases)
        explicit = [cast for cast in outcome.votes if not cast.why and cast.vote == "reject"]
        assert bool(explicit) == (outcome.reason == "explicit_reject")

    def phases_of(self, asked: PhaseOpened) -> int:
        """As proposed, or as the group has it: a ballot that was opened is not of one phase."""
        return next((phases for ids, phases in self.proposed.items() if ids in asked.subject.proposals), 0)

    proposed: dict[tuple[str, int, int], int]


def some(listed: Sequence[ProviderId], which: int) -> ProviderId | None:
    """One of them."""
    return listed[which % len(listed)] if listed else None


def play(story: Story, step: tuple[object, ...]) -> None:
    """One step."""
    story.number += 1
    number, group = story.number, story.group
    match step:
        case ("join" | "late join", str(name)):
            node = story.node(name)
            if step[0] == "join" and node not in story.carrying:
                story.carrying.add(node)
                story.deliver("control", NodeInserted(node, number, 0))
            body = cmd.encode(cmd.Join(number, number, BY_DEFAULT, BY_DEFAULT, "", b""))
            story.deliver("apply", node, body)
            if group.has_ended:  # who came too late asks for another one
                story.form()
        case ("another leads",):
            story.chair = Chair(group, story.rulings.append)
            story.rulings.clear()
            story.papers = {}
            story.look()
        case ("restore",):
            story.other = ProcessGroup(story.attributes)
            story.other.restore(group.snapshot())
        case ("time", float(seconds)):
            story.now += seconds
            story.look()
        case ("node fails", str(name)):
            failed = story.node(name)
            story.carrying.discard(failed)
            story.incarnations[name] += 1
            story.deliver("control", NodesFailed((failed,)))
        case ("node leaves", str(name)):
            story.carrying.discard(story.node(name))
            story.deliver("control", NodeRemoved(story.node(name)))
        case ("all vote", vote) if group.ballot is not None:
            for provider in group.ballot.electorate:
                if group.ballot is not None:
                    cast(story, provider, vote, has_state=False)
        case ("vote", int(which), vote, bool(has_state)) if group.ballot is not None:
            provider = some(group.ballot.electorate, which)
            assert provider is not None
            cast(story, provider, vote, has_state=has_state)
        case (str(what), int(which), *rest) if story.listed:
            provider = some(story.listed, which)
            assert provider is not None
            command = _command(story, str(what), number, provider, rest)
            if isinstance(command, bytes):
                story.deliver("apply", provider[:2], command)
            elif command is not None:
                story.deliver("apply", provider[:2], cmd.encode(command))


def _command(
    story: Story, what: str, number: int, provider: ProviderId, rest: Sequence[object]
) -> cmd.AnyCommand | bytes | None:
    common = (number, provider[2], BY_DEFAULT, BY_DEFAULT)
    match (what, *rest):
        case ("leave",):
            return cmd.Leave(*common, 0)
        case ("expel", int(whom)):
            target = some(story.listed, whom)
            return cmd.Expel(*common, (target,) if target is not None else (), "why not")
        case ("state", int(phases), bool(fail_if_busy), int(if_version)):
            story.proposed[(*provider[:2], number)] = phases if phases != BY_DEFAULT else 0
            return cmd.ChangeState(number, provider[2], phases, BY_DEFAULT, b"%d" % number, if_version, fail_if_busy)
        case ("send",):
            return cmd.SendMessage(*common, b"by ballot")
        case ("say",):
            return cmd.message_prefix(provider[2]) + b"plainly"
        case ("die",):
            return cmd.ProvidersFailed(((provider[2], "failure"),))
    return None


def cast(story: Story, provider: ProviderId, vote: object, *, has_state: bool) -> None:
    """A process votes, if it lives; its node sends all it has."""
    ballot = story.group.ballot
    assert ballot is not None
    if provider in story.failing:
        return
    papers = story.papers.setdefault(provider[:2], {})
    papers[provider[2]] = Paper(provider[2], vote, b"state of a vote" if has_state else None)  # type: ignore[arg-type]
    story.chair.take(provider[:2], ballot.id, ballot.phase, tuple(papers.values()))
    story.look()


@settings(max_examples=300)
@given(attributes=ATTRIBUTES, steps=st.lists(STEPS, max_size=60))
def test_any_story_keeps_the_rules_and_is_the_same_for_all(
    attributes: dict[str, str], steps: list[tuple[object, ...]]
) -> None:
    """G1-G6, G10, GS-30; and in the end, when all vote or are late, nothing is left waiting (R4 for ballots)."""
    story = Story(attributes)
    story.proposed = {}
    for step in steps:
        play(story, step)
    for _ in range(200):
        if story.group.ballot is None and not story.group.queue and not story.group.failing:
            break
        play(story, ("all vote", "approve"))
        play(story, ("time", 0.06))
    assert story.group.ballot is None
    assert [] == story.group.queue
    assert {} == story.group.failing


def test_the_model_of_the_tally_is_not_trivial() -> None:
    """A control of the control."""
    assert ["rejected", "goes on", "approved", "goes on", "approved"] == [
        decided(votes, phase, phases)
        for votes, phase, phases in (
            (["approve", "reject"], 1, 0),
            (["approve", "continue"], 1, 0),
            (["approve", "approve"], 1, 0),
            (["approve"], 1, 2),
            (["continue"], 2, 2),
        )
    ]
    assert Cast(("A", 1, 1), "reject").why == ""
