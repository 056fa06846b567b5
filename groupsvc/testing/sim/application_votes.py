"""How a simulated application votes: through the library, or past it, where no program could.

Each vote is a line. What the library refuses says so, and so does what nobody waits for (``stray``): it must not count.
That a daemon has taken one is another line: from then on it counts, whatever becomes of who cast it.
"""

from __future__ import annotations

from typing import Any

from groupsvc.errors import GroupServiceError
from groupsvc.views import text_of
from groupsvc.voting import Answer, Proposal
from groupsvc.wire.client_messages import CastVote

from .application import Application, Part
from .application_lines import text
from .carried_groups import processes_at
from .local_connection import LocalConnection


def cast(app: Application, part: Part, proposal: Proposal, answer: Answer | None) -> None:
    """Vote; a phase that is over by now has no use for it."""
    if not part.is_open:
        return
    args = _paper(part, proposal.ballot, proposal.phase, answer)
    try:
        part.membership.vote(proposal, answer)
    except GroupServiceError as problem:
        app.all.mark("app-late-vote")
        args["refused"] = type(problem).__name__
    app.write("vote", args, group=part.group)
    app.turn()


def cast_astray(app: Application, part: Part, ballot: int, phase: int, answer: Answer) -> None:
    """A vote that nobody waits for, past the library, which would refuse it.

    Who votes late may hit upon the next phase when that is open already, and then it is a vote like any other. So it is
    if that is open at its daemon, which has told it so, and it has not heard yet: that is *early*. Whether it is so
    is seen when the vote arrives there, and only then is it written down; until then it is one that was sent. The
    session may be suspended by then, if the connection is broken and lingers. One that comes before the phase is stray.
    """
    machine = app.machine
    assert machine is not None
    args = _paper(part, ballot, phase, answer)
    running = part.membership._proposal
    is_open = running is not None and (running.ballot, running.phase) == (ballot, phase)
    is_next = running is not None and (running.ballot, running.phase + 1) == (ballot, phase)
    default = None if answer.default_vote is None else answer.default_vote.value
    vote = CastVote(
        machine.next_id(), part.membership.number, ballot, phase, answer.vote.value, answer.state,
        answer.message, default,  # type: ignore[arg-type]
    )  # fmt: skip

    def arrives(connection: LocalConnection) -> None:
        word = "early" if _may_be_open(connection, vote) else "stray"
        app.write("vote", {**args, word: True, "arrived": True}, group=part.group)

    machine.say(vote)
    app.all.mark("app-stray-vote")
    if is_next:
        app.on_their_way[vote.id] = arrives
        app.write("vote_sent", args, group=part.group)
    else:
        if part.membership._last_vote == (ballot, phase) or not is_open:
            args["stray"] = True
        app.write("vote", args, group=part.group)
    app.turn()


def _may_be_open(connection: LocalConnection, vote: CastVote) -> bool:
    """Whether the daemon has opened the phase; nobody knows of one that stands still, and reads the vote later."""
    node = connection.node
    processes = processes_at(node)
    if processes is None or node.paused:
        return True
    ballots = [local.group.ballot for local in processes._by_name.values()]
    return any(one is not None and (one.id, one.phase) == (vote.ballot, vote.phase) for one in ballots)


def note_taken(app: Application, connection: LocalConnection, vote: CastVote) -> None:
    """A vote has come to the daemon of its node; if that will send it to the leader, it is written down."""
    processes = processes_at(connection.node)
    part = next((one for one in app.parts.values() if one.membership.number == vote.member), None)
    local = None if processes is None or part is None else processes._by_id.get(part.group)
    if part is None or local is None or part.membership.my_id is None:
        return
    running = local.group.ballot
    is_open = running is not None and (running.id, running.phase) == (vote.ballot, vote.phase)
    if is_open and vote.member in local._box._papers:
        args = {"provider": text_of(part.membership.my_id), "ballot": vote.ballot, "phase": vote.phase}
        app.write("vote_taken", {"m": part.m, **args}, group=part.group)


def _paper(part: Part, ballot: int, phase: int, answer: Answer | None) -> dict[str, Any]:
    assert part.membership.my_id is not None
    found: dict[str, Any] = {
        "m": part.m, "provider": text_of(part.membership.my_id), "ballot": ballot, "phase": phase,
        "vote": None if answer is None else answer.vote.value,
    }  # fmt: skip
    if answer is not None:
        more = (("state", text(answer.state)), ("message", text(answer.message)))
        found.update((name, value) for name, value in more if value is not None)
        if answer.default_vote is not None:
            found["default_vote"] = answer.default_vote.value
    return found
