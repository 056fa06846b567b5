"""What an error says: what was tried, in which group, and what to do. Each word for word, because people read them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs
import pytest

import groupsvc
from groupsvc import MANUAL, GroupAttributes, ProposalKind, Proposed, Vote, aio, limits
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_on_a_socket import PATIENCE_S, DaemonOnASocket, daemon_on_a_socket

Call = Callable[[], object]


def error_of(kind: type[groupsvc.GroupServiceError], call: Call) -> str:
    """The text of the error that this call must raise; it carries the group as a value, too."""
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind or kind is groupsvc.UsageError
    assert "db" == caught.value.group
    return str(caught.value)


def daemon_was_heard(session: groupsvc.Session) -> None:
    """What it said before has been taken in: it has answered something since."""
    session.groups()


def voter(daemon: DaemonOnASocket, session: groupsvc.Session) -> groupsvc.Proposal:
    """The proposal of an open phase, to be voted on by hand."""
    group = session.join("db", on_proposal=MANUAL, events=True)
    daemon.tell(daemon.memory.opened(1))
    event = next(one for one in group.events(timeout=PATIENCE_S) if isinstance(one, Proposed))
    return event.proposal


class TestTooLarge:
    """Refused before anything is sent, with the limit by its name."""

    SIZE = limits.payload_bytes_max + 1

    def test_a_message(self, session: groupsvc.Session) -> None:
        group = session.join("db")
        expected = (
            "a payload for group 'db' has 4194305 bytes, more than the 4194304 allowed (limits.payload_bytes_max);"
            " send it in parts"
        )
        calls: list[Call] = [
            lambda: group.multicast(bytes(self.SIZE)),
            lambda: group.multicast_nowait(bytes(self.SIZE)),
            lambda: group.send(bytes(self.SIZE)),
            lambda: session.multicast("db", bytes(self.SIZE)),
        ]
        for call in calls:
            assert expected == error_of(groupsvc.UsageError, call)

    def test_a_state_value(self, session: groupsvc.Session) -> None:
        group = session.join("db")
        expected = (
            "a state value for group 'db' has 4194305 bytes, more than the 4194304 allowed (limits.payload_bytes_max);"
            " keep what is large elsewhere, and its name here"
        )
        assert expected == error_of(groupsvc.UsageError, lambda: group.propose_state(bytes(self.SIZE)))

    def test_data_of_a_provider(self, session: groupsvc.Session) -> None:
        expected = (
            "the data of a provider for group 'db' has 65537 bytes, more than the 65536 allowed"
            " (limits.provider_data_bytes_max); keep what is large elsewhere, and its name here"
        )
        large = bytes(limits.provider_data_bytes_max + 1)
        assert expected == error_of(groupsvc.UsageError, lambda: session.join("db", data=large))

    def test_what_goes_with_a_vote(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        """GS-25: what would not be shown to everybody is refused."""
        proposal = voter(daemon, session)
        voters = len(proposal.electorate)
        share = limits.vote_messages_bytes_max // voters
        message = (
            f"cannot vote on a change of the state value in group 'db': message has {share + 1} bytes, more than the"
            f" {share} that each of {voters} may say in this phase (limits.vote_messages_bytes_max, in equal shares)"
        )
        state = (
            "cannot vote on a change of the state value in group 'db': state has 4194305 bytes, more than the 4194304"
            " allowed (limits.payload_bytes_max)"
        )
        assert message == error_of(groupsvc.UsageError, lambda: proposal.vote(Vote.APPROVE, message=bytes(share + 1)))
        assert state == error_of(groupsvc.UsageError, lambda: proposal.vote(Vote.APPROVE, state=bytes(self.SIZE)))

    def test_a_state_with_a_vote_on_a_message(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        """Both are in every question: they are counted together."""
        asked = attrs.evolve(voter(daemon, session), kind=ProposalKind.MESSAGE, payload=b"hello")
        expected = (
            "cannot vote on a message in group 'db': state has 4194300 bytes and the message that is voted on 5, more"
            " than the 4194304 allowed (limits.payload_bytes_max)"
        )
        assert expected == error_of(groupsvc.UsageError, lambda: asked.vote(Vote.APPROVE, state=bytes(4194300)))


class TestUnknownGroups:
    """It certainly did not happen; how there can be one is said."""

    def refused(self, request: wire.AnyClientRequest) -> list[wire.AnyClientReply] | None:
        kinds = wire.JoinAsk | wire.SubscribeAsk | wire.SubmitOutside | wire.WhyAsk
        if not isinstance(request, kinds):
            return None
        return [wire.Problem(request.id, "failed", "no such group", "there is no such group")]

    @pytest.mark.parametrize("what", ["join", "subscribe", "multicast", "why"])
    def test_each_call(self, daemon: DaemonOnASocket, session: groupsvc.Session, what: str) -> None:
        daemon.memory.script = self.refused
        calls: dict[str, tuple[Call, str]] = {
            "join": (lambda: session.join("db", create=False), "join group 'db'"),
            "subscribe": (lambda: session.subscribe("db"), "subscribe to group 'db'"),
            "multicast": (lambda: session.multicast("db", b"x"), "send a message to group 'db'"),
            "why": (lambda: session.why("db"), "ask how proposals of group 'db' ended"),
        }
        call, tried = calls[what]
        expected = (
            f"could not {tried}: there is no such group; a join without create=False forms it,"
            " and subscribe(..., wait=seconds) waits until somebody has"
        )
        assert expected == error_of(groupsvc.NoSuchGroup, call)


class TestVotes:
    """One per phase, and in its time."""

    def test_twice(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        proposal = voter(daemon, session)
        proposal.vote(Vote.APPROVE)
        expected = (
            "a vote on a change of the state value in group 'db' was cast already in phase 1;"
            " a provider has one vote in each phase, and it stands"
        )
        assert expected == error_of(groupsvc.UsageError, lambda: proposal.vote(Vote.REJECT))
        assert ["approve"] == [one.vote for one in daemon.wait_for(wire.CastVote) if isinstance(one, wire.CastVote)]

    def test_in_a_phase_that_is_over(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        proposal = voter(daemon, session)
        daemon.tell(daemon.memory.closed(1, ballot=proposal.ballot, phase=1))
        daemon_was_heard(session)
        expected = (
            "could not vote on a change of the state value in group 'db': phase 1 is over, and the default vote was"
            " counted; vote before proposal.deadline, or let the phases of this group take longer (time_limit)"
        )
        assert expected == error_of(groupsvc.TimedOut, lambda: proposal.vote(Vote.APPROVE))

    def test_twice_and_the_phase_is_over_by_then(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        proposal = voter(daemon, session)
        proposal.vote(Vote.APPROVE)
        daemon.tell(daemon.memory.closed(1, ballot=proposal.ballot, phase=1))
        daemon_was_heard(session)
        expected = (
            "a vote on a change of the state value in group 'db' was cast already in phase 1;"
            " a provider has one vote in each phase, and it stands"
        )
        assert expected == error_of(groupsvc.UsageError, lambda: proposal.vote(Vote.REJECT))

    def test_a_proposal_inside_the_callback(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        texts: list[str] = []

        def vote(proposal: groupsvc.Proposal) -> Vote:
            calls: list[Call] = [
                lambda: group.propose_state(b"x"),
                lambda: group.send(b"x"),
                lambda: group.expel("n1/1/1"),
                lambda: group.change_attributes(time_limit=1.0),
                group.leave,
            ]
            texts.extend(error_of(groupsvc.UsageError, call) for call in calls)
            return Vote.APPROVE

        group = session.join("db", on_proposal=vote)
        daemon.tell(daemon.memory.opened(1))
        daemon.wait_for(wire.CastVote)
        expected = (
            "a proposal to group 'db' inside a callback would wait for votes that only the thread of this callback can"
            " cast; propose from another thread, or send a message with multicast"
        )
        assert [expected] * 5 == texts
        assert not any(isinstance(one, wire.ChangeStateAsk | wire.LeaveAsk) for one in daemon.memory.requests)


class TestSubscribers:
    """They watch, and nothing else."""

    @pytest.mark.parametrize(
        "name", ["propose_state", "send", "multicast", "multicast_nowait", "expel", "change_attributes", "leave"]
    )
    def test_what_only_a_provider_can_do(self, session: groupsvc.Session, name: str) -> None:
        session.join("db")
        watching = session.subscribe("db")
        expected = f"a subscription to group 'db' only watches it and has no {name}; join the group to take part"
        assert expected == error_of(groupsvc.UsageError, lambda: getattr(watching, name)(b"x"))
        assert not hasattr(watching, name), "and programs that look before they call find nothing"

    def test_a_name_that_nobody_has_is_pythons_business(self, session: groupsvc.Session) -> None:
        session.join("db")
        with pytest.raises(AttributeError, match="'Subscription' object has no attribute 'propose'"):
            session.subscribe("db").propose  # type: ignore[attr-defined]  # noqa: B018


class TestSessionsThatAreOver:
    """Nothing is possible with what is over, and how to go on is said."""

    def test_closed(self, daemon: DaemonOnASocket) -> None:
        """To use it is a mistake; a group in the hands of another thread has ended."""
        session = groupsvc.connect(daemon.address)
        group = session.join("db", events=True)
        session.close()
        for tried, call in of_session(session).items():
            expected = f"could not {tried}: this session was closed; connect again"
            assert expected == error_of(groupsvc.UsageError, call)
        for tried, call in of_group(group).items():
            expected = f"could not {tried} in group 'db': no longer a member (the session was closed)"
            assert f"{expected}; connect and join again" == error_of(groupsvc.NotAMember, call)

    def test_lost(self, daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
        group = session.join("db", events=True)
        daemon.tell(wire.SessionNews("lost", "declared down"))
        assert ["Joined", "Lost"] == [type(event).__name__ for event in group.events(timeout=PATIENCE_S)]
        for tried, call in of_session(session).items():
            expected = f"could not {tried}: this session is lost (declared down); connect and join again"
            assert expected == error_of(groupsvc.DaemonUnreachable, call)
        for tried, call in of_group(group).items():
            expected = f"could not {tried} in group 'db': no longer a member (declared down)"
            assert f"{expected}; connect and join again" == error_of(groupsvc.NotAMember, call)

    def test_a_group_that_was_left(self, session: groupsvc.Session) -> None:
        group = session.join("db", events=True)
        group.leave()
        for tried, call in of_group(group).items():
            expected = f"could not {tried} in group 'db': no longer a member (it left: leave)"
            assert f"{expected}; join again" == error_of(groupsvc.NotAMember, call)

    def test_in_asyncio_the_same(self) -> None:
        async def scene() -> None:
            session = await aio.connect(daemon.address)
            group = await session.join("db")
            await session.close()
            with pytest.raises(
                groupsvc.UsageError, match="could not list the groups: this session was closed; connect"
            ):
                await session.groups()
            for call in (group.propose_state, group.multicast):
                with pytest.raises(groupsvc.NotAMember, match=r"\(the session was closed\); connect and join again"):
                    await call(b"x")

        with daemon_on_a_socket() as daemon:
            asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


def of_session(session: groupsvc.Session) -> dict[str, Call]:
    """What can be asked of one, about a group."""
    return {
        "join group 'db'": lambda: session.join("db", name="again"),
        "subscribe to group 'db'": lambda: session.subscribe("db"),
        "send a message to group 'db'": lambda: session.multicast("db", b"x"),
        "ask how proposals of group 'db' ended": lambda: session.why("db"),
    }


def of_group(group: groupsvc.Group) -> dict[str, Call]:
    """What can be asked of a group."""
    return {
        "change the state": lambda: group.propose_state(b"x"),
        "send a message": lambda: group.multicast(b"x"),
        "change time_limit": lambda: group.change_attributes(time_limit=1.0),
        "leave": group.leave,
        "say goodbye": group.goodbye,
        "catch up": group.sync,
        "ask for an outcome": lambda: group.outcome("n1/1/1"),
    }


WRONG: dict[str, tuple[Callable[[groupsvc.Session, groupsvc.Group], object], str]] = {
    "a group name with a blank": (
        lambda session, group: session.join("d b"),
        "'d b' cannot name a group: allowed are a-z A-Z 0-9 . _ / -",
    ),
    "a group name that is reserved": (
        lambda session, group: session.join("_db"),
        "'_db' cannot name a group of yours: a leading _ is reserved",
    ),
    "a group name that is none": (
        lambda session, group: session.join(7),  # type: ignore[arg-type]
        "a group is named by a string, not by a int",
    ),
    "text where bytes belong": (
        lambda session, group: group.multicast("text"),  # type: ignore[arg-type]
        "a payload for group 'db' is a str; encode it to bytes first",
    ),
    "a timeout of nothing": (
        lambda session, group: group.propose_state(b"x", timeout=0),
        "timeout is 0; it must be above 0 seconds, or math.inf to wait for ever",
    ),
    "no phases": (
        lambda session, group: group.propose_state(b"x", phases=0),
        "phases is 0; it must be Phases.ONE, Phases.N or a number from 1 to 1000",
    ),
    "a version that cannot be": (
        lambda session, group: group.propose_state(b"x", if_version=-1),
        "if_version is -1; it must be a state_version, 0 or more",
    ),
    "a word that on_busy does not know": (
        lambda session, group: group.propose_state(b"x", on_busy="wait"),  # type: ignore[arg-type]
        'on_busy is \'wait\'; it must be "queue" or "fail"',
    ),
    "nobody to expel": (
        lambda session, group: group.expel(),
        "nobody was named to be expelled from group 'db'",
    ),
    "somebody who is none": (
        lambda session, group: group.expel("bob"),
        "'bob' is no Provider and no id of one (node/incarnation/number)",
    ),
    "an attribute that nobody has": (
        lambda session, group: group.change_attributes(speed=1),
        "no group has an attribute 'speed'; there are client_version, batch, ",
    ),
    "a default vote that goes on for ever": (
        lambda session, group: GroupAttributes(default_vote=Vote.CONTINUE),
        "default_vote is <Vote.CONTINUE: 'continue'>; it must be Vote.APPROVE or Vote.REJECT",
    ),
    "a proposal that is none": (
        lambda session, group: group.outcome("it"),
        "'it' is no id of a proposal (node/incarnation/number), as in outcome.proposal.id",
    ),
    "a second membership of one name": (
        lambda session, group: session.join("db"),
        "this session is in group 'db' already, without a name; give the second one a name",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_are_told_before_anything_is_sent(
    daemon: DaemonOnASocket, session: groupsvc.Session, what: str
) -> None:
    group = session.join("db")
    before = len(daemon.memory.requests)
    call, expected = WRONG[what]
    with pytest.raises(groupsvc.UsageError) as caught:
        call(session, group)
    assert str(caught.value).startswith(expected)
    assert before == len(daemon.memory.requests)
