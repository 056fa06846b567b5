"""The first formation, a domain of two, and a witness: who must be there, and what is said while somebody is not."""

from __future__ import annotations

from groupsvcd.core.records import NO_DOMAIN
from tests.unit.core.trio import Disk, Trio


def test_the_id_of_a_stillborn_domain_is_not_kept() -> None:
    """L4. A draws a domain id and dies before the first entry is on any disk; D has heard A call.

    Were D to keep the id, it would take the domain that is formed a moment later for a foreign one, for ever.
    """
    trio = Trio(others="D")
    trio.boot("B", "C", "D", "A")
    trio.run_until(lambda: any(trio.voter(name).formed for name in "ABC"))
    (first,) = [name for name in "ABC" if trio.voter(name).formed]
    trio.hang_disk(first)
    stillborn = trio.engines[first].domain
    assert NO_DOMAIN != stillborn
    trio.run(0.15)
    assert NO_DOMAIN == trio.engines["D"].domain
    assert NO_DOMAIN == trio.disks["D"].domain
    trio.kill(first)
    trio.mend_disk(first)
    trio.boot(first)
    trio.run(8.0)
    assert 1 == len(trio.leaders)
    (domain,) = {engine.domain for engine in trio.engines.values()}
    assert domain not in (NO_DOMAIN, stillborn)
    assert not trio.status("D").suspended
    assert "" == trio.status("D").trouble


def test_a_domain_is_formed_only_when_every_voter_answers() -> None:
    """A and B alone could be the minority of a domain whose other disks are elsewhere."""
    trio = Trio()
    trio.boot("A", "B")
    trio.run(6.0)
    assert [] == trio.leaders
    assert "the domain is not formed yet: waits for C" == trio.status("A").trouble
    trio.boot("C")
    trio.run(4.0)
    assert 1 == len(trio.leaders)


def test_voters_that_were_killed_are_away_and_have_lost_nothing() -> None:
    """They were blank when the domain was formed; nobody has said so since."""
    trio = Trio.in_service()
    (leader,) = trio.leaders
    others = [name for name in "ABC" if name != leader]
    told = set()
    trio.kill(*others)
    for _ in range(50):
        trio.run(0.1)
        told.add(trio.status(leader).trouble)
    assert {"", "no name server yet", f"suspended: no majority of voters; needs {' or '.join(others)}"} >= told
    assert trio.status(leader).trouble.startswith("suspended: no majority")


def test_a_voter_that_says_that_it_is_blank_has_lost_the_state() -> None:
    trio = Trio.in_service()
    trio.kill("A", "B", "C")
    trio.boot("A")
    trio.boot_on("B", Disk("disk-B-new"))
    trio.boot_on("C", Disk("disk-C-new"))
    trio.run(6.0)
    assert "suspended: B, C lost the state; needs one of the lost disks back" == trio.status("A").trouble


def test_who_has_left_office_names_itself_no_longer() -> None:
    """One answer does not say both."""
    trio = Trio.in_service()
    (leader,) = trio.leaders
    trio.cut(leader, *(name for name in "ABC" if name != leader))
    for _ in range(60):
        trio.run(0.05)
        status = trio.status(leader)
        says = (status.role == "name server", [node.name for node in status.nodes if node.name_server])
        assert (status.name_server == leader, [leader] if status.name_server == leader else []) == says
    assert [leader] != trio.leaders


def test_a_domain_of_two_says_what_it_needs_when_one_is_gone() -> None:
    """Two voters survive nothing: half is no majority. The one that is left says so, and what would help."""
    trio = Trio.in_service("AB")
    trio.kill("B")
    trio.run(5.0)
    status = trio.status("A")
    assert status.suspended
    assert [] == trio.leaders
    assert status.trouble.startswith("suspended")
    assert "needs B, or a witness" in status.trouble
    trio.boot("B")
    trio.run(5.0)
    assert "" == trio.status("A").trouble
    assert not trio.status("A").suspended


def test_a_domain_of_two_and_a_witness_fails_over() -> None:
    """C holds the directory but is never name server and has no clients: its word is what A and B lack."""
    trio = Trio.in_service(of={"C": {"candidate": False}})
    leader, other = ("A", "B") if trio.leaders == ["A"] else ("B", "A")
    number = trio.set(other, "color", "red")
    trio.run(0.5)
    assert "red" == trio.value(number)
    trio.kill(leader)
    trio.run(4.0)
    assert [other] == trio.leaders
    number = trio.get(other, "color")
    trio.run(0.5)
    assert "red" == trio.value(number)


def test_a_witness_never_leads() -> None:
    """The best candidate otherwise; and even alone with a voter that cannot be reached by anybody else."""
    trio = Trio.in_service(of={"A": {"candidate": False, "preference": 9, "pinned": True}})
    trio.kill(*trio.leaders)
    trio.run(4.0)
    assert trio.leaders
    assert "A" not in trio.leaders
    trio.kill(*trio.leaders)
    trio.run(6.0)
    assert [] == trio.leaders


def test_a_lost_disk_is_replaced_by_an_empty_one() -> None:
    """C comes back blank, follows, is admitted, and its word counts again."""
    trio = Trio.in_service()
    trio.kill("C")
    trio.boot_on("C", Disk("disk-C-new"))
    trio.run(6.0)
    assert "voter" == trio.status("C").role
    trio.kill("B")
    number = trio.set("A", "color", "red")
    trio.run(0.5)
    assert "red" == trio.value(number)
