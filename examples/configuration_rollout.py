"""A roll-out that needs everybody's approval: one server rejects, then approves; one dies while it is asked.

The state value of the group is the configuration in force. ``state_phases=Phases.N`` says that a change of it is voted
on. One REJECT is enough to stop it. For a server that cannot vote the group's default vote is cast, here APPROVE: the
dead shall not stop a roll-out. Everybody is told the same outcome, with who voted what and why.
"""

from __future__ import annotations

import multiprocessing
import os
import signal

import groupsvc
from groupsvc import Answer, DefaultCast, GroupAttributes, Outcome, Phases, Proposal, ProposalKind, Vote
from groupsvc.testing import LocalDomain

GROUP = "configuration"
RULES = GroupAttributes(state_phases=Phases.N, default_vote=Vote.APPROVE, time_limit=5.0)


class Bert:
    """A server that has no room for the new configuration at first."""

    disk_is_full = True

    def vote(self, proposal: Proposal) -> Vote | Answer:
        """What the group asks before every change."""
        if proposal.kind is ProposalKind.STATE and self.disk_is_full:
            return Answer(Vote.REJECT, message=b"my disk is full")
        return Vote.APPROVE


def main() -> None:
    """Three attempts."""
    bert = Bert()
    with (
        LocalDomain(nodes=3) as domain,
        domain.connect("n1") as first,
        domain.connect("n2") as second,
        first.join(GROUP, name="anna", attributes=RULES, events=True) as group,
        second.join(GROUP, name="bert", on_proposal=bert.vote),
    ):
        carl = multiprocessing.get_context("spawn").Process(target=be_carl, args=(domain.address("n3"),))
        carl.start()
        while len(group.providers) < 3:
            assert group.next_event(timeout=10) is not None, "carl has not come for ten seconds"

        print("anna proposes 'cache = 1 GB'")
        tell(group.propose_state(b"cache = 1 GB"))

        print("bert makes room, and anna proposes it again")
        bert.disk_is_full = False
        tell(group.propose_state(b"cache = 1 GB", if_version=group.state_version))

        print("anna proposes 'cache = 9 GB', and carl does not survive the question")
        tell(group.propose_state(b"cache = 9 GB"))

        left = next(event for event in group.events(timeout=10) if isinstance(event, groupsvc.Left))
        print(f"{left.providers[0].name} has left ({left.cause.name}); in force is {group.state.decode()!r}")
        carl.join()


def be_carl(address: str) -> None:
    """A process of its own, which can die alone."""

    def vote(proposal: Proposal) -> Vote:
        if proposal.state == b"cache = 9 GB":
            os.kill(os.getpid(), signal.SIGKILL)
        return Vote.APPROVE

    with groupsvc.connect(address) as session, session.join(GROUP, name="carl", on_proposal=vote) as group:
        for _ in group.events():
            pass


def tell(outcome: Outcome) -> None:
    """How it ended, and why."""
    print(f"  {'approved' if outcome else 'rejected'}, {outcome.reason.name}")
    for counted in outcome.tally:
        why = "" if counted.default is DefaultCast.NOT else f", cast by default: {counted.default.name}"
        print(f"    {counted.provider.name}: {counted.vote.name}{why}")
    for said in outcome.messages:
        print(f"    {said.provider.name} says: {said.payload.decode()}")


if __name__ == "__main__":
    main()
