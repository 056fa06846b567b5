"""Two of two servers are lost at once, and the group goes on with who is left: everybody is told that it did."""

from __future__ import annotations

from groupsvc.wire.client_messages import JoinedAs, MemberLost, Subscribed
from groupsvc.wire.notices import Fenced

from .applications import Applications


def test_a_group_that_goes_on_without_its_quorum_says_so_to_programs_and_operators() -> None:
    """on_quorum_lost="continue". D and E hold the group, F and G only follow; D and E die together."""
    domain = Applications()
    a, b, c = (domain.opened(node) for node in "DEF")
    watcher = domain.opened("G")
    for application in (a, b, c):
        application.join(replicas=2)
    watcher.subscribe()
    domain.run(1.0)
    assert [] == [fenced for fenced in c.notices(Fenced) if fenced.tail_may_be_lost]
    domain.kill("D", "E")
    domain.run(20.0)
    assert [] == c.kinds(MemberLost)
    (forced,) = [fenced for fenced in c.notices(Fenced) if fenced.tail_may_be_lost]
    assert [forced] == [fenced for fenced in watcher.notices(Fenced) if fenced.tail_may_be_lost]
    assert {("F", "db"), ("G", "db")} == {(line.node, line.args["name"]) for line in domain.lines("quorum_lost")}
    assert 2 == len(domain.lines("quorum_lost"))

    late = domain.opened("A")
    late.join(wait=2.0)
    assert [forced.seq] == [joined.view.quorum_lost_seq for joined in late.kinds(JoinedAs)]
    late.subscribe()
    assert [forced.seq] == [subscribed.view.quorum_lost_seq for subscribed in late.kinds(Subscribed)]
    assert 2 == len(domain.lines("quorum_lost"))


def test_a_leader_that_dies_alone_costs_nothing_and_nobody_is_told_otherwise() -> None:
    domain = Applications()
    a, b, c = (domain.opened(node) for node in "DEF")
    for application in (a, b, c):
        application.join()
    domain.run(1.0)
    domain.kill("D")
    domain.run(5.0)
    assert [] == domain.lines("quorum_lost")
    assert {False} == {fenced.tail_may_be_lost for one in (b, c) for fenced in one.notices(Fenced)}
